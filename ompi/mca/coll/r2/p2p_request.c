/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Requests of point-to-point with memory of GPUs: around the PML's own request for the copy. It is
 * looked after whenever MPI progresses, since it can complete before anybody could ask it to tell.
 */
#include "p2p.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "opal/class/opal_list.h"
#include "opal/runtime/opal_progress.h"

#define R2_P2P_REQUESTS_AT_A_TIME 8

/** Open MPI looks into requests of this kind for the peer and the tag (ULFM). */
typedef struct r2_pml_request {
    mca_pml_base_request_t super;
    const mca_pml_base_module_t *pml; /* borrowed: static */
    mca_coll_r2_staged_t staged;      /* owned; its datatype is refcounted */
    mca_coll_r2_p2p_to_t to;          /* comm: refcounted */
    ompi_request_t *inner;            /* owned: of the copy, while it is under way */
    bool listed;                      /* among those under way; under the lock, as the next */
    bool settled;                     /* not under way, or about to complete */
    bool freed;                       /* by the user, while it was under way */
} r2_pml_request_t;

OBJ_CLASS_DECLARATION(r2_pml_request_t);
OBJ_CLASS_INSTANCE(r2_pml_request_t, mca_pml_base_request_t, NULL, NULL);

static pthread_mutex_t r2_pml_lock = PTHREAD_MUTEX_INITIALIZER;
static opal_list_t r2_pml_under_way;  /* of requests; under the lock */
static _Atomic uint32_t r2_pml_count; /* of them */
static opal_free_list_t r2_pml_requests;

static ompi_request_t *r2_pml_base(r2_pml_request_t *request)
{
    return &request->super.req_ompi;
}

/* An error for a status, of one that may be internal to Open MPI. */
static int r2_pml_code(int rc)
{
    return OMPI_ERR_OUT_OF_RESOURCE == rc ? MPI_ERR_NO_MEM : rc < 0 ? MPI_ERR_OTHER : rc;
}

static void r2_pml_request_destroy(r2_pml_request_t *request)
{
    ompi_request_t *base = r2_pml_base(request);

    OBJ_RELEASE(request->staged.buffer.dtype);
    mca_coll_r2_staged_close(&request->staged);
    OBJ_RELEASE(request->to.comm);
    OMPI_REQUEST_FINI(base);
    opal_free_list_return(&r2_pml_requests, &base->super);
}

/* What this thread tells of right now: a callback may free it. */
static _Thread_local const r2_pml_request_t *r2_pml_telling;

/* Somebody else may be completing it in this moment. Who is told of it by a callback frees it at
 * once: Open MPI does not touch it any more. */
static int r2_pml_request_free(ompi_request_t **request_p)
{
    r2_pml_request_t *request = (r2_pml_request_t *) *request_p;
    bool settled;

    *request_p = MPI_REQUEST_NULL;
    pthread_mutex_lock(&r2_pml_lock);
    settled = request->settled;
    request->freed = !settled;
    pthread_mutex_unlock(&r2_pml_lock);
    if (settled) {
        while (request != r2_pml_telling && !REQUEST_COMPLETE(r2_pml_base(request))) {
            sched_yield();
        }
        r2_pml_request_destroy(request);
    }
    return OMPI_SUCCESS;
}

/* True if the peer of the copy's request is dead, or the communicator revoked: then that request
 * has the error and is complete. Where Open MPI finds it of the program's request first, it cancels
 * that one. A receive from any source goes on: it has an error (pending) that is taken back. */
static bool r2_pml_inner_has_failed(const r2_pml_request_t *request)
{
    return mca_coll_r2_request_has_failed(request->inner) && REQUEST_COMPLETE(request->inner);
}

/* Under the lock. */
static void r2_pml_request_unlist(r2_pml_request_t *request)
{
    opal_list_remove_item(&r2_pml_under_way, (opal_list_item_t *) request);
    request->listed = false;
    atomic_fetch_sub_explicit(&r2_pml_count, 1, memory_order_relaxed);
}

/* It belongs to its waiter as soon as it is complete. */
static void r2_pml_request_settle(r2_pml_request_t *request, const ompi_status_public_t *status)
{
    bool freed;

    r2_pml_base(request)->req_status = *status;
    request->super.req_pml_complete = true;
    pthread_mutex_lock(&r2_pml_lock);
    request->settled = true;
    freed = request->freed;
    pthread_mutex_unlock(&r2_pml_lock);
    if (freed) {
        r2_pml_request_destroy(request);
    } else {
        const r2_pml_request_t *outer = r2_pml_telling;

        r2_pml_telling = request;
        ompi_request_complete(r2_pml_base(request), true);
        r2_pml_telling = outer;
    }
}

/* The copy was sent or has come. */
static void r2_pml_request_finish(r2_pml_request_t *request)
{
    ompi_status_public_t status;

    (void) r2_pml_inner_has_failed(request); /* takes an error back that was pending */
    status = request->inner->req_status;
    (void) ompi_request_free(&request->inner);
    request->inner = NULL;
    if (!request->to.sends && MPI_SUCCESS == status.MPI_ERROR && !status._cancelled) {
        status.MPI_ERROR = r2_pml_code(mca_coll_r2_staged_store(&request->staged, status._ucount));
    }
    r2_pml_request_settle(request, &status);
}

/* The copy's request is asked. If it is over then, so is this one, at once, as with PMLs: under
 * ULFM a wait for any source would end with its error before MPI progresses. */
static int r2_pml_request_cancel(ompi_request_t *base, int flag)
{
    r2_pml_request_t *request = (r2_pml_request_t *) base;
    int rc = OMPI_SUCCESS;
    bool over = false;

    (void) flag;
    pthread_mutex_lock(&r2_pml_lock);
    if (request->listed) {
        if (!r2_pml_inner_has_failed(request)) {
            rc = ompi_request_cancel(request->inner);
        }
        over = REQUEST_COMPLETE(request->inner);
    }
    if (over) {
        r2_pml_request_unlist(request);
    }
    pthread_mutex_unlock(&r2_pml_lock);
    if (over) {
        opal_atomic_rmb();
        r2_pml_request_finish(request);
    }
    return rc;
}

static bool r2_pml_request_is_over(r2_pml_request_t *request)
{
    /* Nobody waits for it, so nobody else asks whether its peer has failed. */
    (void) r2_pml_inner_has_failed(request);
    return REQUEST_COMPLETE(request->inner);
}

static int r2_pml_progress(void)
{
    r2_pml_request_t *request, *next;
    opal_list_t over;
    int count = 0;

    if (0 == atomic_load_explicit(&r2_pml_count, memory_order_relaxed) ||
        0 != pthread_mutex_trylock(&r2_pml_lock)) {
        return 0;
    }
    OBJ_CONSTRUCT(&over, opal_list_t);
    OPAL_LIST_FOREACH_SAFE(request, next, &r2_pml_under_way, r2_pml_request_t) {
        if (r2_pml_request_is_over(request)) {
            r2_pml_request_unlist(request);
            opal_list_append(&over, (opal_list_item_t *) request);
        }
    }
    pthread_mutex_unlock(&r2_pml_lock);
    opal_atomic_rmb();
    while (NULL != (request = (r2_pml_request_t *) opal_list_remove_first(&over))) {
        r2_pml_request_finish(request);
        ++count;
    }
    OBJ_DESTRUCT(&over);
    return count;
}

static int r2_pml_request_inner(r2_pml_request_t *request)
{
    const mca_coll_r2_p2p_to_t *to = &request->to;
    const size_t bytes = mca_coll_r2_staged_bytes(&request->staged);
    void *copy = request->staged.copy;
    int rc;

    if (NULL != to->message) {
        return request->pml->pml_imrecv(copy, bytes, MPI_BYTE, to->message, &request->inner);
    }
    if (!to->sends) {
        return request->pml->pml_irecv(copy, bytes, MPI_BYTE, to->peer, to->tag, to->comm,
                                       &request->inner);
    }
    rc = mca_coll_r2_staged_load(&request->staged);
    return OMPI_SUCCESS != rc ? rc
                              : request->pml->pml_isend(copy, bytes, MPI_BYTE, to->peer, to->tag,
                                                        to->mode, to->comm, &request->inner);
}

static int r2_pml_request_post(r2_pml_request_t *request)
{
    int rc;

    r2_pml_base(request)->req_state = OMPI_REQUEST_ACTIVE;
    request->super.req_pml_complete = false;
    request->settled = false;
    rc = r2_pml_request_inner(request);
    if (OMPI_SUCCESS != rc) {
        request->settled = true;
        return rc;
    }
    pthread_mutex_lock(&r2_pml_lock);
    opal_list_append(&r2_pml_under_way, (opal_list_item_t *) request);
    request->listed = true;
    atomic_fetch_add_explicit(&r2_pml_count, 1, memory_order_relaxed);
    pthread_mutex_unlock(&r2_pml_lock);
    return OMPI_SUCCESS;
}

/* MPI_Start and MPI_Startall of persistent ones. */
static int r2_pml_request_start(size_t count, ompi_request_t **requests)
{
    for (size_t i = 0; i < count; ++i) {
        r2_pml_request_t *request = (r2_pml_request_t *) requests[i];
        ompi_status_public_t status = ompi_status_empty;

        if (OMPI_REQUEST_INACTIVE != requests[i]->req_state) {
            return MPI_ERR_REQUEST; /* MPI_Start of Open MPI 4.1 does not ask */
        }
        requests[i]->req_complete = REQUEST_PENDING;
        status.MPI_ERROR = r2_pml_code(r2_pml_request_post(request));
        if (MPI_SUCCESS != status.MPI_ERROR) {
            r2_pml_request_settle(request, &status);
        }
    }
    return OMPI_SUCCESS;
}

bool mca_coll_r2_p2p_is_ours(const ompi_request_t *request)
{
    return r2_pml_request_start == request->req_start;
}

static void r2_pml_request_set(r2_pml_request_t *request, const mca_coll_r2_p2p_to_t *to,
                               bool persistent)
{
    ompi_request_t *base = r2_pml_base(request);

    OMPI_REQUEST_INIT(base, persistent);
    base->req_type = OMPI_REQUEST_PML;
    base->req_start = r2_pml_request_start;
    base->req_free = r2_pml_request_free;
    base->req_cancel = r2_pml_request_cancel;
    base->req_mpi_object.comm = to->comm;
    base->req_status = ompi_status_empty;
    request->super.req_type = to->sends ? MCA_PML_REQUEST_SEND : MCA_PML_REQUEST_RECV;
    request->super.req_pml_complete = true;
    request->super.req_free_called = false;
    request->super.req_comm = to->comm;
    request->super.req_datatype = request->staged.buffer.dtype;
    request->super.req_addr = request->staged.buffer.base;
    request->super.req_count = mca_coll_r2_staged_bytes(&request->staged);
    request->super.req_peer = to->peer;
    request->super.req_tag = to->tag;
    request->super.req_proc = NULL;
}

int mca_coll_r2_p2p_request(const mca_pml_base_module_t *pml, mca_coll_r2_staged_t *staged,
                            const mca_coll_r2_p2p_to_t *to, bool persistent,
                            ompi_request_t **request_p)
{
    r2_pml_request_t *request = (r2_pml_request_t *) opal_free_list_get(&r2_pml_requests);
    int rc = OMPI_SUCCESS;

    if (NULL == request) {
        mca_coll_r2_staged_close(staged);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    request->pml = pml;
    request->to = *to;
    request->inner = NULL;
    request->settled = true;
    request->listed = request->freed = false;
    mca_coll_r2_staged_move(&request->staged, staged);
    OBJ_RETAIN(request->staged.buffer.dtype);
    OBJ_RETAIN(request->to.comm);
    r2_pml_request_set(request, to, persistent);
    if (!persistent) {
        rc = r2_pml_request_post(request);
    }
    if (OMPI_SUCCESS != rc) {
        r2_pml_request_destroy(request);
        return rc;
    }
    *request_p = r2_pml_base(request);
    return OMPI_SUCCESS;
}

int mca_coll_r2_p2p_requests_init(void)
{
    int rc;

    OBJ_CONSTRUCT(&r2_pml_requests, opal_free_list_t);
    rc = opal_free_list_init(&r2_pml_requests, sizeof(r2_pml_request_t), opal_cache_line_size,
                             OBJ_CLASS(r2_pml_request_t), 0, opal_cache_line_size, 0, -1,
                             R2_P2P_REQUESTS_AT_A_TIME, NULL, 0, NULL, NULL, NULL);
    if (OMPI_SUCCESS != rc) {
        OBJ_DESTRUCT(&r2_pml_requests);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    OBJ_CONSTRUCT(&r2_pml_under_way, opal_list_t);
    opal_progress_register(r2_pml_progress);
    return OMPI_SUCCESS;
}

void mca_coll_r2_p2p_requests_fini(void)
{
    opal_progress_unregister(r2_pml_progress);
    OBJ_DESTRUCT(&r2_pml_under_way);
    OBJ_DESTRUCT(&r2_pml_requests);
}
