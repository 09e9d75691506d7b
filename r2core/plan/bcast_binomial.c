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

#include "plan/builders.h"

#include "plan/layout.h"
#include "plan/rows.h"

r2_status_t r2_build_bcast_binomial(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    const uint64_t bytes = input->count * input->element_bytes;
    const int32_t from_root =
        (int32_t) (((int64_t) input->rank - input->root + input->size) % input->size);
    uint32_t arrived = R2_NO_ROW;
    int64_t bit = 1;

    r2_plan_note_message(schedule, bytes);
    while (bit < input->size && 0 == (from_root & bit)) {
        bit <<= 1;
    }
    if (0 != from_root) {
        r2_msg_t msg = {.peer = r2_input_peer(input, (int32_t) -bit), .bytes = bytes};

        arrived = r2_add_recv(schedule, msg, r2_at(R2_BUF_OUT, 0), R2_AT_ONCE);
    }
    for (bit >>= 1; bit > 0; bit >>= 1) {
        if (from_root + bit < input->size) {
            r2_msg_t msg = {.peer = r2_input_peer(input, (int32_t) bit), .bytes = bytes};

            r2_add_send(schedule, msg, r2_at(R2_BUF_OUT, 0), R2_AFTER(arrived));
        }
    }
    return R2_OK;
}
