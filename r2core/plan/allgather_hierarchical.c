/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Allgather in two levels: between hosts, and within them.
 *
 * Each rank sends its block to the other ranks of its host, and to one rank of every other host,
 * which hands it to the rest there, segment by segment. Who that is, is spread evenly over the
 * ranks of a host. Five ranks, 0 1 on host A, 2 3 on B, 4 on C; (b) is the block of rank b:
 *
 *            between hosts              within
 *   rank 0   (0) -> 2, (0) -> 4         (0) -> 1, then (2) -> 1, (4) -> 1
 *   rank 1   (1) -> 3, (1) -> 4         (1) -> 0, then (3) -> 0
 *   rank 2   (2) -> 0, (2) -> 4         (2) -> 3, then (0) -> 3, (4) -> 3
 *   rank 3   (3) -> 1, (3) -> 4         (3) -> 2, then (1) -> 2
 *   rank 4   (4) -> 0, (4) -> 2
 *
 * So each block crosses to a host once, and not to each of its ranks; all ranks send and receive
 * over the rails. Receives wait for nothing, and what is sent first waits for nothing: no circle of
 * ranks waits for each other.
 *
 * Source: two-level allgather as in Open MPI coll/han. Deviation: every rank takes part in the
 * exchange between hosts.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include "plan/by_host.h"
#include "plan/layout.h"
#include "plan/ops.h"
#include "plan/thresholds.h"

typedef struct levels {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    r2_by_host_t by;
    r2_layout_t blocks;
    uint64_t segment_bytes;
    uint32_t segments; /* of the longest block */
    uint32_t host;     /* of this rank */
} levels_t;

static r2_msg_t r2_levels_msg(const levels_t *l, int32_t peer, int32_t block, uint32_t k)
{
    return (r2_msg_t){
        .peer = peer,
        .tag = (uint32_t) block * l->segments + k,
        .order = k,
        .bytes = r2_segment_length(r2_layout_bytes(&l->blocks, block), l->segment_bytes, k)};
}

static r2_region_t r2_levels_place(const levels_t *l, int32_t block, uint32_t k)
{
    return r2_at(R2_BUF_OUT, r2_layout_place(&l->blocks, l->input, block) + k * l->segment_bytes);
}

/** Sends a segment to the other ranks of this host, the next one first. */
static void r2_levels_hand_out(const levels_t *l, int32_t block, r2_region_t from, uint32_t arrived,
                               uint32_t k)
{
    const uint32_t count = r2_by_host_count(&l->by, l->host);
    const uint32_t first = l->by.first[l->host];
    uint32_t own = 0;

    while (l->by.ranks[first + own] != l->input->rank) {
        ++own;
    }
    for (uint32_t i = 1; i < count; ++i) {
        r2_add_send(l->schedule, r2_levels_msg(l, l->by.ranks[first + (own + i) % count], block, k),
                    from, R2_AFTER(arrived));
    }
}

/** Segment k of this rank's block. What goes to other hosts goes first: it takes longer. */
static void r2_levels_own(const levels_t *l, uint32_t place, uint32_t k)
{
    const r2_plan_input_t *input = l->input;
    const uint32_t hosts = input->topology->host_count;
    const uint32_t pieces = r2_by_host_count(&l->by, l->host);
    const r2_region_t own = input->in_place ? r2_levels_place(l, input->rank, k)
                                            : r2_at(R2_BUF_IN, k * l->segment_bytes);

    for (uint32_t step = 1; step < hosts; ++step) {
        const int32_t peer = r2_by_host_handler(&l->by, (l->host + step) % hosts, place, pieces);

        r2_add_send(l->schedule, r2_levels_msg(l, peer, input->rank, k), own, R2_AT_ONCE);
    }
    r2_levels_hand_out(l, input->rank, own, R2_OP_NONE, k);
}

/** Segment k of the block of another rank, which is the so manieth on its host. */
static void r2_levels_other(const levels_t *l, uint32_t host, uint32_t place, uint32_t k)
{
    const int32_t block = l->by.ranks[l->by.first[host] + place];
    const int32_t gets = host == l->host ? block
                                         : r2_by_host_handler(&l->by, l->host, place,
                                                              r2_by_host_count(&l->by, host));
    const bool hands_out = gets == l->input->rank;
    const r2_region_t at = r2_levels_place(l, block, k);
    const uint32_t arrived = r2_add_recv(
        l->schedule, r2_levels_msg(l, hands_out ? block : gets, block, k), at, R2_AT_ONCE);

    if (hands_out) {
        r2_levels_hand_out(l, block, at, arrived, k);
    }
}

/** Segment k of all blocks: this rank's own first, then hosts in the order in which they come. */
static void r2_levels_segment(const levels_t *l, uint32_t k)
{
    const uint32_t hosts = l->input->topology->host_count;

    for (uint32_t step = 0; step < hosts; ++step) {
        const uint32_t host = (l->host + hosts - step) % hosts;

        for (uint32_t place = 0; place < r2_by_host_count(&l->by, host); ++place) {
            if (l->by.ranks[l->by.first[host] + place] == l->input->rank) {
                r2_levels_own(l, place, k);
            }
        }
        for (uint32_t place = 0; place < r2_by_host_count(&l->by, host); ++place) {
            if (l->by.ranks[l->by.first[host] + place] != l->input->rank) {
                r2_levels_other(l, host, place, k);
            }
        }
    }
}

/** Halves of blocks that are not long are copied when sent, and nobody waits for them. */
static bool r2_levels_mind_crowds(const r2_plan_input_t *input, uint64_t largest_bytes)
{
    return !r2_cost_is_slow(&input->cost) && largest_bytes > 2 * input->copy_max_bytes;
}

/** Where ranks wait for processors, each segment is a turn of two of them. */
static uint64_t r2_levels_segment_bytes(const r2_plan_input_t *input, uint64_t largest_bytes)
{
    return r2_levels_mind_crowds(input, largest_bytes) &&
                   r2_cost_is_crowded(&input->cost, R2_CROWDED_ALLGATHER,
                                      r2_input_total_bytes(input))
               ? r2_segment_bytes_crowded(input, largest_bytes)
               : r2_segment_bytes_passed_on(input, largest_bytes);
}

static r2_status_t r2_allgather_hierarchical_build(const r2_plan_input_t *input,
                                                   r2_schedule_t *schedule)
{
    levels_t l = {.input = input, .schedule = schedule};
    r2_status_t status = r2_by_host_init(&l.by, input->topology);

    status = R2_OK == status ? r2_layout_blocks(&l.blocks, input) : status;
    if (R2_OK == status) {
        l.host = input->topology->host_of[input->rank];
        l.segment_bytes = r2_levels_segment_bytes(input, l.blocks.largest_bytes);
        l.segments = r2_segment_count(l.blocks.largest_bytes, l.segment_bytes);
        schedule->minds_crowds = r2_levels_mind_crowds(input, l.blocks.largest_bytes);
        r2_plan_note_message(schedule, l.segment_bytes);
        for (uint32_t k = 0; k < l.segments; ++k) {
            r2_levels_segment(&l, k);
        }
        if (!input->in_place) {
            r2_add_copy(schedule, r2_at(R2_BUF_IN, 0), r2_levels_place(&l, input->rank, 0),
                        r2_layout_bytes(&l.blocks, input->rank), R2_AT_ONCE);
        }
    }
    r2_layout_fini(&l.blocks);
    r2_by_host_fini(&l.by);
    return status;
}

static bool r2_allgather_hierarchical_fits(const r2_plan_input_t *input)
{
    return NULL != input->topology;
}

/** A rank of the host with most of them: its own block, and those of which it is the handler. */
static r2_cost_shape_t r2_allgather_hierarchical_shape(const r2_topology_t *topology,
                                                       const r2_topology_placement_t *placement)
{
    const uint64_t ranks = (uint64_t) topology->rank_count, hosts = topology->host_count;
    const uint64_t most = (uint64_t) placement->most;

    return (r2_cost_shape_t){.steps = 1,
                             .messages = hosts - 1,
                             .local_steps = 1,
                             .local_messages = (most - 1) * ((ranks + most - 1) / most),
                             .part = r2_max(most * (hosts - 1),
                                            ranks - (uint64_t) placement->least),
                             .whole = ranks};
}

/** @return bytes that do not cross the rails of a host, on average of blocks. */
static uint64_t r2_levels_spared(const r2_topology_t *topology, uint64_t total_bytes)
{
    r2_topology_placement_t placement;

    if (R2_OK != r2_topology_placement(topology, &placement)) {
        return 0;
    }
    return (placement.pairs - (uint64_t) placement.most * (topology->host_count - 1)) *
           (total_bytes / (uint64_t) topology->rank_count);
}

/** Blocks are short, or rails slower than what hands on within hosts. */
static bool r2_levels_suit(const r2_plan_input_t *input, uint64_t block_bytes)
{
    r2_topology_placement_t placement;
    uint64_t rate_mbytes_per_s = r2_slowest_mbytes_per_s(input);

    if (block_bytes <= r2_threshold_allgather_levels_block_bytes) {
        return true;
    }
    rate_mbytes_per_s /= r2_cost_is_slow(&input->cost) ? R2_COST_SLOW : 1;
    return R2_OK == r2_topology_placement(input->topology, &placement) &&
           rate_mbytes_per_s <=
               (uint64_t) placement.most * r2_threshold_allgather_levels_mbytes_per_s;
}

/** Within hosts and between them, if that is less work. A ring is one where rails are few. */
static bool r2_allgather_hierarchical_beats(const r2_plan_input_t *input, uint64_t total_bytes,
                                            const r2_algorithm_t *usual)
{
    return NULL != input->topology && NULL != usual->shape &&
           r2_levels_suit(input, total_bytes / (uint64_t) input->size) &&
           r2_levels_spared(input->topology, total_bytes) > r2_threshold_allgather_spared_bytes &&
           r2_cost_levels_pay(input->topology, total_bytes, r2_allgather_hierarchical_shape,
                              usual->shape);
}

const r2_algorithm_t r2_allgather_hierarchical = {.name = "hierarchical",
                                                  .build = r2_allgather_hierarchical_build,
                                                  .fits = r2_allgather_hierarchical_fits,
                                                  .beats = r2_allgather_hierarchical_beats};
