/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Predicted times of all candidates for a collective, and the text of a choice.
 */
#include "r2_config.h"

#include "plan/forecast.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/order.h"
#include "plan/tiers.h"

/* Up to this many hosts each share is written. */
#define R2_DESCRIBE_HOSTS 8u

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

/** Number of hosts from `first` on with the same weight. */
static uint32_t run_length(const r2_shares_t *shares, uint32_t first)
{
    uint32_t end = first + 1;

    while (shares->host_count > R2_DESCRIBE_HOSTS && end < shares->host_count &&
           shares->weight[end] == shares->weight[first]) {
        end++;
    }
    return end - first;
}

static void describe_shares(const r2_shares_t *shares, char *text, size_t room)
{
    const uint32_t scale = shares->host_count > R2_DESCRIBE_HOSTS ? 10000 : 100;
    const int digits = shares->host_count > R2_DESCRIBE_HOSTS ? 4 : 2;
    unsigned __int128 sum = 0;
    size_t used = strlen(text);

    for (uint32_t h = 0; h < shares->host_count; h++) {
        sum += shares->weight[h];
    }
    for (uint32_t h = 0; sum > 0 && used < room && h < shares->host_count;) {
        const uint32_t run = run_length(shares, h);
        const unsigned share =
            (unsigned) (((unsigned __int128) shares->weight[h] * scale + sum / 2) / sum);
        int made = snprintf(text + used, room - used, "%c%u.%0*u", 0 == h ? '(' : ',',
                            share / scale, digits, share % scale);

        used += (size_t) made;
        if (1 < run && used < room) {
            used += (size_t) snprintf(text + used, room - used, "x%u", run);
        }
        h += run;
    }
    if (used + 1 < room) {
        memcpy(text + used, ")", 2);
    }
}

r2_status_t r2_plan_describe(const r2_plan_input_t *input, char *text, size_t room)
{
    const char *name = r2_plan_choose(input);
    r2_classes_t classes;
    r2_shares_t shares;
    r2_status_t status;

    if (NULL == name) {
        return R2_ERR_PARAM;
    }
    snprintf(text, room, "%s", name);
    if (NULL == input->topology || 0 != strcmp(name, names[R2_FORECAST_WEIGHTED])) {
        return R2_OK;
    }
    status = r2_classes_init(&classes, input->topology, R2_MEMBERS_RANKS);
    if (R2_OK != status) {
        return status;
    }
    status = r2_shares_solve(&shares, &classes);
    if (R2_OK == status) {
        describe_shares(&shares, text, room);
        r2_shares_fini(&shares);
    }
    r2_classes_fini(&classes);
    return status;
}
