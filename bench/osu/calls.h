/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Calls a collective of MPI by its kind.
 */
#ifndef R2_BENCH_CALLS_H
#define R2_BENCH_CALLS_H

#include <mpi.h>

#include "kinds.h"

/** Arguments of every collective; each takes those that it has. */
typedef struct r2_bench_call {
    const void *send; /* borrowed: the caller's memory, as are all of these */
    void *recv;
    int count;           /* elements of a contribution, or of a rank's part */
    const int *counts;   /* [ranks] elements of each rank's part */
    const int *displs;   /* [ranks] where they begin, elements */
    const int *offsets;  /* [ranks] where they begin, bytes */
    MPI_Datatype *types; /* [ranks] */
    MPI_Datatype type;
    int root;
    MPI_Comm comm;
} r2_bench_call_t;

/** The blocking form. @return MPI's return code. */
int r2_bench_call_blocking(r2_bench_kind_id_t id, const r2_bench_call_t *call);

/** Starts the nonblocking form. @return MPI's return code. */
int r2_bench_call_start(r2_bench_kind_id_t id, const r2_bench_call_t *call, MPI_Request *request_p);

/** Makes a persistent request. @return MPI's return code. */
int r2_bench_call_init(r2_bench_kind_id_t id, const r2_bench_call_t *call, MPI_Request *request_p);

#endif
