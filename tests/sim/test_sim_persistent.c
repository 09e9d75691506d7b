/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Persistent collectives on simulated machines: starts in another order on each rank, with exact
 * results, while rails fail and ranks agree on new maps.
 */
#include "r2_config.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/util.h"
#include "scenario.h"

#define LAB "hosts 4; rails 4; rate 12500000; latency 50us; jitter 50us; "
#define REQUESTS                                                                    \
    "coll allreduce i64 4000 persistent; coll bcast i64 9000 persistent root=1;"    \
    "coll allgather bytes3 700 persistent; coll gather f64 3000 persistent root=0;" \
    "coll barrier i64 0 persistent; coll reduce-scatter matrix 900 persistent;"     \
    "coll alltoall i64 300 persistent; coll scan matrix 400 persistent in-place;"   \
    "coll allreduce f64 30000 persistent;"

static void format(char *text, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void format(char *text, size_t bytes, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    assert_in_range(vsnprintf(text, bytes, format, list), 1, bytes - 1);
    va_end(list);
}

static scenario_result_t run(const char *text)
{
    scenario_result_t result;

    assert_true(scenario_check(text, &result));
    return result;
}

static void any_order_of_starts(void **state)
{
    static const char *const machines[] = {LAB, "hosts 2; ppn 1; rails 1; jitter 80us; ",
                                           "hosts 3; ppn 2; rails 2; latency 20us; jitter 1ms; ",
                                           "hosts 5; rails 2; jitter 5us; first-seq 4294967290; "};
    char text[4096];

    (void) state;
    for (size_t i = 0; i < r2_array_count(machines); ++i) {
        for (uint32_t seed = 1; seed <= 6; ++seed) {
            format(text, sizeof(text),
                   "seed %u; %s expect healthy; %s start times=3; coll allreduce i64 500 times=4;"
                   "coll bcast i64 1 nb; start; %s start times=2; wait; close; coll barrier i64 0",
                   seed, machines[i], REQUESTS, REQUESTS);
            assert_int_equal(run(text).counters.map_syncs, 0);
        }
    }
}

/* Each rank starts at another place among the other calls; some are made before others are
 * started. */
static void starts_between_other_calls(void **state)
{
    char text[4096];

    (void) state;
    for (uint32_t seed = 1; seed <= 10; ++seed) {
        format(text, sizeof(text),
               "seed %u; %s expect healthy; comm a cid=3 ranks=3,1,0,2; coll allreduce i64 600 "
               "on=a persistent;"
               "%s start rank=0; coll allreduce i64 2000; start rank=2; coll bcast i64 100 on=a;"
               "coll allreduce f64 3000 nb; compute 3ms rank=1; start rank=3; coll barrier i64 0;"
               "coll scan i64 50 times=3; start rank=1; wait; free a; start; close; coll barrier "
               "i64 0",
               seed, LAB, REQUESTS);
        (void) run(text);
    }
}

/* A root is many starts ahead of ranks that compute; requests are closed where their peers have not
 * begun. */
static void ranks_that_are_ahead(void **state)
{
    char text[2048];

    (void) state;
    for (uint32_t seed = 1; seed <= 5; ++seed) {
        format(text, sizeof(text),
               "seed %u; %s coll bcast i64 40 persistent; coll gather i64 10 persistent root=3;"
               "coll scan i64 5 persistent; compute 200ms rank=2; start times=40; close;"
               "coll bcast i64 90 persistent; compute 150ms rank=1; start times=9; close; coll "
               "barrier i64 0",
               seed, LAB);
        (void) run(text);
    }
}

/* All that carry settle the new map for themselves; nobody plans from another one. */
static void a_rail_dies_in_between(void **state)
{
    static const char *const verbs[] = {"down", "drop", "drop-in"};
    uint64_t map_syncs = 0, epochs = 0;
    char text[4096];

    (void) state;
    for (uint32_t at_ms = 1; at_ms < 90; at_ms += 7) {
        scenario_result_t result;

        format(text, sizeof(text),
               "seed %u; %s %s start times=12; coll allreduce i64 900 times=6; start times=8; "
               "wait; close;"
               "coll barrier i64 0; at %ums %s h1 rail2; at %ums %s h3 rail0; at %ums heal",
               at_ms, LAB, REQUESTS, at_ms, verbs[at_ms % 3], at_ms + 23, verbs[(at_ms + 1) % 3],
               at_ms + 300);
        result = run(text);
        map_syncs += result.counters.map_syncs;
        epochs += result.counters.epochs;
    }
    assert_true(map_syncs > 500);
    assert_true(epochs > 200);
}

/*
 * Requests are made behind a call that begins with a merge: ranks 0 and 3 make them while it is
 * under way, 1 and 2, which talk to each other first, when it is over.
 */
#define BLOCK                                                                              \
    "coll allreduce i64 100; coll allreduce i64 300 nb; coll barrier i64 0 on=a times=12;" \
    "coll allreduce i64 20000 persistent; coll bcast bytes3 30000 root=3 persistent;"

static void made_while_ranks_agree(void **state)
{
    uint64_t map_syncs = 0;
    char text[4096];

    (void) state;
    for (uint32_t seed = 1; seed <= 24; ++seed) {
        scenario_result_t result;

        format(text, sizeof(text),
               "seed %u; %s comm a cid=9 ranks=1,2; at %uus down h%u rail1; at %uus down h%u rail3;"
               "at %uus down h%u rail0; at 400ms heal; %s %s %s %s %s %s %s %s %s %s start "
               "times=2; wait; close",
               seed, LAB, 300 * seed, seed % 4, 700 + 350 * seed, (seed + 1) % 4, 1500 + 400 * seed,
               (seed + 2) % 4, BLOCK, BLOCK, BLOCK, BLOCK, BLOCK, BLOCK, BLOCK, BLOCK, BLOCK,
               BLOCK);
        result = run(text);
        map_syncs += result.counters.map_syncs;
    }
    assert_true(map_syncs > 300);
}

static void other_arguments_are_a_mismatch(void **state)
{
    static const char *const calls[] = {"coll bcast i64 100 persistent astray=0;",
                                        "coll reduce i64 30000 persistent astray=0;"};
    char text[2048];

    (void) state;
    for (size_t i = 0; i < r2_array_count(calls); ++i) {
        scenario_result_t result;

        format(text, sizeof(text),
               "%s expect any; coll allreduce i64 10 persistent; %s start times=3; wait; coll "
               "barrier i64 0",
               LAB, calls[i]);
        result = run(text);
        assert_int_equal(result.error, R2_ERR_PLAN_MISMATCH);
        assert_true(result.time_ns < 10 * R2_NS_PER_S);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_of_starts),
        cmocka_unit_test(starts_between_other_calls),
        cmocka_unit_test(ranks_that_are_ahead),
        cmocka_unit_test(a_rail_dies_in_between),
        cmocka_unit_test(made_while_ranks_agree),
        cmocka_unit_test(other_arguments_are_a_mismatch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
