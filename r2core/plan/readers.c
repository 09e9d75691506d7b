/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Who reads a rank's contributions: a reduce_scatter in place writes its result over them.
 *
 * The result goes to the start of the buffer, over blocks that are still being read. Segments are
 * equally long in all blocks, and no block begins before the first, so what segment k of the result
 * overwrites belongs to segments 0 .. k: its copy waits for lower or equal segments only. Where
 * staging memory waits for lower segments only, no circle of ranks can wait for each other.
 */
#include "r2_config.h"

#include "plan/readers.h"

#include <stdlib.h>

#include "r2/schedule.h"

r2_status_t r2_readers_init(r2_readers_t *readers, const r2_layout_t *blocks,
                            uint64_t segment_bytes, uint32_t segments)
{
    const size_t count = (size_t) blocks->size;

    *readers = (r2_readers_t){
        .blocks = blocks, .segment_bytes = segment_bytes, .segments = segments};
    readers->of = malloc((count * segments + 2 * count + 1) * sizeof(*readers->of));
    if (NULL == readers->of) {
        return R2_ERR_NO_MEMORY;
    }
    readers->waits = readers->of + count * segments;
    for (size_t i = 0; i < count * segments; ++i) {
        readers->of[i] = R2_OP_NONE;
    }
    return R2_OK;
}

void r2_readers_fini(r2_readers_t *readers)
{
    free(readers->of);
    readers->of = NULL;
}

void r2_readers_note(r2_readers_t *readers, int32_t block, uint32_t k, uint32_t op)
{
    readers->of[(size_t) block * readers->segments + k] = op;
}

uint32_t r2_readers_overwritten(r2_readers_t *readers, int32_t own, uint32_t k, uint64_t bytes,
                                uint32_t folded)
{
    const uint64_t begin = k * readers->segment_bytes, end = begin + bytes;
    const uint64_t *starts = readers->blocks->start;
    uint32_t count = 0;

    readers->waits[count++] = folded;
    for (int32_t block = 0; block < readers->blocks->size && starts[block] < end; ++block) {
        const uint64_t start = starts[block];
        uint32_t first = begin < start ? 0 : (uint32_t) ((begin - start) / readers->segment_bytes);

        for (uint32_t m = first; m < readers->segments && start + m * readers->segment_bytes < end;
             ++m) {
            /* our own fold of segment k comes before its copy anyway */
            if (block != own || m != k) {
                readers->waits[count++] = readers->of[(size_t) block * readers->segments + m];
            }
        }
    }
    return count;
}
