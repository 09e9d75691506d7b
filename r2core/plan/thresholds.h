/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The numbers of thresholds.def, and what several algorithms ask of a length.
 */
#ifndef R2_PLAN_THRESHOLDS_H
#define R2_PLAN_THRESHOLDS_H

#include "base/util.h"
#include "r2/planner.h"

enum {
#define R2_THRESHOLD(name, value, unit, reason) r2_threshold_##name = (value),
#include "plan/thresholds.def"
#undef R2_THRESHOLD
};

/** Short: up to `floor_bytes`, or `bytes_per_rank` for each rank. */
static inline bool r2_is_short(const r2_plan_input_t *input, uint64_t total_bytes,
                               uint64_t floor_bytes, uint64_t bytes_per_rank)
{
    return total_bytes <= r2_max(floor_bytes, bytes_per_rank * (uint64_t) input->size);
}

/** Long blocks of many ranks. */
static inline bool r2_ring_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    return input->size > r2_threshold_ring_ranks &&
           total_bytes / (uint64_t) input->size >= r2_threshold_ring_block_bytes;
}

#endif
