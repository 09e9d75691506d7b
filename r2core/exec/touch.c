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

/* Elements of reductions and cache lines. */
#define R2_TOUCH_ALIGN 64u

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

uint32_t r2_touch_find(const r2_touch_side_t *side, uint64_t offset)
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

/* What is filled in of a side. */
typedef struct r2_touch_tables {
    uint64_t *places;
    uint32_t *writers;
} r2_touch_tables_t;

/* Marks what an op touches. What it reads and no op before it touches has to be loaded. */
static void r2_touch_mark(uint64_t *places, r2_touch_span_t span, bool reads,
                          r2_touch_load_t *loads, uint32_t *count_p, uint32_t which)
{
    for (uint32_t s = span.first, end; s < span.end; s = end + 1) {
        for (end = s; end < span.end && 0 == places[end]; ++end) {
            places[end] = 1;
        }
        if (reads && end > s) {
            loads[(*count_p)++] = (r2_touch_load_t){which, {s, end}};
        }
    }
}

/* @param tables of both sides; places are 1 for segments that are touched afterwards. */
static void r2_touch_fill(r2_touch_t *touch, const r2_schedule_t *schedule, r2_touch_span_t *src,
                          r2_touch_span_t *dst, r2_touch_load_t *loads,
                          const r2_touch_tables_t *tables)
{
    for (uint32_t i = 0; i < schedule->op_count; ++i) {
        const r2_op_t *op = &schedule->ops[i];
        uint32_t from, to;

        src[i] = dst[i] = (r2_touch_span_t){0, 0};
        if (r2_touch_reads_src(op)) {
            src[i] = r2_touch_span(touch, &op->src, op->bytes);
        }
        if (r2_touch_writes_dst(op)) {
            dst[i] = r2_touch_span(touch, &op->dst, op->bytes);
        }
        from = R2_BUF_IN == op->src.buf ? 0 : 1;
        to = R2_BUF_IN == op->dst.buf ? 0 : 1;
        r2_touch_mark(tables[from].places, src[i], true, loads, &touch->load_count, from);
        r2_touch_mark(tables[to].places, dst[i], R2_OP_REDUCE == op->kind, loads,
                      &touch->load_count, to);
        for (uint32_t s = dst[i].first; s < dst[i].end; ++s) {
            ++tables[to].writers[s];
        }
    }
}

/* Segments one behind the other, without those that nobody touches. */
static void r2_touch_pack(const r2_touch_side_t *side, uint64_t *places)
{
    uint64_t at = 0;

    for (uint32_t s = 0; s < side->count; ++s) {
        const bool is_touched = 0 != places[s];

        if (is_touched && (0 == s || places[s - 1] == at)) { /* behind a gap, or the first */
            at += (side->cuts[s] - at) % R2_TOUCH_ALIGN;
        }
        places[s] = at;
        at += is_touched ? side->cuts[s + 1] - side->cuts[s] : 0;
    }
    if (side->count > 0) {
        places[side->count] = at;
    }
}

/* @param found of IN, then of OUT, at 4 * op_count. */
static r2_touch_t *r2_touch_copy(const r2_schedule_t *schedule, const uint64_t *found, uint32_t in,
                                 uint32_t out)
{
    const size_t ops = schedule->op_count, cuts = (size_t) in + out;
    r2_touch_t *touch =
        calloc(1, sizeof(*touch) + 2 * cuts * sizeof(uint64_t) + 2 * ops * sizeof(r2_touch_span_t) +
                      cuts * (sizeof(uint32_t) + sizeof(r2_touch_load_t)));
    r2_touch_tables_t tables[R2_TOUCH_SIDES];
    r2_touch_span_t *spans;
    r2_touch_load_t *loads;
    uint64_t *own_cuts, *places;
    uint32_t *writers;

    if (NULL == touch) {
        return NULL;
    }
    own_cuts = (uint64_t *) (touch + 1);
    places = own_cuts + cuts;
    spans = (r2_touch_span_t *) (places + cuts);
    writers = (uint32_t *) (spans + 2 * ops);
    loads = (r2_touch_load_t *) (writers + cuts);
    memcpy(own_cuts, found, in * sizeof(*found));
    memcpy(own_cuts + in, found + 4 * ops, out * sizeof(*found));
    tables[0] = (r2_touch_tables_t){places, writers};
    tables[1] = (r2_touch_tables_t){places + in, writers + in};
    touch->sides[0] = (r2_touch_side_t){in > 0 ? in - 1 : 0, own_cuts, places, writers};
    touch->sides[1] =
        (r2_touch_side_t){out > 0 ? out - 1 : 0, own_cuts + in, places + in, writers + in};
    touch->src = spans;
    touch->dst = spans + ops;
    touch->loads = loads;
    r2_touch_fill(touch, schedule, spans, spans + ops, loads, tables);
    r2_touch_pack(&touch->sides[0], places);
    r2_touch_pack(&touch->sides[1], places + in);
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
