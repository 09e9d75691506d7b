/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Peers that are healthy but unhelpful (docs/tests.md): nothing of them is given up.
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

#define LAB "hosts 4; rails 4; rate 12500000; latency 50us; jitter 20us;"

/* Calls of 0.48 MB, about 15 ms each. */
#define JOB                                                                                      \
    LAB "coll allreduce f64 60000 times=4; coll allgather i64 9000 times=4; coll allreduce i64 " \
        "60000 times=8;"

static scenario_result_t run(const char *source)
{
    scenario_result_t result;

    assert_true(scenario_check(source, &result));
    return result;
}

/* Runs a job in which nothing is broken: no lane fails, nothing is blamed. */
static scenario_result_t run_healthy(const char *source)
{
    scenario_result_t result = run(source);

    assert_int_equal(0, result.errors);
    assert_int_equal(0, result.counters.lanes_failed);
    assert_int_equal(0, result.counters.map_changes);
    return result;
}

/* Checks of a stopped process fill its queue; it has no limit all the same. */
static void stopped_with_a_small_queue(void **state)
{
    uint64_t digest = run_healthy(JOB).digest;

    (void) state;
    assert_int_equal(digest,
                     run_healthy("backlog 100;" JOB "at 23ms stop r1; at 30s cont r1").digest);
}

/*
 * An hour: what is said to a process that does not read is bounded (in flight:
 * rank_check_bounds()), whatever is kept as unexpected for it, and whatever happens to rails
 * meanwhile.
 */
static void stopped_for_an_hour(void **state)
{
    static const char *const jobs[] = {
        /* more short messages than may go without credit */
        "hosts 3; rails 2; rate 12500000; param unexpected_bytes 65536;"
        "coll gather i64 60 root=1 times=500 nb; coll scatter i64 60 root=0 times=500 nb",
        /* rows that wait for it, data that waits for its rows; rails of others fail and come back:
           notices about them are repeated, too */
        LAB "allow-changes; coll allreduce f64 60000 times=4; at 60s down h0 rail0;"
            "at 600s up h0 rail0; at 900s drop h2 rail1; at 1800s pass h2 rail1;"
            "at 2000s rate h3 rail2 1000000; at 2400s rate h3 rail2 12500000",
        /* it is the only one that may relay for the others */
        "hosts 3; rails 2; rate 12500000; param no_path_timeout_ms 3700000;"
        "coll allreduce f64 600; coll alltoall i64 900 times=4;"
        "at 0ms down h0 rail1; at 0ms down h2 rail0; at 3700s heal",
    };
    char source[1024];

    (void) state;
    for (size_t i = 0; i < r2_array_count(jobs); ++i) {
        scenario_result_t result;

        snprintf(source, sizeof(source), "%s; limit 4000s; at 13ms stop r1; at 3600s cont r1",
                 jobs[i]);
        result = run(source);
        assert_int_equal(0, result.errors);
        assert_true(result.counters.tx_packets < 100000); /* those who live ask each other, too */
    }
}

/*
 * A rank is stopped while its lanes are wired, or just after: what its peer waits for lies in its
 * buffers when it goes on, before its timers and before the calls that came meanwhile.
 */
static void stopped_while_lanes_are_wired(void **state)
{
    static const char *const jobs[] = {
        "jitter 3us; coll allreduce matrix 22 times=19 nb; at 55us stop r1; at 41550759us cont r1",
        "hosts 6; rate 12104621; param heal_min_ms 569; coll allreduce i64 12 times=20;"
        "at 139us stop r0; at 2838674us cont r0",
        "hosts 4; rate 5651563; param heal_min_ms 569; coll reduce-scatter matrix 13 times=4 nb;"
        "at 157us stop r3; at 7833649us cont r3",
        /* for longer than wiring takes */
        "hosts 2; ppn 3; rails 1; rate 97277722; latency 187us; jitter 49us; backlog 2;"
        "param unexpected_bytes 11854; param eager_bytes 4577; param window_min_bytes 220744;"
        "param allreduce_algorithm weighted; coll allreduce matrix 739 times=1 in-place;"
        "coll alltoallw matrix 4 times=21; coll alltoallw f64 221; at 902us stop r5;"
        "at 53341345us cont r5"};
    char source[640];

    (void) state;
    for (size_t i = 0; i < r2_array_count(jobs); ++i) {
        snprintf(source, sizeof(source), "%s; expect healthy", jobs[i]);
        run_healthy(source);
    }
    for (uint32_t us = 10; us < 130; us += 10) {
        snprintf(
            source, sizeof(source),
            "hosts 3; jitter 3us; coll allreduce i64 22 times=9; at %uus stop r1; at 41s cont r1",
            us);
        run_healthy(source);
    }
}

/* One rail refuses from the start: the others do. */
static void one_rail_refuses(void **state)
{
    uint64_t digest = run_healthy(JOB).digest;
    scenario_result_t result;

    (void) state;
    result = run(JOB "at 0ms refuse h1 rail0");
    assert_int_equal(digest, result.digest);
    assert_int_equal(0, result.counters.lanes_failed);
    result = run(JOB "at 0ms refuse h1 rail0 probes; at 200ms accept h1 rail0");
    assert_int_equal(digest, result.digest);
    assert_int_equal(0, result.counters.lanes_failed);
}

/* Lanes that are up do not hear of a firewall that comes later. */
static void refuses_later(void **state)
{
    uint64_t digest = run_healthy(JOB).digest;

    (void) state;
    assert_int_equal(
        digest, run_healthy(JOB "at 23ms refuse h1 rail0; at 23ms refuse h1 rail1 probes").digest);
}

/* One rank cannot open the listener of a rail: it says that it does not take part, and what of. */
static void listener_fails_at_the_start(void **state)
{
    static scenario_t scenario;
    scenario_result_t result;
    char text[200];

    (void) state;
    assert_true(scenario_parse(JOB "at 0ms no-listener r1 rail0", &scenario, text, sizeof(text)));
    scenario_run(&scenario, false, &result);
    assert_false(result.ok);
    assert_non_null(strstr(result.text, "listener could not be opened on h1 (NIC rail0)"));
}

/* A rank that does a little five times a second, for as long as the job takes. */
static void slow_reader(void **state)
{
    uint64_t digest = run_healthy(JOB).digest;

    (void) state;
    assert_int_equal(digest, run_healthy(JOB "limit 600s; at 10ms slow r1 200ms").digest);
    assert_int_equal(digest, run_healthy(JOB "limit 600s; at 0ms slow r1 50ms").digest);
    assert_int_equal(
        digest, run_healthy(JOB "limit 600s; at 0ms slow r1 30ms; at 0ms slow r2 70ms").digest);
    assert_int_equal(digest, run_healthy(JOB "at 10ms slow r1 10ms; at 1s slow r1 0ms").digest);
}

/*
 * What is not acknowledged lies unread: in the buffers of a process that comes rarely, in those of
 * its peer when these are full, or is acknowledged behind what it sends slowly. No lane is given up
 * for that.
 */
static void data_lies_unread(void **state)
{
    static const char *const jobs[] = {
        /* asked after by connect requests, again and again */
        "seed 5018; hosts 4; param heal_min_ms 173; param failure_timeout_ms 21;"
        "param chunk_min_bytes 1024; coll neighbour-collective f64 3153; at 0us slow r1 197495us",
        "hosts 3; param chunk_min_bytes 1024; param retransmit_bytes 393; coll allreduce matrix "
        "3818;"
        "comm a cid=7 ranks=0,1; coll alltoallv i64 28 on=a nb; at 0us slow r1 125831us",
        /* while other lanes of the same link are heard */
        "hosts 3; param chunk_min_bytes 1024; param heal_min_ms 534; param failure_timeout_ms 33;"
        "coll scan f64 34 times=17 nb; coll reduce matrix 4309 root=1;"
        "coll allgatherv i64 3 times=19 nb; at 0us slow r2 151015us",
        "seed 1605; hosts 4; ppn 2; rails 3; rate 40131788; socket 20668; receive 4495;"
        "param heal_min_ms 931; coll neighbour-collective matrix 710;"
        "comm b cid=9 ranks=2,3,5,6,0,1; coll allgatherv i64 40768 nb;"
        "coll alltoallv f64 7 times=24 nb; at 58us slow r3 84773us",
        /* behind what it sends slowly */
        "socket 1367; param chunk_min_bytes 1024; coll neighbour-collective f64 2955 in-place;"
        "at 39us slow r0 94110us",
        /* in the buffers of its peer */
        "receive 1641; compute 98947us rank=1; coll allreduce matrix 1356 nb;"
        "coll allreduce matrix 3786; at 188us slow r1 190749us",
        /* and seen by the slow process itself */
        "param heal_min_ms 484; param failure_timeout_ms 23; coll scatter f64 29678 root=0;"
        "coll allreduce i64 51672 times=2 nb; compute 1918479us rank=0;"
        "at 2149us slow r0 180785us"};
    char source[640];

    (void) state;
    for (size_t i = 0; i < r2_array_count(jobs); ++i) {
        snprintf(source, sizeof(source), "%s; expect healthy", jobs[i]);
        run_healthy(source);
    }
}

/*
 * Stopped while lanes to it are in doubt or in wire-up: they wait until it has had time to read
 * what it was sent before.
 */
static void stopped_in_mid_doubt(void **state)
{
    static const char *const jobs[] = {
        "seed 376; hosts 4; rails 4; rate 95594071; jitter 20us; param no_path_timeout_ms 18907;"
        "coll allreduce matrix 38714; at 94ms stop r3; at 118926ms cont r3;"
        "at 67us slow r1 48962us",
        "hosts 3; ppn 3; rate 16447591; param heal_min_ms 306; param failure_timeout_ms 20;"
        "param no_path_timeout_ms 11548; coll allgather i64 580 times=4 nb; at 6654us stop r2;"
        "at 6686127us cont r2",
        /* and its host refuses new connections */
        "hosts 6; param heal_min_ms 10; param no_path_timeout_ms 10972;"
        "coll reduce i64 12394 root=3 nb; compute 61750471us rank=0; at 4192us stop r4;"
        "at 22358727us cont r4; at 48477us refuse h4 rail1",
        /* lanes to it are closed meanwhile, for want of descriptors */
        "hosts 3; rails 3; receive 1379; param heal_min_ms 952; param no_path_timeout_ms 19807;"
        "coll allreduce i64 4 times=23; at 3592us stop r2; at 55098503us cont r2;"
        "at 9ms descriptors r0 14",
        /* a call from then comes after it has read what was asked after */
        "ppn 2; param ack_delay_us 8708; param heal_min_ms 25; param failure_timeout_ms 40;"
        "backlog 1; param allreduce_algorithm exchange; param no_path_timeout_ms 5511;"
        "coll allreduce matrix 64 times=13; at 400us stop r0; at 17699338us cont r0;"
        "at 5898us stop r2; at 47732254us cont r2"};
    char source[640];

    (void) state;
    for (size_t i = 0; i < r2_array_count(jobs); ++i) {
        snprintf(source, sizeof(source), "%s; expect healthy", jobs[i]);
        run_healthy(source);
    }
}

/* No descriptors for all lanes: what there is carries the job, and calls are let in when there are
 * some again. */
static void few_descriptors(void **state)
{
    uint64_t digest = run_healthy(JOB).digest;
    scenario_result_t result;

    (void) state;
    result = run_healthy(JOB "at 0ms descriptors r1 14");
    assert_int_equal(digest, result.digest);
    assert_true(result.counters.shortages > 0);
    result = run_healthy(JOB "at 0ms descriptors r1 14; at 20ms descriptors r1 0");
    assert_int_equal(digest, result.digest);
}

/*
 * A rank that has no memory for a call cannot take part: the others must not take its next call for
 * this one. All end with an error, or go on where the memory sufficed.
 */
static void call_without_memory(void **state)
{
    static const char *const shortages[] = {"5 2048", "10 2048", "10 1500", "30 2048", "50 4096"};
    uint32_t errors = 0;
    char source[1024];

    (void) state;
    for (size_t i = 0; i < r2_array_count(shortages); ++i) {
        for (uint32_t seed = 1; seed <= 3; ++seed) {
            snprintf(source, sizeof(source),
                     "seed %u; hosts 3; rails 2; rate 12500000; coll allreduce i64 60000 times=8;"
                     "coll alltoall i64 5000 times=3; expect any; at 0ms memory r1 %s",
                     seed, shortages[i]);
            errors += run(source).errors;
        }
    }
    assert_true(errors > 0);
}

/* No lane opens, for ever: all hear it after no_path_timeout_ms, which is 60 s. */
static void no_memory_for_lanes(void **state)
{
    scenario_result_t result = run("hosts 2; coll allreduce i64 800 times=2; expect any;"
                                   "at 0ms memory r1 100.0 2048");

    (void) state;
    assert_true(result.errors >= 2);
    assert_in_range(result.time_ns, 60 * R2_NS_PER_S, 61 * R2_NS_PER_S);
}

/*
 * Memory runs out as a merge of maps begins: its error ends the communicator while the call that it
 * is for is listed and has not begun.
 */
static void merge_without_memory(void **state)
{
    static const char *const shortages[] = {"2 64", "5 64", "20 64", "5 1"};
    uint32_t errors = 0;
    char source[512];

    (void) state;
    for (size_t i = 0; i < r2_array_count(shortages); ++i) {
        for (uint32_t seed = 1; seed <= 40; ++seed) {
            snprintf(source, sizeof(source),
                     "seed %u; hosts 3; rails 2; rate 12500000; param no_path_timeout_ms 2000;"
                     "coll allreduce i64 60 times=40; expect any;"
                     "at 2ms down h1 rail1; at 1ms memory r1 %s",
                     seed, shortages[i]);
            errors += run(source).errors;
        }
    }
    assert_true(errors > 0);
}

/*
 * A communicator fails, and is freed before there is memory to tell the others, which wait. All
 * come to an end: 13 of 40 did not.
 */
static void freed_before_it_is_told(void **state)
{
    char source[256];

    (void) state;
    for (uint32_t seed = 604740; seed < 604780; seed++) {
        snprintf(source, sizeof(source),
                 "seed %u; comm a cid=7 ranks=0,1; coll scatterv matrix 9041 on=a times=1 root=0;"
                 "free a; expect any; limit 55s; at 0us memory r1 28.9 6; at 9s memory r1 0 0",
                 seed);
        run(source);
    }
}

/*
 * Lanes of a process that is stopped: one in doubt when it said its last word; those that a peer
 * short of descriptors closed meanwhile, its last word lost with the connection.
 */
static void stopped_with_lanes_in_doubt_or_closed(void **state)
{
    static const char *const jobs[] = {
        "hosts 3; ppn 3; rate 16447591; param chunk_min_bytes 1024; param failure_timeout_ms 20;"
        "coll allgather i64 580 times=4 nb;"
        "at 6654us stop r2; at 6686127us cont r2; at 218us slow r1 18526us",
        "hosts 3; rails 3; receive 1379; coll allreduce i64 4 on=world times=23;"
        "at 3592us stop r2; at 55098503us cont r2; at 9413us descriptors r0 14",
        "hosts 4; receive 6327; coll bcast matrix 40 on=world times=28 root=0 in-place;"
        "compute 32038833us rank=2; coll gather i64 1235 root=2 times=1;"
        "at 268us stop r2; at 2584271us cont r2; at 0us descriptors r3 15",
    };

    (void) state;
    for (size_t i = 0; i < r2_array_count(jobs); ++i) {
        run_healthy(jobs[i]);
    }
}

/* A lane that came up in the quarantine of its rail proves it, where all probes are refused. */
static void accused_rail_proved_by_its_lanes(void **state)
{
    (void) state;
    run("hosts 3; coll allreduce i64 10424 times=2 nb; at 0us stop r2; at 11915995us cont r2;"
        "at 8346507us accept h2 rail1; at 79862us refuse h1 rail1 probes;"
        "at 79862us refuse h2 rail1 probes; expect healthy");
}

/* What a slow process says lies in its own queue, too: its newest word is old. */
static void slow_sender(void **state)
{
    (void) state;
    run("hosts 2; socket 1761; param chunk_min_bytes 1024; param no_path_timeout_ms 9450;"
        "comm b cid=9 ranks=0,1; coll allreduce f64 30 on=b times=1; compute 12us;"
        "coll scatter i64 5980 root=1 times=3 nb; at 14478821us cont r1; at 0us slow r1 110257us;"
        "expect healthy");
}

/* What it filled long ago comes for ever, a packet at a time: no words about what it holds now. */
static void old_words_of_a_slow_sender(void **state)
{
    char source[320];

    (void) state;
    for (uint32_t slow_ms = 150; slow_ms <= 400; slow_ms += 50) {
        snprintf(source, sizeof(source),
                 "hosts 2; rails 3; rate 138840232; latency 147us; socket 1675;"
                 "param chunk_min_bytes 1024; comm b cid=8 ranks=0;"
                 "coll allreduce i64 25 on=b times=25; coll scatter i64 12044 root=0 times=4 nb;"
                 "compute 18428709us rank=0; at 0us slow r0 %uus; expect healthy",
                 slow_ms * 1000);
        run(source);
    }
}

/*
 * A process is stopped while a peer closes a lane to it for want of descriptors, and a third says
 * that the rail is dead: that lane did not fail.
 */
static void accused_lane_was_closed(void **state)
{
    (void) state;
    run("hosts 4; ppn 3; param heal_min_ms 665; param no_path_timeout_ms 4074;"
        "coll reduce-scatter-block i64 1438 on=world times=1 nb; at 222us stop r2;"
        "at 10590260us cont r2; at 16062774us cont r0; at 20169201us cont r8;"
        "at 0us refuse h2 rail1 probes; at 283283us descriptors r11 22; expect healthy");
}

/* Eleven peers wait for their turn with one that is slow, longer than a path may be missing. */
static void long_wait_for_a_turn(void **state)
{
    char source[256];

    (void) state;
    for (uint32_t seed = 1; seed <= 10; ++seed) {
        snprintf(source, sizeof(source),
                 "seed %u; hosts 4; ppn 3; param heal_min_ms 63; param no_path_timeout_ms 2120;"
                 "coll allgather matrix 451 on=world times=1; at 198us slow r3 158783us;"
                 "at 0us descriptors r3 15; expect healthy",
                 seed);
        run(source);
    }
}

/*
 * A process dies, a third of all requests is lost, and so is every message beside the lanes: its
 * ways refuse now here, now there. With its queue it took what was in there, within a host, too.
 */
static void dead_behind_lost_requests(void **state)
{
    (void) state;
    run("seed 614425; limit 29s; hosts 4; ppn 2; rails 4; jitter 79us; hello-loss 31;"
        "param heal_min_ms 120; param failure_timeout_ms 21; param no_path_timeout_ms 183;"
        "coll scan matrix 35 on=world times=7 in-place nb; coll allreduce i64 42 on=world times=1;"
        "comm b cid=8 ranks=7,0,1,3,4,5,6; coll barrier bytes3 1131 on=b times=1; post-loss 100;"
        "at 0us down h0 rail1; at 7005us kill r0; expect any");
    run("hosts 1; ppn 3; param heal_min_ms 235; backlog 1; coll gather i64 734 root=0 times=6;"
        "param no_path_timeout_ms 206; at 113570us kill r1; at 0us stop r1; expect any");
}

/* A request for a lane in wire-up finds no room at a stopped process; it arrives when the lane is
 * up. */
static void late_request_for_a_lane_that_is_up(void **state)
{
    (void) state;
    run("hosts 5; ppn 2; rate 5384782; param heal_min_ms 11; param failure_timeout_ms 37;"
        "param no_path_timeout_ms 2860; backlog 7; coll alltoallw i64 7 on=world times=11;"
        "at 78us stop r0; at 8315869us cont r0; at 136us stop r5; at 10466783us cont r5;"
        "expect healthy");
}

/* An argument picks tests: a pattern with * and ?. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stopped_with_a_small_queue),
        cmocka_unit_test(stopped_for_an_hour),
        cmocka_unit_test(stopped_while_lanes_are_wired),
        cmocka_unit_test(one_rail_refuses),
        cmocka_unit_test(refuses_later),
        cmocka_unit_test(listener_fails_at_the_start),
        cmocka_unit_test(slow_reader),
        cmocka_unit_test(data_lies_unread),
        cmocka_unit_test(stopped_in_mid_doubt),
        cmocka_unit_test(stopped_with_lanes_in_doubt_or_closed),
        cmocka_unit_test(accused_rail_proved_by_its_lanes),
        cmocka_unit_test(slow_sender),
        cmocka_unit_test(old_words_of_a_slow_sender),
        cmocka_unit_test(accused_lane_was_closed),
        cmocka_unit_test(few_descriptors),
        cmocka_unit_test(long_wait_for_a_turn),
        cmocka_unit_test(call_without_memory),
        cmocka_unit_test(no_memory_for_lanes),
        cmocka_unit_test(freed_before_it_is_told),
        cmocka_unit_test(dead_behind_lost_requests),
        cmocka_unit_test(late_request_for_a_lane_that_is_up),
        cmocka_unit_test(merge_without_memory),
    };

    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
