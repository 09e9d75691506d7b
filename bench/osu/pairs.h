/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Point-to-point: rank i of the first half of all ranks and rank i of the second half are a pair.
 */
#ifndef R2_BENCH_PAIRS_H
#define R2_BENCH_PAIRS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "calls.h"

/** One message size of one rank. */
typedef struct r2_bench_pairs {
    MPI_Request *requests; /* owned: 2 x window */
    size_t window;         /* messages under way at a time */
    size_t stride_bytes;   /* from one message's buffer to the next one's; 0: they share it */
    int peer;
    bool first; /* of the pair */
} r2_bench_pairs_t;

/** @return false if there is no memory. */
bool r2_bench_pairs_init(r2_bench_pairs_t *pairs, size_t window, size_t stride_bytes, int ranks,
                         int rank);

/** Releases what init allocated. Nothing, if it was never called. */
void r2_bench_pairs_fini(r2_bench_pairs_t *pairs);

/** The first of a pair waits until the second is there. */
void r2_bench_pairs_meet(const r2_bench_pairs_t *pairs, MPI_Comm comm);

/** What is timed. */
void r2_bench_pairs_call(r2_bench_pairs_t *pairs, r2_bench_way_t way, const r2_bench_call_t *call);

#endif
