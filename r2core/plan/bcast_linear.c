/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Broadcast from the root to all by itself: for short messages on few ranks.
 *
 * Three ranks, root 1; each op of the table starts at once:
 *
 *   rank 0   receives from 1
 *   rank 1   -> 2, 0
 *   rank 2   receives from 1
 *
 * Nobody waits for a rank between, which may not be there yet, or have no core.
 *
 * Source: folklore (linear broadcast).
 */
#include "r2_config.h"

#include "plan/algorithm.h"

#include "plan/layout.h"
#include "plan/ops.h"
#include "plan/thresholds.h"

static r2_status_t r2_bcast_linear_build(const r2_plan_input_t *input, r2_schedule_t *schedule)
{
    const uint64_t bytes = input->count * input->element_bytes;
    const uint64_t part_bytes = r2_message_bytes(input, bytes);

    r2_plan_note_message(schedule, part_bytes);
    for (uint32_t k = 0; k < r2_segment_count(bytes, part_bytes); ++k) {
        const r2_region_t part = r2_at(R2_BUF_OUT, k * part_bytes);
        r2_msg_t msg = {
            .peer = input->root, .tag = k, .bytes = r2_segment_length(bytes, part_bytes, k)};

        if (input->rank != input->root) {
            r2_add_recv(schedule, msg, part, R2_AT_ONCE);
        }
        for (int32_t step = 1; input->rank == input->root && step < input->size; ++step) {
            msg.peer = r2_input_peer(input, step);
            r2_add_send(schedule, msg, part, R2_AT_ONCE);
        }
    }
    return R2_OK;
}

static bool r2_bcast_linear_pays(const r2_plan_input_t *input, uint64_t total_bytes)
{
    const uint64_t peers = (uint64_t) input->size - 1;

    return 2 < input->size && input->size <= r2_threshold_bcast_linear_ranks &&
           total_bytes <= r2_threshold_bcast_short_bytes &&
           total_bytes * peers <= r2_threshold_bcast_linear_sent_bytes;
}

const r2_algorithm_t r2_bcast_linear = {
    .name = "linear", .build = r2_bcast_linear_build, .pays = r2_bcast_linear_pays};
