/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Short forms for adding ops to a schedule.
 */
#include "r2_config.h"

#include "plan/ops.h"

#include "base/util.h"

void r2_plan_note_message(r2_schedule_t *schedule, uint64_t bytes)
{
    schedule->digest = r2_digest_fold(schedule->digest, bytes);
    schedule->chunk_bytes = r2_max(r2_min(schedule->chunk_bytes, bytes), 1u);
}

uint32_t r2_add_send(r2_schedule_t *schedule, r2_msg_t msg, r2_region_t src, const uint32_t *deps,
                     uint32_t dep_count)
{
    const r2_op_t op = {.kind = R2_OP_SEND,
                        .order = msg.order,
                        .peer = msg.peer,
                        .tag = msg.tag,
                        .mark = msg.mark,
                        .bytes = msg.bytes,
                        .src = src};

    return 0 == msg.bytes ? R2_OP_NONE : r2_schedule_add(schedule, &op, deps, dep_count);
}

uint32_t r2_add_recv(r2_schedule_t *schedule, r2_msg_t msg, r2_region_t dst, const uint32_t *deps,
                     uint32_t dep_count)
{
    const r2_op_t op = {.kind = R2_OP_RECV,
                        .peer = msg.peer,
                        .tag = msg.tag,
                        .mark = msg.mark,
                        .bytes = msg.bytes,
                        .dst = dst};

    return 0 == msg.bytes ? R2_OP_NONE : r2_schedule_add(schedule, &op, deps, dep_count);
}

uint32_t r2_add_copy(r2_schedule_t *schedule, r2_region_t src, r2_region_t dst, uint64_t bytes,
                     const uint32_t *deps, uint32_t dep_count)
{
    const r2_op_t op = {.kind = R2_OP_COPY, .peer = -1, .bytes = bytes, .src = src, .dst = dst};

    return 0 == bytes ? R2_OP_NONE : r2_schedule_add(schedule, &op, deps, dep_count);
}

uint32_t r2_add_reduce(r2_schedule_t *schedule, r2_region_t src, r2_region_t dst, uint64_t bytes,
                       const uint32_t *deps, uint32_t dep_count)
{
    const r2_op_t op = {.kind = R2_OP_REDUCE, .peer = -1, .bytes = bytes, .src = src, .dst = dst};

    return 0 == bytes ? R2_OP_NONE : r2_schedule_add(schedule, &op, deps, dep_count);
}

uint32_t r2_add_reduce_slot(r2_schedule_t *schedule, r2_region_t slot, r2_region_t dst,
                            uint64_t bytes, const uint32_t *deps, uint32_t dep_count)
{
    const r2_op_t op = {.kind = R2_OP_REDUCE,
                        .peer = -1,
                        .bytes = bytes,
                        .src = slot,
                        .dst = dst,
                        .frees_src = true};

    return 0 == bytes ? R2_OP_NONE : r2_schedule_add(schedule, &op, deps, dep_count);
}
