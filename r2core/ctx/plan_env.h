/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What plans of a communicator are made from: its hosts and rails with the map that is agreed.
 */
#ifndef R2_CTX_PLAN_ENV_H
#define R2_CTX_PLAN_ENV_H

#include "ctx/host_table.h"
#include "model/health_map.h"
#include "plan/memo.h"
#include "r2/topology.h"

/**
 * What plans are made from: equal on all ranks for one call. Nobody changes it once it is shared,
 * so a call may keep it over an agreement on another one. Engine lock.
 */
typedef struct r2_plan_env {
    r2_topology_t topology; /* of the communicator, with what is agreed */
    uint32_t *map_host;     /* owned: per host of the topology, its index in the map */
    r2_cost_params_t cost;  /* what predictions are made from */
    uint32_t cost_version;  /* 0: as published at start (ctx/estimator.h) */
    uint64_t map_digest;    /* of topology and cost: programs are found by it */
    r2_plan_memo_t memo;    /* what plans have in common; what it says follows from the rest */
    bool even;              /* nothing is broken or slow, and all hosts have equal rails */
    uint32_t users;
    struct r2_plan_env **list; /* borrowed: where it is; NULL: not shared yet */
    struct r2_plan_env *next;  /* there */
} r2_plan_env_t;

/**
 * The communicator of some ranks of the job, as if all was well. Not shared.
 * @param ranks [size], ranks of the job. @return R2_OK, R2_ERR_NO_MEMORY.
 */
r2_status_t r2_plan_env_create(const r2_hosts_t *hosts, const uint32_t *ranks, int32_t size,
                               uint32_t rail_count, r2_plan_env_t **env_p);
/** One that may be changed. @return R2_OK, R2_ERR_NO_MEMORY. */
r2_status_t r2_plan_env_copy(const r2_plan_env_t *env, r2_plan_env_t **copy_p);

/** Takes in the map of all hosts that is agreed. Not for one that is shared. */
void r2_plan_env_apply(r2_plan_env_t *env, const r2_health_map_t *map);

/**
 * Gives one that is not shared yet to all.
 * @param list those that are in use. @return it, or an equal one in its place: to be given back by
 * put.
 */
r2_plan_env_t *r2_plan_env_share(r2_plan_env_t **list, r2_plan_env_t *env);
/** One user more. */
r2_plan_env_t *r2_plan_env_get(r2_plan_env_t *env);
/** One user less: the last one frees it. Also for one that is not shared; NULL: nothing. */
void r2_plan_env_put(r2_plan_env_t *env);

#endif
