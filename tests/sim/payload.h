/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Payloads of simulated collectives: values that tell where they come from, and what must result.
 */
#ifndef TESTS_SIM_PAYLOAD_H
#define TESTS_SIM_PAYLOAD_H

#include "r2/planner.h"
#include "scenario.h"

/*
 * An element is a function of (call, rank, index). Integers wrap, matrices multiply modulo 2^32 and
 * do not commute, doubles span 30 binary orders so that another order of summation gives other
 * bits. Expected results of doubles come from interpreting the schedules of all ranks in one
 * thread.
 */

#define PAYLOAD_POISON 0xa5

/** Messages of one rank, in the order that r2/planner.h asks for. */
typedef struct payload_edges {
    r2_edge_t *sends; /* owned, with recvs behind them */
    r2_edge_t *recvs;
    uint32_t send_count, recv_count;
} payload_edges_t;

/** One call of a collective, the same on all ranks. */
typedef struct payload_call {
    const scenario_step_t *step; /* borrowed */
    int32_t size;                /* ranks of the communicator */
    uint64_t salt;               /* makes values of different calls different */
    r2_topology_t hosts;         /* owned: where its ranks are, all rails healthy */
    uint64_t element_bytes;
    uint64_t *counts;       /* owned: reduce_scatter, allgatherv; else NULL */
    uint64_t *displs;       /* owned: allgatherv with gaps; else NULL */
    payload_edges_t *edges; /* owned: by rank, where only both ends know a length; else NULL */
    uint8_t *reduced;       /* owned: the reduced vector (not for doubles); NULL until needed */
    uint8_t **interpreted;  /* owned: results by rank (doubles); NULL until needed */
} payload_call_t;

/** Where the bytes of one rank's buffers are. */
typedef struct payload_shape {
    uint64_t in_bytes, out_bytes; /* sizes of the buffers; in_bytes 0 with in_place */
} payload_shape_t;

/** @param host_of [size], numbered anyhow. */
bool payload_call_init(payload_call_t *call, const scenario_step_t *step, const uint32_t *host_of,
                       int32_t size, uint64_t salt);
void payload_call_fini(payload_call_t *call);

/** Does this rank work in place? Rooted collectives: only the root. */
bool payload_in_place(const payload_call_t *call, int32_t rank);
/** Arguments of a rank's call. */
void payload_args(const payload_call_t *call, int32_t rank, void *in, void *out,
                  r2_coll_args_t *args_p);
payload_shape_t payload_shape(const payload_call_t *call, int32_t rank);
/** Fills a rank's buffers before the call; what the call has to write is poisoned. */
void payload_fill(const payload_call_t *call, int32_t rank, uint8_t *in, uint8_t *out);
/**
 * Checks a rank's result.
 * @param params as given to the contexts: schedules for the reference depend on them.
 * @param text_p on failure: first wrong element.
 */
bool payload_check(payload_call_t *call, int32_t rank, const uint8_t *out,
                   const r2_params_t *params, char *text_p, size_t text_bytes);

/** Hash of memory. */
uint64_t payload_hash(uint64_t hash, const void *memory, size_t bytes);

/**
 * The hosts of a call's ranks as contexts number them: in the order in which ranks name them.
 * @return R2_OK, R2_ERR_PARAM (no rank), R2_ERR_NO_MEMORY.
 */
r2_status_t payload_hosts_init(r2_topology_t *hosts, const uint32_t *host_of, int32_t size);
/** What r2_coll_plan() makes of the same arguments while all is well. */
void payload_plan_input(const payload_call_t *call, int32_t rank, const r2_params_t *params,
                        r2_plan_input_t *input_p);
/** Runs the schedules of all ranks on the buffers given by rank. @return false: they do not end. */
bool payload_interpret(const payload_call_t *call, const r2_params_t *params, uint8_t **in,
                       uint8_t **out);

/** Calls so far of what plays an operation of the user, over all ranks. */
uint64_t payload_user_reductions(void);

#endif
