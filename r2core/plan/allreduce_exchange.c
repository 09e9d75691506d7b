/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Allreduce in one step: every rank sends its vector to all and folds for itself. For three ranks,
 * for two and vectors of middle length, or by name.
 *
 * Three ranks, one step:
 *
 *   rank 0   x0 -> 1, 2   folds x0 OP (x1 OP x2)
 *   rank 1   x1 -> 2, 0   folds x0 OP (x1 OP x2)
 *   rank 2   x2 -> 0, 1   folds x0 OP (x1 OP x2)
 *
 * It costs n - 1 messages and n - 1 reductions per rank instead of log2 n, but no second step. The
 * order is that of direct exchange (fold.c): both give the same bits.
 *
 * Source: folklore (linear exchange).
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include <stdlib.h>

#include "base/util.h"
#include "plan/fold.h"
#include "plan/forecast.h"
#include "plan/thresholds.h"

static uint64_t r2_allreduce_exchange_scratch(const r2_plan_input_t *input)
{
    /* two slots are the least that a fold works with */
    return 2 * r2_vector_slot_bytes(input);
}

static r2_status_t r2_allreduce_exchange_build(const r2_plan_input_t *input,
                                               r2_schedule_t *schedule)
{
    const r2_fold_segment_t whole = {.bytes = input->count * input->element_bytes,
                                     .own = r2_at(r2_input_buf(input), 0),
                                     .place = r2_at(R2_BUF_OUT, 0)};
    /* in place, what we send must stay until it is acknowledged */
    uint32_t *waits = malloc((size_t) input->size * sizeof(*waits));
    r2_fold_t fold;
    r2_status_t status;

    if (NULL == waits) {
        return R2_ERR_NO_MEMORY;
    }
    r2_plan_note_message(schedule, whole.bytes);
    status = r2_fold_init(&fold, input, schedule, input->in_place, whole.bytes, 1);
    if (R2_OK == status) {
        for (int32_t step = 1; step < input->size; ++step) {
            r2_msg_t msg = {.peer = r2_input_peer(input, step), .bytes = whole.bytes};

            waits[step] = r2_add_send(schedule, msg, whole.own, R2_AT_ONCE);
        }
        waits[0] = r2_fold_contributions(&fold, &whole);
        r2_fold_finish(&fold, &whole, waits, (uint32_t) input->size);
        r2_fold_fini(&fold);
    }
    free(waits);
    return status;
}

static bool r2_allreduce_exchange_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    if (2 == input->size) {
        return total_bytes <= r2_threshold_exchange_pair_bytes;
    }
    return r2_threshold_exchange_ranks == input->size &&
           r2_is_short(input, total_bytes, r2_threshold_allreduce_short_bytes,
                       r2_threshold_allreduce_short_bytes_per_rank);
}

static r2_status_t r2_allreduce_exchange_forecast(const r2_forecast_input_t *of,
                                                  r2_prediction_t *prediction_p)
{
    prediction_p->ns = r2_cost_to_all_ns(&of->ranks, &of->params, of->bytes);
    return R2_OK;
}

static uint32_t r2_allreduce_exchange_steps(int32_t size)
{
    (void) size;
    return 1;
}

const r2_algorithm_t r2_allreduce_exchange = {.name = "exchange",
                                              .build = r2_allreduce_exchange_build,
                                              .scratch = r2_allreduce_exchange_scratch,
                                              .pays = r2_allreduce_exchange_pays,
                                              .forecast = r2_allreduce_exchange_forecast,
                                              .shape = r2_cost_exchange_shape,
                                              .steps = r2_allreduce_exchange_steps};
