/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Virtual memory: ranges of addresses, and chunks of memory that are mapped into them.
 */
#include "fakecuda/lib/fc.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GRANULE = 2 << 20 };

typedef struct fc_range {
    struct fc_range *next;
    uintptr_t base;
    size_t bytes;
} fc_range_t;

typedef struct fc_chunk {
    int fd, device;
    unsigned users; /* the handle, mappings */
    size_t bytes;
} fc_chunk_t;

static fc_range_t *range_at(uintptr_t at)
{
    fc_range_t *range = fc.ranges;

    while (NULL != range && at - range->base >= range->bytes) {
        range = range->next;
    }
    return range;
}

bool fc_range_of(uintptr_t at, uintptr_t *base_p, size_t *bytes_p)
{
    const fc_range_t *range = range_at(at);

    if (NULL == range) {
        return false;
    }
    *base_p = range->base;
    *bytes_p = range->bytes;
    return true;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes_p, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option)
{
    CUresult rc = fc_enter(FC_CALL_cuMemGetAllocationGranularity);

    (void) prop, (void) option;
    if (CUDA_SUCCESS == rc) {
        *bytes_p = GRANULE;
    }
    return fc_leave(rc);
}

CUresult cuMemAddressReserve(CUdeviceptr *at_p, size_t bytes, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags)
{
    CUresult rc = fc_enter(FC_CALL_cuMemAddressReserve);
    fc_range_t *range;

    (void) alignment, (void) hint, (void) flags;
    if (CUDA_SUCCESS == rc && (0 == bytes || 0 != bytes % GRANULE)) {
        rc = CUDA_ERROR_INVALID_VALUE;
    } else if (CUDA_SUCCESS == rc) {
        range = calloc(1, sizeof(*range));
        range->base = fc_take_addresses(bytes);
        range->bytes = bytes;
        range->next = fc.ranges;
        fc.ranges = range;
        *at_p = range->base;
    }
    return fc_leave(rc);
}

CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes)
{
    CUresult rc = fc_enter(FC_CALL_cuMemAddressFree);
    fc_range_t **link = &fc.ranges, *range;

    while (NULL != *link && (*link)->base != at) {
        link = &(*link)->next;
    }
    range = *link;
    if (CUDA_SUCCESS == rc && (NULL == range || range->bytes != bytes)) {
        rc = CUDA_ERROR_INVALID_VALUE;
    } else if (CUDA_SUCCESS == rc) {
        *link = range->next;
        free(range);
    }
    return fc_leave(rc);
}

static fc_chunk_t *chunk_of(CUmemGenericAllocationHandle handle)
{
    return (fc_chunk_t *) (uintptr_t) handle;
}

static void put_chunk(fc_chunk_t *chunk)
{
    if (0 == --chunk->users) {
        close(chunk->fd);
        fc_give_back(chunk->device, chunk->bytes);
        free(chunk);
    }
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle_p, size_t bytes,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    CUresult rc = fc_enter(FC_CALL_cuMemCreate);
    fc_chunk_t *chunk;

    (void) flags;
    if (CUDA_SUCCESS == rc &&
        (0 == bytes || 0 != bytes % GRANULE || !fc_is_device_index(prop->location.id))) {
        rc = CUDA_ERROR_INVALID_VALUE;
    }
    rc = CUDA_SUCCESS == rc ? fc_take(prop->location.id, bytes) : rc;
    if (CUDA_SUCCESS == rc) {
        chunk = calloc(1, sizeof(*chunk));
        chunk->fd = fc_memory_file(bytes);
        chunk->device = prop->location.id;
        chunk->bytes = bytes;
        chunk->users = 1;
        *handle_p = (uintptr_t) chunk;
    }
    return fc_leave(rc);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    CUresult rc = fc_enter(FC_CALL_cuMemRelease);

    if (CUDA_SUCCESS == rc) {
        put_chunk(chunk_of(handle));
    }
    return fc_leave(rc);
}

static CUresult map(uintptr_t at, fc_chunk_t *chunk)
{
    fc_alloc_t *old = fc_find(at), *alloc;
    const fc_range_t *range = range_at(at);

    if (NULL == range || at - range->base + chunk->bytes > range->bytes || 0 != at % GRANULE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (NULL != old && !old->is_freed) {
        return CUDA_ERROR_ALREADY_MAPPED;
    }
    if (NULL != old) {
        fc_remove(old); /* the address is in use again, by another allocation */
    }
    alloc = calloc(1, sizeof(*alloc));
    alloc->kind = FC_CHUNK;
    alloc->base = at;
    alloc->bytes = alloc->mapped = chunk->bytes;
    alloc->fd = chunk->fd;
    alloc->device = chunk->device;
    alloc->chunk = chunk;
    alloc->rw = mmap(fc.shadow + (at - (uintptr_t) fc.arena), chunk->bytes, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_FIXED, chunk->fd, 0);
    ++chunk->users;
    fc_add(alloc);
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    CUresult rc = fc_enter(FC_CALL_cuMemMap);

    (void) flags;
    if (CUDA_SUCCESS == rc && (bytes != chunk_of(handle)->bytes || 0 != offset)) {
        rc = CUDA_ERROR_INVALID_VALUE;
    }
    return fc_leave(CUDA_SUCCESS == rc ? map(at, chunk_of(handle)) : rc);
}

/* The next chunk of a part of a range. @return NULL: nothing is mapped there. */
static fc_alloc_t *mapped_at(uintptr_t at)
{
    fc_alloc_t *alloc = fc_find(at);

    return NULL != alloc && FC_CHUNK == alloc->kind && !alloc->is_freed ? alloc : NULL;
}

CUresult cuMemUnmap(CUdeviceptr at, size_t bytes)
{
    CUresult rc = fc_enter(FC_CALL_cuMemUnmap);
    CUdeviceptr end = at + bytes;
    fc_clock_t clock;

    if (CUDA_SUCCESS == rc) {
        fc_clock_all(&clock, NULL);
        fc_wait(&clock);
    }
    while (CUDA_SUCCESS == rc && at < end) {
        fc_alloc_t *alloc = mapped_at(at);
        if (NULL == alloc) {
            rc = CUDA_ERROR_INVALID_VALUE;
        } else {
            at = alloc->base + alloc->bytes;
            fc_release(alloc);
            put_chunk(alloc->chunk);
        }
    }
    return fc_leave(rc);
}

CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *list, size_t count)
{
    CUresult rc = fc_enter(FC_CALL_cuMemSetAccess);
    CUdeviceptr end = at + bytes;

    while (CUDA_SUCCESS == rc && at < end) {
        fc_alloc_t *alloc = mapped_at(at);
        if (NULL == alloc || 0 == count) {
            rc = CUDA_ERROR_INVALID_VALUE;
        } else {
            alloc->is_accessible = CU_MEM_ACCESS_FLAGS_PROT_NONE != list[0].flags;
            at = alloc->base + alloc->bytes;
        }
    }
    return fc_leave(rc);
}
