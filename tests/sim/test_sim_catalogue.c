/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The catalogue of faults on simulated machines: F1 to F13 by name (docs/tests.md), at each moment
 * of a job.
 */
#include "r2_config.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/util.h"
#include "scenario.h"

#define LAB "hosts 4; rails 4; rate 12500000; latency 50us; jitter 20us;"

/*
 * 24 calls of 0.48 MB, about 15 ms each; all ranks compute from 0.2 to 0.5 s. What is over after
 * the last call is the end: ranks drive until nobody needs them.
 */
#define JOB                                                                                      \
    LAB "coll allreduce f64 60000 times=4; coll allgather i64 9000 times=4; coll barrier i64 0;" \
        "compute 300ms; coll reduce-scatter f64 15000 times=4; coll bcast bytes3 99000 times=4;" \
        "coll allreduce i64 60000 times=8;"

/* While lanes open, first chunks, in a call, between calls, late. */
static const char *const moments[] = {"0ms", "70us", "400us", "3ms", "23ms", "311ms", "700ms"};

static scenario_result_t run(const char *source)
{
    scenario_result_t result;

    assert_true(scenario_check(source, &result));
    return result;
}

/* What was computed, whatever happened. */
static uint64_t healthy_digest(void)
{
    return run(JOB).digest;
}

/* Runs the job once for each moment with one fault, repaired after a while; %s in both: its time.
 * */
static void at_each_moment(const char *fault, const char *extra)
{
    uint64_t digest = healthy_digest();
    char source[2048];

    for (size_t i = 0; i < r2_array_count(moments); ++i) {
        scenario_result_t result;

        snprintf(source, sizeof(source), JOB "%s at %s %s; at 6s heal", extra, moments[i], fault);
        result = run(source);
        assert_int_equal(0, result.errors);
        assert_int_equal(digest, result.digest);
    }
}

static void F1_link_down_at_any_moment(void **state)
{
    (void) state;
    at_each_moment("down h1 rail2", "");
}

static void F2_silent_drop_at_any_moment(void **state)
{
    (void) state;
    at_each_moment("drop h1 rail2", "");
    at_each_moment("drop-in h2 rail0", "");
    at_each_moment("drop-out h0 rail3", "");
}

static void F3_random_loss(void **state)
{
    static const char *const losses[] = {"0.1", "1", "10"};
    uint64_t digest = healthy_digest();
    char source[2048];

    (void) state;
    for (size_t i = 0; i < r2_array_count(losses); ++i) {
        snprintf(source, sizeof(source), JOB "at 0ms loss h1 rail2 %s; at 0ms loss h3 rail0 %s",
                 losses[i], losses[i]);
        assert_int_equal(digest, run(source).digest);
    }
}

static void F4_slow_rail_restored(void **state)
{
    static const uint32_t rates[] = {6250000, 1250000, 125000};
    uint64_t digest = healthy_digest();
    char source[2048];

    (void) state;
    for (size_t i = 0; i < r2_array_count(rates); ++i) {
        snprintf(source, sizeof(source),
                 JOB "at 20ms rate h1 rail2 %u; at 900ms rate h1 rail2 12500000", rates[i]);
        assert_int_equal(digest, run(source).digest);
    }
}

/*
 * At a hundredth of its rate nothing crosses a rail while it is looked at, probes in its queues
 * neither: it is taken for dead once. When it is back it is asked for longer, so it is found to be
 * slow instead of dead again and again.
 */
/* How often faults hit something is a matter of chance: the middle one of so many seeds counts. */
#define DRAWS 3

static int compare_counts(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static uint64_t median_of(uint64_t *values, size_t count)
{
    qsort(values, count, sizeof(values[0]), compare_counts);
    return values[count / 2];
}

static uint64_t median(uint64_t values[DRAWS])
{
    return median_of(values, DRAWS);
}

/* A rail this slow is taken for dead first; how often it comes back before it is known as slow is a
 * matter of chance, too. */
static void F4_rail_at_one_percent(void **state)
{
    uint64_t changes[5];

    (void) state;
    for (uint32_t seed = 1; seed <= r2_array_count(changes); ++seed) {
        char source[512];
        scenario_result_t result;

        snprintf(source, sizeof(source),
                 LAB "seed %u; probe-loss 100; at 300ms rate h1 rail2 125000; coll allreduce f64 "
                     "1000000 times=20; expect-map h1 rail2 1-2 at 4s; "
                     "expect-map h1 rail2 1-2 at 5500ms",
                 seed);
        result = run(source);
        assert_in_range(result.time_ns, 5500 * R2_NS_PER_MS, 10 * R2_NS_PER_S);
        changes[seed - 1] = result.counters.map_changes;
        assert_in_range(changes[seed - 1], 4, 40);
    }
    assert_in_range(median_of(changes, r2_array_count(changes)), 4,
                    12); /* four ranks: dead, back, slow */
}

/* A job that computes from time to time, so that it lasts about as long as the rail flaps. */
static scenario_result_t flaps_of(uint32_t seed, uint64_t period_ms, uint32_t count,
                                  const char *fault, const char *repair)
{
    static char source[32768];
    size_t used = (size_t) snprintf(source, sizeof(source), LAB "seed %u;", seed);

    for (uint32_t i = 0; i < 20; ++i) {
        used += (size_t) snprintf(source + used, sizeof(source) - used,
                                  "coll allreduce f64 60000 times=2; compute %" PRIu64 "ms;",
                                  period_ms * count / 20);
    }
    for (uint32_t i = 0; i < count; ++i) {
        used += (size_t) snprintf(source + used, sizeof(source) - used,
                                  "at %" PRIu64 "ms %s; at %" PRIu64 "ms %s;", 5 + i * period_ms,
                                  fault, 5 + i * period_ms + period_ms / 2, repair);
    }
    return run(source);
}

static scenario_result_t flaps(uint64_t period_ms, uint32_t count, const char *fault,
                               const char *repair)
{
    return flaps_of(0, period_ms, count, fault, repair);
}

/*
 * A rail that is up half of the time, 100 times. Undamped, each of its 6 lane ends opens in each
 * flap: 600. Lanes were opened whenever the carrier came back, quarantine or not. (Drops of 25 ms
 * are too short to be noticed, and in 250 ms no lane is given up: it is not used.)
 */
static void F5_flaps_are_damped(void **state)
{
    static const struct {
        uint64_t period_ms;
        uint32_t opened_max;
    } cases[] = {{50, 120}, {500, 200}};

    (void) state;
    for (size_t i = 0; i < r2_array_count(cases); ++i) {
        scenario_result_t down = flaps(cases[i].period_ms, 100, "down h1 rail2", "up h1 rail2");
        scenario_result_t drop = flaps(cases[i].period_ms, 100, "drop h1 rail2", "pass h1 rail2");

        assert_int_equal(down.digest, drop.digest);
        assert_true(down.counters.lanes_failed > 0);
        assert_true(cases[i].period_ms < 100 || drop.counters.map_changes > 0);
        assert_in_range(down.counters.lanes_healed, 0, cases[i].opened_max);
        assert_in_range(drop.counters.lanes_healed, 0, cases[i].opened_max);
    }
}

/*
 * In the longest of the catalogue, outages of 2.5 s, quarantines of 0.2 s to 26 s let eight or nine
 * heals count. The peers know of no quarantine: they called as soon as the rail came back, and all
 * 6 lane ends opened in each flap.
 */
static void F5_slow_flaps(void **state)
{
    static const struct {
        const char *fault, *repair;
        uint64_t least, most; /* medians of nine seeds were 30, 36 and 15 */
    } ways[] = {{"down h1 rail2", "up h1 rail2", 24, 36},
                {"drop h1 rail2", "pass h1 rail2", 24, 48},
                {"cut h0 h1 rail2", "join h0 h1 rail2", 10, 20}}; /* 2 lane ends */
    uint64_t digests[DRAWS] = {0};

    (void) state;
    for (size_t i = 0; i < r2_array_count(ways); ++i) {
        uint64_t failed[DRAWS];

        for (uint32_t seed = 0; seed < DRAWS; ++seed) {
            scenario_result_t result = flaps_of(seed, 5000, 20, ways[i].fault, ways[i].repair);

            digests[seed] = 0 == i ? result.digest : digests[seed];
            assert_int_equal(digests[seed], result.digest);
            failed[seed] = result.counters.lanes_failed;
        }
        assert_in_range(median(failed), ways[i].least, ways[i].most);
    }
}

/* Where a flapping rail is the only path it is used at once: nobody waits for the end of a
 * quarantine (1.6 s). */
static void F5_flaps_of_the_only_path(void **state)
{
    static char source[8192];
    size_t used = (size_t) snprintf(
        source, sizeof(source),
        "hosts 3; rails 2; rate 12500000; latency 50us; jitter 20us;"
        "at 400ms down h1 rail0; coll allreduce f64 20000 times=30; compute 100ms;");

    (void) state;
    for (uint32_t i = 0; i < 8; ++i) {
        used += (size_t) snprintf(source + used, sizeof(source) - used,
                                  "at %ums down h1 rail1; at %ums up h1 rail1; compute 600ms;"
                                  "coll allreduce f64 20000 times=2;",
                                  500 + i * 700, 600 + i * 700);
    }
    assert_in_range(run(source).counters.fault_gap_ns, 1, R2_NS_PER_S / 2);
}

static void F6_several_rails(void **state)
{
    static const char *const faults[] = {
        "at 23ms down h1 rail0; at 23ms drop h1 rail3",
        "at 23ms drop h0 rail1; at 23ms drop h2 rail1",
        "at 23ms down h0 rail0; at 23ms drop h1 rail1; at 23ms down h2 rail2; at 23ms drop h3 "
        "rail3",
        "at 23ms drop h0 rail3; at 23ms drop h1 rail3; at 23ms drop h2 rail3; at 23ms drop h3 "
        "rail3",
        "at 23ms down h3 rail0; at 23ms drop h3 rail1; at 23ms down h3 rail2"};
    uint64_t digest = healthy_digest();
    char source[2048];

    (void) state;
    for (size_t i = 0; i < r2_array_count(faults); ++i) {
        snprintf(source, sizeof(source), JOB "%s", faults[i]);
        assert_int_equal(digest, run(source).digest);
    }
}

/* The next failure comes 0 to 200 ms after the first: before, in and after its repair. */
static void F7_failure_in_a_recovery(void **state)
{
    static const uint32_t later_ms[] = {0, 1, 20, 55, 90, 200};
    uint64_t digest = healthy_digest();
    char source[2048];

    (void) state;
    for (size_t i = 0; i < r2_array_count(later_ms); ++i) {
        uint32_t second_ms = 23 + later_ms[i];

        snprintf(source, sizeof(source),
                 JOB "at 23ms drop h1 rail0; at %ums down h1 rail1; at %ums drop h1 rail2;"
                     "at %ums pass h1 rail0; at 900ms heal",
                 second_ms, second_ms + later_ms[i], second_ms + later_ms[i] + 30);
        assert_int_equal(digest, run(source).digest);
    }
}

#define ALL_RAILS(verb, host)                                                                  \
    "at 23ms " verb " " host " rail0; at 23ms " verb " " host " rail1; at 23ms " verb " " host \
    " rail2;"                                                                                  \
    "at 23ms " verb " " host " rail3;"

static void F8_all_rails_of_a_host(void **state)
{
    uint64_t digest = healthy_digest();
    scenario_result_t result;

    (void) state;
    assert_int_equal(digest, run(JOB ALL_RAILS("down", "h2") "at 2s heal").digest);
    assert_int_equal(digest, run(JOB ALL_RAILS("drop", "h2") "at 2s heal").digest);
    result = run(JOB "expect any; param no_path_timeout_ms 2000;" ALL_RAILS("drop", "h2"));
    assert_true(result.errors >= 4);
    assert_true(result.time_ns < 10 * R2_NS_PER_S);
}

static void F9_dead_or_unequal_from_the_start(void **state)
{
    uint64_t digest = healthy_digest();

    (void) state;
    assert_int_equal(
        digest,
        run(JOB "at 0ms down h1 rail0; at 0ms drop h2 rail1; at 0ms drop-in h3 rail2").digest);
    assert_int_equal(digest, run("rails-of h2 2;" JOB).digest);
    assert_int_equal(digest,
                     run(JOB "at 0ms rate h1 rail0 2500000; at 0ms rate h3 rail3 25000000").digest);
}

static void F10_processes_away(void **state)
{
    uint64_t digest = healthy_digest();
    scenario_result_t result;

    (void) state;
    result = run(JOB "at 23ms stop r1; at 1023ms cont r1; at 2s stop r0; at 32s cont r0");
    assert_int_equal(digest, result.digest);
    assert_int_equal(0, result.counters.lanes_failed);
    result = run(
        LAB
        "coll allreduce f64 60000 times=3; compute 30s rank=1; coll allreduce f64 60000 times=3");
    assert_int_equal(0, result.counters.lanes_failed);
    result = run(JOB "expect any; at 23ms kill r1");
    assert_true(result.errors >= 3);
    assert_true(result.time_ns < R2_NS_PER_S);
}

/* Each way in which notices may fail, with F1 and F2: bits, and what every rank knows at the
 * end. */
static void F11_notices_in_trouble(void **state)
{
    static const char *const troubles[] = {
        "post-loss 100;", "post-loss 50;", "post-twice 80; post-delay 30ms;", "post-delay 400ms;",
        "at 0ms post-cut h0; at 0ms post-cut h1; at 0ms post-cut h2; at 0ms post-cut h3;"};
    static const char *const faults[] = {"down", "drop", "drop-in", "drop-out"};
    uint64_t digest = healthy_digest();
    char source[2048];

    (void) state;
    for (size_t i = 0; i < r2_array_count(troubles); ++i) {
        for (size_t k = 0; k < r2_array_count(faults); ++k) {
            snprintf(source, sizeof(source),
                     "%s" JOB "at 23ms %s h1 rail2; at 3s heal; expect-map h1 rail2 16 at 9s;"
                     "expect-map h0 rail2 16 at 9s; compute 10s",
                     troubles[i], faults[k]);
            assert_int_equal(digest, run(source).digest);
        }
    }
}

/* All that was under way is delivered when the path is back, long after others carried it. */
static void F13_ghosts_after_the_heal(void **state)
{
    static const char *const ways[] = {"drop", "drop-in", "drop-out"};
    char source[2048];

    (void) state;
    for (size_t i = 0; i < r2_array_count(ways); ++i) {
        uint64_t ghosts[DRAWS];

        /* each rail comes back when its lanes are given up */
        for (uint32_t seed = 0; seed < DRAWS; ++seed) {
            snprintf(source, sizeof(source),
                     LAB "seed %u; keep 100; coll allreduce i64 30000 times=400;"
                         "at 20ms %s h1 rail0; at 1800ms pass h1 rail0;"
                         "at 1820ms %s h1 rail1; at 3600ms heal",
                     seed, ways[i], ways[i]);
            ghosts[seed] = run(source).sim.ghosts;
        }
        assert_true(median(ghosts) > 0);
    }
}

/* An argument picks tests: a pattern with * and ?. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(F1_link_down_at_any_moment),
        cmocka_unit_test(F2_silent_drop_at_any_moment),
        cmocka_unit_test(F3_random_loss),
        cmocka_unit_test(F4_slow_rail_restored),
        cmocka_unit_test(F4_rail_at_one_percent),
        cmocka_unit_test(F5_flaps_are_damped),
        cmocka_unit_test(F5_slow_flaps),
        cmocka_unit_test(F5_flaps_of_the_only_path),
        cmocka_unit_test(F6_several_rails),
        cmocka_unit_test(F7_failure_in_a_recovery),
        cmocka_unit_test(F8_all_rails_of_a_host),
        cmocka_unit_test(F9_dead_or_unequal_from_the_start),
        cmocka_unit_test(F10_processes_away),
        cmocka_unit_test(F11_notices_in_trouble),
        cmocka_unit_test(F13_ghosts_after_the_heal),
    };

    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
