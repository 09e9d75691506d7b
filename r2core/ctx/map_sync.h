/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Agreed maps, shared by all communicators that agree on the same; map syncs, which make the next
 * one.
 */
#ifndef R2_CTX_MAP_SYNC_H
#define R2_CTX_MAP_SYNC_H

#include "ctx/plan_env.h"
#include "model/health_map.h"

/** A map of all hosts. Nobody changes it once it is shared. Engine lock. */
typedef struct r2_shared_map {
    r2_health_map_t map;
    uint64_t digest; /* of all of it, versions included */
    uint32_t users;
    struct r2_shared_map **list; /* borrowed: where it is; NULL: not shared yet */
    struct r2_shared_map *next;  /* there */
} r2_shared_map_t;

/** All rails full, not shared. @return owned by the caller; NULL: no memory. */
r2_shared_map_t *r2_shared_map_create(uint32_t host_count, uint32_t rail_count);
/**
 * Gives a map that is not shared yet to all.
 * @param list the maps that are in use. @return it, or an equal one in its place: to be given back
 * by put.
 */
r2_shared_map_t *r2_shared_map_share(r2_shared_map_t **list, r2_shared_map_t *map);
/** One user more. */
r2_shared_map_t *r2_shared_map_get(r2_shared_map_t *map);
/** One user less: the last one frees it. Also for one that is not shared; NULL: nothing. */
void r2_shared_map_put(r2_shared_map_t *map);

/** A map sync under way: an allreduce of one element per rank, a map. Memory for all that it
 * needs. */
typedef struct r2_map_sync {
    r2_shared_map_t *next;   /* owned: the map agreed on so far, then what all ranks know */
    r2_plan_env_t *env;      /* owned: what plans are made from then */
    r2_health_map_t scratch; /* of one reduction */
    size_t bytes;            /* of an element */
    char *given, *taken;     /* owned: our map as it goes in; all ranks' maps */
} r2_map_sync_t;

/**
 * @param agreed what is agreed now. @param ours what this process knows.
 * @param version, cost the newest cost known here. @return R2_OK, R2_ERR_NO_MEMORY.
 */
r2_status_t r2_map_sync_create(const r2_shared_map_t *agreed, const r2_plan_env_t *env,
                               const r2_health_map_t *ours, uint32_t version,
                               const r2_cost_params_t *cost, r2_map_sync_t **sync_p);
/** @param sync may be NULL. */
void r2_map_sync_destroy(r2_map_sync_t *sync);
/** The operation (r2_reduce_fn_t): commutative, associative, idempotent. @param arg the
 * r2_map_sync_t. */
void r2_map_sync_reduce(void *arg, const void *in, void *inout, size_t count);
/** What came of it: fills sync->next and sync->env. @return true if a newer cost came with it. */
bool r2_map_sync_take(r2_map_sync_t *sync);

/** True if plans would be others with what `ours` says beside the agreed map; false: no memory,
 * too. */
bool r2_map_sync_matters(const r2_health_map_t *agreed, const r2_health_map_t *ours);

#endif
