/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Registered memory of a domain, kept until it is unmapped.
 */
#include "r2_config.h"

#include "transport/uct.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utlist.h>

#define REGIONS_MAX 1024 /* kept at a time; more in use are not registered, but copied */

/** Whole pages that are registered, or cannot be. Regions that are kept do not overlap. */
struct r2_uct_region {
    uintptr_t start, end;
    uct_mem_h handle;             /* owned; NULL: refused */
    uint32_t users;               /* sends in flight */
    bool kept;                    /* in memory->regions */
    bool stale;                   /* unmapped while it was pinned */
    uint64_t gpu_id;              /* of a GPU's memory; 0: the CPU's */
    uint64_t used;                /* uct->uses when it was asked for last */
    r2_uct_region_t *prev, *next; /* in memory->pins */
};

/** Engine lock, but for `unmaps`. */
struct r2_uct_memory {
    r2_uct_memory_t *prev, *next; /* in uct->memories */
    r2_uct_t *uct;                /* borrowed: outlives this */
    uct_md_h md;                  /* borrowed: outlives this */
    uintptr_t page_bytes;
    uint32_t count;
    r2_uct_region_t *regions[REGIONS_MAX]; /* owned: in order of addresses */
    r2_uct_region_t *pins;                 /* owned: each until its pinning ends */
    r2_tp_refusal_t refusal;               /* the first one; bytes 0: none */
    bool refuses_gpus;
    r2_uct_unmaps_t unmaps;
};

/* ---- regions ---- */

static void r2_uct_region_free(const r2_uct_memory_t *memory, r2_uct_region_t *region)
{
    if (NULL != region->handle) {
        (void) uct_md_mem_dereg(memory->md, region->handle);
    }
    free(region);
}

/** @return index of the first kept region that ends behind `at`; memory->count: none does. */
static uint32_t r2_uct_region_after(const r2_uct_memory_t *memory, uintptr_t at)
{
    uint32_t low = 0, high = memory->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (memory->regions[middle]->end <= at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/** Forgets a region; what is in flight keeps it registered. */
static void r2_uct_region_drop(r2_uct_memory_t *memory, uint32_t idx)
{
    r2_uct_region_t *region = memory->regions[idx];

    --memory->count;
    memmove(&memory->regions[idx], &memory->regions[idx + 1],
            (memory->count - idx) * sizeof(memory->regions[0]));
    region->kept = false;
    if (0 == region->users) {
        r2_uct_region_free(memory, region);
    }
}

static void r2_uct_regions_drop(r2_uct_memory_t *memory, uintptr_t start, uintptr_t end)
{
    uint32_t idx = r2_uct_region_after(memory, start);

    while (idx < memory->count && memory->regions[idx]->start < end) {
        r2_uct_region_drop(memory, idx);
    }
}

/** @return index of the region that was not used for longest; REGIONS_MAX: all are in use. */
static uint32_t r2_uct_region_oldest(const r2_uct_memory_t *memory)
{
    uint32_t oldest = REGIONS_MAX;

    for (uint32_t i = 0; i < memory->count; ++i) {
        if (0 == memory->regions[i]->users &&
            (REGIONS_MAX == oldest || memory->regions[i]->used < memory->regions[oldest]->used)) {
            oldest = i;
        }
    }
    return oldest;
}

/** Gives back the oldest region of all devices. @return its bytes; 0: all are in use. */
static size_t r2_uct_evict(r2_uct_t *uct)
{
    r2_uct_memory_t *memory, *from = NULL;
    uint32_t idx = REGIONS_MAX;
    size_t bytes;

    DL_FOREACH(uct->memories, memory) {
        uint32_t oldest = r2_uct_region_oldest(memory);

        if (REGIONS_MAX != oldest &&
            (NULL == from || memory->regions[oldest]->used < from->regions[idx]->used)) {
            from = memory;
            idx = oldest;
        }
    }
    if (NULL == from) {
        return 0;
    }
    bytes = from->regions[idx]->end - from->regions[idx]->start;
    r2_uct_region_drop(from, idx);
    return bytes;
}

bool r2_uct_make_room(r2_uct_t *uct, size_t bytes)
{
    size_t room = 0, more = 1;

    while (room < bytes && 0 != more) {
        more = r2_uct_evict(uct);
        room += more;
    }
    return 0 != room;
}

/** What is pinned now is in no table; who pins it is told when that ends. */
static void r2_uct_pins_spoil(r2_uct_memory_t *memory, uintptr_t start, uintptr_t end)
{
    r2_uct_region_t *region;

    DL_FOREACH(memory->pins, region) {
        region->stale = region->stale || (region->start < end && start < region->end);
    }
}

void r2_uct_memory_reap(r2_uct_memory_t *memory)
{
    r2_uct_unmap_t rows[R2_UCT_UNMAPS_MAX];
    const uint32_t count = r2_uct_unmaps_take(&memory->unmaps, rows);

    for (uint32_t i = 0; i < count; ++i) {
        r2_uct_regions_drop(memory, rows[i].start, rows[i].end);
        r2_uct_pins_spoil(memory, rows[i].start, rows[i].end);
    }
}

/** @return true: it is registered. UCX does so in any thread: its interfaces grow their buffers in
 * their own progress. */
static bool r2_uct_region_map(const r2_uct_memory_t *memory, r2_uct_region_t *region)
{
    /* UCX (1.13 to 1.22) asks the device for all kinds of access, whatever is said here. */
    const unsigned flags = UCT_MD_MEM_ACCESS_LOCAL_READ | UCT_MD_MEM_ACCESS_LOCAL_WRITE |
                           UCT_MD_MEM_ACCESS_REMOTE_PUT | UCT_MD_MEM_ACCESS_REMOTE_GET |
                           UCT_MD_MEM_FLAG_HIDE_ERRORS;
    union {
        uintptr_t at;
        void *pointer;
    } start = {.at = region->start};

    errno = 0;
    if (UCS_OK != uct_md_mem_reg(memory->md, start.pointer, region->end - region->start, flags,
                                 &region->handle)) {
        region->handle = NULL;
    }
    return NULL != region->handle;
}

static bool r2_uct_region_register(r2_uct_memory_t *memory, r2_uct_region_t *region)
{
    if (0 == region->gpu_id) { /* nobody tells when others are freed: their name is another then */
        r2_uct_unmaps_watch(&memory->unmaps, region->start, region->end);
    }
    return r2_uct_region_map(memory, region);
}

/** The same; where no more memory may be locked, what was not used for longest makes room. */
static bool r2_uct_region_squeeze(r2_uct_memory_t *memory, r2_uct_region_t *region)
{
    while (!r2_uct_region_register(memory, region)) {
        const bool is_short = ENOMEM == errno; /* UCX says "I/O error", whatever it is */

        if (!is_short || !r2_uct_make_room(memory->uct, region->end - region->start)) {
            return false;
        }
    }
    return true;
}

/** Notes the first region that was refused, and why: errno. */
static void r2_uct_memory_refused(r2_uct_memory_t *memory, const r2_uct_region_t *region)
{
    const int error = errno;

    memory->refuses_gpus = memory->refuses_gpus || 0 != region->gpu_id;
    if (0 != memory->refusal.bytes) {
        return;
    }
    memory->refusal.error = error;
    memory->refusal.bytes = region->end - region->start;
    for (uint32_t i = 0; i < memory->count; ++i) {
        const r2_uct_region_t *other = memory->regions[i];

        memory->refusal.registered_bytes += NULL == other->handle ? 0 : other->end - other->start;
    }
}

/** Keeps a region, instead of those that it overlaps. @return false: no room, it is freed. */
static bool r2_uct_region_keep(r2_uct_memory_t *memory, r2_uct_region_t *region)
{
    uint32_t idx;

    r2_uct_regions_drop(memory, region->start, region->end);
    if (REGIONS_MAX == memory->count) {
        idx = r2_uct_region_oldest(memory);
        if (REGIONS_MAX == idx) {
            r2_uct_region_free(memory, region);
            return false;
        }
        r2_uct_region_drop(memory, idx);
    }
    idx = r2_uct_region_after(memory, region->start);
    memmove(&memory->regions[idx + 1], &memory->regions[idx],
            (memory->count - idx) * sizeof(memory->regions[0]));
    memory->regions[idx] = region;
    region->kept = true;
    ++memory->count;
    return true;
}

/** Widens it over what is kept around it: neighbours share a page, and are one from then on. */
static void r2_uct_region_widen(const r2_uct_memory_t *memory, r2_uct_region_t *region)
{
    const uintptr_t end = region->end;

    for (uint32_t i = r2_uct_region_after(memory, region->start);
         i < memory->count && memory->regions[i]->start < end; ++i) {
        if (NULL != memory->regions[i]->handle && region->gpu_id == memory->regions[i]->gpu_id) {
            region->start = r2_min(region->start, memory->regions[i]->start);
            region->end = r2_max(region->end, memory->regions[i]->end);
        }
    }
}

/**
 * Registers pages and what is kept around them. Where that is refused (memory of several kinds),
 * only those that are asked for; what is refused then is kept, too, so that it is not tried with
 * each send.
 */
static r2_uct_region_t *r2_uct_region_add(r2_uct_memory_t *memory, const uintptr_t whole[2],
                                          const uintptr_t part[2], uint64_t gpu_id)
{
    r2_uct_region_t *region = calloc(1, sizeof(*region));

    if (NULL == region) {
        return NULL;
    }
    region->start = whole[0];
    region->end = whole[1];
    region->gpu_id = gpu_id;
    r2_uct_region_widen(memory, region);
    if (!r2_uct_region_squeeze(memory, region)) {
        region->start = part[0];
        region->end = part[1];
        if (!r2_uct_region_register(memory, region)) {
            r2_uct_memory_refused(memory, region);
        }
    }
    return r2_uct_region_keep(memory, region) ? region : NULL;
}

/* ---- for senders ---- */

/** The whole pages that some bytes lie in; of a GPU's memory no more than the bytes: others' may
 * lie beside them, and who registers them says which are one allocation. */
static void r2_uct_pages(const r2_uct_memory_t *memory, const void *from, size_t bytes,
                         uint64_t gpu_id, uintptr_t pages[2])
{
    const uintptr_t page_bytes = 0 == gpu_id ? memory->page_bytes : 1;

    pages[0] = (uintptr_t) from & ~(page_bytes - 1);
    pages[1] = r2_round_up((uintptr_t) from + bytes, page_bytes);
}

/** @return the kept region that all of some pages lie in; NULL: there is none. */
static r2_uct_region_t *r2_uct_region_over(const r2_uct_memory_t *memory, uintptr_t start,
                                           uintptr_t end)
{
    const uint32_t idx = r2_uct_region_after(memory, start);

    return idx < memory->count && memory->regions[idx]->start <= start &&
                   memory->regions[idx]->end >= end
               ? memory->regions[idx]
               : NULL;
}

r2_uct_region_t *r2_uct_region_get(r2_uct_memory_t *memory, const void *data, size_t bytes,
                                   const r2_tp_memory_t *whole)
{
    const uint64_t gpu_id = NULL == whole ? 0 : whole->gpu_id;
    uintptr_t part[2], pages[2];
    r2_uct_region_t *region;

    r2_uct_memory_reap(memory);
    r2_uct_pages(memory, data, bytes, gpu_id, part);
    region = r2_uct_region_over(memory, part[0], part[1]);
    if (NULL == region || gpu_id != region->gpu_id) {
        r2_uct_pages(memory, NULL == whole ? data : whole->data,
                     NULL == whole ? bytes : whole->bytes, gpu_id, pages);
        region = r2_uct_region_add(memory, pages, part, gpu_id);
    }
    if (NULL == region || NULL == region->handle) {
        return NULL;
    }
    region->used = ++memory->uct->uses;
    ++region->users;
    return region;
}

r2_uct_region_t *r2_uct_region_begin(r2_uct_memory_t *memory, const void *data, size_t bytes)
{
    r2_uct_region_t *region;
    uintptr_t pages[2];

    r2_uct_memory_reap(memory);
    r2_uct_pages(memory, data, bytes, 0, pages);
    if (NULL != r2_uct_region_over(memory, pages[0], pages[1])) {
        return NULL;
    }
    region = calloc(1, sizeof(*region));
    if (NULL != region) {
        region->start = pages[0];
        region->end = pages[1];
        r2_uct_region_widen(memory, region);
        r2_uct_unmaps_watch(&memory->unmaps, region->start, region->end);
        DL_APPEND(memory->pins, region);
    }
    return region;
}

void r2_uct_region_pin(const r2_uct_memory_t *memory, r2_uct_region_t *region)
{
    (void) r2_uct_region_map(memory, region);
}

void r2_uct_region_end(r2_uct_memory_t *memory, r2_uct_region_t *region)
{
    const r2_uct_region_t *over;

    r2_uct_memory_reap(memory); /* what was unmapped meanwhile is not kept */
    DL_DELETE(memory->pins, region);
    over = r2_uct_region_over(memory, region->start, region->end);
    if (NULL == region->handle || region->stale || (NULL != over && NULL != over->handle)) {
        r2_uct_region_free(memory, region);
    } else if (r2_uct_region_keep(memory, region)) {
        region->used = ++memory->uct->uses;
    }
}

void r2_uct_region_put(r2_uct_memory_t *memory, r2_uct_region_t *region)
{
    --region->users;
    if (0 == region->users && !region->kept) {
        r2_uct_region_free(memory, region);
    }
}

uct_mem_h r2_uct_region_handle(const r2_uct_region_t *region)
{
    return region->handle;
}

const r2_tp_refusal_t *r2_uct_memory_refusal(const r2_uct_memory_t *memory)
{
    return &memory->refusal;
}

bool r2_uct_memory_refuses_gpus(const r2_uct_memory_t *memory)
{
    return memory->refuses_gpus;
}

bool r2_uct_memory_is_left(uct_md_h md, size_t bytes)
{
    const unsigned flags = UCT_MD_MEM_ACCESS_LOCAL_READ | UCT_MD_MEM_FLAG_HIDE_ERRORS;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uct_mem_h handle;
    bool is_left = false;

    if (MAP_FAILED != memory) {
        is_left = UCS_OK == uct_md_mem_reg(md, memory, bytes, flags, &handle);
        if (is_left) {
            (void) uct_md_mem_dereg(md, handle);
        }
        munmap(memory, bytes);
    }
    return is_left;
}

/* ---- life ---- */

r2_uct_memory_t *r2_uct_memory_create(r2_uct_t *uct, uct_md_h md)
{
    r2_uct_memory_t *memory = calloc(1, sizeof(*memory));

    if (NULL == memory) {
        return NULL;
    }
    memory->uct = uct;
    memory->md = md;
    memory->page_bytes = (uintptr_t) sysconf(_SC_PAGESIZE);
    if (!r2_uct_unmaps_init(&memory->unmaps)) {
        free(memory);
        return NULL;
    }
    DL_APPEND(uct->memories, memory);
    return memory;
}

void r2_uct_memory_destroy(r2_uct_memory_t *memory)
{
    r2_assert(NULL == memory->pins);
    r2_uct_unmaps_fini(&memory->unmaps);
    while (0 != memory->count) {
        r2_assert(0 == memory->regions[0]->users);
        r2_uct_region_drop(memory, 0);
    }
    DL_DELETE(memory->uct->memories, memory);
    free(memory);
}
