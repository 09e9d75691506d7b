/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Messages, puts, gets and updates of several application threads of each rank, beside its service
 * thread. Made for ThreadSanitizer; every byte and every sum is checked.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctx/p2p_state.h"
#include "ctx/state.h"
#include "r2/prng.h"
#include "thread_job.h"

#define THREADS    3
#define SLOT_BYTES 70000 /* of a rank's memory, for each thread of each rank */
#define INLINE_MAX 100

/** What a rank has besides its context. */
typedef struct node {
    r2_p2p_t *p2p;   /* owned */
    uint8_t *memory; /* owned: RANKS * THREADS slots that others put to and get from */
    uint64_t sum;    /* others add to it */
    _Atomic unsigned received, expected, added;
} node_t;

/** An application thread. */
typedef struct app {
    thread_rank_t *rank; /* borrowed */
    uint32_t thread;
    r2_prng_t prng;
    uint8_t *sent, *got; /* owned: SLOT_BYTES each */
} app_t;

static _Atomic unsigned ended; /* application threads that start nothing more */

static node_t *node_of(const thread_rank_t *rank)
{
    return rank->own;
}

static uint8_t value(uint32_t rank, uint8_t id, size_t i)
{
    return (uint8_t) (rank + id + i);
}

static void received(void *arg, uint32_t from, uint8_t id, const void *data, size_t bytes)
{
    thread_rank_t *rank = arg;
    const uint8_t *at = data;

    for (size_t i = 0; i < bytes; ++i) {
        if (value(from, id, i) != at[i]) {
            thread_wrong(rank, THREADS, "message", i);
            break;
        }
    }
    atomic_fetch_add(&node_of(rank)->received, 1);
}

static void lost(void *arg, uint32_t from, r2_status_t status)
{
    thread_wrong(arg, THREADS, r2_status_string(status), from);
}

static void up(thread_rank_t *rank)
{
    const r2_p2p_handlers_t handlers = {received, lost, rank};
    node_t *node = calloc(1, sizeof(*node));

    rank->own = node;
    node->memory = calloc((size_t) RANKS * THREADS, SLOT_BYTES);
    assert_int_equal(r2_p2p_bind(rank->ctx, &handlers, &node->p2p), R2_OK);
    atomic_store(&ended, 0);
}

static void down(thread_rank_t *rank)
{
    node_t *node = rank->own;

    r2_p2p_unbind(node->p2p);
    assert_int_equal(node->sum, atomic_load(&node->added));
    free(node->memory);
    free(node);
}

static void op_done(r2_p2p_op_t *op, r2_status_t status)
{
    atomic_store((_Atomic int *) op->arg, (int) status);
}

/* Ends an operation that was begun with this status. */
static void finish(app_t *app, r2_status_t status, const _Atomic int *flag, const char *what)
{
    while (R2_IN_PROGRESS == status) {
        r2_ctx_progress(app->rank->ctx);
        status = (r2_status_t) atomic_load(flag);
    }
    if (R2_OK != status) {
        thread_wrong(app->rank, app->thread, what, (size_t) -status);
    }
}

static void one_send(app_t *app, uint32_t to, uint8_t id, size_t bytes)
{
    _Atomic int flag = R2_IN_PROGRESS;
    r2_p2p_op_t op = {.done = op_done, .arg = &flag};

    finish(app, r2_p2p_send(node_of(app->rank)->p2p, to, id, app->sent, bytes, &op), &flag, "send");
    atomic_fetch_add(&node_of(&app->rank->job->ranks[to])->expected, 1);
}

/* Copied, or refused. */
static void one_inline_send(app_t *app, uint32_t to, uint8_t id, size_t bytes)
{
    const r2_status_t status = r2_p2p_send(node_of(app->rank)->p2p, to, id, app->sent,
                                           r2_min(bytes, (size_t) INLINE_MAX), NULL);

    if (R2_OK == status) {
        atomic_fetch_add(&node_of(&app->rank->job->ranks[to])->expected, 1);
    } else if (R2_ERR_AGAIN != status) {
        thread_wrong(app->rank, app->thread, "inline send", (size_t) -status);
    }
}

static void one_put_and_get(app_t *app, uint32_t to, size_t bytes)
{
    const node_t *peer = node_of(&app->rank->job->ranks[to]);
    const size_t slot = (size_t) app->rank->idx * THREADS + app->thread;
    const uint64_t remote = (uint64_t) (uintptr_t) (peer->memory + slot * SLOT_BYTES);
    r2_p2p_t *p2p = node_of(app->rank)->p2p;
    _Atomic int put = R2_IN_PROGRESS, get = R2_IN_PROGRESS;
    r2_p2p_op_t put_op = {.done = op_done, .arg = &put}, get_op = {.done = op_done, .arg = &get};

    finish(app, r2_p2p_put(p2p, to, app->sent, remote, bytes, &put_op), &put, "put");
    memset(app->got, 0, bytes);
    finish(app, r2_p2p_get(p2p, to, app->got, remote, bytes, &get_op), &get, "get");
    if (0 != memcmp(app->sent, app->got, bytes)) {
        thread_wrong(app->rank, app->thread, "what was put", bytes);
    }
}

static void one_update(app_t *app, uint32_t to)
{
    const r2_p2p_update_t add = {R2_P2P_ADD, sizeof(uint64_t), 1, 0};
    node_t *peer = node_of(&app->rank->job->ranks[to]);
    _Atomic int flag = R2_IN_PROGRESS;
    r2_p2p_op_t op = {.done = op_done, .arg = &flag};
    uint64_t before;

    finish(app,
           r2_p2p_update(node_of(app->rank)->p2p, to, &before, (uint64_t) (uintptr_t) &peer->sum,
                         &add, &op),
           &flag, "update");
    atomic_fetch_add(&peer->added, 1);
}

static void one_round(app_t *app, uint8_t id)
{
    static const size_t lengths[] = {1, 100, 8192, 16384, 16385, SLOT_BYTES};
    const size_t bytes = lengths[r2_prng_below(&app->prng, r2_array_count(lengths))];
    const uint32_t to =
        (app->rank->idx + 1 + (uint32_t) r2_prng_below(&app->prng, RANKS - 1)) % RANKS;

    for (size_t i = 0; i < bytes; ++i) {
        app->sent[i] = value(app->rank->idx, id, i);
    }
    if (r2_prng_chance(&app->prng, 50000)) {
        thread_nap((unsigned) r2_prng_below(&app->prng, app->rank->job->plan.away_us));
    }
    switch (r2_prng_below(&app->prng, 4)) {
    case 0:
        one_send(app, to, id, bytes);
        break;
    case 1:
        one_inline_send(app, to, id, bytes);
        break;
    case 2:
        one_put_and_get(app, to, bytes);
        break;
    default:
        one_update(app, to);
        break;
    }
}

static bool all_here(const thread_job_t *job)
{
    bool here = RANKS * THREADS == atomic_load(&ended);

    for (uint32_t r = 0; here && r < RANKS; ++r) {
        const node_t *node = node_of(&job->ranks[r]);

        here = atomic_load(&node->received) == atomic_load(&node->expected);
    }
    return here;
}

static void app_main(thread_rank_t *rank, uint32_t thread)
{
    app_t app = {.rank = rank, .thread = thread};

    app.sent = malloc(SLOT_BYTES);
    app.got = malloc(SLOT_BYTES);
    r2_prng_seed(&app.prng, 100 * rank->idx + thread);
    for (uint32_t peer = 0; peer < RANKS; ++peer) {
        if (R2_OK != r2_p2p_reach(node_of(rank)->p2p, peer)) {
            thread_wrong(rank, thread, "reach", peer);
        }
    }
    for (unsigned round = 0; round < rank->job->plan.rounds; ++round) {
        one_round(&app, (uint8_t) round);
    }
    atomic_fetch_add(&ended, 1);
    while (!all_here(rank->job)) {
        r2_ctx_progress(rank->ctx);
    }
    free(app.sent);
    free(app.got);
}

/* The first message of rank 0, whose application then stays away: its service thread opens lanes
 * and sends. */
static void silent_sender(thread_rank_t *rank, uint32_t thread)
{
    const uint64_t until_ns = r2_now_ns(r2_clock_system()) + 20 * R2_NS_PER_S;
    thread_job_t *job = rank->job;
    unsigned here = 0;

    for (uint32_t to = 1; 0 == rank->idx && to < RANKS; ++to) {
        const uint8_t byte = value(0, 9, 0);

        if (R2_OK != r2_p2p_reach(node_of(rank)->p2p, to) ||
            R2_OK != r2_p2p_send(node_of(rank)->p2p, to, 9, &byte, 1, NULL)) {
            thread_wrong(rank, thread, "first send", to);
        }
    }
    if (0 != rank->idx && R2_OK != r2_p2p_reach(node_of(rank)->p2p, 0)) {
        thread_wrong(rank, thread, "reach", 0);
    }
    while (here < RANKS - 1 && r2_now_ns(r2_clock_system()) < until_ns) {
        if (0 == rank->idx) {
            thread_nap(1000);
        } else {
            r2_ctx_progress(rank->ctx);
        }
        here = 0;
        for (uint32_t to = 1; to < RANKS; ++to) {
            here += atomic_load(&node_of(&job->ranks[to])->received);
        }
    }
    if (RANKS - 1 != here) {
        thread_wrong(rank, thread, "message of one who is away", here);
    }
}

static void sender_stays_away(void **state)
{
    static const thread_use_t use = {.threads = 1, .up = up, .app = silent_sender, .down = down};

    (void) state;
    thread_job_run(&use, (thread_plan_t){.rounds = 1});
}

int main(void)
{
    static const thread_use_t use = {.threads = THREADS, .up = up, .app = app_main, .down = down};
    const struct CMUnitTest tests[] = {cmocka_unit_test(sender_stays_away)};
    const int failed = thread_job_main(&use, 80);

    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
