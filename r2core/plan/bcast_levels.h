/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Broadcast in two levels: down a tree of hosts, and down one of ranks within each.
 */
#ifndef R2_PLAN_BCAST_LEVELS_H
#define R2_PLAN_BCAST_LEVELS_H

#include "r2/planner.h"

/** A shape of tree over places 0 .. count - 1; place 0 is the root. */
typedef struct r2_tree_shape {
    uint32_t (*parent)(uint32_t place); /* of any other place */
    /* The children one after the other: the first one behind `last`, or behind none if that is the
     * place itself. @return `count` or more: there is none left. */
    uint32_t (*next_child)(uint32_t place, uint32_t count, uint32_t last);
    bool long_messages; /* two levels also where they spare one message */
} r2_tree_shape_t;

/** Where the ranks of a broadcast are. */
typedef struct r2_bcast_hosts {
    uint32_t count, most; /* hosts, and ranks on one of them */
} r2_bcast_hosts_t;

/** No topology: each rank has a host of its own. */
r2_bcast_hosts_t r2_bcast_hosts(const r2_plan_input_t *input);

/** Up to this length steps take longer than bytes: half of what the rails of the slowest host are
 * told to carry in 30 us, at least bcast_short_bytes (thresholds.def). */
uint64_t r2_bcast_short_bytes(const r2_plan_input_t *input);

/**
 * Do ranks wait for processors and not for rails, so that the fewest messages are the fastest,
 * whoever handles them? Looks at what ranks agree on and rails tell, not at health.
 * @param total_bytes, messages as below.
 */
bool r2_crowded_pays(const r2_plan_input_t *input, uint64_t total_bytes, uint64_t messages);

/**
 * Had the root better handle all messages by itself, in one step?
 * @param total_bytes of the vector, whole in each message. @param messages of the root.
 */
bool r2_linear_pays(const r2_plan_input_t *input, uint64_t total_bytes, uint64_t messages);

/**
 * What all ranks would send one another goes through the first ranks of hosts: true if that spares
 * a host messages enough, and most hosts have some to spare.
 */
bool r2_first_ranks_pay(const r2_plan_input_t *input);

/** Two levels spare the root's rails several messages, which pays for the step within hosts. */
static inline bool r2_bcast_spares(r2_bcast_hosts_t hosts)
{
    return (uint64_t) (hosts.count - 1) * (hosts.most - 1) > 1;
}

/**
 * Adds the ops of one rank. Hosts are places of one tree, in the order of the ring (order.c) from
 * the root's host on; the ranks of each host are places of another. The first rank of a host, on
 * the root's host the root, is in both: all bytes cross to a host once. Where that spares no more
 * than one message, which is not long, each rank counts as a host.
 * @param part_bytes parts go one by one, each as soon as it has arrived.
 * @return R2_OK or R2_ERR_NO_MEMORY.
 */
r2_status_t r2_bcast_levels_build(const r2_plan_input_t *input, r2_schedule_t *schedule,
                                  const r2_tree_shape_t *shape, uint64_t part_bytes);

#endif
