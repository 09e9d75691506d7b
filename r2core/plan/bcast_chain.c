/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Broadcast down a chain, pipelined: for long messages where hosts have several ranks.
 *
 * The vector is cut into segments, which every rank passes on to the next one as they arrive. Four
 * ranks on hosts of their own, root 1, segments a b c:
 *
 *   rank 1   -> 2   a b c
 *   rank 2   -> 3     a b c
 *   rank 3   -> 0       a b c
 *   rank 0                a b c
 *
 * Where hosts have several ranks, the first of each is in the chain of hosts, and another chain
 * goes from it through the others (bcast_levels.c). Hosts stand in an order in which neighbours
 * share rails.
 *
 * Every host takes in the vector once and sends it once: the least there is, as with
 * `scatter-allgather`. But messages are longer, and a rank has two peers instead of n - 1. The
 * price is a segment's time for each host but two.
 *
 * Source: folklore (pipelined linear tree); see J. Pjesivac-Grbovic et al., "Performance Analysis
 * of MPI Collective Operations", Cluster Computing 10(2), 2007. Deviation: two levels.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include "plan/bcast_levels.h"
#include "plan/layout.h"
#include "plan/thresholds.h"

/* Shortest chunks of a message at most, but for long vectors. */
#define R2_CHAIN_CHUNKS 4u

static uint32_t r2_chain_parent(uint32_t place)
{
    return place - 1;
}

static uint32_t r2_chain_next_child(uint32_t place, uint32_t count, uint32_t last)
{
    return last == place ? place + 1 : count;
}

/** Messages that go one after the other from the root to the last rank, less one; within a host,
 * where no network is, two count for one. */
static uint64_t r2_chain_hops(r2_bcast_hosts_t hosts)
{
    return r2_max(hosts.count - 1 + (hosts.most - 1) / 2, 2u) - 1;
}

/*
 * Not the shortest for vectors that are short themselves, and no longer than a few chunks of slow
 * rails: a message may go whole by one of them. What is packed goes on whole, so no more than half
 * of the time is that of hops.
 */
static uint64_t r2_chain_part_bytes(const r2_plan_input_t *input)
{
    const uint64_t bytes = input->count * input->element_bytes;
    const uint64_t half = bytes / (2 * r2_chain_hops(r2_bcast_hosts(input)));

    const uint64_t worth = r2_max(r2_segment_worth_bytes(input), input->chunk_min_bytes);

    return r2_max(r2_max(r2_min(half, R2_CHAIN_CHUNKS * worth), r2_min(worth, bytes)),
                  r2_segment_bytes(input, bytes, 1));
}

static r2_status_t r2_bcast_chain_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    const r2_tree_shape_t chain = {
        .parent = r2_chain_parent, .next_child = r2_chain_next_child, .long_messages = true};

    return r2_bcast_levels_build(input, schedule, &chain, r2_chain_part_bytes(input));
}

/* `scatter-allgather` sends over the rails of a host what each of its ranks gets. Where most have
 * one, both take the vector in once, and a chain has its steps besides. */
static bool r2_bcast_chain_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    const r2_bcast_hosts_t hosts = r2_bcast_hosts(input);

    return hosts.count > 1 && (uint64_t) input->size >= 2 * (uint64_t) hosts.count &&
           total_bytes * hosts.most > r2_chain_hops(hosts) * r2_threshold_bcast_chain_hop_bytes;
}

const r2_algorithm_t r2_bcast_chain = {
    .name = "chain", .build = r2_bcast_chain_build, .pays = r2_bcast_chain_pays};
