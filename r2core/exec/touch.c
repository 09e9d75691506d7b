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

#include "base/util.h"
#include "r2/device_cost.h"

/* Elements of reductions and cache lines. */
#define R2_TOUCH_ALIGN 64u

static int r2_touch_order(const void *a, const void *b)
{
    const uint64_t *one = a, *other = b;

    return (*one > *other) - (*one < *other);
}

/* Long messages are copied piece by piece: the first ones leave, and the last ones come, while
 * others are copied. Not those as short as segments of plans, nor in more pieces than that takes:
 * each costs the driver a call. */
static uint64_t r2_touch_piece_bytes(const r2_op_t *op)
{
    const bool is_message = R2_OP_SEND == op->kind || R2_OP_RECV == op->kind;

    return r2_max(is_message ? r2_device_piece(op->bytes, R2_TOUCH_ALIGN) : op->bytes,
                  (uint64_t) 1);
}

/* @return the most cuts that a buffer may have. */
static size_t r2_touch_room(const r2_schedule_t *schedule)
{
    size_t room = 0;

    for (uint32_t i = 0; i < schedule->op_count; ++i) {
        const r2_op_t *op = &schedule->ops[i];

        room += 2 * (2 + op->bytes / r2_touch_piece_bytes(op));
    }
    return room;
}

static uint32_t r2_touch_note(uint64_t *cuts, uint32_t count, const r2_region_t *region,
                              const r2_op_t *op)
{
    const uint64_t piece_bytes = r2_touch_piece_bytes(op);

    for (uint64_t at = 0; at < op->bytes; at += piece_bytes) {
        cuts[count++] = region->offset_bytes + at;
    }
    cuts[count] = region->offset_bytes + op->bytes;
    return count + 1;
}

/* @param cuts of regions in `buf`, [r2_touch_room()]. @return how many different ones. */
static uint32_t r2_touch_cut(const r2_schedule_t *schedule, r2_buf_t buf, uint64_t *cuts)
{
    uint32_t count = 0, different = 0;

    for (uint32_t i = 0; i < schedule->op_count; ++i) {
        const r2_op_t *op = &schedule->ops[i];

        if (r2_touch_reads_src(op) && buf == op->src.buf) {
            count = r2_touch_note(cuts, count, &op->src, op);
        }
        if (r2_touch_writes_dst(op) && buf == op->dst.buf) {
            count = r2_touch_note(cuts, count, &op->dst, op);
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

/* What is filled in. */
typedef struct r2_touch_filled {
    uint64_t gpu_bytes;
    uint64_t *places[R2_TOUCH_SIDES]; /* marks, afterwards: not 0 is touched */
    uint32_t *writers[R2_TOUCH_SIDES];
    r2_touch_span_t *src, *dst;
    r2_touch_load_t *loads;
    uint8_t *direct;
} r2_touch_filled_t;

enum { R2_TOUCH_TOUCHED = 1, R2_TOUCH_WRITTEN = 2, R2_TOUCH_NEEDED = 4 };

/* Marks what an op touches. What it reads and no op before it touches has to be loaded, in pieces
 * of so many bytes at most, or of one segment. */
static void r2_touch_mark(r2_touch_t *touch, const r2_touch_filled_t *filled, uint32_t which,
                          r2_touch_span_t span, uint32_t op, uint64_t piece_bytes)
{
    const uint64_t *cuts = touch->sides[which].cuts;
    uint64_t *places = filled->places[which];

    for (uint32_t s = span.first, end; s < span.end; s = r2_max(end, s + 1)) {
        for (end = s; end < span.end && 0 == places[end] &&
                      (end == s || cuts[end + 1] - cuts[s] <= piece_bytes);
             ++end) {
            places[end] = R2_TOUCH_TOUCHED;
        }
        if (piece_bytes > 0 && end > s) {
            filled->loads[touch->load_count++] = (r2_touch_load_t){which, op, {s, end}};
        }
    }
}

static bool r2_touch_is(const uint64_t *places, r2_touch_span_t span, uint64_t mark)
{
    for (uint32_t s = span.first; s < span.end; ++s) {
        if (0 != (places[s] & mark)) {
            return true;
        }
    }
    return false;
}

/* What the GPU reads in place of a copy. */
static uint8_t r2_touch_direct(const r2_touch_filled_t *filled, const r2_op_t *op, uint32_t index)
{
    const uint32_t from = R2_BUF_IN == op->src.buf ? 0 : 1, to = R2_BUF_IN == op->dst.buf ? 0 : 1;
    const bool src = R2_BUF_SCRATCH != op->src.buf &&
                     !r2_touch_is(filled->places[from], filled->src[index], R2_TOUCH_WRITTEN);
    const bool dst = R2_BUF_SCRATCH != op->dst.buf &&
                     !r2_touch_is(filled->places[to], filled->dst[index], R2_TOUCH_WRITTEN);

    if (R2_OP_COPY == op->kind) {
        return src && R2_BUF_OUT == op->dst.buf ? R2_TOUCH_DIRECT_COPY : 0;
    }
    return r2_touch_is_gpus(op, filled->gpu_bytes)
               ? (uint8_t) ((src ? R2_TOUCH_DIRECT_SRC : 0) | (dst ? R2_TOUCH_DIRECT_DST : 0))
               : 0;
}

static void r2_touch_fill(r2_touch_t *touch, const r2_schedule_t *schedule,
                          const r2_touch_filled_t *filled)
{
    for (uint32_t i = 0; i < schedule->op_count; ++i) {
        const r2_op_t *op = &schedule->ops[i];
        const uint32_t from = R2_BUF_IN == op->src.buf ? 0 : 1;
        const uint32_t to = R2_BUF_IN == op->dst.buf ? 0 : 1;

        filled->src[i] = filled->dst[i] = (r2_touch_span_t){0, 0};
        if (r2_touch_reads_src(op)) {
            filled->src[i] = r2_touch_span(touch, &op->src, op->bytes);
        }
        if (r2_touch_writes_dst(op)) {
            filled->dst[i] = r2_touch_span(touch, &op->dst, op->bytes);
        }
        filled->direct[i] = r2_touch_direct(filled, op, i);
        if (0 == (filled->direct[i] & R2_TOUCH_DIRECT_SRC)) {
            r2_touch_mark(touch, filled, from, filled->src[i], i, r2_touch_piece_bytes(op));
        }
        r2_touch_mark(touch, filled, to, filled->dst[i], i,
                      R2_OP_REDUCE == op->kind && 0 == (filled->direct[i] & R2_TOUCH_DIRECT_DST)
                          ? op->bytes
                          : 0);
        for (uint32_t s = filled->dst[i].first; s < filled->dst[i].end; ++s) {
            ++filled->writers[to][s];
            filled->places[to][s] |= R2_TOUCH_WRITTEN;
        }
    }
}

static void r2_touch_need(uint64_t *places, r2_touch_span_t span)
{
    for (uint32_t s = span.first; s < span.end; ++s) {
        places[s] |= R2_TOUCH_NEEDED;
    }
}

/* From the last op to the first, since an op waits for earlier ones only. */
static void r2_touch_find_final(const r2_schedule_t *schedule, const r2_touch_filled_t *filled)
{
    for (uint32_t i = schedule->op_count; i-- > 0;) {
        const r2_op_t *op = &schedule->ops[i];

        const bool is_final = R2_BUF_OUT == op->dst.buf &&
                              !r2_touch_is(filled->places[1], filled->dst[i], R2_TOUCH_NEEDED);

        if (R2_OP_RECV == op->kind && is_final) {
            filled->direct[i] |= R2_TOUCH_DIRECT_RECV;
        }
        if (!is_final) {
            filled->direct[i] &= (uint8_t) ~R2_TOUCH_DIRECT_COPY;
        }
        if (R2_OP_SEND != op->kind && R2_BUF_SCRATCH != op->dst.buf) {
            r2_touch_need(filled->places[R2_BUF_IN == op->dst.buf ? 0 : 1], filled->dst[i]);
        }
        if ((R2_OP_REDUCE == op->kind || R2_OP_COPY == op->kind) && R2_BUF_SCRATCH != op->src.buf) {
            r2_touch_need(filled->places[R2_BUF_IN == op->src.buf ? 0 : 1], filled->src[i]);
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

/* @param found cuts of IN, then, at r2_touch_room(), of OUT. */
static r2_touch_t *r2_touch_copy(const r2_schedule_t *schedule, const uint64_t *found, uint32_t in,
                                 uint32_t out, uint64_t gpu_bytes)
{
    const size_t ops = schedule->op_count, cuts = (size_t) in + out;
    const size_t bytes = sizeof(r2_touch_t) + 2 * cuts * sizeof(uint64_t) +
                         2 * ops * sizeof(r2_touch_span_t) +
                         cuts * (sizeof(uint32_t) + sizeof(r2_touch_load_t)) + ops;
    r2_touch_t *touch = calloc(1, bytes);
    r2_touch_filled_t filled = {.gpu_bytes = gpu_bytes};
    uint64_t *own_cuts, *places;
    uint32_t *writers;

    if (NULL == touch) {
        return NULL;
    }
    own_cuts = (uint64_t *) (touch + 1);
    places = own_cuts + cuts;
    filled.src = (r2_touch_span_t *) (places + cuts);
    filled.dst = filled.src + ops;
    writers = (uint32_t *) (filled.src + 2 * ops);
    filled.loads = (r2_touch_load_t *) (writers + cuts);
    filled.direct = (uint8_t *) (filled.loads + cuts);
    memcpy(own_cuts, found, in * sizeof(*found));
    memcpy(own_cuts + in, found + r2_touch_room(schedule), out * sizeof(*found));
    filled.places[0] = places;
    filled.places[1] = places + in;
    filled.writers[0] = writers;
    filled.writers[1] = writers + in;
    touch->sides[0] = (r2_touch_side_t){in > 0 ? in - 1 : 0, own_cuts, places, writers};
    touch->sides[1] =
        (r2_touch_side_t){out > 0 ? out - 1 : 0, own_cuts + in, places + in, writers + in};
    touch->bytes = bytes;
    touch->gpu_bytes = gpu_bytes;
    touch->src = filled.src;
    touch->dst = filled.dst;
    touch->direct = filled.direct;
    touch->loads = filled.loads;
    r2_touch_fill(touch, schedule, &filled);
    r2_touch_find_final(schedule, &filled);
    r2_touch_pack(&touch->sides[0], places);
    r2_touch_pack(&touch->sides[1], places + in);
    return touch;
}

r2_touch_t *r2_touch_create(const r2_schedule_t *schedule, uint64_t gpu_bytes)
{
    const size_t room = r2_touch_room(schedule);
    uint64_t *found = calloc(2 * room + 1, sizeof(*found));
    r2_touch_t *touch;
    uint32_t in, out;

    if (NULL == found) {
        return NULL;
    }
    in = r2_touch_cut(schedule, R2_BUF_IN, found);
    out = r2_touch_cut(schedule, R2_BUF_OUT, found + room);
    touch = r2_touch_copy(schedule, found, in, out, gpu_bytes);
    free(found);
    return touch;
}
