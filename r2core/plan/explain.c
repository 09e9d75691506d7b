/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Why the planner chooses what it does, for programs that show it.
 */
#include "r2_config.h"

#include "r2/planner.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "plan/forecast.h"
#include "plan/order.h"
#include "plan/tiers.h"

static_assert(R2_PLAN_PREDICTIONS_MAX >= R2_ALGORITHM_COUNT, "each algorithm has a row");

r2_status_t r2_plan_predict(const r2_plan_input_t *input, r2_plan_prediction_t *predictions_p,
                            uint32_t *count_p)
{
    r2_forecast_t forecast;
    r2_status_t status = r2_forecast_allreduce(input, &forecast);

    if (R2_OK != status) {
        return status;
    }
    for (uint32_t i = 0; i < forecast.count; ++i) {
        predictions_p[i] = (r2_plan_prediction_t){.algorithm = forecast.of[i].algorithm->name,
                                                  .ns = forecast.of[i].ns};
    }
    *count_p = forecast.count;
    return R2_OK;
}

r2_status_t r2_plan_shares(const r2_topology_t *topology, double *shares_p)
{
    r2_classes_t classes;
    r2_shares_t shares;
    double sum = 0;
    r2_status_t status = r2_classes_init(&classes, topology, R2_MEMBERS_RANKS);

    if (R2_OK != status) {
        return status;
    }
    status = r2_shares_solve(&shares, &classes);
    r2_classes_fini(&classes);
    if (R2_OK != status) {
        return status;
    }
    for (uint32_t h = 0; h < shares.host_count; ++h) {
        sum += (double) shares.weight[h];
    }
    for (uint32_t h = 0; h < shares.host_count; ++h) {
        shares_p[h] = sum > 0 ? (double) shares.weight[h] / sum : 0;
    }
    r2_shares_fini(&shares);
    return R2_OK;
}

r2_status_t r2_plan_classes(const r2_topology_t *topology, uint32_t *class_of_p, uint32_t *count_p)
{
    r2_classes_t classes;
    r2_status_t status = r2_classes_init(&classes, topology, R2_MEMBERS_HOSTS);

    if (R2_OK == status) {
        memcpy(class_of_p, classes.class_of, topology->host_count * sizeof(*class_of_p));
        *count_p = classes.count;
        r2_classes_fini(&classes);
    }
    return status;
}

/** Rings of tiers along the circle of ranks. */
static r2_status_t r2_tiers_ns(const r2_topology_t *topology, const int32_t *order,
                               const r2_cost_params_t *params, uint64_t bytes, uint64_t *ns_p)
{
    r2_tiers_t tiers = {.tier_of = NULL};
    r2_classes_t hosts;
    r2_status_t status = r2_classes_init(&hosts, topology, R2_MEMBERS_HOSTS);

    if (R2_OK != status) {
        return status;
    }
    status = r2_tiers_init(&tiers, topology, &hosts);
    if (R2_OK == status) {
        status = r2_tiers_cost_ns(&tiers, topology, &hosts, order, params, bytes, ns_p);
        r2_tiers_fini(&tiers);
    }
    r2_classes_fini(&hosts);
    return status;
}

r2_status_t r2_plan_rings_ns(const r2_topology_t *topology, uint64_t bytes, uint64_t *ns_p)
{
    const r2_cost_params_t params = {.alpha_ns = 0, .reduce_mbytes_per_s = {UINT32_MAX}};
    int32_t *order = malloc((size_t) topology->rank_count * sizeof(*order));
    uint64_t tiered_ns = R2_COST_NEVER;
    r2_status_t status =
        NULL == order ? R2_ERR_NO_MEMORY : r2_order_ring(topology, topology->rank_count, order);

    if (R2_OK == status) {
        status = r2_tiers_ns(topology, order, &params, bytes, &tiered_ns);
    }
    if (R2_OK == status) {
        *ns_p = r2_min(r2_cost_ring_ns(topology, order, &params, bytes), tiered_ns);
    }
    free(order);
    return status;
}
