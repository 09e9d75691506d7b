/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Memory of any length from free lists: no allocation once warm.
 */
#ifndef R2_BASE_BLOCKS_H
#define R2_BASE_BLOCKS_H

#include <stddef.h>

/* Lengths are rounded up to 64 bytes times a power of two; the longest is 64 GiB. */
#define R2_BLOCK_BYTES   64u
#define R2_BLOCK_CLASSES 31u

/** Free blocks by length. One lock of the user guards it. */
typedef struct r2_blocks {
    void *free[R2_BLOCK_CLASSES]; /* owned lists, linked through the first word */
    size_t kept_bytes;            /* in those lists */
    size_t keep_bytes;            /* the most that they may hold; beyond that memory goes back */
} r2_blocks_t;

void r2_blocks_init(r2_blocks_t *blocks, size_t keep_bytes);
/** All blocks were given back, or are freed by free(). */
void r2_blocks_fini(r2_blocks_t *blocks);

/** @return memory with undefined content, aligned to R2_BLOCK_BYTES, or NULL. */
void *r2_blocks_get(r2_blocks_t *blocks, size_t bytes);
/** @param bytes as asked for. @param block NULL: nothing. */
void r2_blocks_put(r2_blocks_t *blocks, void *block, size_t bytes);

#endif
