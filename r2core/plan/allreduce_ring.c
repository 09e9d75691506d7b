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
 * Source: P. Patarasuk, X. Yuan, "Bandwidth Optimal All-reduce Algorithms for Clusters of
 * Workstations", J. Parallel Distrib. Comput. 69(2), 2009. Deviation: segments.
 */
#include "r2_config.h"

#include "plan/builders.h"

#include <stdlib.h>

#include "base/util.h"
#include "plan/layout.h"
#include "plan/rows.h"

typedef struct ring {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    r2_layout_t shares;
    uint64_t segment_bytes;
    uint32_t segments;   /* of the longest share */
    uint32_t *held;      /* owned; per segment, the row that completed what goes on next */
    uint32_t *sent;      /* owned; per step and segment, the send while reducing */
    uint32_t *slot_free; /* owned; per slot, the reduction that read it last */
    uint32_t slot_count; /* staging memory, in place only */
    uint64_t slot_next;
} ring_t;

static r2_msg_t ring_msg(const ring_t *ring, int32_t peer, int32_t share, uint32_t k, bool result)
{
    uint32_t row = (uint32_t) share + (result ? (uint32_t) ring->input->size : 0);

    return (r2_msg_t){
        .peer = peer,
        .tag = row * ring->segments + k,
        .priority = result ? 1 : 0,
        .bytes = r2_segment_length(r2_layout_bytes(&ring->shares, share), ring->segment_bytes, k)};
}

static r2_region_t ring_region(const ring_t *ring, r2_buf_t buf, int32_t share, uint32_t k)
{
    return r2_at(buf, ring->shares.start[share] + k * ring->segment_bytes);
}

/** Takes in a segment and joins our contribution. @return the reduction. */
static uint32_t ring_reduce(ring_t *ring, int32_t share, uint32_t k)
{
    const r2_plan_input_t *input = ring->input;
    const r2_region_t out = ring_region(ring, R2_BUF_OUT, share, k);
    r2_msg_t msg = ring_msg(ring, r2_input_peer(input, -1), share, k, false);
    uint32_t arrived, slot;
    r2_region_t staged;

    if (0 == msg.bytes) {
        return R2_NO_ROW;
    }
    if (!input->in_place) {
        arrived = r2_add_recv(ring->schedule, msg, out, R2_AT_ONCE);
        return r2_add_reduce(ring->schedule, ring_region(ring, R2_BUF_IN, share, k), out, msg.bytes,
                             R2_AFTER(arrived));
    }
    slot = (uint32_t) (ring->slot_next++ % ring->slot_count);
    staged = r2_at(R2_BUF_SCRATCH, slot * r2_round_up(ring->segment_bytes, R2_SLOT_ALIGN));
    arrived = r2_add_recv(ring->schedule, msg, staged, R2_AFTER(ring->slot_free[slot]));
    ring->slot_free[slot] =
        r2_add_reduce(ring->schedule, staged, out, msg.bytes, R2_AFTER(arrived));
    return ring->slot_free[slot];
}

static void ring_reduce_scatter(ring_t *ring)
{
    const r2_plan_input_t *input = ring->input;

    for (int32_t step = 0; step < input->size - 1; step++) {
        int32_t gives = r2_input_peer(input, -step - 1), takes = r2_input_peer(input, -step - 2);
        uint32_t *sent = &ring->sent[(size_t) step * ring->segments];

        for (uint32_t k = 0; k < ring->segments; k++) {
            r2_buf_t buf = 0 == step ? r2_input_buf(input) : R2_BUF_OUT;

            sent[k] = r2_add_send(ring->schedule,
                                  ring_msg(ring, r2_input_peer(input, 1), gives, k, false),
                                  ring_region(ring, buf, gives, k), R2_AFTER(ring->held[k]));
            ring->held[k] = ring_reduce(ring, takes, k);
        }
    }
}

/** Results overwrite what was sent in the same step of the first half, unless that was IN. */
static void ring_allgather(ring_t *ring)
{
    const r2_plan_input_t *input = ring->input;

    for (int32_t step = 0; step < input->size - 1; step++) {
        int32_t gives = r2_input_peer(input, -step), takes = r2_input_peer(input, -step - 1);
        const uint32_t *sent = &ring->sent[(size_t) step * ring->segments];
        bool reads_out = 0 < step || input->in_place;

        for (uint32_t k = 0; k < ring->segments; k++) {
            uint32_t held = ring->held[k];

            ring->held[k] = r2_add_recv(
                ring->schedule, ring_msg(ring, r2_input_peer(input, -1), takes, k, true),
                ring_region(ring, R2_BUF_OUT, takes, k), R2_AFTER(reads_out ? sent[k] : R2_NO_ROW));
            r2_add_send(ring->schedule, ring_msg(ring, r2_input_peer(input, 1), gives, k, true),
                        ring_region(ring, R2_BUF_OUT, gives, k), R2_AFTER(held));
        }
    }
}

static r2_status_t ring_rows(ring_t *ring)
{
    const uint64_t messages = (uint64_t) (ring->input->size - 1) * ring->segments;
    const uint64_t slot_bytes = r2_round_up(ring->segment_bytes, R2_SLOT_ALIGN);
    const uint64_t slots = r2_max(ring->input->scratch_bytes / slot_bytes, 1u);
    uint32_t *rows;

    ring->slot_count = ring->input->in_place ? (uint32_t) r2_min(slots, messages) : 0;
    rows = malloc((ring->segments + messages + ring->slot_count) * sizeof(*rows));
    if (NULL == rows) {
        return R2_ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < ring->segments + messages + ring->slot_count; i++) {
        rows[i] = R2_NO_ROW;
    }
    ring->held = rows;
    ring->sent = rows + ring->segments;
    ring->slot_free = ring->sent + messages;
    ring_reduce_scatter(ring);
    ring_allgather(ring);
    ring->schedule->scratch_bytes = ring->slot_count * slot_bytes;
    free(rows);
    return R2_OK;
}

r2_status_t r2_build_allreduce_ring(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    ring_t ring = {.input = input, .schedule = schedule};
    r2_status_t status;

    status = r2_layout_shares(&ring.shares, input->size, input->count, input->element_bytes);
    if (R2_OK != status) {
        return status;
    }
    ring.segment_bytes = r2_segment_bytes_staged(input, ring.shares.largest_bytes);
    ring.segments = r2_segment_count(ring.shares.largest_bytes, ring.segment_bytes);
    r2_plan_note_message(schedule, ring.segment_bytes);
    status = ring_rows(&ring);
    r2_layout_fini(&ring.shares);
    return status;
}
