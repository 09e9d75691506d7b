/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Schedules where hosts have several ranks: proved by the checker, and what crosses between hosts.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/util.h"
#include "r2/planner.h"
#include "schedule_cases.h"

/** Short vectors of one collective on a topology, much and little staging memory. */
static void check_placed(const r2_case_t *one, const r2_topology_t *topology)
{
    const uint64_t counts[] = {1, 7, 100}, scratches[] = {1 << 20, 192};

    for (size_t c = 0; c < r2_array_count(counts) * r2_array_count(scratches); ++c) {
        const uint64_t count = counts[c % r2_array_count(counts)];
        r2_plan_input_t input = r2_case_input(one, topology->rank_count, count, 4);
        r2_uneven_t uneven;

        r2_case_uneven(&input, &uneven, count, 0 == c % 2);
        input.topology = topology;
        input.root = (int32_t) c % topology->rank_count;
        input.scratch_bytes = scratches[c / r2_array_count(counts)];
        r2_case_check(&input, 0);
        r2_case_check(&input, 0x5a5a96695a5a9669u);
    }
}

/** What is chosen for a vector so long that hosts fold first; broken rails, both kinds of
 * operation. */
static void check_folding(r2_topology_t *topology)
{
    const r2_case_t chosen = {R2_COLL_ALLREDUCE, NULL};
    r2_plan_input_t input = r2_case_input(&chosen, topology->rank_count, 15000, 8);

    input.topology = topology;
    input.chunk_min_bytes = 1024;
    input.scratch_bytes = 16384;
    assert_string_equal("hierarchical", r2_plan_choose(&input));
    r2_case_check(&input, 0);
    r2_topology_set_capacity(topology, 1, 0, 0);
    r2_topology_set_capacity(topology, 1, 2, 3);
    r2_topology_cut(topology, 0, 1, 1);
    assert_string_equal("hierarchical", r2_plan_choose(&input));
    r2_case_check(&input, UINT64_MAX);
    input.exact = true;
    r2_case_check(&input, 0x5a5a96695a5a9669u);
}

/** All builders where hosts have several ranks, equally many or not. */
static void test_full_hosts(void **state)
{
    const r2_case_t named[] = {{R2_COLL_ALLREDUCE, "hierarchical"},
                               {R2_COLL_ALLREDUCE, "weighted"},
                               {R2_COLL_ALLREDUCE, "recursive"},
                               {R2_COLL_ALLGATHER, "hierarchical"},
                               {R2_COLL_ALLGATHERV, "hierarchical"},
                               {R2_COLL_REDUCE, "hierarchical"},
                               {R2_COLL_REDUCE_SCATTER, "hosts"},
                               {R2_COLL_REDUCE_SCATTER_BLOCK, "hosts"},
                               {R2_COLL_REDUCE_SCATTER, "hierarchical"},
                               {R2_COLL_REDUCE_SCATTER_BLOCK, "hierarchical"},
                               {R2_COLL_ALLTOALL, "hosts"},
                               {R2_COLL_ALLGATHER, "hosts"},
                               {R2_COLL_ALLGATHERV, "hosts"}};

    size_t case_count;
    const r2_case_t *cases = r2_cases(&case_count);

    (void) state;
    for (size_t k = 0; k < R2_PLACEMENTS; ++k) {
        r2_topology_t topology;

        r2_case_placement(&topology, k);
        for (size_t i = 0; i < case_count; ++i) {
            check_placed(&cases[i], &topology);
        }
        r2_topology_set_capacity(&topology, topology.host_count - 1, 0, 0);
        for (size_t i = 0; i < r2_array_count(named); ++i) {
            check_placed(&named[i], &topology);
        }
        check_folding(&topology);
        r2_topology_fini(&topology);
    }
}

/** Bytes that a rank gets from other hosts, or sends there. */
static uint64_t crossing_of(const r2_plan_input_t *input, r2_op_kind_t kind)
{
    const uint32_t *host_of = input->topology->host_of;
    r2_schedule_t schedule;
    uint64_t bytes = 0;

    assert_int_equal(R2_OK, r2_plan_build(input, &schedule));
    for (uint32_t i = 0; i < schedule.op_count; ++i) {
        const r2_op_t *op = &schedule.ops[i];

        if (kind == op->kind && host_of[op->peer] != host_of[input->rank]) {
            bytes += op->bytes;
        }
    }
    r2_schedule_fini(&schedule);
    return bytes;
}

static uint64_t crossing_bytes(const r2_plan_input_t *input)
{
    return crossing_of(input, R2_OP_RECV);
}

/** A broadcast goes to each host but the root's once, however many ranks are there. Trees do not
 * where that would spare one message, as in the first placement. */
static void test_bcast_crosses_once(void **state)
{
    const r2_case_t named[] = {
        {R2_COLL_BCAST, "chain"}, {R2_COLL_BCAST, "linear"}, {R2_COLL_BCAST, "binomial"}};

    (void) state;
    for (size_t k = 0; k < R2_PLACEMENTS * r2_array_count(named); ++k) {
        const size_t crowd = k % R2_PLACEMENTS, name = k / R2_PLACEMENTS;
        r2_plan_input_t input = r2_case_input(&named[name], r2_case_ranks(crowd), 1000, 1);
        r2_topology_t topology;

        r2_case_placement(&topology, crowd);
        input.topology = &topology;
        for (input.root = 0; (0 < crowd || 0 == name) && input.root < input.size; ++input.root) {
            uint64_t bytes = 0;

            for (input.rank = 0; input.rank < input.size; ++input.rank) {
                bytes += crossing_bytes(&input);
            }
            assert_int_equal(1000 * (topology.host_count - 1), bytes);
            input.rank = 0;
        }
        r2_topology_fini(&topology);
    }
}

/** Each block of an allgather in two levels crosses to each host but its own once, and over rails
 * of all ranks there that have one to take. */
static void test_allgather_crosses_once(void **state)
{
    const r2_case_t named = {R2_COLL_ALLGATHER, "hierarchical"};

    (void) state;
    for (size_t k = 0; k < R2_PLACEMENTS; ++k) {
        r2_plan_input_t input = r2_case_input(&named, r2_case_ranks(k), 1000, 1);
        uint64_t bytes = 0, most = 0;
        r2_topology_t topology;

        r2_case_placement(&topology, k);
        input.topology = &topology;
        for (input.rank = 0; input.rank < input.size; ++input.rank) {
            const uint64_t own = crossing_bytes(&input);

            bytes += own;
            most = r2_max(most, own);
        }
        assert_int_equal(1000 * (uint64_t) input.size * (topology.host_count - 1), bytes);
        assert_true(most <= 1000 * (uint64_t) (input.size - 1));
        r2_topology_fini(&topology);
    }
}

/** In two levels each host sends over its rails what one rank alone would, and all ranks of hosts
 * do their part of it. On two hosts the root's sends nothing. */
static void test_reductions_cross_once(void **state)
{
    const r2_case_t named[] = {{R2_COLL_REDUCE, "hierarchical"},
                               {R2_COLL_REDUCE_SCATTER_BLOCK, "hierarchical"}};

    (void) state;
    for (size_t k = 0; k < R2_PLACEMENTS * r2_array_count(named); ++k) {
        const size_t crowd = k % R2_PLACEMENTS;
        const bool scatters = k >= R2_PLACEMENTS;
        const uint64_t count = scatters ? 1000 : 1000 * (uint64_t) r2_case_ranks(crowd);
        r2_plan_input_t input = r2_case_input(&named[scatters], r2_case_ranks(crowd), count, 1);
        r2_topology_t topology;

        r2_case_placement(&topology, crowd);
        input.topology = &topology;
        for (input.root = 0; input.root < (scatters ? 1 : input.size); ++input.root) {
            const uint64_t hosts = topology.host_count;
            uint64_t bytes = 0;

            for (input.rank = 0; input.rank < input.size; ++input.rank) {
                const uint64_t sent = crossing_of(&input, R2_OP_SEND);

                assert_true(0 < sent ||
                            (!scatters && 2 == hosts &&
                             topology.host_of[input.rank] == topology.host_of[input.root]));
                bytes += sent;
            }
            assert_int_equal(scatters    ? count * (uint64_t) input.size * (hosts - 1)
                             : 2 < hosts ? count * hosts
                                         : count,
                             bytes);
            input.rank = 0;
        }
        r2_topology_fini(&topology);
    }
}

/** Where a pair of hosts shares no rail, reduce keeps both from owning what the other contributes,
 * and what hosts own is in equal parts whatever the rails of single ones are. */
static void test_reduce_minds_pairs(void **state)
{
    const r2_case_t one = {R2_COLL_REDUCE, "hierarchical"};
    r2_plan_input_t input = r2_case_input(&one, 9, 9000, 1);
    r2_topology_t topology;
    uint64_t healthy;

    (void) state;
    r2_case_placement(&topology, 5);
    input.topology = &topology;
    input.rank = 8;
    healthy = crossing_bytes(&input);
    r2_topology_set_capacity(&topology, 1, 0, 0);
    assert_int_equal(healthy, crossing_bytes(&input));
    for (uint32_t rail = 0; rail < 3; ++rail) {
        assert_true(r2_topology_cut(&topology, 1, 3, rail));
    }
    assert_true(0 < healthy);
    assert_int_equal(0, crossing_bytes(&input));
    r2_case_check(&input, 0);
    r2_topology_fini(&topology);
}

/** @param rate_ppm what rails are known to give. @param full ranks on the last of four hosts. */
static const char *chosen_on_fast_rails(r2_coll_kind_t kind, uint64_t bytes, uint32_t rate_ppm,
                                        int32_t full)
{
    const r2_case_t chosen = {kind, NULL};
    r2_plan_input_t input = r2_case_input(&chosen, 3 + full, bytes, 1);
    r2_topology_t topology;
    const char *name;

    r2_case_full_host(&input, &topology, 1250);
    input.cost.rate_ppm = rate_ppm;
    name = r2_plan_choose(&input);
    r2_topology_fini(&topology);
    return name;
}

/** The root sends and takes in whole vectors only while that is short for the rails, and not where
 * they are known to give less than 1/32 of what they tell. */
static void test_slow_rails_share_the_root_s_work(void **state)
{
    (void) state;
    assert_string_equal("linear", chosen_on_fast_rails(R2_COLL_BCAST, 65536, 0, 1));
    assert_string_equal("linear", chosen_on_fast_rails(R2_COLL_BCAST, 65536, R2_PPM / 32, 1));
    assert_string_equal("scatter-allgather",
                        chosen_on_fast_rails(R2_COLL_BCAST, 65536, R2_PPM / 32 - 1, 1));
    assert_string_equal("linear", chosen_on_fast_rails(R2_COLL_BCAST, 16384, 10000, 1));
    assert_string_equal("scatter-allgather", chosen_on_fast_rails(R2_COLL_BCAST, 65537, 0, 1));
    assert_string_equal("binomial", chosen_on_fast_rails(R2_COLL_REDUCE, 16384, 0, 1));
    assert_string_equal("linear", chosen_on_fast_rails(R2_COLL_REDUCE, 16385, 0, 1));
    assert_string_equal("linear", chosen_on_fast_rails(R2_COLL_REDUCE, 65536, 0, 1));
    assert_string_equal("direct", chosen_on_fast_rails(R2_COLL_REDUCE, 65537, 0, 1));
    assert_string_equal("binomial", chosen_on_fast_rails(R2_COLL_REDUCE, 16384, 10000, 1));
    assert_string_equal("direct", chosen_on_fast_rails(R2_COLL_REDUCE, 16385, 10000, 1));
    assert_string_equal("linear", chosen_on_fast_rails(R2_COLL_REDUCE, 40000, 0, 1));
    assert_string_not_equal("linear", chosen_on_fast_rails(R2_COLL_REDUCE, 40000, 0, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_hosts),
        cmocka_unit_test(test_bcast_crosses_once),
        cmocka_unit_test(test_allgather_crosses_once),
        cmocka_unit_test(test_reductions_cross_once),
        cmocka_unit_test(test_reduce_minds_pairs),
        cmocka_unit_test(test_slow_rails_share_the_root_s_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
