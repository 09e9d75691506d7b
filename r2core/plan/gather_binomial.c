/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Gather up a binomial tree: for short blocks on many ranks.
 *
 * Six ranks, root 0 (else ranks are counted from the root, around the circle); what is sent where:
 *
 *            blocks of the subtree   sent to
 *   rank 0   0 - 5
 *   rank 1   1                       0
 *   rank 2   2 3                     0
 *   rank 3   3                       2
 *   rank 4   4 5                     0
 *   rank 5   5                       4
 *
 * The parent of a rank is the rank without its lowest set bit. Inner ranks collect in staging
 * memory; at the root messages go straight to OUT, but for the one whose blocks go beyond the last
 * rank.
 *
 * Source: folklore; see R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include "base/util.h"
#include "plan/ops.h"
#include "plan/tree.h"

enum { CHILDREN_MAX = 32 };

/** The root takes in the blocks of a child's subtree. */
static void r2_gather_root(const r2_plan_input_t *input, r2_schedule_t *schedule, int32_t first,
                           int32_t count)
{
    const uint64_t block = input->count * input->element_bytes;
    const int32_t child = r2_input_peer(input, first);
    const int32_t before_end = r2_min(count, input->size - child);
    const r2_msg_t msg = {.peer = child, .bytes = (uint64_t) count * block};
    uint32_t arrived;

    if (before_end == count) {
        r2_add_recv(schedule, msg, r2_at(R2_BUF_OUT, (uint64_t) child * block), R2_AT_ONCE);
        return;
    }
    schedule->scratch_bytes = msg.bytes;
    arrived = r2_add_recv(schedule, msg, r2_at(R2_BUF_SCRATCH, 0), R2_AT_ONCE);
    r2_add_copy(schedule, r2_at(R2_BUF_SCRATCH, 0), r2_at(R2_BUF_OUT, (uint64_t) child * block),
                (uint64_t) before_end * block, R2_AFTER(arrived));
    r2_add_copy(schedule, r2_at(R2_BUF_SCRATCH, (uint64_t) before_end * block),
                r2_at(R2_BUF_OUT, 0), (uint64_t) (count - before_end) * block, R2_AFTER(arrived));
}

static void r2_gather_inner(const r2_plan_input_t *input, r2_schedule_t *schedule,
                            r2_tree_place_t at)
{
    const uint64_t block = input->count * input->element_bytes;
    const r2_msg_t up = {.peer = r2_input_peer(input, -at.bit),
                         .bytes = (uint64_t) at.count * block};
    uint32_t ops[CHILDREN_MAX], have = 0;

    if (1 == at.count) {
        r2_add_send(schedule, up, r2_at(R2_BUF_IN, 0), R2_AT_ONCE);
        return;
    }
    schedule->scratch_bytes = up.bytes;
    ops[have++] =
        r2_add_copy(schedule, r2_at(R2_BUF_IN, 0), r2_at(R2_BUF_SCRATCH, 0), block, R2_AT_ONCE);
    for (int32_t bit = 1; bit < at.count; bit *= 2) {
        r2_msg_t msg = {.peer = r2_input_peer(input, bit),
                        .bytes = (uint64_t) r2_min(bit, at.count - bit) * block};

        ops[have++] =
            r2_add_recv(schedule, msg, r2_at(R2_BUF_SCRATCH, (uint64_t) bit * block), R2_AT_ONCE);
    }
    r2_add_send(schedule, up, r2_at(R2_BUF_SCRATCH, 0), ops, have);
}

static r2_status_t r2_gather_binomial_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    const uint64_t block = input->count * input->element_bytes;
    const r2_tree_place_t at = r2_tree_place(input);

    r2_plan_note_message(schedule, block * (uint64_t) input->size);
    if (0 != at.from_root) {
        r2_gather_inner(input, schedule, at);
        return R2_OK;
    }
    for (int64_t bit = 1; bit < input->size; bit *= 2) {
        r2_gather_root(input, schedule, (int32_t) bit, (int32_t) r2_min(bit, input->size - bit));
    }
    if (!input->in_place) {
        r2_add_copy(schedule, r2_at(R2_BUF_IN, 0),
                    r2_at(R2_BUF_OUT, (uint64_t) input->rank * block), block, R2_AT_ONCE);
    }
    return R2_OK;
}

const r2_algorithm_t r2_gather_binomial = {.name = "binomial",
                                           .build = r2_gather_binomial_build,
                                           .scratch = r2_tree_scratch,
                                           .pays = r2_tree_pays};
