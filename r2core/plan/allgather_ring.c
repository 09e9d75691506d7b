/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Allgather(v) around a ring, pipelined: for long blocks on very many ranks, and where some hosts
 * share no rail: the ring then goes in an order in which neighbours do (order.c).
 *
 * Three ranks; each sends to the next and receives from the one before. Blocks go on in segments,
 * each as soon as it has arrived, so that steps overlap:
 *
 *            step 0         step 1
 *   rank 0   0 ->, gets 2   2 ->, gets 1
 *   rank 1   1 ->, gets 0   0 ->, gets 2
 *   rank 2   2 ->, gets 1   1 ->, gets 0
 *
 * Source: folklore; see R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005, section 4.1.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include <stdlib.h>

#include "plan/layout.h"
#include "plan/order.h"
#include "plan/ops.h"
#include "plan/thresholds.h"

typedef struct ring {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    r2_layout_t blocks;
    uint64_t segment_bytes;
    uint32_t segments; /* of the longest block */
    uint32_t *arrived; /* owned; per segment, the receive of the step before */
    int32_t *order;    /* owned; ranks by place in the circle */
    int32_t place;     /* of this rank */
} ring_t;

/** The rank `step` places further on (or, negative, back). */
static int32_t r2_ring_rank(const ring_t *ring, int32_t step)
{
    const int32_t size = ring->input->size;

    return ring->order[((ring->place + step) % size + size) % size];
}

static r2_msg_t r2_ring_msg(const ring_t *ring, int32_t peer, int32_t block, uint32_t k)
{
    return (r2_msg_t){
        .peer = peer,
        .tag = (uint32_t) block * ring->segments + k,
        .bytes = r2_segment_length(r2_layout_bytes(&ring->blocks, block), ring->segment_bytes, k)};
}

static r2_region_t r2_ring_place(const ring_t *ring, int32_t block, uint32_t k)
{
    return r2_at(R2_BUF_OUT,
                 r2_layout_place(&ring->blocks, ring->input, block) + k * ring->segment_bytes);
}

static void r2_ring_ops(ring_t *ring)
{
    const r2_plan_input_t *input = ring->input;
    const int32_t next = r2_ring_rank(ring, 1), before = r2_ring_rank(ring, -1);

    for (int32_t step = 0; step < input->size - 1; ++step) {
        int32_t gives = r2_ring_rank(ring, -step), takes = r2_ring_rank(ring, -step - 1);

        for (uint32_t k = 0; k < ring->segments; ++k) {
            r2_region_t src = 0 == step && !input->in_place
                                  ? r2_at(R2_BUF_IN, k * ring->segment_bytes)
                                  : r2_ring_place(ring, gives, k);
            uint32_t held = ring->arrived[k];

            ring->arrived[k] = r2_add_recv(ring->schedule, r2_ring_msg(ring, before, takes, k),
                                           r2_ring_place(ring, takes, k), R2_AT_ONCE);
            r2_add_send(ring->schedule, r2_ring_msg(ring, next, gives, k), src, R2_AFTER(held));
        }
    }
    if (!input->in_place) {
        r2_add_copy(ring->schedule, r2_at(R2_BUF_IN, 0), r2_ring_place(ring, input->rank, 0),
                    r2_layout_bytes(&ring->blocks, input->rank), R2_AT_ONCE);
    }
}

/** Finds the circle, and notes it in the digest if it is not that of ranks. */
static r2_status_t r2_ring_order(ring_t *ring)
{
    r2_status_t status = r2_order_ring(ring->input->topology, ring->input->size, ring->order);

    for (int32_t i = 0; R2_OK == status && i < ring->input->size; ++i) {
        if (ring->order[i] == ring->input->rank) {
            ring->place = i;
        }
        if (ring->order[i] != i) {
            ring->schedule->digest = r2_digest_fold(ring->schedule->digest,
                                                    (uint64_t) i << 32 | (uint32_t) ring->order[i]);
        }
    }
    return status;
}

static r2_status_t r2_allgather_ring_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    ring_t ring = {.input = input, .schedule = schedule};
    r2_status_t status = r2_layout_blocks(&ring.blocks, input);

    if (R2_OK != status) {
        return status;
    }
    ring.segment_bytes = r2_segment_bytes(input, ring.blocks.largest_bytes, 1);
    ring.segments = r2_segment_count(ring.blocks.largest_bytes, ring.segment_bytes);
    r2_plan_note_message(schedule, ring.segment_bytes);
    ring.arrived = malloc(ring.segments * sizeof(*ring.arrived));
    ring.order = malloc((size_t) input->size * sizeof(*ring.order));
    status = NULL == ring.arrived || NULL == ring.order ? R2_ERR_NO_MEMORY : r2_ring_order(&ring);
    if (R2_OK == status) {
        for (uint32_t k = 0; k < ring.segments; ++k) {
            ring.arrived[k] = R2_OP_NONE;
        }
        r2_ring_ops(&ring);
    }
    free(ring.arrived);
    free(ring.order);
    r2_layout_fini(&ring.blocks);
    return status;
}

static bool r2_allgather_ring_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    return r2_ring_pays(input, total_bytes) ||
           (NULL != input->topology && r2_order_reaches_more(input->topology));
}

const r2_algorithm_t r2_allgather_ring = {
    .name = "ring", .build = r2_allgather_ring_build, .pays = r2_allgather_ring_pays};
