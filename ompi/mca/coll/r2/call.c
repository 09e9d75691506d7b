/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Running calls: blocking to the end, nonblocking as requests.
 */
#include "call.h"
#include "ulfm.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/mca/coll/base/coll_base_util.h"
#include "opal/runtime/opal.h"

/* Open MPI's free list takes memory for so many. */
#define R2_REQUESTS_AT_A_TIME 8

/**
 * A nonblocking or persistent call. Complete or not, it is Open MPI's object. MPI_Iallreduce and
 * its like write into every request that a component returns as if it were of this class.
 */
typedef struct r2_request {
    ompi_coll_base_nbc_request_t super;
    struct ompi_communicator_t *comm; /* refcounted: errors of the request are told through it */
    bool sequence;                    /* call.comm is one of its own, and owned */
    mca_coll_r2_parked_t parked;
    mca_coll_r2_call_t call;
} r2_request_t;

OBJ_CLASS_DECLARATION(r2_request_t);
OBJ_CLASS_INSTANCE(r2_request_t, ompi_coll_base_nbc_request_t, NULL, NULL);

int mca_coll_r2_requests_init(opal_free_list_t *list)
{
    return opal_free_list_init(list, sizeof(r2_request_t), opal_cache_line_size,
                               OBJ_CLASS(r2_request_t), 0, opal_cache_line_size, 0, -1,
                               R2_REQUESTS_AT_A_TIME, NULL, 0, NULL, NULL, NULL);
}

void mca_coll_r2_call_init(mca_coll_r2_call_t *call, r2_coll_kind_t kind,
                           struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    memset(call, 0, sizeof(*call));
    call->module = (mca_coll_r2_module_t *) module;
    call->comm = call->module->r2;
    call->size = ompi_comm_size(comm);
    call->rank = ompi_comm_rank(comm);
    call->args.kind = kind;
    call->args.element_bytes = 1;
}

static void r2_buffer_retain(const mca_coll_r2_buffer_t *buffer)
{
    if (NULL != buffer->starts && NULL != buffer->dtype) {
        OBJ_RETAIN(buffer->dtype);
    }
    for (int i = 0; NULL != buffer->dtypes && i < buffer->block_count; ++i) {
        OBJ_RETAIN(buffer->dtypes[i]);
    }
}

static void r2_buffer_release(const mca_coll_r2_buffer_t *buffer)
{
    struct ompi_datatype_t *dtype = buffer->dtype;

    if (NULL != buffer->starts && NULL != dtype) {
        OBJ_RELEASE(dtype);
    }
    for (int i = 0; NULL != buffer->dtypes && i < buffer->block_count; ++i) {
        OBJ_RELEASE(buffer->dtypes[i]);
    }
}

static void r2_call_retain(mca_coll_r2_call_t *call)
{
    call->retained = true;
    if (NULL != call->reducer.op) {
        OBJ_RETAIN(call->reducer.op);
        OBJ_RETAIN(call->reducer.dtype);
    }
    r2_buffer_retain(&call->in);
    r2_buffer_retain(&call->out);
}

static void r2_call_release(mca_coll_r2_call_t *call)
{
    if (NULL != call->reducer.op) {
        OBJ_RELEASE(call->reducer.op);
        OBJ_RELEASE(call->reducer.dtype);
    }
    r2_buffer_release(&call->in);
    r2_buffer_release(&call->out);
}

void mca_coll_r2_call_fini(mca_coll_r2_call_t *call)
{
    if (call->retained) {
        r2_call_release(call);
    }
    if (NULL != call->pieces) {
        mca_coll_r2_pieces_destroy(call->pieces);
    }
    mca_coll_r2_buffer_fini(&call->in);
    mca_coll_r2_buffer_fini(&call->out);
    free(call->counts);
    free(call->sends);
    free(call->recvs);
}

/* Pointers to the call itself are set here, where it has found its final place. */
static void r2_call_settle(mca_coll_r2_call_t *call)
{
    call->args.reduce_arg = &call->reducer;
    if (NULL != call->args.in_convertor.move) {
        call->args.in_convertor.arg = &call->in;
    }
    if (NULL != call->args.out_convertor.move) {
        call->args.out_convertor.arg = &call->out;
    }
}

/* Others make the call: where this rank cannot, they must not wait for it. */
static r2_status_t r2_call_post(mca_coll_r2_call_t *call, r2_coll_done_fn_t done, void *arg)
{
    r2_status_t status = mca_coll_r2_ulfm_mark(call->module);

    status = R2_OK == status ? mca_coll_r2_call_look(call) : status;
    if (R2_OK == status && NULL != call->pieces) {
        mca_coll_r2_pieces_rewind(call->pieces);
        (void) mca_coll_r2_pieces_load(call);
        call->args.parts = mca_coll_r2_pieces_count(call->pieces);
        status = call->pieces->status;
    }
    if (R2_OK != status) {
        r2_coll_refuse(call->comm, status);
        return status;
    }
    return r2_coll_post(call->comm, &call->args, done, arg, &call->coll);
}

/* A piece is done, and its result stored. @return R2_OK: the next one is under way;
 * R2_ERR_NOT_FOUND: there is none; or an error. */
static r2_status_t r2_call_next(mca_coll_r2_call_t *call)
{
    bool more;

    mca_coll_r2_pieces_store(call);
    more = mca_coll_r2_pieces_load(call);
    if (R2_OK != call->pieces->status) {
        r2_coll_refuse(call->comm, call->pieces->status);
        return call->pieces->status;
    }
    return more ? r2_coll_next(call->coll, &call->args) : R2_ERR_NOT_FOUND;
}

/* The pieces of one call follow each other; their places among the communicator's calls are taken
 * with the first. */
static r2_status_t r2_call_pieces(mca_coll_r2_call_t *call)
{
    r2_status_t status = r2_coll_wait(call->coll);

    while (R2_OK == status) {
        status = r2_call_next(call);
        if (R2_OK == status) {
            status = r2_coll_wait(call->coll);
        }
    }
    return R2_ERR_NOT_FOUND == status ? R2_OK : status;
}

/* Nothing is moved, but the call may have its place among those of the communicator. */
static int r2_call_skip(const mca_coll_r2_call_t *call)
{
    return mca_coll_r2_call_error(call, r2_coll_skip(call->comm, call->args.kind));
}

/* No memory for it here: the others make it, and must neither wait nor meet our next call. */
static int r2_call_refuse(const mca_coll_r2_call_t *call)
{
    r2_coll_refuse(call->comm, R2_ERR_NO_MEMORY);
    return OMPI_ERR_OUT_OF_RESOURCE;
}

/* @return true: the call is to be made; else it is over, with *made_p as its outcome. */
static bool r2_call_made(int *made_p, mca_coll_r2_call_t *call, uint64_t *counter)
{
    if (OMPI_SUCCESS == *made_p) {
        ++*counter;
        return true;
    }
    mca_coll_r2_call_fini(call);
    call->nothing = MCA_COLL_R2_NOTHING == *made_p;
    if (OMPI_ERR_OUT_OF_RESOURCE == *made_p) {
        *made_p = r2_call_refuse(call);
    }
    *made_p = call->nothing ? OMPI_SUCCESS : *made_p;
    return false;
}

int mca_coll_r2_call_run(int made, mca_coll_r2_call_t *call, uint64_t *counter)
{
    r2_status_t status;

    if (!r2_call_made(&made, call, counter)) {
        return call->nothing ? r2_call_skip(call) : made;
    }
    r2_call_settle(call);
    call->args.blocking = true;
    if (NULL != call->pieces || !r2_coll_local(call->comm, &call->args, &status)) {
        if (r2_comm_leave_call(call->comm, NULL == call->pieces ? &call->args : NULL)) {
            --*counter;
            mca_coll_r2_call_fini(call);
            return MCA_COLL_R2_DECLINED;
        }
        status = r2_call_post(call, NULL, NULL);
    }
    if (R2_OK == status && NULL != call->coll) {
        status = NULL == call->pieces ? r2_coll_wait(call->coll) : r2_call_pieces(call);
        r2_coll_release(call->coll);
    }
    if (R2_OK == status && R2_COLL_BARRIER == call->args.kind) {
        mca_coll_r2_windows_settle();
    }
    mca_coll_r2_call_fini(call);
    mca_coll_r2_ulfm_await(call->module, status);
    return mca_coll_r2_call_error(call, status);
}

static int r2_request_free(ompi_request_t **request)
{
    r2_request_t *ours = (r2_request_t *) *request;

    if (!REQUEST_COMPLETE(&ours->super.super)) {
        return MPI_ERR_REQUEST; /* r2core still refers to it */
    }
    if (ours->super.super.req_persistent) {
        mca_coll_r2_call_fini(&ours->call);
        if (ours->sequence) {
            r2_sequence_close(ours->call.comm);
        }
    }
    OBJ_RELEASE(ours->comm);
    OMPI_REQUEST_FINI(&ours->super.super);
    opal_free_list_return(&mca_coll_r2_component.requests, &ours->super.super.super);
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

/* The request belongs to its waiter as soon as it is complete. @param arg r2_request_t */
static void r2_request_finish(void *arg, r2_status_t status)
{
    r2_request_t *request = arg;

    if (!request->super.super.req_persistent) {
        mca_coll_r2_call_fini(&request->call);
    }
    atomic_fetch_sub_explicit(&mca_coll_r2_component.under_way, 1, memory_order_relaxed);
    request->super.super.req_status.MPI_ERROR = mca_coll_r2_call_error(&request->call, status);
    ompi_request_complete(&request->super.super, true);
}

/* A collective (or a piece) is done: an application thread tells, outside of all locks. */
static void r2_request_done(void *arg, r2_status_t status)
{
    r2_request_t *request = arg;
    mca_coll_r2_call_t *call = &request->call;

    if (R2_OK == status && NULL != call->pieces) {
        status = r2_call_next(call);
        if (R2_OK == status) {
            return;
        }
        status = R2_ERR_NOT_FOUND == status ? R2_OK : status;
    }
    r2_coll_release(call->coll);
    if (!mca_coll_r2_ulfm_park(call->module, status, &request->parked, r2_request_finish,
                               request)) {
        r2_request_finish(request, status);
    }
}

/*
 * As it was made: Open MPI notes in it what it will release when the request is over, and where it
 * does so while another thread completes it, the note stays.
 */
static void r2_request_clean(ompi_coll_base_nbc_request_t *request)
{
    memset(&request->cb, 0, sizeof(*request) - offsetof(ompi_coll_base_nbc_request_t, cb));
}

/* Takes over the call. @return NULL: out of memory. */
static r2_request_t *r2_request_create(mca_coll_r2_call_t *call, struct ompi_communicator_t *comm,
                                       bool persistent)
{
    r2_request_t *request = (r2_request_t *) opal_free_list_get(&mca_coll_r2_component.requests);
    ompi_request_t *base;

    if (NULL == request) {
        mca_coll_r2_call_fini(call);
        return NULL;
    }
    base = &request->super.super;
    r2_request_clean(&request->super);
    OMPI_REQUEST_INIT(base, persistent);
    base->req_type = OMPI_REQUEST_COLL;
    base->req_free = r2_request_free;
    base->req_cancel = NULL;
    base->req_mpi_object.comm = comm;
    base->req_status = ompi_status_empty;
    request->comm = comm;
    request->sequence = false;
    OBJ_RETAIN(comm);
    request->call = *call;
    r2_call_retain(&request->call);
    r2_call_settle(&request->call);
    return request;
}

static r2_status_t r2_request_post(r2_request_t *request)
{
    request->super.super.req_state = OMPI_REQUEST_ACTIVE;
    atomic_fetch_add_explicit(&mca_coll_r2_component.under_way, 1, memory_order_relaxed);
    return r2_call_post(&request->call, r2_request_done, request);
}

/* MPI_Start and MPI_Startall of persistent calls. */
static int r2_request_start(size_t count, ompi_request_t **requests)
{
    for (size_t i = 0; i < count; ++i) {
        r2_request_t *request = (r2_request_t *) requests[i];
        r2_status_t status;

        if (OMPI_REQUEST_INACTIVE != requests[i]->req_state) {
            return MPI_ERR_REQUEST; /* MPI_Start of Open MPI 4.1 does not ask */
        }
        requests[i]->req_complete = REQUEST_PENDING;
        requests[i]->req_status.MPI_ERROR = MPI_SUCCESS;
        if (request->call.nothing) {
            requests[i]->req_state = OMPI_REQUEST_ACTIVE;
            requests[i]->req_status.MPI_ERROR = r2_call_skip(&request->call);
            ompi_request_complete(requests[i], true);
        } else {
            status = r2_request_post(request);
            if (R2_OK != status) {
                mca_coll_r2_ulfm_await(request->call.module, status);
                r2_request_finish(request, status);
            }
        }
    }
    return OMPI_SUCCESS;
}

int mca_coll_r2_call_start(int made, mca_coll_r2_call_t *call, struct ompi_communicator_t *comm,
                           ompi_request_t **request_p, uint64_t *counter)
{
    r2_request_t *request;
    r2_status_t status;

    if (!r2_call_made(&made, call, counter)) {
        *request_p = &ompi_request_empty;
        return call->nothing ? r2_call_skip(call) : made;
    }
    request = r2_request_create(call, comm, false);
    if (NULL == request) {
        return r2_call_refuse(call);
    }
    *request_p = &request->super.super;
    mca_coll_r2_ids_take(&request->call);
    status = r2_request_post(request);
    if (R2_OK == status) {
        return OMPI_SUCCESS;
    }
    /* At once, not by the request: MPI_Comm_idup of Open MPI 4 does not look at it, and calls
     * again. */
    mca_coll_r2_ulfm_await(request->call.module, status);
    r2_request_finish(request, status);
    made = request->super.super.req_status.MPI_ERROR;
    (void) r2_request_free(request_p);
    return made;
}

/*
 * Persistent requests may be started in any order, another one on each rank: only that in which
 * they are made is the same. Those that move nothing have a place in it as a call has one among
 * calls (r2_coll_skip()).
 */
static r2_status_t r2_request_sequence(r2_request_t *request)
{
    const r2_coll_kind_t kind = request->call.args.kind;
    r2_status_t status;

    if (request->call.nothing && !r2_coll_skip_counts(kind)) {
        return R2_OK;
    }
    status = r2_sequence_open(request->call.comm, kind, &request->call.comm);
    request->sequence = R2_OK == status;
    return status;
}

int mca_coll_r2_call_prepare(int made, mca_coll_r2_call_t *call, struct ompi_communicator_t *comm,
                             ompi_request_t **request_p, uint64_t *counter)
{
    r2_request_t *request;
    r2_status_t status;

    if (!r2_call_made(&made, call, counter)) {
        if (!call->nothing) {
            return made;
        }
        *call = (mca_coll_r2_call_t){
            .module = call->module, .comm = call->comm, .args.kind = call->args.kind,
            .nothing = true};
    }
    request = r2_request_create(call, comm, true);
    if (NULL == request) {
        return r2_call_refuse(call);
    }
    request->super.super.req_start = r2_request_start;
    *request_p = &request->super.super;
    status = r2_request_sequence(request);
    if (R2_OK != status) {
        (void) r2_request_free(request_p);
        return mca_coll_r2_call_error(call, status);
    }
    return OMPI_SUCCESS;
}
