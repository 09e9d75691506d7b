/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What the planner worked out for a topology and a class of lengths, once and for all calls like
 * it.
 *
 * Ranks may remember different things, since they make different calls. So what is remembered is a
 * function of topology, cost and class alone, and equals what a rank that forgot it works out anew.
 */
#include "r2_config.h"

#include "plan/memo.h"

#include <stdio.h>
#include <stdlib.h>

static r2_status_t r2_estimate_make(const r2_plan_input_t *input, r2_plan_estimate_t *estimate)
{
    r2_classes_t classes;
    r2_status_t status = r2_forecast_class(input, &estimate->forecast);

    if (R2_OK != status) {
        return status;
    }
    status = r2_classes_init(&classes, input->topology, R2_MEMBERS_RANKS);
    if (R2_OK == status) {
        status = r2_shares_solve(&estimate->shares, &classes);
        r2_classes_fini(&classes);
    }
    return status;
}

/* An allreduce on rails that are alike, or by one rank, is the same whatever is predicted. */
static bool r2_estimate_matters(const r2_plan_input_t *input)
{
    return R2_COLL_ALLREDUCE == input->kind && NULL != input->topology && 1 < input->size &&
           !r2_topology_is_even(input->topology);
}

r2_status_t r2_plan_estimate(r2_plan_memo_t *memo, const r2_plan_input_t *input,
                             const r2_plan_estimate_t **estimate_p, bool *fresh_p)
{
    const uint32_t class = r2_plan_size_class(input->count * input->element_bytes);
    r2_plan_estimate_t *estimate;
    r2_status_t status;

    *fresh_p = r2_estimate_matters(input) && NULL == memo->of[class];
    *estimate_p = r2_estimate_matters(input) ? memo->of[class] : NULL;
    if (!*fresh_p) {
        return R2_OK;
    }
    estimate = calloc(1, sizeof(*estimate));
    status = NULL == estimate ? R2_ERR_NO_MEMORY : r2_estimate_make(input, estimate);
    if (R2_OK != status) {
        free(estimate);
        return status;
    }
    *estimate_p = memo->of[class] = estimate;
    return R2_OK;
}

void r2_plan_memo_fini(r2_plan_memo_t *memo)
{
    for (uint32_t class = 0; class < R2_PLAN_CLASSES; class ++) {
        if (NULL != memo->of[class]) {
            r2_shares_fini(&memo->of[class]->shares);
            free(memo->of[class]);
        }
    }
    *memo = (r2_plan_memo_t){{NULL}};
}

void r2_plan_estimate_text(const r2_plan_estimate_t *estimate, char *text, size_t room)
{
    const r2_forecast_t *forecast = &estimate->forecast;
    size_t used = 0;

    for (uint32_t i = 0; i <= forecast->count && used < room; ++i) {
        const bool bound = forecast->count == i;
        const uint64_t ns = bound ? forecast->bound_ns : forecast->of[i].ns;
        const char *name = bound ? "bound" : forecast->of[i].algorithm->name;

        used += (size_t) snprintf(text + used, room - used, "%s%s ", 0 == i ? "" : ", ", name);
        if (used < room) {
            used += (size_t) (R2_COST_NEVER == ns ? snprintf(text + used, room - used, "never")
                                                  : snprintf(text + used, room - used, "%.3f ms",
                                                             (double) ns / 1e6));
        }
    }
}
