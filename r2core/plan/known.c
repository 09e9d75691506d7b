/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What the planner worked out for a topology and a class of lengths, once and for all calls like it.
 *
 * Ranks may remember different things, since they are members of different communicators. So what is
 * remembered is a function of its key alone, and equals what a rank that forgot it works out anew.
 */
#include "r2_config.h"

#include "plan/known.h"

#include <stdio.h>
#include <string.h>

static r2_status_t known_make(const r2_plan_input_t *input, r2_plan_known_t *known)
{
    r2_classes_t classes;
    r2_status_t status = r2_forecast_class(input, &known->forecast);

    if (R2_OK != status) {
        return status;
    }
    status = r2_classes_init(&classes, input->topology, R2_MEMBERS_RANKS);
    if (R2_OK == status) {
        status = r2_shares_solve(&known->shares, &classes);
        r2_classes_fini(&classes);
    }
    return status;
}

r2_status_t r2_plan_know(r2_plan_cache_t *cache, uint64_t comm, uint64_t map,
                         const r2_plan_input_t *input, const r2_plan_known_t **known_p, bool *fresh_p)
{
    const r2_plan_key_t key = {
        .comm = comm,
        .operation = (uint64_t) input->kind,
        .size_class = r2_plan_size_class(input->count * input->element_bytes),
        .map = map};
    r2_plan_known_t known = {.shares = {.weight = NULL}};
    r2_status_t status;

    *known_p = NULL;
    *fresh_p = false;
    if (R2_COLL_ALLREDUCE != input->kind || NULL == input->topology || 1 == input->size ||
        r2_topology_is_even(input->topology)) {
        return R2_OK;
    }
    *known_p = r2_plan_cache_find(cache, &key);
    if (NULL != *known_p) {
        return R2_OK;
    }
    status = known_make(input, &known);
    if (R2_OK == status) {
        *known_p = r2_plan_cache_store(cache, &key, &known);
        *fresh_p = true;
    }
    return status;
}

void r2_plan_known_text(const r2_plan_known_t *known, char *text, size_t room)
{
    const r2_forecast_t *forecast = &known->forecast;
    size_t used = 0;

    for (uint32_t i = 0; i <= forecast->count && used < room; i++) {
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
