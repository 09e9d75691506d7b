/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Short forms for adding ops to a schedule, shared by all builders.
 */
#ifndef R2_PLAN_OPS_H
#define R2_PLAN_OPS_H

#include "r2/schedule.h"

/** The ops a new op waits for, as the last two arguments of r2_add_*(). */
#define R2_AFTER(...)                \
    (const uint32_t[]){__VA_ARGS__}, \
        (uint32_t) (sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
#define R2_AT_ONCE NULL, 0

/** What travels: one side of a message. */
typedef struct r2_msg {
    int32_t peer;
    uint32_t tag;
    uint64_t bytes;
    uint32_t mark; /* see r2_op_t */
    /* sender's only: lower ones go first; for pipelines the number of the segment */
    uint32_t order;
} r2_msg_t;

static inline r2_region_t r2_at(r2_buf_t buf, uint64_t offset_bytes)
{
    return (r2_region_t){.buf = buf, .offset_bytes = offset_bytes};
}

/** Notes the longest message (equal on all ranks): decides digest and chunk length. */
void r2_plan_note_message(r2_schedule_t *schedule, uint64_t bytes);

/**
 * Each adds one op, or none for 0 bytes.
 * @param deps may hold R2_OP_NONE.
 * @return the op, or R2_OP_NONE.
 */
uint32_t r2_add_send(r2_schedule_t *schedule, r2_msg_t msg, r2_region_t src, const uint32_t *deps,
                     uint32_t dep_count);
uint32_t r2_add_recv(r2_schedule_t *schedule, r2_msg_t msg, r2_region_t dst, const uint32_t *deps,
                     uint32_t dep_count);
uint32_t r2_add_copy(r2_schedule_t *schedule, r2_region_t src, r2_region_t dst, uint64_t bytes,
                     const uint32_t *deps, uint32_t dep_count);
/** dst = src OP dst. */
uint32_t r2_add_reduce(r2_schedule_t *schedule, r2_region_t src, r2_region_t dst, uint64_t bytes,
                       const uint32_t *deps, uint32_t dep_count);
/** The same of a slot of scratch memory that no other op reads until it is written again. */
uint32_t r2_add_reduce_slot(r2_schedule_t *schedule, r2_region_t slot, r2_region_t dst,
                            uint64_t bytes, const uint32_t *deps, uint32_t dep_count);

#endif
