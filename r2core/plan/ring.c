/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A ring over some ranks and a part of the vector, segment by segment; others take part as folded
 * hosts.
 */
#include "r2_config.h"

#include "plan/ring.h"

#include <stdlib.h>

#include "base/util.h"
#include "plan/layout.h"
#include "plan/ops.h"

/*
 * Segments that may be on their way to a rank in each step: more would only take staging memory.
 * Simulated (4 to 8 hosts, one to three tiers): 2 to 32 end equally soon.
 */
#define R2_RING_AHEAD 8u

typedef struct ring {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    const r2_ring_part_t *part;   /* borrowed */
    r2_layout_t shares;
    uint64_t segment_bytes;
    uint32_t segments;   /* of the longest share */
    uint32_t *sent;      /* owned; per step, the send while reducing the segment at hand */
    uint32_t *slot_free; /* into sent; per slot, the reduction that read it last */
    uint32_t slot_count; /* staging memory, where OUT holds a contribution already */
    uint64_t slot_next;
    uint64_t scratch_first_bytes;
} ring_t;

/** The place `step` further on (or, negative, back). */
static int32_t r2_ring_place(const ring_t *ring, int32_t step)
{
    const int32_t place = (ring->part->place + step) % ring->part->size;

    return place < 0 ? place + ring->part->size : place;
}

static int32_t r2_ring_rank(const ring_t *ring, int32_t step)
{
    return ring->part->order[r2_ring_place(ring, step)];
}

static r2_msg_t r2_ring_msg(const ring_t *ring, int32_t peer, int32_t share, uint32_t k,
                            bool result)
{
    uint32_t op = (uint32_t) share + (result ? (uint32_t) ring->part->size : 0);

    return (r2_msg_t){
        .peer = peer,
        .tag = ring->part->tag_first + op * ring->segments + k,
        .order = k,
        .bytes = r2_segment_length(r2_layout_bytes(&ring->shares, share), ring->segment_bytes, k)};
}

static r2_region_t r2_ring_region(const ring_t *ring, r2_buf_t buf, int32_t share, uint32_t k)
{
    return r2_at(buf, ring->part->first * ring->input->element_bytes + ring->shares.start[share] +
                          k * ring->segment_bytes);
}

/** Takes in a segment and joins it with what OUT holds. @return the reduction. */
static uint32_t r2_ring_reduce_staged(ring_t *ring, const r2_msg_t *msg, r2_region_t out,
                                      uint32_t held)
{
    const uint32_t slot = (uint32_t) (ring->slot_next++ % ring->slot_count);
    const r2_region_t staged =
        r2_at(R2_BUF_SCRATCH,
              ring->scratch_first_bytes + slot * r2_round_up(ring->segment_bytes, R2_SLOT_ALIGN));
    const uint32_t arrived =
        r2_add_recv(ring->schedule, *msg, staged, R2_AFTER(ring->slot_free[slot]));

    ring->slot_free[slot] =
        r2_add_reduce_slot(ring->schedule, staged, out, msg->bytes, R2_AFTER(arrived, held));
    return ring->slot_free[slot];
}

/** Takes in a segment and joins our contribution. @return the reduction. */
static uint32_t r2_ring_reduce(ring_t *ring, int32_t from, int32_t share, uint32_t k)
{
    const r2_region_t out = r2_ring_region(ring, R2_BUF_OUT, share, k);
    const r2_msg_t msg = r2_ring_msg(ring, from, share, k, false);
    uint32_t arrived;

    if (0 == msg.bytes) {
        return R2_OP_NONE;
    }
    if (ring->input->in_place) {
        return r2_ring_reduce_staged(ring, &msg, out, R2_OP_NONE);
    }
    arrived = r2_add_recv(ring->schedule, msg, out, R2_AT_ONCE);
    return r2_add_reduce(ring->schedule, r2_ring_region(ring, R2_BUF_IN, share, k), out, msg.bytes,
                         R2_AFTER(arrived));
}

/** Passes one segment of each share on. @return the op that completed ours, but for folded
 * hosts. */
static uint32_t r2_ring_reduce_scatter(ring_t *ring, uint32_t k)
{
    uint32_t held = R2_OP_NONE;

    for (int32_t step = 0; step < ring->part->size - 1; ++step) {
        const int32_t gives = r2_ring_place(ring, -step - 1),
                      takes = r2_ring_place(ring, -step - 2);
        const r2_buf_t buf = 0 == step ? r2_input_buf(ring->input) : R2_BUF_OUT;

        ring->sent[step] =
            r2_add_send(ring->schedule, r2_ring_msg(ring, r2_ring_rank(ring, 1), gives, k, false),
                        r2_ring_region(ring, buf, gives, k), R2_AFTER(held));
        held = r2_ring_reduce(ring, r2_ring_rank(ring, -1), takes, k);
    }
    return held;
}

/** Joins what folded hosts contribute to the share that ends here, and tells them the result. */
static uint32_t r2_ring_foldeds(ring_t *ring, uint32_t k, uint32_t held)
{
    const r2_ring_part_t *part = ring->part;
    const r2_region_t out = r2_ring_region(ring, R2_BUF_OUT, part->place, k);

    for (int32_t g = 0; g < part->folded_count; ++g) {
        const r2_msg_t msg = r2_ring_msg(ring, part->folded[g], part->place, k, false);

        if (0 == msg.bytes) {
            return R2_OP_NONE;
        }
        held = 1 == part->size && 0 == g ? r2_ring_reduce(ring, part->folded[0], part->place, k)
                                         : r2_ring_reduce_staged(ring, &msg, out, held);
    }
    for (int32_t g = 0; g < part->folded_count; ++g) {
        r2_add_send(ring->schedule, r2_ring_msg(ring, part->folded[g], part->place, k, true), out,
                    R2_AFTER(held));
    }
    return held;
}

/** Results overwrite what was sent in the same step of the first half, unless that was IN. */
static void r2_ring_allgather(ring_t *ring, uint32_t k, uint32_t held)
{
    for (int32_t step = 0; step < ring->part->size - 1; ++step) {
        const int32_t gives = r2_ring_place(ring, -step), takes = r2_ring_place(ring, -step - 1);
        const bool reads_out = 0 < step || ring->input->in_place;
        const uint32_t before = held;

        held =
            r2_add_recv(ring->schedule, r2_ring_msg(ring, r2_ring_rank(ring, -1), takes, k, true),
                        r2_ring_region(ring, R2_BUF_OUT, takes, k),
                        R2_AFTER(reads_out ? ring->sent[step] : R2_OP_NONE));
        r2_add_send(ring->schedule, r2_ring_msg(ring, r2_ring_rank(ring, 1), gives, k, true),
                    r2_ring_region(ring, R2_BUF_OUT, gives, k), R2_AFTER(before));
    }
}

/** A folded host's side: contributions to where shares end, results from there. */
static void r2_ring_folded(ring_t *ring, uint32_t k)
{
    const r2_ring_part_t *part = ring->part;

    for (int32_t share = 0; share < part->size; ++share) {
        const uint32_t sent =
            r2_add_send(ring->schedule, r2_ring_msg(ring, part->order[share], share, k, false),
                        r2_ring_region(ring, r2_input_buf(ring->input), share, k), R2_AT_ONCE);

        r2_add_recv(ring->schedule, r2_ring_msg(ring, part->order[share], share, k, true),
                    r2_ring_region(ring, R2_BUF_OUT, share, k),
                    R2_AFTER(ring->input->in_place ? sent : R2_OP_NONE));
    }
}

static void r2_ring_segment(ring_t *ring, uint32_t k)
{
    if (0 > ring->part->place) {
        r2_ring_folded(ring, k);
    } else {
        const uint32_t held = r2_ring_reduce_scatter(ring, k);

        r2_ring_allgather(ring, k, r2_ring_foldeds(ring, k, held));
    }
}

/** Staging memory and notes of a rank of the circle. */
static r2_status_t r2_ring_alloc(ring_t *ring)
{
    const r2_ring_part_t *part = ring->part;
    const uint64_t steps = (uint64_t) (part->size - 1), folded = (uint64_t) part->folded_count;
    /* alone in the ring, not in place: OUT takes in the first folded host's */
    const uint64_t first = 0 == steps && 0 < folded ? 1 : 0;
    const uint64_t staged = ring->input->in_place ? steps + folded : folded - first;
    const uint64_t slot_bytes = r2_round_up(ring->segment_bytes, R2_SLOT_ALIGN);
    const uint64_t slots = r2_max(part->scratch_bytes / slot_bytes, 1u);

    ring->slot_count = (uint32_t) r2_min(slots, staged * r2_min(ring->segments, R2_RING_AHEAD));
    ring->sent = malloc((steps + ring->slot_count + 1) * sizeof(*ring->sent));
    if (NULL == ring->sent) {
        return R2_ERR_NO_MEMORY;
    }
    ring->slot_free = ring->sent + steps;
    for (uint32_t i = 0; i < ring->slot_count; ++i) {
        ring->slot_free[i] = R2_OP_NONE;
    }
    ring->scratch_first_bytes = ring->schedule->scratch_bytes;
    ring->schedule->scratch_bytes += ring->slot_count * slot_bytes;
    return R2_OK;
}

static r2_status_t r2_ring_init(ring_t *ring)
{
    const r2_ring_part_t *part = ring->part;
    r2_plan_input_t within = *ring->input;
    r2_status_t status =
        r2_layout_shares(&ring->shares, part->size, part->count, within.element_bytes);

    if (R2_OK != status) {
        return status;
    }
    within.scratch_bytes = part->scratch_bytes;
    ring->segment_bytes = r2_segment_bytes_staged(&within, ring->shares.largest_bytes);
    ring->segments = r2_segment_count(ring->shares.largest_bytes, ring->segment_bytes);
    r2_plan_note_message(ring->schedule, ring->segment_bytes);
    return 0 > part->place ? R2_OK : r2_ring_alloc(ring);
}

r2_status_t r2_ring_add(const r2_plan_input_t *input, r2_schedule_t *schedule,
                        const r2_ring_part_t *part, uint32_t *tags_p)
{
    ring_t ring = {.input = input, .schedule = schedule, .part = part};
    r2_status_t status = r2_ring_init(&ring);

    for (uint32_t k = 0; R2_OK == status && k < ring.segments; ++k) {
        r2_ring_segment(&ring, k);
    }
    *tags_p = 2 * (uint32_t) part->size * ring.segments;
    free(ring.sent);
    r2_layout_fini(&ring.shares);
    return status;
}
