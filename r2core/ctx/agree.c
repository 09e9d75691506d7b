/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Agreement in a communicator: dirty bits, merges of maps, calls that wait for them.
 */
#include "r2_config.h"

#include "ctx/agree.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "ctx/state.h"
#include "plan/kinds.h"

/** A map as it travels in a merge, with the newest cost that is known: rank 0 alone makes versions. */
typedef struct r2_map_blob {
    uint32_t exception_count;
    uint32_t cost_version;
    r2_cost_params_t cost;
    uint32_t reserved;
    r2_health_exception_t exceptions[R2_HEALTH_EXCEPTIONS_MAX];
    r2_health_entry_t entries[];
} r2_map_blob_t;

static size_t r2_map_blob_bytes(const r2_health_map_t *map)
{
    return sizeof(r2_map_blob_t)
           + (size_t) map->host_count * map->rail_count * sizeof(r2_health_entry_t);
}

static void r2_map_put(const r2_health_map_t *map, void *to)
{
    r2_map_blob_t *blob = to;

    memset(blob, 0, r2_map_blob_bytes(map));
    blob->exception_count = map->exception_count;
    memcpy(blob->exceptions, map->exceptions, sizeof(blob->exceptions));
    memcpy(blob->entries, map->entries,
           (size_t) map->host_count * map->rail_count * sizeof(*map->entries));
}

/* Merges what another rank's map says. The blob comes from a peer of the job: counts are checked. */
static void r2_map_take(r2_health_map_t *map, const void *from)
{
    const r2_map_blob_t *blob = from;
    r2_health_change_t change;

    for (uint32_t i = 0; i < map->host_count * map->rail_count; ++i) {
        memset(&change, 0, sizeof(change));
        change.host_a = i / map->rail_count;
        change.rail = i % map->rail_count;
        change.entry = blob->entries[i];
        (void) r2_health_map_merge(map, &change);
    }
    for (uint32_t i = 0; i < r2_min(blob->exception_count, R2_HEALTH_EXCEPTIONS_MAX); ++i) {
        const r2_health_exception_t *exception = &blob->exceptions[i];

        memset(&change, 0, sizeof(change));
        change.is_path = true;
        change.host_a = exception->host_a;
        change.host_b = exception->host_b;
        change.rail = exception->rail;
        change.entry.version = exception->version;
        (void) r2_health_map_merge(map, &change);
    }
}

static void r2_map_put_cost(const r2_ctx_t *ctx, void *to)
{
    r2_map_blob_t *blob = to;

    blob->cost_version = ctx->gauge.version;
    blob->cost = ctx->gauge.cost;
}

/* The operation of a merge: commutative, associative, idempotent, as merging of maps is. */
static void r2_map_reduce(void *arg, const void *in, void *inout, size_t count)
{
    const r2_agree_t *agree = arg;
    const r2_map_blob_t *ours = inout, *theirs = in;
    const r2_map_blob_t newer = theirs->cost_version > ours->cost_version ? *theirs : *ours;
    r2_map_blob_t *result = inout;
    r2_health_map_t map;

    (void) count; /* one element: a whole map */
    if (R2_OK != r2_health_map_init(&map, agree->agreed.host_count, agree->agreed.rail_count)) {
        return;
    }
    r2_map_take(&map, inout);
    r2_map_take(&map, in);
    r2_map_put(&map, inout);
    result->cost_version = newer.cost_version;
    result->cost = newer.cost;
    r2_health_map_fini(&map);
}

/* ---- what plans are made from ---- */

static r2_status_t r2_agree_topology_init(r2_comm_t *comm, r2_agree_t *agree)
{
    agree->map_host = malloc((size_t) comm->size * sizeof(*agree->map_host));
    return NULL == agree->map_host
               ? R2_ERR_NO_MEMORY
               : r2_basis_init(comm->ctx->health->hosts, comm->ranks, comm->size,
                               agree->agreed.rail_count, agree->map_host, &agree->basis);
}

const r2_basis_t *r2_agree_basis(const r2_comm_t *comm)
{
    return NULL != comm->agree ? &comm->agree->basis : NULL;
}

/* Does our map say more than the agreed one? Looked at again only when one of them has changed. */
bool r2_agree_is_dirty(r2_comm_t *comm)
{
    r2_agree_t *agree = comm->agree;
    const r2_health_map_t *ours = r2_ctx_health_map(comm->ctx);
    r2_health_map_t merged;

    if (r2_gauge_wanted(comm->ctx, &agree->basis)) {
        return true;
    }
    if (agree->looked == comm->ctx->counters.map_changes + 1) {
        return agree->dirty;
    }
    if (R2_OK != r2_health_map_init(&merged, agree->agreed.host_count, agree->agreed.rail_count)) {
        return false;
    }
    r2_map_put(ours, agree->given);
    r2_map_take(&merged, agree->given);
    r2_map_put(&agree->agreed, agree->given);
    r2_map_take(&merged, agree->given);
    agree->dirty = r2_health_map_digest(&merged) != r2_health_map_digest(&agree->agreed);
    agree->looked = comm->ctx->counters.map_changes + 1;
    r2_health_map_fini(&merged);
    return agree->dirty;
}

/* ---- life ---- */

r2_status_t r2_agree_create(r2_comm_t *comm)
{
    const r2_health_map_t *ours = r2_ctx_health_map(comm->ctx);
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
    status = r2_health_map_init(&agree->agreed, ours->host_count, ours->rail_count);
    if (R2_OK == status) {
        agree->given = malloc(r2_map_blob_bytes(ours));
        agree->taken = malloc(r2_map_blob_bytes(ours));
        status = NULL == agree->given || NULL == agree->taken ? R2_ERR_NO_MEMORY
                                                              : r2_agree_topology_init(comm, agree);
    }
    if (R2_OK == status) {
        status = r2_comm_create_merges(comm, &agree->merges);
    }
    if (R2_OK != status) {
        r2_agree_destroy(comm);
    } else if (NULL == comm->ctx->job && (uint32_t) comm->size == comm->ctx->net.size) {
        comm->ctx->job = comm;
        r2_record_plan(comm->ctx);
    }
    return status;
}

static void r2_agree_unlist(r2_comm_t *comm)
{
    if (comm->agree->listed) {
        comm->agree->listed = false;
        LL_DELETE2(comm->ctx->agreeing, comm, agree->next);
    }
}

static void r2_agree_list(r2_comm_t *comm)
{
    if (!comm->agree->listed) {
        comm->agree->listed = true;
        LL_PREPEND2(comm->ctx->agreeing, comm, agree->next);
    }
}

static void r2_agree_drop_merge(r2_agree_t *agree)
{
    if (NULL != agree->merge) {
        r2_coll_discard(agree->merge);
        agree->merge = NULL;
    }
}

void r2_agree_destroy(r2_comm_t *comm)
{
    r2_agree_t *agree = comm->agree;

    if (NULL == agree) {
        return;
    }
    if (comm == comm->ctx->job) {
        comm->ctx->job = NULL;
    }
    r2_agree_unlist(comm);
    r2_agree_drop_merge(agree);
    if (NULL != agree->merges) {
        r2_comm_destroy_merges(agree->merges);
    }
    r2_topology_fini(&agree->basis.topology);
    r2_health_map_fini(&agree->agreed);
    free(agree->map_host);
    free(agree->given);
    free(agree->taken);
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
    r2_health_map_t merged;
    r2_coll_args_t args = {
        .kind = R2_COLL_ALLREDUCE,
        .in = agree->given,
        .out = agree->taken,
        .count = 1,
        .element_bytes = r2_map_blob_bytes(&agree->agreed),
        .reduce = r2_map_reduce,
        .reduce_arg = agree,
        .commutative = true,
        .exact = true,
    };

    if (R2_OK != r2_health_map_init(&merged, agree->agreed.host_count, agree->agreed.rail_count)) {
        return R2_ERR_NO_MEMORY;
    }
    r2_map_put(&agree->agreed, agree->given);
    r2_map_take(&merged, agree->given);
    r2_map_put(r2_ctx_health_map(comm->ctx), agree->given);
    r2_map_take(&merged, agree->given);
    r2_map_put(&merged, agree->given);
    r2_health_map_fini(&merged);
    r2_gauge_look(comm->ctx);
    r2_map_put_cost(comm->ctx, agree->given);
    agree->merged = false;
    ++comm->ctx->counters.merges;
    return r2_coll_start_merge(agree->merges, &args, comm, &agree->merge);
}

/* Numbers a call and begins its merge if it has one. @return true: the call itself may begin. */
static bool r2_agree_begin(struct r2_coll *coll, r2_status_t *status_p)
{
    r2_agree_t *agree = coll->comm->agree;
    bool merge;

    coll->call = r2_agreement_start(&agree->calls, coll->carrying, coll->wanted.blocking, &merge);
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
    if (NULL == agree->queue && NULL == agree->merge && r2_agreement_ready(&agree->calls) &&
        r2_agree_begin(coll, status_p)) {
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

static void r2_agree_take_cost(r2_comm_t *comm)
{
    const r2_map_blob_t *blob = (const void *) comm->agree->taken;
    r2_basis_t *basis = &comm->agree->basis;

    if (blob->cost_version > basis->cost_version) {
        basis->cost = blob->cost;
        basis->cost_version = blob->cost_version;
        r2_gauge_heard(comm->ctx, blob->cost_version, &blob->cost);
    }
}

/* All ranks hold the same maps now. */
static void r2_agree_take(r2_comm_t *comm)
{
    r2_agree_t *agree = comm->agree;
    uint64_t before = r2_health_map_digest(&agree->agreed);

    r2_map_take(&agree->agreed, agree->taken);
    r2_agree_take_cost(comm);
    r2_agree_drop_merge(agree);
    agree->looked = 0;
    r2_basis_apply(&agree->basis, &agree->agreed, agree->map_host);
    if (comm == comm->ctx->job) {
        r2_record_plan(comm->ctx);
    }
    if (before != r2_health_map_digest(&agree->agreed)) {
        ++comm->ctx->counters.epochs;
        r2_debug(&comm->ctx->log, "communicator %016llx: all ranks agree on a new map (%s)",
                 (unsigned long long) comm->key, agree->basis.even ? "even" : "uneven");
    }
}

static void r2_agree_go_on(r2_comm_t *comm)
{
    r2_agree_t *agree = comm->agree;

    if (NULL != agree->merge) {
        if (!agree->merged || R2_OK != comm->poisoned) {
            return;
        }
        r2_agree_take(comm);
    }
    while (NULL != agree->queue && NULL == agree->merge && R2_OK == comm->poisoned) {
        struct r2_coll *coll = agree->queue;
        r2_status_t status = R2_OK;

        if (!coll->numbered &&
            (!r2_agreement_ready(&agree->calls) || !r2_agree_begin(coll, &status))) {
            if (R2_OK != status) {
                r2_comm_poison(comm, status);
            }
            return;
        }
        DL_DELETE2(agree->queue, coll, wait_prev, wait_next);
        coll->deferred = false;
        status = r2_coll_begin_waiting(coll);
        if (R2_OK != status) {
            r2_comm_poison(comm, status);
        }
    }
}

void r2_agree_run(r2_ctx_t *ctx)
{
    while (NULL != ctx->agreeing) {
        r2_comm_t *comm = ctx->agreeing;

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
    DL_FOREACH_SAFE2(agree->queue, coll, next, wait_next)
    {
        DL_DELETE2(agree->queue, coll, wait_prev, wait_next);
        coll->deferred = false;
        r2_coll_fail(coll, status);
    }
    r2_agree_unlist(comm);
    if (NULL != agree->merges) {
        r2_comm_poison(agree->merges, status);
    }
}

bool r2_agree_dirty(struct r2_coll *coll)
{
    return NULL != coll->comm->agree && coll->carrying && r2_agree_is_dirty(coll->comm);
}
