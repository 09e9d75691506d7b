/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Broadcast down a binomial tree: for short messages.
 *
 * Six ranks, root 0 (else ranks are counted from the root, around the circle):
 *
 *            step 0    step 1    step 2
 *   rank 0   -> 4      -> 2      -> 1
 *   rank 1                       0 ->
 *   rank 2             0 ->      -> 3
 *   rank 3                       2 ->
 *   rank 4   0 ->                -> 5
 *   rank 5                       4 ->
 *
 * The parent of a rank is the rank without its lowest set bit. The deepest subtree is served first.
 *
 * Source: folklore; see R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA 19(1), 2005, section 4.2.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include "plan/layout.h"
#include "plan/ops.h"
#include "plan/thresholds.h"
#include "plan/tree.h"

/* Part k on its way down the tree: from the parent to the children, `top` and half as far each. */
static void r2_binomial_part(const r2_plan_input_t *input, r2_schedule_t *schedule,
                             r2_tree_place_t at, int32_t top, uint64_t part_bytes, uint32_t k)
{
    const uint64_t bytes = input->count * input->element_bytes;
    const r2_region_t part = r2_at(R2_BUF_OUT, k * part_bytes);
    r2_msg_t msg = {.tag = k, .bytes = r2_segment_length(bytes, part_bytes, k)};
    uint32_t arrived = R2_OP_NONE;

    if (0 != at.from_root) {
        msg.peer = r2_input_peer(input, -at.bit);
        arrived = r2_add_recv(schedule, msg, part, R2_AT_ONCE);
    }
    for (int32_t bit = top; bit > 0; bit /= 2) {
        msg.peer = r2_input_peer(input, bit);
        r2_add_send(schedule, msg, part, R2_AFTER(arrived));
    }
}

static r2_status_t r2_bcast_binomial_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    const uint64_t bytes = input->count * input->element_bytes;
    const uint64_t part_bytes = r2_message_bytes(input, bytes);
    const r2_tree_place_t at = r2_tree_place(input);

    r2_plan_note_message(schedule, part_bytes);
    for (uint32_t k = 0; k < r2_segment_count(bytes, part_bytes); ++k) {
        r2_binomial_part(input, schedule, at, r2_tree_top(at), part_bytes, k);
    }
    return R2_OK;
}

static bool r2_bcast_binomial_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    return input->size <= 2 || r2_is_short(input, total_bytes, r2_threshold_bcast_short_bytes,
                                           r2_threshold_bcast_short_bytes_per_rank);
}

const r2_algorithm_t r2_bcast_binomial = {
    .name = "binomial", .build = r2_bcast_binomial_build, .pays = r2_bcast_binomial_pays};
