/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Processes that compute in the middle of collectives: what is sent to them meanwhile is bounded
 * (every simulated job checks that, harness_dump.c), nothing healthy is given up, and whom they bar
 * from nothing goes on.
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

/* A healthy job: no lane fails, no verdict, no error, and after the start no connect request. */
static scenario_result_t run_healthy(const char *text, uint32_t ranks, uint32_t rails)
{
    scenario_result_t result;

    assert_true(scenario_check(text, &result));
    assert_int_equal(0, result.errors);
    assert_int_equal(0, result.counters.lanes_failed);
    assert_int_equal(0, result.counters.ack_timeouts);
    assert_int_equal(0, result.counters.verdicts);
    assert_int_equal(0, result.counters.rx_malformed);
    /* one for each lane, or two that cross; a call is made anew if it is not connected soon */
    assert_in_range(result.counters.hellos_sent, 0, (uint64_t) 2 * ranks * (ranks - 1) * rails);
    return result;
}

/* Found in a job of 24 hosts: 5 MB came for a root that computed, which stopped reading at 4. */
static void computing_root_of_a_gather(void **state)
{
    (void) state;
    run_healthy("hosts 24; rails 1; rate 125000000; latency 50us; jitter 20us; coll barrier i64 0;"
                "compute 90s rank=0; coll gather i64 4000 times=12 root=0",
                24, 1);
}

/*
 * All ranks are in the middle of collectives of every kind, and one of them computes for an hour.
 * Then once more with blocking calls, which it is late for.
 */
static void an_hour(uint32_t hosts, uint32_t ppn, uint64_t count, uint32_t late)
{
    static const char *const kinds[] = {
        "allreduce f64",      "allgather bytes3", "allgatherv i64", "reduce-scatter f64",
        "reduce-scatter-block i64", "bcast i64",  "barrier i64",    "reduce f64",
        "scan f64",           "exscan i64",       "gather i64",     "gatherv i64",
        "scatter i64",        "scatterv bytes3",  "alltoall i64",   "alltoallv i64",
        "alltoallw i64",      "neighbour-collective i64"};
    char text[4096];
    size_t used;

    used = (size_t) snprintf(
        text, sizeof(text),
        "hosts %u; ppn %u; rails 2; rate 125000000; latency 50us; coll barrier i64 0;", hosts, ppn);
    for (size_t i = 0; i < r2_array_count(kinds); ++i) {
        used += (size_t) snprintf(text + used, sizeof(text) - used, "coll %s %" PRIu64 " nb;",
                                  kinds[i], 0 == strncmp(kinds[i], "barrier", 7) ? 0 : count);
    }
    used += (size_t) snprintf(text + used, sizeof(text) - used,
                              "compute 3600s rank=%u; wait; compute 90s rank=%u;"
                              "coll gather i64 %" PRIu64
                              " root=%u times=3; coll allreduce f64 %" PRIu64,
                              late, late, count, late, count);
    assert_true(used < sizeof(text));
    run_healthy(text, hosts * ppn, 2);
}

static void an_hour_of_two(void **state)
{
    (void) state;
    an_hour(2, 1, 1, 1);
    an_hour(2, 1, 8000, 0);
    an_hour(2, 1, 100000, 1);
}

static void an_hour_of_four(void **state)
{
    (void) state;
    an_hour(2, 2, 1, 3);
    an_hour(4, 1, 15000, 1);
}

static void an_hour_of_sixteen(void **state)
{
    (void) state;
    an_hour(8, 2, 1, 0);
    an_hour(4, 4, 700, 5);
}

static void an_hour_of_twenty_four(void **state)
{
    (void) state;
    an_hour(12, 2, 100, 23);
}

/* A rank that computes holds what credit lets come, not what others have: of one peer, and of
 * all. */
static void what_comes_early_is_bounded(void **state)
{
    /* 2.4 MB from each of 7 peers, to rows that are posted */
    static const char *const program = "hosts 8; rails 2; rate 125000000; latency 50us; param "
                                       "chunk_max_bytes 16384; param unexpected_bytes 65536;"
                                       "coll barrier i64 0; coll gather i64 300000 root=0 nb; "
                                       "compute 20s rank=0; wait; param credit_bytes ";
    char text[1024];

    (void) state;
    for (uint64_t bytes = 65536; bytes <= 8388608; bytes *= 8) {
        scenario_result_t result;
        uint64_t eager = 7 * 65536, least = 7 * 2 * 16384;

        snprintf(text, sizeof(text), "%s%" PRIu64, program, bytes);
        result = run_healthy(text, 8, 2);
        assert_in_range(result.counters.unexpected_bytes_max, r2_min(bytes, least),
                        eager + bytes + least);
    }
}

/* Peers that come one after the other, so that each could have its whole quarter: all have the
 * sum. */
static void the_sum_is_bounded(void **state)
{
    scenario_result_t result;
    uint64_t eager = 7 * 16384, least = 7 * 2 * 8192;
    char text[2048];
    size_t used;

    (void) state;
    used = (size_t) snprintf(
        text, sizeof(text),
        "hosts 8; rails 2; rate 125000000; latency 50us; param chunk_max_bytes 8192;"
        "param unexpected_bytes 16384; param credit_bytes 1048576; param gather_algorithm linear;"
        "coll barrier i64 0;");
    for (uint32_t i = 1; i < 8; ++i) {
        used += (size_t) snprintf(text + used, sizeof(text) - used,
                                  "comm c%u cid=%u ranks=0,%u; compute %ums rank=%u;"
                                  "coll gather i64 32768 root=0 on=c%u nb;",
                                  i, 10 + i, i, 200 * i, i, i);
    }
    used += (size_t) snprintf(text + used, sizeof(text) - used, "compute 20s rank=0; wait");
    assert_true(used < sizeof(text));
    result = run_healthy(text, 8, 2);
    assert_in_range(result.counters.unexpected_bytes_max, 524288, eager + 1048576 + least);
}

/* The least credit that there may be is slow, but enough for everything. */
static void least_credit(void **state)
{
    scenario_result_t result;

    (void) state;
    result =
        run_healthy("hosts 5; rails 3; param credit_bytes 65536; param chunk_max_bytes 131072; "
                    "param unexpected_bytes 1024;"
                    "coll allreduce f64 200000 times=2; coll alltoall i64 20000; coll allgather "
                    "bytes3 100000 nb;"
                    "coll gather i64 50000 nb; coll scatterv i64 50000 nb; compute 1s rank=2; wait",
                    5, 3);
    assert_in_range(result.time_ns, 0, 1500 * R2_NS_PER_MS); /* nobody waits for a timer to ask */
}

/*
 * Both ends begin with full queues, in which acknowledgements wait, too: no lane may take that for
 * its way. Before it knew better one end had half the window of the other, and a call took 1.28
 * times as long as its bytes need.
 */
static void first_calls_are_long(void **state)
{
    const uint64_t bytes = 1 << 20, bytes_per_s = 4 * 12500000;
    const uint64_t least_ns = bytes * R2_NS_PER_S / bytes_per_s;
    scenario_result_t result;

    (void) state;
    result =
        run_healthy("seed 1; hosts 2; rails 4; rate 12500000; latency 50us; coll allreduce f64 "
                    "131072 times=20",
                    2, 4);
    assert_int_equal(40, result.calls[R2_COLL_ALLREDUCE].count);
    assert_in_range(result.calls[R2_COLL_ALLREDUCE].ns / 40, least_ns, least_ns * 115 / 100);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computing_root_of_a_gather),
        cmocka_unit_test(an_hour_of_two),
        cmocka_unit_test(an_hour_of_four),
        cmocka_unit_test(an_hour_of_sixteen),
        cmocka_unit_test(an_hour_of_twenty_four),
        cmocka_unit_test(what_comes_early_is_bounded),
        cmocka_unit_test(the_sum_is_bounded),
        cmocka_unit_test(least_credit),
        cmocka_unit_test(first_calls_are_long),
    };

    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
