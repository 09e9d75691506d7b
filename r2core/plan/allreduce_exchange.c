/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Allreduce in one step: every rank sends its vector to all and folds for itself. For three ranks,
 * for two and vectors of middle length or long ones, or by name.
 *
 * Three ranks, one step:
 *
 *   rank 0   x0 -> 1, 2   folds x0 OP (x1 OP x2)
 *   rank 1   x1 -> 2, 0   folds x0 OP (x1 OP x2)
 *   rank 2   x2 -> 0, 1   folds x0 OP (x1 OP x2)
 *
 * It costs n - 1 messages and n - 1 reductions per rank instead of log2 n, but no second step. Long
 * vectors go in segments, one after the other. The order is that of direct exchange (fold.c): both
 * give the same bits.
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
    return 2 * r2_round_up(r2_fold_segment_bytes(input), R2_SLOT_ALIGN);
}

typedef struct exchange {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    uint64_t bytes, segment_bytes;
    r2_fold_t fold;
    uint32_t *waits; /* owned; [size]: what the result of a segment waits for */
} exchange_t;

/** A segment to all, and the result from the segments of all. */
static void r2_exchange_segment(exchange_t *e, uint32_t k)
{
    const uint64_t offset = k * e->segment_bytes;
    const r2_fold_segment_t segment = {.index = k,
                                       .tag = k,
                                       .bytes = r2_segment_length(e->bytes, e->segment_bytes, k),
                                       .own = r2_at(r2_input_buf(e->input), offset),
                                       .place = r2_at(R2_BUF_OUT, offset)};

    for (int32_t step = 1; step < e->input->size; ++step) {
        const r2_msg_t msg = {.peer = r2_input_peer(e->input, step),
                              .tag = k,
                              .order = k,
                              .bytes = segment.bytes};

        /* in place, what we send must stay until it is acknowledged */
        e->waits[step] = r2_add_send(e->schedule, msg, segment.own, R2_AT_ONCE);
    }
    e->waits[0] = r2_fold_contributions(&e->fold, &segment);
    r2_fold_finish(&e->fold, &segment, e->waits, (uint32_t) e->input->size);
}

static r2_status_t r2_allreduce_exchange_build(const r2_plan_input_t *input,
                                               r2_schedule_t *schedule)
{
    exchange_t e = {.input = input,
                    .schedule = schedule,
                    .bytes = input->count * input->element_bytes};
    uint32_t segments;
    r2_status_t status;

    e.segment_bytes = r2_fold_segment_bytes(input);
    segments = r2_segment_count(e.bytes, e.segment_bytes);
    e.waits = malloc((size_t) input->size * sizeof(*e.waits));
    if (NULL == e.waits) {
        return R2_ERR_NO_MEMORY;
    }
    r2_plan_note_message(schedule, e.segment_bytes);
    status = r2_fold_init(&e.fold, input, schedule, input->in_place, e.segment_bytes, segments);
    for (uint32_t k = 0; R2_OK == status && k < segments; ++k) {
        r2_exchange_segment(&e, k);
    }
    r2_fold_fini(&e.fold);
    free(e.waits);
    return status;
}

/** Within a host no wire stands still between two steps, and each of two may reduce one half. */
static bool r2_exchange_pays_long(const r2_plan_input_t *input, uint64_t total_bytes)
{
    return total_bytes >= r2_threshold_exchange_pair_long_bytes &&
           total_bytes <= r2_threshold_exchange_pair_longest_bytes &&
           (NULL == input->topology || input->topology->host_count > 1);
}

static bool r2_allreduce_exchange_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    if (2 == input->size) {
        return total_bytes <= r2_threshold_exchange_pair_bytes ||
               r2_exchange_pays_long(input, total_bytes);
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
