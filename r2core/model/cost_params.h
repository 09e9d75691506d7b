/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What predictions of times are made from, besides the rates of rails. Plain value.
 */
#ifndef R2_MODEL_COST_PARAMS_H
#define R2_MODEL_COST_PARAMS_H

#include <stdint.h>

/** Equal on all ranks: what one leader published. Zeros stand for the usual values (plan/cost.h). */
typedef struct r2_cost_params {
    uint32_t alpha_ns;            /* of one step, whatever its length */
    uint32_t reduce_mbytes_per_s; /* of one rank */
} r2_cost_params_t;

#endif
