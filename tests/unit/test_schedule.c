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

/* Up to this number of ranks every combination is checked, above it one in SAMPLE. */
enum { RANKS_FULL = 7, SAMPLE = 61 };

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
                r2_case_check(&input, in_places[p]);
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
    print_message("%lu sets of schedules\n", (unsigned long) r2_case_checked());
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
            r2_case_check(&input, 0);
            r2_case_check(&input, UINT64_MAX);
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
                    r2_case_check(&input, 0);
                    r2_case_check(&input, UINT64_MAX);
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
        r2_case_check(&input, 0);
        r2_case_check(&input, UINT64_MAX);
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
        r2_case_check(&input, 0);
        r2_case_check(&input, UINT64_MAX);
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
    assert_int_equal(9, named);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_case),
        cmocka_unit_test(test_long_vectors),         cmocka_unit_test(test_every_root),
        cmocka_unit_test(test_not_commutative),      cmocka_unit_test(test_huge_element),
        cmocka_unit_test(test_messages_are_bounded), cmocka_unit_test(test_digest),
        cmocka_unit_test(test_bad_arguments),        cmocka_unit_test(test_help_names_all),
    };

    cases = r2_cases(&case_count);
    run_all = 1 < argc && 0 == strcmp("--all", argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
