/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Recursive decomposition: a ring of all hosts at the pace of the slowest, a ring without those,
 * one without the next slowest, and so on, each for a part of the vector.
 *
 * Four ranks on hosts of their own, rank 2 has lost a quarter of its rate, rank 3 a half. What each
 * rank sends and takes in, as parts of the vector of 1, with Y1 + Y2 + Y3 = 1 (tiers.c):
 *
 *            ring 1: 0 1 2 3   ring 2: 0 1 2                ring 3: 0 1
 *   rank 0   3/2 Y1            4/3 Y2, rank 3's: 1/3 Y2     Y3, those of ranks 2 and 3: Y3
 *   rank 1   3/2 Y1            4/3 Y2, rank 3's: 1/3 Y2     Y3, those of ranks 2 and 3: Y3
 *   rank 2   3/2 Y1            4/3 Y2, rank 3's: 1/3 Y2     hands in and gets Y3
 *   rank 3   3/2 Y1            hands in and gets Y2         hands in and gets Y3
 *
 * A host outside of a ring, its folded host, hands every share's contribution to where the share
 * ends and gets the result from there (allreduce_ring.c). All rings run at the same time: all hosts
 * have the traffic that they keep up with until the bound max( 1 / min B, 2 (n - 1) / sum B ).
 *
 * Every share is summed in an order of its own, folded hosts last, and the orders follow the rates.
 *
 * Source: recursive decomposition, section 6 of the R2CCL paper. Deviations: results go to folded
 * hosts directly and at once, where the paper has a broadcast for each tier after those of the
 * faster ones; parts by closed form.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include <stdlib.h>

#include "base/util.h"
#include "plan/forecast.h"
#include "plan/order.h"
#include "plan/ring.h"
#include "plan/tiers.h"

/** While rings are added. */
typedef struct recursion {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    r2_tiers_t tiers;
    r2_layout_t parts; /* of the vector, by tier */
    int32_t *order;    /* owned; ranks by place in the circle; behind it: ring, then folded hosts */
} recursion_t;

/** The ring of one tier. */
static r2_status_t r2_add_tier(recursion_t *r, uint32_t tier, uint32_t *tag)
{
    const r2_plan_input_t *input = r->input;
    int32_t *ring = r->order + input->size;
    int32_t *folded = ring + r->tiers.tiers[tier].rank_count;
    r2_ring_part_t part = {
        .order = ring,
        .place = -1,
        .folded = folded,
        .first = r->parts.start[tier] / input->element_bytes,
        .count = r2_layout_bytes(&r->parts, (int32_t) tier) / input->element_bytes,
        .tag_first = *tag,
        .scratch_bytes = input->scratch_bytes / r->tiers.count / R2_SLOT_ALIGN * R2_SLOT_ALIGN};
    uint32_t tags = 0;
    r2_status_t status;

    if (0 == part.count) {
        return R2_OK;
    }
    for (int32_t i = 0; i < input->size; ++i) {
        const int32_t rank = r->order[i];

        if (r->tiers.tier_of[input->topology->host_of[rank]] < tier) {
            folded[part.folded_count++] = rank;
            continue;
        }
        part.place = rank == input->rank ? part.size : part.place;
        ring[part.size++] = rank;
    }
    status = r2_ring_add(input, r->schedule, &part, &tags);
    *tag += tags;
    return status;
}

/** Who is in which ring for how much is part of the plan. */
static void r2_fold_digest(recursion_t *r)
{
    uint32_t *digest = &r->schedule->digest;

    for (int32_t i = 0; i < r->input->size; ++i) {
        const uint32_t tier = r->tiers.tier_of[r->input->topology->host_of[r->order[i]]];

        *digest = r2_digest_fold(*digest, (uint64_t) tier << 32 | (uint64_t) r->order[i]);
    }
    for (uint32_t k = 0; k < r->tiers.count; ++k) {
        *digest = r2_digest_fold(*digest, r2_layout_bytes(&r->parts, (int32_t) k));
    }
}

static r2_status_t r2_add_tiers(recursion_t *r)
{
    const r2_plan_input_t *input = r->input;
    uint64_t weights[R2_TIERS_MAX];
    uint32_t tag = 0;
    r2_status_t status;

    for (uint32_t k = 0; k < r->tiers.count; ++k) {
        weights[k] = r->tiers.tiers[k].weight;
    }
    status = r2_layout_weighted(&r->parts, (int32_t) r->tiers.count, weights, input->count,
                                input->element_bytes);
    if (R2_OK != status) {
        return status;
    }
    r2_fold_digest(r);
    for (uint32_t k = 0; R2_OK == status && k < r->tiers.count; ++k) {
        status = r2_add_tier(r, k, &tag);
    }
    r2_layout_fini(&r->parts);
    return status;
}

static uint64_t r2_allreduce_recursive_scratch(const r2_plan_input_t *input)
{
    return R2_TIERS_MAX * r2_round_up(input->element_bytes, R2_SLOT_ALIGN);
}

static r2_status_t r2_allreduce_recursive_build(const r2_plan_input_t *input,
                                                r2_schedule_t *schedule)
{
    recursion_t r = {.input = input, .schedule = schedule};
    r2_status_t status;

    if (NULL == input->topology) {
        return r2_allreduce_ring.build(input, schedule);
    }
    status = r2_tiers_of(&r.tiers, input->topology);
    if (R2_OK != status) {
        return status;
    }
    r.order = malloc(2 * (size_t) input->size * sizeof(*r.order));
    status =
        NULL == r.order ? R2_ERR_NO_MEMORY : r2_order_ring(input->topology, input->size, r.order);
    if (R2_OK == status) {
        status = r2_add_tiers(&r);
    }
    free(r.order);
    r2_tiers_fini(&r.tiers);
    return status;
}

static r2_status_t r2_allreduce_recursive_forecast(const r2_forecast_input_t *of,
                                                   r2_prediction_t *prediction_p)
{
    r2_tiers_t tiers = {.tier_of = NULL};
    r2_status_t status = r2_tiers_init(&tiers, of->topology, &of->hosts);

    if (R2_OK == status) {
        status = r2_tiers_cost_ns(&tiers, of->topology, &of->hosts, of->order, &of->params,
                                  of->bytes, &prediction_p->ns);
    }
    r2_tiers_fini(&tiers);
    return status;
}

const r2_algorithm_t r2_allreduce_recursive = {.name = "recursive",
                                               .build = r2_allreduce_recursive_build,
                                               .needs = R2_NEEDS_FREE_ORDER,
                                               .scratch = r2_allreduce_recursive_scratch,
                                               .weighed = 4,
                                               .forecast = r2_allreduce_recursive_forecast};
