/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Allgather(v) by Bruck's algorithm: for short blocks on many ranks.
 *
 * Five ranks, 3 = ceil(log2 5) steps. Rank r collects blocks r, r + 1, ... (around the circle)
 * packed in staging memory; in step k it sends what it has, from its start, to rank r - 2^k (the
 * last step: what is still missing there):
 *
 *            has     step 0          step 1            step 2
 *   rank 0   0       +1              +2 3              +4
 *   rank 1   1       +2              +3 4              +0
 *   rank 2   2       +3              +4 0              +1
 *   rank 3   3       +4              +0 1              +2
 *   rank 4   4       +0              +1 2              +3
 *
 * Blocks are copied to their places as they arrive. They may be of any lengths: all ranks know all.
 *
 * Source: J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby, "Efficient Algorithms for
 * All-to-All Communications in Multiport Message-Passing Systems", IEEE TPDS 8(11), 1997.
 * Deviation: no rotation at the end, uneven blocks.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include "base/util.h"
#include "plan/layout.h"
#include "plan/ops.h"
#include "plan/thresholds.h"

enum { STEPS_MAX = 31 };

typedef struct bruck {
    const r2_plan_input_t *input; /* borrowed */
    r2_schedule_t *schedule;      /* borrowed */
    r2_layout_t blocks;
} bruck_t;

/** Rank of the i-th block that this rank collects. */
static int32_t r2_bruck_block(const bruck_t *b, int32_t i)
{
    return r2_input_peer(b->input, i);
}

/** Bytes of the first `count` blocks that this rank collects: where the next one goes. */
static uint64_t r2_bruck_offset(const bruck_t *b, int32_t count)
{
    const uint64_t *start = b->blocks.start;
    const int32_t rank = b->input->rank, size = b->input->size;
    int64_t end = (int64_t) rank + count;

    return end <= size ? start[end] - start[rank] : start[size] - start[rank] + start[end - size];
}

static uint64_t r2_bruck_place(const bruck_t *b, int32_t i)
{
    return r2_layout_place(&b->blocks, b->input, r2_bruck_block(b, i));
}

/** Copies blocks [first, end) of the collection to their places: adjacent ones in one op. */
static void r2_bruck_deliver(bruck_t *b, int32_t first, int32_t end, uint32_t arrived)
{
    while (first < end) {
        uint64_t place = r2_bruck_place(b, first);
        uint64_t bytes = 0;
        int32_t next = first;

        while (next < end && place + bytes == r2_bruck_place(b, next)) {
            bytes += r2_layout_bytes(&b->blocks, r2_bruck_block(b, next));
            ++next;
        }
        r2_add_copy(b->schedule, r2_at(R2_BUF_SCRATCH, r2_bruck_offset(b, first)),
                    r2_at(R2_BUF_OUT, place), bytes, R2_AFTER(arrived));
        first = next;
    }
}

static void r2_bruck_ops(bruck_t *b)
{
    const r2_plan_input_t *input = b->input;
    const r2_region_t own =
        input->in_place ? r2_at(R2_BUF_OUT, r2_bruck_place(b, 0)) : r2_at(R2_BUF_IN, 0);
    uint32_t have[STEPS_MAX + 1];
    uint32_t step = 0;

    for (int64_t have_count = 1; have_count < input->size; have_count *= 2) {
        int32_t distance = (int32_t) have_count;
        int32_t count = r2_min(distance, input->size - distance);
        uint64_t offset = r2_bruck_offset(b, distance);
        r2_msg_t to = {.peer = r2_input_peer(input, -distance),
                       .tag = step,
                       .bytes = r2_bruck_offset(b, count)};
        r2_msg_t from = {.peer = r2_input_peer(input, distance),
                         .tag = step,
                         .bytes = r2_bruck_offset(b, distance + count) - offset};
        uint32_t arrived =
            r2_add_recv(b->schedule, from, r2_at(R2_BUF_SCRATCH, offset), R2_AT_ONCE);

        if (0 == step) {
            r2_add_send(b->schedule, to, own, R2_AT_ONCE);
            have[0] = r2_add_copy(b->schedule, own, r2_at(R2_BUF_SCRATCH, 0),
                                  2 < input->size ? r2_bruck_offset(b, 1) : 0, R2_AT_ONCE);
        } else {
            r2_add_send(b->schedule, to, r2_at(R2_BUF_SCRATCH, 0), have, 1 + r2_steps_below(count));
        }
        r2_bruck_deliver(b, distance, distance + count, arrived);
        ++step;
        have[step] = arrived;
    }
    if (!input->in_place) {
        r2_add_copy(b->schedule, own, r2_at(R2_BUF_OUT, r2_bruck_place(b, 0)),
                    r2_bruck_offset(b, 1), R2_AT_ONCE);
    }
    b->schedule->scratch_bytes = b->blocks.start[input->size];
}

static r2_status_t r2_allgather_bruck_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    bruck_t b = {.input = input, .schedule = schedule};
    r2_status_t status = r2_layout_blocks(&b.blocks, input);

    if (R2_OK != status) {
        return status;
    }
    r2_plan_note_message(schedule, b.blocks.start[input->size]);
    r2_bruck_ops(&b);
    r2_layout_fini(&b.blocks);
    return R2_OK;
}

static bool r2_allgather_bruck_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    return input->size > r2_threshold_allgather_bruck_ranks &&
           r2_is_short(input, total_bytes, 0, r2_threshold_allgather_bruck_block_bytes);
}

/** Where ranks are in blocks by host, those that are `distance` from its end send to others. */
static r2_cost_shape_t r2_allgather_bruck_shape(const r2_topology_t *topology,
                                                const r2_topology_placement_t *placement)
{
    const uint64_t ranks = (uint64_t) topology->rank_count;
    r2_cost_shape_t shape = {.whole = ranks};

    for (uint64_t distance = 1; distance < ranks; distance *= 2) {
        ++shape.steps;
        shape.part += r2_min(distance, placement->most) * r2_min(distance, ranks - distance);
    }
    shape.messages = shape.steps;
    return shape;
}

const r2_algorithm_t r2_allgather_bruck = {.name = "bruck",
                                           .build = r2_allgather_bruck_build,
                                           .scratch = r2_input_total_bytes,
                                           .pays = r2_allgather_bruck_pays,
                                           .shape = r2_allgather_bruck_shape};
