/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Gaps after faults: when data stopped, when it went on, and for which fault.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/util.h"
#include "telemetry/gap.h"

#define T_MS R2_NS_PER_MS

/* Deliveries every step within [from, to). */
static void t_deliver(r2_gap_t *gap, uint64_t from_ms, uint64_t to_ms, uint64_t step_ms)
{
    for (uint64_t ms = from_ms; ms < to_ms; ms += step_ms) {
        r2_gap_swept(gap, true, true, ms * T_MS);
    }
}

static r2_gap_fault_t t_take(r2_gap_t *gap, uint64_t at_ms)
{
    r2_gap_fault_t fault;

    assert_int_equal(r2_gap_deadline_ns(gap), at_ms * T_MS);
    assert_false(r2_gap_take(gap, at_ms * T_MS - 1, &fault));
    assert_true(r2_gap_take(gap, at_ms * T_MS, &fault));
    assert_int_equal(r2_gap_deadline_ns(gap), UINT64_MAX);
    return fault;
}

/* Only pauses after the fault count, and of those that span its begin or end only the part
 * inside. */
static void gap_in_window(void **state)
{
    static const struct {
        uint64_t pause_from_ms, pause_to_ms, evidence_ms, expect_ms;
    } rows[] = {
        {3000, 3200, 3500, 2},   /* before the fault */
        {3400, 3600, 3500, 100}, /* spans it, and evidence came in the middle */
        {3600, 3700, 3500, 100},  {4450, 4700, 3500, 50}, /* spans the end of the window */
        {4600, 4900, 3500, 2},                            /* behind it */
        {3500, 4600, 3500, 1000},
    };

    (void) state;
    for (size_t i = 0; i < r2_array_count(rows); ++i) {
        uint64_t from_ms = rows[i].pause_from_ms, to_ms = rows[i].pause_to_ms;
        uint64_t since_ms = rows[i].evidence_ms;
        r2_gap_t gap;
        bool told = false;

        r2_gap_init(&gap);
        for (uint64_t ms = 1000; ms <= 4500; ++ms) {
            r2_gap_swept(&gap, 0 == ms % 2 && (ms <= from_ms || ms >= to_ms), true, ms * T_MS);
            if (since_ms == ms && !told) {
                r2_gap_fault(&gap, 7, since_ms * T_MS, ms * T_MS);
                told = true;
            }
        }
        assert_int_equal(t_take(&gap, since_ms + 1000).longest_ns, rows[i].expect_ms * T_MS);
        assert_int_equal(gap.longest_ns, rows[i].expect_ms * T_MS);
    }
}

/* Evidence that comes after the pause is over: the pause is remembered. */
static void gap_late_evidence(void **state)
{
    r2_gap_t gap;

    (void) state;
    r2_gap_init(&gap);
    t_deliver(&gap, 1000, 2000, 10);
    t_deliver(&gap, 2140, 2400, 10);
    r2_gap_fault(&gap, 0, 2030 * T_MS, 2400 * T_MS);
    t_deliver(&gap, 2400, 3100, 10);
    assert_int_equal(t_take(&gap, 3030).longest_ns, 110 * T_MS);
}

/* While nobody waits there is no gap. */
static void gap_nobody_waits(void **state)
{
    r2_gap_t gap;

    (void) state;
    r2_gap_init(&gap);
    t_deliver(&gap, 1000, 1100, 10);
    r2_gap_fault(&gap, 0, 1100 * T_MS, 1100 * T_MS);
    r2_gap_swept(&gap, false, false, 1105 * T_MS);
    r2_gap_swept(&gap, false, false, 1700 * T_MS);
    r2_gap_swept(&gap, false, true, 1800 * T_MS);
    t_deliver(&gap, 1830, 2200, 10);
    assert_int_equal(t_take(&gap, 2100).longest_ns, 30 * T_MS);
}

/* The window ends while everybody still waits. */
static void gap_without_end(void **state)
{
    r2_gap_t gap;

    (void) state;
    r2_gap_init(&gap);
    t_deliver(&gap, 1000, 1100, 10);
    r2_gap_fault(&gap, 0, 1200 * T_MS, 1200 * T_MS);
    assert_int_equal(t_take(&gap, 2200).longest_ns, 1000 * T_MS);
}

/* More evidence of the same fault is no second fault; another rail is; a later one is. */
static void gap_which_fault(void **state)
{
    r2_gap_t gap;
    r2_gap_fault_t fault;
    unsigned taken = 0;

    (void) state;
    r2_gap_init(&gap);
    t_deliver(&gap, 1000, 2000, 10);
    r2_gap_fault(&gap, 1, 2000 * T_MS, 2000 * T_MS);
    r2_gap_fault(&gap, 1, 2100 * T_MS, 2100 * T_MS);
    r2_gap_fault(&gap, 2, 2300 * T_MS, 2300 * T_MS);
    t_deliver(&gap, 2400, 3100, 10);
    while (r2_gap_take(&gap, 3400 * T_MS, &fault)) {
        ++taken; /* what is left of the pause from 1990 to 2400; what lies behind 3090 is longer for
                    rail 2 */
        assert_int_equal(fault.longest_ns, (1 == fault.rail ? 400 : 210) * T_MS);
    }
    assert_int_equal(taken, 2);
    r2_gap_fault(&gap, 1, 3400 * T_MS, 3400 * T_MS);
    assert_int_equal(r2_gap_deadline_ns(&gap), 4400 * T_MS);
}

static void gap_too_many(void **state)
{
    r2_gap_t gap;

    (void) state;
    r2_gap_init(&gap);
    for (uint32_t i = 0; i < R2_GAP_FAULTS_MAX + 3; ++i) {
        r2_gap_fault(&gap, i, 1000, 1000);
    }
    assert_int_equal(gap.missed, 3);
    assert_int_equal(gap.fault_count, R2_GAP_FAULTS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gap_in_window),    cmocka_unit_test(gap_late_evidence),
        cmocka_unit_test(gap_nobody_waits), cmocka_unit_test(gap_without_end),
        cmocka_unit_test(gap_which_fault),  cmocka_unit_test(gap_too_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
