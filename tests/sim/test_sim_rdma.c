/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Simulated hosts with RDMA ports and without: the ends of each lane agree on its transport (the
 * simulator fails a job whose ends differ), rails have lanes of both, and are healed.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/util.h"
#include "scenario.h"

#define CALLS                                                                                      \
    "coll allreduce i64 1; coll allreduce f64 30000; coll allgather bytes3 10000;"                 \
    "coll reduce-scatter f64 5000; coll alltoall i64 300; coll bcast bytes3 200000; coll barrier " \
    "i64 0; coll allreduce i64 50000 nb; coll bcast i64 0 nb; wait;"
#define FAULTS                                                                                  \
    "at 500us drop h1 rail1; at 2ms down h0 rail0; at 400ms heal; rule duplicate 10 delay=5ms " \
    "until=1s"

static void transports_are_mixed(void **state)
{
    static const char *const machines[] = {
        "hosts 4; rails 4; rdma 1;", "hosts 4; rails 4; rdma 2;", "hosts 4; rails 4; rdma 3;",
        "hosts 4; rails 2; rdma 9;", "hosts 3; ppn 2; rails 2; rdma 2;",
        "hosts 4; rails 4; rails-of h1 2; rdma 2;",
        /* Nothing is taken before what went before has arrived: a send is done late. */
        "hosts 4; rails 4; rdma 4; socket 1;"};
    scenario_result_t result;
    char text[2048];

    (void) state;
    for (size_t i = 0; i < r2_array_count(machines); ++i) {
        for (unsigned seed = 1; seed <= 3; ++seed) {
            snprintf(text, sizeof(text), "seed %u; %s rate 12500000; latency 50us; %s %s", seed,
                     machines[i], CALLS, FAULTS);
            assert_true(scenario_check(text, &result));
        }
    }
}

/* Chunks of fast lanes are long, and an RDMA device has memory for 128 KiB of each: also where they
 * come from a host without, or go to one, directly or by way of a third one. */
static void chunks_fit_devices(void **state)
{
    static const char *const cases[] = {
        "coll bcast i64 600000 root=3 times=4",
        "at 3ms drop h1 rail1; coll bcast i64 600000 root=3 times=4",
        "at 3ms down h3 rail0; at 3ms down h0 rail1; coll bcast i64 600000 root=3 times=4",
        "at 3ms down h3 rail0; at 3ms down h0 rail1; coll bcast i64 600000 root=0 times=4"};
    scenario_result_t result;
    char text[1024];

    (void) state;
    for (unsigned hosts = 1; hosts <= 4; ++hosts) {
        for (size_t i = 0; i < r2_array_count(cases); ++i) {
            snprintf(text, sizeof(text),
                     "seed %u; hosts 4; rails 2; rdma %u; rate 2000000000; latency 10us; %s; "
                     "coll allgather i64 300000 times=3",
                     hosts, hosts, cases[i]);
            assert_true(scenario_check(text, &result));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transports_are_mixed),
        cmocka_unit_test(chunks_fit_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
