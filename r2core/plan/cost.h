/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Predicted times: T = steps x alpha + bytes on the busiest host / its rate + reduced bytes /
 * reduce rate.
 */
#ifndef R2_PLAN_COST_H
#define R2_PLAN_COST_H

#include <stdbool.h>

#include "model/cost_params.h"
#include "plan/shares.h"

#define R2_COST_PARAMS_DEFAULT                                       \
    ((r2_cost_params_t){.alpha_ns = 20000, .rate_ppm = R2_PPM, \
                        .reduce_mbytes_per_s = {[R2_MEM_HOST] = 8000}})

/** Fills in usual values. */
r2_cost_params_t r2_cost_params(const r2_cost_params_t *published);

/** Time of what cannot run over the rails as it is. */
#define R2_COST_NEVER UINT64_MAX

/** ns for `bytes` at a rate in sixteenths of MB/s; R2_COST_NEVER for rate 0, but 0 for no bytes. */
uint64_t r2_cost_wire_ns(uint64_t bytes, uint64_t rate);

/** A time over the rails as the topology tells them, at the rate that they give. */
uint64_t r2_cost_paced_ns(const r2_cost_params_t *params, uint64_t ns);

/**
 * No allreduce over the rails is faster: every host sends out its part once and takes the result in
 * once, and every byte is sent 2 (n - 1) times in all. T* = max( D / min B, 2 (n - 1) D / sum B ),
 * n hosts One host: 0.
 */
uint64_t r2_cost_bound_ns(const r2_topology_t *topology, uint64_t bytes);

/** Folding within hosts takes one step before the exchange between them, and one after it. */
#define R2_COST_FOLDING_STEPS 2u

/** Direct exchange, pipelined, with these shares. */
uint64_t r2_cost_exchange_ns(const r2_classes_t *classes, const r2_shares_t *shares,
                             const r2_cost_params_t *params, uint64_t bytes);

/**
 * Is it worth two steps within hosts that each host's contributions are folded before they go over its rails?
 * Decides between two reduction trees, so it looks at the length and at which ranks are on which host: not at
 * rates, health or measured costs, for which usual values stand. Ranks by themselves send each other, both ways
 * together, 2 g (R - g) / R of the vector over the rails of a host with g of R ranks; one for each host 2 (n - 1) / n.
 */
bool r2_cost_folding_pays(const r2_topology_t *topology, uint64_t bytes);

/** Ring. @param order ranks by place in the circle; NULL: in their order. */
uint64_t r2_cost_ring_ns(const r2_topology_t *topology, const int32_t *order,
                         const r2_cost_params_t *params, uint64_t bytes);

/** Every rank sends the whole vector in each of `steps` steps. */
uint64_t r2_cost_steps_ns(const r2_classes_t *classes, const r2_cost_params_t *params,
                          uint32_t steps, uint64_t bytes);

#endif
