/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Monte Carlo: times of allreduce algorithms with random dead NICs.
 */
#ifndef R2_TOOLS_DRAWS_H
#define R2_TOOLS_DRAWS_H

#include "sim/predict.h"

#define DRAWS_ALGORITHMS_MAX 16u
#define DRAWS_FAILURES_MAX   64u

/** What is asked. */
typedef struct draws_case {
    topo_t *topo; /* borrowed; changed while drawing, as before afterwards. What is broken stays
                     broken */
    double bytes;
    uint32_t failures_first, failures_last; /* dead NICs besides those of the topology */
    uint32_t draw_count;
    uint64_t seed;
    const predict_algorithm_t *algorithms[DRAWS_ALGORITHMS_MAX]; /* borrowed: static */
    size_t algorithm_count;
} draws_case_t;

/** Times of one algorithm with one number of failures, over all draws. */
typedef struct draws_cell {
    double over_healthy;     /* mean of T / T of the same algorithm with nothing broken */
    double over_healthy_p50; /* median ... */
    double over_healthy_p99; /* ... and 99th percentile of it */
    double over_bound;       /* mean of T / T* */
    double seconds;          /* mean of T */
    uint32_t no_path;        /* draws in which hosts that must exchange share no rail: in no mean */
} draws_cell_t;

typedef struct draws_result {
    double healthy[DRAWS_ALGORITHMS_MAX]; /* T with nothing broken, seconds */
    double healthy_bound;
    double *bound_over_healthy; /* owned; [failures - first], mean of T* / T* with nothing broken */
    draws_cell_t *cells;        /* owned; [(failures - first) * algorithms + algorithm] */
} draws_result_t;

/**
 * Draws dead NICs so that every host keeps one, and that f + 1 failures are those of f and one
 * more.
 * @return R2_OK, R2_ERR_PARAM (so many failures leave a host without a NIC) or R2_ERR_NO_MEMORY.
 */
r2_status_t draws_run(const draws_case_t *ask, draws_result_t *result_p);
void draws_result_fini(draws_result_t *result);

#endif
