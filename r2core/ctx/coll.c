/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Collectives of the public API: from arguments to a run, and back to the caller.
 */
#include "r2_config.h"

#include "ctx/comm.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "plan/kinds.h"
#include "plan/plan.h"

/* Maps are merged by an algorithm that does not depend on them. */
#define R2_MERGE_ALGORITHM "recursive-doubling"

/* Looks up what was worked out for such a call on this map, and tells it when it is new. */
static r2_status_t r2_coll_know(const r2_comm_t *comm, const r2_basis_t *basis,
                                r2_plan_input_t *input)
{
    r2_comms_t *comms = comm->comms;
    char choice[128], times[256];
    bool fresh;
    r2_status_t status = r2_plan_know(&comms->plans, comm->key, basis->map_digest, input,
                                      &input->known, &fresh);

    if (R2_OK == status && fresh && R2_OK == r2_plan_describe(input, choice, sizeof(choice))) {
        r2_plan_known_text(input->known, times, sizeof(times));
        r2_debug(&comms->core->log, "communicator %016llx: allreduce of %llu bytes: %s; predicted %s",
                 (unsigned long long) comm->key,
                 (unsigned long long) (input->count * input->element_bytes), choice, times);
    }
    return status;
}

static r2_status_t r2_coll_plan(const struct r2_coll *coll, const r2_coll_args_t *args,
                                r2_schedule_t *schedule)
{
    const r2_comm_t *comm = coll->comm;
    const r2_basis_t *basis = NULL != coll->basis ? coll->basis : r2_agree_basis(comm);
    const r2_params_t *params = &comm->comms->core->params;
    r2_plan_input_t input = {
        .kind = args->kind,
        .rank = comm->rank,
        .size = comm->size,
        .root = args->root,
        .element_bytes = r2_max(args->element_bytes, (uint64_t) 1),
        .count = args->count,
        .counts = args->counts,
        .displs = args->displs,
        .sends = args->sends,
        .send_count = args->send_count,
        .recvs = args->recvs,
        .recv_count = args->recv_count,
        .in_place = args->in_place,
        .meaning = args->meaning,
        .blocking = args->blocking,
        .commutative = args->commutative,
        .exact = args->exact,
        .reproducible = params->reproducible,
        .algorithm = 0 != (comm->sequence & 1u) ? R2_MERGE_ALGORITHM : r2_coll_forced(params, args->kind),
        .scratch_bytes = params->scratch_bytes,
        .chunk_min_bytes = params->chunk_min_bytes,
        .chunk_max_bytes = params->chunk_max_bytes,
        .message_max_bytes = params->pack_bytes / 2,
        .copy_max_bytes = params->copy_max_bytes,
    };
    r2_status_t status = R2_OK;

    r2_schedule_init(schedule);
    if (NULL != basis) {
        input.topology = &basis->topology;
        input.cost = basis->cost;
    }
    if (NULL != basis && !basis->even) {
        status = r2_coll_know(comm, basis, &input);
    }
    return R2_OK == status ? r2_plan_build(&input, schedule) : status;
}

static r2_tag_t r2_coll_tag(const struct r2_coll *coll)
{
    return (r2_tag_t){.comm_key = coll->comm->key,
                      .sequence = coll->comm->sequence,
                      .coll_seq = coll->seq};
}

/* Engine lock. Prepares the run of the part `coll->seq`. */
static r2_status_t r2_coll_prepare(struct r2_coll *coll, const r2_coll_args_t *args,
                                   r2_schedule_t *schedule)
{
    r2_comm_t *comm = coll->comm;
    r2_comms_t *comms = comm->comms;
    r2_exec_args_t exec_args = {
        .in = args->in,
        .out = args->out,
        .reduce = args->reduce,
        .reduce_arg = args->reduce_arg,
        .any_thread = args->any_thread,
        .element_bytes = r2_max(args->element_bytes, (uint64_t) 1),
        .ranks = comm->ranks,
        .tag = r2_coll_tag(coll),
        .movers = {args->in_mover, args->out_mover},
        .pack_bytes = comms->core->params.pack_bytes,
    };

    return r2_exec_init(&coll->exec, &comms->core->engine, &exec_args, schedule);
}

/* Engine lock. @param timed how long it takes says how long its steps take: its caller waits. */
static void r2_coll_begin(struct r2_coll *coll, bool timed)
{
    r2_comms_t *comms = coll->comm->comms;

    atomic_store(&coll->status, R2_IN_PROGRESS);
    ++comms->core->counters.collectives;
    comms->core->net.now_ns = r2_now_ns(comms->core->clock);
    coll->begun_ns = timed ? comms->core->net.now_ns : 0;
    r2_exec_start(&coll->exec);
    r2_engine_run(&comms->core->engine, true);
    r2_coll_collect(comms);
}

/*
 * What a series settles with its first part. One look at our map: later parts may give bytes to few ranks,
 * so what is found out between them would not reach all. And the map that all its plans are made from.
 */
static void r2_coll_settle(struct r2_coll *coll)
{
    if (coll->settled) {
        return;
    }
    coll->settled = true;
    coll->exec.dirty = r2_agree_dirty(coll);
    if (0 != coll->parts_left && NULL != coll->comm->agree) {
        coll->basis = r2_basis_get(coll->comm->agree->basis);
    }
}

/* Engine lock. */
static r2_status_t r2_coll_launch(struct r2_coll *coll, const r2_coll_args_t *args,
                                  r2_schedule_t *schedule)
{
    r2_status_t status;
    bool dirty;

    r2_coll_settle(coll);
    dirty = coll->exec.dirty;
    status = r2_coll_prepare(coll, args, schedule);
    if (R2_OK == status) {
        coll->exec.carrying = coll->carrying;
        coll->exec.dirty = dirty;
        r2_coll_begin(coll, args->blocking && args->parts <= 1);
    } else {
        memset(&coll->exec, 0, sizeof(coll->exec));
    }
    return status;
}

/* Engine lock. */
static void r2_coll_retire(struct r2_coll *coll)
{
    if (coll->in_active) {
        coll->in_active = false;
        coll->parts_left = 0;
        DL_DELETE(coll->comm->active, coll);
        r2_basis_put(coll->basis);
        coll->basis = NULL;
    }
}

/* Engine lock. Takes the places of all parts, since others may be posted between them. */
static r2_status_t r2_coll_start(r2_comm_t *comm, const r2_coll_args_t *args, struct r2_coll *coll)
{
    r2_schedule_t schedule;
    r2_status_t status = r2_coll_plan(coll, args, &schedule);

    if (R2_OK != status) {
        r2_schedule_fini(&schedule);
        if (R2_ERR_NO_MEMORY == status) {
            r2_comm_poison(comm, status); /* as r2_coll_refuse() */
        }
        return status;
    }
    coll->seq = comm->next_seq;
    coll->parts_left = args->parts > 1 ? args->parts - 1 : 0;
    comm->next_seq += 1 + coll->parts_left;
    coll->in_active = true;
    DL_APPEND(comm->active, coll);
    if (r2_agree_enter(coll, args, &status)) {
        status = r2_coll_launch(coll, args, &schedule);
    } else {
        r2_schedule_fini(&schedule); /* another map may be agreed when it begins */
    }
    if (R2_OK != status) {
        r2_coll_retire(coll);
        r2_comm_poison(comm, status); /* its place is taken: others would wait for this rank */
    }
    return status;
}

r2_status_t r2_coll_begin_waiting(struct r2_coll *coll)
{
    r2_coll_args_t args = coll->wanted;
    uint64_t *lists = coll->lists;
    r2_schedule_t schedule;
    r2_status_t status = r2_coll_plan(coll, &args, &schedule);

    coll->lists = NULL;
    if (R2_OK == status) {
        status = r2_coll_launch(coll, &args, &schedule); /* may finish it, and its caller free it */
    } else {
        r2_schedule_fini(&schedule);
    }
    free(lists);
    if (R2_OK != status) {
        r2_coll_fail(coll, status);
    }
    return status;
}

r2_status_t r2_coll_start_merge(r2_comm_t *merges, const r2_coll_args_t *args, r2_comm_t *comm,
                                struct r2_coll **merge_p)
{
    struct r2_coll *coll = calloc(1, sizeof(*coll));

    if (NULL == coll) {
        return R2_ERR_NO_MEMORY;
    }
    coll->comm = merges;
    coll->merge_for = comm;
    atomic_store(&coll->status, R2_IN_PROGRESS);
    *merge_p = coll;
    return r2_coll_start(merges, args, coll);
}

static void r2_coll_free(struct r2_coll *coll)
{
    free(coll->lists);
    free(coll);
}

/* Engine lock. Why a communicator takes no more calls. A mismatch may be noticed after the call that it is about. */
static r2_status_t r2_coll_refusal(const r2_comm_t *comm)
{
    const r2_status_t poisoned = comm->root->poisoned;

    return R2_OK == poisoned || R2_ERR_PLAN_MISMATCH == poisoned ? poisoned : R2_ERR_POISONED;
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
    comm->next_seq += R2_OK == status && r2_coll_skip_counts(kind) ? 1 : 0;
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
    r2_comm_poison(comm, status);
    r2_core_leave_started(comms->core);
}

r2_status_t r2_coll_post(r2_comm_t *comm, const r2_coll_args_t *args, r2_coll_done_fn_t done,
                         void *done_arg, r2_coll_t **coll_p)
{
    r2_comms_t *comms = comm->comms;
    struct r2_coll *coll = calloc(1, sizeof(*coll));
    r2_status_t status;

    if (r2_is_forked()) {
        free(coll);
        return R2_ERR_FORKED;
    }
    if (NULL == coll) {
        r2_coll_refuse(comm, R2_ERR_NO_MEMORY);
        return R2_ERR_NO_MEMORY;
    }
    coll->comm = comm;
    coll->done = done;
    coll->done_arg = done_arg;
    atomic_store(&coll->status, R2_IN_PROGRESS);
    r2_core_enter(comms->core);
    comms->core->net.now_ns = r2_now_ns(comms->core->clock);
    status = r2_coll_refusal(comm);
    if (R2_OK == status) {
        *coll_p = coll;
        status = r2_coll_start(comm, args, coll);
        r2_agree_run(&comms->agree);
    }
    r2_core_leave_started(comms->core);
    if (R2_OK != status) {
        r2_coll_free(coll);
        return status;
    }
    r2_coll_deliver(comms);
    return R2_OK;
}

/* Engine lock. */
static r2_status_t r2_coll_follow(struct r2_coll *coll, const r2_coll_args_t *args,
                                  r2_schedule_t *schedule)
{
    if (R2_OK != coll->comm->root->poisoned || 0 == coll->parts_left) {
        r2_schedule_fini(schedule);
        return 0 == coll->parts_left ? R2_ERR_PARAM : R2_ERR_POISONED;
    }
    r2_exec_fini(&coll->exec);
    ++coll->seq;
    --coll->parts_left;
    return r2_coll_launch(coll, args, schedule);
}

r2_status_t r2_coll_next(r2_coll_t *coll, const r2_coll_args_t *args)
{
    r2_comms_t *comms = coll->comm->comms;
    r2_schedule_t schedule;
    r2_status_t status;
    bool expected;

    if (r2_is_forked()) {
        return R2_ERR_FORKED;
    }
    r2_core_enter(comms->core);
    expected = coll->parts_left > 0;
    status = r2_coll_plan(coll, args, &schedule);
    if (R2_OK == status) {
        status = r2_coll_follow(coll, args, &schedule);
    } else {
        r2_schedule_fini(&schedule);
    }
    if (R2_OK != status) {
        r2_coll_retire(coll);
        if (expected) {
            r2_comm_poison(coll->comm, status); /* others wait for this part */
        }
    }
    r2_core_leave(comms->core);
    if (R2_OK == status) {
        r2_coll_deliver(comms);
    }
    return status;
}

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

void r2_coll_fail(struct r2_coll *coll, r2_status_t status)
{
    r2_coll_retire(coll);
    if (NULL != coll->done) {
        r2_coll_completed(coll->comm->comms, coll);
    }
    atomic_store(&coll->status, status);
}

/* Engine lock. */
void r2_coll_discard(struct r2_coll *coll)
{
    r2_coll_retire(coll);
    r2_exec_leave(&coll->exec);
    r2_exec_fini(&coll->exec);
    r2_coll_free(coll);
}

/* Engine lock. Moves finished runs to where their callers find them. */
void r2_coll_collect(r2_comms_t *comms)
{
    r2_exec_t *exec;

    if (comms->fresh_news) {
        r2_comm_apply_news(comms);
    }
    while (NULL != (exec = r2_engine_collect(&comms->core->engine))) {
        struct r2_coll *coll = (struct r2_coll *) (void *) exec;

        if (exec->status < 0) {
            r2_comm_poison(coll->comm, exec->status);
        }
        if (R2_OK == exec->status) {
            r2_observe_called(comms->core->observers, &exec->schedule, coll->comm->size, coll->begun_ns);
        }
        if (exec->status < 0 || 0 == coll->parts_left) {
            r2_coll_retire(coll);
            r2_agree_left(coll);
        }
        r2_coll_forget_credits(coll);
        if (NULL != coll->done) {
            r2_coll_completed(comms, coll);
        }
        atomic_store(&coll->status, exec->status);
    }
}

/* No lock. Calls the done functions of finished collectives. */
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
    r2_exec_fini(&coll->exec);
    r2_coll_free(coll);
}
