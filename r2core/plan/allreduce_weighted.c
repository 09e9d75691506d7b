/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Allreduce by direct exchange with shares weighted by what is left of the hosts' rails.
 *
 * The steps are those of allreduce_direct.c; only who owns how much differs. Four ranks on hosts of
 * their own, rank 3 has lost a quarter of its rate; shares 0.3 0.3 0.3 0.1 (shares.c); what each
 * rank sends and takes in, as parts of the vector:
 *
 *            contributions out  results out   contributions in  results in   in all, each way
 *   rank 0   0.7                0.9           0.9               0.7          1.6
 *   rank 1   0.7                0.9           0.9               0.7          1.6
 *   rank 2   0.7                0.9           0.9               0.7          1.6
 *   rank 3   0.9                0.3           0.3               0.9          1.2 = 0.75 x 1.6
 *
 * Rank 3 mostly sends contributions and takes in results: only because both overlap, segment by
 * segment, are both directions of its rails busy all the time. All end together, at the bound
 * max( 1 / min B, 2 (n - 1) / sum B ).
 *
 * Source: compare "Don't Let a Few Network Failures Slow the Entire AllReduce", arXiv 2606.01680.
 * Deviation: direct exchange in canonical order.
 */
#include "r2_config.h"

#include "plan/algorithm.h"
#include "plan/forecast.h"

static r2_status_t r2_weighted_layout(const r2_plan_input_t *input, r2_layout_t *layout_p)
{
    r2_classes_t classes;
    r2_shares_t solved = {.weight = NULL};
    const r2_shares_t *shares = &solved;
    r2_status_t status = r2_classes_init(&classes, input->topology, R2_MEMBERS_RANKS);

    if (R2_OK != status) {
        return status;
    }
    if (NULL != input->estimate) {
        shares = &input->estimate->shares;
    } else {
        status = r2_shares_solve(&solved, &classes);
    }
    if (R2_OK == status) {
        status = r2_shares_are_equal(shares, &classes)
                     ? r2_layout_shares(layout_p, input->size, input->count, input->element_bytes)
                     : r2_shares_layout(shares, input->topology, input->count, input->element_bytes,
                                        layout_p);
    }
    r2_shares_fini(&solved);
    r2_classes_fini(&classes);
    return status;
}

static r2_status_t r2_allreduce_weighted_build(const r2_plan_input_t *input,
                                               r2_schedule_t *schedule)
{
    r2_layout_t shares;
    r2_status_t status;

    if (NULL == input->topology) {
        return r2_allreduce_direct.build(input, schedule);
    }
    status = r2_weighted_layout(input, &shares);
    if (R2_OK != status) {
        return status;
    }
    /* ranks that know different maps must not mix: who owns what is part of the plan */
    for (int32_t r = 0; r < input->size; ++r) {
        schedule->digest = r2_digest_fold(schedule->digest, r2_layout_bytes(&shares, r));
    }
    status = r2_build_allreduce_shares(input, schedule, &shares,
                                       r2_segment_bytes_exchanged(input, shares.largest_bytes));
    r2_layout_fini(&shares);
    return status;
}

static r2_status_t r2_allreduce_weighted_forecast(const r2_forecast_input_t *of,
                                                  r2_prediction_t *prediction_p)
{
    r2_shares_t shares;
    r2_status_t status = r2_shares_solve(&shares, &of->ranks);

    if (R2_OK == status) {
        prediction_p->ns = r2_cost_exchange_ns(&of->ranks, &shares, &of->params, of->bytes);
        r2_shares_fini(&shares);
    }
    return status;
}

const r2_algorithm_t r2_allreduce_weighted = {.name = "weighted",
                                              .build = r2_allreduce_weighted_build,
                                              .weighed = 2,
                                              .forecast = r2_allreduce_weighted_forecast};
