/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Predicted time of ring-like allreduces: closed forms per edge. predict_fn_t, all four.
 */
#ifndef R2_TOOLS_RINGS_H
#define R2_TOOLS_RINGS_H

#include "sim/predict.h"

/** Every rail carries its share; what a dead rail should carry goes over the next one that joins
 * the pair. */
r2_status_t rings_failover(const predict_case_t *ask, double *seconds_p);
/** Every pair uses all rails that join it: 2 (n - 1) / n D over the narrowest edge. */
r2_status_t rings_balance(const predict_case_t *ask, double *seconds_p);
/** R2-AllReduce with its best share of the second ring, which may be 0. */
r2_status_t rings_two(const predict_case_t *ask, double *seconds_p);
/** Rings of tiers as the planner builds them, or one ring where that is faster, after
 * re-ranking. */
r2_status_t rings_recursive(const predict_case_t *ask, double *seconds_p);

#endif
