/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Places in a binomial tree of ranks that are counted from the root.
 */
#ifndef R2_PLAN_TREE_H
#define R2_PLAN_TREE_H

#include "plan/layout.h"
#include "plan/thresholds.h"

typedef struct r2_tree_place {
    int32_t from_root; /* ranks from the root, around the circle */
    int32_t bit;       /* lowest set bit of it: the parent is that far down. Root: 0 */
    int32_t count;     /* ranks of the subtree: this one and the next ones up */
} r2_tree_place_t;

static inline r2_tree_place_t r2_tree_place(const r2_plan_input_t *input)
{
    r2_tree_place_t at = {
        .from_root =
            (int32_t) (((int64_t) input->rank - input->root + input->size) % input->size)};

    at.bit = at.from_root & -at.from_root;
    at.count = 0 == at.bit ? input->size : r2_min(at.bit, input->size - at.from_root);
    return at;
}

/** The child that is furthest up; the others are half as far each. 0: there is none. */
static inline int32_t r2_tree_top(r2_tree_place_t at)
{
    int64_t bit = 1;

    while (2 * bit < at.count) {
        bit *= 2;
    }
    return 1 == at.count ? 0 : (int32_t) bit;
}

/* Inner ranks hold the blocks of those behind them. */
static inline uint64_t r2_tree_scratch(const r2_plan_input_t *input)
{
    return (uint64_t) input->size * input->count * input->element_bytes;
}

static inline bool r2_tree_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    return input->size > r2_threshold_tree_ranks &&
           r2_is_short(input, total_bytes, 0, r2_threshold_tree_block_bytes);
}

#endif
