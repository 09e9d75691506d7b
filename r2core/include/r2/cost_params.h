/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What predictions of times are made from, besides the rates of rails. Plain value.
 */
#ifndef R2_COST_PARAMS_H
#define R2_COST_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "r2/mem_kind.h"

#define R2_PPM 1000000u

/** Equal on all ranks: what one leader published. Zeros stand for the usual values
 * (plan/cost.h). */
typedef struct r2_cost_params {
    uint32_t alpha_ns; /* of one step, whatever its length */
    uint32_t rate_ppm; /* what rails give, in millionths of what the topology says of them */
    uint32_t reduce_mbytes_per_s[R2_MEM_RATED_COUNT]; /* of one rank */
    uint32_t crowded; /* 1: ranks wait for processors that others use; 0: not, or not known */
} r2_cost_params_t;

/* Rails that give less than 1/x of what is told of them: plans take them for that fast. */
#define R2_COST_SLOW 32u

/** Do rails carry much less than they tell? The one thing that was measured and counts on even
 * rails, too: it decides between plans of the same bits only. False: not known, too. */
static inline bool r2_cost_is_slow(const r2_cost_params_t *cost)
{
    return 0 != cost->rate_ppm && cost->rate_ppm < R2_PPM / R2_COST_SLOW;
}

#endif
