/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Allreduce around a ring, pipelined: for commutative operations whose order is free.
 *
 * Three ranks, shares 0 1 2; each rank sends to the next and receives from the one before. In the
 * first n - 1 steps shares are reduced on their way, in the last n - 1 results go round:
 *
 *            step 0            step 1            step 2         step 3
 *   rank 0   2 ->, reduces 1   1 ->, reduces 0   0 ->, gets 2   2 ->, gets 1
 *   rank 1   0 ->, reduces 2   2 ->, reduces 1   1 ->, gets 0   0 ->, gets 2
 *   rank 2   1 ->, reduces 0   0 ->, reduces 2   2 ->, gets 1   1 ->, gets 0
 *
 * Share b is summed in the order b + 1, b + 2, ..., b around the circle: the tree differs from
 * share to share, but all ranks get the same bits, because each share is reduced once. Shares are
 * cut into segments, each a ring of its own, so that steps overlap.
 *
 * With a topology the circle follows the rails (order.c), unless that may change bits; the above
 * holds for places in the circle.
 *
 * Source: P. Patarasuk, X. Yuan, "Bandwidth Optimal All-reduce Algorithms for Clusters of
 * Workstations", J. Parallel Distrib. Comput. 69(2), 2009. Deviation: segments.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include <stdlib.h>

#include "plan/forecast.h"
#include "plan/order.h"
#include "plan/ring.h"
#include "plan/thresholds.h"

static r2_status_t r2_allreduce_ring_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    int32_t *order = malloc((size_t) input->size * sizeof(*order));
    r2_ring_part_t part = {.order = order,
                           .size = input->size,
                           .count = input->count,
                           .scratch_bytes = input->scratch_bytes};
    uint32_t tags;
    r2_status_t status;

    if (NULL == order) {
        return R2_ERR_NO_MEMORY;
    }
    /* a circle that follows the rails sums in another order: bits would change with the map */
    status = r2_order_ring(input->reproducible && !input->exact ? NULL : input->topology,
                           input->size, order);
    for (int32_t i = 0; R2_OK == status && i < input->size; ++i) {
        if (order[i] == input->rank) {
            part.place = i;
        }
        /* another circle than that of ranks is part of the plan: all must mean the same one */
        if (order[i] != i) {
            schedule->digest =
                r2_digest_fold(schedule->digest, (uint64_t) i << 32 | (uint64_t) order[i]);
        }
    }
    status = R2_OK == status ? r2_ring_add(input, schedule, &part, &tags) : status;
    free(order);
    return status;
}

static r2_status_t r2_allreduce_ring_forecast(const r2_forecast_input_t *of,
                                              r2_prediction_t *prediction_p)
{
    prediction_p->ns = r2_cost_ring_ns(of->topology, of->order, &of->params, of->bytes);
    return R2_OK;
}

const r2_algorithm_t r2_allreduce_ring = {.name = "ring",
                                          .build = r2_allreduce_ring_build,
                                          .needs = R2_NEEDS_FREE_ORDER,
                                          .pays = r2_ring_pays,
                                          .weighed = 3,
                                          .forecast = r2_allreduce_ring_forecast,
                                          .shape = r2_cost_direct_shape};
