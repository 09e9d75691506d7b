/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Remembers what the planner worked out.
 *
 * A job uses few communicators, collectives and lengths, so places are looked through one by one.
 */
#include "r2_config.h"

#include "plan/cache.h"

#include <stdlib.h>

r2_status_t r2_plan_cache_init(r2_plan_cache_t *cache, uint32_t room)
{
    *cache = (r2_plan_cache_t){.room = room};
    if (0 == room) {
        return R2_ERR_PARAM;
    }
    cache->entries = calloc(room, sizeof(*cache->entries));
    return NULL == cache->entries ? R2_ERR_NO_MEMORY : R2_OK;
}

static void entry_clear(r2_plan_entry_t *entry)
{
    r2_shares_fini(&entry->known.shares);
    *entry = (r2_plan_entry_t){.used = 0};
}

void r2_plan_cache_fini(r2_plan_cache_t *cache)
{
    for (uint32_t i = 0; NULL != cache->entries && i < cache->room; i++) {
        entry_clear(&cache->entries[i]);
    }
    free(cache->entries);
    cache->entries = NULL;
}

static bool same_key(const r2_plan_key_t *a, const r2_plan_key_t *b)
{
    return a->comm == b->comm && a->operation == b->operation && a->size_class == b->size_class &&
           a->map == b->map;
}

static r2_plan_entry_t *cache_lookup(r2_plan_cache_t *cache, const r2_plan_key_t *key)
{
    for (uint32_t i = 0; i < cache->room; i++) {
        if (0 < cache->entries[i].used && same_key(&cache->entries[i].key, key)) {
            return &cache->entries[i];
        }
    }
    return NULL;
}

/** A free place, or what was not used for longest. */
static r2_plan_entry_t *cache_oldest(r2_plan_cache_t *cache)
{
    r2_plan_entry_t *oldest = &cache->entries[0];

    for (uint32_t i = 1; i < cache->room; i++) {
        if (cache->entries[i].used < oldest->used) {
            oldest = &cache->entries[i];
        }
    }
    return oldest;
}

const r2_plan_known_t *r2_plan_cache_find(r2_plan_cache_t *cache, const r2_plan_key_t *key)
{
    r2_plan_entry_t *entry = cache_lookup(cache, key);

    if (NULL == entry) {
        cache->misses++;
        return NULL;
    }
    cache->hits++;
    entry->used = ++cache->turn;
    return &entry->known;
}

const r2_plan_known_t *r2_plan_cache_store(r2_plan_cache_t *cache, const r2_plan_key_t *key,
                                           r2_plan_known_t *known)
{
    r2_plan_entry_t *entry = cache_lookup(cache, key);

    entry = NULL == entry ? cache_oldest(cache) : entry;
    entry_clear(entry);
    *entry = (r2_plan_entry_t){.key = *key, .known = *known, .used = ++cache->turn};
    known->shares = (r2_shares_t){.weight = NULL};
    return &entry->known;
}

void r2_plan_cache_forget(r2_plan_cache_t *cache, uint64_t comm)
{
    for (uint32_t i = 0; i < cache->room; i++) {
        if (0 < cache->entries[i].used && comm == cache->entries[i].key.comm) {
            entry_clear(&cache->entries[i]);
        }
    }
}
