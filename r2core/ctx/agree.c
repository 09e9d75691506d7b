/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Agreement in a sequence: dirty bits, merges of maps, calls that wait for them.
 */
#include "r2_config.h"

#include "ctx/agree.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "ctx/comm.h"
#include "plan/kinds.h"

const r2_basis_t *r2_agree_basis(const r2_comm_t *comm)
{
    return NULL != comm->agree ? comm->agree->basis : NULL;
}

/* Does our map say more than the agreed one? Looked at again only when one of them has changed. */
bool r2_agree_is_dirty(r2_comm_t *comm)
{
    r2_agree_t *agree = comm->agree;

    if (r2_gauge_wanted(comm->comms->agree.gauge, agree->basis)) {
        return true;
    }
    if (agree->looked != comm->comms->core->counters.map_changes + 1) {
        agree->dirty = r2_merge_matters(&agree->agreed->map, comm->comms->agree.ours);
        agree->looked = comm->comms->core->counters.map_changes + 1;
    }
    return agree->dirty;
}

/* ---- life ---- */

/* All is well to begin with; what this process knows is merged by the first calls. */
static r2_status_t r2_agree_begin_with(const r2_comm_t *comm, r2_agree_t *agree,
                                       const r2_health_map_t *ours)
{
    r2_comms_t *comms = comm->comms;
    r2_shared_map_t *map = r2_shared_map_create(ours->host_count, ours->rail_count);
    r2_basis_t *basis;
    r2_status_t status = NULL == map ? R2_ERR_NO_MEMORY
                                     : r2_basis_create(comms->agree.hosts, comm->ranks, comm->size,
                                                       ours->rail_count, &basis);

    if (R2_OK != status) {
        r2_shared_map_put(map);
        return status;
    }
    agree->agreed = r2_shared_map_share(&comms->agree.maps, map);
    agree->basis = r2_basis_share(&comms->agree.bases, basis);
    return R2_OK;
}

r2_status_t r2_agree_create(r2_comm_t *comm)
{
    const r2_health_map_t *ours = comm->comms->agree.ours;
    r2_agree_t *agree;
    r2_status_t status;

    if (NULL == ours || comm->size < 2) {
        return R2_OK;
    }
    agree = calloc(1, sizeof(*agree));
    if (NULL == agree) {
        return R2_ERR_NO_MEMORY;
    }
    comm->agree = agree;
    status = r2_agree_begin_with(comm, agree, ours);
    if (R2_OK != status) {
        r2_agree_destroy(comm);
    } else if (NULL == comm->comms->agree.job && (uint32_t) comm->size == comm->comms->core->net.size) {
        comm->comms->agree.job = comm;
        r2_observe_plan(comm->comms->core->observers, agree->basis, comm->rank);
    }
    return status;
}

static void r2_agree_unlist(r2_comm_t *comm)
{
    if (comm->agree->listed) {
        comm->agree->listed = false;
        LL_DELETE2(comm->comms->agree.ready, comm, agree->next);
    }
}

static void r2_agree_list(r2_comm_t *comm)
{
    if (!comm->agree->listed) {
        comm->agree->listed = true;
        LL_PREPEND2(comm->comms->agree.ready, comm, agree->next);
    }
}

static void r2_agree_drop_merge(r2_agree_t *agree)
{
    if (NULL != agree->merge) {
        r2_coll_discard(agree->merge);
        agree->merge = NULL;
    }
}

/* Takes the place of a sequence out of the queue of its communicator. */
static void r2_agree_drop_opening(r2_comm_t *sequence)
{
    struct r2_coll *opening = sequence->agree->opening;

    if (NULL != opening) {
        DL_DELETE2(sequence->root->agree->queue, opening, wait_prev, wait_next);
        sequence->agree->opening = NULL;
        free(opening);
    }
}

static void r2_agree_drop_openings(r2_agree_t *agree)
{
    struct r2_coll *coll, *next;

    DL_FOREACH_SAFE2(agree->queue, coll, next, wait_next)
    {
        if (NULL != coll->opens) {
            r2_agree_drop_opening(coll->opens);
        }
    }
}

/* Whatever a rank has completed, all come here with the same calls of the communicator begun. */
static void r2_agree_opened(r2_comm_t *sequence)
{
    sequence->agree->agreed = r2_shared_map_get(sequence->root->agree->agreed);
    sequence->agree->basis = r2_basis_get(sequence->root->agree->basis);
    if (NULL != sequence->agree->queue) {
        r2_agree_list(sequence);
    }
}

r2_status_t r2_agree_open(r2_comm_t *sequence)
{
    r2_agree_t *from = sequence->root->agree, *agree;
    struct r2_coll *opening;

    if (NULL == from) {
        return R2_OK;
    }
    agree = calloc(1, sizeof(*agree));
    if (NULL == agree) {
        return R2_ERR_NO_MEMORY;
    }
    sequence->agree = agree;
    if (NULL == from->queue) {
        r2_agree_opened(sequence);
        return R2_OK;
    }
    opening = calloc(1, sizeof(*opening));
    if (NULL == opening) {
        r2_agree_destroy(sequence);
        return R2_ERR_NO_MEMORY;
    }
    opening->opens = sequence;
    agree->opening = opening;
    DL_APPEND2(from->queue, opening, wait_prev, wait_next);
    return R2_OK;
}

void r2_agree_destroy(r2_comm_t *comm)
{
    r2_agree_t *agree = comm->agree;

    if (NULL == agree) {
        return;
    }
    if (comm == comm->comms->agree.job) {
        comm->comms->agree.job = NULL;
        r2_observe_plan(comm->comms->core->observers, NULL, 0);
    }
    r2_agree_unlist(comm);
    r2_agree_drop_merge(agree);
    r2_agree_drop_openings(agree);
    r2_agree_drop_opening(comm);
    if (NULL != agree->merges) {
        r2_sequence_destroy(agree->merges);
    }
    r2_merge_destroy(agree->merging); /* links do not refer to it any more */
    r2_basis_put(agree->basis);
    r2_shared_map_put(agree->agreed);
    free(agree);
    comm->agree = NULL;
}

/* ---- calls ---- */

static bool r2_agree_all_positive(const uint64_t *counts, int32_t size)
{
    for (int32_t i = 0; i < size; ++i) {
        if (0 == counts[i]) {
            return false;
        }
    }
    return true;
}

/* Every rank's result depends on every rank, if there are any elements. */
static bool r2_agree_reaches_all(r2_coll_kind_t kind)
{
    return R2_COLL_ALLREDUCE == kind || R2_COLL_ALLGATHER == kind
           || R2_COLL_REDUCE_SCATTER_BLOCK == kind || R2_COLL_ALLTOALL == kind;
}

bool r2_agree_carries(const r2_comm_t *comm, const r2_coll_args_t *args)
{
    if (R2_COLL_BARRIER == args->kind) {
        return true;
    }
    if (R2_SPAN_COUNTS == r2_kind(args->kind)->span) {
        return args->element_bytes > 0 && NULL != args->counts
               && r2_agree_all_positive(args->counts, comm->size);
    }
    return r2_agree_reaches_all(args->kind) && args->count * args->element_bytes > 0;
}

/* Starts the merge before a call. @return R2_OK: under way. */
static r2_status_t r2_agree_merge(r2_comm_t *comm)
{
    r2_agree_t *agree = comm->agree;
    r2_comms_t *comms = comm->comms;
    r2_coll_args_t args = {
        .kind = R2_COLL_ALLREDUCE,
        .count = 1,
        .reduce = r2_merge_reduce,
        .any_thread = true,
        .commutative = true,
        .exact = true,
    };
    r2_status_t status;

    r2_gauge_look(comms->agree.gauge);
    if (NULL == agree->merges) {
        status = r2_sequence_create(comm->root, comm->sequence | 1u, args.kind, &agree->merges);
        if (R2_OK != status) {
            return status;
        }
    }
    status = r2_merge_create(agree->agreed, agree->basis, comms->agree.ours, comms->agree.gauge->version,
                             &comms->agree.gauge->cost, &agree->merging);
    if (R2_OK != status) {
        return status;
    }
    args.in = agree->merging->given;
    args.out = agree->merging->taken;
    args.element_bytes = agree->merging->bytes;
    args.reduce_arg = agree->merging;
    agree->merged = false;
    ++comms->core->counters.merges;
    return r2_coll_start_merge(agree->merges, &args, comm, &agree->merge);
}

/* Numbers a call and begins its merge if it has one. @return true: the call itself may begin. */
static bool r2_agree_begin(struct r2_coll *coll, r2_status_t *status_p)
{
    r2_agree_t *agree = coll->comm->agree;
    const bool alone = 0 != coll->comm->sequence; /* the call before it is over when it is posted */
    bool merge;

    coll->call = r2_agreement_start(&agree->calls, coll->carrying, coll->wanted.blocking || alone,
                                    &merge);
    coll->numbered = true;
    if (merge) {
        *status_p = r2_agree_merge(coll->comm);
    }
    return !merge;
}

/* Arguments live until the call begins. */
static r2_status_t r2_agree_keep(struct r2_coll *coll)
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

bool r2_agree_enter(struct r2_coll *coll, const r2_coll_args_t *args, r2_status_t *status_p)
{
    r2_comm_t *comm = coll->comm;
    r2_agree_t *agree = comm->agree;

    *status_p = R2_OK;
    if (NULL == agree) {
        return true;
    }
    coll->wanted = *args;
    coll->carrying = r2_agree_carries(comm, args);
    if (NULL != agree->basis && NULL == agree->queue && NULL == agree->merge &&
        r2_agreement_ready(&agree->calls) && r2_agree_begin(coll, status_p)) {
        return true;
    }
    if (R2_OK == *status_p) {
        *status_p = r2_agree_keep(coll);
    }
    if (R2_OK != *status_p) {
        return false;
    }
    coll->deferred = true;
    DL_APPEND2(agree->queue, coll, wait_prev, wait_next);
    r2_agree_list(comm);
    return false;
}

void r2_agree_left(struct r2_coll *coll)
{
    r2_comm_t *comm = coll->comm;

    if (NULL != coll->merge_for) {
        coll->merge_for->agree->merged = true;
        r2_agree_list(coll->merge_for);
        return;
    }
    if (NULL == comm->agree || !coll->numbered) {
        return;
    }
    r2_agreement_complete(&comm->agree->calls, coll->call, coll->exec.dirty);
    if (NULL != comm->agree->queue) {
        r2_agree_list(comm);
    }
}

/* All ranks hold the same maps now. */
static void r2_agree_take(r2_comm_t *comm)
{
    r2_agree_t *agree = comm->agree;
    r2_merge_t *merging = agree->merging;
    uint64_t before = r2_health_map_digest(&agree->agreed->map);

    if (r2_merge_take(merging)) {
        r2_gauge_heard(comm->comms->agree.gauge, merging->basis->cost_version, &merging->basis->cost);
    }
    r2_shared_map_put(agree->agreed);
    r2_basis_put(agree->basis);
    agree->agreed = r2_shared_map_share(&comm->comms->agree.maps, merging->next);
    agree->basis = r2_basis_share(&comm->comms->agree.bases, merging->basis);
    merging->next = NULL;
    merging->basis = NULL;
    r2_agree_drop_merge(agree);
    r2_merge_destroy(merging);
    agree->merging = NULL;
    agree->looked = 0;
    if (comm == comm->comms->agree.job) {
        r2_observe_plan(comm->comms->core->observers, agree->basis, comm->rank);
    }
    if (before != r2_health_map_digest(&agree->agreed->map)) {
        ++comm->comms->core->counters.epochs;
        r2_debug(&comm->comms->core->log, "communicator %016llx: all ranks agree on a new map (%s)",
                 (unsigned long long) comm->key, agree->basis->even ? "even" : "uneven");
    }
}

/* @return R2_OK: the first call that waits has begun; R2_IN_PROGRESS: it goes on waiting. */
static r2_status_t r2_agree_begin_first(r2_comm_t *comm)
{
    r2_agree_t *agree = comm->agree;
    struct r2_coll *coll = agree->queue;
    r2_status_t status = R2_OK;

    if (NULL != coll->opens) {
        r2_comm_t *sequence = coll->opens;

        r2_agree_drop_opening(sequence);
        r2_agree_opened(sequence);
        return R2_OK;
    }
    if (!coll->numbered &&
        (!r2_agreement_ready(&agree->calls) || !r2_agree_begin(coll, &status))) {
        return R2_OK == status ? R2_IN_PROGRESS : status;
    }
    DL_DELETE2(agree->queue, coll, wait_prev, wait_next);
    coll->deferred = false;
    return r2_coll_begin_waiting(coll);
}

static void r2_agree_go_on(r2_comm_t *comm)
{
    r2_agree_t *agree = comm->agree;
    r2_status_t status = R2_OK;

    if (NULL != agree->merge) {
        if (!agree->merged || R2_OK != comm->root->poisoned) {
            return;
        }
        r2_agree_take(comm);
    }
    while (R2_OK == status && NULL != agree->queue && NULL == agree->merge &&
           NULL != agree->basis && R2_OK == comm->root->poisoned) {
        status = r2_agree_begin_first(comm);
    }
    if (status < 0) {
        r2_comm_poison(comm, status);
    }
}

void r2_agree_run(r2_agree_common_t *common)
{
    while (NULL != common->ready) {
        r2_comm_t *comm = common->ready;

        r2_agree_unlist(comm);
        r2_agree_go_on(comm);
    }
}

void r2_agree_abort(r2_comm_t *comm, r2_status_t status)
{
    r2_agree_t *agree = comm->agree;
    struct r2_coll *coll, *next;

    if (NULL == agree) {
        return;
    }
    r2_agree_drop_openings(agree);
    DL_FOREACH_SAFE2(agree->queue, coll, next, wait_next)
    {
        DL_DELETE2(agree->queue, coll, wait_prev, wait_next);
        coll->deferred = false;
        r2_coll_fail(coll, status);
    }
    r2_agree_unlist(comm);
}

bool r2_agree_dirty(struct r2_coll *coll)
{
    return NULL != coll->comm->agree && coll->carrying && r2_agree_is_dirty(coll->comm);
}
