/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Collectives of several application threads of each rank, beside its service thread.
 * Made for ThreadSanitizer; every result is checked to the last bit.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "r2/prng.h"
#include "thread_job.h"

#define THREADS   2 /* application threads of a rank, each with communicators of its own */
#define COUNT_MAX 20000

typedef struct app {
    thread_rank_t *rank; /* borrowed */
    uint32_t thread;
    r2_prng_t prng;   /* its own */
    r2_prng_t shared; /* the same on all ranks */
    r2_comm_t *comm;
    uint32_t incarnation;
    int64_t *in, *out; /* owned */
} app_t;

static void sum(void *arg, const void *in, void *inout, size_t count)
{
    const int64_t *from = in;
    int64_t *to = inout;

    (void) arg;
    for (size_t i = 0; i < count; ++i) {
        to[i] += from[i];
    }
}

static int64_t value(const app_t *app, uint32_t rank, size_t i)
{
    return (int64_t) ((rank + 1) * 1000003u + i * 17u + app->thread + app->incarnation);
}

static void wrong(app_t *app, const char *what, size_t i)
{
    thread_wrong(app->rank, app->thread, what, i);
}

static void done(void *arg, r2_status_t status)
{
    atomic_store((_Atomic int *) arg, (int) status);
}

/* Starts, computes for a while, and waits in one of three ways. */
static void run(app_t *app, const r2_coll_args_t *args)
{
    r2_ctx_t *ctx = app->rank->ctx;
    unsigned way = (unsigned) r2_prng_below(&app->prng, 3);
    _Atomic int flag = R2_IN_PROGRESS;
    r2_coll_t *coll;
    r2_status_t status;

    status = r2_coll_post(app->comm, args, 2 == way ? done : NULL, &flag, &coll);
    if (R2_OK != status) {
        wrong(app, r2_status_string(status), 0);
        return;
    }
    if (r2_prng_chance(&app->prng, 100000)) {
        thread_nap((unsigned) r2_prng_below(&app->prng, app->rank->job->plan.away_us));
    }
    if (0 == way) {
        status = r2_coll_wait(coll);
    } else if (1 == way) {
        while (R2_IN_PROGRESS == (status = r2_coll_test(coll))) {
            r2_ctx_progress(ctx);
        }
    } else {
        while (R2_IN_PROGRESS == (status = (r2_status_t) atomic_load(&flag))) {
            r2_ctx_progress(ctx);
        }
    }
    r2_coll_release(coll);
    if (R2_OK != status) {
        wrong(app, r2_status_string(status), 0);
    }
}

static void one_allreduce(app_t *app, size_t count)
{
    r2_coll_args_t args = {.kind = R2_COLL_ALLREDUCE,
                           .in = app->in,
                           .out = app->out,
                           .count = count,
                           .element_bytes = sizeof(int64_t),
                           .reduce = sum,
                           .commutative = true,
                           .exact = true};

    run(app, &args);
    for (size_t i = 0; i < count; ++i) {
        int64_t want = 0;

        for (uint32_t rank = 0; rank < RANKS; ++rank) {
            want += value(app, rank, i);
        }
        if (want != app->out[i]) {
            wrong(app, "allreduce", i);
            return;
        }
    }
}

static void one_allgather(app_t *app, size_t count)
{
    r2_coll_args_t args = {.kind = R2_COLL_ALLGATHER,
                           .in = app->in,
                           .out = app->out,
                           .count = count,
                           .element_bytes = sizeof(int64_t)};

    run(app, &args);
    for (size_t i = 0; i < count * RANKS; ++i) {
        if (value(app, (uint32_t) (i / count), i % count) != app->out[i]) {
            wrong(app, "allgather", i);
            return;
        }
    }
}

static void one_bcast(app_t *app, size_t count, uint32_t root)
{
    r2_coll_args_t args = {.kind = R2_COLL_BCAST,
                           .root = (int32_t) root,
                           .out = app->out,
                           .in_place = true,
                           .count = count,
                           .element_bytes = sizeof(int64_t)};

    memset(app->out, 0, count * sizeof(int64_t));
    if (root == app->rank->idx) {
        memcpy(app->out, app->in, count * sizeof(int64_t));
    }
    run(app, &args);
    for (size_t i = 0; i < count; ++i) {
        if (value(app, root, i) != app->out[i]) {
            wrong(app, "bcast", i);
            return;
        }
    }
}

static void one_barrier(app_t *app)
{
    r2_coll_args_t args = {.kind = R2_COLL_BARRIER, .element_bytes = 1};

    run(app, &args);
}

/* A communicator of all ranks, for one thread of each. */
static void new_comm(app_t *app)
{
    uint32_t ranks[RANKS];

    for (uint32_t i = 0; i < RANKS; ++i) {
        ranks[i] = i;
    }
    if (NULL != app->comm) {
        r2_comm_destroy(app->comm);
    }
    ++app->incarnation;
    if (R2_OK != r2_comm_create(app->rank->ctx, (r2_comm_id_t){7 + app->thread, 0}, ranks, RANKS,
                                (int32_t) app->rank->idx, &app->comm)) {
        abort();
    }
    for (size_t i = 0; i < COUNT_MAX; ++i) {
        app->in[i] = value(app, app->rank->idx, i);
    }
}

static void play(app_t *app)
{
    char text[512];

    new_comm(app);
    for (unsigned round = 0; round < app->rank->job->plan.rounds; ++round) {
        static const size_t counts[] = {1, 9, 300, 2000, COUNT_MAX};
        size_t count = counts[r2_prng_below(&app->shared, r2_array_count(counts))];
        uint32_t root = (uint32_t) r2_prng_below(&app->shared, RANKS);

        switch (r2_prng_below(&app->shared, 5)) {
        case 0:
            one_allreduce(app, count);
            break;
        case 1:
            one_allgather(app, count);
            break;
        case 2:
            one_bcast(app, count, root);
            break;
        case 3:
            one_barrier(app);
            break;
        default:
            one_allreduce(app, 1);
            break;
        }
        if (9 == round % 10) {
            r2_ctx_error_text(app->rank->ctx, text, sizeof(text));
            r2_ctx_describe(app->rank->ctx, text, sizeof(text));
            new_comm(app);
        }
    }
    one_barrier(app);
    r2_comm_destroy(app->comm);
}

static void app_main(thread_rank_t *rank, uint32_t thread)
{
    app_t app = {.rank = rank, .thread = thread};

    app.in = malloc(COUNT_MAX * sizeof(int64_t));
    app.out = malloc(RANKS * COUNT_MAX * sizeof(int64_t));
    r2_prng_seed(&app.prng, 100 * rank->idx + thread);
    r2_prng_seed(&app.shared, thread);
    play(&app);
    free(app.in);
    free(app.out);
}

int main(void)
{
    static const thread_use_t use = {.threads = THREADS, .app = app_main};

    return thread_job_main(&use, 40);
}
