/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Predicted times of all candidates for a collective.
 */
#include "r2_config.h"

#include "plan/forecast.h"

#include <stdlib.h>

#include "plan/order.h"

const r2_prediction_t *r2_forecast_of(const r2_forecast_t *forecast,
                                      const r2_algorithm_t *algorithm)
{
    for (uint32_t i = 0; i < forecast->count; ++i) {
        if (forecast->of[i].algorithm == algorithm) {
            return &forecast->of[i];
        }
    }
    return NULL;
}

uint32_t r2_forecast_steps(const r2_schedule_t *schedule, int32_t size, uint32_t hosts)
{
    const r2_coll_kind_t kind =
        (r2_coll_kind_t) (schedule->digest & (((uint32_t) 1 << R2_DIGEST_KIND_BITS) - 1));
    const r2_algorithm_t *algorithm = r2_algorithm_find(kind, schedule->algorithm);

    if (NULL == algorithm || NULL == algorithm->steps) {
        return 0;
    }
    return algorithm->steps(algorithm->steps_of_hosts ? (int32_t) hosts : size);
}

static void r2_forecast_input_fini(r2_forecast_input_t *of)
{
    r2_classes_fini(&of->ranks);
    r2_classes_fini(&of->hosts);
    free(of->order);
}

static r2_status_t r2_forecast_input_init(r2_forecast_input_t *of, const r2_plan_input_t *input)
{
    const r2_topology_t *topology = input->topology;
    r2_status_t status;

    *of = (r2_forecast_input_t){.topology = topology,
                                .params = r2_cost_params(&input->cost),
                                .bytes = input->count * input->element_bytes};
    of->order = malloc((size_t) topology->rank_count * sizeof(*of->order));
    status = NULL == of->order ? R2_ERR_NO_MEMORY
                               : r2_order_ring(topology, topology->rank_count, of->order);
    status = R2_OK == status ? r2_classes_init(&of->ranks, topology, R2_MEMBERS_RANKS) : status;
    return R2_OK == status ? r2_classes_init(&of->hosts, topology, R2_MEMBERS_HOSTS) : status;
}

r2_status_t r2_forecast_allreduce(const r2_plan_input_t *input, r2_forecast_t *forecast_p)
{
    const r2_algorithm_t *const *at = r2_algorithms_of(R2_COLL_ALLREDUCE);
    r2_forecast_input_t of;
    r2_status_t status;

    if (NULL == input->topology) {
        return R2_ERR_PARAM;
    }
    status = r2_forecast_input_init(&of, input);
    *forecast_p = (r2_forecast_t){
        .bound_ns = r2_cost_paced_ns(&of.params, r2_cost_bound_ns(of.topology, of.bytes))};
    for (; R2_OK == status && NULL != *at; ++at) {
        if (NULL != (*at)->forecast) {
            r2_prediction_t *prediction = &forecast_p->of[forecast_p->count++];

            prediction->algorithm = *at;
            status = (*at)->forecast(&of, prediction);
        }
    }
    r2_forecast_input_fini(&of);
    return status;
}

uint32_t r2_plan_size_class(uint64_t bytes)
{
    uint32_t class = 0;

    while (class < R2_PLAN_CLASSES - 1 && ((uint64_t) 1 << class) < bytes) {
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
