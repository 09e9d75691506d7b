/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Scatter down a binomial tree: for short blocks on many ranks.
 *
 * The tree of gather_binomial.c, the other way round. Six ranks, root 0:
 *
 *            gets from root's side   keeps, sends on
 *   rank 0                           4 5 -> 4, 2 3 -> 2, 1 -> 1
 *   rank 1   1                       1
 *   rank 2   2 3                     2, 3 -> 3
 *   rank 3   3                       3
 *   rank 4   4 5                     4, 5 -> 5
 *   rank 5   5                       5
 *
 * Source: folklore; see R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include "base/util.h"
#include "plan/ops.h"
#include "plan/tree.h"

/** The root sends the blocks of a child's subtree; those beyond the last rank are joined to
 * them. */
static void r2_scatter_root(const r2_plan_input_t *input, r2_schedule_t *schedule, int32_t first,
                            int32_t count)
{
    const uint64_t block = input->count * input->element_bytes;
    const int32_t child = r2_input_peer(input, first);
    const int32_t before_end = r2_min(count, input->size - child);
    const r2_msg_t msg = {.peer = child, .bytes = (uint64_t) count * block};
    uint32_t low, high;

    if (before_end == count) {
        r2_add_send(schedule, msg, r2_at(R2_BUF_IN, (uint64_t) child * block), R2_AT_ONCE);
        return;
    }
    schedule->scratch_bytes = msg.bytes;
    low = r2_add_copy(schedule, r2_at(R2_BUF_IN, (uint64_t) child * block),
                      r2_at(R2_BUF_SCRATCH, 0), (uint64_t) before_end * block, R2_AT_ONCE);
    high = r2_add_copy(schedule, r2_at(R2_BUF_IN, 0),
                       r2_at(R2_BUF_SCRATCH, (uint64_t) before_end * block),
                       (uint64_t) (count - before_end) * block, R2_AT_ONCE);
    r2_add_send(schedule, msg, r2_at(R2_BUF_SCRATCH, 0), R2_AFTER(low, high));
}

static void r2_scatter_inner(const r2_plan_input_t *input, r2_schedule_t *schedule,
                             r2_tree_place_t at)
{
    const uint64_t block = input->count * input->element_bytes;
    const r2_msg_t down = {.peer = r2_input_peer(input, -at.bit),
                           .bytes = (uint64_t) at.count * block};
    uint32_t arrived;

    if (1 == at.count) {
        r2_add_recv(schedule, down, r2_at(R2_BUF_OUT, 0), R2_AT_ONCE);
        return;
    }
    schedule->scratch_bytes = down.bytes;
    arrived = r2_add_recv(schedule, down, r2_at(R2_BUF_SCRATCH, 0), R2_AT_ONCE);
    for (int32_t bit = r2_tree_top(at); bit > 0; bit /= 2) {
        r2_msg_t msg = {.peer = r2_input_peer(input, bit),
                        .bytes = (uint64_t) r2_min(bit, at.count - bit) * block};

        r2_add_send(schedule, msg, r2_at(R2_BUF_SCRATCH, (uint64_t) bit * block),
                    R2_AFTER(arrived));
    }
    r2_add_copy(schedule, r2_at(R2_BUF_SCRATCH, 0), r2_at(R2_BUF_OUT, 0), block, R2_AFTER(arrived));
}

static r2_status_t r2_scatter_binomial_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    const uint64_t block = input->count * input->element_bytes;
    const r2_tree_place_t at = r2_tree_place(input);

    r2_plan_note_message(schedule, block * (uint64_t) input->size);
    if (0 != at.from_root) {
        r2_scatter_inner(input, schedule, at);
        return R2_OK;
    }
    for (int32_t bit = r2_tree_top(at); bit > 0; bit /= 2) {
        r2_scatter_root(input, schedule, bit, r2_min(bit, input->size - bit));
    }
    if (!input->in_place) {
        r2_add_copy(schedule, r2_at(R2_BUF_IN, (uint64_t) input->rank * block),
                    r2_at(R2_BUF_OUT, 0), block, R2_AT_ONCE);
    }
    return R2_OK;
}

const r2_algorithm_t r2_scatter_binomial = {.name = "binomial",
                                            .build = r2_scatter_binomial_build,
                                            .scratch = r2_tree_scratch,
                                            .pays = r2_tree_pays};
