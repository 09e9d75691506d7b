/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Broadcast from the root to all by itself: for short messages on few hosts.
 *
 * Three ranks on hosts of their own, root 1; each op of the table starts at once:
 *
 *   rank 0   receives from 1
 *   rank 1   -> 2, 0
 *   rank 2   receives from 1
 *
 * Nobody waits for a rank between, which may not be there yet, or have no core. Where hosts have
 * several ranks, one of each host gets it from the root and gives it to the others: the root sends
 * as many messages as there are hosts, not ranks (bcast_levels.c).
 *
 * Source: folklore (linear broadcast).
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include "plan/bcast_levels.h"
#include "plan/layout.h"
#include "plan/thresholds.h"

static uint32_t r2_linear_parent(uint32_t place)
{
    (void) place;
    return 0;
}

static uint32_t r2_linear_next_child(uint32_t place, uint32_t count, uint32_t last)
{
    return 0 == place ? last + 1 : count;
}

static r2_status_t r2_bcast_linear_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    const r2_tree_shape_t linear = {.parent = r2_linear_parent, .next_child = r2_linear_next_child};

    return r2_bcast_levels_build(input, schedule, &linear,
                                 r2_message_bytes(input, input->count * input->element_bytes));
}

/** Messages that the busiest rank sends at most. */
static uint64_t r2_bcast_linear_sends(const r2_plan_input_t *input)
{
    const r2_bcast_hosts_t hosts = r2_bcast_hosts(input);

    return r2_bcast_spares(hosts) ? (uint64_t) hosts.count - 1 + hosts.most - 1
                                  : (uint64_t) input->size - 1;
}

static bool r2_bcast_linear_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    return 2 < input->size && r2_linear_pays(input, total_bytes, r2_bcast_linear_sends(input));
}

const r2_algorithm_t r2_bcast_linear = {
    .name = "linear", .build = r2_bcast_linear_build, .pays = r2_bcast_linear_pays};
