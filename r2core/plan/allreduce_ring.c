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
 * With a topology the circle follows the rails (order.c), unless that may change bits; the above holds
 * for places in the circle.
 *
 * Source: P. Patarasuk, X. Yuan, "Bandwidth Optimal All-reduce Algorithms for Clusters of
 * Workstations", J. Parallel Distrib. Comput. 69(2), 2009. Deviation: segments.
 */
#include "r2_config.h"

#include "plan/builders.h"

#include <stdlib.h>

#include "base/util.h"
#include "plan/layout.h"
#include "plan/order.h"
#include "plan/ring.h"
#include "plan/rows.h"

typedef struct ring {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    const r2_ring_part_t *part;   /* borrowed */
    r2_layout_t shares;
    uint64_t segment_bytes;
    uint32_t segments;   /* of the longest share */
    uint32_t *held;      /* owned; per segment, the row that completed what goes on next */
    uint32_t *sent;      /* owned; per step and segment, the send while reducing */
    uint32_t *slot_free; /* owned; per slot, the reduction that read it last */
    uint32_t slot_count; /* staging memory, in place only */
    uint64_t slot_next;
} ring_t;

/** The place `step` further on (or, negative, back). */
static int32_t ring_place(const ring_t *ring, int32_t step)
{
    const int32_t place = (ring->part->place + step) % ring->part->size;

    return place < 0 ? place + ring->part->size : place;
}

static int32_t ring_rank(const ring_t *ring, int32_t step)
{
    return ring->part->order[ring_place(ring, step)];
}

static r2_msg_t ring_msg(const ring_t *ring, int32_t peer, int32_t share, uint32_t k, bool result)
{
    uint32_t row = (uint32_t) share + (result ? (uint32_t) ring->part->size : 0);

    return (r2_msg_t){
        .peer = peer,
        .tag = ring->part->tag_first + row * ring->segments + k,
        .order = result ? 0 : 1,
        .bytes = r2_segment_length(r2_layout_bytes(&ring->shares, share), ring->segment_bytes, k)};
}

static r2_region_t ring_region(const ring_t *ring, r2_buf_t buf, int32_t share, uint32_t k)
{
    return r2_at(buf, ring->part->first * ring->input->element_bytes + ring->shares.start[share] +
                          k * ring->segment_bytes);
}

/** Takes in a segment and joins our contribution. @return the reduction. */
static uint32_t ring_reduce(ring_t *ring, int32_t from, int32_t share, uint32_t k)
{
    const r2_plan_input_t *input = ring->input;
    const r2_region_t out = ring_region(ring, R2_BUF_OUT, share, k);
    r2_msg_t msg = ring_msg(ring, from, share, k, false);
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
    staged = r2_at(R2_BUF_SCRATCH, ring->part->scratch_first_bytes +
                                       slot * r2_round_up(ring->segment_bytes, R2_SLOT_ALIGN));
    arrived = r2_add_recv(ring->schedule, msg, staged, R2_AFTER(ring->slot_free[slot]));
    ring->slot_free[slot] =
        r2_add_reduce(ring->schedule, staged, out, msg.bytes, R2_AFTER(arrived));
    return ring->slot_free[slot];
}

static void ring_reduce_scatter(ring_t *ring)
{
    const r2_plan_input_t *input = ring->input;
    const int32_t guest = ring->part->guest;

    for (uint32_t k = 0; 0 <= guest && k < ring->segments; k++) {
        ring->held[k] = ring_reduce(ring, guest, ring_place(ring, -1), k);
    }
    for (int32_t step = 0; step < ring->part->size - 1; step++) {
        int32_t gives = ring_place(ring, -step - 1), takes = ring_place(ring, -step - 2);
        uint32_t *sent = &ring->sent[(size_t) step * ring->segments];

        for (uint32_t k = 0; k < ring->segments; k++) {
            r2_buf_t buf = 0 == step && 0 > guest ? r2_input_buf(input) : R2_BUF_OUT;

            sent[k] =
                r2_add_send(ring->schedule, ring_msg(ring, ring_rank(ring, 1), gives, k, false),
                            ring_region(ring, buf, gives, k), R2_AFTER(ring->held[k]));
            ring->held[k] = ring_reduce(ring, ring_rank(ring, -1), takes, k);
        }
    }
}

/** Results overwrite what was sent in the same step of the first half, unless that was IN. */
static void ring_allgather(ring_t *ring)
{
    const r2_plan_input_t *input = ring->input;

    for (uint32_t k = 0; 0 <= ring->part->guest && k < ring->segments; k++) {
        r2_add_send(ring->schedule, ring_msg(ring, ring->part->guest, ring->part->place, k, true),
                    ring_region(ring, R2_BUF_OUT, ring->part->place, k), R2_AFTER(ring->held[k]));
    }
    for (int32_t step = 0; step < ring->part->size - 1; step++) {
        int32_t gives = ring_place(ring, -step), takes = ring_place(ring, -step - 1);
        const uint32_t *sent = &ring->sent[(size_t) step * ring->segments];
        bool reads_out = 0 < step || input->in_place || 0 <= ring->part->guest;

        for (uint32_t k = 0; k < ring->segments; k++) {
            uint32_t held = ring->held[k];

            ring->held[k] = r2_add_recv(
                ring->schedule, ring_msg(ring, ring_rank(ring, -1), takes, k, true),
                ring_region(ring, R2_BUF_OUT, takes, k), R2_AFTER(reads_out ? sent[k] : R2_NO_ROW));
            r2_add_send(ring->schedule, ring_msg(ring, ring_rank(ring, 1), gives, k, true),
                        ring_region(ring, R2_BUF_OUT, gives, k), R2_AFTER(held));
        }
    }
}

/** The guest's side: contributions to where shares begin, results from where they end. */
static void ring_guest(ring_t *ring)
{
    const r2_ring_part_t *part = ring->part;

    for (int32_t share = 0; share < part->size; share++) {
        for (uint32_t k = 0; k < ring->segments; k++) {
            const uint32_t sent =
                r2_add_send(ring->schedule,
                            ring_msg(ring, part->order[(share + 1) % part->size], share, k, false),
                            ring_region(ring, r2_input_buf(ring->input), share, k), R2_AT_ONCE);

            r2_add_recv(ring->schedule, ring_msg(ring, part->order[share], share, k, true),
                        ring_region(ring, R2_BUF_OUT, share, k),
                        R2_AFTER(ring->input->in_place ? sent : R2_NO_ROW));
        }
    }
}

static r2_status_t ring_rows(ring_t *ring)
{
    const r2_ring_part_t *part = ring->part;
    const uint64_t takes = (uint64_t) (part->size - 1) + (0 <= part->guest ? 1 : 0);
    const uint64_t messages = takes * ring->segments;
    const uint64_t slot_bytes = r2_round_up(ring->segment_bytes, R2_SLOT_ALIGN);
    const uint64_t slots = r2_max(part->scratch_bytes / slot_bytes, 1u);
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
    ring->schedule->scratch_bytes = part->scratch_first_bytes + ring->slot_count * slot_bytes;
    free(rows);
    return R2_OK;
}

static r2_status_t ring_init(ring_t *ring)
{
    const r2_plan_input_t *input = ring->input;
    r2_status_t status =
        r2_layout_shares(&ring->shares, ring->part->size, ring->part->count, input->element_bytes);

    if (R2_OK == status) {
        ring->segment_bytes = r2_segment_bytes_staged(input, ring->shares.largest_bytes);
        ring->segments = r2_segment_count(ring->shares.largest_bytes, ring->segment_bytes);
    }
    return status;
}

uint32_t r2_ring_tags(const r2_plan_input_t *input, const r2_ring_part_t *part)
{
    const uint64_t shares = (uint64_t) part->size;
    const uint64_t largest = (part->count + shares - 1) / shares * input->element_bytes;

    return (uint32_t) (2 * shares) *
           r2_segment_count(largest, r2_segment_bytes_staged(input, largest));
}

r2_status_t r2_ring_add(const r2_plan_input_t *input, r2_schedule_t *schedule,
                        const r2_ring_part_t *part)
{
    ring_t ring = {.input = input, .schedule = schedule, .part = part};
    r2_status_t status = ring_init(&ring);

    if (R2_OK != status) {
        return status;
    }
    r2_plan_note_message(schedule, ring.segment_bytes);
    if (0 > part->place) {
        ring_guest(&ring);
    } else {
        status = ring_rows(&ring);
    }
    r2_layout_fini(&ring.shares);
    return status;
}

r2_status_t r2_build_allreduce_ring(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    int32_t *order = malloc((size_t) input->size * sizeof(*order));
    r2_ring_part_t part = {.order = order,
                           .size = input->size,
                           .guest = -1,
                           .count = input->count,
                           .scratch_bytes = input->scratch_bytes};
    r2_status_t status;

    if (NULL == order) {
        return R2_ERR_NO_MEMORY;
    }
    /* a circle that follows the rails sums in another order: bits would change with the map */
    status = r2_order_ring(input->reproducible && !input->exact ? NULL : input->topology, input->size,
                           order);
    for (int32_t i = 0; R2_OK == status && i < input->size; i++) {
        if (order[i] == input->rank) {
            part.place = i;
        }
        /* another circle than that of ranks is part of the plan: all must mean the same one */
        if (order[i] != i) {
            schedule->digest =
                r2_digest_fold(schedule->digest, (uint64_t) i << 32 | (uint64_t) order[i]);
        }
    }
    status = R2_OK == status ? r2_ring_add(input, schedule, &part) : status;
    free(order);
    return status;
}
