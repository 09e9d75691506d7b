/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What the planner remembers of a map: it is what a rank that forgot it works out anew.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/forecast.h"
#include "plan/memo.h"

static void test_size_class(void **state)
{
    (void) state;
    assert_int_equal(0, r2_plan_size_class(0));
    assert_int_equal(0, r2_plan_size_class(1));
    assert_int_equal(10, r2_plan_size_class(1024));
    assert_int_equal(11, r2_plan_size_class(1025));
    assert_int_equal(63, r2_plan_size_class(UINT64_MAX));
}

/** All ranks' ops, told by their digest and the bytes that they send. */
static void plan_of(const r2_plan_input_t *input, uint32_t *digest_p, uint64_t *bytes_p)
{
    r2_schedule_t schedule;

    assert_int_equal(R2_OK, r2_plan_build(input, &schedule));
    *digest_p = schedule.digest;
    *bytes_p = 0;
    for (uint32_t i = 0; i < schedule.op_count; ++i) {
        *bytes_p += R2_OP_SEND == schedule.ops[i].kind ? schedule.ops[i].bytes : 0;
    }
    r2_schedule_fini(&schedule);
}

/** Knows a call on a map; the plan must be that of a rank which has to work it out anew. */
static void know(r2_plan_memo_t *memo, r2_plan_input_t *input, bool fresh)
{
    uint32_t digest, anew_digest;
    uint64_t bytes, anew_bytes;
    bool was_fresh;

    input->estimate = NULL;
    plan_of(input, &anew_digest, &anew_bytes);
    assert_int_equal(R2_OK, r2_plan_estimate(memo, input, &input->estimate, &was_fresh));
    assert_int_equal(fresh, was_fresh);
    plan_of(input, &digest, &bytes);
    assert_int_equal(anew_digest, digest);
    assert_int_equal(anew_bytes, bytes);
}

/** Healthy: nothing to know. Broken: once for each class of lengths. */
static void test_once_for_each_class(void **state)
{
    r2_topology_t topology;
    r2_plan_input_t input = {.kind = R2_COLL_ALLREDUCE,
                             .size = 4,
                             .element_bytes = 4,
                             .count = 1 << 20,
                             .commutative = true,
                             .reproducible = true,
                             .scratch_bytes = 1 << 20,
                             .chunk_min_bytes = 8192,
                             .chunk_max_bytes = 131072,
                             .topology = &topology};
    r2_plan_memo_t memo = {{NULL}};
    char text[200];

    (void) state;
    assert_int_equal(R2_OK, r2_topology_init(&topology, 4, 4, 4, 1250));
    know(&memo, &input, false);
    assert_null(input.estimate);
    r2_topology_set_capacity(&topology, 3, 1, 0);
    for (int turn = 0; turn < 3; ++turn) {
        know(&memo, &input, 0 == turn);
        assert_true(input.estimate->shares.weight[3] < input.estimate->shares.weight[0]);
    }
    input.count /= 2;
    know(&memo, &input, true);
    input.count -= 1;
    know(&memo, &input, false);
    r2_plan_estimate_text(input.estimate, text, sizeof(text));
    assert_non_null(strstr(text, "weighted 0."));
    assert_non_null(strstr(text, "bound 0."));
    input.kind = R2_COLL_BCAST;
    know(&memo, &input, false);
    assert_null(input.estimate);
    r2_topology_fini(&topology);
    r2_plan_memo_fini(&memo);
    r2_plan_memo_fini(&memo);
}

/** Ranks whose first call of a class had another length, or who forgot it, still choose the
 * same. */
static void test_choice_of_a_class(void **state)
{
    r2_topology_t topology;
    r2_plan_input_t input = {.kind = R2_COLL_ALLREDUCE,
                             .size = 4,
                             .element_bytes = 4,
                             .commutative = true,
                             .reproducible = true,
                             .scratch_bytes = 1 << 20,
                             .chunk_min_bytes = 8192,
                             .chunk_max_bytes = 131072,
                             .topology = &topology};

    (void) state;
    assert_int_equal(R2_OK, r2_topology_init(&topology, 4, 4, 4, 1250));
    for (uint32_t capacity = 1; capacity < R2_CAPACITY_FULL; ++capacity) {
        r2_plan_memo_t memo = {{NULL}};

        r2_topology_set_capacity(&topology, 0, 0, capacity);
        for (uint64_t count = 16384; count > 2048; count -= 512) {
            input.count = count;
            know(&memo, &input, 0 == (count & (count - 1)));
        }
        r2_plan_memo_fini(&memo);
    }
    r2_topology_fini(&topology);
}

/** What is forecast for a length is that of the longest of its class, whoever calls first. */
static void test_forecast_of_a_class(void **state)
{
    r2_topology_t topology;
    r2_plan_input_t input = {.kind = R2_COLL_ALLREDUCE,
                             .size = 4,
                             .element_bytes = 4,
                             .cost = {.alpha_ns = 1000, .rate_ppm = R2_PPM},
                             .topology = &topology};
    r2_forecast_t forecasts[3];

    (void) state;
    assert_int_equal(R2_OK, r2_topology_init(&topology, 4, 4, 4, 1250));
    r2_topology_set_capacity(&topology, 0, 0, 0);
    for (uint32_t i = 0; i < 3; ++i) {
        static const uint64_t counts[] = {(1 << 18) + 1, 1 << 19, 1 << 18};

        input.count = counts[i];
        assert_int_equal(R2_OK, r2_forecast_class(&input, &forecasts[i]));
    }
    assert_true(forecasts[0].bound_ns == forecasts[1].bound_ns);
    assert_true(forecasts[2].bound_ns < forecasts[1].bound_ns);
    assert_true(forecasts[0].count > 0);
    for (uint32_t i = 0; i < forecasts[0].count; ++i) {
        assert_true(forecasts[0].of[i].ns == forecasts[1].of[i].ns);
    }
    r2_topology_fini(&topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_size_class),
                                       cmocka_unit_test(test_forecast_of_a_class),
                                       cmocka_unit_test(test_once_for_each_class),
                                       cmocka_unit_test(test_choice_of_a_class)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
