/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One rank of a simulated job: its program, its buffers, its checks.
 */
#include "r2_config.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "harness.h"

void rank_enter(job_rank_t *rank)
{
    if (NULL != rank->ctx && sim_memory_is_short(rank->idx)) {
        r2_core_t *core = &rank->ctx->core;
        r2_pool_t *pools[] = {&core->net.packets,    &core->net.items,    &core->net.messages,
                              &core->net.matches,    &core->net.arriving, &core->net.credits,
                              &rank->ctx->comms.colls};

        /* free lists would hide that there is no memory */
        for (size_t i = 0; i < r2_array_count(pools); ++i) {
            r2_pool_fini(pools[i]);
        }
        r2_blocks_fini(&core->net.blocks);
        r2_blocks_fini(&core->engine.blocks);
    }
    sim_memory_enter(rank->idx);
}

static int32_t rank_in_comm(const job_rank_t *rank, uint32_t comm)
{
    const scenario_comm_t *c = &rank->job->scenario->comms[comm];

    for (int32_t i = 0; i < c->size; ++i) {
        if (c->ranks[i] == rank->idx) {
            return i;
        }
    }
    return -1;
}

/* ---- calls, shared by ranks ---- */

static bool call_init(const job_t *job, const scenario_step_t *step, uint64_t salt,
                      job_call_t *call)
{
    const scenario_comm_t *comm = &job->scenario->comms[step->comm];
    uint32_t host_of[SCENARIO_RANKS_MAX];

    for (int32_t r = 0; r < comm->size; ++r) {
        host_of[r] = r2_sim_host_of(job->sim, comm->ranks[r]);
    }
    call->users = comm->size;
    return payload_call_init(&call->payload, step, host_of, comm->size, salt);
}

static job_call_t *call_get(job_t *job, uint32_t step, uint32_t iteration)
{
    const scenario_step_t *s = &job->scenario->steps[step];
    job_call_t *call;

    DL_FOREACH(job->calls, call) {
        if (call->step == step && call->iteration == iteration) {
            return call;
        }
    }
    call = calloc(1, sizeof(*call));
    if (NULL == call) {
        return NULL;
    }
    call->step = step;
    call->iteration = iteration;
    if (!call_init(job, s, job->scenario->sim.seed * 1000003 + step * 1009 + iteration, call)) {
        free(call);
        return NULL;
    }
    DL_APPEND(job->calls, call);
    return call;
}

static void call_put(job_t *job, job_call_t *call)
{
    if (0 == --call->users) {
        job->result->digest += call->digest; /* sums do not depend on the order of completion */
        DL_DELETE(job->calls, call);
        payload_call_fini(&call->payload);
        free(call);
    }
}

/* ---- operations ---- */

static void op_done(void *arg, r2_status_t status)
{
    rank_op_t *op = arg;

    ++op->done_calls;
    op->done_status = status;
}

static void scribble_and_free(uint8_t *memory, uint64_t bytes)
{
    memset(memory, 0xee, bytes);
    free(memory);
}

static void op_free(rank_op_t *op)
{
    payload_shape_t shape = payload_shape(&op->call->payload, op->comm_rank);

    if (NULL != op->coll) {
        r2_coll_release(op->coll);
    }
    scribble_and_free(op->in, shape.in_bytes);
    scribble_and_free(op->out, shape.out_bytes);
    call_put(op->rank->job, op->call);
    free(op);
}

static void op_check(rank_op_t *op, r2_status_t status)
{
    job_t *job = op->rank->job;
    payload_call_t *payload = &op->call->payload;
    payload_shape_t shape = payload_shape(payload, op->comm_rank);
    char text[200];

    if (op->in_hash != payload_hash(0, op->in, shape.in_bytes)) {
        job_fail(job, "rank %u step %u.%u: the send buffer changed", op->rank->idx, op->call->step,
                 op->call->iteration);
    }
    if (op->wants_done && (1 != op->done_calls || status != op->done_status)) {
        job_fail(job, "rank %u step %u.%u: done was called %u times", op->rank->idx, op->call->step,
                 op->call->iteration, op->done_calls);
    }
    if (status < 0) {
        ++op->rank->errors;
        if (R2_OK == job->result->error) {
            job->result->error = status;
            job->result->first_error_ns = r2_sim_now_ns(job->sim) - R2_NS_PER_S;
            r2_ctx_error_text(op->rank->ctx, job->result->said, sizeof(job->result->said));
        }
        if (!job->scenario->any_outcome) {
            job_fail(job, "rank %u step %u.%u: %s", op->rank->idx, op->call->step,
                     op->call->iteration, r2_status_string(status));
        }
        return;
    }
    ++job->result->calls[payload->step->coll].count;
    job->result->calls[payload->step->coll].ns += r2_sim_now_ns(job->sim) - op->posted_ns;
    if (!payload_check(payload, op->comm_rank, op->out, &job->params, text, sizeof(text))) {
        job_fail(job, "step %u.%u: %s", op->call->step, op->call->iteration, text);
    }
    /* in place, what lies behind the result is not defined */
    if (!payload->step->in_place) {
        op->call->digest += payload_hash(op->comm_rank + 1u, op->out, shape.out_bytes);
    }
}

static rank_op_t *op_new(job_rank_t *rank, job_call_t *call, uint32_t comm)
{
    rank_op_t *op = calloc(1, sizeof(*op));
    int32_t comm_rank = rank_in_comm(rank, comm);
    payload_shape_t shape = payload_shape(&call->payload, comm_rank);

    if (NULL == op) {
        return NULL;
    }
    op->rank = rank;
    op->call = call;
    op->comm = comm;
    op->comm_rank = comm_rank;
    op->in = malloc(shape.in_bytes + (0 == shape.in_bytes));
    op->out = malloc(shape.out_bytes + (0 == shape.out_bytes));
    if (NULL == op->in || NULL == op->out) {
        free(op->in);
        free(op->out);
        free(op);
        return NULL;
    }
    payload_fill(&call->payload, comm_rank, op->in, op->out);
    op->in_hash = payload_hash(0, op->in, shape.in_bytes);
    return op;
}

static void op_args(const rank_op_t *op, r2_coll_args_t *args_p)
{
    payload_args(&op->call->payload, op->comm_rank, op->in, op->out, args_p);
    if (NULL != op->rank->gpu) {
        args_p->out_at = r2_gpu_sim_memory(op->rank->gpu);
        args_p->in_at = args_p->in_place ? args_p->in_at : args_p->out_at;
    }
}

void rank_post(job_rank_t *rank, uint32_t step, uint32_t iteration)
{
    job_t *job = rank->job;
    const scenario_step_t *s = &job->scenario->steps[step];
    job_call_t *call = call_get(job, step, iteration);
    rank_op_t *op = NULL == call ? NULL : op_new(rank, call, s->comm);
    r2_coll_args_t args;
    r2_status_t status;

    if (NULL == op) {
        job_fail(job, "out of memory");
        return;
    }
    op->wants_done = 0 == r2_prng_below(&job->prng, 2);
    op_args(op, &args);
    args.root = op->comm_rank == s->astray ? (args.root + 1) % job->scenario->comms[s->comm].size
                                           : args.root;
    op->parts_left = args.parts - 1;
    op->persistent = s->persistent;
    rank->wait.coll = NULL;
    op->posted_ns = r2_sim_now_ns(job->sim);
    DL_APPEND(rank->ops, op);
    rank_enter(rank);
    status = r2_coll_post(s->persistent ? rank->requests[step] : rank->comms[s->comm], &args,
                          op->wants_done ? op_done : NULL, op, &op->coll);
    sim_memory_leave();
    if (R2_OK != status) {
        op->coll = NULL;
        op->wants_done = false;
        DL_DELETE(rank->ops, op);
        op_check(op, status);
        op_free(op);
    }
}

/* Later parts of a reduce-scatter give something to the last rank only, as the pieces of a long one
 * do. */
static void op_last_block(const rank_op_t *op, r2_coll_args_t *args, uint64_t *counts)
{
    const int32_t last = op->rank->job->scenario->comms[op->comm].size - 1;
    uint64_t before = 0;

    for (int32_t i = 0; i < last; ++i) {
        before += args->counts[i];
        counts[i] = 0;
    }
    counts[last] = args->counts[last];
    args->in = (const uint8_t *) args->in + before * args->element_bytes;
    args->counts = counts;
}

/* Starts the next part of a series. @return its status. */
static r2_status_t op_next(rank_op_t *op)
{
    uint64_t counts[SCENARIO_RANKS_MAX];
    r2_coll_args_t args;
    r2_status_t status;

    op_args(op, &args);
    if (R2_COLL_REDUCE_SCATTER == args.kind && !args.in_place) {
        op_last_block(op, &args, counts);
    }
    --op->parts_left;
    op->done_calls = 0;
    rank_enter(op->rank);
    status = r2_coll_next(op->coll, &args);
    sim_memory_leave();
    op->wants_done = op->wants_done && R2_OK == status;
    return status;
}

/* Takes what is complete. @return true if there was something. */
static bool ops_collect(job_rank_t *rank)
{
    rank_op_t *op, *next;
    bool any = false;

    DL_FOREACH_SAFE(rank->ops, op, next) {
        r2_status_t status = r2_coll_test(op->coll);

        if (R2_IN_PROGRESS == status || (op->wants_done && 0 == op->done_calls)) {
            continue;
        }
        any = true;
        if (R2_OK == status && op->parts_left > 0) {
            status = op_next(op);
            if (R2_OK == status) {
                continue;
            }
        }
        DL_DELETE(rank->ops, op);
        op_check(op, status);
        op_free(op);
    }
    return any;
}

/* ---- the program ---- */

static bool has_ops(const job_rank_t *rank, uint32_t comm, bool persistent_too)
{
    const rank_op_t *op;

    DL_FOREACH(rank->ops, op) {
        if (op->comm == comm && (persistent_too || !op->persistent)) {
            return true;
        }
    }
    return false;
}

const r2_coll_t *rank_waits_for(const job_rank_t *rank)
{
    const scenario_step_t *s = &rank->job->scenario->steps[rank->step];
    const rank_op_t *op;

    if (!rank->waiting || rank->step == rank->job->scenario->step_count || STEP_COLL != s->kind) {
        return NULL;
    }
    DL_FOREACH(rank->ops, op) {
        if (op->comm == s->comm && !op->persistent && R2_IN_PROGRESS == r2_coll_test(op->coll)) {
            return op->coll;
        }
    }
    return NULL;
}

static void step_create(job_rank_t *rank, uint32_t comm)
{
    const scenario_comm_t *c = &rank->job->scenario->comms[comm];
    r2_status_t status;

    if (rank_in_comm(rank, comm) < 0) {
        return;
    }
    status = r2_comm_create(rank->ctx, (r2_comm_id_t){c->cid, 0}, c->ranks, c->size,
                            rank_in_comm(rank, comm), &rank->comms[comm]);
    if (R2_OK != status) {
        job_fail(rank->job, "rank %u: communicator %s: %s", rank->idx, c->name,
                 r2_status_string(status));
    }
}

void rank_next_step(job_rank_t *rank)
{
    ++rank->step;
    rank->iteration = 0;
    rank->waiting = false;
}

/* @return true if the step is over, or one call more was posted. */
static bool step_coll(job_rank_t *rank, const scenario_step_t *s)
{
    if (rank_in_comm(rank, s->comm) < 0) {
        rank_next_step(rank);
        return true;
    }
    if (s->persistent) {
        rank_make_request(rank);
        return true;
    }
    if (rank->waiting && has_ops(rank, s->comm, false)) {
        return false; /* a blocking call is under way */
    }
    rank->waiting = false;
    if (rank->iteration == s->times) {
        rank_next_step(rank);
        return true;
    }
    rank_post(rank, rank->step, rank->iteration++);
    rank->waiting = !s->nonblocking;
    return true;
}

static bool step_compute(job_rank_t *rank, const scenario_step_t *s)
{
    uint64_t now_ns = r2_sim_now_ns(rank->job->sim);

    if (s->rank >= 0 && (uint32_t) s->rank != rank->idx) {
        rank_next_step(rank);
        return true;
    }
    if (!rank->waiting) {
        rank->waiting = true;
        rank->compute_until_ns = now_ns + s->compute_ns;
        return false;
    }
    if (now_ns < rank->compute_until_ns) {
        return false;
    }
    rank_next_step(rank);
    return true;
}

/* @return true if the rank got ahead. */
static bool run_step(job_rank_t *rank)
{
    const scenario_t *sc = rank->job->scenario;
    const scenario_step_t *s = &sc->steps[rank->step];

    if (rank->step == sc->step_count) {
        rank->finished = NULL == rank->ops;
        return false;
    }
    switch (s->kind) {
    case STEP_COLL:
        return step_coll(rank, s);
    case STEP_START:
        return rank_start_requests(rank);
    case STEP_CLOSE:
        if (NULL != rank->ops) {
            return false;
        }
        rank_close_requests(rank, -1);
        break;
    case STEP_COMPUTE:
        return step_compute(rank, s);
    case STEP_CREATE:
        step_create(rank, s->comm);
        break;
    case STEP_FREE:
        if (has_ops(rank, s->comm, true)) {
            return false;
        }
        rank_close_requests(rank, (int) s->comm);
        if (NULL != rank->comms[s->comm]) {
            r2_comm_destroy(rank->comms[s->comm]);
            rank->comms[s->comm] = NULL;
        }
        break;
    case STEP_WAIT:
        if (NULL != rank->ops) {
            return false;
        }
        break;
    }
    rank_next_step(rank);
    return true;
}

bool rank_advance(job_rank_t *rank)
{
    bool any = ops_collect(rank);

    while (!rank->finished && run_step(rank)) {
        any = true;
    }
    return any;
}

uint64_t rank_memory(const job_rank_t *rank)
{
    const rank_op_t *op;
    uint64_t hash = 1;

    DL_FOREACH(rank->ops, op) {
        payload_shape_t shape = payload_shape(&op->call->payload, op->comm_rank);

        hash = payload_hash(hash, op->out, shape.out_bytes);
    }
    return 0 == hash ? 1 : hash;
}

/* What is still under way ends as after an error for good. */
static void abort_ops(job_rank_t *rank)
{
    rank_op_t *op, *next;

    DL_FOREACH(rank->ops, op) {
        r2_comm_fail(rank->comms[op->comm], R2_ERR_CANCELED);
    }
    r2_coll_collect(&rank->ctx->comms);
    r2_coll_deliver(&rank->ctx->comms);
    DL_FOREACH_SAFE(rank->ops, op, next) {
        DL_DELETE(rank->ops, op);
        op_free(op);
    }
}

void rank_release(job_rank_t *rank)
{
    if (NULL != rank->ctx) {
        abort_ops(rank);
    }
    for (uint32_t i = 0; i < SCENARIO_COMMS_MAX; ++i) {
        if (NULL != rank->comms[i]) {
            r2_comm_destroy(rank->comms[i]);
            rank->comms[i] = NULL;
        }
    }
    if (NULL != rank->ctx) {
        r2_ctx_dismantle(rank->ctx);
        rank->ctx = NULL;
    }
    r2_gpu_sim_destroy(rank->gpu);
    rank->gpu = NULL;
    r2_nic_watch_sim_destroy(&rank->watch);
    if (NULL != rank->fault) {
        r2_tp_fault_destroy(rank->fault);
    }
}
