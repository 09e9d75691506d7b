/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Collectives: begun, or waiting for what is agreed; run; complete.
 */
#include "r2_config.h"

#include "ctx/coll_local.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/*
 * A call that sends no more than so many copy_max_bytes in all ends before its acknowledgements
 * come, by a copy. One that is made at once spares the acknowledgements.
 */
#define R2_COLL_COPY_TIMES 8u

/* A call that is over at once need not drive, unless acknowledgements are to come, but so many of
 * them in turn must not keep the rails waiting. */
#define R2_COLL_DRIVE_NS (50 * R2_NS_PER_US)

static r2_tag_t r2_coll_tag(const struct r2_coll *coll)
{
    return (r2_tag_t){
        .comm_key = coll->comm->key, .sequence = coll->comm->sequence, .coll_seq = coll->seq};
}

r2_exec_args_t r2_coll_exec_args(const struct r2_coll *coll, const r2_coll_args_t *args)
{
    const r2_comm_t *comm = coll->comm;
    const r2_comms_t *comms = comm->comms;

    return (r2_exec_args_t){
        .in = args->in,
        .out = args->out,
        .reduce = args->reduce,
        .reduce_arg = args->reduce_arg,
        .kernel = args->kernel,
        .any_thread = args->any_thread,
        .element_bytes = r2_max(args->element_bytes, (uint64_t) 1),
        .ranks = comm->ranks,
        .tag = r2_coll_tag(coll),
        .convertors = {args->in_convertor, args->out_convertor},
        .at = {args->in_at, args->out_at},
        .pack_bytes = comms->core->params.pack_bytes,
        .copy_bytes = R2_COLL_COPY_TIMES * comms->core->params.copy_max_bytes,
        .keep_bytes = comms->core->params.retransmit_bytes,
    };
}

/* Engine lock. Prepares the run of the part `coll->seq`. */
static r2_status_t r2_coll_prepare(struct r2_coll *coll, const r2_coll_args_t *args,
                                   r2_program_t *program)
{
    const r2_exec_args_t exec_args = r2_coll_exec_args(coll, args);

    return r2_exec_init(&coll->exec, &coll->comm->comms->core->engine, &exec_args, program);
}

/* Engine lock. @param timed how long it takes says how long its steps take: its caller waits. */
static void r2_coll_begin(struct r2_coll *coll, bool timed)
{
    r2_comms_t *comms = coll->comm->comms;
    const r2_net_t *net = &comms->core->net;

    atomic_store(&coll->status, R2_IN_PROGRESS);
    r2_coll_count(&comms->core->counters.collectives);
    coll->begun_ns = timed ? net->now_ns : 0;
    r2_exec_start(&coll->exec);
    r2_engine_run(&comms->core->engine, true);
    coll->drive_due = net->now_ns - net->last_progress_ns >= R2_COLL_DRIVE_NS || r2_net_owes(net);
    r2_coll_collect(comms);
}

/*
 * What a series settles with its first part. One look at our map: later parts may give bytes to few
 * ranks, so what is found out between them would not reach all. And the map that all its plans are
 * made from.
 */
static void r2_coll_settle(struct r2_coll *coll)
{
    if (coll->settled) {
        return;
    }
    coll->settled = true;
    coll->exec.map_pending = NULL != coll->comm->agree && coll->place.carrying &&
                             r2_agree_map_pending(coll->comm->agree);
    if (0 != coll->parts_left && NULL != coll->comm->agree) {
        coll->env = r2_plan_env_get(coll->comm->agree->env);
    }
}

/* Engine lock. */
static r2_status_t r2_coll_launch(struct r2_coll *coll, const r2_coll_args_t *args,
                                  r2_program_t *program)
{
    r2_status_t status;
    bool map_pending;

    r2_coll_settle(coll);
    map_pending = coll->exec.map_pending;
    status = r2_coll_prepare(coll, args, program);
    if (R2_OK == status) {
        coll->exec.carrying = coll->place.carrying;
        coll->exec.map_pending = map_pending;
        r2_coll_begin(coll, args->blocking && args->parts <= 1);
    }
    return status;
}

void r2_coll_retire(struct r2_coll *coll)
{
    if (coll->in_active) {
        coll->in_active = false;
        coll->parts_left = 0;
        DL_DELETE(coll->comm->active, coll);
        r2_plan_env_put(coll->env);
        coll->env = NULL;
    }
}

/* ---- agreement ---- */

/* Arguments live until the call begins. */
static r2_status_t r2_coll_keep(struct r2_coll *coll)
{
    r2_coll_args_t *args = &coll->wanted;
    size_t bytes = (size_t) coll->comm->size * sizeof(*args->counts);
    bool counts = NULL != args->counts, displs = NULL != args->displs;
    uint64_t *lists;

    if (!counts && !displs) {
        return R2_OK;
    }
    lists = malloc(2 * bytes);
    if (NULL == lists) {
        return R2_ERR_NO_MEMORY;
    }
    if (counts) {
        memcpy(lists, args->counts, bytes);
        args->counts = lists;
    }
    if (displs) {
        memcpy(lists + coll->comm->size, args->displs, bytes);
        args->displs = lists + coll->comm->size;
    }
    coll->lists = lists;
    return R2_OK;
}

/* @return R2_OK: it begins now; R2_IN_PROGRESS: it waits; or an error. */
static r2_status_t r2_coll_enter(struct r2_coll *coll, const r2_coll_args_t *args)
{
    r2_agree_t *agree = coll->comm->agree;
    r2_status_t status;

    if (NULL == agree) {
        return R2_OK;
    }
    coll->wanted = *args;
    coll->place.blocking = args->blocking;
    coll->place.carrying = r2_coll_carries(coll->comm, args);
    coll->place.is_long = coll->place.carrying && r2_coll_is_long(args);
    status = r2_agree_enter(agree, &coll->place);
    if (R2_IN_PROGRESS != status) {
        return status;
    }
    status = r2_coll_keep(coll);
    if (R2_OK != status) {
        return status;
    }
    r2_agree_wait(agree, &coll->place);
    return R2_IN_PROGRESS;
}

/* Takes the places of all parts, since others may be posted between them. */
r2_status_t r2_coll_start(r2_comm_t *comm, const r2_coll_args_t *args, struct r2_coll *coll)
{
    r2_program_t *program;
    r2_status_t status = r2_coll_program(coll, args, &program);

    if (R2_OK != status) {
        if (R2_ERR_NO_MEMORY == status) {
            r2_comm_fail(comm, status); /* as r2_coll_refuse() */
        }
        return status;
    }
    coll->seq = comm->next_seq;
    coll->parts_left = args->parts > 1 ? args->parts - 1 : 0;
    __atomic_store_n(&comm->next_seq, comm->next_seq + 1 + coll->parts_left, __ATOMIC_RELAXED);
    r2_coll_local_elsewhere(comm);
    coll->in_active = true;
    DL_APPEND(comm->active, coll);
    status = r2_coll_enter(coll, args);
    if (R2_OK == status) {
        status = r2_coll_launch(coll, args, program);
    } else {
        r2_program_put(program); /* another map may be agreed when it begins */
    }
    if (status < 0) {
        r2_coll_retire(coll);
        r2_comm_fail(comm, status); /* its place is taken: others would wait for this rank */
    }
    return status < 0 ? status : R2_OK;
}

r2_status_t r2_coll_follow(struct r2_coll *coll, const r2_coll_args_t *args)
{
    r2_program_t *program;
    r2_status_t status;

    if (0 == coll->parts_left) {
        return R2_ERR_PARAM;
    }
    if (R2_OK != coll->comm->root->failed) {
        return coll->comm->root->failed;
    }
    status = r2_coll_program(coll, args, &program);
    if (R2_OK != status) {
        return status;
    }
    ++coll->seq;
    --coll->parts_left;
    return r2_coll_launch(coll, args, program);
}

/* Engine lock. The head of the list is also looked at without it. */
static void r2_coll_completed(r2_comms_t *comms, struct r2_coll *coll)
{
    struct r2_coll *last = comms->completed;

    coll->next_done = NULL;
    if (NULL == last) {
        __atomic_store_n(&comms->completed, coll, __ATOMIC_RELAXED);
        return;
    }
    while (NULL != last->next_done) {
        last = last->next_done;
    }
    last->next_done = coll;
}

static void r2_coll_fail(r2_agree_call_t *call, r2_status_t status)
{
    struct r2_coll *coll = r2_container_of(call, struct r2_coll, place);

    r2_coll_retire(coll);
    if (NULL != coll->done) {
        r2_coll_completed(coll->comm->comms, coll);
    }
    atomic_store(&coll->status, status);
}

static r2_status_t r2_coll_begin_waiting(r2_agree_call_t *call)
{
    struct r2_coll *coll = r2_container_of(call, struct r2_coll, place);
    r2_coll_args_t args = coll->wanted;
    uint64_t *lists = coll->lists;
    r2_program_t *program;
    r2_status_t status = r2_coll_program(coll, &args, &program);

    coll->lists = NULL;
    coll->comm->comms->core->net.now_ns = r2_now_ns(coll->comm->comms->core->clock);
    if (R2_OK == status) {
        status = r2_coll_launch(coll, &args, program); /* may finish it, and its caller free it */
    }
    free(lists);
    if (R2_OK != status) {
        r2_coll_fail(call, status);
    }
    return status;
}

/* Starts the sync of maps before a call. */
static r2_status_t r2_coll_start_sync(void *owner, r2_map_sync_t *sync)
{
    r2_comm_t *comm = owner;
    const r2_coll_args_t args = {
        .kind = R2_COLL_ALLREDUCE,
        .count = 1,
        .in = sync->given,
        .out = sync->taken,
        .element_bytes = sync->bytes,
        .reduce = r2_map_sync_reduce,
        .reduce_arg = sync,
        .any_thread = true,
        .commutative = true,
        .exact = true,
    };
    struct r2_coll *coll;
    r2_status_t status;

    if (NULL == comm->map_syncs) {
        status = r2_sequence_create(comm->root, comm->sequence | 1u, args.kind, &comm->map_syncs);
        if (R2_OK != status) {
            return status;
        }
    }
    coll = r2_coll_new(comm->map_syncs);
    if (NULL == coll) {
        return R2_ERR_NO_MEMORY;
    }
    coll->sync_for = comm;
    comm->sync = coll; /* first: it may be over at once */
    return r2_coll_start(comm->map_syncs, &args, coll);
}

static void r2_coll_end_sync(void *owner)
{
    r2_comm_t *comm = owner;
    struct r2_coll *coll = comm->sync;

    if (NULL != coll) {
        comm->sync = NULL;
        r2_coll_retire(coll);
        r2_exec_leave(&coll->exec);
        r2_coll_free(comm->comms, coll);
    }
}

static void r2_coll_fail_all(void *owner, r2_status_t status)
{
    r2_comm_fail(owner, status);
}

const r2_agree_ops_t r2_coll_agree_ops = {
    .start_sync = r2_coll_start_sync,
    .end_sync = r2_coll_end_sync,
    .begin = r2_coll_begin_waiting,
    .fail = r2_coll_fail,
    .fail_all = r2_coll_fail_all,
};

/* Tells agreement that a call is over. */
static void r2_coll_left(const struct r2_coll *coll)
{
    if (NULL != coll->sync_for) {
        r2_agree_synced(coll->sync_for->agree);
    } else if (NULL != coll->comm->agree) {
        r2_agree_left(coll->comm->agree, &coll->place, coll->exec.map_pending);
    }
}

/* ---- completion ---- */

static void r2_coll_forget_credits(const struct r2_coll *coll)
{
    const r2_comm_t *comm = coll->comm;
    const r2_tag_t tag = r2_coll_tag(coll);
    const r2_net_t *net = &comm->comms->core->net;
    r2_links_t links = r2_core_links_to(comm->comms->core, comm->ranks, comm->size);
    r2_link_t *link;

    while (net->early_credits > 0 && NULL != (link = r2_links_next(&links))) {
        r2_link_forget(link, &tag);
    }
}

void r2_coll_collect(r2_comms_t *comms)
{
    r2_exec_t *exec;

    r2_coll_reap(comms);
    if (comms->fresh_faults) {
        r2_comm_apply_faults(comms);
    }
    while (NULL != (exec = r2_engine_collect(&comms->core->engine))) {
        struct r2_coll *coll = (struct r2_coll *) (void *) exec;

        if (exec->status < 0) {
            r2_comm_fail(coll->comm, exec->status);
        }
        if (R2_OK == exec->status) {
            r2_observe_called(comms->core->observers, exec->schedule, coll->comm->size,
                              coll->begun_ns);
            r2_exec_fini(exec); /* its memory is for others, though nobody may have asked yet */
        }
        if (exec->status < 0 || 0 == coll->parts_left) {
            r2_coll_retire(coll);
            r2_coll_left(coll);
        }
        r2_coll_forget_credits(coll);
        if (NULL != coll->done) {
            r2_coll_completed(comms, coll);
        }
        atomic_store(&coll->status, exec->status);
    }
}
