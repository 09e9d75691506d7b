/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Who is gone, who is stopped, and where is no path: simulated jobs, one test per promise.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/util.h"
#include "scenario.h"

#define SEEDS  3
#define SHORT  "param no_path_timeout_ms 2000;"
#define LONG   "coll allreduce i64 100 times=100; compute 3s rank=1; coll allreduce i64 100;"
#define CALLS  "coll allreduce i64 100 times=400; coll allreduce i64 9000 times=3;"
#define CUT_01 "at 0ms cut h0 h1 rail0; at 0ms cut h0 h1 rail1;"

static scenario_result_t run_seed(uint32_t seed, const char *text)
{
    scenario_result_t result;
    char source[2048];

    snprintf(source, sizeof(source), "seed %u\n%s", seed, text);
    assert_true(scenario_check(source, &result));
    return result;
}

/* @return what the last seed gave; calls that fail have failed the test already. */
static scenario_result_t run(const char *text)
{
    scenario_result_t result;

    for (uint32_t seed = 1; seed <= SEEDS; ++seed) {
        result = run_seed(seed, text);
    }
    return result;
}

/* How a job ends; times count from its start, 0: not asked. */
typedef struct ends {
    r2_status_t error;            /* the first; R2_OK: any */
    uint64_t after_ns, before_ns; /* the first error */
    uint64_t all_before_ns;       /* everybody is through */
} ends_t;

/* With every seed. */
static void run_ends(const char *text, const ends_t *ends)
{
    char source[1024];

    snprintf(source, sizeof(source), "expect any; %s", text);
    for (uint32_t seed = 1; seed <= SEEDS; ++seed) {
        const scenario_result_t result = run_seed(seed, source);

        assert_true(result.errors > 0);
        assert_true(R2_OK == ends->error || result.error == ends->error);
        assert_true(result.first_error_ns > ends->after_ns);
        assert_true(0 == ends->before_ns || result.first_error_ns < ends->before_ns);
        assert_true(0 == ends->all_before_ns || result.time_ns < ends->all_before_ns);
    }
}

static void run_without_errors(const char *const *programs, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        const scenario_result_t result = run(programs[i]);

        assert_int_equal(0, result.errors);
    }
}

/* Nothing of it has ever answered but its kernel. */
static void stopped_before_lanes_were_opened(void **state)
{
    static const char *const programs[] = {
        "hosts 2; rails 2;" SHORT CALLS "at 0ms stop r1; at 30s cont r1",
        "hosts 3; rails 1;" SHORT CALLS "at 0ms stop r2; at 30s cont r2",
        "hosts 2; rails 2;" SHORT CALLS "at 120us stop r1; at 30s cont r1",
        "hosts 1; ppn 3; rails 1;" SHORT CALLS "at 0ms stop r1; at 30s cont r1",
        "hosts 2; ppn 2; rails 2; backlog 1;" SHORT CALLS "at 0ms stop r1; at 30s cont r1"};

    (void) state;
    run_without_errors(programs, r2_array_count(programs));
}

/*
 * Its service thread is the first that runs when it goes on, woken by what waits for it, and reads
 * no rail: that nothing is acknowledged since then proves nothing.
 */
static void goes_on_by_its_service_thread(void **state)
{
    static const char *const programs[] = {
        "hosts 4; rails 2;" SHORT CALLS "at 3ms stop r1; at 30s cont r1 woken",
        "hosts 3; rails 1;" SHORT CALLS CUT_01 "at 0ms stop r1; at 30s cont r1 woken",
        "hosts 3; rails 2;" SHORT CALLS "at 3ms cut h0 h1 rail0; at 3ms cut h0 h1 rail1;"
        "at 4ms stop r1; at 1s break h1 rail0; at 1s break h1 rail1; at 30s cont r1 woken",
        "hosts 4; rails 2; backlog 1;" SHORT CALLS CUT_01 "at 120us stop r1; at 1s break h1 rail0;"
        "at 1s break h1 rail1; at 60s cont r1 woken",
        "hosts 3; ppn 2; rails 2; backlog 1;" SHORT CALLS CUT_01
        "at 0ms stop r4; at 30s cont r4 woken"};

    (void) state;
    run_without_errors(programs, r2_array_count(programs));
}

/*
 * Rank 6 comes late, with another root: the communicator fails there and at the root. Those who
 * hear it from these two have what they wanted and have freed theirs. Rank 3 waits for the root,
 * which waits for it elsewhere: before it has anything of its message, and with a part.
 */
static void failed_where_others_have_freed(void **state)
{
    static const char *const jobs[] = {
        "compute 8s rank=3;",
        "at 0ms rate h3 rail0 20000; at 0ms rate h3 rail1 20000;"};
    char text[512];

    (void) state;
    for (uint32_t seed = 2; seed <= 5; ++seed) {
        for (size_t i = 0; i < r2_array_count(jobs); ++i) {
            scenario_result_t result;

            snprintf(text, sizeof(text),
                     "hosts 8; rails 2; comm a cid=7 ranks=0,1,2,3,4,5,6,7; comm b cid=8 ranks=0,3;"
                     "compute 4s rank=6; %s coll scatterv i64 300000 on=a root=0 astray=6;"
                     "coll allreduce i64 10 on=b; free a; free b; expect any; limit 60s",
                     jobs[i]);
            result = run_seed(seed, text);
            assert_int_equal(result.errors, 3);
            assert_int_equal(result.error, R2_ERR_PLAN_MISMATCH);
            assert_true(result.time_ns < 15 * R2_NS_PER_S);
        }
    }
}

/* Its lanes are fenced while it sleeps, and are not opened before it wakes up. */
static void fenced_while_stopped(void **state)
{
    static const char *const programs[] = {
        "hosts 2; rails 1;" SHORT CALLS "at 3ms stop r1; at 500ms down h0 rail0;"
        "at 900ms up h0 rail0; at 30s cont r1",
        "hosts 2; rails 2;" SHORT CALLS "at 3ms stop r1; at 500ms down h1 rail0;"
        "at 600ms down h1 rail1; at 900ms up h1 rail0; at 950ms up h1 rail1; at 30s cont r1",
        "hosts 4; rails 2;" SHORT CALLS "at 3ms stop r1; at 500ms break h1 rail0;"
        "at 500ms break h1 rail1; at 30s cont r1",
        "hosts 2; rails 2;" SHORT CALLS "at 3ms stop r1; at 1s break h1 rail0; at 1s break h1 "
                                        "rail1;"
        "at 3s down h0 rail0; at 4s up h0 rail0; at 6s drop h1 rail1; at 7s pass h1 rail1;"
        "at 30s cont r1"};

    (void) state;
    run_without_errors(programs, r2_array_count(programs));
}

/* Nobody can connect any more: the kernel drops what does not fit into the queue. */
static void full_queues(void **state)
{
    static const char *const programs[] = {
        "hosts 2; rails 1; backlog 1;" SHORT CALLS "at 3ms stop r1; at 60s cont r1",
        "hosts 8; rails 2; backlog 2;" SHORT CALLS "at 3ms stop r1; at 60s cont r1",
        "hosts 6; rails 2; backlog 1;" SHORT CALLS "at 3ms stop r1; at 500ms break h1 rail0;"
        "at 500ms break h1 rail1; at 30s cont r1",
        /* within a host no kernel has to be asked */
        "hosts 1; ppn 3; backlog 1; param no_path_timeout_ms 500;"
        "coll allreduce f64 20000 times=20; at 3ms stop r1; at 60s cont r1"};

    (void) state;
    run_without_errors(programs, r2_array_count(programs));
}

/* No rail leads to it from here: who relays says what it is like, or gets no answer either. */
static void stopped_behind_a_relay(void **state)
{
    static const char *const programs[] = {
        "hosts 3; rails 1;" SHORT CALLS CUT_01 "at 0ms stop r1; at 30s cont r1",
        "hosts 3; rails 2;" SHORT CALLS "at 3ms cut h0 h1 rail0; at 3ms cut h0 h1 rail1;"
        "at 4ms stop r1; at 1s break h1 rail0; at 1s break h1 rail1; at 30s cont r1",
        "hosts 4; rails 2; backlog 1;" SHORT CALLS CUT_01 "at 120us stop r1; at 1s break h1 rail0;"
        "at 1s break h1 rail1; at 60s cont r1",
        "hosts 3; ppn 2; rails 2; backlog 1;" SHORT CALLS CUT_01 "at 0ms stop r4; at 30s cont r4",
        /* who relays has nothing to do with it, and asks all the same */
        "hosts 3; rails 2;" SHORT "comm a cid=7 ranks=0,1; compute 100ms rank=0;"
        "coll allreduce i64 9000 on=a times=40; at 50ms cut h0 h1 rail0; at 50ms cut h0 h1 rail1;"
        "at 60ms stop r1; at 30s cont r1"};

    (void) state;
    run_without_errors(programs, r2_array_count(programs));
}

/* Nobody knows what the peer is like, but who could relay is only stopped. */
static void stopped_who_relays(void **state)
{
    static const char *const programs[] = {
        "hosts 3; rails 2;" SHORT CALLS CUT_01 "at 0ms stop r2; at 30s cont r2",
        "hosts 3; rails 2;" SHORT CALLS CUT_01 "at 200ms stop r2; at 1s break h2 rail0;"
        "at 1s break h2 rail1; at 30s cont r2",
        "hosts 3; rails 1;" SHORT CALLS CUT_01 "at 0ms stop r1; at 100us stop r2; at 30s cont r1;"
        "at 40s cont r2"};

    (void) state;
    run_without_errors(programs, r2_array_count(programs));
}

/* An hour of it costs little: one call waits at each that relays, asked now and then. */
static void stopped_behind_a_relay_for_long(void **state)
{
    const scenario_result_t result =
        run("hosts 4; rails 1;" SHORT CALLS CUT_01 "at 0ms stop r1; at 1s break h1 rail0;"
            "at 3600s cont r1");

    (void) state;
    assert_int_equal(0, result.errors);
    assert_true(result.counters.relay_refused < 3600 * 3);
    assert_true(result.counters.relayed_packets < 3000);
    assert_true(result.counters.probes_sent < 3600 * 20); /* most by the detector */
}

/* Nobody who could relay finds it stopped: it cannot be reached, or nobody may relay. */
static void limit_holds_where_nobody_reaches_it(void **state)
{
#define APART "at 500ms cut h0 h1 rail0; at 500ms cut h2 h1 rail0; at 500ms cut h3 h1 rail0;"
    static const struct {
        const char *program;
        uint64_t seconds; /* at most, from its last fault to the error */
    } cases[] = {{"hosts 4; rails 1;" SHORT CALLS "compute 1s;" CALLS APART, 4},
                 /* the same while it is stopped: what was known of it holds a while longer */
                 {"hosts 4; rails 1;" SHORT CALLS "compute 1s;" CALLS "at 400ms stop r1;" APART
                  "at 60s cont r1",
                  16},
                 {"hosts 3; rails 1; param relay_bytes 0;" SHORT CALLS CUT_01 "at 0ms stop r1;"
                  "at 60s cont r1",
                  4},
                 {"hosts 3; rails 1; param relay_bytes 0;" SHORT CALLS CUT_01 "at 0ms stop r1;"
                  "at 1s break h1 rail0; at 60s cont r1",
                  5}};

    (void) state;
    for (size_t i = 0; i < r2_array_count(cases); ++i) {
        run_ends(cases[i].program, &(ends_t){.error = R2_ERR_NO_PATH,
                                             .before_ns = (1 + cases[i].seconds) * R2_NS_PER_S});
    }
}

/* It ends while it is stopped, and only others can tell. */
static void a_dead_process_behind_a_relay_is_named(void **state)
{
    static const char *const programs[] = {
        "hosts 3; rails 1;" LONG CUT_01 "at 500ms stop r1; at 5s kill r1",
        "hosts 3; rails 1;" LONG CUT_01 "at 500ms stop r1; at 1s break h1 rail0; at 5s kill r1"};
    const ends_t ends = {R2_ERR_PEER_GONE, 5 * R2_NS_PER_S, 6 * R2_NS_PER_S, 0};

    (void) state;
    for (size_t i = 0; i < r2_array_count(programs); ++i) {
        run_ends(programs[i], &ends);
    }
}

#define HIDE(at, rail)                                                          \
    "at " at " refuse h0 " rail " probes; at " at " refuse h1 " rail " probes;" \
    "at " at " refuse h2 " rail " probes; at " at " refuse h3 " rail " probes;"

/* To probes its rail is dead: nothing new gets through. What stood before is asked itself. */
static void lanes_outlive_a_firewall(void **state)
{
    static const char *const programs[] = {
        "hosts 4; rails 2;" CALLS HIDE("3ms", "rail0") "at 4ms stop r1; at 30s cont r1",
        "hosts 4; ppn 2; rails 3;" CALLS "compute 3s rank=2;" CALLS HIDE("10ms", "rail1")
        HIDE("20ms", "rail2") "at 40ms stop r5; at 20s cont r5; at 50ms stop r1; at 8s cont r1",
        "hosts 4; rails 2; coll allreduce i64 9000 times=3; compute 100ms; coll bcast i64 10;"
        "compute 9s; coll alltoall i64 100 times=9; coll allreduce i64 9000 times=3;"
        HIDE("40ms", "rail1") "at 41ms stop r0; at 3s cont r0"};
    char text[1024];

    (void) state;
    for (size_t i = 0; i < r2_array_count(programs); ++i) {
        snprintf(text, sizeof(text), "expect healthy; %s", programs[i]);
        assert_int_equal(0, run(text).errors);
    }
}

/* The time that does count comes after the process was continued, or before. */
static void limit_holds_beside_a_stopped_process(void **state)
{
    (void) state;
    run_ends("hosts 2; rails 1;" SHORT CALLS "at 3ms stop r1; at 10s cut h0 h1 rail0;"
             "at 20s cont r1",
             &(ends_t){.error = R2_ERR_NO_PATH,
                       .after_ns = 10 * R2_NS_PER_S,
                       .all_before_ns = 24 * R2_NS_PER_S});
}

#define LIAR "at 5ms refuse h1 rail0; at 5ms refuse h0 rail0; at 6ms break h1 rail0;"

/* A firewall speaks for one rail, while others come and go. */
static void one_rail_that_refuses_proves_nothing(void **state)
{
    static const char *const programs[] = {
        "hosts 2; rails 2;" LIAR CALLS "compute 1s;" CALLS "at 1s down h0 rail1;"
        "at 1400ms up h0 rail1",
        "hosts 2; rails 2;" LIAR CALLS "compute 1s;" CALLS "at 1s drop h1 rail1;"
        "at 3s pass h1 rail1; at 5s down h1 rail1; at 8s up h1 rail1",
        "hosts 2; rails 2; at 0ms refuse h1 rail0;" CALLS "compute 1s;" CALLS
        "at 1s down h1 rail1; at 3s up h1 rail1; at 4s break h0 rail1",
        "hosts 3; rails 3;" LIAR CALLS "compute 1s;" CALLS "at 1s down h1 rail1;"
        "at 1s drop h1 rail2; at 4s heal",
        "hosts 2; rails 1; at 5ms refuse h1 rail0; at 6ms break h1 rail0; at 20ms refuse h0 rail0;"
        CALLS "at 3s accept h1 rail0"};

    (void) state;
    run_without_errors(programs, r2_array_count(programs));
}

/* Others say it in the map, once for each end, and plans go around it. */
static void a_rail_that_refuses_is_told(void **state)
{
    const scenario_result_t result =
        run("hosts 2; rails 2; allow-changes;" LIAR "coll allreduce i64 100 times=100;"
            "compute 5s; coll allreduce i64 9000 times=10; compute 5s; coll barrier i64 0;");

    (void) state;
    assert_int_equal(0, result.errors);
    assert_true(result.counters.map_changes >= 2);
    assert_true(result.counters.verdicts <= 8);
}

/* The end of a process is named soon, whatever else is broken. */
static void a_dead_process_is_named(void **state)
{
    static const char *const programs[] = {
        /* a rail that refused before, too */
        "hosts 2; rails 2;" LIAR LONG "at 2s kill r1",
        /* a rail of ours is down: out-of-band messages are refused */
        "hosts 2; rails 2;" LONG "at 100ms down h0 rail1; at 1s kill r1",
        /* a rail of the peer is silent */
        "hosts 2; rails 2;" LONG "at 100ms drop h1 rail1; at 1s kill r1",
        "hosts 3; rails 2;" LONG "at 100ms drop h1 rail1; at 1s kill r1",
        /* it was stopped before */
        "hosts 2; rails 2;" LONG "at 3ms stop r1; at 1500ms kill r1",
        "hosts 2; rails 2; backlog 1;" LONG "at 0ms stop r1; at 1500ms kill r1"};
    const ends_t ends = {.error = R2_ERR_PEER_GONE, .all_before_ns = 4 * R2_NS_PER_S};

    (void) state;
    for (size_t i = 0; i < r2_array_count(programs); ++i) {
        run_ends(programs[i], &ends);
    }
}

/* With nobody to ask beside the rails the limit ends it. */
static void a_dead_process_behind_dead_rails_ends_in_time(void **state)
{
    (void) state;
    run_ends("hosts 2; rails 2;" SHORT CALLS "compute 2s rank=0;" CALLS
             "at 100ms post-cut h0; at 500ms down h0 rail1; at 1s kill r1",
             &(ends_t){.all_before_ns = 8 * R2_NS_PER_S});
}

/*
 * All that a lane carries has gone by the other one, and the transport still reads its memory: it
 * sends nothing out, and nobody has anything to say on the other one.
 */
static void a_silent_lane_holds_delivered_memory(void **state)
{
    scenario_result_t result;

    (void) state; /* of its own seed: others draw the lane otherwise */
    assert_true(scenario_check(
        "socket 1061; param unexpected_bytes 15174; compute 12643957us rank=0;"
        "coll alltoallv i64 3734 on=world times=1 in-place; at 120077us drop-out h0 rail0;"
        "param no_path_timeout_ms 1357; expect any",
        &result));
}

/* A host loses its power while a sender waits for credit: it has nothing under way, and asks. */
static void who_waits_for_credit_of_a_dead_host_is_told(void **state)
{
    const scenario_result_t result =
        run("param unexpected_bytes 3717; param copy_max_bytes 0; compute 17s rank=0;"
            "coll gather i64 638 root=0 times=3; param no_path_timeout_ms 175; at 90ms kill r0;"
            "at 90ms cut h0 h1 rail0; at 90ms cut h0 h1 rail1; expect any");

    (void) state;
    assert_true(result.errors > 0);
}

/*
 * Its peer has lost all rails meanwhile, and who goes on hears of that before it reads what the
 * peer said before: that is no answer.
 */
static void cut_off_while_stopped(void **state)
{
    static const char *const programs[] = {"at 30s cont r1", "at 30s cont r1 woken"};
    const ends_t ends = {.error = R2_ERR_NO_PATH, .all_before_ns = 33 * R2_NS_PER_S};
    char text[256];

    (void) state;
    for (size_t i = 0; i < r2_array_count(programs); ++i) {
        snprintf(text, sizeof(text),
                 "hosts 2; rails 2;" SHORT CALLS "at 4ms stop r1; at 1s down h0 rail0;"
                 "at 1s down h0 rail1; %s",
                 programs[i]);
        run_ends(text, &ends);
    }
}

/* An argument picks tests: a pattern with * and ?. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stopped_before_lanes_were_opened),
        cmocka_unit_test(goes_on_by_its_service_thread),
        cmocka_unit_test(cut_off_while_stopped),
        cmocka_unit_test(failed_where_others_have_freed),
        cmocka_unit_test(fenced_while_stopped),
        cmocka_unit_test(full_queues),
        cmocka_unit_test(stopped_behind_a_relay),
        cmocka_unit_test(stopped_who_relays),
        cmocka_unit_test(stopped_behind_a_relay_for_long),
        cmocka_unit_test(limit_holds_beside_a_stopped_process),
        cmocka_unit_test(limit_holds_where_nobody_reaches_it),
        cmocka_unit_test(a_dead_process_behind_a_relay_is_named),
        cmocka_unit_test(lanes_outlive_a_firewall),
        cmocka_unit_test(one_rail_that_refuses_proves_nothing),
        cmocka_unit_test(a_rail_that_refuses_is_told),
        cmocka_unit_test(a_dead_process_is_named),
        cmocka_unit_test(a_dead_process_behind_dead_rails_ends_in_time),
        cmocka_unit_test(a_silent_lane_holds_delivered_memory),
        cmocka_unit_test(who_waits_for_credit_of_a_dead_host_is_told),
    };

    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
