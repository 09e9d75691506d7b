/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Alltoall by Bruck's algorithm: for short blocks on many ranks.
 *
 * A block that has i ranks to go (around the circle) goes 2^k ranks in step k if i has bit k. Five
 * ranks; what rank r sends in a step is listed by i:
 *
 *            step 0         step 1         step 2
 *   rank r   1 3 -> r + 1   2 3 -> r + 2   4 -> r + 4
 *
 * After all steps the block with number i is that of rank r - i. Blocks of a step are packed into
 * one message in staging memory, and stay where they arrived until they are sent on or copied to
 * their place.
 *
 * Source: J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby, "Efficient Algorithms for
 * All-to-All Communications in Multiport Message-Passing Systems", IEEE TPDS 8(11), 1997.
 * Deviation: no rotations.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include <stdlib.h>

#include "base/util.h"
#include "plan/ops.h"
#include "plan/thresholds.h"

/** Where a block lies now. */
typedef struct where {
    r2_region_t place;
    uint32_t op;   /* that put it there */
    uint32_t read; /* first op that reads it */
} where_t;

typedef struct bruck {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    uint64_t block_bytes;
    where_t *blocks; /* owned; by ranks to go */
    uint64_t top;    /* staging memory in use */
} bruck_t;

static bool r2_takes_part(int32_t i, int64_t distance)
{
    return 0 != ((int64_t) i & distance);
}

static uint64_t r2_step_blocks(int32_t size, int64_t distance)
{
    uint64_t blocks = 0;

    for (int32_t i = 1; i < size; ++i) {
        blocks += r2_takes_part(i, distance) ? 1 : 0;
    }
    return blocks;
}

static uint64_t r2_alltoall_bruck_scratch(const r2_plan_input_t *input)
{
    uint64_t blocks = 0;

    for (int64_t distance = 1; distance < input->size; distance *= 2) {
        blocks += 2 * r2_step_blocks(input->size, distance);
    }
    return blocks * input->count * input->element_bytes;
}

/** Copies the blocks of a step one behind the other. @return number of ops that did, in `ops`. */
static uint32_t r2_bruck_pack(bruck_t *b, int64_t distance, uint32_t *ops)
{
    uint32_t count = 0;

    for (int32_t i = 1; i < b->input->size; ++i) {
        where_t *block = &b->blocks[i];

        if (r2_takes_part(i, distance)) {
            ops[count] = r2_add_copy(b->schedule, block->place, r2_at(R2_BUF_SCRATCH, b->top),
                                     b->block_bytes, R2_AFTER(block->op));
            block->read = R2_OP_NONE == block->read ? ops[count] : block->read;
            b->top += b->block_bytes;
            ++count;
        }
    }
    return count;
}

static void r2_bruck_step(bruck_t *b, int32_t distance, uint32_t tag, uint32_t *ops)
{
    const uint64_t from = b->top;
    const uint32_t packed = r2_bruck_pack(b, distance, ops);
    r2_msg_t msg = {
        .peer = r2_input_peer(b->input, distance), .tag = tag, .bytes = packed * b->block_bytes};
    uint32_t arrived;

    r2_add_send(b->schedule, msg, r2_at(R2_BUF_SCRATCH, from), ops, packed);
    msg.peer = r2_input_peer(b->input, -distance);
    arrived = r2_add_recv(b->schedule, msg, r2_at(R2_BUF_SCRATCH, b->top), R2_AT_ONCE);
    for (int32_t i = 1; i < b->input->size; ++i) {
        if (r2_takes_part(i, distance)) {
            b->blocks[i].place = r2_at(R2_BUF_SCRATCH, b->top);
            b->blocks[i].op = arrived;
            b->top += b->block_bytes;
        }
    }
}

/** Op after which the place of a block in OUT may be written: in place, its first copy. */
static uint32_t r2_bruck_free(const bruck_t *b, int32_t rank)
{
    const int32_t to_go =
        (int32_t) (((int64_t) rank - b->input->rank + b->input->size) % b->input->size);

    return b->input->in_place ? b->blocks[to_go].read : R2_OP_NONE;
}

static void r2_bruck_ops(bruck_t *b, uint32_t *ops)
{
    const r2_plan_input_t *input = b->input;
    uint32_t tag = 0;

    for (int32_t i = 0; i < input->size; ++i) {
        b->blocks[i] =
            (where_t){.place = r2_at(r2_input_buf(input),
                                     (uint64_t) r2_input_peer(input, i) * b->block_bytes),
                      .op = R2_OP_NONE,
                      .read = R2_OP_NONE};
    }
    for (int64_t distance = 1; distance < input->size; distance *= 2) {
        r2_bruck_step(b, (int32_t) distance, tag++, ops);
    }
    for (int32_t i = input->in_place ? 1 : 0; i < input->size; ++i) {
        const int32_t source = r2_input_peer(input, -i);

        r2_add_copy(b->schedule, b->blocks[i].place,
                    r2_at(R2_BUF_OUT, (uint64_t) source * b->block_bytes), b->block_bytes,
                    R2_AFTER(b->blocks[i].op, r2_bruck_free(b, source)));
    }
}

static r2_status_t r2_alltoall_bruck_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    bruck_t b = {.input = input, .schedule = schedule};
    uint32_t *ops = malloc((size_t) input->size * sizeof(*ops));

    b.block_bytes = input->count * input->element_bytes;
    b.blocks = calloc((size_t) input->size, sizeof(*b.blocks));
    if (NULL != ops && NULL != b.blocks) {
        r2_plan_note_message(schedule, (uint64_t) input->size * b.block_bytes);
        r2_bruck_ops(&b, ops);
        schedule->scratch_bytes = b.top;
    } else {
        schedule->status = R2_ERR_NO_MEMORY;
    }
    free(b.blocks);
    free(ops);
    return schedule->status;
}

static bool r2_alltoall_bruck_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    return input->size > r2_threshold_alltoall_bruck_ranks &&
           r2_is_short(input, total_bytes, 0, r2_threshold_alltoall_bruck_block_bytes);
}

const r2_algorithm_t r2_alltoall_bruck = {.name = "bruck",
                                          .build = r2_alltoall_bruck_build,
                                          .scratch = r2_alltoall_bruck_scratch,
                                          .pays = r2_alltoall_bruck_pays};
