/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What the planner worked out for a topology and a class of lengths, once and for all calls like
 * it.
 */
#ifndef R2_PLAN_MEMO_H
#define R2_PLAN_MEMO_H

#include "plan/forecast.h"

/** What is known on one topology with one cost, by class of lengths. Zeros: nothing. */
typedef struct r2_plan_memo {
    r2_plan_estimate_t *of[R2_PLAN_CLASSES]; /* owned; NULL: not worked out yet */
} r2_plan_memo_t;

/**
 * Predictions and shares for a call, remembered or worked out. Only where a plan depends on them:
 * an allreduce on uneven rails.
 * @param memo     of input->topology and input->cost.
 * @param estimate_p  borrowed from the memo; NULL: the plan needs none.
 * @param fresh_p  true: it was not there.
 * @return R2_OK or R2_ERR_NO_MEMORY.
 */
r2_status_t r2_plan_estimate(r2_plan_memo_t *memo, const r2_plan_input_t *input,
                             const r2_plan_estimate_t **estimate_p, bool *fresh_p);
void r2_plan_memo_fini(r2_plan_memo_t *memo);

/**
 * "weighted 21.5 ms, direct 25.0 ms, ring never, bound 21.4 ms".
 * @param text '\0' terminated, cut to `room`.
 */
void r2_plan_estimate_text(const r2_plan_estimate_t *estimate, char *text, size_t room);

#endif
