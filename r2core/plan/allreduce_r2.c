/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * R2-AllReduce: a ring of all ranks for a part of the vector, a ring without the slowest for the
 * rest.
 *
 * Four ranks, rank 3 has lost part of its rate. A share 1 - Y goes round all of them; Y goes round
 * 0 1 2, and rank 3 hands its contribution to where each share of Y ends, and gets the result
 * there:
 *
 *            part 1 - Y         part Y, shares a b c
 *   rank 0   ring 0 1 2 3       ring 0 1 2, ends a with rank 3's, a -> 3
 *   rank 1   ring 0 1 2 3       ring 0 1 2, ends b with rank 3's, b -> 3
 *   rank 2   ring 0 1 2 3       ring 0 1 2, ends c with rank 3's, c -> 3
 *   rank 3   ring 0 1 2 3       a -> 0, b -> 1, c -> 2; gets a b c
 *
 * With X the lost part of the rate and one rank per host,
 *     Y = X + X (1 - X) / (X + (n - 2) n)   if X >= n / (3 n - 2), else 0: a plain ring.
 *
 * Source: R2-AllReduce, section 5.2 of the R2CCL paper. Deviations: the slowest rank's own
 * contribution to Y is reduced, too; results go to it directly; both parts run at once.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include <stdlib.h>

#include "base/util.h"
#include "plan/order.h"
#include "plan/ring.h"

#define R2_PPM 1000000u

/** The rank with the lowest rate, and the part of the highest that it lacks. */
static int32_t r2_slowest_rank(const r2_topology_t *topology, uint64_t *lost_ppm_p)
{
    uint64_t lowest = UINT64_MAX, highest = 1;
    int32_t slowest = 0;

    for (int32_t r = 0; r < topology->rank_count; ++r) {
        const uint64_t rate = r2_topology_host_rate(topology, topology->host_of[r]);

        highest = r2_max(highest, rate);
        if (rate < lowest) {
            lowest = rate;
            slowest = r;
        }
    }
    *lost_ppm_p = R2_PPM - (uint64_t) ((unsigned __int128) lowest * R2_PPM / highest);
    return slowest;
}

uint64_t r2_allreduce_r2_share_ppm(uint64_t lost_ppm, int32_t size)
{
    const uint64_t n = (uint64_t) size, x = lost_ppm;

    if (size < 3 || x * (3 * n - 2) < n * R2_PPM) {
        return 0;
    }
    return r2_min(x + x * (R2_PPM - x) / (x + (n - 2) * n * R2_PPM), R2_PPM);
}

/** @return tags that it uses. */
static uint32_t r2_add_part(const r2_plan_input_t *input, r2_schedule_t *schedule,
                            r2_ring_part_t *part, r2_status_t *status)
{
    uint32_t tags = 0;

    for (int32_t i = 0; i < part->size; ++i) {
        if (part->order[i] == input->rank) {
            part->place = i;
        }
    }
    if (R2_OK == *status && 0 < part->count) {
        *status = r2_ring_add(input, schedule, part, &tags);
    }
    return tags;
}

static r2_status_t r2_allreduce_r2_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    const uint64_t half = input->scratch_bytes / 2 / R2_SLOT_ALIGN * R2_SLOT_ALIGN;
    int32_t *order = malloc(2 * (size_t) input->size * sizeof(*order));
    r2_ring_part_t all = {.order = order, .size = input->size, .scratch_bytes = half};
    r2_ring_part_t rest = {.place = -1, .folded_count = 1, .scratch_bytes = half};
    uint64_t lost_ppm, share;
    r2_status_t status;
    int32_t at = 0, slowest;

    if (NULL == order) {
        return R2_ERR_NO_MEMORY;
    }
    slowest = r2_slowest_rank(input->topology, &lost_ppm);
    rest.folded = &slowest;
    share = r2_allreduce_r2_share_ppm(lost_ppm, input->size);
    status = r2_order_ring(input->topology, input->size, order);
    for (int32_t i = 0; R2_OK == status && i < input->size; ++i) {
        schedule->digest = r2_digest_fold(schedule->digest, (uint64_t) order[i]);
        if (order[i] != slowest) {
            order[input->size + at++] = order[i];
        }
    }
    rest.order = order + input->size;
    rest.size = at;
    rest.count = (uint64_t) ((unsigned __int128) input->count * share / R2_PPM);
    all.count = input->count - rest.count;
    rest.first = all.count;
    schedule->digest = r2_digest_fold(schedule->digest, (uint64_t) slowest);
    schedule->digest = r2_digest_fold(schedule->digest, rest.count);
    rest.tag_first = r2_add_part(input, schedule, &all, &status);
    r2_add_part(input, schedule, &rest, &status);
    free(order);
    return status;
}

static bool r2_allreduce_r2_fits(const r2_plan_input_t *input)
{
    return NULL != input->topology && input->topology->host_count == (uint32_t) input->size;
}

const r2_algorithm_t r2_allreduce_r2 = {.name = "r2",
                                        .build = r2_allreduce_r2_build,
                                        .needs = R2_NEEDS_COMMUTATIVE,
                                        .fits = r2_allreduce_r2_fits};
