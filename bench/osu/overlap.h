/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Nonblocking collectives with computation between start and wait, as OSU measures them.
 */
#ifndef R2_BENCH_OVERLAP_H
#define R2_BENCH_OVERLAP_H

#include <stdint.h>

#include "calls.h"
#include "kinds.h"

/** Seconds of one call, or sums of them. */
typedef struct r2_bench_overlap_times {
    double pure_s;    /* start and wait, without computation: mean */
    double start_s;   /* in the call that starts */
    double compute_s; /* without the tests */
    double test_s;    /* in MPI_Test */
    double wait_s;    /* in MPI_Wait */
} r2_bench_overlap_times_t;

/** The computation of one message size, and what was measured with it. */
typedef struct r2_bench_overlap {
    uint64_t rounds;    /* of the computation: as long as a call without it */
    uint64_t tests;     /* calls of MPI_Test during the computation */
    uint64_t completed; /* calls that are in the sums */
    r2_bench_overlap_times_t times;
} r2_bench_overlap_t;

/** Sets how long the computation is: @p pure_s, the mean of all ranks. */
void r2_bench_overlap_init(r2_bench_overlap_t *overlap, double pure_s, uint64_t tests);

/** Start, computation, wait. */
void r2_bench_overlap_call(r2_bench_overlap_t *overlap, r2_bench_kind_id_t id,
                           const r2_bench_call_t *call);

/** Means of a call. @param times_p times of this rank. */
void r2_bench_overlap_means(const r2_bench_overlap_t *overlap, r2_bench_overlap_times_t *times_p);

/**
 * How much of the communication the computation hid, in percent.
 * @param overall_s of a call with computation, mean
 */
double r2_bench_overlap_percent(const r2_bench_overlap_times_t *times, double overall_s);

#endif
