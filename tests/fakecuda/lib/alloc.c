/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Allocations. Device memory is a file in memory that only the stand-in maps (the shadow); the
 * address that the application has lies in an arena without access, at the same offset. Device
 * addresses are never used twice, so late uses are found.
 */
#include "fakecuda/lib/fc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SMALLEST_BIG = 2 << 20, NEVER_ZERO = 65536 };

static const size_t arena_bytes = (size_t) 1 << 40;
static const int nothing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

static size_t whole_pages(size_t bytes)
{
    return (bytes + FC_PAGE - 1) / FC_PAGE * FC_PAGE;
}

int fc_arena_init(void)
{
    fc.arena = mmap(NULL, arena_bytes, PROT_NONE, nothing, -1, 0);
    fc.shadow = mmap(NULL, arena_bytes, PROT_NONE, nothing, -1, 0);
    if (MAP_FAILED == fc.arena || MAP_FAILED == fc.shadow) {
        return -1;
    }
    madvise(fc.arena, arena_bytes, MADV_DONTDUMP);
    madvise(fc.shadow, arena_bytes, MADV_DONTDUMP);
    return 0;
}

bool fc_in_arena(uintptr_t at)
{
    return at >= (uintptr_t) fc.arena && at - (uintptr_t) fc.arena < arena_bytes;
}

bool fc_is_device(const fc_alloc_t *alloc)
{
    return alloc->kind <= FC_IPC;
}

const char *fc_kind_name(fc_kind_t kind)
{
    static const char *const names[FC_KINDS] = {
        [FC_DEVICE] = "device", [FC_POOL] = "pool", [FC_CHUNK] = "mapped", [FC_IPC] = "ipc",
        [FC_PINNED] = "pinned", [FC_REGISTERED] = "registered", [FC_MANAGED] = "managed",
    };

    return names[kind];
}

/* ---- the list */

/* Index of the first allocation that starts behind an address. */
static size_t behind(uintptr_t at)
{
    size_t low = 0, high = fc.alloc_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (fc.allocs[middle]->base <= at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

fc_alloc_t *fc_find(uintptr_t at)
{
    size_t i = behind(at);
    fc_alloc_t *alloc = 0 == i ? NULL : fc.allocs[i - 1];

    return NULL != alloc && at - alloc->base < alloc->bytes ? alloc : NULL;
}

void fc_add(fc_alloc_t *alloc)
{
    size_t i = behind(alloc->base);

    if (fc.alloc_count == fc.alloc_room) {
        fc.alloc_room = 2 * fc.alloc_room + 64;
        fc.allocs = realloc(fc.allocs, fc.alloc_room * sizeof(fc_alloc_t *));
    }
    memmove(fc.allocs + i + 1, fc.allocs + i, (fc.alloc_count - i) * sizeof(fc_alloc_t *));
    fc.allocs[i] = alloc;
    ++fc.alloc_count;
    alloc->id = ++fc.next_id;
}

void fc_remove(const fc_alloc_t *alloc)
{
    size_t i = behind(alloc->base);

    if (i > 0 && fc.allocs[i - 1] == alloc) {
        memmove(fc.allocs + i - 1, fc.allocs + i, (fc.alloc_count - i) * sizeof(fc_alloc_t *));
        --fc.alloc_count;
    }
}

static bool is_usable(const fc_alloc_t *alloc, uintptr_t at)
{
    if (alloc->is_freed || (NULL != alloc->gone && *alloc->gone)) {
        fc_mistake(FC_use_after_free, "use of freed memory %p: byte %zu of %s allocation %llu",
                   (void *) at, (size_t) (at - alloc->base), fc_kind_name(alloc->kind),
                   (unsigned long long) alloc->id);
        return false;
    }
    return alloc->is_accessible;
}

/* Chunks that are mapped side by side are so in the shadow, too. */
char *fc_reach(uintptr_t at, size_t bytes)
{
    const fc_alloc_t *alloc = fc_find(at);
    char *start = NULL == alloc ? NULL : alloc->rw + (at - alloc->base);

    while (NULL != alloc && is_usable(alloc, at)) {
        size_t left = alloc->base + alloc->bytes - at;
        if (bytes <= left) {
            return start;
        }
        bytes -= left;
        at += left;
        alloc = fc_is_device(alloc) ? fc_find(at) : NULL;
    }
    return NULL;
}

/* ---- new ones */

CUresult fc_take(int device, size_t bytes)
{
    if (bytes > fc.memory || fc.used[device] > fc.memory - bytes) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    fc.used[device] += bytes;
    ++fc.counters[FC_allocs];
    fc.counters[FC_live_bytes] += bytes;
    if (fc.counters[FC_live_bytes] > fc.counters[FC_most_bytes]) {
        fc.counters[FC_most_bytes] = fc.counters[FC_live_bytes];
    }
    return CUDA_SUCCESS;
}

void fc_give_back(int device, size_t bytes)
{
    fc.used[device] -= bytes;
    fc.counters[FC_live_bytes] -= bytes;
    ++fc.counters[FC_frees];
}

/* A page more than the memory: what processes that share it say to each other. */
int fc_memory_file(size_t bytes)
{
    int fd = memfd_create("fakecuda", MFD_CLOEXEC);

    if (fd >= 0 && 0 != ftruncate(fd, (off_t) (whole_pages(bytes) + FC_PAGE))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* A page between two allocations belongs to nobody. */
uintptr_t fc_take_addresses(size_t bytes)
{
    size_t align = bytes >= SMALLEST_BIG ? SMALLEST_BIG : FC_PAGE;
    uintptr_t at = ((uintptr_t) fc.arena + fc.arena_next + align - 1) / align * align;
    size_t end = at - (uintptr_t) fc.arena + whole_pages(bytes) + FC_PAGE;

    if (bytes > arena_bytes || end > arena_bytes) {
        return 0;
    }
    fc.arena_next = end;
    return at;
}

static fc_alloc_t *alloc_new(fc_kind_t kind, size_t bytes, int fd)
{
    fc_alloc_t *alloc = calloc(1, sizeof(*alloc));

    if (NULL != alloc) {
        alloc->kind = kind;
        alloc->bytes = bytes;
        alloc->mapped = whole_pages(bytes);
        alloc->fd = fd;
        alloc->ctx = fc_ctx();
        alloc->device = NULL == alloc->ctx ? 0 : alloc->ctx->device;
        alloc->is_accessible = true;
    }
    return alloc;
}

fc_alloc_t *fc_device_new(fc_kind_t kind, size_t bytes, int fd)
{
    fc_alloc_t *alloc = alloc_new(kind, bytes, fd);
    uintptr_t base = fc_take_addresses(bytes);
    const int both = PROT_READ | PROT_WRITE;

    if (NULL == alloc || 0 == base || fd < 0) {
        free(alloc);
        return NULL;
    }
    alloc->base = base;
    alloc->rw = mmap(fc.shadow + (base - (uintptr_t) fc.arena), alloc->mapped, both,
                     MAP_SHARED | MAP_FIXED, fd, 0);
    alloc->gone = mmap(NULL, FC_PAGE, both, MAP_SHARED, fd, (off_t) alloc->mapped);
    if (MAP_FAILED == (void *) alloc->rw || MAP_FAILED == (void *) alloc->gone) {
        free(alloc);
        return NULL;
    }
    fc_add(alloc);
    if (FC_IPC != kind) { /* never zeros by luck */
        memset(alloc->rw, 0xcd, bytes < NEVER_ZERO ? bytes : NEVER_ZERO);
    }
    return alloc;
}

fc_alloc_t *fc_host_new(fc_kind_t kind, size_t bytes, int fd)
{
    fc_alloc_t *alloc = alloc_new(kind, bytes, fd);
    const int both = PROT_READ | PROT_WRITE;

    if (NULL == alloc || fd < 0) {
        free(alloc);
        return NULL;
    }
    alloc->base = (uintptr_t) mmap(NULL, alloc->mapped, both, MAP_SHARED, fd, 0);
    alloc->rw = mmap(NULL, alloc->mapped, both, MAP_SHARED, fd, 0);
    alloc->protection = malloc(alloc->mapped / FC_PAGE);
    if ((uintptr_t) MAP_FAILED == alloc->base || MAP_FAILED == (void *) alloc->rw ||
        NULL == alloc->protection) {
        free(alloc);
        return NULL;
    }
    memset(alloc->protection, both, alloc->mapped / FC_PAGE);
    fc_add(alloc);
    return alloc;
}

CUresult fc_register(uintptr_t at, size_t bytes)
{
    fc_alloc_t *alloc = alloc_new(FC_REGISTERED, bytes, -1);

    if (NULL == alloc) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    alloc->base = at;
    alloc->rw = (char *) at;
    fc_add(alloc);
    return CUDA_SUCCESS;
}

void fc_release(fc_alloc_t *alloc)
{
    fc_forget_accesses(alloc);
    alloc->is_freed = true;
    if (FC_DEVICE == alloc->kind || FC_POOL == alloc->kind || FC_MANAGED == alloc->kind) {
        fc_give_back(alloc->device, alloc->bytes);
    }
    if (fc_is_device(alloc)) { /* its address, too: an audit has mapped it */
        if (FC_DEVICE == alloc->kind) {
            *alloc->gone = true;
        }
        mmap(alloc->rw, alloc->mapped, PROT_NONE, nothing | MAP_FIXED, -1, 0);
        mmap((void *) alloc->base, alloc->mapped, PROT_NONE, nothing | MAP_FIXED, -1, 0);
        if (FC_CHUNK != alloc->kind) {
            munmap(alloc->gone, FC_PAGE);
            close(alloc->fd);
            alloc->gone = NULL;
        }
        return;
    }
    fc_remove(alloc);
    if (FC_REGISTERED != alloc->kind) {
        munmap((void *) alloc->base, alloc->mapped);
        munmap(alloc->rw, alloc->mapped);
        close(alloc->fd);
    }
    free(alloc->protection);
    free(alloc);
}

/* Pages that an operation under way writes whole cannot be touched, those that it reads not be
 * written. */
void fc_protect(fc_alloc_t *alloc, uintptr_t from, uintptr_t to)
{
    uintptr_t end = alloc->base + alloc->mapped;

    if (NULL == alloc->protection || fc_is_device(alloc) || 0 == fc.strict) {
        return;
    }
    from = from / FC_PAGE * FC_PAGE;
    for (uintptr_t low = from; low < to && low < end; low += FC_PAGE) {
        uintptr_t high = low + FC_PAGE;
        uint8_t *now = &alloc->protection[(low - alloc->base) / FC_PAGE];
        uint8_t wanted = PROT_READ | PROT_WRITE;
        high = high > alloc->base + alloc->bytes ? alloc->base + alloc->bytes : high;
        for (fc_walk_t walk = fc_walk(alloc, low, high); NULL != walk.access; fc_walk_on(&walk)) {
            if (fc_covers(walk.access, low, high)) {
                wanted &= walk.access->writes ? PROT_NONE : PROT_READ;
            }
        }
        if (*now != wanted) {
            *now = wanted;
            mprotect((void *) low, FC_PAGE, wanted);
        }
    }
}
