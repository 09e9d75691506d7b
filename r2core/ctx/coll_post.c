/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Collectives of the public API: posted, tested, released.
 */
#include "r2_config.h"

#include "ctx/coll_local.h"

#include "plan/kinds.h"

/* Why a call on a communicator that failed is over: all calls on it have this status. */
static r2_status_t r2_coll_refusal(const r2_comm_t *comm)
{
    return comm->root->failed;
}

bool r2_coll_skip_counts(r2_coll_kind_t kind)
{
    return r2_kind(kind)->reduces;
}

r2_status_t r2_coll_skip(r2_comm_t *comm, r2_coll_kind_t kind)
{
    r2_status_t status;

    if (r2_is_forked()) {
        return R2_ERR_FORKED;
    }
    r2_core_enter(comm->comms->core);
    status = r2_coll_refusal(comm);
    if (R2_OK == status && r2_coll_skip_counts(kind)) {
        __atomic_store_n(&comm->next_seq, comm->next_seq + 1, __ATOMIC_RELAXED);
        r2_coll_local_elsewhere(comm);
    }
    r2_core_leave(comm->comms->core);
    return status;
}

void r2_coll_refuse(r2_comm_t *comm, r2_status_t status)
{
    r2_comms_t *comms = comm->comms;

    if (r2_is_forked()) {
        return;
    }
    r2_core_enter(comms->core);
    comms->core->net.now_ns = r2_now_ns(comms->core->clock);
    r2_comm_fail(comm, status);
    r2_core_leave_started(comms->core);
}

/* Engine lock. What a call copies comes after what the application has started before it. */
static r2_status_t r2_coll_follow_application(r2_comm_t *comm, const r2_coll_args_t *args)
{
    r2_staging_t *staging = &comm->comms->core->engine.staging;
    r2_status_t status = r2_staging_follow(staging, &args->in_at);

    return R2_OK == status ? r2_staging_follow(staging, &args->out_at) : status;
}

/* Engine lock. @param coll_p is set first: a call may be complete before this returns. */
static r2_status_t r2_coll_post_locked(r2_comm_t *comm, const r2_coll_args_t *args,
                                       r2_coll_done_fn_t done, void *done_arg, r2_coll_t **coll_p)
{
    r2_coll_ahead_t ahead = r2_coll_pin_ahead(comm, NULL, args);
    r2_status_t status = r2_coll_refusal(comm);
    struct r2_coll *coll;

    if (R2_OK != status) {
        r2_coll_ahead_drop(&ahead);
        return status;
    }
    status = r2_coll_follow_application(comm, args);
    coll = R2_OK == status ? r2_coll_new(comm) : NULL;
    if (NULL == coll) {
        status = R2_OK == status ? R2_ERR_NO_MEMORY : status;
        r2_comm_fail(comm, status); /* as r2_coll_refuse() */
        r2_coll_ahead_drop(&ahead);
        return status;
    }
    coll->ahead = ahead;
    coll->done = done;
    coll->done_arg = done_arg;
    *coll_p = coll;
    status = r2_coll_start(comm, args, coll);
    r2_agree_run(&comm->comms->agree);
    if (R2_OK != status) {
        r2_coll_free(comm->comms, coll);
    }
    return status;
}

r2_status_t r2_coll_post(r2_comm_t *comm, const r2_coll_args_t *args, r2_coll_done_fn_t done,
                         void *done_arg, r2_coll_t **coll_p)
{
    r2_comms_t *comms = comm->comms;
    r2_status_t status;

    if (r2_is_forked()) {
        return R2_ERR_FORKED;
    }
    r2_core_enter(comms->core);
    comms->core->net.now_ns = r2_now_ns(comms->core->clock);
    status = r2_coll_post_locked(comm, args, done, done_arg, coll_p);
    r2_core_leave_started(comms->core);
    if (R2_OK == status) {
        r2_coll_deliver(comms);
    }
    return status;
}

r2_status_t r2_coll_next(r2_coll_t *coll, const r2_coll_args_t *args)
{
    r2_comms_t *comms = coll->comm->comms;
    r2_status_t status;
    bool expected;

    if (r2_is_forked()) {
        return R2_ERR_FORKED;
    }
    r2_core_enter(comms->core);
    comms->core->net.now_ns = r2_now_ns(comms->core->clock);
    r2_coll_ahead_drop(&coll->ahead);
    coll->ahead = r2_coll_pin_ahead(coll->comm, coll, args);
    expected = coll->parts_left > 0;
    status = r2_coll_follow(coll, args);
    if (R2_OK != status) {
        r2_coll_retire(coll);
        if (expected) {
            r2_comm_fail(coll->comm, status); /* others wait for this part */
        }
    }
    r2_core_leave(comms->core);
    if (R2_OK == status) {
        r2_coll_deliver(comms);
    }
    return status;
}

void r2_coll_deliver(r2_comms_t *comms)
{
    struct r2_coll *list;

    if (NULL == __atomic_load_n(&comms->completed, __ATOMIC_RELAXED)) {
        return;
    }
    r2_core_enter(comms->core);
    list = comms->completed;
    __atomic_store_n(&comms->completed, NULL, __ATOMIC_RELAXED);
    r2_core_leave(comms->core);
    while (NULL != list) {
        struct r2_coll *coll = list;

        list = coll->next_done;
        coll->done(coll->done_arg, (r2_status_t) atomic_load(&coll->status));
    }
}

r2_status_t r2_coll_test(const r2_coll_t *coll)
{
    return (r2_status_t) atomic_load(&coll->status);
}

void r2_coll_release(r2_coll_t *coll)
{
    r2_comms_t *comms = coll->comm->comms;

    if (r2_is_forked()) {
        return;
    }
    if (coll->in_active) {
        r2_core_enter(comms->core);
        r2_coll_retire(coll);
        r2_core_leave(comms->core);
    }
    coll->next_done = atomic_load_explicit(&comms->released, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&comms->released, &coll->next_done, coll)) {
    }
}
