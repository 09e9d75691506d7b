/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What a pointer is.
 */
#include "fakecuda/lib/fc.h"

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base_p, size_t *bytes_p, CUdeviceptr at)
{
    CUresult rc = fc_enter(FC_CALL_cuMemGetAddressRange_v2);
    const fc_alloc_t *alloc = fc_find(at);

    if (CUDA_SUCCESS == rc && (NULL == alloc || alloc->is_freed)) {
        rc = CUDA_ERROR_NOT_FOUND;
    } else if (CUDA_SUCCESS == rc) { /* of mapped memory: the one chunk */
        if (NULL != base_p) {
            *base_p = alloc->base;
        }
        if (NULL != bytes_p) {
            *bytes_p = alloc->bytes;
        }
    }
    return fc_leave(rc);
}

static int memory_type(const fc_alloc_t *alloc)
{
    return fc_is_device(alloc) || FC_MANAGED == alloc->kind ? CU_MEMORYTYPE_DEVICE
                                                            : CU_MEMORYTYPE_HOST;
}

/* The range that memory is mapped in, or the allocation. */
static void whole_range(const fc_alloc_t *alloc, uintptr_t *base_p, size_t *bytes_p)
{
    if (!fc_range_of(alloc->base, base_p, bytes_p)) {
        *base_p = alloc->base;
        *bytes_p = alloc->bytes;
    }
}

/* @return false: the attribute is none that fits an int. */
static bool int_attribute(int *value_p, CUpointer_attribute which, const fc_alloc_t *alloc)
{
    const struct {
        CUpointer_attribute which;
        int value;
    } values[] = {
        {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory_type(alloc)},
        {CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, alloc->sync_memops},
        {CU_POINTER_ATTRIBUTE_IS_MANAGED, FC_MANAGED == alloc->kind},
        {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, alloc->device},
        {CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, FC_DEVICE == alloc->kind},
        {CU_POINTER_ATTRIBUTE_MAPPED, 1},
        {CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, 0},
        {CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, 3},
    };

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); ++i) {
        if (values[i].which == which) {
            *value_p = values[i].value;
            return true;
        }
    }
    return false;
}

/* An attribute of live memory. */
static CUresult attribute_of(void *data, CUpointer_attribute which, const fc_alloc_t *alloc,
                             uintptr_t at)
{
    uintptr_t base;
    size_t bytes;

    if (int_attribute(data, which, alloc)) {
        return CUDA_SUCCESS;
    }
    whole_range(alloc, &base, &bytes);
    switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *) data = alloc->ctx;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *) data = at;
        break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (fc_is_device(alloc)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        *(void **) data = (void *) at;
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *) data = alloc->id;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *) data = base;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *) data = bytes;
        break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *) data = 0;
        break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(void **) data = FC_POOL == alloc->kind ? &fc : NULL;
        break;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

/* INVALID_VALUE: not memory of the driver. */
static CUresult attribute(void *data, CUpointer_attribute which, uintptr_t at)
{
    const fc_alloc_t *alloc = fc_find(at);
    uintptr_t base;
    size_t bytes;

    if (NULL != alloc && !alloc->is_freed) {
        return attribute_of(data, which, alloc, at);
    }
    if (CU_POINTER_ATTRIBUTE_MAPPED == which && fc_range_of(at, &base, &bytes)) {
        *(int *) data = 0;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute which, CUdeviceptr at)
{
    CUresult rc = fc_enter(FC_CALL_cuPointerGetAttribute);

    ++fc.counters[FC_pointer_queries];
    return fc_leave(CUDA_SUCCESS == rc ? attribute(data, which, at) : rc);
}

/* What an attribute is of memory that is not the driver's: nothing, and not an error. */
static void set_default(void *data, CUpointer_attribute which)
{
    switch (which) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *(int *) data = 0;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *) data = CU_DEVICE_INVALID;
        break;
    default:
        *(unsigned long long *) data = 0;
        break;
    }
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *which, void **data,
                                CUdeviceptr at)
{
    CUresult rc = fc_enter(FC_CALL_cuPointerGetAttributes);

    ++fc.counters[FC_pointer_queries];
    for (unsigned i = 0; CUDA_SUCCESS == rc && i < count; ++i) {
        if (CUDA_SUCCESS != attribute(data[i], which[i], at)) {
            set_default(data[i], which[i]);
        }
    }
    return fc_leave(rc);
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute which, CUdeviceptr at)
{
    CUresult rc = fc_enter(FC_CALL_cuPointerSetAttribute);
    fc_alloc_t *alloc = fc_find(at);

    if (CUDA_SUCCESS == rc && (NULL == alloc || CU_POINTER_ATTRIBUTE_SYNC_MEMOPS != which)) {
        rc = CUDA_ERROR_INVALID_VALUE;
    } else if (CUDA_SUCCESS == rc && FC_CHUNK == alloc->kind) {
        rc = CUDA_ERROR_NOT_SUPPORTED;
    } else if (CUDA_SUCCESS == rc) {
        alloc->sync_memops = 0 != *(const int *) value;
    }
    return fc_leave(rc);
}

void *fakecuda_look(uint64_t at, size_t bytes)
{
    void *rw;

    fc_lock();
    rw = fc_reach((uintptr_t) at, bytes);
    fc_unlock();
    return rw;
}

int fakecuda_nic_place(uint64_t at, size_t bytes, void **place_p)
{
    const fc_alloc_t *alloc;
    int is_gpus = 0;

    fc_lock();
    if (fc_in_arena((uintptr_t) at)) {
        alloc = fc_find((uintptr_t) at);
        is_gpus = NULL != alloc && FC_DEVICE == alloc->kind && !alloc->is_freed &&
                          bytes <= alloc->bytes - (at - alloc->base)
                      ? 1
                      : -1;
        *place_p = is_gpus > 0 ? alloc->rw + (at - alloc->base) : NULL;
    }
    fc_unlock();
    return is_gpus;
}

void fakecuda_nic_touch(uint64_t at, size_t bytes, int writes)
{
    fc_alloc_t *alloc;

    fc_lock();
    alloc = fc_in_arena((uintptr_t) at) ? fc_find((uintptr_t) at) : NULL;
    if (NULL != alloc && alloc->is_freed) {
        fc_mistake(FC_use_after_free, "a NIC touches freed memory %p: byte %zu of allocation %llu",
                   (void *) (uintptr_t) at, (size_t) (at - alloc->base),
                   (unsigned long long) alloc->id);
    } else if (NULL != alloc) {
        const fc_span_t span = {(uintptr_t) at, bytes, 0 != writes, 0, 0};

        fc_check_nic(alloc, &span);
        if (0 != writes && fc.nic_order < CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES) {
            fc_note_nic(alloc, &span);
        }
    }
    fc_unlock();
}

CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
                                    CUflushGPUDirectRDMAWritesScope scope)
{
    CUresult rc = fc_enter(FC_CALL_cuFlushGPUDirectRDMAWrites);

    if (CUDA_SUCCESS == rc && (CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX != target ||
                               (CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER != scope &&
                                CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES != scope))) {
        rc = CUDA_ERROR_INVALID_VALUE;
    }
    fc.flushes += CUDA_SUCCESS == rc ? 1 : 0;
    return fc_leave(rc);
}
