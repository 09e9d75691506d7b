/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Making and mapping the queues that a process shares with its NIC.
 */
#include "softverbs/ring.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_ITEMS = 1 << 22 };

static int map(sv_ring_t *ring, int fd)
{
    void *at = mmap(NULL, sv_ring_bytes(ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    ring->shared = MAP_FAILED == at ? NULL : at;
    return MAP_FAILED == at ? -1 : 0;
}

int sv_ring_create(sv_ring_t *ring, uint32_t items, uint32_t item_bytes)
{
    int fd = memfd_create("softverbs", MFD_CLOEXEC);

    ring->item_bytes = item_bytes;
    ring->capacity = 1;
    while (ring->capacity < items && ring->capacity < MOST_ITEMS) {
        ring->capacity *= 2;
    }
    ring->shared = NULL;
    if (fd < 0) {
        return -1;
    }
    if (0 != ftruncate(fd, (off_t) sv_ring_bytes(ring)) || 0 != map(ring, fd)) {
        close(fd);
        return -1;
    }
    return fd;
}

int sv_ring_map(sv_ring_t *ring, int fd, uint32_t item_bytes)
{
    struct stat about;
    size_t items;

    ring->shared = NULL;
    if (fd < 0 || 0 != fstat(fd, &about) || about.st_size < (off_t) sizeof(sv_ring_head_t)) {
        return -1;
    }
    items = ((size_t) about.st_size - sizeof(sv_ring_head_t)) / item_bytes;
    if (0 == items || items > MOST_ITEMS || 0 != (items & (items - 1))) {
        return -1;
    }
    ring->capacity = (uint32_t) items;
    ring->item_bytes = item_bytes;
    return map(ring, fd);
}

void sv_ring_unmap(sv_ring_t *ring)
{
    if (NULL != ring->shared) {
        munmap(ring->shared, sv_ring_bytes(ring));
        ring->shared = NULL;
    }
}
