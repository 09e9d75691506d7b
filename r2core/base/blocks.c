/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Memory of any length from free lists: fresh pages cost more than the copies into them.
 */
#include "r2_config.h"

#include "base/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/util.h"

void r2_blocks_init(r2_blocks_t *blocks, size_t keep_bytes)
{
    memset(blocks, 0, sizeof(*blocks));
    blocks->keep_bytes = R2_POOL_KEEP > 0 ? keep_bytes : 0;
}

static size_t r2_blocks_length(uint32_t class)
{
    return (size_t) R2_BLOCK_BYTES << class;
}

static uint32_t r2_blocks_class(size_t bytes)
{
    return bytes <= R2_BLOCK_BYTES ? 0
                                   : 64u - (uint32_t) __builtin_clzll((bytes - 1) / R2_BLOCK_BYTES);
}

static void *r2_blocks_pop(r2_blocks_t *blocks, uint32_t class)
{
    void *block = blocks->free[class];

    blocks->free[class] = *(void **) block;
    blocks->kept_bytes -= r2_blocks_length(class);
    return block;
}

void r2_blocks_fini(r2_blocks_t *blocks)
{
    for (uint32_t class = 0; class < R2_BLOCK_CLASSES; ++class) {
        while (NULL != blocks->free[class]) {
            free(r2_blocks_pop(blocks, class));
        }
    }
}

void *r2_blocks_get(r2_blocks_t *blocks, size_t bytes)
{
    const uint32_t class = r2_blocks_class(bytes);

    if (class >= R2_BLOCK_CLASSES) {
        return NULL;
    }
    return NULL != blocks->free[class] ? r2_blocks_pop(blocks, class)
                                       : aligned_alloc(R2_BLOCK_BYTES, r2_blocks_length(class));
}

/* The longest go first: they are the fewest, and cost least per byte to have again. */
static void r2_blocks_make_room(r2_blocks_t *blocks, size_t bytes)
{
    uint32_t class = R2_BLOCK_CLASSES - 1;

    while (blocks->kept_bytes + bytes > blocks->keep_bytes) {
        while (NULL == blocks->free[class]) {
            --class;
        }
        free(r2_blocks_pop(blocks, class));
    }
}

void r2_blocks_put(r2_blocks_t *blocks, void *block, size_t bytes)
{
    const uint32_t class = r2_blocks_class(bytes);

    if (NULL == block) {
        return;
    }
    if (r2_blocks_length(class) > blocks->keep_bytes) {
        free(block);
        return;
    }
    r2_blocks_make_room(blocks, r2_blocks_length(class));
    *(void **) block = blocks->free[class];
    blocks->free[class] = block;
    blocks->kept_bytes += r2_blocks_length(class);
}
