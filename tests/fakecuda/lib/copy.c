/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Copies and fills. They return as early as the real ones may: what looks synchronous is not
 * always.
 */
#include "fakecuda/lib/fc.h"

#include <stdlib.h>
#include <string.h>

typedef enum want { HOST, DEVICE, ANY } want_t;

/* One end of a copy. */
typedef struct side {
    uintptr_t at;
    bool is_on_device, is_pageable, sync_memops;
    char *rw;
    size_t pitch; /* from row to row */
} side_t;

/* What is copied: rows of so many bytes, or one piece. */
typedef struct shape {
    size_t bytes, rows;
} shape_t;

/* The largest pitch: CU_DEVICE_ATTRIBUTE_MAX_PITCH of all devices so far. */
#define MAX_PITCH 2147483647u

static CUresult look(uintptr_t at, size_t bytes, want_t want, side_t *side_p)
{
    const fc_alloc_t *alloc = fc_find(at);

    *side_p = (side_t){.at = at, .is_pageable = NULL == alloc, .rw = (char *) at};
    if (NULL == alloc) {
        return DEVICE == want || fc_in_arena(at) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    }
    if (HOST == want && fc_is_device(alloc)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    side_p->is_on_device =
        ANY == want ? fc_is_device(alloc) || FC_MANAGED == alloc->kind : DEVICE == want;
    side_p->sync_memops = alloc->sync_memops;
    side_p->rw = fc_reach(at, bytes);
    return NULL == side_p->rw ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static void count(const side_t *to, const side_t *from, size_t bytes, bool is_async)
{
    static const fc_count_t counts[2][2] = {{FC_copies_h2h, FC_copies_h2d},
                                            {FC_copies_d2h, FC_copies_d2d}};
    fc_count_t which = counts[from->is_on_device][to->is_on_device];

    ++fc.counters[which];
    fc.counters[which + 1] += bytes;
    fc.counters[FC_pageable_copies] += is_async && (to->is_pageable || from->is_pageable);
}

static int engine_of(const side_t *to, const side_t *from)
{
    if (to->is_on_device == from->is_on_device) {
        return FC_INSIDE;
    }
    return to->is_on_device ? FC_IN : FC_OUT;
}

/* Device to device returns at once, even the synchronous one, and so does pageable to device, whose
 * bytes are taken before. */
static bool waits(const side_t *to, const side_t *from, bool is_async)
{
    return to->is_pageable ||
           (!is_async && (to->sync_memops || from->sync_memops || !to->is_on_device ||
                          (!from->is_on_device && !from->is_pageable)));
}

/* Rows one behind the other are one. */
static fc_span_t span_of(const side_t *side, shape_t shape, bool writes)
{
    if (shape.rows > 1 && side->pitch == shape.bytes) {
        return (fc_span_t){side->at, shape.rows * shape.bytes, writes, 0, 0};
    }
    return (fc_span_t){side->at, shape.bytes, writes, shape.rows, side->pitch};
}

/* The bytes as they are now. */
static void take(fc_op_t *op, const side_t *from, shape_t shape)
{
    op->owned = malloc(shape.rows * shape.bytes);
    for (size_t row = 0; row < shape.rows; ++row) {
        memcpy(op->owned + row * shape.bytes, from->rw + row * from->pitch, shape.bytes);
    }
    op->from = op->owned;
    op->from_pitch = shape.bytes;
}

static CUresult copy(const char *name, const side_t *to, const side_t *from, shape_t shape,
                     fc_stream_t *stream, bool is_async)
{
    const fc_span_t spans[2] = {span_of(from, shape, false), span_of(to, shape, true)};
    fc_op_t *op = fc_op_new(FC_OP_COPY, name);

    count(to, from, shape.rows * shape.bytes, is_async);
    op->to = to->rw;
    op->from = from->rw;
    op->bytes = shape.bytes;
    op->rows = shape.rows;
    op->to_pitch = to->pitch;
    op->from_pitch = from->pitch;
    op->engine = engine_of(to, from);
    if (from->is_pageable) {
        take(op, from, shape);
    }
    fc_enqueue(stream, op, spans, 2);
    if (!waits(to, from, is_async)) {
        return CUDA_SUCCESS;
    }
    fc_wait(&stream->clock);
    return stream->ctx->sticky;
}

typedef struct copy_form {
    fc_call_t call;
    want_t to, from;
    bool is_async;
} copy_form_t;

static CUresult run(copy_form_t form, uintptr_t to_at, uintptr_t from_at, size_t bytes,
                    CUstream handle)
{
    CUresult rc = fc_enter(form.call);
    fc_stream_t *stream = CUDA_SUCCESS == rc ? fc_stream(handle, &rc) : NULL;
    side_t to, from;

    if (NULL == stream || 0 == bytes) {
        return fc_leave(rc);
    }
    rc = look(to_at, bytes, form.to, &to);
    rc = CUDA_SUCCESS == rc ? look(from_at, bytes, form.from, &from) : rc;
    if (CUDA_SUCCESS == rc) {
        rc = copy(fc_call_name(form.call), &to, &from, (shape_t){bytes, 1}, stream, form.is_async);
    }
    return fc_leave(rc);
}

/* ---- in two dimensions */

/* One end of a copy as the caller describes it. */
typedef struct end {
    size_t x, y, pitch;
    int type;
    const void *host;
    CUdeviceptr device;
} end_t;

/* Rows are in one allocation, or in one range of addresses that several are mapped to. */
static bool is_together(uintptr_t first, uintptr_t last)
{
    const fc_alloc_t *one = fc_find(first), *other = fc_find(last);
    uintptr_t base;
    size_t bytes;

    return one == other || (fc_range_of(first, &base, &bytes) && last - base < bytes);
}

static CUresult look_at_rows(const end_t *end, shape_t shape, side_t *side_p)
{
    const want_t wants[] = {[CU_MEMORYTYPE_HOST] = HOST,
                            [CU_MEMORYTYPE_DEVICE] = DEVICE,
                            [CU_MEMORYTYPE_UNIFIED] = ANY};
    const bool is_host = CU_MEMORYTYPE_HOST == end->type;
    const uintptr_t at =
        (is_host ? (uintptr_t) end->host : (uintptr_t) end->device) + end->y * end->pitch + end->x;
    const size_t bytes = (shape.rows - 1) * end->pitch + shape.bytes;
    CUresult rc;

    if ((!is_host && CU_MEMORYTYPE_DEVICE != end->type && CU_MEMORYTYPE_UNIFIED != end->type) ||
        end->pitch < end->x + shape.bytes || end->pitch > MAX_PITCH ||
        !is_together(at, at + bytes - 1)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    rc = look(at, bytes, wants[end->type], side_p);
    side_p->pitch = end->pitch;
    return rc;
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *what, CUstream handle)
{
    CUresult rc = fc_enter(FC_CALL_cuMemcpy2DAsync_v2);
    fc_stream_t *stream = CUDA_SUCCESS == rc ? fc_stream(handle, &rc) : NULL;
    const shape_t shape = {what->WidthInBytes, what->Height};
    const end_t ends[2] = {{what->srcXInBytes, what->srcY, what->srcPitch, what->srcMemoryType,
                            what->srcHost, what->srcDevice},
                           {what->dstXInBytes, what->dstY, what->dstPitch, what->dstMemoryType,
                            what->dstHost, what->dstDevice}};
    side_t to, from;

    if (NULL == stream || 0 == shape.bytes || 0 == shape.rows) {
        return fc_leave(rc);
    }
    rc = look_at_rows(&ends[0], shape, &from);
    rc = CUDA_SUCCESS == rc ? look_at_rows(&ends[1], shape, &to) : rc;
    if (CUDA_SUCCESS == rc) {
        ++fc.counters[FC_copies_2d];
        fc.counters[FC_rows_2d] += shape.rows;
        rc = copy(fc_call_name(FC_CALL_cuMemcpy2DAsync_v2), &to, &from, shape, stream, true);
    }
    return fc_leave(rc);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    const copy_form_t form = {FC_CALL_cuMemcpyHtoD_v2, DEVICE, HOST, false};

    return run(form, to, (uintptr_t) from, bytes, NULL);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    const copy_form_t form = {FC_CALL_cuMemcpyDtoH_v2, HOST, DEVICE, false};

    return run(form, (uintptr_t) to, from, bytes, NULL);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    const copy_form_t form = {FC_CALL_cuMemcpyDtoD_v2, DEVICE, DEVICE, false};

    return run(form, to, from, bytes, NULL);
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    const copy_form_t form = {FC_CALL_cuMemcpy, ANY, ANY, false};

    return run(form, to, from, bytes, NULL);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    const copy_form_t form = {FC_CALL_cuMemcpyHtoDAsync_v2, DEVICE, HOST, true};

    return run(form, to, (uintptr_t) from, bytes, stream);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    const copy_form_t form = {FC_CALL_cuMemcpyDtoHAsync_v2, HOST, DEVICE, true};

    return run(form, (uintptr_t) to, from, bytes, stream);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    const copy_form_t form = {FC_CALL_cuMemcpyDtoDAsync_v2, DEVICE, DEVICE, true};

    return run(form, to, from, bytes, stream);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    const copy_form_t form = {FC_CALL_cuMemcpyAsync, ANY, ANY, true};

    return run(form, to, from, bytes, stream);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from, CUcontext from_ctx,
                           size_t bytes, CUstream stream)
{
    const copy_form_t form = {FC_CALL_cuMemcpyPeerAsync, DEVICE, DEVICE, true};

    (void) to_ctx, (void) from_ctx;
    return run(form, to, from, bytes, stream);
}

static CUresult fill(fc_call_t call, CUdeviceptr to, uint32_t value, size_t width, size_t elements,
                     CUstream handle)
{
    CUresult rc = fc_enter(call);
    fc_stream_t *stream = CUDA_SUCCESS == rc ? fc_stream(handle, &rc) : NULL;
    fc_span_t span = {to, width * elements, true, 0, 0};
    fc_op_t *op;
    side_t side;

    if (NULL == stream || 0 == elements) {
        return fc_leave(rc);
    }
    rc = look(to, span.bytes, DEVICE, &side);
    if (CUDA_SUCCESS != rc || 0 != to % width) {
        return fc_leave(CUDA_ERROR_INVALID_VALUE);
    }
    op = fc_op_new(FC_OP_FILL, fc_call_name(call));
    op->to = side.rw;
    op->bytes = span.bytes;
    op->width = width;
    op->value = value;
    ++fc.counters[FC_fills];
    fc_enqueue(stream, op, &span, 1);
    return fc_leave(rc);
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t elements)
{
    return fill(FC_CALL_cuMemsetD8_v2, to, value, 1, elements, NULL);
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t elements)
{
    return fill(FC_CALL_cuMemsetD32_v2, to, value, 4, elements, NULL);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t elements, CUstream stream)
{
    return fill(FC_CALL_cuMemsetD8Async, to, value, 1, elements, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t elements, CUstream stream)
{
    return fill(FC_CALL_cuMemsetD32Async, to, value, 4, elements, stream);
}
