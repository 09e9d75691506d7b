/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Predicted times of all candidates for a collective, so that a choice can be explained.
 */
#ifndef R2_PLAN_FORECAST_H
#define R2_PLAN_FORECAST_H

#include "plan/algorithm.h"

/** What predictions are made from. */
typedef struct r2_forecast_input {
    const r2_topology_t *topology; /* borrowed */
    r2_cost_params_t params;
    uint64_t bytes;     /* of the vector */
    r2_classes_t ranks; /* R2_MEMBERS_RANKS */
    r2_classes_t hosts; /* R2_MEMBERS_HOSTS */
    int32_t *order;     /* owned; ranks by place in a circle (r2_order_ring()) */
} r2_forecast_input_t;

typedef struct r2_prediction {
    const r2_algorithm_t *algorithm;
    uint64_t ns;       /* R2_COST_NEVER: not over these rails without going round about */
    uint64_t steps_ns; /* of that, what others of the same tree take alike: steps and messages */
} r2_prediction_t;

typedef struct r2_forecast {
    r2_prediction_t of[R2_ALGORITHM_COUNT]; /* in the order of the registry */
    uint32_t count;
    uint64_t bound_ns; /* nothing is faster */
} r2_forecast_t;

/** What does not change from call to call on one topology. */
typedef struct r2_plan_estimate {
    r2_forecast_t forecast; /* r2_forecast_class() */
    r2_shares_t shares;     /* owned; of `weighted` */
} r2_plan_estimate_t;

#define R2_PLAN_CLASSES 64u

/** NULL: there is no prediction for it. */
const r2_prediction_t *r2_forecast_of(const r2_forecast_t *forecast,
                                      const r2_algorithm_t *algorithm);

/**
 * Predicts all algorithms of an allreduce that export a forecast, with input->cost.
 * @return R2_OK, R2_ERR_PARAM (no topology), R2_ERR_NO_MEMORY.
 */
r2_status_t r2_forecast_allreduce(const r2_plan_input_t *input, r2_forecast_t *forecast_p);

/**
 * Steps that a short call takes one after the other on every rank, whichever it is; what alpha is
 * of.
 * @return 0: not known of this algorithm.
 */
uint32_t r2_forecast_steps(const r2_schedule_t *schedule, int32_t size, uint32_t hosts);

/** Lengths up to 2^k share class k, below R2_PLAN_CLASSES. */
uint32_t r2_plan_size_class(uint64_t bytes);

/** As r2_forecast_allreduce(), for the longest vector of the class of this one: what choices are
 * made by. */
r2_status_t r2_forecast_class(const r2_plan_input_t *input, r2_forecast_t *forecast_p);

#endif
