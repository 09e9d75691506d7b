/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Predicted time of an allreduce on a topology, per algorithm, one rank on every host.
 */
#ifndef R2_TOOLS_PREDICT_H
#define R2_TOOLS_PREDICT_H

#include "topology.h"

/** What is asked. */
typedef struct predict_case {
    const topo_t *topo; /* borrowed */
    double bytes;       /* of the vector */
} predict_case_t;

/**
 * One algorithm.
 * @param seconds_p INFINITY where hosts that must exchange share no rail.
 * @return R2_OK or R2_ERR_NO_MEMORY.
 */
typedef r2_status_t (*predict_fn_t)(const predict_case_t *ask, double *seconds_p);

typedef struct predict_algorithm {
    const char *name;
    predict_fn_t predict;
} predict_algorithm_t;

/** All of them, in the order of tables. @param count_p number of rows. @return static. */
const predict_algorithm_t *predict_table(size_t *count_p);
/** @return NULL: no such algorithm. */
const predict_algorithm_t *predict_find(const char *name);

/**
 * Least time of any allreduce, without latency: T* = max(D / min B_i, 2 (n - 1) D / sum B_i).
 * Every host sends its contribution out and takes the result in; every element takes n - 1 sends to
 * be reduced and n - 1 to be distributed. Source: docs/planner.md; arXiv 2606.01680.
 */
double predict_bound(const predict_case_t *ask);

/**
 * Shares of the direct exchange with weights: s_i = (T* B_i / D - 1) / (n - 2), scaled to sum 1; 0
 * for hosts of a pair that shares no rail.
 * @param shares_p [host].
 */
void predict_shares(const predict_case_t *ask, double *shares_p);

#endif
