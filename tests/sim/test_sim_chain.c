/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Broadcasts down a chain: chunks are passed on as they come, whatever fails meanwhile.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/util.h"
#include "scenario.h"

enum { VECTOR = 1048575 };

#define LAB "hosts 4; rails 4; rate 12500000; latency 50us; param bcast_algorithm chain;"

/* Mean time of a broadcast of VECTOR bytes on a rank. */
static uint64_t bcast_ns(const char *machine)
{
    scenario_result_t result;
    char text[1024];

    snprintf(text, sizeof(text), "seed 1; %s coll bcast bytes3 %d times=8", machine, VECTOR / 3);
    assert_true(scenario_check(text, &result));
    return result.calls[R2_COLL_BCAST].ns / result.calls[R2_COLL_BCAST].count;
}

/* Two hosts pass everything on, and are late by a few chunks. */
static void rails_are_kept_busy(void **state)
{
    const uint64_t line_ns = VECTOR * R2_NS_PER_S / (4 * 12500000);

    (void) state;
    assert_true(bcast_ns(LAB) < line_ns + line_ns / 6);
}

/* Over the rails goes what one rank of each host gets. */
static void hosts_are_crossed_to_once(void **state)
{
    (void) state;
    assert_true(bcast_ns(LAB "ppn 4;") < 2 * bcast_ns(LAB));
}

static void faults_do_not_change_data(void **state)
{
    static const char *const faults[] = {
        "at 5ms down h1 rail0",
        "at 5ms drop h1 rail0; at 300ms heal",
        "at 5ms down h1 rail0; at 6ms down h2 rail1; at 7ms rate h0 rail3 1000000",
        "at 10ms drop-out h2 rail2; at 100ms pass h2 rail2; at 110ms drop-in h3 rail2",
        "at 12ms stop r2; at 900ms cont r2"};
    static const char *const machines[] = {LAB, LAB "ppn 3;"};
    char text[1024];

    (void) state;
    for (size_t i = 0; i < r2_array_count(faults) * r2_array_count(machines); ++i) {
        scenario_result_t result;

        for (uint32_t seed = 1; seed <= 3; ++seed) {
            snprintf(text, sizeof(text),
                     "seed %u; %s coll bcast bytes3 %d times=3; coll bcast i64 50000 root=2 nb; "
                     "coll allreduce f64 30000 nb; coll bcast bytes3 30000 root=1 nb; wait; %s",
                     seed, machines[i % r2_array_count(machines)], VECTOR / 3,
                     faults[i / r2_array_count(machines)]);
            assert_true(scenario_check(text, &result));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rails_are_kept_busy),
        cmocka_unit_test(hosts_are_crossed_to_once),
        cmocka_unit_test(faults_do_not_change_data),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
