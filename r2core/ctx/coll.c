/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Collectives of the public API: from arguments to a run, and back to the caller.
 */
#include "r2_config.h"

#include "ctx/state.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "plan/plan.h"

static const char *r2_coll_forced(const r2_params_t *params, r2_coll_kind_t kind)
{
    switch (kind) {
    case R2_COLL_ALLREDUCE:
        return params->allreduce_algorithm;
    case R2_COLL_ALLGATHER:
    case R2_COLL_ALLGATHERV:
        return params->allgather_algorithm;
    case R2_COLL_BCAST:
        return params->bcast_algorithm;
    case R2_COLL_REDUCE_SCATTER:
    case R2_COLL_REDUCE_SCATTER_BLOCK:
    case R2_COLL_BARRIER:
    case R2_COLL_KIND_COUNT:
        break;
    }
    return NULL;
}

static r2_status_t r2_coll_plan(const r2_comm_t *comm, const r2_coll_args_t *args,
                                r2_schedule_t *schedule)
{
    const r2_params_t *params = &comm->ctx->params;
    r2_plan_input_t input = {
        .kind = args->kind,
        .rank = comm->rank,
        .size = comm->size,
        .root = args->root,
        .element_bytes = r2_max(args->element_bytes, (uint64_t) 1),
        .count = args->count,
        .counts = args->counts,
        .displs = args->displs,
        .in_place = args->in_place,
        .commutative = args->commutative,
        .exact = args->exact,
        .reproducible = params->reproducible,
        .algorithm = r2_coll_forced(params, args->kind),
        .scratch_bytes = params->scratch_bytes,
        .chunk_min_bytes = params->chunk_min_bytes,
        .chunk_max_bytes = params->chunk_max_bytes,
        .message_max_bytes = params->pack_bytes / 2,
        .copy_max_bytes = params->copy_max_bytes,
    };

    return r2_plan_build(&input, schedule);
}

/* Engine lock. Prepares the run of the part `coll->seq`. */
static r2_status_t r2_coll_prepare(struct r2_coll *coll, const r2_coll_args_t *args,
                                   r2_schedule_t *schedule)
{
    r2_comm_t *comm = coll->comm;
    r2_ctx_t *ctx = comm->ctx;
    r2_exec_args_t exec_args = {
        .in = args->in,
        .out = args->out,
        .reduce = args->reduce,
        .reduce_arg = args->reduce_arg,
        .element_bytes = r2_max(args->element_bytes, (uint64_t) 1),
        .ranks = comm->ranks,
        .comm_key = comm->key,
        .coll_seq = coll->seq,
        .movers = {args->in_mover, args->out_mover},
        .pack_bytes = ctx->params.pack_bytes,
    };

    return r2_exec_init(&coll->exec, &ctx->engine, &exec_args, schedule);
}

/* Engine lock. */
static void r2_coll_begin(struct r2_coll *coll)
{
    r2_ctx_t *ctx = coll->comm->ctx;

    atomic_store(&coll->status, R2_IN_PROGRESS);
    ++ctx->counters.collectives;
    ctx->net.now_ns = r2_now_ns(ctx->net.clock);
    r2_exec_start(&coll->exec);
    r2_engine_run(&ctx->engine);
    r2_coll_collect(ctx);
}

/* Engine lock. Takes the places of all parts, since others may be posted between them. */
static r2_status_t r2_coll_start(r2_comm_t *comm, const r2_coll_args_t *args, struct r2_coll *coll,
                                 r2_schedule_t *schedule)
{
    r2_status_t status;

    coll->seq = comm->next_seq;
    status = r2_coll_prepare(coll, args, schedule);
    if (R2_OK != status) {
        return status;
    }
    coll->parts_left = args->parts > 1 ? args->parts - 1 : 0;
    comm->next_seq += 1 + coll->parts_left;
    coll->in_active = true;
    DL_APPEND(comm->active, coll);
    r2_coll_begin(coll);
    return R2_OK;
}

/* Engine lock. */
static void r2_coll_retire(struct r2_coll *coll)
{
    if (coll->in_active) {
        coll->in_active = false;
        coll->parts_left = 0;
        DL_DELETE(coll->comm->active, coll);
    }
}

r2_status_t r2_coll_post(r2_comm_t *comm, const r2_coll_args_t *args, r2_coll_done_fn_t done,
                         void *done_arg, r2_coll_t **coll_p)
{
    r2_ctx_t *ctx = comm->ctx;
    struct r2_coll *coll;
    r2_schedule_t schedule;
    r2_status_t status = r2_coll_plan(comm, args, &schedule);

    if (R2_OK != status) {
        r2_schedule_fini(&schedule);
        return status;
    }
    coll = calloc(1, sizeof(*coll));
    if (NULL == coll) {
        r2_schedule_fini(&schedule);
        return R2_ERR_NO_MEMORY;
    }
    coll->comm = comm;
    coll->done = done;
    coll->done_arg = done_arg;
    atomic_store(&coll->status, R2_IN_PROGRESS);
    r2_ctx_enter(ctx);
    if (R2_OK != comm->poisoned) {
        r2_schedule_fini(&schedule);
        status = R2_ERR_POISONED;
    } else {
        *coll_p = coll;
        status = r2_coll_start(comm, args, coll, &schedule);
    }
    r2_ctx_leave(ctx);
    if (R2_OK != status) {
        free(coll);
        return status;
    }
    r2_coll_deliver(ctx);
    return R2_OK;
}

/* Engine lock. */
static r2_status_t r2_coll_follow(struct r2_coll *coll, const r2_coll_args_t *args,
                                  r2_schedule_t *schedule)
{
    r2_status_t status;

    if (R2_OK != coll->comm->poisoned || 0 == coll->parts_left) {
        r2_schedule_fini(schedule);
        return 0 == coll->parts_left ? R2_ERR_PARAM : R2_ERR_POISONED;
    }
    r2_exec_fini(&coll->exec);
    ++coll->seq;
    --coll->parts_left;
    status = r2_coll_prepare(coll, args, schedule);
    if (R2_OK == status) {
        r2_coll_begin(coll);
    } else {
        memset(&coll->exec, 0, sizeof(coll->exec));
    }
    return status;
}

r2_status_t r2_coll_next(r2_coll_t *coll, const r2_coll_args_t *args)
{
    r2_ctx_t *ctx = coll->comm->ctx;
    r2_schedule_t schedule;
    r2_status_t status = r2_coll_plan(coll->comm, args, &schedule);

    r2_ctx_enter(ctx);
    if (R2_OK == status) {
        status = r2_coll_follow(coll, args, &schedule);
    } else {
        r2_schedule_fini(&schedule);
    }
    if (R2_OK != status) {
        r2_coll_retire(coll);
    }
    r2_ctx_leave(ctx);
    if (R2_OK == status) {
        r2_coll_deliver(ctx);
    }
    return status;
}

static void r2_coll_forget_credits(r2_comm_t *comm, uint32_t seq)
{
    r2_net_t *net = &comm->ctx->net;

    for (int32_t i = 0; net->early_credits > 0 && i < comm->size; ++i) {
        if (NULL != net->links[comm->ranks[i]]) {
            r2_link_forget(net->links[comm->ranks[i]], comm->key, seq);
        }
    }
}

/* Engine lock. The head of the list is also looked at without it. */
static void r2_coll_completed(r2_ctx_t *ctx, struct r2_coll *coll)
{
    struct r2_coll *last = ctx->completed;

    coll->next_done = NULL;
    if (NULL == last) {
        __atomic_store_n(&ctx->completed, coll, __ATOMIC_RELAXED);
        return;
    }
    while (NULL != last->next_done) {
        last = last->next_done;
    }
    last->next_done = coll;
}

/* Engine lock. Moves finished runs to where their callers find them. */
void r2_coll_collect(r2_ctx_t *ctx)
{
    r2_exec_t *exec;

    if (ctx->fresh_news) {
        r2_comm_apply_news(ctx);
    }
    while (NULL != (exec = r2_engine_collect(&ctx->engine))) {
        struct r2_coll *coll = (struct r2_coll *) (void *) exec;

        if (exec->status < 0) {
            r2_comm_poison(coll->comm, exec->status);
        }
        if (exec->status < 0 || 0 == coll->parts_left) {
            r2_coll_retire(coll);
        }
        r2_coll_forget_credits(coll->comm, coll->seq);
        if (NULL != coll->done) {
            r2_coll_completed(ctx, coll);
        }
        atomic_store(&coll->status, exec->status);
    }
}

/* No lock. Calls the done functions of finished collectives. */
void r2_coll_deliver(r2_ctx_t *ctx)
{
    struct r2_coll *list;

    if (NULL == __atomic_load_n(&ctx->completed, __ATOMIC_RELAXED)) {
        return;
    }
    r2_ctx_enter(ctx);
    list = ctx->completed;
    __atomic_store_n(&ctx->completed, NULL, __ATOMIC_RELAXED);
    r2_ctx_leave(ctx);
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
    r2_ctx_t *ctx = coll->comm->ctx;

    if (coll->in_active) {
        r2_ctx_enter(ctx);
        r2_coll_retire(coll);
        r2_ctx_leave(ctx);
    }
    r2_exec_fini(&coll->exec);
    free(coll);
}

bool r2_coll_algorithm_known(r2_coll_kind_t kind, const char *name)
{
    r2_plan_input_t input = {.kind = kind, .size = 2, .element_bytes = 1, .algorithm = name};

    return NULL != r2_plan_choose(&input);
}

const char *r2_coll_algorithms(r2_coll_kind_t kind)
{
    return r2_plan_names(kind);
}
