/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Allreduce by pipelined direct exchange in canonical rank order: for long vectors.
 *
 * Every rank owns a share of the vector, cut into segments. For each segment the owner takes in the
 * contributions of all others, folds them in canonical order (fold.c) and sends the result to all.
 * Three ranks, two segments; r.k is segment k of the share of rank r, c> are contributions to it,
 * r> is a result:
 *
 *            segment 0                                 segment 1
 *   rank 0   c> 1.0 to 1, 2.0 to 2; folds 0.0, r> all   c> 1.1 to 1, 2.1 to 2; folds 0.1, r> all
 *   rank 1   c> 2.0 to 2, 0.0 to 0; folds 1.0, r> all   c> 2.1 to 2, 0.1 to 0; folds 1.1, r> all
 *   rank 2   c> 0.0 to 0, 1.0 to 1; folds 2.0, r> all   c> 0.1 to 0, 1.1 to 1; folds 2.1, r> all
 *
 * The columns overlap: contributions to all segments wait for nothing but staging slots. Results go
 * before contributions in the queues, so both directions of every NIC are busy from the second
 * segment on. Peers are taken in the order rank + 1, rank + 2, ... so that no rank is everybody's
 * first.
 *
 * With equal shares each rank sends and receives 2 (n - 1) / n of the vector, with a share s of the
 * vector 1 + (n - 2) s (allreduce_weighted.c). Shares of all lengths have equally many segments, so
 * that short and long ones take part in the pipeline from its start to its end. Whoever owns an
 * element, it is folded in the same order: the result does not depend on the shares.
 *
 * Source: reduce-scatter and allgather by direct exchange, as for instance in R. Rabenseifner,
 * "Optimization of Collective Reduction Operations", ICCS 2004. Deviation: segments, canonical
 * order.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include <stdlib.h>

#include "base/util.h"
#include "plan/fold.h"
#include "plan/forecast.h"

typedef struct direct {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    const r2_layout_t *shares;    /* borrowed */
    uint64_t segment_bytes;       /* of the longest share */
    uint32_t segments;
    r2_fold_t fold;
    uint32_t *sent; /* owned; per rank, the send of our contribution to its segment */
} direct_t;

static uint64_t r2_direct_segment_bytes(const direct_t *d, int32_t owner)
{
    return r2_segment_bytes_among(d->input, r2_layout_bytes(d->shares, owner),
                                  d->shares->largest_bytes, d->segment_bytes);
}

/** The part of segment k of a rank's share. */
static r2_msg_t r2_direct_msg(const direct_t *d, int32_t peer, int32_t owner, uint32_t k,
                              bool result)
{
    return (r2_msg_t){.peer = peer,
                      .tag = 2 * k + (result ? 1 : 0),
                      .order = k,
                      .bytes = r2_segment_length(r2_layout_bytes(d->shares, owner),
                                                 r2_direct_segment_bytes(d, owner), k)};
}

static r2_region_t r2_direct_region(const direct_t *d, r2_buf_t buf, int32_t owner, uint32_t k)
{
    return r2_at(buf, d->shares->start[owner] + k * r2_direct_segment_bytes(d, owner));
}

static void r2_direct_contribute(direct_t *d, uint32_t k)
{
    for (int32_t step = 1; step < d->input->size; ++step) {
        int32_t owner = r2_input_peer(d->input, step);

        d->sent[owner] =
            r2_add_send(d->schedule, r2_direct_msg(d, owner, owner, k, false),
                        r2_direct_region(d, r2_input_buf(d->input), owner, k), R2_AT_ONCE);
    }
}

static void r2_direct_own_segment(direct_t *d, uint32_t k)
{
    const int32_t rank = d->input->rank;
    const r2_fold_segment_t segment = {.index = k,
                                       .tag = 2 * k,
                                       .bytes = r2_direct_msg(d, rank, rank, k, false).bytes,
                                       .own = r2_direct_region(d, r2_input_buf(d->input), rank, k),
                                       .place = r2_direct_region(d, R2_BUF_OUT, rank, k)};
    uint32_t done;

    if (0 == segment.bytes) {
        return;
    }
    done = r2_fold_contributions(&d->fold, &segment);
    done = r2_fold_finish(&d->fold, &segment, R2_AFTER(done));
    for (int32_t step = 1; step < d->input->size; ++step) {
        r2_add_send(d->schedule, r2_direct_msg(d, r2_input_peer(d->input, step), rank, k, true),
                    segment.place, R2_AFTER(done));
    }
}

/** Results of the others' segments; in place, they overwrite what we sent as contribution. */
static void r2_direct_collect(direct_t *d, uint32_t k)
{
    for (int32_t step = 1; step < d->input->size; ++step) {
        int32_t owner = r2_input_peer(d->input, -step);

        r2_add_recv(d->schedule, r2_direct_msg(d, owner, owner, k, true),
                    r2_direct_region(d, R2_BUF_OUT, owner, k),
                    R2_AFTER(d->input->in_place ? d->sent[owner] : R2_OP_NONE));
    }
}

static r2_status_t r2_direct_ops(direct_t *d)
{
    const r2_plan_input_t *input = d->input;
    uint64_t own_bytes = r2_layout_bytes(d->shares, input->rank);
    uint64_t own_segment_bytes = r2_direct_segment_bytes(d, input->rank);
    bool staged = input->in_place && input->rank != input->size - 1;
    r2_status_t status;

    status = r2_fold_init(&d->fold, input, d->schedule, staged, own_segment_bytes,
                          r2_segment_count(own_bytes, own_segment_bytes));
    if (R2_OK != status) {
        return status;
    }
    for (uint32_t k = 0; k < d->segments; ++k) {
        r2_direct_contribute(d, k);
        r2_direct_own_segment(d, k);
        r2_direct_collect(d, k);
    }
    r2_fold_fini(&d->fold);
    return R2_OK;
}

r2_status_t r2_build_allreduce_shares(const r2_plan_input_t *input, r2_schedule_t *schedule,
                                      const r2_layout_t *shares, uint64_t segment_bytes)
{
    direct_t d = {.input = input,
                  .schedule = schedule,
                  .shares = shares,
                  .segment_bytes = segment_bytes};
    r2_status_t status = R2_ERR_NO_MEMORY;

    d.segments = r2_segment_count(shares->largest_bytes, d.segment_bytes);
    r2_plan_note_message(schedule, d.segment_bytes);
    d.sent = malloc((size_t) input->size * sizeof(*d.sent));
    if (NULL != d.sent) {
        status = r2_direct_ops(&d);
    }
    free(d.sent);
    return status;
}

static r2_status_t r2_allreduce_direct_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    r2_layout_t shares;
    r2_status_t status = r2_layout_shares(&shares, input->size, input->count, input->element_bytes);

    if (R2_OK == status) {
        status = r2_build_allreduce_shares(input, schedule, &shares,
                                           r2_segment_bytes_exchanged(input, shares.largest_bytes));
        r2_layout_fini(&shares);
    }
    return status;
}

static r2_status_t r2_allreduce_direct_forecast(const r2_forecast_input_t *of,
                                                r2_prediction_t *prediction_p)
{
    r2_shares_t shares;
    r2_status_t status = r2_shares_equal(&shares, &of->ranks);

    if (R2_OK == status) {
        prediction_p->ns = r2_cost_exchange_ns(&of->ranks, &shares, &of->params, of->bytes);
        prediction_p->steps_ns = r2_cost_exchange_ns(&of->ranks, &shares, &of->params, 0);
        r2_shares_fini(&shares);
    }
    return status;
}

const r2_algorithm_t r2_allreduce_direct = {.name = "direct",
                                            .instead = R2_INSTEAD("direct"),
                                            .build = r2_allreduce_direct_build,
                                            .weighed = 1,
                                            .forecast = r2_allreduce_direct_forecast,
                                            .shape = r2_cost_direct_shape};
