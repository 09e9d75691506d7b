/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Who reads a rank's contributions: a reduce_scatter in place writes its result over them.
 */
#ifndef R2_PLAN_READERS_H
#define R2_PLAN_READERS_H

#include "plan/layout.h"

typedef struct r2_readers {
    const r2_layout_t *blocks; /* borrowed */
    uint64_t segment_bytes;    /* in all blocks */
    uint32_t segments;         /* of the longest block */
    uint32_t *of;              /* owned; [block * segments + k], the op that reads it */
    uint32_t *waits;           /* owned; what a copy waits for: two readers per block, one more */
} r2_readers_t;

/** @return R2_OK or R2_ERR_NO_MEMORY; r2_readers_fini() in both cases. */
r2_status_t r2_readers_init(r2_readers_t *readers, const r2_layout_t *blocks,
                            uint64_t segment_bytes, uint32_t segments);
void r2_readers_fini(r2_readers_t *readers);

/** Segment k of a block is read by an op, and by no other after it. */
void r2_readers_note(r2_readers_t *readers, int32_t block, uint32_t k, uint32_t op);

/**
 * Who reads what segment k of the result of block `own` overwrites.
 * @param folded op after which the result is complete: the first in readers->waits.
 * @return number of readers->waits.
 */
uint32_t r2_readers_overwritten(r2_readers_t *readers, int32_t own, uint32_t k, uint64_t bytes,
                                uint32_t folded);

#endif
