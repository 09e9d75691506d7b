/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Allgather(v) by direct exchange: every rank sends its block to every other.
 *
 * Three ranks; each op of the table starts at once:
 *
 *   rank 0   block 0 -> 1, 2    receives 2 from 2, 1 from 1
 *   rank 1   block 1 -> 2, 0    receives 0 from 0, 2 from 2
 *   rank 2   block 2 -> 0, 1    receives 1 from 1, 0 from 0
 *
 * A message is as long as a block, or as messages may be: links cut it into chunks, and no op waits
 * for another, so there is nothing to pipeline. Peers are taken around the circle so that no rank
 * is everybody's first.
 *
 * Source: folklore (linear exchange).
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include "plan/layout.h"
#include "plan/ops.h"

/* Part k of every block: from all, then to all. */
static void r2_direct_part(const r2_plan_input_t *input, r2_schedule_t *schedule,
                           const r2_layout_t *blocks, r2_region_t own, uint64_t part_bytes,
                           uint32_t k)
{
    const uint64_t offset = k * part_bytes;
    const uint64_t own_bytes =
        r2_segment_length(r2_layout_bytes(blocks, input->rank), part_bytes, k);

    for (int32_t step = 1; step < input->size; ++step) {
        int32_t peer = r2_input_peer(input, -step);
        r2_msg_t msg = {.peer = peer,
                        .tag = k,
                        .bytes = r2_segment_length(r2_layout_bytes(blocks, peer), part_bytes, k)};

        r2_add_recv(schedule, msg, r2_at(R2_BUF_OUT, r2_layout_place(blocks, input, peer) + offset),
                    R2_AT_ONCE);
    }
    for (int32_t step = 1; step < input->size; ++step) {
        r2_msg_t msg = {.peer = r2_input_peer(input, step), .tag = k, .bytes = own_bytes};

        r2_add_send(schedule, msg, r2_at(own.buf, own.offset_bytes + offset), R2_AT_ONCE);
    }
}

static r2_status_t r2_allgather_direct_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    r2_layout_t blocks;
    r2_region_t own;
    uint64_t part_bytes;
    r2_status_t status = r2_layout_blocks(&blocks, input);

    if (R2_OK != status) {
        return status;
    }
    part_bytes = r2_message_bytes(input, blocks.largest_bytes);
    r2_plan_note_message(schedule, part_bytes);
    own = input->in_place ? r2_at(R2_BUF_OUT, r2_layout_place(&blocks, input, input->rank))
                          : r2_at(R2_BUF_IN, 0);
    for (uint32_t k = 0; k < r2_segment_count(blocks.largest_bytes, part_bytes); ++k) {
        r2_direct_part(input, schedule, &blocks, own, part_bytes, k);
    }
    if (!input->in_place) {
        r2_add_copy(schedule, own, r2_at(R2_BUF_OUT, r2_layout_place(&blocks, input, input->rank)),
                    r2_layout_bytes(&blocks, input->rank), R2_AT_ONCE);
    }
    r2_layout_fini(&blocks);
    return R2_OK;
}

static r2_cost_shape_t r2_allgather_direct_shape(const r2_topology_t *topology,
                                                 const r2_topology_placement_t *placement)
{
    r2_cost_shape_t shape = r2_cost_exchange_shape(topology, placement);

    shape.whole = (uint64_t) topology->rank_count; /* each sends its block, not the vector */
    return shape;
}

const r2_algorithm_t r2_allgather_direct = {.name = "direct",
                                            .instead = R2_INSTEAD("direct"),
                                            .build = r2_allgather_direct_build,
                                            .shape = r2_allgather_direct_shape};
