/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Ranks as threads: application threads and the real service thread of each rank, in real time.
 * Made for ThreadSanitizer; every result is checked to the last bit.
 */
#include "r2_config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/prng.h"
#include "ctx/state.h"
#include "oob/loop.h"
#include "thread_net.h"

#define RANKS     4
#define RAILS     2
#define THREADS   2 /* application threads of a rank, each with communicators of its own */
#define COUNT_MAX 20000

/** What one test does. Set before the threads start. */
typedef struct plan {
    unsigned rounds;
    unsigned away_us;   /* longest time that an application thread computes */
    bool weather;       /* NICs lose carrier */
    bool same_host;     /* all ranks share memory */
    bool second_driver; /* a third thread drives as the service thread may */
} plan_t;

typedef struct rank {
    struct job *job; /* borrowed */
    uint32_t idx;
    r2_ctx_t *ctx; /* owned */
    r2_hello_t hello;
    r2_params_t params;
    r2_log_t log;
} rank_t;

/** One job. Everything but `stop` is set before the threads start. */
typedef struct job {
    plan_t plan;
    thread_net_t *net;
    r2_oob_loop_t *oob;
    rank_t ranks[RANKS];
    _Atomic int stop;
    _Atomic unsigned wrong;
} job_t;

typedef struct app {
    rank_t *rank; /* borrowed */
    uint32_t thread;
    r2_prng_t prng;   /* its own */
    r2_prng_t shared; /* the same on all ranks */
    r2_comm_t *comm;
    uint32_t incarnation;
    int64_t *in, *out; /* owned */
} app_t;

static void quiet(void *arg, int level, const char *line)
{
    (void) arg;
    if (level <= R2_LOG_ERROR) {
        fprintf(stderr, "%s\n", line);
    }
}

static void nap(unsigned us)
{
    struct timespec pause = {0, (long) us * 1000};

    nanosleep(&pause, NULL);
}

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
    if (0 == atomic_fetch_add(&app->rank->job->wrong, 1)) {
        fprintf(stderr, "rank %u thread %u: %s is wrong at %zu\n", app->rank->idx, app->thread,
                what, i);
    }
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
        nap((unsigned) r2_prng_below(&app->prng, app->rank->job->plan.away_us));
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
    if (R2_OK != r2_comm_create(app->rank->ctx, 7 + app->thread, ranks, RANKS,
                                (int32_t) app->rank->idx, &app->comm)) {
        abort();
    }
    for (size_t i = 0; i < COUNT_MAX; ++i) {
        app->in[i] = value(app, app->rank->idx, i);
    }
}

static void *app_main(void *arg)
{
    app_t *app = arg;
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
    return NULL;
}

/* NICs go down and come back, never both of a rank. */
static void *weather_main(void *arg)
{
    job_t *job = arg;
    r2_prng_t prng;

    r2_prng_seed(&prng, 5);
    while (0 == atomic_load(&job->stop)) {
        r2_ctx_t *ctx = job->ranks[r2_prng_below(&prng, RANKS)].ctx;

        nap(2000);
        r2_ctx_rail_event(ctx, 1, false);
        nap(1000);
        r2_ctx_rail_event(ctx, 1, true);
    }
    return NULL;
}

static void *driver_main(void *arg)
{
    job_t *job = arg;

    while (0 == atomic_load(&job->stop)) {
        for (uint32_t i = 0; i < RANKS; ++i) {
            r2_ctx_drive(job->ranks[i].ctx, R2_DRIVE_SERVICE);
        }
        nap(500);
    }
    return NULL;
}

static void rank_up(job_t *job, uint32_t idx)
{
    rank_t *rank = &job->ranks[idx];
    r2_ctx_parts_t parts = {.clock = r2_clock_system(), .nic_count = RAILS};
    r2_ctx_config_t config = {.params = &rank->params, .log = quiet};
    char text[256] = "";

    rank->job = job;
    rank->idx = idx;
    r2_params_init(&rank->params);
    rank->params.takeover_us = 1000;
    rank->params.heal_min_ms = 10;
    rank->params.heal_max_ms = 20;
    rank->params.failure_timeout_ms = 2000; /* a loaded machine is not a broken lane */
    rank->params.verbose = 0;
    for (uint32_t i = 0; i < RAILS; ++i) {
        parts.nics[i] = (r2_nic_t){.name = "lo",
                                   .ifindex = 1,
                                   .ipv4 = htonl(INADDR_LOOPBACK),
                                   .prefix_bits = 8,
                                   .carrier = true};
    }
    parts.tp = thread_net_rank(job->net);
    assert_int_equal(r2_hello_tcp_create(parts.clock, &rank->log, &rank->hello), R2_OK);
    parts.hello = rank->hello;
    parts.oob = r2_oob_loop_rank(job->oob, idx);
    parts.host_id = job->plan.same_host ? 1 : idx / 2 + 1; /* ranks 0, 1 and 2, 3 share memory */
    snprintf(parts.host_name, sizeof(parts.host_name), "h%u", idx / 2);
    parts.first_seq = UINT64_MAX - 500;
    if (R2_OK != r2_ctx_assemble(&config, &parts, &rank->ctx, text, sizeof(text))) {
        fail_msg("%s", text);
    }
    assert_int_equal(r2_service_create(rank->ctx, NULL, &rank->ctx->service), R2_OK);
}

static void rank_down(rank_t *rank, uint64_t *takeovers, uint64_t *failed)
{
    pthread_mutex_lock(&rank->ctx->lock);
    rank->ctx->net.ending = true;
    pthread_mutex_unlock(&rank->ctx->lock);
    r2_service_destroy(rank->ctx->service);
    *takeovers += rank->ctx->counters.service_takeovers;
    *failed += rank->ctx->counters.lanes_failed;
    r2_ctx_dismantle(rank->ctx);
    r2_hello_tcp_destroy(&rank->hello);
}

static void run_apps(job_t *job)
{
    pthread_t threads[RANKS][THREADS], weather, driver;
    static app_t apps[RANKS][THREADS];

    if (job->plan.weather) {
        assert_int_equal(pthread_create(&weather, NULL, weather_main, job), 0);
    }
    if (job->plan.second_driver) {
        assert_int_equal(pthread_create(&driver, NULL, driver_main, job), 0);
    }
    for (uint32_t r = 0; r < RANKS; ++r) {
        for (uint32_t t = 0; t < THREADS; ++t) {
            app_t *app = &apps[r][t];

            *app = (app_t){.rank = &job->ranks[r], .thread = t};
            app->in = malloc(COUNT_MAX * sizeof(int64_t));
            app->out = malloc(RANKS * COUNT_MAX * sizeof(int64_t));
            r2_prng_seed(&app->prng, 100 * r + t);
            r2_prng_seed(&app->shared, t);
            assert_int_equal(pthread_create(&threads[r][t], NULL, app_main, app), 0);
        }
    }
    for (uint32_t r = 0; r < RANKS; ++r) {
        for (uint32_t t = 0; t < THREADS; ++t) {
            pthread_join(threads[r][t], NULL);
            free(apps[r][t].in);
            free(apps[r][t].out);
        }
    }
    atomic_store(&job->stop, 1);
    if (job->plan.weather) {
        pthread_join(weather, NULL);
    }
    if (job->plan.second_driver) {
        pthread_join(driver, NULL);
    }
}

static void run_job(plan_t plan)
{
    static const uint8_t key[R2_JOB_KEY_BYTES] = "threads";
    job_t *job = calloc(1, sizeof(*job));
    uint64_t takeovers = 0, failed = 0;

    job->plan = plan;
    job->net = thread_net_create();
    job->oob = r2_oob_loop_create(RANKS, key);
    for (uint32_t i = 0; i < RANKS; ++i) {
        rank_up(job, i);
    }
    run_apps(job);
    assert_int_equal(atomic_load(&job->wrong), 0);
    for (uint32_t i = 0; i < RANKS; ++i) {
        rank_down(&job->ranks[i], &takeovers, &failed);
    }
    assert_true(takeovers > 0); /* the service thread had its part */
    assert_true(failed > 0 || !plan.weather);
    thread_net_destroy(job->net);
    r2_oob_loop_destroy(job->oob);
    free(job);
}

static void rails(void **state)
{
    (void) state;
    run_job((plan_t){.rounds = 40, .away_us = 4000});
}

static void one_host(void **state)
{
    (void) state;
    run_job((plan_t){.rounds = 40, .away_us = 4000, .same_host = true});
}

static void nics_go_down(void **state)
{
    (void) state;
    run_job((plan_t){.rounds = 40, .away_us = 4000, .weather = true});
}

static void another_driver(void **state)
{
    (void) state;
    run_job((plan_t){.rounds = 30, .away_us = 8000, .second_driver = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rails),
        cmocka_unit_test(one_host),
        cmocka_unit_test(nics_go_down),
        cmocka_unit_test(another_driver),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
