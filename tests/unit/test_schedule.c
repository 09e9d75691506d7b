/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Schedules of every algorithm, proved by the checker for 1 to 64 ranks.
 *
 * Without arguments a sample for many ranks; with "--all" every combination (minutes).
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "plan/algorithm.h"
#include "plan/kinds.h"
#include "plan/layout.h"
#include "r2/params.h"
#include "schedule_cases.h"

static const r2_case_t *cases;
static size_t case_count;
static bool run_all;
static uint64_t sets_checked;

/* Up to this number of ranks every combination is checked, above it one in SAMPLE. */
enum { RANKS_FULL = 7, SAMPLE = 61 };

static void check(const r2_plan_input_t *input, uint64_t in_place)
{
    r2_check_job_t job;
    r2_check_report_t report = {.flaw = R2_FLAW_OP, .text = "build failed"};
    r2_status_t status = r2_check_job_init(&job, input, in_place);

    if (R2_OK == status) {
        r2_check_job_run(&job, &report);
    }
    if (R2_FLAW_NONE != report.flaw) {
        print_error("collective %d %s (%s) size %d count %lu element %lu root %d in place %lx "
                    "scratch %lu: %s: %s\n",
                    (int) input->kind, NULL == input->algorithm ? "-" : input->algorithm,
                    job.schedules[0].algorithm, input->size, (unsigned long) input->count,
                    (unsigned long) input->element_bytes, input->root, (unsigned long) in_place,
                    (unsigned long) input->scratch_bytes, r2_flaw_name(report.flaw), report.text);
    }
    ++sets_checked;
    r2_check_job_fini(&job);
    assert_int_equal(R2_FLAW_NONE, report.flaw);
}

/** Whether to check one of many combinations: a fixed sample, different for each size. */
static bool sampled(int32_t size, uint32_t combination)
{
    return run_all || size <= RANKS_FULL ||
           0 == r2_digest_fold(r2_digest_fold(0, (uint64_t) size), combination) % SAMPLE;
}

/* Limits of one run: staging memory ample, a few slots, the least; short sends copied or not. */
typedef struct limits {
    uint64_t scratch_bytes, chunk_min_bytes, copy_max_bytes;
} limits_t;

static const limits_t all_limits[] = {{1 << 20, 8, 8192}, {1024, 32, 0}, {64, 8, 0}};

/** All layouts of buffers and limits for one vector. */
static void check_variants(r2_plan_input_t input, uint32_t *combination)
{
    const uint64_t in_places[] = {0, UINT64_MAX, 0x5a5a96695a5a9669u};

    for (size_t l = 0; l < r2_array_count(all_limits); ++l) {
        for (size_t p = 0; p < r2_array_count(in_places); ++p) {
            input.scratch_bytes = all_limits[l].scratch_bytes;
            input.chunk_min_bytes = all_limits[l].chunk_min_bytes;
            input.copy_max_bytes = all_limits[l].copy_max_bytes;
            if (sampled(input.size, (*combination)++)) {
                check(&input, in_places[p]);
            }
        }
    }
}

static void check_case(const r2_case_t *one, int32_t size)
{
    const uint64_t ranks = (uint64_t) size;
    const uint64_t counts[] = {0, 1, ranks - 1, ranks, ranks + 1, 3 * ranks + 2, 20 * ranks + 7};
    const uint64_t elements[] = {1, 4, 12};
    const bool per_rank = r2_case_per_rank(one->kind);
    uint32_t combination = (uint32_t) (one - cases) * 1000;

    for (size_t c = 0; c < r2_array_count(counts); ++c) {
        for (size_t e = 0; e < r2_array_count(elements); ++e) {
            /* blocks of a few elements for each rank */
            uint64_t count = per_rank ? (counts[c] + ranks - 1) / ranks : counts[c];
            r2_plan_input_t input = r2_case_input(one, size, count, elements[e]);
            r2_uneven_t uneven;

            r2_case_uneven(&input, &uneven, count, 0 == e % 2);
            input.root = (int32_t) ((c * 7 + e * 3) % ranks);
            check_variants(input, &combination);
        }
    }
}

static void test_every_case(void **state)
{
    (void) state;
    for (int32_t size = 1; size <= R2_CHECK_RANKS_MAX; ++size) {
        for (size_t i = 0; i < case_count; ++i) {
            check_case(&cases[i], size);
        }
    }
    print_message("%lu sets of schedules\n", (unsigned long) sets_checked);
}

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
        check(&input, 0);
        check(&input, 0x5a5a96695a5a9669u);
    }
}

enum { PLACEMENT_MOST = 9 };

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
              {9, 4, {0, 1, 2, 3, 0, 1, 2, 0, 2}}};

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
    check(&input, 0);
    r2_topology_set_capacity(topology, 1, 0, 0);
    r2_topology_set_capacity(topology, 1, 2, 3);
    r2_topology_cut(topology, 0, 1, 1);
    assert_string_equal("hierarchical", r2_plan_choose(&input));
    check(&input, UINT64_MAX);
    input.exact = true;
    check(&input, 0x5a5a96695a5a9669u);
}

/** All builders where hosts have several ranks, equally many or not. */
static void test_full_hosts(void **state)
{
    const r2_case_t named[] = {{R2_COLL_ALLREDUCE, "hierarchical"},
                               {R2_COLL_ALLREDUCE, "weighted"},
                               {R2_COLL_ALLREDUCE, "recursive"},
                               {R2_COLL_ALLGATHER, "hierarchical"},
                               {R2_COLL_ALLGATHERV, "hierarchical"}};

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

/** Bytes that a rank gets from other hosts. */
static uint64_t crossing_bytes(const r2_plan_input_t *input)
{
    const uint32_t *host_of = input->topology->host_of;
    r2_schedule_t schedule;
    uint64_t bytes = 0;

    assert_int_equal(R2_OK, r2_plan_build(input, &schedule));
    for (uint32_t i = 0; i < schedule.op_count; ++i) {
        const r2_op_t *op = &schedule.ops[i];

        if (R2_OP_RECV == op->kind && host_of[op->peer] != host_of[input->rank]) {
            bytes += op->bytes;
        }
    }
    r2_schedule_fini(&schedule);
    return bytes;
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

/** Vectors that give the longest pipelines, with limits as in a job. */
static void test_long_vectors(void **state)
{
    const int32_t sizes[] = {2, 3, 4, 5, 8, 16, 33, 64};

    (void) state;
    for (size_t i = 0; i < case_count; ++i) {
        for (size_t s = 0; s < r2_array_count(sizes); ++s) {
            uint64_t count = 3001 * (uint64_t) (sizes[s] > 8 && !run_all ? 1 : 5);
            bool per_rank = r2_case_per_rank(cases[i].kind);
            r2_plan_input_t input;
            r2_uneven_t uneven;

            count = per_rank ? count / (uint64_t) sizes[s] : count;
            input = r2_case_input(&cases[i], sizes[s], count, 8);
            input.chunk_min_bytes = 64;
            input.scratch_bytes = 4096;
            r2_case_uneven(&input, &uneven, count, true);
            check(&input, 0);
            check(&input, UINT64_MAX);
        }
    }
}

static void test_every_root(void **state)
{
    (void) state;
    for (int32_t size = 1; size <= 17; ++size) {
        for (int32_t root = 0; root < size; ++root) {
            for (size_t i = 0; i < case_count; ++i) {
                r2_plan_input_t input = r2_case_input(&cases[i], size, 67, 4);

                if (r2_kind(input.kind)->rooted) {
                    input.root = root;
                    check(&input, 0);
                    check(&input, UINT64_MAX);
                }
            }
        }
    }
}

/** Operations that do not commute get no ring, whatever is asked for. */
static void test_not_commutative(void **state)
{
    const r2_case_t ring = {R2_COLL_ALLREDUCE, "ring"};

    (void) state;
    for (int32_t size = 2; size <= 9; ++size) {
        r2_plan_input_t input = r2_case_input(&ring, size, 100, 4);

        input.commutative = false;
        assert_string_equal("direct (the one asked for cannot run)", r2_plan_choose(&input));
        check(&input, 0);
        check(&input, UINT64_MAX);
    }
}

/** Elements longer than all limits are not split. */
static void test_huge_element(void **state)
{
    (void) state;
    for (size_t i = 0; i < case_count; ++i) {
        r2_plan_input_t input = r2_case_input(&cases[i], 3, 4, 1000);
        r2_uneven_t uneven;

        input.scratch_bytes = 256;
        r2_case_uneven(&input, &uneven, 4, false);
        check(&input, 0);
        check(&input, UINT64_MAX);
    }
}

/** However long blocks are: no message that moves data is longer than what may be packed. */
static void test_messages_are_bounded(void **state)
{
    const uint64_t lengths[] = {1 << 20, (uint64_t) 1 << 30, (uint64_t) 3 << 31};
    const int32_t sizes[] = {2, 5, 65};

    (void) state;
    for (size_t i = 0; i < case_count * r2_array_count(lengths); ++i) {
        const r2_case_t *one = &cases[i % case_count];
        const r2_kind_t *kind = r2_kind(one->kind);

        for (size_t s = 0;
             !kind->reduces && R2_SPAN_EDGES != kind->span && s < r2_array_count(sizes); ++s) {
            const uint64_t count = lengths[i / case_count];
            r2_plan_input_t input = r2_case_input(one, sizes[s], count, 1);
            r2_schedule_t schedule;
            r2_uneven_t uneven;

            input.chunk_min_bytes = 8192;
            input.message_max_bytes = 1 << 21;
            r2_case_uneven(&input, &uneven, count, false);
            assert_int_equal(R2_OK, r2_plan_build(&input, &schedule));
            for (uint32_t k = 0; k < schedule.op_count; ++k) {
                const r2_op_t *op = &schedule.ops[k];

                assert_true(R2_OP_SEND != op->kind || R2_BUF_SCRATCH == op->src.buf ||
                            op->bytes <= input.message_max_bytes);
            }
            r2_schedule_fini(&schedule);
        }
    }
}

static void test_digest(void **state)
{
    const r2_case_t one = {R2_COLL_ALLREDUCE, NULL};
    r2_plan_input_t input = r2_case_input(&one, 4, 100, 4);
    r2_schedule_t schedule;
    uint32_t digest;

    (void) state;
    assert_int_equal(R2_OK, r2_plan_build(&input, &schedule));
    digest = schedule.digest;
    r2_schedule_fini(&schedule);
    input.in_place = true;
    input.rank = 3;
    assert_int_equal(R2_OK, r2_plan_build(&input, &schedule));
    assert_int_equal(digest, schedule.digest);
    r2_schedule_fini(&schedule);
    input.count = 101;
    assert_int_equal(R2_OK, r2_plan_build(&input, &schedule));
    assert_int_not_equal(digest, schedule.digest);
    r2_schedule_fini(&schedule);
    input.count = 100;
    input.algorithm = "direct";
    assert_int_equal(R2_OK, r2_plan_build(&input, &schedule));
    assert_int_not_equal(digest, schedule.digest);
    r2_schedule_fini(&schedule);
}

static void test_bad_arguments(void **state)
{
    const r2_case_t one = {R2_COLL_ALLREDUCE, "bruck"};
    r2_plan_input_t input = r2_case_input(&one, 4, 100, 4);
    r2_schedule_t schedule;
    char names[64];

    (void) state;
    assert_int_equal(R2_ERR_PARAM, r2_plan_build(&input, &schedule));
    r2_schedule_fini(&schedule);
    assert_null(r2_plan_choose(&input));
    input.algorithm = "";
    input.rank = 4;
    assert_int_equal(R2_ERR_PARAM, r2_plan_build(&input, &schedule));
    r2_schedule_fini(&schedule);
    assert_string_equal("linear, binomial, chain, scatter-allgather",
                        r2_plan_names(R2_COLL_BCAST, names, sizeof(names)));
}

/** The help of coll_r2_*_algorithm lists what the registry has, as "a, b or c". */
static void test_help_names_all(void **state)
{
    size_t params, named = 0;
    const r2_param_info_t *table = r2_params_table(&params);

    (void) state;
    for (size_t p = 0; p < params * R2_COLL_KIND_COUNT; ++p) {
        const r2_coll_kind_t kind = (r2_coll_kind_t) (p % R2_COLL_KIND_COUNT);
        const char *help = table[p / R2_COLL_KIND_COUNT].help;
        char list[200] = "", param[64];

        snprintf(param, sizeof(param), "%s_algorithm", r2_kind(kind)->name);
        if (0 != strcmp(param, table[p / R2_COLL_KIND_COUNT].name)) {
            continue;
        }
        for (const r2_algorithm_t *const *at = r2_algorithms_of(kind); NULL != *at; ++at) {
            snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", (*at)->name,
                     NULL == at[1]   ? "."
                     : NULL == at[2] ? " or "
                                     : ", ");
        }
        assert_non_null(strstr(help, list));
        ++named;
    }
    assert_int_equal(8, named);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_case),           cmocka_unit_test(test_full_hosts),
        cmocka_unit_test(test_long_vectors),         cmocka_unit_test(test_every_root),
        cmocka_unit_test(test_not_commutative),      cmocka_unit_test(test_huge_element),
        cmocka_unit_test(test_messages_are_bounded), cmocka_unit_test(test_digest),
        cmocka_unit_test(test_bad_arguments),        cmocka_unit_test(test_help_names_all),
        cmocka_unit_test(test_bcast_crosses_once),
        cmocka_unit_test(test_allgather_crosses_once),
    };

    cases = r2_cases(&case_count);
    run_all = 1 < argc && 0 == strcmp("--all", argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
