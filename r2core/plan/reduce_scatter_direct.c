/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Reduce_scatter(_block) by pipelined direct exchange in canonical rank order.
 *
 * Every rank owns its block, cut into segments, and folds what the others contribute (fold.c). Three
 * ranks, two segments; r.k is segment k of the block of rank r:
 *
 *            segment 0                            segment 1
 *   rank 0   1.0 -> 1, 2.0 -> 2; folds 0.0         1.1 -> 1, 2.1 -> 2; folds 0.1
 *   rank 1   2.0 -> 2, 0.0 -> 0; folds 1.0         2.1 -> 2, 0.1 -> 0; folds 1.1
 *   rank 2   0.0 -> 0, 1.0 -> 1; folds 2.0         0.1 -> 0, 1.1 -> 1; folds 2.1
 *
 * In place, the result goes to the start of the buffer, over blocks that are still being sent: it
 * is folded in staging memory, and its segment k is copied out when segments 0 .. k have been sent and folded.
 * Segments are equally long in all blocks, and block b begins behind block 0, so what the copy
 * of segment k overwrites belongs to segments 0 .. k: copies wait for lower or equal segments only, and a slot
 * is held for later ones only. So no circle of ranks can wait for each other.
 *
 * Source: as allreduce_direct.c, first half.
 */
#include "r2_config.h"

#include "plan/builders.h"

#include <stdlib.h>

#include "base/util.h"
#include "plan/fold.h"

typedef struct scatter {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    r2_layout_t blocks;
    uint64_t segment_bytes;
    r2_fold_t fold;
    /* owned; rows the copy of a segment waits for: [0] its fold, [1] the copy before, then sends */
    uint32_t *waits;
    uint32_t wait_count;
} scatter_t;

enum { WAIT_FOLD = 0, WAIT_COPY = 1, WAIT_SENDS = 2 };

static void scatter_contribute(scatter_t *s, uint32_t k)
{
    for (int32_t step = 1; step < s->input->size; step++) {
        int32_t owner = r2_input_peer(s->input, step);
        r2_msg_t msg = {.peer = owner, .tag = k,
                        .bytes = r2_segment_length(r2_layout_bytes(&s->blocks, owner),
                                                   s->segment_bytes, k)};
        r2_region_t src = r2_at(r2_input_buf(s->input),
                                s->blocks.start[owner] + k * s->segment_bytes);

        s->waits[s->wait_count++] = r2_add_send(s->schedule, msg, src, R2_AT_ONCE);
    }
}

static void scatter_own_segment(scatter_t *s, uint32_t k)
{
    const uint64_t offset = k * s->segment_bytes;
    const uint64_t start = s->blocks.start[s->input->rank];
    const r2_fold_segment_t segment = {
        .index = k,
        .tag = k,
        .bytes = r2_segment_length(r2_layout_bytes(&s->blocks, s->input->rank), s->segment_bytes,
                                   k),
        .own = r2_at(r2_input_buf(s->input), start + offset),
        .place = r2_at(R2_BUF_OUT, offset)};

    if (0 == segment.bytes) {
        return;
    }
    s->waits[WAIT_FOLD] = r2_fold_contributions(&s->fold, &segment);
    s->waits[WAIT_COPY] = r2_fold_finish(&s->fold, &segment, s->waits, s->wait_count);
    s->wait_count = WAIT_SENDS;
}

static r2_status_t scatter_rows(scatter_t *s)
{
    const r2_plan_input_t *input = s->input;
    uint64_t own_bytes = r2_layout_bytes(&s->blocks, input->rank);
    r2_status_t status;

    s->segment_bytes = r2_segment_bytes_staged(input, s->blocks.largest_bytes);
    r2_plan_note_message(s->schedule, s->segment_bytes);
    status = r2_fold_init(&s->fold, input, s->schedule, input->in_place, s->segment_bytes,
                          r2_segment_count(own_bytes, s->segment_bytes));
    if (R2_OK != status) {
        return status;
    }
    s->waits[WAIT_COPY] = R2_NO_ROW;
    for (uint32_t k = 0; k < r2_segment_count(s->blocks.largest_bytes, s->segment_bytes); k++) {
        s->wait_count = WAIT_SENDS;
        scatter_contribute(s, k);
        scatter_own_segment(s, k);
    }
    r2_fold_fini(&s->fold);
    return R2_OK;
}

r2_status_t r2_build_reduce_scatter_direct(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    scatter_t s = {.input = input, .schedule = schedule};
    r2_status_t status = r2_layout_blocks(&s.blocks, input);

    if (R2_OK != status) {
        return status;
    }
    s.waits = malloc(((size_t) input->size + WAIT_SENDS) * sizeof(*s.waits));
    if (NULL == s.waits) {
        status = R2_ERR_NO_MEMORY;
    } else {
        status = scatter_rows(&s);
    }
    free(s.waits);
    r2_layout_fini(&s.blocks);
    return status;
}
