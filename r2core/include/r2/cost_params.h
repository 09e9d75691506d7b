/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What predictions of times are made from, besides the rates of rails. Plain value.
 */
#ifndef R2_COST_PARAMS_H
#define R2_COST_PARAMS_H

#include <stdint.h>

#include "r2/mem_kind.h"

#define R2_PPM 1000000u

/** Equal on all ranks: what one leader published. Zeros stand for the usual values
 * (plan/cost.h). */
typedef struct r2_cost_params {
    uint32_t alpha_ns; /* of one step, whatever its length */
    uint32_t rate_ppm; /* what rails give, in millionths of what the topology says of them */
    uint32_t reduce_mbytes_per_s[R2_MEM_RATED_COUNT]; /* of one rank */
} r2_cost_params_t;

#endif
