/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Schedules where ranks wait for processors: few messages, proved by the checker.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "r2/planner.h"
#include "schedule_cases.h"

/* Messages that all ranks send. */
static uint32_t messages_of_all(r2_plan_input_t *input)
{
    uint32_t messages = 0;

    for (input->rank = 0; input->rank < input->size; ++input->rank) {
        r2_schedule_t schedule;

        assert_int_equal(R2_OK, r2_plan_build(input, &schedule));
        for (uint32_t op = 0; op < schedule.op_count; ++op) {
            messages += R2_OP_SEND == schedule.ops[op].kind;
        }
        r2_schedule_fini(&schedule);
    }
    input->rank = 0;
    return messages;
}

/** @param told_mbytes_per_s of each of four rails. @param full ranks on the last of four hosts. */
static const char *chosen_where_crowded(r2_coll_kind_t kind, uint64_t bytes,
                                        uint32_t told_mbytes_per_s, int32_t full)
{
    const r2_case_t chosen = {kind, NULL};
    r2_plan_input_t input = r2_case_input(&chosen, 3 + full, bytes / 8, 8);
    r2_topology_t topology;
    const char *name;

    r2_case_full_host(&input, &topology, told_mbytes_per_s);
    input.cost.crowded = R2_CROWDED_ALL;
    name = r2_plan_choose(&input);
    r2_topology_set_capacity(&topology, 1, 2, 0);
    /* whatever is broken */
    assert_int_equal(0 == strcmp(name, "linear"), 0 == strcmp(r2_plan_choose(&input), "linear"));
    r2_topology_fini(&topology);
    return name;
}

/** Where ranks wait for processors one rank does all the work, if rails carry it, and nothing in
 * place of another tree. */
static void test_crowded_ranks_go_through_one(void **state)
{
    const r2_coll_kind_t kinds[] = {R2_COLL_ALLREDUCE, R2_COLL_REDUCE, R2_COLL_BCAST};

    (void) state;
    for (size_t i = 0; i < r2_array_count(kinds); ++i) {
        assert_string_equal("linear", chosen_where_crowded(kinds[i], 20000, 1250, 1));
        assert_string_equal("linear", chosen_where_crowded(kinds[i], 16 << 20, 1250, 1));
        assert_string_not_equal("linear", chosen_where_crowded(kinds[i], (16 << 20) + 8, 1250, 1));
        assert_string_equal("linear", chosen_where_crowded(kinds[i], 1 << 20, 750, 1));
        assert_string_not_equal("linear", chosen_where_crowded(kinds[i], 1 << 20, 749, 1));
    }
    assert_string_equal("recursive-doubling",
                        chosen_where_crowded(R2_COLL_ALLREDUCE, 8192, 1250, 1));
    assert_string_equal("binomial", chosen_where_crowded(R2_COLL_REDUCE, 16384, 1250, 1));
    assert_string_equal("hierarchical", chosen_where_crowded(R2_COLL_ALLREDUCE, 1 << 20, 1250, 4));
    for (uint64_t bytes = 16384; bytes <= 16 << 20; bytes *= 2) {
        assert_string_not_equal("linear", chosen_where_crowded(R2_COLL_ALLREDUCE, bytes, 1250, 2));
    }
}

/** Two levels where ranks are crowded: one rank of each host, and the first host folds all. */
static void test_crowded_hosts_fold_at_one(void **state)
{
    const r2_case_t folding = {R2_COLL_ALLREDUCE, "hierarchical"};
    r2_plan_input_t input = r2_case_input(&folding, 4, 4096, 8);
    uint64_t messages[4] = {0, 0, 0, 0};

    (void) state;
    for (uint32_t i = 0; i < 4; ++i) {
        r2_topology_t topology;

        r2_case_placement(&topology, 0);
        input.topology = &topology;
        input.scratch_bytes = 1 << 20;
        input.chunk_min_bytes = 8192;
        input.chunk_max_bytes = 131072;
        input.cost.crowded = 0 != i % 2 ? R2_CROWDED_ALL : 0;
        input.count = i < 2 ? 4096 : 32769;
        for (input.rank = 0; input.rank < input.size; ++input.rank) {
            r2_schedule_t schedule;

            assert_int_equal(R2_OK, r2_plan_build(&input, &schedule));
            for (uint32_t op = 0; op < schedule.op_count; ++op) {
                messages[i] += R2_OP_SEND == schedule.ops[op].kind;
            }
            r2_schedule_fini(&schedule);
        }
        input.rank = 0;
        r2_case_check(&input, 0);
        r2_case_check(&input, 0x5a5a96695a5a9669u);
        r2_topology_fini(&topology);
    }
    assert_int_equal(messages[0], 24);
    assert_int_equal(messages[1], 6);
    assert_int_equal(messages[2], messages[3]); /* longer ones stay as they are */
}

/** The same of reduces, whichever rank is the root. */
static void test_crowded_hosts_reduce_at_one(void **state)
{
    const r2_case_t folding = {R2_COLL_REDUCE, "hierarchical"};
    r2_plan_input_t input = r2_case_input(&folding, 6, 4096, 8);
    const uint32_t expected[6] = {5, 6, 6, 5, 6, 5}; /* the first rank of the root's host folds */
    r2_topology_t topology;

    (void) state;
    r2_case_placement(&topology, 2);
    input.topology = &topology;
    input.scratch_bytes = 1 << 20;
    input.chunk_min_bytes = 8192;
    input.chunk_max_bytes = 131072;
    input.cost.crowded = R2_CROWDED_ALL;
    for (input.root = 0; input.root < input.size; ++input.root) {
        assert_int_equal(messages_of_all(&input), expected[input.root]);
    }
    r2_topology_fini(&topology);
}

/** In segments, with little staging memory, hosts in blocks and not, a pair of hosts without a
 * rail. */
static void test_crowded_hosts_reduce_in_segments(void **state)
{
    const r2_case_t folding = {R2_COLL_REDUCE, "hierarchical"};

    (void) state;
    for (size_t k = 0; k < 7; ++k) {
        r2_plan_input_t input = r2_case_input(&folding, r2_case_ranks(k), 15000, 8);
        r2_topology_t topology;

        r2_case_placement(&topology, k);
        input.topology = &topology;
        input.chunk_min_bytes = 1024;
        input.cost.crowded = R2_CROWDED_ALL;
        for (input.root = 0; input.root < input.size; ++input.root) {
            input.scratch_bytes = 0 == input.root % 2 ? 16384 : 4096;
            input.rank = 0;
            r2_case_check(&input, 0);
            r2_case_check(&input, 0x5a5a96695a5a9669u);
        }
        r2_topology_cut(&topology, 0, 1, 1);
        input.root = 0;
        r2_case_check(&input, 0);
        r2_topology_fini(&topology);
    }
}

/** Where ranks wait for processors each message is a turn of two: blocks of up to 256 KiB go whole,
 * where rails are not slow, and blocks of which halves are copied as ever. */
static void test_crowded_allgathers_take_few_messages(void **state)
{
    const r2_case_t named = {R2_COLL_ALLGATHER, "hierarchical"},
                    uneven = {R2_COLL_ALLGATHERV, "hierarchical"};

    (void) state;
    for (size_t k = 0; k < R2_PLACEMENTS; ++k) {
        r2_plan_input_t input = r2_case_input(&named, r2_case_ranks(k), 32768, 8);
        const uint32_t least = (uint32_t) (input.size * (input.size - 1));
        const uint32_t own = 0xffu << R2_CROWDED_ALLGATHER;
        r2_uneven_t counts;
        r2_topology_t topology;
        uint32_t usual;

        r2_case_placement(&topology, k);
        input.topology = &topology;
        input.copy_max_bytes = 8192;
        input.cost.rate_ppm = R2_PPM / R2_COST_SLOW - 1;
        usual = messages_of_all(&input);
        input.cost.crowded = own;
        assert_true(usual > least);
        assert_int_equal(messages_of_all(&input), usual);
        input.cost.rate_ppm = 0;
        assert_int_equal(messages_of_all(&input), least);
        r2_case_check(&input, 0x5a5a96695a5a9669u);
        input.count = 32769;
        assert_int_equal(messages_of_all(&input), 2 * least);
        r2_case_check(&input, 0);
        input.cost.crowded = ~own;
        assert_true(messages_of_all(&input) > 2 * least);
        input.cost.crowded = own;
        input.count = 2048;
        assert_true(messages_of_all(&input) > least);
        input = r2_case_input(&uneven, input.size, 5000, 8);
        input.topology = &topology;
        input.cost.crowded = own;
        input.message_max_bytes = 16384;
        for (uint32_t displs = 0; displs < 2; ++displs) {
            r2_case_uneven(&input, &counts, 5000, 0 != displs);
            r2_case_check(&input, 0x5a5a96695a5a9669u);
        }
        r2_topology_fini(&topology);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crowded_ranks_go_through_one),
        cmocka_unit_test(test_crowded_hosts_fold_at_one),
        cmocka_unit_test(test_crowded_hosts_reduce_at_one),
        cmocka_unit_test(test_crowded_hosts_reduce_in_segments),
        cmocka_unit_test(test_crowded_allgathers_take_few_messages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
