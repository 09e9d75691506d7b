/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Predicted times of all candidates for a collective, so that a choice can be explained.
 */
#ifndef R2_PLAN_FORECAST_H
#define R2_PLAN_FORECAST_H

#include "plan/cost.h"
#include "plan/plan.h"

typedef enum r2_forecast_kind {
    R2_FORECAST_DOUBLING,
    R2_FORECAST_EXCHANGE,
    R2_FORECAST_RING,
    R2_FORECAST_RECURSIVE,
    R2_FORECAST_HIERARCHICAL,
    R2_FORECAST_WEIGHTED,
    R2_FORECAST_DIRECT,
    R2_FORECAST_COUNT
} r2_forecast_kind_t;

/** R2_COST_NEVER: not over these rails without going round about. */
typedef struct r2_forecast {
    uint64_t ns[R2_FORECAST_COUNT];
    uint64_t steps_ns; /* of that, what steps and messages of `direct` and `weighted` take alike */
    uint64_t bound_ns; /* nothing is faster */
} r2_forecast_t;

/** What does not change from call to call on one topology. */
typedef struct r2_plan_known {
    r2_forecast_t forecast; /* r2_forecast_class() */
    r2_shares_t shares;     /* owned; of `weighted` */
} r2_plan_known_t;

/** Name of the algorithm, static. */
const char *r2_forecast_name(r2_forecast_kind_t kind);

/**
 * Predicts every algorithm of an allreduce, with input->cost.
 * @return R2_OK, R2_ERR_PARAM (no topology), R2_ERR_NO_MEMORY.
 */
r2_status_t r2_forecast_allreduce(const r2_plan_input_t *input, r2_forecast_t *forecast_p);

/**
 * Steps that a short call takes one after the other on every rank, whichever it is; what alpha is of.
 * @return 0: not known of this algorithm.
 */
uint32_t r2_forecast_steps(const r2_schedule_t *schedule, int32_t size);

/** Lengths up to 2^k share class k. */
uint32_t r2_plan_size_class(uint64_t bytes);

/** As r2_forecast_allreduce(), for the longest vector of the class of this one: what choices are made by. */
r2_status_t r2_forecast_class(const r2_plan_input_t *input, r2_forecast_t *forecast_p);

#endif
