/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A benchmark is an entry of this table: what is called, on how much, and what comes out.
 */
#ifndef R2_BENCH_H
#define R2_BENCH_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

/** What a collective leaves in the receive buffer. */
typedef enum r2_bench_result {
    R2_BENCH_SUM,    /* element i is the sum over all ranks of their element first + i */
    R2_BENCH_CONCAT, /* the send buffers of all ranks, in rank order */
} r2_bench_result_t;

/** One message size as one rank sees it. All numbers are elements. */
typedef struct r2_bench_shape {
    size_t send_count;
    size_t recv_count;
    size_t first; /* R2_BENCH_SUM: index of the first element of the result in the whole vector */
    size_t total; /* length of the whole vector: what the bus bandwidth is computed from */
    int *counts;  /* borrowed: `ranks` numbers, for collectives that want a count for each rank */
} r2_bench_shape_t;

/** One collective. */
typedef struct r2_bench_ops {
    const char *program;      /* r2_allreduce */
    const char *title;        /* Allreduce */
    const char *default_type; /* value of -T */
    unsigned passes;          /* how often each element of the vector has to cross a host's NICs */
    bool reduces;             /* only datatypes with a sum */
    bool same_everywhere;     /* all ranks get the same bytes */
    r2_bench_result_t result;

    /** Fills @p shape for @p elements of the message size as OSU counts it; counts is allocated. */
    void (*shape)(size_t elements, int ranks, int rank, r2_bench_shape_t *shape);

    /** The call that is timed. @return MPI's return code. */
    int (*call)(const void *send, void *recv, const r2_bench_shape_t *shape, MPI_Datatype type,
                MPI_Comm comm);
} r2_bench_ops_t;

/**
 * The whole program: arguments, MPI_Init, all sizes, report.
 * @return exit status: 0; 1 if a result was wrong or a fault was not carried out; 2 for bad
 * arguments.
 */
int r2_bench_main(int argc, char **argv, const r2_bench_ops_t *ops);

#endif
