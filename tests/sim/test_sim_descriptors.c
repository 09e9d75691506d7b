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
        "seed 77000063; ppn 3; param heal_min_ms 159; param no_path_timeout_ms 3788; "
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
        cmocka_unit_test(none_at_all),
        cmocka_unit_test(a_rail_fails),
    };

    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
