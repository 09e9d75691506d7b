/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Cuts of the user's buffers, and what ops touch between them.
 */
#include "r2_config.h"

#include "exec/touch.h"

#include <stdlib.h>
#include <string.h>

static int r2_touch_order(const void *a, const void *b)
{
    const uint64_t *one = a, *other = b;

    return (*one > *other) - (*one < *other);
}

static uint32_t r2_touch_note(uint64_t *cuts, uint32_t count, const r2_region_t *region,
                              uint64_t bytes)
{
    cuts[count] = region->offset_bytes;
    cuts[count + 1] = region->offset_bytes + bytes;
    return count + 2;
}

/* @param cuts of regions in `buf`, [4 * op_count]. @return how many different ones. */
static uint32_t r2_touch_cut(const r2_schedule_t *schedule, r2_buf_t buf, uint64_t *cuts)
{
    uint32_t count = 0, different = 0;

    for (uint32_t i = 0; i < schedule->op_count; ++i) {
        const r2_op_t *op = &schedule->ops[i];

        if (r2_touch_reads_src(op) && buf == op->src.buf) {
            count = r2_touch_note(cuts, count, &op->src, op->bytes);
        }
        if (r2_touch_writes_dst(op) && buf == op->dst.buf) {
            count = r2_touch_note(cuts, count, &op->dst, op->bytes);
        }
    }
    if (count > 0) {
        qsort(cuts, count, sizeof(*cuts), r2_touch_order);
    }
    for (uint32_t i = 0; i < count; ++i) {
        if (0 == different || cuts[different - 1] != cuts[i]) {
            cuts[different++] = cuts[i];
        }
    }
    return different;
}

/* The segment that begins at an offset; one is a cut. */
static uint32_t r2_touch_find(const r2_touch_side_t *side, uint64_t offset)
{
    const uint64_t *found =
        bsearch(&offset, side->cuts, side->count + 1u, sizeof(offset), r2_touch_order);

    return (uint32_t) (found - side->cuts);
}

static r2_touch_span_t r2_touch_span(const r2_touch_t *touch, const r2_region_t *region,
                                     uint64_t bytes)
{
    r2_touch_span_t span = {0, 0};

    if (R2_BUF_SCRATCH != region->buf) {
        const r2_touch_side_t *side = &touch->sides[R2_BUF_IN == region->buf ? 0 : 1];

        span.first = r2_touch_find(side, region->offset_bytes);
        span.end = r2_touch_find(side, region->offset_bytes + bytes);
    }
    return span;
}

static void r2_touch_fill(const r2_touch_t *touch, const r2_schedule_t *schedule,
                          r2_touch_span_t *src, r2_touch_span_t *dst, uint32_t *writers[])
{
    for (uint32_t i = 0; i < schedule->op_count; ++i) {
        const r2_op_t *op = &schedule->ops[i];

        src[i] = dst[i] = (r2_touch_span_t){0, 0};
        if (r2_touch_reads_src(op)) {
            src[i] = r2_touch_span(touch, &op->src, op->bytes);
        }
        if (r2_touch_writes_dst(op)) {
            dst[i] = r2_touch_span(touch, &op->dst, op->bytes);
            for (uint32_t s = dst[i].first; s < dst[i].end; ++s) {
                ++writers[R2_BUF_IN == op->dst.buf ? 0 : 1][s];
            }
        }
    }
}

/* @param found of IN, then of OUT, at 4 * op_count. */
static r2_touch_t *r2_touch_copy(const r2_schedule_t *schedule, const uint64_t *found, uint32_t in,
                                 uint32_t out)
{
    const size_t ops = schedule->op_count, cuts = (size_t) in + out;
    r2_touch_t *touch = calloc(1, sizeof(*touch) + cuts * sizeof(uint64_t) +
                                      2 * ops * sizeof(r2_touch_span_t) + cuts * sizeof(uint32_t));
    r2_touch_span_t *spans;
    uint64_t *own_cuts;
    uint32_t *writers;

    if (NULL == touch) {
        return NULL;
    }
    own_cuts = (uint64_t *) (touch + 1);
    spans = (r2_touch_span_t *) (own_cuts + cuts);
    writers = (uint32_t *) (spans + 2 * ops);
    memcpy(own_cuts, found, in * sizeof(*found));
    memcpy(own_cuts + in, found + 4 * ops, out * sizeof(*found));
    touch->sides[0] = (r2_touch_side_t){in > 0 ? in - 1 : 0, own_cuts, writers};
    touch->sides[1] = (r2_touch_side_t){out > 0 ? out - 1 : 0, own_cuts + in, writers + in};
    touch->src = spans;
    touch->dst = spans + ops;
    r2_touch_fill(touch, schedule, spans, spans + ops, (uint32_t *[]){writers, writers + in});
    return touch;
}

r2_touch_t *r2_touch_create(const r2_schedule_t *schedule)
{
    const size_t ops = schedule->op_count;
    uint64_t *found = calloc(2 * 4 * ops + 1, sizeof(*found));
    r2_touch_t *touch;
    uint32_t in, out;

    if (NULL == found) {
        return NULL;
    }
    in = r2_touch_cut(schedule, R2_BUF_IN, found);
    out = r2_touch_cut(schedule, R2_BUF_OUT, found + 4 * ops);
    touch = r2_touch_copy(schedule, found, in, out);
    free(found);
    return touch;
}
