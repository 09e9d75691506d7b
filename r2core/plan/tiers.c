/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Tiers of bandwidth, and what rings of them cost.
 */
#include "r2_config.h"

#include "plan/tiers.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

/*
 * Rings of several tiers and what folded hosts exchange take turns on the same rails and do not fit
 * together without gaps, and the first results come when a segment has been all the way round. So
 * much more, in 256ths, and one for each rank. Simulated, over the traffic of the busiest host: 4
 * to 8 hosts 12 to 19 %, 16 hosts 14 to 20 %, 32 hosts 22 % (1 GiB) and 38 % (256 MiB).
 */
#define R2_TIERS_GAPS_256TH 32u

/* A tier is at least this part of the largest share faster than the one before. */
#define R2_TIER_STEP_PART (R2_TIERS_MAX - 1)

typedef unsigned __int128 r2_wide_t;

static int r2_by_value(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *) a, right = *(const uint64_t *) b;

    return left < right ? -1 : left > right;
}

/** Lowest share of each tier. @param sorted shares, ascending. @return number of tiers. */
static uint32_t r2_tier_levels(const uint64_t *sorted, uint32_t hosts, uint64_t *levels_p)
{
    const uint64_t step =
        r2_max((sorted[hosts - 1] + R2_TIER_STEP_PART - 1) / R2_TIER_STEP_PART, 1u);
    uint32_t count = 0;

    for (uint32_t h = 0; h < hosts; ++h) {
        if (0 == count || sorted[h] - levels_p[count - 1] >= step) {
            levels_p[count++] = sorted[h];
        }
    }
    return count;
}

static void r2_tiers_count(r2_tiers_t *tiers, const r2_topology_t *topology)
{
    for (uint32_t h = 0; h < topology->host_count; ++h) {
        for (uint32_t k = 0; k <= tiers->tier_of[h]; ++k) {
            ++tiers->tiers[k].host_count;
        }
    }
    for (int32_t r = 0; r < topology->rank_count; ++r) {
        for (uint32_t k = 0; k <= tiers->tier_of[topology->host_of[r]]; ++k) {
            ++tiers->tiers[k].rank_count;
        }
    }
}

/** Levels, and which hosts are above them. @param sorted room for one number per host. */
static void r2_tiers_fill(r2_tiers_t *tiers, const r2_topology_t *topology,
                          const r2_shares_t *shares, uint64_t *sorted)
{
    const uint32_t hosts = topology->host_count;
    uint64_t levels[R2_TIERS_MAX];

    memcpy(sorted, shares->weight, hosts * sizeof(*sorted));
    qsort(sorted, hosts, sizeof(*sorted), r2_by_value);
    tiers->count = r2_tier_levels(sorted, hosts, levels);
    for (uint32_t h = 0; h < hosts; ++h) {
        while (tiers->tier_of[h] + 1 < tiers->count &&
               shares->weight[h] >= levels[tiers->tier_of[h] + 1]) {
            ++tiers->tier_of[h];
        }
    }
    r2_tiers_count(tiers, topology);
    for (uint32_t k = 0; k < tiers->count; ++k) {
        tiers->tiers[k].weight =
            (levels[k] - (0 == k ? 0 : levels[k - 1])) * tiers->tiers[k].host_count;
    }
}

r2_status_t r2_tiers_init(r2_tiers_t *tiers, const r2_topology_t *topology,
                          const r2_classes_t *hosts)
{
    /* as if all shared all rails: of pairs only neighbours and folded hosts matter */
    r2_classes_t apart = *hosts;
    uint64_t *sorted = malloc(topology->host_count * sizeof(*sorted));
    r2_shares_t shares = {.weight = NULL};
    r2_status_t status = R2_ERR_NO_MEMORY;

    apart.pairs = NULL;
    *tiers = (r2_tiers_t){.tier_of = calloc(topology->host_count, sizeof(*tiers->tier_of))};
    if (NULL != sorted && NULL != tiers->tier_of) {
        status = r2_shares_solve(&shares, &apart);
    }
    if (R2_OK == status) {
        r2_tiers_fill(tiers, topology, &shares, sorted);
    } else {
        r2_tiers_fini(tiers);
    }
    r2_shares_fini(&shares);
    free(sorted);
    return status;
}

r2_status_t r2_tiers_of(r2_tiers_t *tiers, const r2_topology_t *topology)
{
    r2_classes_t hosts;
    r2_status_t status = r2_classes_init(&hosts, topology, R2_MEMBERS_HOSTS);

    tiers->tier_of = NULL;
    if (R2_OK == status) {
        status = r2_tiers_init(tiers, topology, &hosts);
        r2_classes_fini(&hosts);
    }
    return status;
}

void r2_tiers_fini(r2_tiers_t *tiers)
{
    free(tiers->tier_of);
    tiers->tier_of = NULL;
}

/* ---- predicted time */

/** What the rings carry, bytes, and the longest time so far. */
typedef struct load {
    const r2_tiers_t *tiers;       /* borrowed */
    const r2_topology_t *topology; /* borrowed */
    uint64_t part[R2_TIERS_MAX];   /* of the vector */
    uint64_t edge[R2_TIERS_MAX];   /* from one host to the next */
    uint64_t fold[R2_TIERS_MAX];   /* between one rank of the ring and one folded host, each way */
    uint32_t *ranks;               /* owned; [host] */
    uint64_t longest_ns;
} load_t;

static void r2_load_parts(load_t *load, uint64_t bytes)
{
    const r2_tiers_t *tiers = load->tiers;
    r2_wide_t sum = 0;

    for (uint32_t k = 0; k < tiers->count; ++k) {
        sum += tiers->tiers[k].weight;
    }
    for (uint32_t k = 0; k < tiers->count && sum > 0; ++k) {
        const uint64_t ranks = (uint64_t) tiers->tiers[k].rank_count;

        load->part[k] = (uint64_t) (((r2_wide_t) bytes * tiers->tiers[k].weight + sum - 1) / sum);
        load->fold[k] = (load->part[k] + ranks - 1) / ranks;
        load->edge[k] = 1 == tiers->tiers[k].host_count ? 0 : 2 * (ranks - 1) * load->fold[k];
    }
    for (int32_t r = 0; r < load->topology->rank_count; ++r) {
        ++load->ranks[load->topology->host_of[r]];
    }
}

static void r2_load_note(load_t *load, uint64_t bytes, uint64_t rate)
{
    load->longest_ns = r2_max(load->longest_ns, r2_cost_wire_ns(bytes, rate));
}

/** All that a host sends, which is all that it takes in. */
static void r2_load_hosts(load_t *load)
{
    const r2_tiers_t *tiers = load->tiers;

    for (uint32_t h = 0; h < load->topology->host_count; ++h) {
        uint64_t bytes = 0;

        for (uint32_t k = 0; k < tiers->count; ++k) {
            const uint64_t folded =
                (uint64_t) (load->topology->rank_count - tiers->tiers[k].rank_count);

            bytes += k <= tiers->tier_of[h]
                         ? load->edge[k] + load->ranks[h] * folded * load->fold[k]
                         : load->ranks[h] * load->part[k];
        }
        r2_load_note(load, bytes, r2_topology_host_rate(load->topology, h));
    }
}

/** What a host and another that is in more rings exchange as folded host and ring, each way. */
static uint64_t r2_load_between(const load_t *load, uint32_t a, uint32_t b)
{
    const uint32_t first = r2_min(load->tiers->tier_of[a], load->tiers->tier_of[b]);
    const uint32_t last = r2_max(load->tiers->tier_of[a], load->tiers->tier_of[b]);
    uint64_t bytes = 0;

    for (uint32_t k = first + 1; k <= last; ++k) {
        bytes += load->fold[k] * load->ranks[a] * load->ranks[b];
    }
    return bytes;
}

/**
 * Neighbours. From the last place back: who comes next in every ring is known then. Rings in which
 * the same host comes next share its rails.
 * @param hosts in the order of the circle.
 */
static void r2_load_edges(load_t *load, const uint32_t *hosts)
{
    const uint32_t count = load->topology->host_count;
    uint32_t next[R2_TIERS_MAX] = {0};

    for (uint32_t i = 2 * count; i-- > 0;) {
        const uint32_t host = hosts[i % count], rings = load->tiers->tier_of[host] + 1;
        uint64_t bytes = 0;

        for (uint32_t k = 0; i < count && k < rings; ++k) {
            bytes += load->edge[k];
            if (0 == load->edge[k] || k + 1 == rings || next[k] != next[k + 1]) {
                bytes += 0 == bytes ? 0 : r2_load_between(load, host, next[k]);
                r2_load_note(load, bytes, r2_topology_pair_rate(load->topology, host, next[k]));
                bytes = 0;
            }
        }
        for (uint32_t k = 0; k < rings; ++k) {
            next[k] = host;
        }
    }
}

/** Rings and their folded hosts that are no neighbours. */
static void r2_load_folded(load_t *load, const r2_classes_t *hosts)
{
    for (uint32_t k = 0; NULL != hosts->pairs && k < hosts->count; ++k) {
        for (uint32_t l = 0; l < k; ++l) {
            r2_load_note(load,
                         r2_load_between(load, hosts->classes[k].first, hosts->classes[l].first),
                         hosts->pairs[k * hosts->count + l]);
        }
    }
}

/** Longest time that a rank of the last ring, which all others' folded hosts are, needs to add. */
static uint64_t r2_load_reduce_ns(const load_t *load, const r2_cost_params_t *params)
{
    uint64_t bytes = 0;

    for (uint32_t k = 0; k < load->tiers->count; ++k) {
        bytes += (uint64_t) (load->topology->rank_count - 1) * load->fold[k];
    }
    return (uint64_t) ((r2_wide_t) bytes * 1000 /
                       r2_max(params->reduce_mbytes_per_s[R2_MEM_HOST], 1u));
}

r2_status_t r2_tiers_cost_ns(const r2_tiers_t *tiers, const r2_topology_t *topology,
                             const r2_classes_t *hosts, const int32_t *order,
                             const r2_cost_params_t *params, uint64_t bytes, uint64_t *ns_p)
{
    const uint32_t count = topology->host_count;
    const uint64_t steps = 2 * (uint64_t) (topology->rank_count - 1) + (1 < tiers->count ? 2 : 0);
    uint32_t *memory = calloc(2 * (size_t) count, sizeof(*memory));
    load_t load = {.tiers = tiers, .topology = topology, .ranks = memory};
    uint32_t at = 0;

    if (NULL == memory) {
        return R2_ERR_NO_MEMORY;
    }
    r2_load_parts(&load, bytes);
    for (int32_t r = 0; r < topology->rank_count; r += (int32_t) load.ranks[memory[count + at++]]) {
        memory[count + at] = topology->host_of[order[r]];
    }
    if (1 < count) {
        r2_load_hosts(&load);
        r2_load_edges(&load, memory + count);
        r2_load_folded(&load, hosts);
    }
    if (1 < tiers->count && R2_COST_NEVER != load.longest_ns) {
        load.longest_ns +=
            (uint64_t) ((r2_wide_t) load.longest_ns *
                        (R2_TIERS_GAPS_256TH + (uint64_t) topology->rank_count) / 256);
    }
    *ns_p = r2_max(r2_cost_paced_ns(params, load.longest_ns), r2_load_reduce_ns(&load, params));
    *ns_p = *ns_p >= R2_COST_NEVER - steps * params->alpha_ns ? R2_COST_NEVER
                                                              : *ns_p + steps * params->alpha_ns;
    free(memory);
    return R2_OK;
}
