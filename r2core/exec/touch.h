/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Which bytes of the user's buffers the ops of a schedule read and write: worked out once for each
 * program whose buffers are not the CPU's (exec/staging.h).
 */
#ifndef R2_EXEC_TOUCH_H
#define R2_EXEC_TOUCH_H

#include "r2/schedule.h"

enum { R2_TOUCH_SIDES = 2 }; /* R2_BUF_IN, R2_BUF_OUT */

/** Segments of a buffer: first, and the one behind the last. Empty for staging memory. */
typedef struct r2_touch_span {
    uint32_t first, end;
} r2_touch_span_t;

/** A buffer, cut wherever the region of an op begins or ends, and messages into pieces: every op
 * touches all of a segment or nothing of it. */
typedef struct r2_touch_side {
    uint32_t count;       /* segments; 0: no op touches it */
    const uint64_t *cuts; /* bytes from the buffer's start, rising: count + 1 */
    /* bytes from the start of a copy without what no op touches: count + 1; as aligned as in the
     * buffer, to 64 bytes */
    const uint64_t *places;
    const uint32_t *writers; /* how many ops write a segment */
} r2_touch_side_t;

/** Segments of a buffer that an op reads before any op has written them. */
typedef struct r2_touch_load {
    uint32_t which; /* side */
    uint32_t op;    /* the first that reads them */
    r2_touch_span_t span;
} r2_touch_load_t;

/** What an op finds where the user has it. */
typedef enum r2_touch_direct {
    /* a GPU that reduces reads it, since nobody has written it before */
    R2_TOUCH_DIRECT_SRC = 1,
    R2_TOUCH_DIRECT_DST = 2, /* it writes the copy all the same */
    /* what a RECV op brings may be put there, and need not be in the copy: no op writes it
     * afterwards, and none but SEND ops read it */
    R2_TOUCH_DIRECT_RECV = 4,
    /* a COPY op reads what nobody has written, and writes what the same holds for as for a RECV op:
     * a GPU that has both copies it there */
    R2_TOUCH_DIRECT_COPY = 8
} r2_touch_direct_t;

typedef struct r2_touch {
    struct r2_touch *next; /* of the program's: for other lengths */
    uint64_t gpu_bytes;    /* REDUCE ops from this length on are the GPU's; R2_TOUCH_NO_GPU: none */
    r2_touch_side_t sides[R2_TOUCH_SIDES];
    const r2_touch_span_t *src, *dst; /* by op */
    const uint8_t *direct;            /* by op: r2_touch_direct_t */
    const r2_touch_load_t *loads;     /* in the order of the ops that read them; none twice */
    uint32_t load_count;
    size_t bytes; /* of all this */
} r2_touch_t;

#define R2_TOUCH_NO_GPU UINT64_MAX

/** One piece of memory. @param gpu_bytes as r2_touch_t has it @return NULL: no memory; else to be
 * given to free(). */
r2_touch_t *r2_touch_create(const r2_schedule_t *schedule, uint64_t gpu_bytes);

static inline bool r2_touch_is_gpus(const r2_op_t *op, uint64_t gpu_bytes)
{
    return R2_OP_REDUCE == op->kind && R2_TOUCH_NO_GPU != gpu_bytes && op->bytes >= gpu_bytes;
}

/** @param offset_bytes where a region begins. @return its first segment. */
uint32_t r2_touch_find(const r2_touch_side_t *side, uint64_t offset_bytes);

/** Does an op read (write) its destination (source)? SEND, REDUCE and COPY read src; REDUCE reads
 * dst, too; RECV, REDUCE and COPY write dst. */
static inline bool r2_touch_reads_src(const r2_op_t *op)
{
    return R2_OP_RECV != op->kind;
}

static inline bool r2_touch_writes_dst(const r2_op_t *op)
{
    return R2_OP_SEND != op->kind;
}

#endif
