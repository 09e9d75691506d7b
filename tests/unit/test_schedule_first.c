/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Schedules that go through the first rank of each host: proved by the checker with as little
 * staging memory as they say they need, and who sends what to other hosts.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "plan/algorithm.h"
#include "r2/planner.h"
#include "schedule_cases.h"

enum { RANKS_MOST = 40 };

/** Hosts of one rank to twenty, equally many or not; in order of hosts and not. */
static const struct {
    int32_t ranks;
    uint32_t hosts, host_of[RANKS_MOST];
} layouts[] = {
    {4, 2, {0, 0, 1, 1}},
    {6, 3, {0, 1, 2, 0, 1, 0}},
    {5, 2, {0, 1, 1, 1, 1}},
    {7, 3, {1, 1, 0, 0, 0, 2, 2}},
    {9, 4, {0, 0, 0, 1, 1, 2, 2, 2, 3}},
    {9, 4, {0, 1, 2, 3, 0, 1, 2, 0, 2}},
    {16, 4, {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}},
    {40, 2, {[20] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
    {40, 39, {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
              20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 3}}};

static void layout_init(r2_topology_t *topology, size_t layout)
{
    assert_int_equal(
        R2_OK, r2_topology_init(topology, layouts[layout].hosts, 3, layouts[layout].ranks, 1000));
    memcpy(topology->host_of, layouts[layout].host_of,
           (size_t) layouts[layout].ranks * sizeof(*topology->host_of));
}

/** Messages that a rank sends to other hosts. */
static uint32_t messages_out(const r2_plan_input_t *input)
{
    const uint32_t *host_of = input->topology->host_of;
    r2_schedule_t schedule;
    uint32_t messages = 0;

    assert_int_equal(R2_OK, r2_plan_build(input, &schedule));
    for (uint32_t i = 0; i < schedule.op_count; ++i) {
        const r2_op_t *op = &schedule.ops[i];

        messages += R2_OP_SEND == op->kind && host_of[op->peer] != host_of[input->rank];
    }
    r2_schedule_fini(&schedule);
    return messages;
}

/** @return messages of all ranks to other hosts. None but one rank of each host sends any. */
static uint32_t messages_of_firsts(r2_plan_input_t *input)
{
    uint32_t messages = 0, senders = 0;

    for (input->rank = 0; input->rank < input->size; ++input->rank) {
        const uint32_t own = messages_out(input);

        senders += 0 < own;
        messages += own;
    }
    input->rank = 0;
    assert_int_equal(input->topology->host_count, senders);
    return messages;
}

static void check_all_in_place(const r2_plan_input_t *input)
{
    r2_case_check(input, 0);
    r2_case_check(input, UINT64_MAX);
    r2_case_check(input, 0x5a5a96695a5a9669u);
}

/** Each host sends each other one message. */
static void test_alltoall(void **state)
{
    const r2_case_t named = {R2_COLL_ALLTOALL, "hosts"};
    const uint64_t lengths[] = {5, 333};

    (void) state;
    for (size_t k = 0; k < r2_array_count(lengths) * r2_array_count(layouts); ++k) {
        const size_t layout = k % r2_array_count(layouts);
        r2_plan_input_t input =
            r2_case_input(&named, layouts[layout].ranks, lengths[k / r2_array_count(layouts)], 1);
        r2_topology_t topology;

        layout_init(&topology, layout);
        input.topology = &topology;
        input.scratch_bytes = r2_algorithm_find(R2_COLL_ALLTOALL, "hosts")->scratch(&input);
        assert_string_equal("hosts", r2_plan_choose(&input));
        assert_int_equal(topology.host_count * (topology.host_count - 1),
                         messages_of_firsts(&input));
        check_all_in_place(&input);
        --input.scratch_bytes;
        assert_string_equal("pairwise (the one asked for cannot run)", r2_plan_choose(&input));
        r2_topology_fini(&topology);
    }
}

/** Equal blocks, and unequal ones of which some are empty, in order and with gaps: hosts send to
 * all others at once, or in steps. */
static void test_allgather(void **state)
{
    const r2_case_t named[] = {{R2_COLL_ALLGATHER, "hosts"}, {R2_COLL_ALLGATHERV, "hosts"}};

    (void) state;
    for (size_t k = 0; k < 3 * r2_array_count(layouts); ++k) {
        const size_t layout = k / 3;
        r2_plan_input_t input = r2_case_input(&named[0 < k % 3], layouts[layout].ranks, 7, 4);
        r2_topology_t topology;
        r2_uneven_t uneven;

        layout_init(&topology, layout);
        r2_case_uneven(&input, &uneven, 7, 2 == k % 3);
        input.topology = &topology;
        input.scratch_bytes = r2_algorithm_find(input.kind, "hosts")->scratch(&input);
        assert_string_equal("hosts", r2_plan_choose(&input));
        if (0 == k % 3) {
            const uint32_t hosts = topology.host_count, messages = messages_of_firsts(&input);

            assert_true(4 < hosts || hosts * (hosts - 1) == messages);
            assert_true(4 >= hosts || 2 * hosts * r2_steps_below((int32_t) hosts) >= messages);
        }
        check_all_in_place(&input);
        --input.scratch_bytes;
        assert_string_equal("direct (the one asked for cannot run)", r2_plan_choose(&input));
        r2_topology_fini(&topology);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_alltoall),
                                       cmocka_unit_test(test_allgather)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
