/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What plans of a communicator are made from: its hosts and rails with the map that is agreed.
 */
#include "r2_config.h"

#include "ctx/plan_env.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/util.h"

/* Rate of a rail that did not tell its speed, MB/s: only ratios count. */
#define R2_RATE_UNKNOWN 1000u

/* Did all hosts tell how fast their rails are? Else all rails count as equal. */
static bool r2_plan_env_rates_measured(const r2_hosts_t *hosts, const uint32_t *map_host,
                                       uint32_t count)
{
    for (uint32_t h = 0; h < count; ++h) {
        const r2_host_t *host = &hosts->hosts[map_host[h]];

        for (uint32_t r = 0; r < host->rail_count; ++r) {
            if (0 == host->rails[r].mbytes_per_s) {
                return false;
            }
        }
    }
    return true;
}

static void r2_plan_env_rates(const r2_hosts_t *hosts, const uint32_t *map_host,
                              r2_topology_t *topology)
{
    const uint32_t rails = topology->rail_count;
    const bool known = r2_plan_env_rates_measured(hosts, map_host, topology->host_count);

    for (uint32_t h = 0; h < topology->host_count; ++h) {
        const r2_host_t *host = &hosts->hosts[map_host[h]];

        for (uint32_t r = 0; r < rails; ++r) {
            const bool has = r < host->rail_count; /* a host may have fewer than the others */
            const uint32_t rate = has && known ? host->rails[r].mbytes_per_s : R2_RATE_UNKNOWN;

            topology->rate_mbytes_per_s[h * rails + r] = has ? rate : 0;
        }
    }
}

/*
 * Choices depend on both, so what is remembered of them must be found by both; on even rails
 * nothing is predicted, and all that counts is whether rails are slow and ranks crowded: what else
 * was learned while some were broken changes no plan after their repair.
 */
static uint64_t r2_plan_env_digest(const r2_plan_env_t *env)
{
    static const unsigned char key[crypto_shorthash_KEYBYTES] = "r2 basis";
    unsigned char digest[crypto_shorthash_BYTES];
    uint64_t cost;

    if (env->even) {
        cost = (uint64_t) env->cost.crowded << 1;
        return r2_topology_digest(&env->topology) ^ cost ^ (r2_cost_is_slow(&env->cost) ? 1 : 0);
    }
    crypto_shorthash(digest, (const unsigned char *) &env->cost, sizeof(env->cost), key);
    memcpy(&cost, digest, sizeof(cost));
    return r2_topology_digest(&env->topology) ^ cost;
}

static void r2_plan_env_settle(r2_plan_env_t *env)
{
    env->even = r2_topology_is_even(&env->topology);
    env->map_digest = r2_plan_env_digest(env);
}

/* Room for the hosts of the communicator, and which ones they are. @return R2_OK,
 * R2_ERR_NO_MEMORY. */
static r2_status_t r2_plan_env_hosts(const r2_hosts_t *hosts, const uint32_t *ranks, int32_t size,
                                     uint32_t rail_count, r2_plan_env_t *env)
{
    uint32_t *local = malloc(hosts->host_count * sizeof(*local));
    uint32_t count = 0;
    r2_status_t status = R2_ERR_NO_MEMORY;

    if (NULL == local) {
        return R2_ERR_NO_MEMORY;
    }
    memset(local, 0xff, hosts->host_count * sizeof(*local));
    for (int32_t i = 0; i < size; ++i) {
        uint32_t *at = &local[hosts->host_of[ranks[i]]];

        *at = UINT32_MAX == *at ? count++ : *at;
    }
    env->map_host = malloc(count * sizeof(*env->map_host));
    if (NULL != env->map_host) {
        status = r2_topology_init(&env->topology, count, rail_count, size, R2_RATE_UNKNOWN);
    }
    for (int32_t i = 0; R2_OK == status && i < size; ++i) {
        const uint32_t host = hosts->host_of[ranks[i]];

        env->topology.host_of[i] = local[host];
        env->map_host[local[host]] = host;
    }
    free(local);
    return status;
}

r2_status_t r2_plan_env_create(const r2_hosts_t *hosts, const uint32_t *ranks, int32_t size,
                               uint32_t rail_count, r2_plan_env_t **env_p)
{
    r2_plan_env_t *env = calloc(1, sizeof(*env));
    r2_status_t status;

    if (NULL == env) {
        return R2_ERR_NO_MEMORY;
    }
    env->users = 1;
    status = r2_plan_env_hosts(hosts, ranks, size, rail_count, env);
    if (R2_OK != status) {
        r2_plan_env_put(env);
        return status;
    }
    r2_plan_env_rates(hosts, env->map_host, &env->topology);
    env->cost = hosts->cost;
    r2_plan_env_settle(env);
    *env_p = env;
    return R2_OK;
}

r2_status_t r2_plan_env_copy(const r2_plan_env_t *env, r2_plan_env_t **copy_p)
{
    const size_t bytes = env->topology.host_count * sizeof(*env->map_host);
    r2_plan_env_t *copy = malloc(sizeof(*copy));
    uint32_t *map_host = malloc(bytes);
    r2_topology_t topology;

    if (NULL == copy || NULL == map_host || R2_OK != r2_topology_copy(&topology, &env->topology)) {
        free(copy);
        free(map_host);
        return R2_ERR_NO_MEMORY;
    }
    *copy = *env;
    copy->topology = topology;
    copy->map_host = map_host;
    memcpy(map_host, env->map_host, bytes);
    copy->memo = (r2_plan_memo_t){{NULL}};
    copy->users = 1;
    copy->list = NULL;
    *copy_p = copy;
    return R2_OK;
}

void r2_plan_env_apply(r2_plan_env_t *env, const r2_health_map_t *map)
{
    r2_assert(NULL == env->list);
    (void) r2_health_map_apply(map, env->map_host, &env->topology);
    r2_plan_memo_fini(&env->memo);
    r2_plan_env_settle(env);
}

static bool r2_plan_env_equal(const r2_plan_env_t *a, const r2_plan_env_t *b)
{
    return a->map_digest == b->map_digest && a->cost_version == b->cost_version &&
           0 == memcmp(&a->cost, &b->cost, sizeof(a->cost)) &&
           r2_topology_equal(&a->topology, &b->topology) &&
           0 == memcmp(a->map_host, b->map_host, a->topology.host_count * sizeof(*a->map_host));
}

r2_plan_env_t *r2_plan_env_share(r2_plan_env_t **list, r2_plan_env_t *env)
{
    r2_plan_env_t *other;

    LL_FOREACH(*list, other) {
        if (r2_plan_env_equal(other, env)) {
            r2_plan_env_put(env);
            return r2_plan_env_get(other);
        }
    }
    env->list = list;
    LL_PREPEND(*list, env);
    return env;
}

r2_plan_env_t *r2_plan_env_get(r2_plan_env_t *env)
{
    ++env->users;
    return env;
}

void r2_plan_env_put(r2_plan_env_t *env)
{
    if (NULL == env || 0 != --env->users) {
        return;
    }
    if (NULL != env->list) {
        LL_DELETE(*env->list, env);
    }
    r2_plan_memo_fini(&env->memo);
    r2_topology_fini(&env->topology);
    free(env->map_host);
    free(env);
}
