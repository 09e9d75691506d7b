/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What plans of a communicator are made from: its hosts and rails with the map that is agreed.
 */
#include "r2_config.h"

#include "ctx/basis.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* Rate of a rail that did not tell its speed, MB/s: only ratios count. */
#define R2_RATE_UNKNOWN 1000u

/* Did all hosts tell how fast their rails are? Else all rails count as equal. */
static bool r2_basis_rates_known(const r2_hosts_t *hosts, const uint32_t *map_host, uint32_t count)
{
    for (uint32_t h = 0; h < count; ++h) {
        const r2_host_t *host = &hosts->hosts[map_host[h]];

        for (uint32_t r = 0; r < host->rail_count; ++r) {
            if (0 == host->rail_mbytes_per_s[r]) {
                return false;
            }
        }
    }
    return true;
}

static void r2_basis_rates(const r2_hosts_t *hosts, const uint32_t *map_host, r2_topology_t *topology)
{
    const uint32_t rails = topology->rail_count;
    const bool known = r2_basis_rates_known(hosts, map_host, topology->host_count);

    for (uint32_t h = 0; h < topology->host_count; ++h) {
        const r2_host_t *host = &hosts->hosts[map_host[h]];

        for (uint32_t r = 0; r < rails; ++r) {
            uint32_t rate = known ? host->rail_mbytes_per_s[r] : R2_RATE_UNKNOWN;

            topology->rate_mbytes_per_s[h * rails + r] = r < host->rail_count ? rate : 0;
        }
    }
}

/* Choices depend on both, so what is remembered of them must be found by both. */
static uint64_t r2_basis_digest(const r2_basis_t *basis)
{
    static const unsigned char key[crypto_shorthash_KEYBYTES] = "r2 basis";
    unsigned char digest[crypto_shorthash_BYTES];
    uint64_t cost;

    crypto_shorthash(digest, (const unsigned char *) &basis->cost, sizeof(basis->cost), key);
    memcpy(&cost, digest, sizeof(cost));
    return r2_topology_digest(&basis->topology) ^ cost;
}

static void r2_basis_settle(r2_basis_t *basis)
{
    basis->even = r2_topology_is_even(&basis->topology);
    basis->map_digest = r2_basis_digest(basis);
}

r2_status_t r2_basis_init(const r2_hosts_t *hosts, const uint32_t *ranks, int32_t size,
                          uint32_t rail_count, uint32_t *map_host_p, r2_basis_t *basis_p)
{
    uint32_t *local = malloc(hosts->host_count * sizeof(*local));
    uint32_t count = 0;
    r2_status_t status;

    if (NULL == local) {
        return R2_ERR_NO_MEMORY;
    }
    memset(local, 0xff, hosts->host_count * sizeof(*local));
    for (int32_t i = 0; i < size; ++i) {
        uint32_t host = hosts->host_of[ranks[i]];

        if (UINT32_MAX == local[host]) {
            local[host] = count;
            map_host_p[count++] = host;
        }
    }
    status = r2_topology_init(&basis_p->topology, count, rail_count, size, R2_RATE_UNKNOWN);
    for (int32_t i = 0; R2_OK == status && i < size; ++i) {
        basis_p->topology.host_of[i] = local[hosts->host_of[ranks[i]]];
    }
    if (R2_OK == status) {
        r2_basis_rates(hosts, map_host_p, &basis_p->topology);
        basis_p->cost = hosts->cost;
        basis_p->cost_version = 0;
        r2_basis_settle(basis_p);
    }
    free(local);
    return status;
}

void r2_basis_apply(r2_basis_t *basis, const r2_health_map_t *map, const uint32_t *map_host)
{
    (void) r2_topology_apply(&basis->topology, map, map_host);
    r2_basis_settle(basis);
}

r2_status_t r2_basis_copy(const r2_basis_t *basis, r2_basis_t **copy_p)
{
    r2_basis_t *copy = malloc(sizeof(*copy));
    r2_status_t status;

    if (NULL == copy) {
        return R2_ERR_NO_MEMORY;
    }
    *copy = *basis;
    status = r2_topology_copy(&copy->topology, &basis->topology);
    if (R2_OK != status) {
        free(copy);
        return status;
    }
    *copy_p = copy;
    return R2_OK;
}

void r2_basis_free(r2_basis_t *copy)
{
    if (NULL != copy) {
        r2_topology_fini(&copy->topology);
        free(copy);
    }
}
