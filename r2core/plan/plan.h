/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Plans: from a collective's arguments to a schedule. Pure: no clock, no I/O, no globals.
 */
#ifndef R2_PLAN_H
#define R2_PLAN_H

#include "model/schedule.h"
#include "r2/coll.h"

/**
 * Everything a plan is made from. All fields but `rank` are equal on all ranks of the communicator.
 * Buffers are contiguous arrays of elements:
 *   allreduce            IN count            OUT count
 *   allgather(v)         IN counts[rank]     OUT sum of counts, block r at displs[r]
 *   reduce_scatter(_block) IN sum of counts  OUT counts[rank]
 *   bcast                OUT count at every rank (root sends from OUT, too)
 *   barrier              nothing
 * in_place: the input is in OUT instead (allgather: in its own block; reduce_scatter: OUT has the sum
 * of counts and the result goes to its start, as MPI_IN_PLACE says). Rows then never name R2_BUF_IN.
 */
typedef struct r2_plan_input {
    r2_coll_kind_t kind;
    int32_t rank, size;
    int32_t root;                 /* bcast */
    uint64_t element_bytes;       /* unit of count and of reduction */
    uint64_t count;               /* allreduce, bcast; allgather and reduce_scatter_block: per rank */
    const uint64_t *counts;       /* allgatherv, reduce_scatter: per rank; else NULL. borrowed */
    const uint64_t *displs;       /* allgatherv: elements; else NULL (packed). borrowed */
    bool in_place;
    bool commutative;
    bool exact;                   /* any reduction order gives equal bits (integers, min, max) */
    bool reproducible;            /* else ring orders may be chosen */
    const char *algorithm;        /* forced by name, or NULL / "" */
    uint64_t scratch_bytes;       /* bound of staging memory */
    uint64_t chunk_min_bytes, chunk_max_bytes;
    uint64_t message_max_bytes;   /* longer blocks are cut, as messages are packed whole; 0: never */
    uint64_t copy_max_bytes;      /* sends up to this length complete at once */
} r2_plan_input_t;

/**
 * Builds this rank's schedule.
 * @param schedule_p initialised by the call; r2_schedule_fini() by the caller.
 * @return R2_OK, R2_ERR_PARAM (unknown algorithm name for this collective), R2_ERR_NO_MEMORY.
 */
r2_status_t r2_plan_build(const r2_plan_input_t *input, r2_schedule_t *schedule_p);

/** Algorithm that would be chosen (static string), for logs and golden tests. NULL: unknown forced name. */
const char *r2_plan_choose(const r2_plan_input_t *input);

/** Comma separated algorithm names of a collective, for error messages. Static. */
const char *r2_plan_names(r2_coll_kind_t kind);

#endif
