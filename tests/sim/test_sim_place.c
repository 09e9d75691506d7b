/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Simulated jobs whose messages are put where they belong: faults at many moments, with writes that
 * land late. The simulator fails a job in which one lands in memory that was given back.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/util.h"
#include "scenario.h"

/* What a lane has sent outlives it. About a second in all. */
#define LAB \
    "hosts 4; rails 4; rdma 4; keep 100; rate 12500000; latency 50us; jitter 20us; param put 1;"
#define JOB LAB "coll allreduce f64 1800000 times=2; coll bcast f64 300000;"

static const char *const moments[] = {"0ms", "30ms", "101ms", "250ms", "400ms", "520ms"};

/** What happened to puts, over all runs of a test. */
typedef struct sums {
    uint64_t placed, received, held_back, late, refused;
} sums_t;

static scenario_result_t run(const char *source, sums_t *sums)
{
    scenario_result_t result;

    assert_true(scenario_check(source, &result));
    assert_int_equal(result.errors, 0);
    sums->placed += result.counters.placed_bytes;
    sums->received += result.counters.rx_bytes;
    sums->held_back += result.counters.held_back;
    sums->late += result.sim.puts_late;
    sums->refused += result.sim.puts_refused;
    return result;
}

/* Runs the job with one fault at each moment, repaired after `heal`. */
static sums_t at_each_moment(const char *fault, const char *heal)
{
    static uint64_t digest; /* of the job without a fault, which each test compares with */
    sums_t sums = {0};
    char source[1024];

    if (0 == digest) {
        sums_t none = {0};

        digest = run(JOB, &none).digest;
    }
    for (size_t i = 0; i < r2_array_count(moments); ++i) {
        snprintf(source, sizeof(source), JOB "at %s %s; at %s heal", moments[i], fault, heal);
        assert_int_equal(digest, run(source, &sums).digest);
    }
    printf("# %s: %.2f of the bytes put, %lu receives held back, %lu puts late, %lu refused\n",
           fault, (double) sums.placed / (double) sums.received, (unsigned long) sums.held_back,
           (unsigned long) sums.late, (unsigned long) sums.refused);
    assert_true(sums.placed > sums.received / 3);
    return sums;
}

/* A rail that was silent delivers, when it is repaired, what its lanes had sent. */
static void silent_drop(void **state)
{
    sums_t sums, out;

    (void) state;
    sums = at_each_moment("drop h1 rail2", "900ms");
    assert_true(sums.held_back > 0 && sums.refused > 0);
    (void) at_each_moment("drop-in h2 rail0", "900ms");
    out = at_each_moment("drop-out h0 rail3", "900ms");
    assert_true(out.held_back > 0 && out.refused > 0);
}

static void link_down(void **state)
{
    (void) state;
    assert_true(at_each_moment("down h1 rail2", "900ms").refused > 0);
}

/* The transport says so at both ends, and what was sent comes nevertheless. */
static void endpoints_break(void **state)
{
    (void) state;
    (void) at_each_moment("break h1 rail2", "900ms");
}

/* A slow lane is sound: nothing that was put over it is sent again, and nobody waits for its
 * end. */
static void slow_rail(void **state)
{
    sums_t sums;

    (void) state;
    sums = at_each_moment("rate h1 rail2 3000000", "2s");
    assert_int_equal(sums.held_back, 0);
}

/* What was put while its process was stopped is there when it goes on. */
static void stopped_process(void **state)
{
    (void) state;
    for (size_t i = 0; i < r2_array_count(moments); ++i) {
        sums_t sums = {0};
        char source[1024];

        snprintf(source, sizeof(source), JOB "at %s stop r1; at 1500ms cont r1; expect healthy",
                 moments[i]);
        (void) run(source, &sums);
        assert_true(sums.placed > 0);
    }
}

/* A call that fails gives its memory back at once: what was put to it may come at any time. */
static void given_up(void **state)
{
    uint64_t lost = 0;
    char source[1024];

    (void) state;
    for (unsigned seed = 1; seed <= 6; ++seed) {
        scenario_result_t result;

        snprintf(source, sizeof(source),
                 "seed %u; hosts 2; rails 2; rdma 2; keep 100; rate 12500000; latency 50us; expect "
                 "any; param put 1; param no_path_timeout_ms 300; coll allreduce f64 1000000 "
                 "times=2; compute 5s; at 200ms drop h1 rail0; at %ums drop h1 rail1; at 4s "
                 "heal",
                 seed, 199 + seed);
        assert_true(scenario_check(source, &result));
        assert_true(result.errors > 0);
        lost += result.counters.put_bytes - result.sim.put_bytes;
    }
    assert_true(lost > 0);
}

/* A healthy job has no copies but of what travels before its receive is there, and is told so. */
static void healthy(void **state)
{
    sums_t sums = {0};
    scenario_result_t result;

    (void) state;
    result = run(LAB "coll allreduce f64 3000000 times=3; expect healthy", &sums);
    printf("# %.3f of the bytes put\n", (double) sums.placed / (double) sums.received);
    assert_true(sums.placed > sums.received / 100 * 82); /* fused receives are put, too */
    assert_int_equal(result.counters.put_bytes, sums.placed);
    assert_int_equal(sums.held_back, 0);
}

/* Who has puts off grants nothing; datagrams and TCP have none. */
static void off(void **state)
{
    static const char *const jobs[] = {
        "hosts 2; rails 2; rdma 2; coll allreduce f64 300000;",
        "hosts 2; rails 2; param put 1; coll allreduce f64 300000;",
        "hosts 2; rails 2; rdma 1; param put 1; coll allreduce f64 300000;"};
    sums_t sums = {0};

    (void) state;
    for (size_t i = 0; i < r2_array_count(jobs); ++i) {
        assert_int_equal(run(jobs[i], &sums).counters.grants, 0);
    }
    assert_int_equal(sums.placed, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(healthy),         cmocka_unit_test(off),
        cmocka_unit_test(silent_drop),     cmocka_unit_test(link_down),
        cmocka_unit_test(endpoints_break), cmocka_unit_test(slow_rail),
        cmocka_unit_test(stopped_process), cmocka_unit_test(given_up),
    };

    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
