/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Reduce_scatter(_block) by pipelined direct exchange in canonical rank order.
 *
 * Every rank owns its block, cut into segments, and folds what the others contribute (fold.c).
 * Three ranks, two segments; r.k is segment k of the block of rank r:
 *
 *            segment 0                            segment 1
 *   rank 0   1.0 -> 1, 2.0 -> 2; folds 0.0         1.1 -> 1, 2.1 -> 2; folds 0.1
 *   rank 1   2.0 -> 2, 0.0 -> 0; folds 1.0         2.1 -> 2, 0.1 -> 0; folds 1.1
 *   rank 2   0.0 -> 0, 1.0 -> 1; folds 2.0         0.1 -> 0, 1.1 -> 1; folds 2.1
 *
 * In place, the result goes to the start of the buffer, over blocks that are still being sent: it
 * is folded in staging memory and copied out when nobody reads what it overwrites (readers.c).
 *
 * Source: as allreduce_direct.c, first half.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include "base/util.h"
#include "plan/fold.h"
#include "plan/readers.h"

typedef struct scatter {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    r2_layout_t blocks;
    uint64_t segment_bytes;
    uint32_t segments; /* of the longest block */
    r2_fold_t fold;
    r2_readers_t readers;
} scatter_t;

static uint64_t r2_scatter_length(const scatter_t *s, int32_t block, uint32_t k)
{
    return r2_segment_length(r2_layout_bytes(&s->blocks, block), s->segment_bytes, k);
}

static void r2_scatter_contribute(scatter_t *s, uint32_t k)
{
    for (int32_t step = 1; step < s->input->size; ++step) {
        int32_t owner = r2_input_peer(s->input, step);
        r2_msg_t msg = {
            .peer = owner, .tag = k, .order = k, .bytes = r2_scatter_length(s, owner, k)};
        r2_region_t src =
            r2_at(r2_input_buf(s->input), s->blocks.start[owner] + k * s->segment_bytes);

        r2_readers_note(&s->readers, owner, k, r2_add_send(s->schedule, msg, src, R2_AT_ONCE));
    }
}

static void r2_scatter_own_segment(scatter_t *s, uint32_t k)
{
    const int32_t rank = s->input->rank;
    const uint64_t offset = k * s->segment_bytes;
    const r2_fold_segment_t segment = {
        .index = k,
        .tag = k,
        .bytes = r2_scatter_length(s, rank, k),
        .own = r2_at(r2_input_buf(s->input), s->blocks.start[rank] + offset),
        .place = r2_at(R2_BUF_OUT, offset)};
    uint32_t count, folded;

    if (0 == segment.bytes) {
        return;
    }
    folded = r2_fold_contributions(&s->fold, &segment);
    r2_readers_note(&s->readers, rank, k, folded);
    if (s->input->in_place) {
        count = r2_readers_overwritten(&s->readers, rank, k, segment.bytes, folded);
        r2_fold_finish(&s->fold, &segment, s->readers.waits, count);
    }
}

static r2_status_t r2_scatter_ops(scatter_t *s)
{
    const r2_plan_input_t *input = s->input;
    uint64_t own_bytes = r2_layout_bytes(&s->blocks, input->rank);
    r2_status_t status = r2_readers_init(&s->readers, &s->blocks, s->segment_bytes, s->segments);

    if (R2_OK == status) {
        status = r2_fold_init(&s->fold, input, s->schedule, input->in_place, s->segment_bytes,
                              r2_segment_count(own_bytes, s->segment_bytes));
    }
    for (uint32_t k = 0; R2_OK == status && k < s->segments; ++k) {
        r2_scatter_contribute(s, k);
        r2_scatter_own_segment(s, k);
    }
    r2_fold_fini(&s->fold);
    r2_readers_fini(&s->readers);
    return status;
}

static r2_status_t r2_reduce_scatter_direct_build(const r2_plan_input_t *input,
                                                  r2_schedule_t *schedule)
{
    scatter_t s = {.input = input, .schedule = schedule};
    r2_status_t status = r2_layout_blocks(&s.blocks, input);

    if (R2_OK != status) {
        return status;
    }
    s.segment_bytes = r2_segment_bytes_exchanged(input, s.blocks.largest_bytes);
    s.segments = r2_segment_count(s.blocks.largest_bytes, s.segment_bytes);
    r2_plan_note_message(schedule, s.segment_bytes);
    status = r2_scatter_ops(&s);
    r2_layout_fini(&s.blocks);
    return status;
}

const r2_algorithm_t r2_reduce_scatter_direct = {.name = "direct",
                                                 .instead = R2_INSTEAD("direct"),
                                                 .build = r2_reduce_scatter_direct_build,
                                                 .shape = r2_cost_half_shape};
