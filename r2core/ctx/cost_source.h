/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What predictions are made from: read from a file, or measured at start.
 */
#ifndef R2_CTX_COST_SOURCE_H
#define R2_CTX_COST_SOURCE_H

#include <stddef.h>

#include "base/clock.h"
#include "r2/cost_params.h"
#include "r2/status.h"

/**
 * Cost parameters of this process, to be published.
 * @param file   lines "alpha_ns N", "rate_ppm N" and "reduce_mbytes_per_s N", '#' begins a comment.
 *               Of what it does not name the rate of reductions is measured now, the rest is 0: to
 *               be measured in use (ctx/estimator.h). "": no file.
 * @param text_p on error: what is wrong.
 * @return R2_OK, R2_ERR_PARAM (bad file).
 */
r2_status_t r2_cost_find(const char *file, const r2_clock_t *clock, r2_cost_params_t *cost_p,
                         char *text_p, size_t text_bytes);

#endif
