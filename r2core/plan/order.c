/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Order of ranks around a ring.
 *
 * Three hosts with rails 0 1, 0, 1 and one with both, in a ring A B C D: B and C share nothing. The
 * weakest edge is B C; D, moved between them, joins both: A B D C.
 */
#include "r2_config.h"

#include "plan/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "plan/classes.h"

/*
 * Moves tried at most: each makes the weakest edge better or one of the weakest fewer. Fewer for
 * many hosts, each move looks at all of them.
 */
#define R2_MOVES_MOST  64u
#define R2_MOVES_LEAST 4u
#define R2_MOVES_WORK  4096u

typedef struct edges {
    uint64_t weakest;
    uint32_t count; /* as weak as that */
    uint32_t at;    /* the first of them: from position `at` to the next */
} edges_t;

static edges_t r2_edges_of(const r2_topology_t *topology, const uint32_t *hosts)
{
    edges_t edges = {.weakest = UINT64_MAX};

    for (uint32_t i = 0; i < topology->host_count; ++i) {
        const uint32_t next = hosts[(i + 1) % topology->host_count];
        const uint64_t rate = r2_topology_pair_rate(topology, hosts[i], next);

        if (rate < edges.weakest) {
            edges = (edges_t){.weakest = rate, .count = 0, .at = i};
        }
        edges.count += rate == edges.weakest ? 1 : 0;
    }
    return edges;
}

static bool r2_better(const edges_t *a, const edges_t *b)
{
    return a->weakest > b->weakest || (a->weakest == b->weakest && a->count < b->count);
}

/** Moves the host at a position behind that at another. */
static void r2_move_host(uint32_t *hosts, uint32_t from, uint32_t behind)
{
    const uint32_t host = hosts[from];

    if (from < behind) {
        memmove(&hosts[from], &hosts[from + 1], (behind - from) * sizeof(*hosts));
        hosts[behind] = host;
    } else {
        memmove(&hosts[behind + 2], &hosts[behind + 1], (from - behind - 1) * sizeof(*hosts));
        hosts[behind + 1] = host;
    }
}

/** Weakest of the edges that a move makes, without making it: most moves are no good. */
static uint64_t r2_bridge_rate(const r2_topology_t *topology, const uint32_t *hosts, uint32_t from,
                               uint32_t behind)
{
    const uint32_t count = topology->host_count;
    const uint32_t bridge = hosts[from];
    const uint64_t left = r2_topology_pair_rate(topology, hosts[behind], bridge);
    const uint64_t right = r2_topology_pair_rate(topology, bridge, hosts[(behind + 1) % count]);
    const uint64_t gap = r2_topology_pair_rate(topology, hosts[(from + count - 1) % count],
                                               hosts[(from + 1) % count]);

    return r2_min(gap, r2_min(left, right));
}

/** Puts the best bridge into the weakest edge. @return false: none helps. */
static bool r2_mend_edge(const r2_topology_t *topology, uint32_t *hosts, uint32_t *tried)
{
    const uint32_t count = topology->host_count;
    const edges_t now = r2_edges_of(topology, hosts);
    uint64_t best_rate = now.weakest;
    uint32_t best = count;
    edges_t then;

    for (uint32_t i = 0; i < count; ++i) {
        if (i != now.at && i != (now.at + 1) % count &&
            r2_bridge_rate(topology, hosts, i, now.at) > best_rate) {
            best_rate = r2_bridge_rate(topology, hosts, i, now.at);
            best = i;
        }
    }
    if (best == count) {
        return false;
    }
    memcpy(tried, hosts, count * sizeof(*tried));
    r2_move_host(tried, best, now.at);
    then = r2_edges_of(topology, tried);
    if (!r2_better(&then, &now)) {
        return false;
    }
    memcpy(hosts, tried, count * sizeof(*hosts));
    return true;
}

static void r2_mend(const r2_topology_t *topology, uint32_t *hosts, uint32_t *tried)
{
    const uint64_t most =
        r2_clamp_u64(R2_MOVES_WORK / topology->host_count, R2_MOVES_LEAST, R2_MOVES_MOST);
    bool better_still = 3 < topology->host_count; /* of three, each is every other's neighbour */

    for (uint64_t move = 0; better_still && move < most; ++move) {
        better_still = r2_mend_edge(topology, hosts, tried);
    }
}

/** Lists ranks by host. @param next scratch: per host, where its next rank goes. */
static void r2_place_ranks(const r2_topology_t *topology, const uint32_t *hosts, uint32_t *next,
                           int32_t *order)
{
    uint32_t at = 0;

    memset(next, 0, topology->host_count * sizeof(*next));
    for (int32_t r = 0; r < topology->rank_count; ++r) {
        ++next[topology->host_of[r]];
    }
    for (uint32_t i = 0; i < topology->host_count; ++i) {
        const uint32_t ranks = next[hosts[i]];

        next[hosts[i]] = at;
        at += ranks;
    }
    for (int32_t r = 0; r < topology->rank_count; ++r) {
        order[next[topology->host_of[r]]++] = r;
    }
}

r2_status_t r2_order_ring(const r2_topology_t *topology, int32_t size, int32_t *order_p)
{
    uint32_t *hosts;

    if (NULL == topology) {
        for (int32_t r = 0; r < size; ++r) {
            order_p[r] = r;
        }
        return R2_OK;
    }
    hosts = malloc(2 * (size_t) topology->host_count * sizeof(*hosts));
    if (NULL == hosts) {
        return R2_ERR_NO_MEMORY;
    }
    for (uint32_t h = 0; h < topology->host_count; ++h) {
        hosts[h] = h;
    }
    r2_mend(topology, hosts, hosts + topology->host_count);
    r2_place_ranks(topology, hosts, hosts + topology->host_count, order_p);
    free(hosts);
    return R2_OK;
}

/** Is there a pair of hosts without a common rail? */
static bool r2_order_some_are_apart(const r2_topology_t *topology)
{
    r2_classes_t classes;
    bool apart = false;

    if (R2_OK != r2_classes_init(&classes, topology, R2_MEMBERS_HOSTS)) {
        return false;
    }
    for (uint32_t k = 0; NULL != classes.pairs && k < classes.count; ++k) {
        for (uint32_t l = k; l < classes.count; ++l) {
            apart = apart || (r2_classes_paired(&classes, k, l) &&
                              0 == classes.pairs[k * classes.count + l]);
        }
    }
    r2_classes_fini(&classes);
    return apart;
}

bool r2_order_reaches_more(const r2_topology_t *topology)
{
    int32_t *order;
    bool reaches = false;

    if (topology->host_count < 3 || r2_topology_is_even(topology) ||
        !r2_order_some_are_apart(topology)) {
        return false;
    }
    order = malloc((size_t) topology->rank_count * sizeof(*order));
    if (NULL != order && R2_OK == r2_order_ring(topology, topology->rank_count, order)) {
        reaches = true;
        for (int32_t i = 0; i < topology->rank_count; ++i) {
            const uint32_t from = topology->host_of[order[i]];
            const uint32_t to = topology->host_of[order[(i + 1) % topology->rank_count]];

            reaches = reaches && (from == to || 0 < r2_topology_pair_rate(topology, from, to));
        }
    }
    free(order);
    return reaches;
}
