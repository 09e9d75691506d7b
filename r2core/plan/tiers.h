/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Tiers of bandwidth: who takes part in which ring of a recursive allreduce, for how much of the
 * vector.
 */
#ifndef R2_PLAN_TIERS_H
#define R2_PLAN_TIERS_H

#include "plan/cost.h"

#define R2_TIERS_MAX 16u

/** One ring: all hosts but those of slower tiers, which are its folded hosts. */
typedef struct r2_tier {
    uint64_t weight;     /* of its part of the vector; R2_SHARE_ONE is about the whole */
    uint32_t host_count; /* in the ring */
    int32_t rank_count;
} r2_tier_t;

/** Slowest first: all hosts are in the first ring. */
typedef struct r2_tiers {
    r2_tier_t tiers[R2_TIERS_MAX];
    uint32_t count;
    uint32_t *tier_of; /* owned; [host], the last ring that it is in; it is in all before, too */
} r2_tiers_t;

/**
 * Tiers with which all hosts end together.
 *
 * A host sends and takes in 2 (n_k - 1) / n_k + (n - n_k) / n_k of the part Y_k of a ring of n_k
 * hosts that it is in, and Y_k of one that it is a folded host of. All end together with
 *
 *     Y_k = n_k (s_k - s_(k-1)),   s = (T B / D - 1) / (n - 2)
 *
 * where s is the share of a host in a weighted exchange (shares.h): rings of rings reach the same
 * bound T. Hosts whose shares differ by less than a sixteenth of the largest are one tier, at the
 * pace of the slowest.
 *
 * Source: recursive decomposition, section 6 of the R2CCL paper. Deviation: closed form for parts
 * that are handed in and delivered directly while the rings run, not broadcast after them.
 * @param hosts classes of R2_MEMBERS_HOSTS.
 * @return R2_OK or R2_ERR_NO_MEMORY.
 */
r2_status_t r2_tiers_init(r2_tiers_t *tiers, const r2_topology_t *topology,
                          const r2_classes_t *hosts);

/** As r2_tiers_init(), with classes of its own. */
r2_status_t r2_tiers_of(r2_tiers_t *tiers, const r2_topology_t *topology);
void r2_tiers_fini(r2_tiers_t *tiers);

/**
 * Predicted time.
 * @param hosts as for r2_tiers_init().
 * @param order ranks by place in the circle (r2_order_ring()).
 * @param ns_p  R2_COST_NEVER: some that must exchange share no rail.
 * @return R2_OK or R2_ERR_NO_MEMORY.
 */
r2_status_t r2_tiers_cost_ns(const r2_tiers_t *tiers, const r2_topology_t *topology,
                             const r2_classes_t *hosts, const int32_t *order,
                             const r2_cost_params_t *params, uint64_t bytes, uint64_t *ns_p);

#endif
