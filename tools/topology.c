/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Topology of hosts and rails for the tools: capacities of NICs, hosts and pairs.
 */
#include "r2_config.h"

#include "topology.h"

#include <stdlib.h>
#include <string.h>

#include "r2/macros.h"

r2_status_t topo_init(topo_t *topo_p, uint32_t host_count, uint32_t rail_count, double rate)
{
    const size_t nics = (size_t) host_count * rail_count;

    *topo_p = (topo_t){.host_count = host_count, .rail_count = rail_count, .derating = 1};
    if (host_count < 1 || host_count > TOPO_HOSTS_MAX || rail_count < 1 ||
        rail_count > TOPO_RAILS_MAX || !(rate > 0)) {
        return R2_ERR_PARAM;
    }
    topo_p->rate = malloc(nics * sizeof(*topo_p->rate));
    topo_p->left = malloc(nics * sizeof(*topo_p->left));
    if (NULL == topo_p->rate || NULL == topo_p->left ||
        R2_OK != topo_set_ranks(topo_p, host_count)) {
        topo_fini(topo_p);
        return R2_ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < nics; ++i) {
        topo_p->rate[i] = rate;
    }
    topo_heal(topo_p);
    return R2_OK;
}

void topo_fini(topo_t *topo)
{
    free(topo->rate);
    free(topo->left);
    free(topo->cuts);
    free(topo->names);
    free(topo->host_of);
    *topo = (topo_t){.host_count = 0};
}

r2_status_t topo_set_ranks(topo_t *topo, uint32_t rank_count)
{
    uint32_t *host_of;

    if (rank_count < topo->host_count || rank_count > TOPO_RANKS_MAX) {
        return R2_ERR_PARAM;
    }
    host_of = realloc(topo->host_of, rank_count * sizeof(*host_of));
    if (NULL == host_of) {
        return R2_ERR_NO_MEMORY;
    }
    for (uint32_t r = 0; r < rank_count; ++r) {
        host_of[r] = (uint32_t) ((uint64_t) r * topo->host_count / rank_count);
    }
    topo->host_of = host_of;
    topo->rank_count = rank_count;
    return R2_OK;
}

bool topo_is_rank_per_host(const topo_t *topo)
{
    bool alone = topo->rank_count == topo->host_count;

    for (uint32_t r = 0; alone && r < topo->rank_count; ++r) {
        alone = topo->host_of[r] == r;
    }
    return alone;
}

void topo_heal(topo_t *topo)
{
    for (size_t i = 0; i < (size_t) topo->host_count * topo->rail_count; ++i) {
        topo->left[i] = 1;
    }
    topo->cut_count = 0;
}

bool topo_is_cut(const topo_t *topo, uint32_t host_a, uint32_t host_b, uint32_t rail)
{
    const uint32_t low = r2_min(host_a, host_b), high = r2_max(host_a, host_b);

    for (uint32_t c = 0; c < topo->cut_count; ++c) {
        if (topo->cuts[c].host_a == low && topo->cuts[c].host_b == high &&
            topo->cuts[c].rail == rail) {
            return true;
        }
    }
    return false;
}

r2_status_t topo_cut(topo_t *topo, r2_topology_cut_t cut)
{
    const uint32_t low = r2_min(cut.host_a, cut.host_b), high = r2_max(cut.host_a, cut.host_b);
    r2_topology_cut_t *grown;

    if (topo_is_cut(topo, low, high, cut.rail)) {
        return R2_OK;
    }
    grown = realloc(topo->cuts, ((size_t) topo->cut_count + 1) * sizeof(*grown));
    if (NULL == grown) {
        return R2_ERR_NO_MEMORY;
    }
    topo->cuts = grown;
    topo->cuts[topo->cut_count++] =
        (r2_topology_cut_t){.host_a = low, .host_b = high, .rail = cut.rail};
    return R2_OK;
}

r2_status_t topo_name(topo_t *topo, uint32_t host, const char *name)
{
    if (NULL == topo->names) {
        topo->names = calloc(topo->host_count, sizeof(*topo->names));
    }
    if (NULL == topo->names) {
        return R2_ERR_NO_MEMORY;
    }
    snprintf(topo->names[host], sizeof(topo->names[host]), "%s", name);
    return R2_OK;
}

void topo_name_text(const topo_t *topo, uint32_t host, char *text_p)
{
    if (NULL != topo->names && '\0' != topo->names[host][0]) {
        memcpy(text_p, topo->names[host], sizeof(topo->names[host]));
    } else {
        snprintf(text_p, TOPO_NAME_BYTES, "h%u", (unsigned) host);
    }
}

double topo_rail(const topo_t *topo, uint32_t host, uint32_t rail)
{
    const size_t at = (size_t) host * topo->rail_count + rail;

    return topo->rate[at] * topo->left[at] * topo->derating;
}

double topo_host(const topo_t *topo, uint32_t host)
{
    double rate = 0;

    for (uint32_t rail = 0; rail < topo->rail_count; ++rail) {
        rate += topo_rail(topo, host, rail);
    }
    return rate;
}

double topo_pair(const topo_t *topo, uint32_t host_a, uint32_t host_b)
{
    double rate = 0, at_a = 0, at_b = 0;

    for (uint32_t rail = 0; rail < topo->rail_count; ++rail) {
        if (topo_is_cut(topo, host_a, host_b, rail)) {
            continue;
        }
        at_a += topo_rail(topo, host_a, rail);
        at_b += topo_rail(topo, host_b, rail);
        rate += r2_min(topo_rail(topo, host_a, rail), topo_rail(topo, host_b, rail));
    }
    return topo->flat ? r2_min(at_a, at_b) : rate;
}

uint32_t topo_failures(const topo_t *topo)
{
    uint32_t failures = topo->cut_count;

    for (size_t i = 0; i < (size_t) topo->host_count * topo->rail_count; ++i) {
        failures += topo->left[i] < 1 ? 1 : 0;
    }
    return failures;
}
