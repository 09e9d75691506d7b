/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Contexts: a stack of current ones for each thread.
 */
#include "fakecuda/lib/fc.h"

#include <stdlib.h>

static __thread fc_ctx_t *stack[FC_CTX_DEPTH];
static __thread int depth;

fc_ctx_t *fc_ctx(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

/* Contexts are never freed: late uses are found. */
static bool is_live(const fc_ctx_t *ctx)
{
    const fc_ctx_t *one = fc.contexts;

    while (NULL != one && one != ctx) {
        one = one->next;
    }
    return NULL != one && !one->is_destroyed;
}

static fc_ctx_t *ctx_new(int device, unsigned flags, bool is_primary)
{
    fc_ctx_t *ctx = calloc(1, sizeof(*ctx));

    if (NULL == ctx) {
        return NULL;
    }
    ctx->device = device;
    ctx->flags = flags;
    ctx->is_primary = is_primary;
    ctx->id = ++fc.next_id;
    ctx->null_stream = fc_stream_new(ctx, 0, true);
    if (NULL == ctx->null_stream) {
        free(ctx);
        return NULL;
    }
    ctx->next = fc.contexts;
    fc.contexts = ctx;
    return ctx;
}

/* Its memory and streams go with it, after what was under way. */
static void ctx_end(fc_ctx_t *ctx)
{
    fc_clock_t clock;

    fc_clock_all(&clock, ctx);
    fc_wait(&clock);
    ctx->is_destroyed = true;
    for (size_t i = 0; i < fc.alloc_count; ++i) {
        if (fc.allocs[i]->ctx == ctx && !fc.allocs[i]->is_freed && fc_is_device(fc.allocs[i])) {
            fc_release(fc.allocs[i]);
        }
    }
    for (int i = 0; i < FC_STREAMS; ++i) {
        if (NULL != fc.streams[i] && fc.streams[i]->ctx == ctx) {
            fc_stream_end(fc.streams[i]);
        }
    }
}

CUresult cuCtxCreate_v2(CUcontext *ctx_p, unsigned flags, CUdevice device)
{
    CUresult rc = fc_enter(FC_CALL_cuCtxCreate_v2);

    if (CUDA_SUCCESS == rc && (!fc_is_device_index(device) || FC_CTX_DEPTH == depth)) {
        rc = CUDA_ERROR_INVALID_DEVICE;
    } else if (CUDA_SUCCESS == rc) {
        *ctx_p = ctx_new(device, flags, false);
        rc = NULL == *ctx_p ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
        stack[depth] = *ctx_p;
        depth += CUDA_SUCCESS == rc ? 1 : 0;
    }
    return fc_leave(rc);
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
    CUresult rc = fc_enter(FC_CALL_cuCtxDestroy_v2);

    if (CUDA_SUCCESS == rc && (!is_live(ctx) || ctx->is_primary)) {
        rc = CUDA_ERROR_INVALID_CONTEXT;
    } else if (CUDA_SUCCESS == rc) {
        ctx_end(ctx);
        depth -= fc_ctx() == ctx ? 1 : 0;
    }
    return fc_leave(rc);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx_p, CUdevice device)
{
    CUresult rc = fc_enter(FC_CALL_cuDevicePrimaryCtxRetain);

    if (CUDA_SUCCESS == rc && !fc_is_device_index(device)) {
        rc = CUDA_ERROR_INVALID_DEVICE;
    }
    if (CUDA_SUCCESS == rc && NULL == fc.primary[device]) {
        fc.primary[device] = ctx_new(device, 0, true);
        rc = NULL == fc.primary[device] ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    }
    if (CUDA_SUCCESS == rc) {
        ++fc.primary[device]->retained;
        *ctx_p = fc.primary[device];
    }
    return fc_leave(rc);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    CUresult rc = fc_enter(FC_CALL_cuDevicePrimaryCtxRelease_v2);

    if (CUDA_SUCCESS == rc && (!fc_is_device_index(device) || NULL == fc.primary[device])) {
        rc = CUDA_ERROR_INVALID_CONTEXT;
    } else if (CUDA_SUCCESS == rc && 0 == --fc.primary[device]->retained) {
        ctx_end(fc.primary[device]);
        fc.primary[device] = NULL;
    }
    return fc_leave(rc);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags_p, int *active_p)
{
    CUresult rc = fc_enter(FC_CALL_cuDevicePrimaryCtxGetState);

    if (CUDA_SUCCESS == rc && !fc_is_device_index(device)) {
        rc = CUDA_ERROR_INVALID_DEVICE;
    } else if (CUDA_SUCCESS == rc) {
        *flags_p = 0;
        *active_p = NULL != fc.primary[device];
    }
    return fc_leave(rc);
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
    CUresult rc = fc_enter(FC_CALL_cuCtxSetCurrent);

    if (CUDA_SUCCESS == rc && NULL != ctx && !is_live(ctx)) {
        rc = CUDA_ERROR_INVALID_CONTEXT;
    } else if (CUDA_SUCCESS == rc && NULL == ctx) {
        depth -= depth > 0 ? 1 : 0;
    } else if (CUDA_SUCCESS == rc) {
        depth += 0 == depth ? 1 : 0;
        stack[depth - 1] = ctx;
    }
    return fc_leave(rc);
}

CUresult cuCtxGetCurrent(CUcontext *ctx_p)
{
    CUresult rc = fc_enter(FC_CALL_cuCtxGetCurrent);

    if (CUDA_SUCCESS == rc) {
        *ctx_p = fc_ctx();
    }
    return fc_leave(rc);
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
    CUresult rc = fc_enter(FC_CALL_cuCtxPushCurrent_v2);

    if (CUDA_SUCCESS == rc && (!is_live(ctx) || FC_CTX_DEPTH == depth)) {
        rc = CUDA_ERROR_INVALID_CONTEXT;
    } else if (CUDA_SUCCESS == rc) {
        stack[depth++] = ctx;
    }
    return fc_leave(rc);
}

CUresult cuCtxPopCurrent_v2(CUcontext *ctx_p)
{
    CUresult rc = fc_enter(FC_CALL_cuCtxPopCurrent_v2);

    if (CUDA_SUCCESS == rc && 0 == depth) {
        fc_mistake(FC_wrong_context, "cuCtxPopCurrent without a current context");
        rc = CUDA_ERROR_INVALID_CONTEXT;
    } else if (CUDA_SUCCESS == rc) {
        --depth;
        if (NULL != ctx_p) {
            *ctx_p = stack[depth];
        }
    }
    return fc_leave(rc);
}

CUresult cuCtxGetDevice(CUdevice *device_p)
{
    CUresult rc = fc_enter(FC_CALL_cuCtxGetDevice);

    if (CUDA_SUCCESS == rc) {
        *device_p = fc_ctx()->device;
    }
    return fc_leave(rc);
}

CUresult cuCtxGetId(CUcontext ctx, unsigned long long *id_p)
{
    CUresult rc = fc_enter(FC_CALL_cuCtxGetId);
    const fc_ctx_t *of = NULL == ctx ? fc_ctx() : ctx;

    if (CUDA_SUCCESS == rc && !is_live(of)) {
        rc = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    } else if (CUDA_SUCCESS == rc) {
        *id_p = of->id;
    }
    return fc_leave(rc);
}

CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned *version_p)
{
    CUresult rc = fc_enter(FC_CALL_cuCtxGetApiVersion);

    (void) ctx;
    if (CUDA_SUCCESS == rc) {
        *version_p = 3020;
    }
    return fc_leave(rc);
}

CUresult cuCtxGetFlags(unsigned *flags_p)
{
    CUresult rc = fc_enter(FC_CALL_cuCtxGetFlags);

    if (CUDA_SUCCESS == rc) {
        *flags_p = fc_ctx()->flags;
    }
    return fc_leave(rc);
}

CUresult cuCtxGetStreamPriorityRange(int *least_p, int *greatest_p)
{
    CUresult rc = fc_enter(FC_CALL_cuCtxGetStreamPriorityRange);

    if (CUDA_SUCCESS == rc) {
        *least_p = 0;
        *greatest_p = -5;
    }
    return fc_leave(rc);
}

CUresult cuCtxSynchronize(void)
{
    CUresult rc = fc_enter(FC_CALL_cuCtxSynchronize);
    fc_clock_t clock;

    if (CUDA_SUCCESS == rc) {
        fc_clock_all(&clock, fc_ctx());
        fc_wait(&clock);
        rc = fc_ctx()->sticky;
    }
    return fc_leave(rc);
}

/* Whether kernels of the current context may use the memory of another device. */
static CUresult set_peer(fc_call_t call, CUcontext peer, bool wanted)
{
    CUresult rc = fc_enter(call);
    uint32_t bit;

    if (CUDA_SUCCESS != rc || !is_live(peer)) {
        return fc_leave(CUDA_SUCCESS != rc ? rc : CUDA_ERROR_INVALID_CONTEXT);
    }
    bit = 1u << peer->device;
    if (wanted == (0 != (fc_ctx()->peers & bit))) {
        rc = wanted ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    }
    fc_ctx()->peers = wanted ? fc_ctx()->peers | bit : fc_ctx()->peers & ~bit;
    return fc_leave(rc);
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    (void) flags;
    return set_peer(FC_CALL_cuCtxEnablePeerAccess, peer, true);
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    return set_peer(FC_CALL_cuCtxDisablePeerAccess, peer, false);
}
