/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Memory: of devices, of pools, managed, pinned, registered.
 */
#include "fakecuda/lib/fc.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static fc_alloc_t *device_memory(fc_kind_t kind, size_t bytes, CUresult *rc_p)
{
    int device = fc_ctx()->device;
    fc_alloc_t *alloc;

    *rc_p = 0 == bytes ? CUDA_ERROR_INVALID_VALUE : fc_take(device, bytes);
    if (CUDA_SUCCESS != *rc_p) {
        return NULL;
    }
    alloc = FC_MANAGED == kind ? fc_host_new(kind, bytes, fc_memory_file(bytes))
                               : fc_device_new(kind, bytes, fc_memory_file(bytes));
    if (NULL == alloc) {
        fc_give_back(device, bytes);
        *rc_p = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return alloc;
}

/* Waits for everything, as the real one does. @param kinds a bit for each that may be freed so */
static CUresult free_memory(uintptr_t at, unsigned kinds)
{
    fc_alloc_t *alloc = fc_find(at);
    fc_clock_t clock;

    if (0 == at) {
        return CUDA_SUCCESS;
    }
    if (NULL == alloc || alloc->base != at || 0 == (kinds & 1u << alloc->kind)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (alloc->is_freed) {
        fc_mistake(FC_use_after_free, "%s allocation %llu is freed twice",
                   fc_kind_name(alloc->kind), (unsigned long long) alloc->id);
        return CUDA_ERROR_INVALID_VALUE;
    }
    fc_clock_all(&clock, NULL);
    fc_wait(&clock);
    fc_release(alloc);
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *at_p, size_t bytes)
{
    CUresult rc = fc_enter(FC_CALL_cuMemAlloc_v2);
    fc_alloc_t *alloc = CUDA_SUCCESS == rc ? device_memory(FC_DEVICE, bytes, &rc) : NULL;

    if (NULL != alloc) {
        *at_p = alloc->base;
    }
    return fc_leave(rc);
}

CUresult cuMemAllocManaged(CUdeviceptr *at_p, size_t bytes, unsigned flags)
{
    CUresult rc = fc_enter(FC_CALL_cuMemAllocManaged);
    fc_alloc_t *alloc = CUDA_SUCCESS == rc ? device_memory(FC_MANAGED, bytes, &rc) : NULL;

    (void) flags;
    if (NULL != alloc) {
        *at_p = alloc->base;
    }
    return fc_leave(rc);
}

CUresult cuMemFree_v2(CUdeviceptr at)
{
    CUresult rc = fc_enter(FC_CALL_cuMemFree_v2);

    if (CUDA_SUCCESS == rc) {
        rc = free_memory(at, 1u << FC_DEVICE | 1u << FC_MANAGED | 1u << FC_POOL);
    }
    return fc_leave(rc);
}

/* For the stream the memory is there at once, for others after what orders them behind it. */
CUresult cuMemAllocAsync(CUdeviceptr *at_p, size_t bytes, CUstream handle)
{
    CUresult rc = fc_enter(FC_CALL_cuMemAllocAsync);
    fc_stream_t *stream = CUDA_SUCCESS == rc ? fc_stream(handle, &rc) : NULL;
    fc_alloc_t *alloc = NULL == stream ? NULL : device_memory(FC_POOL, bytes, &rc);

    if (NULL != alloc) {
        fc_span_t span = {alloc->base, bytes, true, 0, 0};
        *at_p = alloc->base;
        alloc->ctx = NULL;
        fc_enqueue(stream, fc_op_new(FC_OP_NOTHING, "cuMemAllocAsync"), &span, 1);
    }
    return fc_leave(rc);
}

CUresult cuMemFreeAsync(CUdeviceptr at, CUstream handle)
{
    CUresult rc = fc_enter(FC_CALL_cuMemFreeAsync);
    fc_stream_t *stream = CUDA_SUCCESS == rc ? fc_stream(handle, &rc) : NULL;
    fc_alloc_t *alloc = fc_find(at);
    bool is_fit = NULL != alloc && alloc->base == at && NULL != fc_reach(at, 1) &&
                  (FC_POOL == alloc->kind || FC_DEVICE == alloc->kind);

    if (NULL != stream && !is_fit) {
        rc = CUDA_ERROR_INVALID_VALUE;
    } else if (NULL != stream) {
        fc_span_t span = {at, alloc->bytes, true, 0, 0};
        fc_op_t *op = fc_op_new(FC_OP_FREE, "cuMemFreeAsync");
        op->freed = at;
        fc_enqueue(stream, op, &span, 1);
    }
    return fc_leave(rc);
}

static CUresult pinned_memory(fc_call_t call, void **at_p, size_t bytes)
{
    CUresult rc = fc_enter(call);
    fc_alloc_t *alloc;
    fc_clock_t all;

    if (CUDA_SUCCESS == rc && 0 != fc.pin_waits) {
        fc_clock_all(&all, NULL);
        fc_stall(&all);
    }
    if (CUDA_SUCCESS == rc && 0 == bytes) {
        rc = CUDA_ERROR_INVALID_VALUE;
    } else if (CUDA_SUCCESS == rc) {
        alloc = fc_host_new(FC_PINNED, bytes, fc_memory_file(bytes));
        rc = NULL == alloc ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
        if (NULL != alloc) {
            *at_p = (void *) alloc->base;
            ++fc.counters[FC_allocs];
        }
    }
    return fc_leave(rc);
}

CUresult cuMemHostAlloc(void **at_p, size_t bytes, unsigned flags)
{
    (void) flags;
    return pinned_memory(FC_CALL_cuMemHostAlloc, at_p, bytes);
}

CUresult cuMemAllocHost_v2(void **at_p, size_t bytes)
{
    return pinned_memory(FC_CALL_cuMemAllocHost_v2, at_p, bytes);
}

CUresult cuMemFreeHost(void *at)
{
    CUresult rc = fc_enter(FC_CALL_cuMemFreeHost);

    if (CUDA_SUCCESS == rc) {
        rc = free_memory((uintptr_t) at, 1u << FC_PINNED);
        fc.counters[FC_frees] += CUDA_SUCCESS == rc ? 1 : 0;
    }
    return fc_leave(rc);
}

/* The application's own memory: it stays where it is, and is never protected. */
CUresult cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags)
{
    CUresult rc = fc_enter(FC_CALL_cuMemHostRegister_v2);
    uintptr_t from = (uintptr_t) at;

    (void) flags;
    if (CUDA_SUCCESS == rc && 0 == bytes) {
        rc = CUDA_ERROR_INVALID_VALUE;
    } else if (CUDA_SUCCESS == rc && (NULL != fc_find(from) || NULL != fc_find(from + bytes - 1))) {
        rc = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    } else if (CUDA_SUCCESS == rc) {
        rc = fc_register(from, bytes);
    }
    return fc_leave(rc);
}

CUresult cuMemHostUnregister(void *at)
{
    CUresult rc = fc_enter(FC_CALL_cuMemHostUnregister);

    if (CUDA_SUCCESS == rc) {
        rc = free_memory((uintptr_t) at, 1u << FC_REGISTERED);
        rc = CUDA_ERROR_INVALID_VALUE == rc ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : rc;
    }
    return fc_leave(rc);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device_p, void *at, unsigned flags)
{
    CUresult rc = fc_enter(FC_CALL_cuMemHostGetDevicePointer_v2);
    const fc_alloc_t *alloc = fc_find((uintptr_t) at);

    (void) flags;
    if (CUDA_SUCCESS == rc && (NULL == alloc || fc_is_device(alloc))) {
        rc = CUDA_ERROR_INVALID_VALUE;
    } else if (CUDA_SUCCESS == rc) {
        *device_p = (uintptr_t) at;
    }
    return fc_leave(rc);
}

CUresult cuMemHostGetFlags(unsigned *flags_p, void *at)
{
    CUresult rc = fc_enter(FC_CALL_cuMemHostGetFlags);

    if (CUDA_SUCCESS == rc) {
        *flags_p = 0;
        rc = NULL == fc_find((uintptr_t) at) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    }
    return fc_leave(rc);
}

CUresult cuMemGetInfo_v2(size_t *left_p, size_t *total_p)
{
    CUresult rc = fc_enter(FC_CALL_cuMemGetInfo_v2);

    if (CUDA_SUCCESS == rc) {
        *total_p = fc.memory;
        *left_p = fc.memory - fc.used[fc_ctx()->device];
    }
    return fc_leave(rc);
}

/* ---- of other processes: the owner's file, by /proc */

typedef struct ipc {
    char magic[8];
    int pid, fd, device;
    uint64_t bytes;
} ipc_t;

static const char ipc_magic[8] = "fakecud";

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle_p, CUdeviceptr at)
{
    CUresult rc = fc_enter(FC_CALL_cuIpcGetMemHandle);
    const fc_alloc_t *alloc = fc_find(at);
    ipc_t ipc;

    if (CUDA_SUCCESS == rc && (NULL == alloc || alloc->is_freed || FC_DEVICE != alloc->kind)) {
        rc = CUDA_ERROR_INVALID_VALUE; /* neither pools nor chunks */
    } else if (CUDA_SUCCESS == rc) {
        ipc = (ipc_t){.pid = getpid(), .fd = alloc->fd, .device = alloc->device,
                      .bytes = alloc->bytes};
        memcpy(ipc.magic, ipc_magic, sizeof(ipc.magic));
        memset(handle_p, 0, sizeof(*handle_p));
        memcpy(handle_p, &ipc, sizeof(ipc));
        ++fc.counters[FC_ipc_exports];
    }
    return fc_leave(rc);
}

static CUresult open_ipc(const ipc_t *ipc, CUdeviceptr *at_p)
{
    char path[64];
    fc_alloc_t *alloc;
    int fd;

    if (0 != memcmp(ipc->magic, ipc_magic, sizeof(ipc->magic)) ||
        !fc_is_device_index(ipc->device)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (getpid() == ipc->pid) {
        return CUDA_ERROR_INVALID_CONTEXT; /* as the real one: not where it comes from */
    }
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", ipc->pid, ipc->fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    alloc = fc_device_new(FC_IPC, ipc->bytes, fd);
    if (NULL == alloc) {
        if (fd >= 0) {
            close(fd);
        }
        return CUDA_ERROR_MAP_FAILED;
    }
    alloc->device = ipc->device;
    *at_p = alloc->base;
    ++fc.counters[FC_ipc_opens];
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *at_p, CUipcMemHandle handle, unsigned flags)
{
    CUresult rc = fc_enter(FC_CALL_cuIpcOpenMemHandle_v2);
    ipc_t ipc;

    (void) flags;
    memcpy(&ipc, &handle, sizeof(ipc));
    return fc_leave(CUDA_SUCCESS == rc ? open_ipc(&ipc, at_p) : rc);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr at)
{
    CUresult rc = fc_enter(FC_CALL_cuIpcCloseMemHandle);

    return fc_leave(CUDA_SUCCESS == rc ? free_memory(at, 1u << FC_IPC) : rc);
}
