/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Processes with few file descriptors (link/idle.c): lanes are closed and opened again as they are
 * needed. The results are those of a job with enough, no lane fails and nothing is blamed.
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

#define NET "rate 125000000; latency 50us; jitter 20us; limit 600s; "
/* Each rank talks to each; the first is asked by all at one time. */
#define JOB                                                                                   \
    "coll barrier i64 0; coll gather i64 1000 times=3; coll alltoall i64 300 times=2; "       \
    "coll scatter i64 1000 times=2 root=3; coll allreduce f64 20000 times=2; coll bcast i64 " \
    "50000 root=1; "

typedef struct text {
    char chars[8192];
    size_t used;
} text_t;

static void add(text_t *text, const char *part)
{
    int count = snprintf(text->chars + text->used, sizeof(text->chars) - text->used, "%s", part);

    text->used += (size_t) count;
    assert_true(text->used < sizeof(text->chars));
}

/* Runs a job of `ranks` with so many descriptors each; 0: enough. @param more statements. */
static scenario_result_t run(uint32_t ranks, uint32_t rails, uint32_t descriptors, const char *more)
{
    text_t text = {.used = 0};
    scenario_result_t result;
    char line[128];

    snprintf(line, sizeof(line), "hosts %u; rails %u; ", ranks, rails);
    add(&text, line);
    add(&text, NET);
    for (uint32_t i = 0; 0 != descriptors && i < ranks; ++i) {
        snprintf(line, sizeof(line), "at 0ms descriptors r%u %u; ", i, descriptors);
        add(&text, line);
    }
    add(&text, more);
    assert_true(scenario_check(text.chars, &result));
    return result;
}

static void check_few(uint32_t ranks, uint32_t rails, uint32_t descriptors, const char *more)
{
    scenario_result_t enough = run(ranks, rails, 0, more),
                      few = run(ranks, rails, descriptors, more);

    assert_int_equal(enough.errors, 0);
    assert_int_equal(few.errors, 0);
    assert_int_equal(few.digest, enough.digest);
    assert_int_equal(few.counters.lanes_failed, 0);
    assert_int_equal(few.counters.map_changes, 0);
    assert_true(few.counters.shortages > 0 && 0 == enough.counters.shortages);
    assert_int_equal(enough.counters.lanes_rested, 0);
}

/* A worker takes 4, an endpoint 2 and 2 have to be free: from one lane at a time to nearly enough
 * for all. */
static void every_number_of_descriptors(void **state)
{
    (void) state;
    for (uint32_t descriptors = 8; descriptors <= 44; descriptors += 6) {
        check_few(6, 4, descriptors, JOB);
    }
}

static void more_ranks_than_lanes(void **state)
{
    (void) state;
    check_few(16, 2, 20, JOB);
    check_few(16, 2, 40, JOB);
}

/* A rank computes: nobody can close the lane to it without being answered by its service thread. */
static void a_rank_computes(void **state)
{
    (void) state;
    check_few(8, 2, 14, "coll barrier i64 0; compute 5s rank=2; " JOB);
}

/* A rank is stopped: what leads to it is given back without its answer. */
static void a_rank_is_stopped(void **state)
{
    (void) state;
    check_few(8, 2, 14, "at 5ms stop r2; at 4s cont r2; " JOB);
}

/* Peers want further lanes of a rank that has none to spare: what it has can still be closed. */
static void further_lanes_are_not_owed(void **state)
{
    scenario_result_t result;

    (void) state;
    assert_true(scenario_check(
        "seed 77000063; ppn 3; param reduce_scatter_algorithm direct; param heal_min_ms 159; "
        "param no_path_timeout_ms 3788; "
        "coll scatter i64 247 on=world times=1 root=4 nb; compute 148916us rank=0; "
        "coll reduce-scatter i64 13 on=world times=26 nb; compute 712466us rank=1; "
        "at 0us descriptors r3 31; expect healthy",
        &result));
    assert_int_equal(result.errors, 0);
    assert_true(result.counters.shortages > 0);
}

/* Lanes fail whose end is asked for: others can still be closed. */
static void lanes_fail_while_they_are_closed(void **state)
{
    scenario_result_t result;

    (void) state;
    assert_true(scenario_check(
        "seed 5009; hosts 6; ppn 3; rate 140154837; latency 3us; keep 0; retry 1710ms; jitter 2us; "
        "param chunk_min_bytes 1292; param heal_min_ms 915; param failure_timeout_ms 62; "
        "coll reduce-scatter matrix 4 nb; "
        "comm a cid=7 ranks=9,10,11,12,13,15,16,17,0,1,5,6,7,8; coll allreduce matrix 5216 on=a; "
        "coll allreduce f64 14 times=4; at 34954us loss h2 rail0 10; at 31742us down h0 rail1; "
        "at 34194us up h0 rail1; at 14070us drop-in h0 rail1; at 1840us stop r15; "
        "at 808266us cont r15; at 1633261us heal; at 0us descriptors r11 57; "
        "at 0us descriptors r5 84",
        &result));
    assert_int_equal(result.errors, 0);
    assert_true(result.counters.lanes_rested > 0);
}

/* The application takes all that is left in the middle of the job, and gives some back. */
static void the_application_takes_them(void **state)
{
    scenario_result_t enough = run(6, 2, 0, JOB JOB JOB), few;

    (void) state;
    few = run(
        6, 2, 0,
        "at 0ms descriptors r1 30; at 4ms descriptors r1 1; at 300ms descriptors r1 30; " JOB JOB
            JOB);
    assert_int_equal(few.digest, enough.digest);
    assert_int_equal(few.errors, 0);
    assert_int_equal(few.counters.lanes_failed, 0);
    assert_int_equal(few.counters.map_changes, 0);
}

/* Each rank sends to all others, not only to the first one of its host. */
#define ALL_PAIRS                                                               \
    "param allgather_algorithm direct; param reduce_scatter_algorithm direct; " \
    "param alltoall_algorithm pairwise; "

/* Jobs in which lanes are closed for others. */
static void lanes_rest_and_none_fails(const char *const *jobs, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        scenario_result_t result;
        char text[1024];

        snprintf(text, sizeof(text), ALL_PAIRS "%s; expect healthy", jobs[i]);
        assert_true(scenario_check(text, &result));
        assert_int_equal(result.errors, 0);
        assert_true(result.counters.lanes_rested > 0);
    }
}

/* What was stuck, or ended with "no path", with so few in one process or in all. */
static void nobody_keeps_them(void **state)
{
    static const char *const jobs[] = {
        /* lanes within the host are closed like others */
        "ppn 3; param no_path_timeout_ms 2705; coll reduce-scatter matrix 595 nb; "
        "at 0us descriptors r1 16",
        "ppn 3; param no_path_timeout_ms 7086; coll allreduce f64 12888; at 0us descriptors r2 18",
        "ppn 3; coll alltoallw matrix 2 times=4; at 0us descriptors r1 18",
        "hosts 4; ppn 3; param heal_min_ms 844; coll alltoallw matrix 2 times=21; "
        "at 0us descriptors r11 14",
        "hosts 4; ppn 3; param no_path_timeout_ms 5465; coll reduce-scatter matrix 13 times=4 nb; "
        "at 0us descriptors r0 14",
        /* the application takes what is kept to accept calls, and rank 7 computes */
        "hosts 4; ppn 3; param heal_min_ms 874; param no_path_timeout_ms 6843; "
        "compute 23945243us rank=7; coll gather i64 3800 root=7 times=5; coll barrier f64 21; "
        "at 84806us descriptors r7 16; at 0us descriptors r8 16; at 0us descriptors r9 29; "
        "at 0us descriptors r10 14",
    };

    (void) state;
    lanes_rest_and_none_fails(jobs, r2_array_count(jobs));
}

/* Calls over rails that are dead do not take the place of lanes that carry relayed packets. */
static void relays_keep_theirs(void **state)
{
    scenario_result_t result;

    (void) state;
    assert_true(scenario_check(
        "seed 5423; hosts 3; ppn 3; rails 4; rate 105400678; latency 145us; keep 0; "
        "coll allreduce i64 32; compute 31944us; coll scan f64 1079; "
        "coll alltoallw matrix 6 times=9 in-place nb; post-twice 38; at 154492us post-cut h0; "
        "rule error 0.01 only=acks delay=331us until=479328us; "
        "rule drop 15.36 delay=35545us until=232025us; "
        "rule fail 0.21 only=data delay=8992us until=68719us; at 1219386us heal; "
        "at 150171us cut h2 h0 rail0; at 150171us cut h2 h0 rail1; at 150171us cut h2 h0 rail2; "
        "at 150171us cut h2 h0 rail3; at 1219387us cut h2 h0 rail0; at 1219387us cut h2 h0 rail1; "
        "at 1219387us cut h2 h0 rail2; at 1219387us cut h2 h0 rail3; at 0us descriptors r5 40",
        &result));
    assert_int_equal(result.errors, 0);
}

/* Stopped with data on its way: the lanes and calls of the others do not wait for them. */
static void several_are_stopped(void **state)
{
    scenario_result_t enough = run(9, 2, 0, JOB JOB), few;

    (void) state;
    few = run(9, 2, 14,
              "at 5ms stop r2; at 5ms stop r3; at 6ms stop r4; at 4ms stop r5; at 5s cont r2; "
              "at 6s cont r3; at 7s cont r4; at 8s cont r5; " JOB JOB);
    assert_int_equal(few.digest, enough.digest);
    assert_int_equal(few.errors, 0);
    assert_int_equal(few.counters.lanes_failed, 0);
}

/* Lanes to a stopped process are closed: when it goes on it reads that before it is a failure. */
static void closed_while_stopped(void **state)
{
    static const char *const jobs[] = {
        "seed 349; hosts 4; param heal_min_ms 119; coll allgatherv f64 1175; compute 754100us; "
        "coll reduce-scatter-block f64 141 in-place; at 406174us stop r2; at 4061271us cont r2; "
        "at 628711us descriptors r0 17",
        "hosts 4; param heal_min_ms 119; compute 1290028us rank=0; "
        "coll reduce i64 452 root=2 nb; compute 54072us; at 137721089us cont r1; "
        "at 406174us stop r2; at 4061271us cont r2; at 628711us descriptors r0 17",
        "seed 1701; hosts 4; param heal_min_ms 164; coll allreduce f64 625; at 150613us stop r2; "
        "at 6662381us cont r2; at 221us stop r1; at 5956016us cont r1; at 0us descriptors r0 19; "
        "at 0us descriptors r2 18",
        "hosts 6; ppn 2; param no_path_timeout_ms 11415; coll allgather matrix 3 times=29; "
        "at 155210us stop r2; at 53410800us cont r2; at 0us descriptors r10 15; "
        "at 276us descriptors r11 15",
        "seed 3267; hosts 6; param failure_timeout_ms 20; "
        "coll reduce-scatter-block f64 625 times=3; compute 1290028us; coll gather i64 3; "
        "compute 1290028us; coll reduce-scatter-block f64 141 nb; at 22788us stop r0; "
        "at 698662us cont r0; at 3172us stop r5; at 21296880us cont r5; "
        "at 4698us descriptors r4 22; at 0us descriptors r1 19; at 1367us descriptors r0 19",
    };

    (void) state;
    lanes_rest_and_none_fails(jobs, r2_array_count(jobs));
}

/* None at all: the call ends with an error, in time, and no lane or rail is blamed. */
static void none_at_all(void **state)
{
    scenario_result_t result;

    (void) state;
    result = run(
        4, 2, 0,
        "expect any; param no_path_timeout_ms 3000; at 0ms descriptors r1 3; coll barrier i64 0");
    assert_true(result.errors > 0);
    assert_int_equal(result.counters.map_changes, 0);
}

/* A rail fails while descriptors are short: the fault is seen, and the job goes on. */
static void a_rail_fails(void **state)
{
    scenario_result_t enough = run(6, 2, 0, JOB JOB), few;

    (void) state;
    few = run(6, 2, 14, "at 30ms down h1 rail0; at 2s up h1 rail0; " JOB JOB);
    assert_int_equal(few.digest, enough.digest);
    assert_int_equal(few.errors, 0);
}

/*
 * Who goes on reads how lanes came up that a peer gave up meanwhile, in wire-up, for want of
 * descriptors: they were never up.
 */
static void given_up_in_wire_up_while_stopped(void **state)
{
    scenario_result_t result;

    (void) state;
    assert_true(scenario_check(
        "seed 672142; hosts 4; ppn 3; receive 4635; param heal_min_ms 51;"
        "coll exscan matrix 21546 on=world times=1; at 931970us cont r1; at 18us stop r3;"
        "at 104617834us cont r3; at 2108us stop r2; at 26316214us cont r2; at 0us slow r0 24342us;"
        "at 0us descriptors r1 33; at 678us descriptors r2 17; expect healthy",
        &result));
    assert_true(scenario_check(
        "seed 653170; hosts 5; ppn 3; rails 4; rate 5664736; latency 1us;"
        "param no_path_timeout_ms 13798; coll allgatherv bytes3 1322 on=world times=1 nb;"
        "at 28us stop r7; at 93964704us cont r7; at 48682964us cont r10; at 0us descriptors r5 17;"
        "at 175us descriptors r6 135; at 281us descriptors r7 34; expect healthy",
        &result));
    /* and sleeps again before the lane is given up */
    assert_true(scenario_check(
        "hosts 4; rails 4; rate 6054954; latency 34us; param heal_min_ms 15;"
        "param no_path_timeout_ms 14124; coll allreduce f64 5876 on=world times=1 in-place;"
        "compute 145915380us rank=1; at 2967976us cont r0; at 204us stop r2;"
        "at 105974767us cont r2; at 3619us descriptors r3 43; expect healthy",
        &result));
}

/*
 * Two that have a lane to each other were asked for a way to each other while that was in doubt. It
 * is closed all the same where the descriptors are for a third.
 */
static void lanes_that_were_asked_for_are_closed(void **state)
{
    scenario_result_t result;

    (void) state;
    assert_true(scenario_check(
        "seed 661779; hosts 3; rails 1; latency 76us; param heal_min_ms 125;"
        "param failure_timeout_ms 150; coll allreduce f64 2 on=world times=20;"
        "at 2848us drop-out h2 rail0; at 488us down h0 rail0; at 2100343us heal;"
        "at 9053442us cont r0; at 119us descriptors r1 14; at 0us descriptors r2 14; expect any",
        &result));
    assert_int_equal(0, result.errors);
    /* by the peer itself, while there were no descriptors */
    assert_true(
        scenario_check("hosts 3; coll alltoallv f64 10 on=world times=1 nb; compute 9777us rank=0;"
                       "coll gather i64 12232 root=0 times=1; at 14820us drop-out h0 rail1;"
                       "at 7247us down h0 rail0; at 1256450us heal; at 8907us cut h2 h0 rail1;"
                       "at 1256451us cut h2 h0 rail0; at 1256451us cut h2 h0 rail1;"
                       "at 129us descriptors r1 14; expect any",
                       &result));
    assert_int_equal(0, result.errors);
}

/*
 * Two processes talk through a third one, and one of them is to reach a fourth through the other:
 * what it asks for that needs a direct lane, which gets descriptors when it is called.
 */
static void who_is_called_makes_room_beside_a_relay(void **state)
{
    scenario_result_t result;

    (void) state;
    assert_true(scenario_check(
        "seed 665241; hosts 5; rate 5716478; param heal_min_ms 231; param failure_timeout_ms 23;"
        "coll alltoallv matrix 1 on=world times=1; coll barrier matrix 0 on=world times=1;"
        "coll reduce-scatter f64 5103 on=world times=1 nb; compute 38345us rank=2;"
        "at 61953us rate h0 rail0 371754; at 74100us cut h1 h2 rail0; at 35188us stop r2;"
        "at 1101858us cont r2; rule error 0.25 only=acks delay=12753us until=2220088us;"
        "at 2462569us heal; at 0us descriptors r2 15; at 0us descriptors r1 16",
        &result));
}

/* Lanes that carry nothing any more, and no descriptor to ask after them: the limit holds. */
static void limit_holds_without_any(void **state)
{
    static const char *const jobs[] = {
        "rails 4; param heal_min_ms 16; param no_path_timeout_ms 176; coll allreduce i64 250;"
        "compute 272ms rank=0; coll allreduce matrix 16 times=3; at 0us descriptors r0 31;"
        "at 63427us drop h1 rail0; at 63427us drop h1 rail1; at 63427us down h1 rail2;"
        "at 63427us drop h1 rail3",
        /* two that could relay take each other for a way */
        "seed 4512; hosts 3; rails 3; compute 27401024us rank=1; coll alltoallv f64 5 times=14;"
        "param no_path_timeout_ms 131; at 56404us drop h1 rail0; at 56404us down h1 rail1;"
        "at 56404us drop h1 rail2; at 0us descriptors r1 17"};
    scenario_result_t result;
    char source[640];

    (void) state;
    for (size_t i = 0; i < r2_array_count(jobs); ++i) {
        snprintf(source, sizeof(source), "%s; expect any", jobs[i]);
        assert_true(scenario_check(source, &result));
        assert_true(result.errors >= 2);
    }
}

/* Lanes that wait for the same room are all tried: or two of four never say that nobody is
 * there. */
static void all_lanes_have_their_turn(void **state)
{
    scenario_result_t result;

    (void) state;
    assert_true(scenario_check(
        "rails 4; param heal_min_ms 333; coll reduce i64 26 on=world times=30 root=1;"
        "at 115155us post-cut h0; expect any; param no_path_timeout_ms 2960; at 12817us kill r0;"
        "at 66009782us cont r0; at 15142257us cont r1; at 4260us stop r1; at 37786090us cont r1;"
        "at 0us slow r0 78274us; at 0us descriptors r1 14",
        &result));
    assert_int_equal(result.errors, 30);
    /* three of four are refused, and the one that is not has waited behind them */
    assert_true(scenario_check(
        "seed 838653; hosts 2; rails 4; rate 23952681; latency 7us; keep 25; retry 209ms; jitter "
        "14us; batch 1; param chunk_max_bytes 8192; param chunk_min_bytes 1024; param "
        "unexpected_bytes 56736; param eager_bytes 13519; param credit_bytes 790099; param "
        "ack_delay_us 102; param allreduce_algorithm ring; param no_path_timeout_ms 2530; backlog "
        "4; coll gatherv bytes3 21 root=0 in-place nb; compute 3774646us rank=1; coll gather i64 "
        "732 root=1 times=6; coll scan i64 650; coll allgatherv i64 6 times=27 nb; at 0us refuse "
        "h1 rail1 probes; at 0us refuse h0 rail0; at 0us refuse h1 rail0; at 0us refuse h0 rail2 "
        "probes; at 0us refuse h1 rail2 probes; at 0us descriptors r0 14; at 0us descriptors r1 "
        "15; expect healthy",
        &result));
}

/* An argument picks tests: a pattern with * and ?. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_of_descriptors),
        cmocka_unit_test(more_ranks_than_lanes),
        cmocka_unit_test(a_rank_computes),
        cmocka_unit_test(a_rank_is_stopped),
        cmocka_unit_test(further_lanes_are_not_owed),
        cmocka_unit_test(lanes_fail_while_they_are_closed),
        cmocka_unit_test(the_application_takes_them),
        cmocka_unit_test(nobody_keeps_them),
        cmocka_unit_test(relays_keep_theirs),
        cmocka_unit_test(several_are_stopped),
        cmocka_unit_test(closed_while_stopped),
        cmocka_unit_test(none_at_all),
        cmocka_unit_test(a_rail_fails),
        cmocka_unit_test(limit_holds_without_any),
        cmocka_unit_test(given_up_in_wire_up_while_stopped),
        cmocka_unit_test(lanes_that_were_asked_for_are_closed),
        cmocka_unit_test(who_is_called_makes_room_beside_a_relay),
        cmocka_unit_test(all_lanes_have_their_turn),
    };

    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
