/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Two hosts that share no healthy rail go on by way of a third: simulated jobs, one test per
 * promise.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/util.h"
#include "scenario.h"

#define LAB   "hosts 4; rails 4; rate 12500000; latency 50us;"
#define THREE "hosts 3; rails 4; rate 12500000; latency 50us;"
/* Silent: no rail leads from one host to the other any more. */
#define CUT(at, a, b)                                                                          \
    "at " at " cut " a " " b " rail0; at " at " cut " a " " b " rail1; at " at " cut " a " " b \
    " rail2; at " at " cut " a " " b " rail3;"
/* Its plan does not depend on the map, as a ring would: relaying goes on while the path is
 * broken. */
#define GATHER(times) \
    "param allgather_algorithm direct; coll allgather bytes3 200000 times=" times ";"
#define REDUCE(times) "coll allreduce f64 200000 times=" times ";"

/* Runs a scenario with several seeds; results have to be those of a run without relay. */
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

static void assert_relayed(const scenario_result_t *result)
{
    assert_int_equal(0, result->errors);
    assert_true(result->counters.relay_lanes >= 2);
    assert_true(result->counters.relayed_packets > 0);
    assert_true(result->counters.relayed_bytes > 0);
}

static void healthy_jobs_relay_nothing(void **state)
{
    scenario_result_t result = run_seeds(LAB REDUCE("5"), 3);

    (void) state;
    assert_int_equal(0, result.counters.relay_lanes);
    assert_int_equal(0, result.counters.relayed_packets);
}

static void no_common_rail_from_the_start(void **state)
{
    static const char *const programs[] = {THREE CUT("0ms", "h0", "h1") REDUCE("3"),
                                           LAB CUT("0ms", "h1", "h2") REDUCE("3"),
                                           LAB CUT("0ms", "h1",
                                                   "h2") "coll allgather bytes3 3000 times=5;"
                                           "coll barrier i64 0; coll reduce-scatter f64 500",
                                           "hosts 3; rails 1; coll allreduce i64 1 times=20;"
                                           "at 0ms cut h0 h1 rail0"};

    (void) state;
    for (size_t i = 0; i < r2_array_count(programs); ++i) {
        scenario_result_t result = run_seeds(programs[i], 3);

        assert_relayed(&result);
    }
}

/* h0 keeps only rail 0, and h1 loses rail 0 in the middle of an allreduce. */
static void common_rail_lost_in_an_allreduce(void **state)
{
#define KEEP_ONE "at 0ms down h0 rail1; at 0ms down h0 rail2; at 0ms down h0 rail3;"
    static const char *const programs[] = {LAB KEEP_ONE REDUCE("3") "at 60ms down h1 rail0",
                                           THREE KEEP_ONE REDUCE("3") "at 60ms down h1 rail0",
                                           THREE KEEP_ONE REDUCE("3") "at 60ms drop h1 rail0"};

    (void) state;
    for (size_t i = 0; i < r2_array_count(programs); ++i) {
        scenario_result_t result = run_seeds(programs[i], 3);

        assert_relayed(&result);
    }
}

static void results_have_the_same_bits(void **state)
{
    scenario_result_t healthy = run_seeds(LAB REDUCE("5"), 1);
    scenario_result_t relayed = run_seeds(LAB REDUCE("5") CUT("5ms", "h0", "h1"), 1);

    (void) state;
    assert_relayed(&relayed);
    assert_true(healthy.digest == relayed.digest);
}

static void cut_in_the_middle(void **state)
{
    scenario_result_t result = run_seeds(LAB REDUCE("5") CUT("5ms", "h0", "h1"), 5);

    (void) state;
    assert_relayed(&result);
    /* once doubt has turned into a relay lane, it stays: no lane of it is given up */
    assert_true(result.counters.relay_lanes <= 4);
}

static void relay_host_loses_rails(void **state)
{
    scenario_result_t result;

    (void) state;
    result = run_seeds(
        LAB REDUCE("9")
            CUT("5ms", "h0",
                "h1") "at 300ms down h2 rail0; at 310ms drop h2 rail1; at 350ms down h3 rail1",
        5);
    assert_relayed(&result);
    result = run_seeds(LAB REDUCE("9") CUT("5ms", "h0", "h1") CUT("400ms", "h1", "h2"), 5);
    assert_relayed(&result);
}

static void relay_process_stops(void **state)
{
    scenario_result_t result = run_seeds(
        LAB REDUCE("9")
            CUT("5ms", "h0",
                "h1") "at 400ms stop r2; at 1400ms cont r2; at 1500ms stop r3; at 2s cont r3",
        5);

    (void) state;
    assert_relayed(&result);
}

static void relay_process_dies(void **state)
{
    scenario_result_t result =
        run_seeds("expect any;" LAB
                  "comm sub cid=7 ranks=0,1,3; coll allreduce f64 200000 on=sub times=9;" CUT(
                      "5ms", "h0", "h1") "at 400ms kill r2",
                  5);

    (void) state;
    assert_true(result.counters.relay_lanes >= 2);
    assert_true(result.time_ns < 8 * R2_NS_PER_S);
}

static void a_stopped_peer_is_waited_for(void **state)
{
    scenario_result_t result =
        run_seeds("param no_path_timeout_ms 1000;" THREE GATHER("12")
                      CUT("0ms", "h0", "h1") "at 700ms stop r1; at 5s cont r1",
                  6);

    (void) state;
    assert_relayed(&result);
}

/* All its lanes are up, its kernel answers: there is nothing to go round. */
static void a_stopped_peer_is_not_gone_round(void **state)
{
    scenario_result_t result = run_seeds(THREE REDUCE("5") "at 20ms stop r1; at 8s cont r1", 3);

    (void) state;
    assert_int_equal(0, result.errors);
    assert_int_equal(0, result.counters.relay_lanes);
    assert_int_equal(0, result.counters.relayed_packets);
    assert_true(result.counters.probes_sent > 0); /* it was looked into */
}

static void computing_process_relays(void **state)
{
    scenario_result_t result =
        run_seeds(THREE "comm sub cid=7 ranks=0,1; compute 3s rank=2;"
                        "coll allreduce f64 200000 on=sub times=3;" CUT("0ms", "h0", "h1"),
                  3);

    (void) state;
    assert_relayed(&result);
    assert_true(result.time_ns < 4 * R2_NS_PER_S);
}

static void two_pairs_through_one_host(void **state)
{
    scenario_result_t result;

    (void) state;
    result = run_seeds(LAB REDUCE("5") CUT("5ms", "h0", "h1") CUT("5ms", "h2", "h3"), 5);
    assert_relayed(&result);
    result = run_seeds("hosts 5; rails 4; rate 12500000;" REDUCE("5") CUT("5ms", "h0", "h1")
                           CUT("5ms", "h2", "h3") CUT("5ms", "h0", "h2"),
                       3);
    assert_relayed(&result);
}

/* Direct lanes come back, and relay lanes go. */
static void heals(void **state)
{
    scenario_result_t result =
        run_seeds(LAB GATHER("120") CUT("5ms", "h0", "h1") "at 500ms heal", 3);
    scenario_result_t for_ever = run_seeds(LAB GATHER("120") CUT("5ms", "h0", "h1"), 1);

    (void) state;
    assert_relayed(&result);
    assert_true(2 * result.counters.relayed_bytes < for_ever.counters.relayed_bytes);
}

static void several_ranks_per_host(void **state)
{
    scenario_result_t result =
        run_seeds("hosts 3; ppn 2; rails 4; rate 12500000;" CUT(
                      "2ms", "h0",
                      "h1") "coll allreduce f64 50000 times=5; coll allgather bytes3 3000 times=3",
                  3);

    (void) state;
    assert_relayed(&result);
}

/* Memory of the process that relays is bounded: what it has no room for is refused, and told. */
static void overload_is_refused(void **state)
{
    scenario_result_t result = run_seeds(
        "expect any; param no_path_timeout_ms 1000; param relay_bytes 0;" THREE REDUCE("2")
            CUT("0ms", "h0", "h1"),
        3);

    (void) state;
    assert_true(result.errors > 0);
    assert_true(result.counters.relay_refused > 0);
    assert_int_equal(0, result.counters.relayed_packets);
    result = run_seeds("param relay_bytes 6000000; param relay_window_bytes 16384;"
                       "hosts 5; rails 4; rate 12500000;" REDUCE("2") CUT("0ms", "h0", "h1")
                           CUT("0ms", "h2", "h3"),
                       3);
    assert_relayed(&result);
}

/* Nobody can ask it but the third host: what that one knows is believed, and long before the
 * timeout. */
/* Virtual time that the last `calls` of a job take. */
static uint64_t time_of_last_calls(const char *job, uint32_t calls)
{
    char source[4000];
    uint64_t ns[2];

    for (uint32_t i = 0; i < 2; ++i) {
        snprintf(source, sizeof(source), "%s coll allreduce f64 200000 times=%u", job,
                 1 + i * calls);
        ns[i] = run_seeds(source, 1).time_ns;
    }
    return ns[1] - ns[0];
}

/* Two pairs of hosts have no common rail, and rails beside them are at 3 %: they do not carry
 * frames. */
static void slow_rails_do_not_hold_up_frames(void **state)
{
#define CUT_PAIRS LAB CUT("0ms", "h0", "h1") CUT("0ms", "h2", "h3")
#define SLOW_RAIL "at 0ms rate h0 rail1 375000;"
    const uint64_t usual_ns = time_of_last_calls(CUT_PAIRS, 4);

    (void) state;
    assert_true(time_of_last_calls(CUT_PAIRS SLOW_RAIL, 4) < 2 * usual_ns);
    assert_true(time_of_last_calls(CUT_PAIRS SLOW_RAIL "at 0ms rate h2 rail3 375000;", 4) <
                3 * usual_ns);
}

/*
 * The same, and a rail of the host that relays loses packets now and then: what it carried goes
 * again, far behind what has passed it.
 */
static void frames_overtake_no_more_than_can_be_acknowledged(void **state)
{
#define DROP_FOR_A_WHILE(from, to) "at " from " drop h3 rail2; at " to " pass h3 rail2;"
    static const char job[] = LAB "coll allreduce f64 200000 times=3;" CUT("200ms", "h0", "h1") CUT(
        "200ms", "h0",
        "h2") "at 0ms rate h2 rail0 375000; at 0ms rate h3 rail0 375000;" DROP_FOR_A_WHILE("174ms",
                                                                                           "424ms")
        DROP_FOR_A_WHILE("674ms", "924ms") DROP_FOR_A_WHILE("1174ms", "1424ms")
            DROP_FOR_A_WHILE("1674ms", "1924ms") DROP_FOR_A_WHILE("2174ms", "2424ms")
                DROP_FOR_A_WHILE("2674ms", "2924ms") DROP_FOR_A_WHILE("3174ms", "3424ms");
    char source[2048];

    (void) state;
    for (uint32_t seed = 13; seed < 17; ++seed) {
        snprintf(source, sizeof(source), "seed %u; %s", seed, job);
        assert_true(time_of_last_calls(source, 5) < 2 * R2_NS_PER_S);
    }
}

static void a_killed_peer_behind_a_relay_is_named(void **state)
{
    scenario_result_t result =
        run_seeds("expect any;" THREE
                  "comm sub cid=7 ranks=0,1; coll allreduce f64 200000 on=sub times=90;" CUT(
                      "5ms", "h0", "h1") "at 900ms kill r1",
                  3);

    (void) state;
    assert_true(result.counters.relay_lanes >= 2);
    assert_int_equal(R2_ERR_PEER_GONE, result.error);
    assert_true(result.time_ns < 3 * R2_NS_PER_S);
    assert_non_null(strstr(result.said, "rank 1 on h1: its process is gone"));
    assert_non_null(strstr(result.said, "  rail 2 ("));
    assert_non_null(strstr(result.said, "no path between the two hosts"));
}

static void no_path_names_rails_and_verdicts(void **state)
{
    scenario_result_t result = run_seeds(
        "expect any; param no_path_timeout_ms 1000; param relay_bytes 0;" THREE REDUCE("9")
            CUT("40ms", "h0", "h1"),
        3);

    (void) state;
    assert_int_equal(R2_ERR_NO_PATH, result.error);
    assert_non_null(strstr(result.said, "no path"));
    assert_non_null(strstr(result.said, "  rail 0 ("));
    assert_non_null(strstr(result.said, "  rail 3 ("));
    assert_non_null(strstr(result.said, "of h1: "));
    assert_non_null(strstr(result.said, "no path between the two hosts"));
}

static void two_hosts_have_no_third(void **state)
{
    scenario_result_t result =
        run_seeds("expect any; param no_path_timeout_ms 1000; hosts 2; ppn 2; rails 4;" REDUCE("2")
                      CUT("0ms", "h0", "h1"),
                  3);

    (void) state;
    assert_true(result.errors > 0);
    assert_int_equal(0, result.counters.relay_lanes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(healthy_jobs_relay_nothing),
        cmocka_unit_test(no_common_rail_from_the_start),
        cmocka_unit_test(common_rail_lost_in_an_allreduce),
        cmocka_unit_test(results_have_the_same_bits),
        cmocka_unit_test(cut_in_the_middle),
        cmocka_unit_test(relay_host_loses_rails),
        cmocka_unit_test(relay_process_stops),
        cmocka_unit_test(relay_process_dies),
        cmocka_unit_test(a_stopped_peer_is_waited_for),
        cmocka_unit_test(a_stopped_peer_is_not_gone_round),
        cmocka_unit_test(computing_process_relays),
        cmocka_unit_test(two_pairs_through_one_host),
        cmocka_unit_test(heals),
        cmocka_unit_test(several_ranks_per_host),
        cmocka_unit_test(overload_is_refused),
        cmocka_unit_test(two_hosts_have_no_third),
        cmocka_unit_test(slow_rails_do_not_hold_up_frames),
        cmocka_unit_test(frames_overtake_no_more_than_can_be_acknowledged),
        cmocka_unit_test(a_killed_peer_behind_a_relay_is_named),
        cmocka_unit_test(no_path_names_rails_and_verdicts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
