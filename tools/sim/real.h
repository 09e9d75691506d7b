/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The schedules that r2 itself builds, with its default parameters, on a topology of the tools.
 */
#ifndef R2_TOOLS_REAL_H
#define R2_TOOLS_REAL_H

#include "r2/planner.h"
#include "sim/flow.h"

/** Schedules of all ranks. */
typedef struct real {
    r2_topology_t topology;   /* what the planner sees */
    r2_plan_input_t input;    /* of rank 0 */
    r2_schedule_t *schedules; /* owned; [rank]; NULL: none */
    uint32_t rank_count;
} real_t;

/**
 * Converts a topology: rates become whole MB/s, capacities sixteenths, rounded down but not to 0.
 * @return R2_OK, R2_ERR_PARAM (more hosts, rails or cuts than the planner knows) or
 * R2_ERR_NO_MEMORY.
 */
r2_status_t real_topology(const topo_t *topo, r2_topology_t *topology_p);

/** What times are predicted from: latency, pace and rate of reductions, as far as they are
 * known. */
r2_cost_params_t real_cost(const topo_t *topo);

/** What the planner is asked: an operation on floats, free to be re-ordered only without
 * reproducible. */
r2_plan_input_t real_input(const r2_topology_t *topology, r2_coll_kind_t kind, uint64_t bytes,
                           const char *algorithm);

/** What real_build() begins with: no schedules. @return as real_build(). */
r2_status_t real_init(real_t *real, const topo_t *topo, r2_coll_kind_t kind, uint64_t bytes,
                      const char *algorithm);

/**
 * @param bytes     of the vector; of allgather and reduce_scatter_block: of all ranks together.
 * @param algorithm by name; NULL: the planner chooses.
 * @return R2_OK, R2_ERR_PARAM (no such algorithm) or R2_ERR_NO_MEMORY.
 */
r2_status_t real_build(real_t *real, const topo_t *topo, r2_coll_kind_t kind, uint64_t bytes,
                       const char *algorithm);
void real_fini(real_t *real);

/**
 * Simulates them, see flow_run(): reducing takes time where the topology says its rate, what ranks
 * of a host send each other goes at that rate or at the planner's usual one. @param piece_fn may be
 * NULL.
 * @return as flow_run(), or R2_ERR_UNSUPPORTED: no schedules.
 */
r2_status_t real_run(const real_t *real, const topo_t *topo, flow_piece_fn_t piece_fn,
                     void *piece_arg, flow_result_t *result_p);

#endif
