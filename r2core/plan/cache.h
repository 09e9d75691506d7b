/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Remembers what the planner worked out: a small table that forgets what was not used for longest.
 */
#ifndef R2_PLAN_CACHE_H
#define R2_PLAN_CACHE_H

#include "plan/forecast.h"

/** What a choice depends on. All parts must be set: keys are compared whole. */
typedef struct r2_plan_key {
    uint64_t comm;       /* of the communicator, unique in the process */
    uint64_t operation;  /* collective, element and properties of the operation */
    uint64_t size_class; /* r2_plan_size_class() */
    uint64_t map;        /* r2_topology_digest() */
} r2_plan_key_t;

/** What is remembered. */
typedef struct r2_plan_entry {
    r2_plan_key_t key;
    r2_plan_known_t known;
    uint64_t used; /* turn of the last use; 0: free place */
} r2_plan_entry_t;

typedef struct r2_plan_cache {
    r2_plan_entry_t *entries; /* owned; [room] */
    uint32_t room;
    uint64_t turn;
    uint64_t hits, misses;
} r2_plan_cache_t;

/** @return R2_OK, R2_ERR_PARAM (no room), R2_ERR_NO_MEMORY. */
r2_status_t r2_plan_cache_init(r2_plan_cache_t *cache, uint32_t room);
void r2_plan_cache_fini(r2_plan_cache_t *cache);

/** @return what is known, valid until the next call that changes the table, or NULL. */
const r2_plan_known_t *r2_plan_cache_find(r2_plan_cache_t *cache, const r2_plan_key_t *key);

/**
 * Remembers, in the place of the same key or of what was not used for longest. Takes the shares over.
 * @return as r2_plan_cache_find().
 */
const r2_plan_known_t *r2_plan_cache_store(r2_plan_cache_t *cache, const r2_plan_key_t *key,
                                           r2_plan_known_t *known);

/** Forgets all of a communicator. */
void r2_plan_cache_forget(r2_plan_cache_t *cache, uint64_t comm);

#endif
