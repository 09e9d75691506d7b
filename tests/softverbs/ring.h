/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A queue in memory that a process shares with its NIC: one side puts, the other takes. It is made
 * by the process and passed to the NIC as a descriptor, since the NIC may be of another user.
 */
#ifndef SV_RING_H
#define SV_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What lies in the shared memory in front of the items. Counters never wrap to 0 at the end of the
 * ring: an item's place is its number modulo the capacity. */
typedef struct sv_ring_head {
    _Alignas(64) uint32_t tail;  /* items put so far; written by who puts */
    _Alignas(64) uint32_t head;  /* items taken so far; written by who takes */
    _Alignas(64) uint32_t armed; /* completion queues: 0 no, 1 solicited, 2 any */
} sv_ring_head_t;

typedef struct sv_ring {
    sv_ring_head_t *shared; /* owned: mapped */
    uint32_t capacity;      /* a power of two */
    uint32_t item_bytes;
} sv_ring_t;

static inline size_t sv_ring_bytes(const sv_ring_t *ring)
{
    return sizeof(sv_ring_head_t) + (size_t) ring->capacity * ring->item_bytes;
}

static inline void *sv_ring_at(const sv_ring_t *ring, uint32_t number)
{
    return (char *) (ring->shared + 1) +
           (size_t) (number & (ring->capacity - 1)) * ring->item_bytes;
}

static inline uint32_t sv_ring_tail(const sv_ring_t *ring)
{
    return __atomic_load_n(&ring->shared->tail, __ATOMIC_ACQUIRE);
}

static inline uint32_t sv_ring_head(const sv_ring_t *ring)
{
    return __atomic_load_n(&ring->shared->head, __ATOMIC_ACQUIRE);
}

/* Makes visible what was written to the item at the tail. */
static inline void sv_ring_put(sv_ring_t *ring)
{
    __atomic_store_n(&ring->shared->tail, ring->shared->tail + 1, __ATOMIC_RELEASE);
}

static inline void sv_ring_take(sv_ring_t *ring)
{
    __atomic_store_n(&ring->shared->head, ring->shared->head + 1, __ATOMIC_RELEASE);
}

/* Makes a ring of at least so many items. Returns its descriptor, which the caller closes once it
 * is passed on, or -1 with errno. */
int sv_ring_create(sv_ring_t *ring, uint32_t items, uint32_t item_bytes);

/* Maps a ring that another process made. Returns 0, or -1 where the descriptor is none of such a
 * ring. */
int sv_ring_map(sv_ring_t *ring, int fd, uint32_t item_bytes);

void sv_ring_unmap(sv_ring_t *ring);

#endif
