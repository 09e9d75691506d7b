/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Predicted times of all candidates for a collective.
 */
#include "r2_config.h"

#include "plan/forecast.h"

#include <stdlib.h>
#include <string.h>

#include "plan/order.h"
#include "plan/tiers.h"

static const char *const names[R2_FORECAST_COUNT] = {
    "recursive-doubling", "exchange", "ring", "recursive", "hierarchical", "weighted", "direct"};

const char *r2_forecast_name(r2_forecast_kind_t kind)
{
    return names[kind];
}

uint32_t r2_forecast_steps(const r2_schedule_t *schedule, int32_t size)
{
    const r2_coll_kind_t kind =
        (r2_coll_kind_t) (schedule->digest & (((uint32_t) 1 << R2_DIGEST_KIND_BITS) - 1));

    if (R2_COLL_BARRIER == kind) {
        return r2_steps_below(size);
    }
    if (R2_COLL_ALLREDUCE != kind) {
        return 0;
    }
    if (0 == strcmp(schedule->algorithm, names[R2_FORECAST_EXCHANGE])) {
        return 1;
    }
    return 0 == strcmp(schedule->algorithm, names[R2_FORECAST_DOUBLING]) ? r2_cost_doubling_steps(size) : 0;
}

static r2_status_t forecast_exchanges(const r2_classes_t *classes, const r2_cost_params_t *params,
                                      uint64_t bytes, r2_forecast_t *forecast)
{
    r2_shares_t shares;
    r2_status_t status = r2_shares_equal(&shares, classes);

    if (R2_OK != status) {
        return status;
    }
    forecast->ns[R2_FORECAST_DIRECT] = r2_cost_exchange_ns(classes, &shares, params, bytes);
    forecast->steps_ns = r2_cost_exchange_ns(classes, &shares, params, 0);
    r2_shares_fini(&shares);
    status = r2_shares_solve(&shares, classes);
    if (R2_OK == status) {
        forecast->ns[R2_FORECAST_WEIGHTED] = r2_cost_exchange_ns(classes, &shares, params, bytes);
        r2_shares_fini(&shares);
    }
    return status;
}

/** Between hosts as `weighted` with one rank each; copies within a host are hidden behind that. */
static r2_status_t forecast_hierarchical(const r2_topology_t *topology, const r2_classes_t *hosts,
                                         const r2_cost_params_t *params, uint64_t bytes,
                                         uint64_t *ns_p)
{
    const bool folds = (uint32_t) topology->rank_count > topology->host_count;
    r2_topology_crowd_t crowd;
    r2_shares_t shares;
    r2_status_t status = r2_topology_crowd(topology, &crowd);

    status = R2_OK == status ? r2_shares_solve(&shares, hosts) : status;
    if (R2_OK == status) {
        *ns_p = r2_cost_exchange_ns(hosts, &shares, params, bytes);
        if (folds && R2_COST_NEVER != *ns_p) {
            *ns_p += r2_cost_folding_ns(topology, &crowd, params);
        }
        r2_shares_fini(&shares);
    }
    return status;
}

/** One ring, and rings of tiers in the same order. */
static r2_status_t forecast_rings(const r2_topology_t *topology, const r2_classes_t *hosts,
                                  const r2_cost_params_t *params, uint64_t bytes,
                                  r2_forecast_t *forecast)
{
    int32_t *order = malloc((size_t) topology->rank_count * sizeof(*order));
    r2_tiers_t tiers = {.tier_of = NULL};
    r2_status_t status =
        NULL == order ? R2_ERR_NO_MEMORY : r2_order_ring(topology, topology->rank_count, order);

    if (R2_OK == status) {
        forecast->ns[R2_FORECAST_RING] = r2_cost_ring_ns(topology, order, params, bytes);
        status = r2_tiers_init(&tiers, topology, hosts);
    }
    if (R2_OK == status) {
        status = r2_tiers_cost_ns(&tiers, topology, hosts, order, params, bytes,
                                  &forecast->ns[R2_FORECAST_RECURSIVE]);
    }
    r2_tiers_fini(&tiers);
    free(order);
    return status;
}

/** What looks at hosts rather than ranks. */
static r2_status_t forecast_hosts(const r2_topology_t *topology, const r2_cost_params_t *params,
                                  uint64_t bytes, r2_forecast_t *forecast)
{
    r2_classes_t hosts;
    r2_status_t status = r2_classes_init(&hosts, topology, R2_MEMBERS_HOSTS);

    if (R2_OK != status) {
        return status;
    }
    status = forecast_rings(topology, &hosts, params, bytes, forecast);
    if (R2_OK == status) {
        status = forecast_hierarchical(topology, &hosts, params, bytes,
                                       &forecast->ns[R2_FORECAST_HIERARCHICAL]);
    }
    r2_classes_fini(&hosts);
    return status;
}

r2_status_t r2_forecast_allreduce(const r2_plan_input_t *input, r2_forecast_t *forecast_p)
{
    const r2_cost_params_t params = r2_cost_params(&input->cost);
    const uint64_t bytes = input->count * input->element_bytes;
    r2_classes_t classes;
    r2_status_t status;

    if (NULL == input->topology) {
        return R2_ERR_PARAM;
    }
    status = r2_classes_init(&classes, input->topology, R2_MEMBERS_RANKS);
    if (R2_OK != status) {
        return status;
    }
    forecast_p->ns[R2_FORECAST_DOUBLING] = r2_cost_doubling_ns(&classes, &params, bytes);
    forecast_p->ns[R2_FORECAST_EXCHANGE] = r2_cost_to_all_ns(&classes, &params, bytes);
    forecast_p->bound_ns = r2_cost_paced_ns(&params, r2_cost_bound_ns(input->topology, bytes));
    status = forecast_hosts(input->topology, &params, bytes, forecast_p);
    if (R2_OK == status) {
        status = forecast_exchanges(&classes, &params, bytes, forecast_p);
    }
    r2_classes_fini(&classes);
    return status;
}

uint32_t r2_plan_size_class(uint64_t bytes)
{
    uint32_t class = 0;

    while (class < 63 && ((uint64_t) 1 << class) < bytes) {
        class ++;
    }
    return class;
}

r2_status_t r2_forecast_class(const r2_plan_input_t *input, r2_forecast_t *forecast_p)
{
    r2_plan_input_t longest = *input;

    longest.count = (uint64_t) 1 << r2_plan_size_class(input->count * input->element_bytes);
    longest.element_bytes = 1;
    return r2_forecast_allreduce(&longest, forecast_p);
}
