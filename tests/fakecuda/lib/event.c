/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Entry points for streams and events.
 */
#include "fakecuda/lib/fc.h"

#include <stdlib.h>

/* ---- streams */

static CUresult create_stream(fc_call_t call, CUstream *stream_p, unsigned flags)
{
    CUresult rc = fc_enter(call);

    if (CUDA_SUCCESS == rc) {
        *stream_p = fc_stream_new(fc_ctx(), flags, false);
        rc = NULL == *stream_p ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    }
    return fc_leave(rc);
}

CUresult cuStreamCreate(CUstream *stream_p, unsigned flags)
{
    return create_stream(FC_CALL_cuStreamCreate, stream_p, flags);
}

CUresult cuStreamCreateWithPriority(CUstream *stream_p, unsigned flags, int priority)
{
    (void) priority;
    return create_stream(FC_CALL_cuStreamCreateWithPriority, stream_p, flags);
}

/* Begins a call about a stream. @return NULL and *rc_p: it ends here. */
static fc_stream_t *enter(fc_call_t call, CUstream handle, CUresult *rc_p)
{
    *rc_p = fc_enter(call);
    return CUDA_SUCCESS == *rc_p ? fc_stream(handle, rc_p) : NULL;
}

/* Work that is under way ends all the same. */
CUresult cuStreamDestroy_v2(CUstream handle)
{
    CUresult rc;
    fc_stream_t *stream = enter(FC_CALL_cuStreamDestroy_v2, handle, &rc);

    if (NULL != stream && stream->is_null) {
        rc = CUDA_ERROR_INVALID_HANDLE;
    } else if (NULL != stream) {
        fc_stream_end(stream);
    }
    return fc_leave(rc);
}

CUresult cuStreamSynchronize(CUstream handle)
{
    CUresult rc;
    fc_stream_t *stream = enter(FC_CALL_cuStreamSynchronize, handle, &rc);

    if (NULL != stream) {
        fc_join_blocking(stream);
        fc_wait(&stream->clock);
        rc = stream->ctx->sticky;
    }
    return fc_leave(rc);
}

/* @return NOT_READY, or what became of it, which the host then knows. */
static CUresult query(const fc_clock_t *clock, const fc_ctx_t *ctx)
{
    ++fc.counters[FC_queries];
    if (!fc_reached(clock)) {
        return CUDA_ERROR_NOT_READY;
    }
    fc_host_knows(clock);
    return ctx->sticky;
}

CUresult cuStreamQuery(CUstream handle)
{
    CUresult rc;
    fc_stream_t *stream = enter(FC_CALL_cuStreamQuery, handle, &rc);

    if (NULL != stream) {
        fc_join_blocking(stream);
        rc = query(&stream->clock, stream->ctx);
    }
    return fc_leave(rc);
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *ctx_p)
{
    CUresult rc;
    fc_stream_t *stream = enter(FC_CALL_cuStreamGetCtx, handle, &rc);

    if (NULL != stream) {
        *ctx_p = stream->ctx;
    }
    return fc_leave(rc);
}

CUresult cuStreamGetFlags(CUstream handle, unsigned *flags_p)
{
    CUresult rc;
    fc_stream_t *stream = enter(FC_CALL_cuStreamGetFlags, handle, &rc);

    if (NULL != stream) {
        *flags_p = stream->flags;
    }
    return fc_leave(rc);
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status_p)
{
    CUresult rc;
    fc_stream_t *stream = enter(FC_CALL_cuStreamIsCapturing, handle, &rc);

    if (NULL != stream) {
        *status_p = CU_STREAM_CAPTURE_STATUS_NONE;
    }
    return fc_leave(rc);
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn fn, void *arg)
{
    CUresult rc;
    fc_stream_t *stream = enter(FC_CALL_cuLaunchHostFunc, handle, &rc);

    if (NULL != stream) {
        fc_op_t *op = fc_op_new(FC_OP_HOST, "cuLaunchHostFunc");
        op->fn = fn;
        op->fn_arg = arg;
        ++fc.counters[FC_host_functions];
        fc_enqueue(stream, op, NULL, 0);
    }
    return fc_leave(rc);
}

/* ---- events: never freed, so that late uses are found */

static bool is_event(const fc_event_t *event)
{
    return NULL != event && event->is_live;
}

CUresult cuEventCreate(CUevent *event_p, unsigned flags)
{
    CUresult rc = fc_enter(FC_CALL_cuEventCreate);
    fc_event_t *event = CUDA_SUCCESS == rc ? calloc(1, sizeof(*event)) : NULL;

    if (NULL != event) {
        event->is_live = true;
        event->flags = flags;
        event->ctx = fc_ctx();
        *event_p = event;
    }
    return fc_leave(rc);
}

CUresult cuEventDestroy_v2(CUevent event)
{
    CUresult rc = fc_enter(FC_CALL_cuEventDestroy_v2);

    if (CUDA_SUCCESS == rc && !is_event(event)) {
        rc = CUDA_ERROR_INVALID_HANDLE;
    } else if (CUDA_SUCCESS == rc) {
        event->is_live = false;
    }
    return fc_leave(rc);
}

static CUresult record(fc_event_t *event, fc_stream_t *stream)
{
    fc_op_t *op;

    if (!is_event(event)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (event->ctx != stream->ctx) {
        fc_mistake(FC_wrong_context, "an event of another context is recorded in stream %d",
                   stream->place);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    op = fc_op_new(FC_OP_RECORD, "cuEventRecord");
    op->event = event;
    op->event_ticket = ++event->ticket;
    fc_enqueue(stream, op, NULL, 0);
    event->is_recorded = true;
    event->clock = stream->clock;
    ++fc.counters[FC_records];
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream handle)
{
    CUresult rc;
    fc_stream_t *stream = enter(FC_CALL_cuEventRecord, handle, &rc);

    return fc_leave(NULL == stream ? rc : record(event, stream));
}

/* An event that was never recorded is nothing to wait for, as with the real one. */
CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags)
{
    CUresult rc;
    fc_stream_t *stream = enter(FC_CALL_cuStreamWaitEvent, handle, &rc);

    (void) flags;
    if (NULL != stream && !is_event(event)) {
        rc = CUDA_ERROR_INVALID_HANDLE;
    } else if (NULL != stream) {
        ++fc.counters[FC_stream_waits];
        fc_merge(&stream->clock, &event->clock);
    }
    return fc_leave(rc);
}

CUresult cuEventQuery(CUevent event)
{
    CUresult rc = fc_enter(FC_CALL_cuEventQuery);

    if (CUDA_SUCCESS == rc && !is_event(event)) {
        rc = CUDA_ERROR_INVALID_HANDLE;
    } else if (CUDA_SUCCESS == rc) {
        rc = query(&event->clock, event->ctx);
    }
    return fc_leave(rc);
}

CUresult cuEventSynchronize(CUevent event)
{
    CUresult rc = fc_enter(FC_CALL_cuEventSynchronize);

    if (CUDA_SUCCESS == rc && !is_event(event)) {
        rc = CUDA_ERROR_INVALID_HANDLE;
    } else if (CUDA_SUCCESS == rc) {
        fc_wait(&event->clock);
        rc = event->ctx->sticky;
    }
    return fc_leave(rc);
}

CUresult cuEventElapsedTime(float *ms_p, CUevent from, CUevent to)
{
    CUresult rc = fc_enter(FC_CALL_cuEventElapsedTime);

    if (CUDA_SUCCESS != rc) {
        return fc_leave(rc);
    }
    if (!is_event(from) || !is_event(to) || !from->is_recorded || !to->is_recorded ||
        0 != ((from->flags | to->flags) & CU_EVENT_DISABLE_TIMING)) {
        return fc_leave(CUDA_ERROR_INVALID_HANDLE);
    }
    if (!fc_reached(&from->clock) || !fc_reached(&to->clock)) {
        return fc_leave(CUDA_ERROR_NOT_READY);
    }
    *ms_p = (float) (int64_t) (to->time_ns - from->time_ns) / 1e6f;
    return fc_leave(CUDA_SUCCESS);
}
