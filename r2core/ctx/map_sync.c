/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Agreed maps and the map syncs that make them.
 */
#include "r2_config.h"

#include "ctx/map_sync.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/util.h"

/** A map as it travels in a map sync, with the newest cost that is known: rank 0 alone makes
 * versions. */
typedef struct r2_map_blob {
    uint32_t exception_count;
    uint32_t cost_version;
    r2_cost_params_t cost;
    r2_health_exception_t exceptions[R2_HEALTH_EXCEPTIONS_MAX];
    r2_health_entry_t entries[];
} r2_map_blob_t;

/* ---- shared maps ---- */

r2_shared_map_t *r2_shared_map_create(uint32_t host_count, uint32_t rail_count)
{
    r2_shared_map_t *map = calloc(1, sizeof(*map));

    if (NULL != map && R2_OK != r2_health_map_init(&map->map, host_count, rail_count)) {
        free(map);
        return NULL;
    }
    if (NULL != map) {
        map->users = 1;
    }
    return map;
}

r2_shared_map_t *r2_shared_map_share(r2_shared_map_t **list, r2_shared_map_t *map)
{
    r2_shared_map_t *other;

    map->digest = r2_health_map_digest_all(&map->map);
    LL_FOREACH(*list, other) {
        if (other->digest == map->digest && r2_health_map_equal(&other->map, &map->map)) {
            r2_shared_map_put(map);
            return r2_shared_map_get(other);
        }
    }
    map->list = list;
    LL_PREPEND(*list, map);
    return map;
}

r2_shared_map_t *r2_shared_map_get(r2_shared_map_t *map)
{
    ++map->users;
    return map;
}

void r2_shared_map_put(r2_shared_map_t *map)
{
    if (NULL == map || 0 != --map->users) {
        return;
    }
    if (NULL != map->list) {
        LL_DELETE(*map->list, map);
    }
    r2_health_map_fini(&map->map);
    free(map);
}

/* ---- map syncs ---- */

static size_t r2_map_blob_bytes(const r2_health_map_t *map)
{
    return sizeof(r2_map_blob_t) +
           (size_t) map->host_count * map->rail_count * sizeof(r2_health_entry_t);
}

static void r2_map_put(const r2_health_map_t *map, void *to)
{
    r2_map_blob_t *blob = to;

    memset(blob, 0, r2_map_blob_bytes(map));
    blob->exception_count = map->exception_count;
    memcpy(blob->exceptions, map->exceptions, sizeof(blob->exceptions));
    memcpy(blob->entries, map->entries,
           (size_t) map->host_count * map->rail_count * sizeof(*map->entries));
}

/* Joins what another rank's map says. The blob comes from a peer of the job: counts are checked. */
static void r2_map_take(r2_health_map_t *map, const void *from)
{
    const r2_map_blob_t *blob = from;
    r2_health_change_t change;

    for (uint32_t i = 0; i < map->host_count * map->rail_count; ++i) {
        memset(&change, 0, sizeof(change));
        change.host_a = i / map->rail_count;
        change.rail = i % map->rail_count;
        change.entry = blob->entries[i];
        (void) r2_health_map_merge(map, &change);
    }
    for (uint32_t i = 0; i < r2_min(blob->exception_count, R2_HEALTH_EXCEPTIONS_MAX); ++i) {
        const r2_health_exception_t *exception = &blob->exceptions[i];

        memset(&change, 0, sizeof(change));
        change.is_path = true;
        change.host_a = exception->host_a;
        change.host_b = exception->host_b;
        change.rail = exception->rail;
        change.entry.version = exception->version;
        (void) r2_health_map_merge(map, &change);
    }
}

void r2_map_sync_reduce(void *arg, const void *in, void *inout, size_t count)
{
    r2_map_sync_t *sync = arg;
    const r2_map_blob_t *ours = inout, *theirs = in;
    const r2_map_blob_t newer = theirs->cost_version > ours->cost_version ? *theirs : *ours;
    r2_map_blob_t *result = inout;

    (void) count; /* one element: a whole map */
    r2_health_map_reset(&sync->scratch);
    r2_map_take(&sync->scratch, inout);
    r2_map_take(&sync->scratch, in);
    r2_map_put(&sync->scratch, inout);
    result->cost_version = newer.cost_version;
    result->cost = newer.cost;
}

static r2_status_t r2_map_sync_allocate(const r2_shared_map_t *agreed, const r2_plan_env_t *env,
                                        r2_map_sync_t *sync)
{
    const r2_health_map_t *map = &agreed->map;

    sync->bytes = r2_map_blob_bytes(map);
    sync->given = malloc(sync->bytes);
    sync->taken = malloc(sync->bytes);
    sync->next = r2_shared_map_create(map->host_count, map->rail_count);
    if (NULL == sync->given || NULL == sync->taken || NULL == sync->next ||
        R2_OK != r2_health_map_init(&sync->scratch, map->host_count, map->rail_count)) {
        return R2_ERR_NO_MEMORY;
    }
    return r2_plan_env_copy(env, &sync->env);
}

r2_status_t r2_map_sync_create(const r2_shared_map_t *agreed, const r2_plan_env_t *env,
                               const r2_health_map_t *ours, uint32_t version,
                               const r2_cost_params_t *cost, r2_map_sync_t **sync_p)
{
    r2_map_sync_t *sync = calloc(1, sizeof(*sync));
    r2_map_blob_t *blob;
    r2_status_t status;

    if (NULL == sync) {
        return R2_ERR_NO_MEMORY;
    }
    status = r2_map_sync_allocate(agreed, env, sync);
    if (R2_OK != status) {
        r2_map_sync_destroy(sync);
        return status;
    }
    r2_health_map_copy(&sync->next->map, &agreed->map);
    r2_health_map_copy(&sync->scratch, &agreed->map);
    r2_health_map_join(&sync->scratch, ours);
    r2_map_put(&sync->scratch, sync->given);
    blob = (void *) sync->given;
    blob->cost_version = version;
    blob->cost = *cost;
    *sync_p = sync;
    return R2_OK;
}

void r2_map_sync_destroy(r2_map_sync_t *sync)
{
    if (NULL == sync) {
        return;
    }
    r2_shared_map_put(sync->next);
    r2_plan_env_put(sync->env);
    if (NULL != sync->scratch.entries) {
        r2_health_map_fini(&sync->scratch);
    }
    free(sync->given);
    free(sync->taken);
    free(sync);
}

bool r2_map_sync_take(r2_map_sync_t *sync)
{
    const r2_map_blob_t *blob = (const void *) sync->taken;
    const bool newer = blob->cost_version > sync->env->cost_version;

    r2_map_take(&sync->next->map, blob);
    if (newer) {
        sync->env->cost = blob->cost;
        sync->env->cost_version = blob->cost_version;
    }
    r2_plan_env_apply(sync->env, &sync->next->map);
    return newer;
}

bool r2_map_sync_matters(const r2_health_map_t *agreed, const r2_health_map_t *ours)
{
    r2_health_map_t merged;
    bool matters;

    if (R2_OK != r2_health_map_init(&merged, agreed->host_count, agreed->rail_count)) {
        return false;
    }
    r2_health_map_copy(&merged, agreed);
    r2_health_map_join(&merged, ours);
    matters = r2_health_map_digest(&merged) != r2_health_map_digest(agreed);
    r2_health_map_fini(&merged);
    return matters;
}
