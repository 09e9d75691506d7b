/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Allreduce by recursive doubling among all ranks (doubling.c): for short vectors.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include "plan/doubling.h"
#include "plan/forecast.h"
#include "plan/ops.h"

static uint64_t r2_allreduce_doubling_scratch(const r2_plan_input_t *input)
{
    return r2_doubling_slots(input->size) * r2_vector_slot_bytes(input);
}

static r2_status_t r2_allreduce_doubling_build(const r2_plan_input_t *input,
                                               r2_schedule_t *schedule)
{
    r2_doubling_t d = r2_doubling_of(input, schedule, input->size, input->rank);

    r2_plan_note_message(schedule, d.bytes);
    r2_doubling_run(&d);
    schedule->scratch_bytes = d.slots * r2_vector_slot_bytes(input);
    return R2_OK;
}

static r2_status_t r2_allreduce_doubling_forecast(const r2_forecast_input_t *of,
                                                  r2_prediction_t *prediction_p)
{
    prediction_p->ns = r2_cost_doubling_ns(&of->ranks, &of->params, of->bytes);
    return R2_OK;
}

const r2_algorithm_t r2_allreduce_doubling = {.name = "recursive-doubling",
                                              .build = r2_allreduce_doubling_build,
                                              .scratch = r2_allreduce_doubling_scratch,
                                              .pays = r2_doubling_pays,
                                              .forecast = r2_allreduce_doubling_forecast,
                                              .shape = r2_cost_doubling_shape,
                                              .steps = r2_cost_doubling_steps};
