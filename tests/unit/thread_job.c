/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Ranks as threads of one process (thread_job.h).
 */
#include "r2_config.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "r2/prng.h"
#include "thread_job.h"

#define THREADS_MAX 8

static void say_errors(void *arg, int level, const char *line)
{
    (void) arg;
    if (level <= R2_LOG_ERROR) {
        fprintf(stderr, "%s\n", line);
    }
}

void thread_nap(unsigned us)
{
    struct timespec pause = {0, (long) us * 1000};

    nanosleep(&pause, NULL);
}

void thread_wrong(thread_rank_t *rank, uint32_t thread, const char *what, size_t at)
{
    if (0 == atomic_fetch_add(&rank->job->wrong, 1)) {
        fprintf(stderr, "rank %u thread %u: %s is wrong at %zu\n", rank->idx, thread, what, at);
    }
}

/* NICs go down and come back, never both of a rank. */
static void *weather_main(void *arg)
{
    thread_job_t *job = arg;
    r2_prng_t prng;

    r2_prng_seed(&prng, 5);
    while (0 == atomic_load(&job->stop)) {
        r2_nic_watch_t *watch = &job->ranks[r2_prng_below(&prng, RANKS)].watch;

        thread_nap(2000);
        r2_nic_watch_sim_set(watch, 1, false);
        thread_nap(1000);
        r2_nic_watch_sim_set(watch, 1, true);
    }
    return NULL;
}

static void *driver_main(void *arg)
{
    thread_job_t *job = arg;

    while (0 == atomic_load(&job->stop)) {
        for (uint32_t i = 0; i < RANKS; ++i) {
            r2_ctx_drive(job->ranks[i].ctx, R2_DRIVE_SERVICE);
        }
        thread_nap(500);
    }
    return NULL;
}

static void rank_up(thread_job_t *job, uint32_t idx)
{
    thread_rank_t *rank = &job->ranks[idx];
    r2_ctx_parts_t parts = {.clock = r2_clock_system(), .nic_count = RAILS};
    r2_ctx_config_t config = {.params = &rank->params, .log = say_errors};
    char text[256] = "";

    rank->job = job;
    rank->idx = idx;
    r2_params_init(&rank->params);
    rank->params.takeover_us = 1000;
    rank->params.heal_min_ms = 10;
    rank->params.heal_max_ms = 20;
    rank->params.failure_timeout_ms = 2000; /* a loaded machine is not a broken lane */
    rank->params.verbose = 0;
    rank->params.local = job->plan.local;
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
    assert_int_equal(r2_nic_watch_sim_create(parts.nics, RAILS, true, &rank->watch), R2_OK);
    parts.watch = rank->watch;
    parts.oob = r2_oob_loop_rank(job->oob, idx);
    parts.host_id = job->plan.same_host ? 1 : idx / 2 + 1; /* ranks 0, 1 and 2, 3 share memory */
    snprintf(parts.host_name, sizeof(parts.host_name), "h%u", idx / 2);
    parts.local = true;
    parts.first_seq = UINT64_MAX - 500;
    if (R2_OK != r2_ctx_assemble(&config, &parts, &rank->ctx, text, sizeof(text))) {
        fail_msg("%s", text);
    }
    if (NULL != job->use->up) {
        job->use->up(rank);
    }
    assert_int_equal(r2_service_create(rank->ctx, &rank->ctx->service), R2_OK);
}

static void rank_down(thread_rank_t *rank, uint64_t *takeovers, uint64_t *failed, uint64_t *local)
{
    pthread_mutex_lock(&rank->ctx->core.lock);
    rank->ctx->core.net.ending = true;
    pthread_mutex_unlock(&rank->ctx->core.lock);
    r2_service_destroy(rank->ctx->service);
    if (NULL != rank->job->use->down) {
        rank->job->use->down(rank);
    }
    *takeovers += rank->ctx->core.counters.service_takeovers;
    *failed += rank->ctx->core.counters.lanes_failed;
    *local += rank->ctx->core.counters.local_messages;
    r2_ctx_dismantle(rank->ctx);
    r2_hello_tcp_destroy(&rank->hello);
    r2_nic_watch_sim_destroy(&rank->watch);
}

/** An application thread. */
typedef struct thread_app {
    thread_rank_t *rank; /* borrowed */
    uint32_t thread;
    pthread_t handle;
} thread_app_t;

static void *app_main(void *arg)
{
    const thread_app_t *app = arg;

    app->rank->job->use->app(app->rank, app->thread);
    return NULL;
}

static void run_apps(thread_job_t *job)
{
    thread_app_t apps[RANKS][THREADS_MAX];
    pthread_t weather, driver;

    if (job->plan.weather) {
        assert_int_equal(pthread_create(&weather, NULL, weather_main, job), 0);
    }
    if (job->plan.second_driver) {
        assert_int_equal(pthread_create(&driver, NULL, driver_main, job), 0);
    }
    for (uint32_t r = 0; r < RANKS; ++r) {
        for (uint32_t t = 0; t < job->use->threads; ++t) {
            apps[r][t] = (thread_app_t){.rank = &job->ranks[r], .thread = t};
            assert_int_equal(pthread_create(&apps[r][t].handle, NULL, app_main, &apps[r][t]), 0);
        }
    }
    for (uint32_t r = 0; r < RANKS; ++r) {
        for (uint32_t t = 0; t < job->use->threads; ++t) {
            pthread_join(apps[r][t].handle, NULL);
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

void thread_job_run(const thread_use_t *use, thread_plan_t plan)
{
    static const uint8_t key[R2_JOB_KEY_BYTES] = "threads";
    thread_job_t *job = calloc(1, sizeof(*job));
    uint64_t takeovers = 0, failed = 0, local = 0;

    assert_true(use->threads <= THREADS_MAX);
    job->plan = plan;
    job->use = use;
    job->net = thread_net_create();
    job->oob = r2_oob_loop_create(RANKS, key);
    for (uint32_t i = 0; i < RANKS; ++i) {
        rank_up(job, i);
    }
    run_apps(job);
    assert_int_equal(atomic_load(&job->wrong), 0);
    for (uint32_t i = 0; i < RANKS; ++i) {
        rank_down(&job->ranks[i], &takeovers, &failed, &local);
    }
    assert_true(takeovers > 0); /* the service thread had its part */
    assert_true(failed > 0 || !plan.weather);
    assert_int_equal(local > 0, plan.local);
    thread_net_destroy(job->net);
    r2_oob_loop_destroy(job->oob);
    free(job);
}

/** A test: what runs, and how. */
typedef struct thread_test {
    const thread_use_t *use;
    thread_plan_t plan;
} thread_test_t;

static void test_job(void **state)
{
    const thread_test_t *test = *state;

    thread_job_run(test->use, test->plan);
}

int thread_job_main(const thread_use_t *use, unsigned rounds)
{
    thread_test_t jobs[] = {
        {use, {.rounds = rounds, .away_us = 4000}},
        {use, {.rounds = rounds, .away_us = 4000, .same_host = true}},
        {use, {.rounds = rounds, .away_us = 4000, .same_host = true, .local = true}},
        {use, {.rounds = rounds, .away_us = 4000, .weather = true, .local = true}},
        {use, {.rounds = 3 * rounds / 4, .away_us = 8000, .second_driver = true}},
    };
    const struct CMUnitTest tests[] = {
        {"rails", test_job, NULL, NULL, &jobs[0]},
        {"one_host", test_job, NULL, NULL, &jobs[1]},
        {"mailboxes", test_job, NULL, NULL, &jobs[2]},
        {"nics_go_down", test_job, NULL, NULL, &jobs[3]},
        {"another_driver", test_job, NULL, NULL, &jobs[4]},
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
