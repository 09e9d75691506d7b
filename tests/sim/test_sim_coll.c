/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Collectives on simulated machines under faults: one test per promise, one line per fault found.
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

/* Runs a scenario with several seeds. @return the result of the last. */
static scenario_result_t run_seeds(const char *text, uint32_t seeds)
{
    scenario_result_t result;
    char source[4096];

    for (uint32_t seed = 1; seed <= seeds; ++seed) {
        snprintf(source, sizeof(source), "seed %u\n%s", seed, text);
        assert_true(scenario_check(source, &result));
    }
    return result;
}

static scenario_result_t run_one(const char *text)
{
    return run_seeds(text, 1);
}

#define LAB "hosts 4; rails 4; rate 12500000; latency 50us;"
#define ALL_COLLECTIVES                                                                         \
    "coll allreduce i64 1; coll allreduce f64 3000; coll allreduce matrix 700 in-place;"        \
    "coll allgather bytes3 1000; coll allgatherv i64 300; coll allgatherv bytes3 999 in-place;" \
    "coll reduce-scatter f64 500; coll reduce-scatter matrix 100 in-place;"                     \
    "coll reduce-scatter-block i64 800; coll bcast bytes3 20000; coll barrier i64 0;"           \
    "coll allreduce i64 5000 nb; coll allgather f64 100 nb; coll bcast i64 0 nb; wait;"

static void every_layout(void **state)
{
    static const char *const layouts[] = {
        "hosts 1; ppn 1; rails 1;", "hosts 1; ppn 4; rails 2;", "hosts 2; ppn 1; rails 1;",
        "hosts 2; ppn 2; rails 2;", "hosts 3; ppn 1; rails 3;", "hosts 4; ppn 1; rails 4;",
        "hosts 5; ppn 1; rails 1;", "hosts 2; ppn 4; rails 4;", "hosts 8; ppn 2; rails 2;"};
    char text[2048];

    (void) state;
    for (size_t i = 0; i < r2_array_count(layouts); ++i) {
        scenario_result_t result;

        snprintf(text, sizeof(text), "%s %s", layouts[i], ALL_COLLECTIVES);
        result = run_one(text);
        assert_int_equal(0, result.counters.resent_chunks);
        assert_int_equal(0, result.counters.lanes_failed);
    }
}

/* Ranks of hosts, not equally many, not in blocks: the reference knows where they are, too. */
static void full_hosts(void **state)
{
    static const char *const layouts[] = {
        "hosts 3; ppn 3; rails 2; comm c cid=9 ranks=0,1,2,3,4,6;",
        "hosts 4; ppn 3; rails 4; comm c cid=9 ranks=9,0,3,1,4,2,6;",
        "hosts 2; ppn 4; rails 2; comm c cid=9 ranks=7,6,0,5,4;"};
    static const char *const faults[] = {"", "at 1ms down h1 rail0", "at 0ms drop h0 rail0"};
    char text[2048];

    (void) state;
    for (size_t i = 0; i < r2_array_count(layouts) * r2_array_count(faults); ++i) {
        snprintf(text, sizeof(text),
                 "%s coll allreduce f64 9000 on=c; coll allreduce f64 9000; coll allreduce f64 "
                 "30000 in-place;"
                 "coll allreduce matrix 9000 on=c; coll allreduce i64 20000 in-place on=c; coll "
                 "reduce f64 9000 on=c;"
                 "coll scan f64 3000 on=c; coll allreduce f64 4000 on=c times=3; %s",
                 layouts[i % r2_array_count(layouts)], faults[i / r2_array_count(layouts)]);
        run_one(text);
    }
}

static void sixty_four_ranks(void **state)
{
    (void) state;
    run_one("hosts 16; ppn 4; rails 2; coll allreduce i64 100; coll allgather i64 10;"
            "coll barrier i64 0; at 1ms down h3 rail0");
}

/* The bits of all results do not depend on faults. */
static void faults_do_not_change_bits(void **state)
{
    static const char *const faults[] = {
        "at 20ms down h1 rail0", "at 20ms drop h1 rail0; at 300ms heal",
        "at 5ms down h1 rail0; at 6ms down h2 rail1; at 7ms rate h0 rail3 1000000",
        "at 10ms drop-out h3 rail2; at 100ms pass h3 rail2; at 110ms drop-in h0 rail2"};
    const char *program = LAB "coll allreduce f64 100000 times=3; coll reduce-scatter f64 20000;";
    scenario_result_t healthy = run_one(program);
    char text[2048];

    (void) state;
    for (size_t i = 0; i < r2_array_count(faults); ++i) {
        scenario_result_t result;

        snprintf(text, sizeof(text), "%s %s", program, faults[i]);
        result = run_one(text);
        assert_int_equal(healthy.digest, result.digest);
        assert_true(result.counters.resent_chunks > 0);
    }
}

static void two_rails_of_one_host(void **state)
{
    scenario_result_t result = run_one(
        LAB "coll allreduce i64 200000 times=4; at 20ms down h1 rail0; at 25ms drop h1 rail2");

    (void) state;
    assert_true(result.counters.longest_gap_ns < 300 * R2_NS_PER_MS);
}

static void second_failure_hits_the_backup(void **state)
{
    (void) state;
    run_seeds(LAB
              "coll allreduce i64 100000 times=6; at 20ms down h1 rail0; at 20.5ms down h1 rail1;"
              "at 60ms drop h1 rail2; at 300ms up h1 rail0; at 301ms down h1 rail3;"
              "at 500ms heal",
              5);
}

static void whole_plane(void **state)
{
    (void) state;
    run_one(LAB "coll allreduce i64 200000 times=3; at 20ms down h0 rail1; at 20ms down h1 rail1;"
                "at 20ms down h2 rail1; at 20ms down h3 rail1");
}

static void different_rails_on_neighbours(void **state)
{
    (void) state;
    run_one(LAB "coll allreduce i64 200000 times=3; at 20ms down h0 rail0; at 20ms down h1 rail1;"
                "at 20ms down h2 rail2; at 20ms drop h3 rail3");
}

static void all_rails_of_a_host_heal(void **state)
{
    (void) state;
    run_seeds(LAB "coll allreduce i64 100000 times=5; at 20ms drop h2 rail0; at 20ms drop h2 rail1;"
                  "at 20ms drop h2 rail2; at 20ms drop h2 rail3; at 2s heal",
              3);
}

static void flapping(void **state)
{
    char text[8192];
    size_t used = 0;

    (void) state;
    used += (size_t) snprintf(text, sizeof(text), LAB "coll allreduce i64 50000 times=150;");
    for (uint32_t i = 0; i < 100; ++i) {
        used += (size_t) snprintf(text + used, sizeof(text) - used, "at %ums %s h1 rail0;",
                                  20 + 25 * i, 0 == i % 2 ? "down" : "up");
    }
    assert_true(used < 4096 - 16);
    run_one(text);
}

static void dead_from_the_start(void **state)
{
    scenario_result_t result;

    (void) state;
    result = run_one(
        LAB "coll allreduce i64 100000 times=60; at 0ms down h1 rail0; at 300ms up h1 rail0");
    assert_true(result.counters.lanes_up >= 2 * 6 * 4);
    run_one(LAB ALL_COLLECTIVES "at 0ms drop h1 rail0");
    run_one(LAB "rails-of h2 2;" ALL_COLLECTIVES);
}

static void unequal_rails(void **state)
{
    scenario_result_t result =
        run_one(LAB "coll allreduce i64 500000 times=4; at 0ms rate h1 rail0 1250000");

    (void) state;
    assert_int_equal(0, result.counters.lanes_failed);
}

static void stopped_process_is_no_failure(void **state)
{
    scenario_result_t result = run_one(LAB "coll allreduce i64 100000 times=4; at 20ms stop r1;"
                                           "at 30s cont r1");

    (void) state;
    assert_int_equal(0, result.counters.lanes_failed);
    assert_int_equal(0, result.errors);
}

static void computing_process_is_no_failure(void **state)
{
    scenario_result_t result = run_one(LAB "coll allreduce i64 50000; compute 30s rank=2;"
                                           "coll allreduce i64 50000; coll allgather i64 50000");

    (void) state;
    assert_int_equal(0, result.counters.lanes_failed);
}

static void returning_early_serves_the_others(void **state)
{
    (void) state;
    /* the root returns at once and computes; its data must be sent again without it */
    run_seeds(
        "hosts 3; rails 2; rate 12500000; coll barrier i64 0; coll bcast i64 900 times=5;"
        "compute 5s rank=0; coll barrier i64 0; at 1ms drop h0 rail0; at 1200us down h0 rail1;"
        "at 300ms up h0 rail1",
        10);
}

static void acknowledgements_lost(void **state)
{
    (void) state;
    run_seeds(
        LAB ALL_COLLECTIVES "coll allreduce i64 50000 times=3; rule drop 90 only=acks until=2s", 3);
}

static void duplicates_and_reordering(void **state)
{
    scenario_result_t result =
        run_seeds(LAB ALL_COLLECTIVES
                  "coll allreduce i64 50000 times=3; rule duplicate 20 delay=20ms until=3s;"
                  "rule delay 10 delay=5ms until=3s",
                  5);

    (void) state;
    assert_true(result.counters.rx_duplicates > 0);
}

static void budget_of_one_chunk(void **state)
{
    scenario_result_t result =
        run_seeds("hosts 4; rails 2; param chunk_max_bytes 8192; param unexpected_bytes 8192;"
                  "param eager_bytes 8192; compute 50ms rank=1;" ALL_COLLECTIVES
                  "at 2ms drop h1 rail0; at 200ms heal",
                  5);

    (void) state;
    assert_in_range(result.counters.unexpected_bytes_max, 0, 3 * 8192);
}

static void late_data_across_heals(void **state)
{
    scenario_result_t result =
        run_seeds(LAB "keep 100; coll allreduce i64 30000 times=250; at 20ms drop h1 rail0;"
                      "at 1500ms pass h1 rail0; at 1600ms drop h1 rail1; at 3100ms heal",
                  3);

    (void) state;
    assert_true(result.sim.ghosts > 0);
}

#define COMMUNICATORS                                                                             \
    "comm a cid=7 ranks=0,1,2; comm b cid=8 ranks=3,1; coll allreduce i64 500 on=a nb;"           \
    "coll allreduce i64 400 on=b nb; coll allreduce i64 300 nb; wait; free a;"                    \
    "comm a cid=7 ranks=0,1,2; coll allgather i64 200 on=a times=5; free a;"                      \
    "comm a cid=7 ranks=2,1,0; coll bcast i64 3000 on=a root=2; coll barrier i64 0 on=b; free b;" \
    "comm b cid=8 ranks=3,1; coll reduce-scatter-block f64 64 on=b; coll allreduce i64 90000;"

static void communicators_overlap_and_come_back(void **state)
{
    (void) state;
    run_one(LAB COMMUNICATORS);
    run_seeds(LAB COMMUNICATORS "at 200us drop h1 rail0; at 1ms down h0 rail2; at 400ms heal;"
                                "rule duplicate 10 delay=300ms",
              5);
}

static void counters_wrap(void **state)
{
    static const char *const starts[] = {"first-seq -1", "first-seq -20", "first-seq 4294967290",
                                         "first-seq -4294967297", "first-seq 9223372036854775800"};
    char text[2048];

    (void) state;
    for (size_t i = 0; i < r2_array_count(starts); ++i) {
        snprintf(text, sizeof(text),
                 "%s; %s %s at 500us drop h1 rail1; at 2ms down h0 rail0; at 400ms heal;"
                 "rule duplicate 10 delay=5ms until=1s",
                 starts[i], LAB, ALL_COLLECTIVES);
        run_seeds(text, 2);
    }
}

/* Every survivor gets an error soon, also those that never talk to the dead rank. */
static void killed_process_ends_all_soon(void **state)
{
    static const char *const programs[] = {
        "hosts 3; rails 2; coll allreduce i64 100 times=400;",
        "hosts 5; rails 2; coll allreduce i64 100 times=400;",
        "hosts 4; rails 2; coll allgather i64 20000 times=60;",
        "hosts 3; ppn 3; rails 2; coll bcast i64 1000 times=200; coll barrier i64 0;"};
    char text[512];

    (void) state;
    for (size_t i = 0; i < r2_array_count(programs); ++i) {
        scenario_result_t result;

        snprintf(text, sizeof(text), "expect any; %s at 1ms kill r1", programs[i]);
        result = run_seeds(text, 3);
        assert_true(result.errors > 0);
        assert_true(result.time_ns < 505 * R2_NS_PER_MS);
    }
}

/* Two ranks lose each other for good: an error everywhere within a bounded time, also without
 * traffic. */
static void no_path_is_an_error_for_all(void **state)
{
    static const char *const programs[] = {
        "hosts 2; rails 1; coll allreduce i64 100 times=500; at 5ms cut h0 h1 rail0",
        "hosts 2; rails 2; coll allreduce i64 9000 times=500; at 5ms down h0 rail0;"
        "at 5ms drop h1 rail1",
        "hosts 5; rails 1; param relay_bytes 0; coll allreduce i64 100 times=500;"
        "at 5ms cut h0 h1 rail0",
        "hosts 2; rails 1; coll bcast i64 100 times=50; compute 1s rank=0; coll barrier i64 0;"
        "at 5ms drop h0 rail0"};
    char text[512];

    (void) state;
    for (size_t i = 0; i < r2_array_count(programs); ++i) {
        scenario_result_t result;

        snprintf(text, sizeof(text), "expect any; param no_path_timeout_ms 2000; %s", programs[i]);
        result = run_seeds(text, 3);
        assert_true(result.errors > 0);
        assert_true(result.time_ns < 8 * R2_NS_PER_S);
    }
}

/* A process that only waits, or is stopped, is never taken for dead. */
static void timeouts_have_no_end(void **state)
{
    scenario_result_t result;

    (void) state;
    result = run_one("hosts 3; rails 2; param no_path_timeout_ms 1000; coll allreduce i64 100;"
                     "compute 20s rank=0; coll allreduce i64 100");
    assert_int_equal(0, result.counters.lanes_failed);
    result =
        run_one("hosts 3; rails 2; param no_path_timeout_ms 1000; coll allreduce i64 100 times=300;"
                "at 3ms stop r0; at 20s cont r0");
    assert_int_equal(0, result.counters.lanes_failed);
}

/* Every fault that a campaign found, as short as it became. */
static const struct {
    const char *what, *text;
    uint64_t gap_ms; /* limit for the longest gap; 0: none */
} found[] = {
    {"sleeping until a timer counted as absence, so silent lanes never expired; what was sent "
     "on "
     "a lane in doubt was not given to others",
     "hosts 3; ppn 2; rails 2; coll allreduce f64 20000 times=10; at 1ms drop h1 rail0;"
     "at 500ms heal",
     150},
    {"a packet lost on the only lane was never sent again",
     "seed 388; hosts 1; ppn 3; param ack_delay_us 457; param failure_timeout_ms 22;"
     "comm b cid=8 ranks=0,1,2; coll bcast f64 2; compute 8881us rank=0;"
     "coll allgather bytes3 1067 nb; compute 10096us rank=1; coll allreduce f64 51191 on=b;"
     "rule drop 26.46 only=acks until=1134978us; rule drop 1.61 only=control until=662871us",
     0},
    {"packets behind a gap wider than the acknowledgement's bits were held but never "
     "acknowledged",
     "hosts 1; ppn 3; param unexpected_bytes 31614; comm b cid=8 ranks=2,1;"
     "coll allreduce f64 39632 on=b nb; rule delay 1.34 delay=1208us until=2700605us",
     0},
    {"lost acknowledgements made round trips that bred timeouts of minutes",
     "seed 348; hosts 4; rails 4; rate 66011605; latency 13us; jitter 87us; batch 4;"
     "param chunk_min_bytes 1838; param unexpected_bytes 1024; param scratch_bytes 65536;"
     "coll reduce-scatter-block f64 1494; coll reduce-scatter-block matrix 37721 in-place;"
     "coll reduce-scatter i64 32 in-place; at 33294us drop h0 rail2; at 253131us pass h0 rail2;"
     "rule drop 26.46 only=acks until=1134978us; rule drop 1.61 only=control until=662871us",
     0},
    {"a peer that asked once a second restarted the timers of a dead lane each time",
     "seed 5190; hosts 3; param heal_min_ms 68; param failure_timeout_ms 120;"
     "param allreduce_algorithm ring; coll bcast i64 529 root=2 nb; coll bcast i64 3 root=1;"
     "coll reduce-scatter-block matrix 341; comm b cid=9 ranks=0,1,2;"
     "coll bcast f64 23 on=b root=1 nb; coll allreduce i64 359; at 49us down h1 rail0;"
     "at 1567us up h1 rail0; rule error 0.01 only=acks until=479328us;"
     "rule drop 15.36 until=232025us; rule fail 0.21 only=data until=68719us",
     0},
    {"a window full of what was lost held back the question that would have shown it, and who "
     "slept "
     "between its timers excused itself for ever",
     "hosts 3; rails 1; param heal_min_ms 910; compute 159431us rank=1;"
     "coll allreduce i64 49 times=16 in-place; coll allgather matrix 34111 in-place nb;"
     "rule delay 1.53 delay=29420us until=1287776us; rule break 0.49 until=113616us;"
     "at 3934711us heal",
     0},
    {"a ring chosen by name followed the rails and gave sums other bits when they failed",
     "seed 468; hosts 2; ppn 2; rails 3; rate 5894170; latency 64us; keep 50; retry 643ms; jitter "
     "18us;"
     "socket 497880; receive 98656; hello-loss 27; param copy_max_bytes 3799; param "
     "retransmit_bytes 167;"
     "param scratch_bytes 136239; param ack_delay_us 202; param allreduce_algorithm ring;"
     "param bcast_algorithm binomial; coll bcast matrix 30 on=world times=17 root=0 nb;"
     "compute 6453us rank=2; coll allreduce f64 1805 on=world times=1 nb;"
     "param no_path_timeout_ms 5000; at 792113us heal",
     0},
    {"copies on two dead lanes kept a chunk from the third, which was sound",
     "hosts 4; ppn 2; rails 4; rate 5047867; param copy_max_bytes 111; coll allreduce i64 20 "
     "times=26;"
     "coll allgatherv bytes3 37 in-place; at 6526us drop-out h2 rail3; at 7348us drop h2 rail0;"
     "at 7348us down h2 rail2; limit 20s",
     0},
};

static void found_before(void **state)
{
    (void) state;
    for (size_t i = 0; i < r2_array_count(found); ++i) {
        scenario_result_t result;

        if (!scenario_check(found[i].text, &result)) {
            fail_msg("again: %s", found[i].what);
        }
        if (0 != found[i].gap_ms &&
            result.counters.longest_gap_ns > found[i].gap_ms * R2_NS_PER_MS) {
            fail_msg("gap of %" PRIu64 " ns, again: %s", result.counters.longest_gap_ns,
                     found[i].what);
        }
    }
}

/* Ranks that take different ones for the root: who waits is told, who sends is, too. All get an
 * error, soon. */
static void different_roots_are_a_mismatch(void **state)
{
    static const char *const calls[] = {
        "coll bcast i64 100 astray=0",   /* all wait: their questions are answered */
        "coll bcast i64 30000 astray=0",
        "coll reduce i64 100 astray=0",  /* all send */
        "coll reduce i64 30000 astray=0",
    };
    char source[512];

    (void) state;
    for (size_t i = 0; i < r2_array_count(calls); ++i) {
        scenario_result_t result;

        snprintf(source, sizeof(source),
                 "hosts 2; rails 2; rate 12500000; latency 50us; jitter 20us; expect any; %s; coll "
                 "barrier i64 0",
                 calls[i]);
        assert_true(scenario_check(source, &result));
        assert_int_equal(result.error, R2_ERR_PLAN_MISMATCH);
        assert_true(result.errors >= 2);
        assert_true(result.time_ns < 10 * R2_NS_PER_S);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout),
        cmocka_unit_test(full_hosts),
        cmocka_unit_test(sixty_four_ranks),
        cmocka_unit_test(faults_do_not_change_bits),
        cmocka_unit_test(two_rails_of_one_host),
        cmocka_unit_test(second_failure_hits_the_backup),
        cmocka_unit_test(whole_plane),
        cmocka_unit_test(different_rails_on_neighbours),
        cmocka_unit_test(all_rails_of_a_host_heal),
        cmocka_unit_test(flapping),
        cmocka_unit_test(dead_from_the_start),
        cmocka_unit_test(unequal_rails),
        cmocka_unit_test(stopped_process_is_no_failure),
        cmocka_unit_test(computing_process_is_no_failure),
        cmocka_unit_test(returning_early_serves_the_others),
        cmocka_unit_test(acknowledgements_lost),
        cmocka_unit_test(duplicates_and_reordering),
        cmocka_unit_test(budget_of_one_chunk),
        cmocka_unit_test(late_data_across_heals),
        cmocka_unit_test(communicators_overlap_and_come_back),
        cmocka_unit_test(counters_wrap),
        cmocka_unit_test(killed_process_ends_all_soon),
        cmocka_unit_test(no_path_is_an_error_for_all),
        cmocka_unit_test(timeouts_have_no_end),
        cmocka_unit_test(found_before),
        cmocka_unit_test(different_roots_are_a_mismatch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
