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

#include "plan/shares.h"
#include "r2/cost_params.h"
#include "r2/planner.h"

#define R2_COST_PARAMS_DEFAULT                                       \
    ((r2_cost_params_t){.alpha_ns = 20000, .rate_ppm = R2_PPM, \
                        .reduce_mbytes_per_s = {[R2_MEM_HOST] = 8000}})

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

/** Direct exchange, pipelined, with these shares. Each message beyond the first of a step counts as
 * half of one. */
uint64_t r2_cost_exchange_ns(const r2_classes_t *classes, const r2_shares_t *shares,
                             const r2_cost_params_t *params, uint64_t bytes);

/** What a short vector asks of the busiest rank, and of its host: part / whole of it, each way. */
typedef struct r2_cost_shape {
    uint64_t steps, messages; /* one after the other; sent by one rank. Between hosts */
    uint64_t local_steps, local_messages;
    uint64_t part, whole;
} r2_cost_shape_t;

typedef r2_cost_shape_t (*r2_cost_shape_fn_t)(const r2_topology_t *topology,
                                              const r2_topology_placement_t *placement);

/** Recursive doubling; all ranks in one step; direct exchange, both halves or the first alone. */
r2_cost_shape_t r2_cost_doubling_shape(const r2_topology_t *topology,
                                       const r2_topology_placement_t *placement);
r2_cost_shape_t r2_cost_exchange_shape(const r2_topology_t *topology,
                                       const r2_topology_placement_t *placement);
r2_cost_shape_t r2_cost_direct_shape(const r2_topology_t *topology,
                                     const r2_topology_placement_t *placement);
r2_cost_shape_t r2_cost_half_shape(const r2_topology_t *topology,
                                   const r2_topology_placement_t *placement);

/**
 * Is it faster to fold each host's contributions before they go over its rails than to let all
 * ranks send by themselves? Decides between two reduction trees, so it looks at the length and at
 * which ranks are on which host: not at rates, health or measured costs, for which usual values
 * stand. Weighs what goes over the rails against steps and messages (docs/planner.md).
 * @param apart what folding takes the place of.
 */
bool r2_cost_folding_pays(const r2_topology_t *topology, uint64_t bytes, r2_cost_shape_fn_t apart);
/** The same of any algorithm in two levels, with its shape. False where each rank has a host of its
 * own, or all are on one. */
bool r2_cost_levels_pay(const r2_topology_t *topology, uint64_t bytes, r2_cost_shape_fn_t levels,
                        r2_cost_shape_fn_t apart);

/** What folding within hosts adds to an exchange between them: two steps, and a message for each
 * piece of the others. */
uint64_t r2_cost_folding_ns(const r2_topology_t *topology, const r2_topology_placement_t *placement,
                            const r2_cost_params_t *params);

/** Steps of recursive doubling: of a number that is no power of two one before and one after. */
uint32_t r2_cost_doubling_steps(int32_t size);

/** Ring. @param order ranks by place in the circle; NULL: in their order. */
uint64_t r2_cost_ring_ns(const r2_topology_t *topology, const int32_t *order,
                         const r2_cost_params_t *params, uint64_t bytes);

/** Recursive doubling of blocks of ranks: as many steps go from host to host as hosts alone would
 * need. */
uint64_t r2_cost_doubling_ns(const r2_classes_t *classes, const r2_cost_params_t *params,
                             uint64_t bytes);

/** Every rank sends the whole vector to every other, in one step. */
uint64_t r2_cost_to_all_ns(const r2_classes_t *classes, const r2_cost_params_t *params,
                           uint64_t bytes);

#endif
