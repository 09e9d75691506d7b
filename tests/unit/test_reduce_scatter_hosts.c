/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Reduce_scatters through one rank of each host: proved by the checker with the least staging
 * memory, what crosses between hosts, and what decides for them.
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
#include "plan/host_fold.h"
#include "plan/thresholds.h"
#include "schedule_cases.h"

enum { RANKS_MOST = 12 };

/* Thresholds: the vector, and what the first rank of a host takes in. */
static const uint64_t hosts_bytes = r2_threshold_reduce_scatter_hosts_bytes;
static const uint64_t taken_bytes = r2_threshold_reduce_scatter_hosts_taken_bytes;

/** Hosts of ranks: equally many or not, in blocks, in turn, and in no order. */
static const struct {
    int32_t ranks;
    uint32_t hosts, host_of[RANKS_MOST];
} placements[] = {{4, 2, {0, 0, 1, 1}},
                  {5, 2, {0, 0, 0, 1, 1}},
                  {4, 3, {0, 1, 1, 2}},
                  {5, 2, {0, 1, 1, 1, 1}},
                  {8, 4, {0, 1, 2, 3, 0, 1, 2, 3}},
                  {8, 4, {0, 0, 1, 1, 2, 2, 3, 3}},
                  {6, 3, {2, 0, 1, 0, 1, 0}},
                  {7, 3, {1, 0, 0, 1, 0, 2, 2}},
                  {12, 3, {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}},
                  {3, 1, {0, 0, 0}}};

static void place(r2_topology_t *topology, size_t placement)
{
    assert_int_equal(R2_OK, r2_topology_init(topology, placements[placement].hosts, 2,
                                             placements[placement].ranks, 1250));
    memcpy(topology->host_of, placements[placement].host_of,
           (size_t) placements[placement].ranks * sizeof(*topology->host_of));
}

static r2_plan_input_t input_on(const r2_topology_t *topology, r2_coll_kind_t kind, uint64_t count,
                                uint64_t element_bytes)
{
    const r2_case_t one = {kind, "hosts"};
    r2_plan_input_t input = r2_case_input(&one, topology->rank_count, count, element_bytes);

    input.topology = topology;
    return input;
}

/** With as much staging memory as it asks for it runs, with a byte less it does not. */
static void check_staging(r2_plan_input_t input)
{
    const uint64_t in_places[] = {0, UINT64_MAX, 0x5a5a96695a5a9669u};
    const r2_algorithm_t *hosts = r2_algorithm_find(input.kind, "hosts");

    input.scratch_bytes = hosts->scratch(&input);
    for (size_t i = 0; i < r2_array_count(in_places); ++i) {
        for (uint32_t copied = 0; copied < 2; ++copied) {
            input.copy_max_bytes = copied * 8192;
            assert_string_equal("hosts", r2_plan_choose(&input));
            r2_case_check(&input, in_places[i]);
        }
    }
    --input.scratch_bytes;
    assert_string_equal("direct (the one asked for cannot run)", r2_plan_choose(&input));
    r2_case_check(&input, UINT64_MAX);
}

/** Counts of reduce_scatter. @param pattern what is not there. */
static void fill_counts(const r2_topology_t *topology, uint32_t pattern, uint64_t count,
                        uint64_t *counts)
{
    for (int32_t r = 0; r < topology->rank_count; ++r) {
        const bool absent = 0 == pattern   ? 1 == r % 3                    /* every third rank */
                            : 1 == pattern ? 0 == topology->host_of[r]     /* all of a host */
                            : 2 == pattern ? r != topology->rank_count / 2 /* all but one */
                                           : r < topology->rank_count / 2; /* the first half */

        counts[r] = absent ? 0 : count + (uint64_t) r % 5;
    }
}

static void test_all_places(void **state)
{
    const uint64_t lengths[] = {1, 7, 100, 3000}, elements[] = {1, 4, 12, 16};

    (void) state;
    for (size_t k = 0; k < r2_array_count(placements); ++k) {
        r2_topology_t topology;

        place(&topology, k);
        for (size_t i = 0; i < r2_array_count(lengths) * r2_array_count(elements); ++i) {
            const uint64_t count = lengths[i % r2_array_count(lengths)];
            const uint64_t bytes = elements[i / r2_array_count(lengths)];
            uint64_t counts[RANKS_MOST];

            check_staging(input_on(&topology, R2_COLL_REDUCE_SCATTER_BLOCK, count, bytes));
            for (uint32_t pattern = 0; pattern < 4; ++pattern) {
                r2_plan_input_t input = input_on(&topology, R2_COLL_REDUCE_SCATTER, count, bytes);

                fill_counts(&topology, pattern, count, counts);
                input.counts = counts;
                check_staging(input);
            }
        }
        r2_topology_fini(&topology);
    }
}

/** What does not commute is folded in the order of ranks, where hosts' follow one another. */
static void test_order(void **state)
{
    (void) state;
    for (size_t k = 0; k < r2_array_count(placements); ++k) {
        r2_topology_t topology;
        r2_plan_input_t input;

        place(&topology, k);
        input = input_on(&topology, R2_COLL_REDUCE_SCATTER_BLOCK, 9, 4);
        input.commutative = false;
        assert_string_equal(r2_host_fold_ordered(&input) ? "hosts"
                                                         : "direct (the one asked for cannot run)",
                            r2_plan_choose(&input));
        r2_case_check(&input, 0);
        r2_case_check(&input, 0x5a5a96695a5a9669u);
        r2_topology_fini(&topology);
    }
}

/** One rank of each host sends each other host one message with the blocks of its ranks. */
static void check_messages(bool long_ones)
{
    for (size_t k = 0; k < r2_array_count(placements); ++k) {
        const uint64_t hosts = placements[k].hosts, count = long_ones ? 4000 : 10;
        uint64_t crossing = 0, within = 0, bytes = 0;
        r2_topology_t topology;
        r2_plan_input_t input;

        place(&topology, k);
        input = input_on(&topology, R2_COLL_REDUCE_SCATTER_BLOCK, count, 8);
        input.scratch_bytes = 16777216;
        for (input.rank = 0; input.rank < input.size; ++input.rank) {
            r2_schedule_t schedule;

            assert_int_equal(R2_OK, r2_plan_build(&input, &schedule));
            for (uint32_t i = 0; i < schedule.op_count; ++i) {
                const r2_op_t *op = &schedule.ops[i];

                if (R2_OP_SEND == op->kind &&
                    topology.host_of[op->peer] == topology.host_of[input.rank]) {
                    ++within;
                } else if (R2_OP_SEND == op->kind) {
                    ++crossing;
                    bytes += op->bytes;
                }
            }
            r2_schedule_fini(&schedule);
        }
        assert_int_equal(crossing, hosts * (hosts - 1));
        assert_int_equal(bytes, 8 * count * (uint64_t) input.size * (hosts - 1));
        assert_int_equal(within, 2 * ((uint64_t) input.size - hosts));
        r2_topology_fini(&topology);
    }
}

static void test_hosts_send_once(void **state)
{
    (void) state;
    check_messages(0);
    check_messages(1);
}

/** @param count of 8 bytes each, of a rank's block. */
static const char *chosen(r2_topology_t *topology, uint64_t count, bool commutative)
{
    r2_plan_input_t input = input_on(topology, R2_COLL_REDUCE_SCATTER_BLOCK, count, 8);
    const char *name, *broken;

    input.algorithm = NULL;
    input.commutative = commutative;
    input.scratch_bytes = 16777216;
    name = r2_plan_choose(&input);
    /* whatever is broken, and whoever waits for processors */
    input.cost.crowded = R2_CROWDED_ALL;
    r2_topology_set_capacity(topology, 0, 1, 0);
    broken = r2_plan_choose(&input);
    r2_topology_set_capacity(topology, 0, 1, R2_CAPACITY_FULL);
    assert_string_equal(name, broken);
    return name;
}

/** Up to a length of the vector, and of what the first rank of a host takes in. */
static void test_choice(void **state)
{
    r2_topology_t topology;

    (void) state;
    place(&topology, 5); /* 4 hosts x 2 ranks */
    assert_string_equal("hosts", chosen(&topology, 1, true));
    assert_string_equal("hosts", chosen(&topology, hosts_bytes / 64, true));
    assert_string_not_equal("hosts", chosen(&topology, hosts_bytes / 64 + 1, true));
    assert_string_equal("hosts", chosen(&topology, 1, false));
    r2_topology_fini(&topology);
    place(&topology, 8); /* 3 x 4 */
    assert_string_equal("hosts", chosen(&topology, hosts_bytes / 96, true));
    assert_string_not_equal("hosts", chosen(&topology, hosts_bytes / 96 + 1, true));
    r2_topology_fini(&topology);
    place(&topology, 4); /* in turn */
    assert_string_equal("hosts", chosen(&topology, 1, true));
    assert_string_equal("direct", chosen(&topology, 1, false));
    r2_topology_fini(&topology);
    assert_int_equal(R2_OK, r2_topology_init(&topology, 4, 2, 4, 1250));
    for (uint32_t r = 0; r < 4; ++r) { /* each has its own */
        topology.host_of[r] = r;
    }
    assert_string_equal("direct", chosen(&topology, 1, true));
    r2_topology_fini(&topology);
    assert_int_equal(R2_OK, r2_topology_init(&topology, 2, 2, 18, 1250));
    for (uint32_t r = 0; r < 18; ++r) { /* 17 and 1: one after the other takes too long */
        topology.host_of[r] = r / 17;
    }
    assert_string_equal("direct", chosen(&topology, 1, true));
    topology.host_of[16] = 1; /* 16 and 2: it takes in 15 vectors */
    assert_string_equal("hosts", chosen(&topology, taken_bytes / 15 / 144, true));
    assert_string_not_equal("hosts", chosen(&topology, taken_bytes / 15 / 144 + 1, true));
    r2_topology_fini(&topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_places), cmocka_unit_test(test_order),
        cmocka_unit_test(test_hosts_send_once), cmocka_unit_test(test_choice)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
