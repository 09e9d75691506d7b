/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Broadcast in two levels: down a tree of hosts, and down one of ranks within each.
 *
 * Five ranks on three hosts, A 0 1, B 2 3, C 4; root 3. Places of hosts B C A, and of ranks on B
 * 3 2, on A 0 1. With the root of each tree as everybody's parent:
 *
 *            hosts          within
 *   rank 3   -> 4, 0        -> 2
 *   rank 4   gets from 3
 *   rank 0   gets from 3    -> 1
 *   rank 1                  gets from 0
 *   rank 2                  gets from 3
 *
 * Source: two-level broadcast as in Open MPI coll/han.
 */
#include "r2_config.h"

#include "plan/bcast_levels.h"

#include <stdlib.h>

#include "plan/layout.h"
#include "plan/ops.h"
#include "plan/thresholds.h"

/** Ranks by host from the root's on, the root first; and where this rank is among them. */
typedef struct levels {
    int32_t *ranks;  /* owned */
    uint32_t *first; /* owned: [host + 1], into ranks */
    uint32_t hosts;
    uint32_t host, place; /* of this rank: its host, and its place on it */
    bool flat;            /* each rank counts as a host */
} levels_t;

r2_bcast_hosts_t r2_bcast_hosts(const r2_plan_input_t *input)
{
    const r2_topology_t *topology = input->topology;
    const r2_bcast_hosts_t alone = {.count = (uint32_t) input->size, .most = 1};
    r2_topology_placement_t placement;

    if (NULL == topology || (uint32_t) input->size == topology->host_count ||
        R2_OK != r2_topology_placement(topology, &placement)) {
        return alone;
    }
    return (r2_bcast_hosts_t){.count = topology->host_count, .most = (uint32_t) placement.most};
}

bool r2_first_ranks_pay(const r2_plan_input_t *input)
{
    const r2_bcast_hosts_t hosts = r2_bcast_hosts(input);
    const uint64_t ranks = (uint64_t) input->size, most = hosts.most;

    return hosts.count > 1 && ranks >= 2 * (uint64_t) hosts.count &&
           most <= r2_threshold_hosts_ranks &&
           most * (ranks - most) >= r2_threshold_hosts_spared + hosts.count - 1;
}

static uint32_t r2_levels_host_of(const levels_t *levels, const r2_plan_input_t *input,
                                  int32_t rank)
{
    return levels->flat ? (uint32_t) rank : input->topology->host_of[rank];
}

/** @param ring ranks by host. */
static void r2_levels_fill(levels_t *levels, const r2_plan_input_t *input, const int32_t *ring)
{
    const uint32_t root_host = r2_levels_host_of(levels, input, input->root);
    uint32_t begin = 0, count = 0, host = root_host;

    while (r2_levels_host_of(levels, input, ring[begin]) != root_host) {
        ++begin;
    }
    levels->ranks[count++] = input->root;
    levels->first[levels->hosts++] = 0;
    for (uint32_t i = 0; i < (uint32_t) input->size; ++i) {
        const int32_t rank = ring[(begin + i) % (uint32_t) input->size];

        if (r2_levels_host_of(levels, input, rank) != host) {
            host = r2_levels_host_of(levels, input, rank);
            levels->first[levels->hosts++] = count;
        }
        if (rank == input->rank) {
            levels->host = levels->hosts - 1;
            levels->place = rank == input->root ? 0 : count - levels->first[levels->host];
        }
        if (rank != input->root) {
            levels->ranks[count++] = rank;
        }
    }
    levels->first[levels->hosts] = count;
}

static void r2_levels_fini(levels_t *levels)
{
    free(levels->ranks);
    free(levels->first);
}

static r2_status_t r2_levels_init(levels_t *levels, const r2_plan_input_t *input, bool flat)
{
    const size_t size = (size_t) input->size;
    int32_t *ring = malloc(size * sizeof(*ring));
    r2_status_t status = R2_ERR_NO_MEMORY;

    *levels = (levels_t){.flat = flat,
                         .ranks = malloc(size * sizeof(*levels->ranks)),
                         .first = malloc((size + 1) * sizeof(*levels->first))};
    if (NULL != ring && NULL != levels->ranks && NULL != levels->first) {
        status = r2_order_ring(input->topology, input->size, ring);
    }
    if (R2_OK == status) {
        r2_levels_fill(levels, input, ring);
    } else {
        r2_levels_fini(levels);
    }
    free(ring);
    return status;
}

/** Of whom this rank gets all parts. @return false: of nobody. */
static bool r2_levels_parent(const levels_t *levels, const r2_tree_shape_t *shape,
                             int32_t *parent_p)
{
    if (0 == levels->host && 0 == levels->place) {
        return false;
    }
    *parent_p = 0 == levels->place
                    ? levels->ranks[levels->first[shape->parent(levels->host)]]
                    : levels->ranks[levels->first[levels->host] + shape->parent(levels->place)];
    return true;
}

/** One part on its way. What goes to other hosts goes first: it takes longer. */
static void r2_levels_part(const levels_t *levels, const r2_tree_shape_t *shape,
                           r2_schedule_t *schedule, r2_msg_t msg, r2_region_t part)
{
    const uint32_t first = levels->first[levels->host];
    const uint32_t count = levels->first[levels->host + 1] - first;
    const bool enters = 0 == levels->place;
    uint32_t arrived = R2_OP_NONE;

    if (r2_levels_parent(levels, shape, &msg.peer)) {
        arrived = r2_add_recv(schedule, msg, part, R2_AT_ONCE);
    }
    for (uint32_t h = shape->next_child(levels->host, levels->hosts, levels->host);
         enters && h < levels->hosts; h = shape->next_child(levels->host, levels->hosts, h)) {
        msg.peer = levels->ranks[levels->first[h]];
        r2_add_send(schedule, msg, part, R2_AFTER(arrived));
    }
    for (uint32_t i = shape->next_child(levels->place, count, levels->place); i < count;
         i = shape->next_child(levels->place, count, i)) {
        msg.peer = levels->ranks[first + i];
        r2_add_send(schedule, msg, part, R2_AFTER(arrived));
    }
}

uint64_t r2_bcast_short_bytes(const r2_plan_input_t *input)
{
    return r2_max(r2_threshold_bcast_short_bytes, r2_segment_worth_bytes(input) / 2);
}

static uint32_t r2_crowded_shift(r2_coll_kind_t kind)
{
    return R2_COLL_BCAST == kind    ? R2_CROWDED_BCAST
           : R2_COLL_REDUCE == kind ? R2_CROWDED_REDUCE
                                    : R2_CROWDED_ALLREDUCE;
}

/* Longer parts would not be passed on within hosts while they come. */
static uint64_t r2_crowded_most_bytes(const r2_plan_input_t *input)
{
    return R2_COLL_BCAST == input->kind && r2_bcast_hosts(input).most > 1
               ? r2_threshold_crowded_bcast_levels_bytes
               : r2_threshold_crowded_bytes;
}

bool r2_crowded_pays(const r2_plan_input_t *input, uint64_t total_bytes, uint64_t messages)
{
    return r2_cost_is_crowded(&input->cost, r2_crowded_shift(input->kind), total_bytes) &&
           !r2_cost_is_slow(&input->cost) && messages < r2_threshold_bcast_linear_ranks &&
           total_bytes <= r2_crowded_most_bytes(input) &&
           r2_slowest_mbytes_per_s(input) >= messages * r2_threshold_crowded_mbytes_per_s;
}

bool r2_linear_pays(const r2_plan_input_t *input, uint64_t total_bytes, uint64_t messages)
{
    const uint64_t short_bytes = r2_bcast_short_bytes(input);

    return r2_crowded_pays(input, total_bytes, messages) ||
           (total_bytes <= short_bytes && messages < r2_threshold_bcast_linear_ranks &&
            total_bytes * messages <=
                r2_max(r2_threshold_bcast_linear_sent_bytes, 3 * short_bytes));
}

r2_status_t r2_bcast_levels_build(const r2_plan_input_t *input, r2_schedule_t *schedule,
                                  const r2_tree_shape_t *shape, uint64_t part_bytes)
{
    const uint64_t bytes = input->count * input->element_bytes;
    const bool spares = r2_bcast_spares(r2_bcast_hosts(input)) || shape->long_messages;
    levels_t levels;
    r2_status_t status = r2_levels_init(&levels, input, NULL == input->topology || !spares);

    if (R2_OK != status) {
        return status;
    }
    r2_plan_note_message(schedule, part_bytes);
    for (uint32_t k = 0; k < r2_segment_count(bytes, part_bytes); ++k) {
        const r2_msg_t msg = {
            .tag = k, .order = k, .bytes = r2_segment_length(bytes, part_bytes, k)};

        r2_levels_part(&levels, shape, schedule, msg, r2_at(R2_BUF_OUT, k * part_bytes));
    }
    r2_levels_fini(&levels);
    return R2_OK;
}
