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
#include <string.h>

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

enum { PLACEMENT_MOST = 40 };

/** Hosts of ranks: two on each, three on each, uneven, in blocks and not. */
static const struct {
    int32_t ranks;
    uint32_t hosts, host_of[PLACEMENT_MOST];
} crowds[] = {{4, 2, {0, 0, 1, 1}},
              {6, 2, {0, 0, 0, 1, 1, 1}},
              {6, 3, {0, 0, 0, 1, 1, 2}},
              {6, 3, {0, 1, 2, 0, 1, 0}},
              {5, 2, {0, 1, 1, 1, 1}},
              {9, 4, {0, 0, 0, 1, 1, 2, 2, 2, 3}},
              {9, 4, {0, 1, 2, 3, 0, 1, 2, 0, 2}},
              {40, 2, {[20] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
              {19, 3, {[8] = 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2}}};

static void placement_init(r2_topology_t *topology, size_t placement)
{
    assert_int_equal(R2_OK, r2_topology_init(topology, crowds[placement].hosts, 3,
                                             crowds[placement].ranks, 1000));
    memcpy(topology->host_of, crowds[placement].host_of,
           (size_t) crowds[placement].ranks * sizeof(*topology->host_of));
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
    for (size_t k = 0; k < r2_array_count(crowds); ++k) {
        r2_topology_t topology;

        placement_init(&topology, k);
        for (size_t i = 0; i < case_count; ++i) {
            check_placed(&cases[i], &topology);
        }
        r2_topology_set_capacity(&topology, crowds[k].hosts - 1, 0, 0);
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
    for (size_t k = 0; k < r2_array_count(crowds) * r2_array_count(named); ++k) {
        const size_t crowd = k % r2_array_count(crowds), name = k / r2_array_count(crowds);
        r2_plan_input_t input = r2_case_input(&named[name], crowds[crowd].ranks, 1000, 1);
        r2_topology_t topology;

        placement_init(&topology, crowd);
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
    for (size_t k = 0; k < r2_array_count(crowds); ++k) {
        r2_plan_input_t input = r2_case_input(&named, crowds[k].ranks, 1000, 1);
        uint64_t bytes = 0, most = 0;
        r2_topology_t topology;

        placement_init(&topology, k);
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
    for (size_t k = 0; k < r2_array_count(crowds) * r2_array_count(named); ++k) {
        const size_t crowd = k % r2_array_count(crowds);
        const bool scatters = k >= r2_array_count(crowds);
        const uint64_t count = scatters ? 1000 : 1000 * (uint64_t) crowds[crowd].ranks;
        r2_plan_input_t input = r2_case_input(&named[scatters], crowds[crowd].ranks, count, 1);
        r2_topology_t topology;

        placement_init(&topology, crowd);
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
    placement_init(&topology, 5);
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

    assert_int_equal(R2_OK, r2_topology_init(&topology, 4, 4, input.size, 1250));
    for (int32_t rank = 0; rank < input.size; ++rank) {
        topology.host_of[rank] = (uint32_t) r2_min(rank, 3);
    }
    input.topology = &topology;
    input.cost.rate_ppm = rate_ppm;
    input.chunk_min_bytes = 8192;
    input.chunk_max_bytes = 131072;
    input.scratch_bytes = 16777216;
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

/** @param told_mbytes_per_s of each of four rails. @param full ranks on the last of four hosts. */
static const char *chosen_where_crowded(r2_coll_kind_t kind, uint64_t bytes,
                                        uint32_t told_mbytes_per_s, int32_t full)
{
    const r2_case_t chosen = {kind, NULL};
    r2_plan_input_t input = r2_case_input(&chosen, 3 + full, bytes / 8, 8);
    r2_topology_t topology;
    const char *name;

    assert_int_equal(R2_OK, r2_topology_init(&topology, 4, 4, input.size, told_mbytes_per_s));
    for (int32_t rank = 0; rank < input.size; ++rank) {
        topology.host_of[rank] = (uint32_t) r2_min(rank, 3);
    }
    input.topology = &topology;
    input.cost.crowded = R2_CROWDED_ALL;
    input.chunk_min_bytes = 8192;
    input.chunk_max_bytes = 131072;
    input.scratch_bytes = 16777216;
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

        placement_init(&topology, 0);
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
    placement_init(&topology, 2);
    input.topology = &topology;
    input.scratch_bytes = 1 << 20;
    input.chunk_min_bytes = 8192;
    input.chunk_max_bytes = 131072;
    input.cost.crowded = R2_CROWDED_ALL;
    for (input.root = 0; input.root < input.size; ++input.root) {
        uint32_t messages = 0;

        for (input.rank = 0; input.rank < input.size; ++input.rank) {
            r2_schedule_t schedule;

            assert_int_equal(R2_OK, r2_plan_build(&input, &schedule));
            for (uint32_t op = 0; op < schedule.op_count; ++op) {
                messages += R2_OP_SEND == schedule.ops[op].kind;
            }
            r2_schedule_fini(&schedule);
        }
        assert_int_equal(messages, expected[input.root]);
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
        r2_plan_input_t input = r2_case_input(&folding, crowds[k].ranks, 15000, 8);
        r2_topology_t topology;

        placement_init(&topology, k);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_hosts), cmocka_unit_test(test_bcast_crosses_once),
        cmocka_unit_test(test_allgather_crosses_once),
        cmocka_unit_test(test_reductions_cross_once),
        cmocka_unit_test(test_reduce_minds_pairs),
        cmocka_unit_test(test_slow_rails_share_the_root_s_work),
        cmocka_unit_test(test_crowded_ranks_go_through_one),
        cmocka_unit_test(test_crowded_hosts_fold_at_one),
        cmocka_unit_test(test_crowded_hosts_reduce_at_one),
        cmocka_unit_test(test_crowded_hosts_reduce_in_segments)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
