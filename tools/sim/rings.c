/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Predicted time of ring-like allreduces.
 *
 * A ring is in lockstep: each of its 2 (n - 1) steps takes as long as its narrowest edge, so its
 * time is exact without simulation. R2-AllReduce has a second ring, without the slowest hosts:
 *
 *   ring k runs over n_k hosts with the bandwidth b_k - b_(k-1) that the slower one leaves; both
 *   take equally long with shares Y_k ~ (b_k - b_(k-1)) / a_k, T_rings = D / sum of that,
 *   a_k = 2 (n_k - 1) / n_k; then the result of the second is broadcast: Y_2 D / (b_2 - b_1)
 *
 * That is T = max(T1, T2) + T3 (arXiv 2512.25059, section 5.2, with one rank on each host). The
 * prediction takes one ring (Balance) where a second does not pay: the paper's crossover.
 */
#include "r2_config.h"

#include "sim/rings.h"

#include <math.h>
#include <stdlib.h>

#include "r2/macros.h"
#include "sim/real.h"

/* Bandwidths that differ by less are one class. */
#define RINGS_SAME 1e-6

static double ring_factor(uint32_t hosts)
{
    return 2.0 * (hosts - 1) / hosts;
}

static double ring_latency(const topo_t *topo)
{
    return 2.0 * (topo->host_count - 1) * topo->latency_s;
}

/** True if the pair can use the rail. */
static bool joined(const topo_t *topo, uint32_t a, uint32_t b, uint32_t rail)
{
    return topo_rail(topo, a, rail) > 0 && topo_rail(topo, b, rail) > 0 &&
           !topo_is_cut(topo, a, b, rail);
}

/** Seconds per byte of an edge if every rail has an equal share and dead ones lean on the next. */
static double failover_derating(const topo_t *topo, uint32_t a, uint32_t b)
{
    double load[TOPO_RAILS_MAX] = {0}, derating = 0;

    for (uint32_t rail = 0; rail < topo->rail_count; ++rail) {
        uint32_t tried = 0;

        while (tried < topo->rail_count && !joined(topo, a, b, (rail + tried) % topo->rail_count)) {
            ++tried;
        }
        if (tried == topo->rail_count) {
            return INFINITY;
        }
        load[(rail + tried) % topo->rail_count] += 1.0 / topo->rail_count;
    }
    for (uint32_t rail = 0; rail < topo->rail_count; ++rail) {
        if (load[rail] > 0) {
            derating = r2_max(
                derating, load[rail] / r2_min(topo_rail(topo, a, rail), topo_rail(topo, b, rail)));
        }
    }
    return derating;
}

static double balance_derating(const topo_t *topo, uint32_t a, uint32_t b)
{
    return 1 / topo_pair(topo, a, b);
}

/** Slowest edge of a ring over `count` hosts. @param order hosts in turn. */
static double ring_derating(const topo_t *topo, const uint32_t *order, uint32_t count,
                            double (*derating_fn)(const topo_t *topo, uint32_t a, uint32_t b))
{
    double derating = 0;

    for (uint32_t i = 0; i < count; ++i) {
        derating = r2_max(derating, derating_fn(topo, order[i], order[(i + 1) % count]));
    }
    return derating;
}

/** Hosts in turn. @return owned by the caller; NULL: out of memory. */
static uint32_t *natural_order(const topo_t *topo)
{
    uint32_t *order = malloc(topo->host_count * sizeof(*order));

    for (uint32_t h = 0; NULL != order && h < topo->host_count; ++h) {
        order[h] = h;
    }
    return order;
}

static r2_status_t one_ring(const predict_case_t *ask, double *seconds_p,
                            double (*derating_fn)(const topo_t *topo, uint32_t a, uint32_t b))
{
    const topo_t *topo = ask->topo;
    uint32_t *order = natural_order(topo);

    if (NULL == order) {
        return R2_ERR_NO_MEMORY;
    }
    *seconds_p = ring_factor(topo->host_count) * ask->bytes *
                     ring_derating(topo, order, topo->host_count, derating_fn) +
                 ring_latency(topo);
    free(order);
    return R2_OK;
}

r2_status_t rings_failover(const predict_case_t *ask, double *seconds_p)
{
    return one_ring(ask, seconds_p, failover_derating);
}

r2_status_t rings_balance(const predict_case_t *ask, double *seconds_p)
{
    return one_ring(ask, seconds_p, balance_derating);
}

/* ---- several rings */

/** The rings of the recursive form while they are chosen. */
typedef struct tiers {
    const topo_t *topo; /* borrowed */
    uint32_t *members;  /* owned; hosts of the next ring, in turn */
    uint32_t member_count;
    double taken; /* bandwidth that the rings so far use on every edge */
    double rate;  /* sum of (b_k - b_(k-1)) / a_k */
    double wait;  /* sum of Y_k / (b_k - b_(k-1)), times rate */
} tiers_t;

/** Keeps the hosts that have more than the rings so far take. @return how many. */
static uint32_t tiers_peel(tiers_t *tiers)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < tiers->member_count; ++i) {
        const double host = topo_host(tiers->topo, tiers->members[i]);

        if (host > tiers->taken * (1 + RINGS_SAME)) {
            tiers->members[kept++] = tiers->members[i];
        }
    }
    tiers->member_count = kept;
    return kept;
}

/** Adds a ring over the members. @return false if that is none, or it has no bandwidth left. */
static bool tiers_add(tiers_t *tiers)
{
    double width;

    if (tiers->member_count < 2) {
        return false;
    }
    width = 1 / ring_derating(tiers->topo, tiers->members, tiers->member_count, balance_derating) -
            tiers->taken;
    if (!(width > tiers->taken * RINGS_SAME)) {
        return false;
    }
    tiers->rate += width / ring_factor(tiers->member_count);
    if (tiers->taken > 0) {
        /* Y_k / width = width / a_k / rate / width */
        tiers->wait += 1 / ring_factor(tiers->member_count);
    }
    tiers->taken += width;
    return true;
}

/** Best time with up to `most` rings. */
static r2_status_t best_rings(const predict_case_t *ask, const uint32_t *order, uint32_t most,
                              double *seconds_p)
{
    const topo_t *topo = ask->topo;
    tiers_t tiers = {.topo = topo, .member_count = topo->host_count};
    double best = INFINITY;

    tiers.members = malloc(topo->host_count * sizeof(*tiers.members));
    if (NULL == tiers.members) {
        return R2_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < topo->host_count; ++i) {
        tiers.members[i] = order[i];
    }
    for (uint32_t k = 0; k < most && tiers_add(&tiers); ++k) {
        best = r2_min(best, (1 + tiers.wait) / tiers.rate);
        tiers_peel(&tiers);
    }
    free(tiers.members);
    *seconds_p = ask->bytes * best + ring_latency(topo);
    return R2_OK;
}

r2_status_t rings_two(const predict_case_t *ask, double *seconds_p)
{
    uint32_t *order = natural_order(ask->topo);
    r2_status_t status;

    if (NULL == order) {
        return R2_ERR_NO_MEMORY;
    }
    status = best_rings(ask, order, 2, seconds_p);
    free(order);
    return status;
}

/* Rates are made so high that whole MB/s round nothing; times shrink with them. */
#define RINGS_FINE_MBYTES_PER_S 1e6

/** @return by how much times shrink. */
static double fine_rates(const topo_t *topo, r2_topology_t *topology)
{
    const size_t nics = (size_t) topo->host_count * topo->rail_count;
    double fastest = 0;

    for (size_t i = 0; i < nics; ++i) {
        fastest = r2_max(fastest, topo->rate[i]);
    }
    for (size_t i = 0; i < nics; ++i) {
        topology->rate_mbytes_per_s[i] =
            (uint32_t) ceil(topo->rate[i] / fastest * RINGS_FINE_MBYTES_PER_S);
    }
    return fastest / (RINGS_FINE_MBYTES_PER_S * 1e6);
}

r2_status_t rings_recursive(const predict_case_t *ask, double *seconds_p)
{
    const topo_t *topo = ask->topo;
    r2_topology_t topology = {.host_count = 0};
    uint64_t ns = R2_COST_NEVER;
    double shrunk = 1;
    r2_status_t status = real_topology(topo, &topology);

    if (R2_OK == status) {
        shrunk = fine_rates(topo, &topology);
        status = r2_plan_rings_ns(&topology, (uint64_t) ask->bytes, &ns);
    }
    *seconds_p = R2_COST_NEVER == ns ? INFINITY : (double) ns * 1e-9 / shrunk + ring_latency(topo);
    r2_topology_fini(&topology);
    return status;
}
