/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Broadcast down a binomial tree: for short messages.
 *
 * Six ranks on hosts of their own, root 0 (else ranks are counted from the root, around the
 * circle):
 *
 *            step 0    step 1    step 2
 *   rank 0   -> 4      -> 2      -> 1
 *   rank 1                       0 ->
 *   rank 2             0 ->      -> 3
 *   rank 3                       2 ->
 *   rank 4   0 ->                -> 5
 *   rank 5                       4 ->
 *
 * The parent of a rank is the rank without its lowest set bit. The deepest subtree is served first.
 * Where hosts have several ranks, hosts are such a tree, and the ranks of each are another one
 * (bcast_levels.c).
 *
 * Source: folklore; see R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005, section 4.2.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include "plan/bcast_levels.h"
#include "plan/layout.h"
#include "plan/thresholds.h"

static uint32_t r2_binomial_parent(uint32_t place)
{
    return place & (place - 1);
}

/** Children are as far up as powers of two below the lowest set bit; the furthest first. */
static uint32_t r2_binomial_next_child(uint32_t place, uint32_t count, uint32_t last)
{
    const uint64_t end = 0 == place ? count : place + (uint64_t) (place & -place);
    uint64_t bit = 1;

    if (last != place) {
        return last - place == 1 ? count : place + (last - place) / 2;
    }
    while (place + 2 * bit < r2_min(end, (uint64_t) count)) {
        bit *= 2;
    }
    return place + bit < end ? (uint32_t) r2_min(place + bit, (uint64_t) count) : count;
}

static r2_status_t r2_bcast_binomial_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    const r2_tree_shape_t binomial = {.parent = r2_binomial_parent,
                                      .next_child = r2_binomial_next_child};

    return r2_bcast_levels_build(input, schedule, &binomial,
                                 r2_message_bytes(input, input->count * input->element_bytes));
}

/** Messages of the root of so many places. */
static uint32_t r2_binomial_sends(uint32_t count)
{
    uint32_t sends = 0;

    while (sends < 32 && (uint64_t) 1 << sends < count) {
        ++sends;
    }
    return sends;
}

/** The root's rails carry the vector once for each step between hosts, and for `scatter-allgather`
 * those of each host as often as it has ranks. */
static bool r2_bcast_binomial_spares(const r2_plan_input_t *input, uint64_t total_bytes)
{
    const r2_bcast_hosts_t hosts = r2_bcast_hosts(input);
    const uint32_t steps = r2_binomial_sends(hosts.count);

    return r2_bcast_spares(hosts) && steps < hosts.most &&
           total_bytes * (steps + r2_binomial_sends(hosts.most)) <=
               r2_threshold_bcast_hosts_sent_bytes;
}

static bool r2_bcast_binomial_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    return input->size <= 2 ||
           r2_is_short(input, total_bytes, r2_bcast_short_bytes(input),
                       r2_threshold_bcast_short_bytes_per_rank) ||
           r2_bcast_binomial_spares(input, total_bytes);
}

const r2_algorithm_t r2_bcast_binomial = {
    .name = "binomial", .build = r2_bcast_binomial_build, .pays = r2_bcast_binomial_pays};
