/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Topology of a communicator: hosts, ranks on them, rails and what of them is left.
 */
#include "r2_config.h"

#include "r2/topology.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

static size_t r2_topology_at(const r2_topology_t *topology, uint32_t host, uint32_t rail)
{
    return (size_t) host * topology->rail_count + rail;
}

r2_status_t r2_topology_init(r2_topology_t *topology, uint32_t host_count, uint32_t rail_count,
                             int32_t rank_count, uint32_t rate_mbytes_per_s)
{
    const size_t rails = (size_t) host_count * rail_count;

    *topology = (r2_topology_t){
        .host_count = host_count, .rail_count = rail_count, .rank_count = rank_count};
    if (0 == rails || rank_count < 0 || (uint32_t) rank_count < host_count) {
        return R2_ERR_PARAM;
    }
    topology->host_of = malloc((size_t) rank_count * sizeof(*topology->host_of));
    topology->rate_mbytes_per_s = malloc(rails * sizeof(*topology->rate_mbytes_per_s));
    topology->capacity = malloc(rails);
    if (NULL == topology->host_of || NULL == topology->rate_mbytes_per_s ||
        NULL == topology->capacity) {
        r2_topology_fini(topology);
        return R2_ERR_NO_MEMORY;
    }
    for (int32_t r = 0; r < rank_count; ++r) {
        topology->host_of[r] = (uint32_t) ((uint64_t) r * host_count / (uint64_t) rank_count);
    }
    for (size_t i = 0; i < rails; ++i) {
        topology->rate_mbytes_per_s[i] = rate_mbytes_per_s;
        topology->capacity[i] = R2_CAPACITY_FULL;
    }
    return R2_OK;
}

r2_status_t r2_topology_copy(r2_topology_t *to, const r2_topology_t *from)
{
    const size_t rails = (size_t) from->host_count * from->rail_count;
    r2_topology_t copy;
    r2_status_t status =
        r2_topology_init(&copy, from->host_count, from->rail_count, from->rank_count, 0);

    if (R2_OK != status) {
        return status;
    }
    memcpy(copy.host_of, from->host_of, (size_t) from->rank_count * sizeof(*copy.host_of));
    memcpy(copy.rate_mbytes_per_s, from->rate_mbytes_per_s,
           rails * sizeof(*copy.rate_mbytes_per_s));
    memcpy(copy.capacity, from->capacity, rails);
    memcpy(copy.cuts, from->cuts, sizeof(copy.cuts));
    copy.cut_count = from->cut_count;
    copy.any_pairing = from->any_pairing;
    *to = copy;
    return R2_OK;
}

bool r2_topology_equal(const r2_topology_t *a, const r2_topology_t *b)
{
    const size_t rails = (size_t) a->host_count * a->rail_count;

    return a->host_count == b->host_count && a->rail_count == b->rail_count &&
           a->rank_count == b->rank_count && a->any_pairing == b->any_pairing &&
           a->cut_count == b->cut_count &&
           0 == memcmp(a->host_of, b->host_of, (size_t) a->rank_count * sizeof(*a->host_of)) &&
           0 == memcmp(a->rate_mbytes_per_s, b->rate_mbytes_per_s,
                       rails * sizeof(*a->rate_mbytes_per_s)) &&
           0 == memcmp(a->capacity, b->capacity, rails) &&
           0 == memcmp(a->cuts, b->cuts, a->cut_count * sizeof(a->cuts[0]));
}

void r2_topology_fini(r2_topology_t *topology)
{
    free(topology->host_of);
    free(topology->rate_mbytes_per_s);
    free(topology->capacity);
    *topology = (r2_topology_t){.host_count = 0};
}

void r2_topology_set_capacity(r2_topology_t *topology, uint32_t host, uint32_t rail,
                              uint32_t capacity)
{
    if (host < topology->host_count && rail < topology->rail_count) {
        topology->capacity[r2_topology_at(topology, host, rail)] =
            (uint8_t) r2_min(capacity, R2_CAPACITY_FULL);
    }
}

static bool r2_topology_is_cut(const r2_topology_t *topology, uint32_t host_a, uint32_t host_b,
                               uint32_t rail)
{
    const uint32_t low = r2_min(host_a, host_b), high = r2_max(host_a, host_b);

    for (uint32_t c = 0; c < topology->cut_count; ++c) {
        const r2_topology_cut_t *cut = &topology->cuts[c];

        if (cut->host_a == low && cut->host_b == high && cut->rail == rail) {
            return true;
        }
    }
    return false;
}

bool r2_topology_cut(r2_topology_t *topology, uint32_t host_a, uint32_t host_b, uint32_t rail)
{
    const r2_topology_cut_t cut = {
        .host_a = r2_min(host_a, host_b), .host_b = r2_max(host_a, host_b), .rail = rail};

    if (host_a == host_b || cut.host_b >= topology->host_count || rail >= topology->rail_count) {
        return false;
    }
    if (r2_topology_is_cut(topology, host_a, host_b, rail)) {
        return true;
    }
    if (R2_TOPOLOGY_CUTS_MAX == topology->cut_count) {
        return false;
    }
    topology->cuts[topology->cut_count++] = cut;
    return true;
}

uint64_t r2_topology_rail_rate(const r2_topology_t *topology, uint32_t host, uint32_t rail)
{
    const size_t at = r2_topology_at(topology, host, rail);

    return (uint64_t) topology->rate_mbytes_per_s[at] * topology->capacity[at];
}

uint64_t r2_topology_host_rate(const r2_topology_t *topology, uint32_t host)
{
    uint64_t rate = 0;

    for (uint32_t rail = 0; rail < topology->rail_count; ++rail) {
        rate += r2_topology_rail_rate(topology, host, rail);
    }
    return rate;
}

uint64_t r2_topology_pair_rate(const r2_topology_t *topology, uint32_t host_a, uint32_t host_b)
{
    uint64_t rate = 0;

    if (topology->any_pairing) {
        return r2_min(r2_topology_host_rate(topology, host_a),
                      r2_topology_host_rate(topology, host_b));
    }
    for (uint32_t rail = 0; rail < topology->rail_count; ++rail) {
        if (!r2_topology_is_cut(topology, host_a, host_b, rail)) {
            rate += r2_min(r2_topology_rail_rate(topology, host_a, rail),
                           r2_topology_rail_rate(topology, host_b, rail));
        }
    }
    return rate;
}

r2_status_t r2_topology_placement(const r2_topology_t *topology,
                                  r2_topology_placement_t *placement_p)
{
    uint32_t *ranks_on = calloc(topology->host_count, sizeof(*ranks_on));
    const uint64_t ranks = (uint64_t) topology->rank_count;

    if (NULL == ranks_on) {
        return R2_ERR_NO_MEMORY;
    }
    for (int32_t r = 0; r < topology->rank_count; ++r) {
        ++ranks_on[topology->host_of[r]];
    }
    *placement_p = (r2_topology_placement_t){.least = UINT32_MAX};
    for (uint32_t h = 0; h < topology->host_count; ++h) {
        placement_p->least = r2_min(placement_p->least, ranks_on[h]);
        placement_p->most = r2_max(placement_p->most, ranks_on[h]);
        placement_p->pairs = r2_max(placement_p->pairs, ranks_on[h] * (ranks - ranks_on[h]));
    }
    free(ranks_on);
    return R2_OK;
}

bool r2_topology_is_healthy(const r2_topology_t *topology)
{
    const size_t rails = (size_t) topology->host_count * topology->rail_count;

    for (size_t i = 0; i < rails; ++i) {
        if (R2_CAPACITY_FULL != topology->capacity[i]) {
            return false;
        }
    }
    return 0 == topology->cut_count;
}

bool r2_topology_is_even(const r2_topology_t *topology)
{
    const uint32_t rails = topology->rail_count;

    for (uint32_t h = 1; h < topology->host_count; ++h) {
        if (0 != memcmp(topology->rate_mbytes_per_s,
                        &topology->rate_mbytes_per_s[h * (size_t) rails],
                        rails * sizeof(*topology->rate_mbytes_per_s))) {
            return false;
        }
    }
    return r2_topology_is_healthy(topology);
}

static uint64_t r2_digest_join(uint64_t digest, uint64_t value)
{
    digest = (digest ^ value) * 0xff51afd7ed558ccdull;
    return digest ^ digest >> 32;
}

/** Cuts are a set: the order in which they were noted must not count. */
static uint64_t r2_digest_cuts(const r2_topology_t *topology)
{
    uint64_t sum = 0;

    for (uint32_t c = 0; c < topology->cut_count; ++c) {
        const r2_topology_cut_t *cut = &topology->cuts[c];

        sum +=
            r2_digest_join(r2_digest_join(r2_digest_join(1, cut->host_a), cut->host_b), cut->rail);
    }
    return sum;
}

uint64_t r2_topology_digest(const r2_topology_t *topology)
{
    const size_t rails = (size_t) topology->host_count * topology->rail_count;
    uint64_t digest = 0x9e3779b97f4a7c15ull;

    digest = r2_digest_join(digest, topology->host_count);
    digest = r2_digest_join(digest, topology->rail_count);
    digest = r2_digest_join(digest, topology->any_pairing ? 1 : 0);
    for (int32_t r = 0; r < topology->rank_count; ++r) {
        digest = r2_digest_join(digest, topology->host_of[r]);
    }
    for (size_t i = 0; i < rails; ++i) {
        digest = r2_digest_join(digest, (uint64_t) topology->rate_mbytes_per_s[i] << 8 |
                                            topology->capacity[i]);
    }
    return r2_digest_join(digest, r2_digest_cuts(topology));
}
