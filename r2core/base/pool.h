/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Free lists for the objects of the data path: no allocation once warm.
 */
#ifndef R2_BASE_POOL_H
#define R2_BASE_POOL_H

#include <stdlib.h>

/** A free list of equal objects, each starting with room for a pointer. Engine lock. */
typedef struct r2_pool {
    size_t object_bytes;
    void *free_list; /* owned: linked through the first word */
    size_t free_count;
} r2_pool_t;

/* Objects kept for reuse; beyond that memory goes back. None where use after free is to be
 * found. */
#if defined(__SANITIZE_ADDRESS__)
#    define R2_POOL_KEEP 0
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define R2_POOL_KEEP 0
#    endif
#endif
#ifndef R2_POOL_KEEP
#    define R2_POOL_KEEP 4096
#endif

static inline void r2_pool_init(r2_pool_t *pool, size_t object_bytes)
{
    pool->object_bytes = object_bytes;
    pool->free_list = NULL;
    pool->free_count = 0;
}

/** @return an object with undefined content, or NULL. */
static inline void *r2_pool_get(r2_pool_t *pool)
{
    void *object = pool->free_list;

    if (NULL == object) {
        return malloc(pool->object_bytes);
    }
    pool->free_list = *(void **) object;
    --pool->free_count;
    return object;
}

static inline void r2_pool_put(r2_pool_t *pool, void *object)
{
    if (pool->free_count >= R2_POOL_KEEP) {
        free(object);
        return;
    }
    *(void **) object = pool->free_list;
    pool->free_list = object;
    ++pool->free_count;
}

static inline void r2_pool_fini(r2_pool_t *pool)
{
    while (NULL != pool->free_list) {
        void *object = pool->free_list;

        pool->free_list = *(void **) object;
        free(object);
    }
    pool->free_count = 0;
}

#endif
