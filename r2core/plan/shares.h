/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Shares of the vector that hosts own in a weighted direct exchange.
 */
#ifndef R2_PLAN_SHARES_H
#define R2_PLAN_SHARES_H

#include "plan/classes.h"
#include "plan/layout.h"

/** One, in the fixed point of weights and times. */
#define R2_SHARE_ONE ((uint64_t) 1 << 32)

/** Weights of hosts. A host's share is its weight over the sum of all hosts' weights. */
typedef struct r2_shares {
    uint64_t *weight; /* owned; [host]; R2_SHARE_ONE is about the whole vector */
    uint32_t host_count;
    bool routable; /* false: some pair must exchange data and shares no rail, or a host has none */
} r2_shares_t;

/**
 * Shares in proportion to members: those of the direct exchange with equal shares.
 * @return R2_OK or R2_ERR_NO_MEMORY.
 */
r2_status_t r2_shares_equal(r2_shares_t *shares, const r2_classes_t *classes);

/**
 * Shares that make the exchange end as early as can be.
 *
 * With g members on a host, R in all, share s and vector D, a host sends and takes in
 * D (g + (R - 2 g) s), and a pair of hosts a, b exchanges D (g_a s_b + g_b s_a) each way. The least
 * time T that all hosts keep up with has
 *
 *     s = (T B / D - g) / (R - 2 g),   T = max( D max(g / B), what makes the sum of s 1 )
 *
 * and a sum above 1 is scaled down. Where a pair of hosts shares too few rails for its part, both
 * give away what is too much; if the others cannot take it over, T grows (bisection). With
 * half of the members or more on one host, its traffic does not grow with its share: equal shares.
 *
 * Source: design of the weighted exchange; compare "Don't Let a Few Network Failures Slow the
 * Entire AllReduce", arXiv 2606.01680, for the bound. Deviation: pairs are water-filled, no linear
 * program.
 * @return R2_OK or R2_ERR_NO_MEMORY.
 */
r2_status_t r2_shares_solve(r2_shares_t *shares, const r2_classes_t *classes);
void r2_shares_fini(r2_shares_t *shares);

/** True if all hosts have the same weight per member. */
bool r2_shares_are_equal(const r2_shares_t *shares, const r2_classes_t *classes);

/**
 * Cuts `count` elements into the shares of all ranks, in rank order; lengths sum to the vector.
 * Ranks of a host divide its share equally.
 */
r2_status_t r2_shares_layout(const r2_shares_t *shares, const r2_topology_t *topology,
                             uint64_t count, uint64_t element_bytes, r2_layout_t *layout_p);

#endif
