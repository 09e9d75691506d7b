/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Which algorithm reduce, scan, gather, scatter, alltoall and their kin take.
 */
#include "r2_config.h"

#include "plan/family.h"

#include "base/util.h"
#include "plan/thresholds.h"

#define INSTEAD(algorithm) algorithm " (the one asked for cannot run)"

static uint64_t ranks(const r2_plan_input_t *input)
{
    return (uint64_t) input->size;
}

enum { REDUCE_BINOMIAL, REDUCE_DIRECT, REDUCE_CHAIN, REDUCE_COUNT };
static const r2_algorithm_t reduce_algorithms[REDUCE_COUNT] = {
    [REDUCE_BINOMIAL] = {.name = "binomial", .build = r2_build_reduce_binomial},
    [REDUCE_DIRECT] = {.name = "direct", .build = r2_build_reduce_direct},
    [REDUCE_CHAIN] = {
        .name = "chain", .build = r2_build_reduce_chain, .instead = INSTEAD("chain")}};

static bool reduce_permitted(const r2_plan_input_t *input, const r2_algorithm_t *algorithm)
{
    return algorithm != &reduce_algorithms[REDUCE_BINOMIAL] ||
           r2_reduce_binomial_scratch(input) <= input->scratch_bytes;
}

static const r2_algorithm_t *reduce_choose(const r2_plan_input_t *input, uint64_t total_bytes)
{
    const r2_algorithm_t *tree = &reduce_algorithms[REDUCE_BINOMIAL];
    const bool few = input->size > 2 && input->size <= r2_threshold_ring_ranks;

    if (total_bytes <= r2_max((uint64_t) r2_threshold_reduce_short_bytes,
                              r2_threshold_reduce_short_bytes_per_rank * ranks(input)) &&
        reduce_permitted(input, tree)) {
        return tree;
    }
    return &reduce_algorithms[few ? REDUCE_DIRECT : REDUCE_CHAIN];
}

enum { SCAN_DOUBLING, SCAN_CHAIN, SCAN_COUNT };
static const r2_algorithm_t scan_algorithms[SCAN_COUNT] = {
    [SCAN_DOUBLING] = {.name = "doubling", .build = r2_build_scan_doubling},
    [SCAN_CHAIN] = {.name = "chain", .build = r2_build_scan_chain, .instead = INSTEAD("chain")}};

static bool scan_permitted(const r2_plan_input_t *input, const r2_algorithm_t *algorithm)
{
    return algorithm != &scan_algorithms[SCAN_DOUBLING] ||
           r2_scan_doubling_scratch(input) <= input->scratch_bytes;
}

static const r2_algorithm_t *scan_choose(const r2_plan_input_t *input, uint64_t total_bytes)
{
    const r2_algorithm_t *doubling = &scan_algorithms[SCAN_DOUBLING];

    return total_bytes <= r2_threshold_scan_short_bytes && scan_permitted(input, doubling)
               ? doubling
               : &scan_algorithms[SCAN_CHAIN];
}

enum { TREE, LINEAR, TREE_OR_LINEAR };
static const r2_algorithm_t gather_algorithms[TREE_OR_LINEAR] = {
    [TREE] = {.name = "binomial", .build = r2_build_gather_binomial},
    [LINEAR] = {
        .name = "linear", .build = r2_build_exchange_blocks, .instead = INSTEAD("linear")}};
static const r2_algorithm_t scatter_algorithms[TREE_OR_LINEAR] = {
    [TREE] = {.name = "binomial", .build = r2_build_scatter_binomial},
    [LINEAR] = {
        .name = "linear", .build = r2_build_exchange_blocks, .instead = INSTEAD("linear")}};

/* Inner ranks of a tree hold the blocks of those behind them. */
static bool tree_fits(const r2_plan_input_t *input)
{
    return ranks(input) * input->count * input->element_bytes <= input->scratch_bytes;
}

static bool tree_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    return input->size > r2_threshold_tree_ranks &&
           total_bytes <= r2_threshold_tree_block_bytes * ranks(input) && tree_fits(input);
}

static bool gather_permitted(const r2_plan_input_t *input, const r2_algorithm_t *algorithm)
{
    return algorithm != &gather_algorithms[TREE] || tree_fits(input);
}

static bool scatter_permitted(const r2_plan_input_t *input, const r2_algorithm_t *algorithm)
{
    return algorithm != &scatter_algorithms[TREE] || tree_fits(input);
}

static const r2_algorithm_t *gather_choose(const r2_plan_input_t *input, uint64_t total_bytes)
{
    return &gather_algorithms[tree_pays(input, total_bytes) ? TREE : LINEAR];
}

static const r2_algorithm_t *scatter_choose(const r2_plan_input_t *input, uint64_t total_bytes)
{
    return &scatter_algorithms[tree_pays(input, total_bytes) ? TREE : LINEAR];
}

enum { ALLTOALL_BRUCK, ALLTOALL_PAIRWISE, ALLTOALL_COUNT };
static const r2_algorithm_t alltoall_algorithms[ALLTOALL_COUNT] = {
    [ALLTOALL_BRUCK] = {.name = "bruck", .build = r2_build_alltoall_bruck},
    [ALLTOALL_PAIRWISE] = {
        .name = "pairwise", .build = r2_build_exchange_blocks, .instead = INSTEAD("pairwise")}};

static bool alltoall_permitted(const r2_plan_input_t *input, const r2_algorithm_t *algorithm)
{
    return algorithm != &alltoall_algorithms[ALLTOALL_BRUCK] ||
           r2_alltoall_bruck_scratch(input) <= input->scratch_bytes;
}

static const r2_algorithm_t *alltoall_choose(const r2_plan_input_t *input, uint64_t total_bytes)
{
    const r2_algorithm_t *bruck = &alltoall_algorithms[ALLTOALL_BRUCK];

    return input->size > r2_threshold_alltoall_bruck_ranks &&
                   total_bytes <= r2_threshold_alltoall_bruck_block_bytes * ranks(input) &&
                   alltoall_permitted(input, bruck)
               ? bruck
               : &alltoall_algorithms[ALLTOALL_PAIRWISE];
}

static const r2_algorithm_t exchange_algorithms[] = {
    {.name = "exchange", .build = r2_build_exchange_edges}};

static const r2_algorithm_t *exchange_choose(const r2_plan_input_t *input, uint64_t total_bytes)
{
    (void) input;
    (void) total_bytes;
    return &exchange_algorithms[0];
}

#define FAMILY(table) .algorithms = (table), .count = r2_array_count(table)
const r2_family_t r2_family_reduce = {FAMILY(reduce_algorithms),
                                      .names = "binomial, direct, chain",
                                      .choose = reduce_choose,
                                      .permitted = reduce_permitted};
const r2_family_t r2_family_scan = {FAMILY(scan_algorithms), .names = "doubling, chain",
                                    .choose = scan_choose, .permitted = scan_permitted};
const r2_family_t r2_family_gather = {FAMILY(gather_algorithms), .names = "binomial, linear",
                                      .choose = gather_choose, .permitted = gather_permitted};
const r2_family_t r2_family_scatter = {FAMILY(scatter_algorithms), .names = "binomial, linear",
                                       .choose = scatter_choose, .permitted = scatter_permitted};
const r2_family_t r2_family_alltoall = {FAMILY(alltoall_algorithms), .names = "bruck, pairwise",
                                        .choose = alltoall_choose,
                                        .permitted = alltoall_permitted};
const r2_family_t r2_family_exchange = {FAMILY(exchange_algorithms), .names = "exchange",
                                        .choose = exchange_choose};
