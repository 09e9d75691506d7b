/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Barrier by dissemination.
 *
 * Five ranks, 3 = ceil(log2 5) steps. In step k rank r tells rank r + 2^k and hears from rank
 * r - 2^k:
 *
 *            step 0           step 1           step 2
 *   rank 0   -> 1, 4 ->       -> 2, 3 ->       -> 4, 1 ->
 *   rank 1   -> 2, 0 ->       -> 3, 4 ->       -> 0, 2 ->
 *   rank 2   -> 3, 1 ->       -> 4, 0 ->       -> 1, 3 ->
 *   rank 3   -> 4, 2 ->       -> 0, 1 ->       -> 2, 4 ->
 *   rank 4   -> 0, 3 ->       -> 1, 2 ->       -> 3, 0 ->
 *
 * After step k a rank has heard, directly or not, from the 2^(k+1) - 1 ranks below it. In the last
 * step only size - 2^k ranks are news, so it waits for fewer steps before it (here: for none).
 *
 * Messages are one byte long and nobody reads it: staging memory need not be set.
 *
 * Source: D. Hensgen, R. Finkel, U. Manber, "Two Algorithms for Barrier Synchronization",
 * International Journal of Parallel Programming 17(1), 1988.
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include "base/util.h"
#include "plan/layout.h"
#include "plan/ops.h"

enum { STEPS_MAX = 31 };

static r2_status_t r2_barrier_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    uint32_t heard[STEPS_MAX];
    uint32_t steps = 0;

    r2_plan_note_message(schedule, 1);
    while (steps < STEPS_MAX && ((int64_t) 1 << steps) < input->size) {
        const int32_t distance = (int32_t) 1 << steps;
        r2_msg_t to = {.peer = r2_input_peer(input, distance), .tag = steps, .bytes = 1};
        r2_msg_t from = {.peer = r2_input_peer(input, -distance), .tag = steps, .bytes = 1};

        /* byte 0 is sent, byte 1 + step received */
        r2_add_send(schedule, to, r2_at(R2_BUF_SCRATCH, 0), heard,
                    r2_steps_below(r2_min(distance, input->size - distance)));
        heard[steps] = r2_add_recv(schedule, from, r2_at(R2_BUF_SCRATCH, 1 + steps), R2_AT_ONCE);
        ++steps;
    }
    schedule->scratch_bytes = 1 + steps;
    return R2_OK;
}

const r2_algorithm_t r2_barrier_dissemination = {
    .name = "dissemination", .build = r2_barrier_build, .steps = r2_steps_below};
