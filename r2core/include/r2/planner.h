/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Plans: from a collective's arguments to a schedule, and why this one. Pure: no clock, no I/O, no
 * globals.
 *
 * What libr2plan offers to programs of this tree, with r2/topology.h, r2/schedule.h and
 * r2/cost_params.h. Not installed and not exported by libr2core: it may change with any version.
 */
#ifndef R2_PLANNER_H
#define R2_PLANNER_H

#include "r2/coll.h"
#include "r2/cost_params.h"
#include "r2/schedule.h"
#include "r2/topology.h"

struct r2_plan_estimate;

/**
 * Everything a plan is made from. All fields but `rank` are equal on all ranks of the communicator.
 * Buffers are contiguous arrays of elements:
 *   allreduce            IN count            OUT count
 *   allgather(v)         IN counts[rank]     OUT sum of counts, block r at displs[r]
 *   reduce_scatter(_block) IN sum of counts  OUT counts[rank]
 *   bcast                OUT count at every rank (root sends from OUT, too)
 *   barrier              nothing
 *   reduce               IN count            OUT count at the root
 *   scan, exscan         IN count            OUT count (exscan: not written at rank 0)
 *   gather               IN count            OUT size * count at the root, block r at r * count
 *   scatter              IN size * count at the root      OUT count
 *   alltoall             IN size * count     OUT size * count
 *   gatherv, scatterv, alltoallv, alltoallw, neighbour: messages sends[] from IN and recvs[] into
 *                        OUT (edges below)
 * in_place: the input is in OUT instead (allgather: in its own block; reduce_scatter: OUT has the
 * sum of counts and the result goes to its start, as MPI_IN_PLACE says). Ops then never name
 * R2_BUF_IN. reduce and gather: at the root only. scatter: at the root, whose own block then stays
 * in IN.
 *
 * Edges: lists of equal ends are in equal order, so that the i-th message of one rank never waits
 * for the j-th, j > i, of another:
 *   gatherv, scatterv    leaves: one edge; root: one for each rank, from root + 1 on around the
 *                        circle
 *   alltoallv, alltoallw sends[i] to and recvs[i] from rank i - rank (around the circle), lengths
 *                        of 0 included; in place: on the same memory
 *   neighbour            any order
 */
typedef struct r2_plan_input {
    r2_coll_kind_t kind;
    int32_t rank, size;
    int32_t root;           /* rooted collectives */
    uint64_t element_bytes; /* unit of count and of reduction */
    /* allreduce, bcast; allgather and reduce_scatter_block: per rank */
    uint64_t count;
    const uint64_t *counts; /* allgatherv, reduce_scatter: per rank; else NULL. borrowed */
    const uint64_t *displs; /* allgatherv: elements; else NULL (packed). borrowed */
    const r2_edge_t *sends; /* borrowed */
    uint32_t send_count;
    const r2_edge_t *recvs; /* borrowed */
    uint32_t recv_count;
    bool in_place;
    uint64_t meaning; /* of reductions: which operation on which types */
    bool blocking;
    bool commutative;
    bool exact;             /* any reduction order gives equal bits (integers, min, max) */
    bool reproducible;      /* else ring orders may be chosen */
    const char *algorithm;  /* forced by name, or NULL / "" */
    uint64_t scratch_bytes; /* bound of staging memory */
    uint64_t chunk_min_bytes, chunk_max_bytes;
    /* longer blocks are cut, as messages are packed whole; 0: never */
    uint64_t message_max_bytes;
    uint64_t copy_max_bytes; /* sends up to this length complete at once */
    /* as all ranks agreed on it; NULL: each rank on a host of its own, all healthy. borrowed */
    const r2_topology_t *topology;
    r2_cost_params_t cost; /* zeros: usual values */
    const struct r2_plan_estimate
        *estimate; /* what r2_plan_estimate() gave for this call, or NULL. borrowed */
} r2_plan_input_t;

/**
 * Builds this rank's schedule.
 * @param schedule_p initialised by the call; r2_schedule_fini() by the caller.
 * @return R2_OK, R2_ERR_PARAM (unknown algorithm name for this collective, topology of another
 * number of ranks), R2_ERR_NO_MEMORY.
 */
r2_status_t r2_plan_build(const r2_plan_input_t *input, r2_schedule_t *schedule_p);

/** Algorithm that would be chosen (static string), for logs and golden tests. NULL: unknown forced
 * name. */
const char *r2_plan_choose(const r2_plan_input_t *input);

/**
 * Writes the algorithm that would be chosen, with the shares of hosts if they are weighted, as
 * "weighted(0.30,0.30,0.30,0.10)" or, on many hosts, "weighted(0.0667x14,0.0333x2)".
 * @param text '\0' terminated, cut to `room`.
 * @return R2_OK, R2_ERR_PARAM (unknown forced name), R2_ERR_NO_MEMORY.
 */
r2_status_t r2_plan_describe(const r2_plan_input_t *input, char *text, size_t room);

/** True if a collective has an algorithm of this name; empty or NULL: none is asked for, which is
 * true, too. */
bool r2_plan_has(r2_coll_kind_t kind, const char *name);

/** Comma separated algorithm names of a collective, for error messages. @return text. */
const char *r2_plan_names(r2_coll_kind_t kind, char *text, size_t room);

/* ---- why: what the planner chooses by */

/** Time of what cannot run over the rails as it is. */
#define R2_COST_NEVER UINT64_MAX

/** Fills in usual values for zeros. */
r2_cost_params_t r2_cost_params(const r2_cost_params_t *published);

/** An algorithm and its predicted time. */
typedef struct r2_plan_prediction {
    const char *algorithm; /* static */
    uint64_t ns;           /* R2_COST_NEVER: not over these rails without going round about */
} r2_plan_prediction_t;

#define R2_PLAN_PREDICTIONS_MAX 64u

/**
 * Predicts the algorithms of an allreduce for which there is a prediction, with input->cost.
 * @param predictions_p R2_PLAN_PREDICTIONS_MAX rows. @param count_p how many.
 * @return R2_OK, R2_ERR_PARAM (no topology), R2_ERR_NO_MEMORY.
 */
r2_status_t r2_plan_predict(const r2_plan_input_t *input, r2_plan_prediction_t *predictions_p,
                            uint32_t *count_p);

/**
 * Ranks by host, hosts in an order whose weakest edge is as good as moving single hosts makes it.
 * On healthy rails: hosts in their order.
 *
 * Source: re-ranking with bridges, section 6 of the R2CCL paper. Deviation: any host that helps is
 * a bridge.
 * @param topology NULL: ranks in their order.
 * @param order_p  `size` ranks.
 * @return R2_OK or R2_ERR_NO_MEMORY.
 */
r2_status_t r2_order_ring(const r2_topology_t *topology, int32_t size, int32_t *order_p);

/**
 * Part of the vector that each host owns in a weighted exchange of all ranks.
 * @param shares_p [host]; their sum is 1.
 * @return R2_OK or R2_ERR_NO_MEMORY.
 */
r2_status_t r2_plan_shares(const r2_topology_t *topology, double *shares_p);

/**
 * Hosts in classes: those of one have equal rails and no cut, and are alike to any plan.
 * @param class_of_p [host], counted from 0 in the order of hosts. @param count_p of classes.
 * @return R2_OK or R2_ERR_NO_MEMORY.
 */
r2_status_t r2_plan_classes(const r2_topology_t *topology, uint32_t *class_of_p, uint32_t *count_p);

/**
 * Predicted time of the faster of one ring and rings of tiers: bytes over rails alone.
 * @param ns_p R2_COST_NEVER: some that must exchange share no rail.
 * @return R2_OK or R2_ERR_NO_MEMORY.
 */
r2_status_t r2_plan_rings_ns(const r2_topology_t *topology, uint64_t bytes, uint64_t *ns_p);

#endif
