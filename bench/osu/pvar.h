/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Reads counters of the library under test through MPI_T.
 */
#ifndef R2_BENCH_PVAR_H
#define R2_BENCH_PVAR_H

#include <mpi.h>
#include <stdbool.h>

/** Performance variables that the benchmarks print, in the order of r2_bench_pvar_read(). */
typedef enum r2_bench_pvar {
    R2_BENCH_PVAR_RESENT,      /* bytes */
    R2_BENCH_PVAR_GAP,         /* ns */
    R2_BENCH_PVAR_LANES,       /* lanes that failed */
    R2_BENCH_PVAR_COLLECTIVES, /* calls that r2 ran itself */
    R2_BENCH_PVAR_COUNT,
} r2_bench_pvar_t;

/** Handles to them. All false if the library does not have them, as a stock Open MPI. */
typedef struct r2_bench_pvars {
    bool open;
    bool there[R2_BENCH_PVAR_COUNT];
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handles[R2_BENCH_PVAR_COUNT];
    MPI_Datatype types[R2_BENCH_PVAR_COUNT];
} r2_bench_pvars_t;

/** Looks the variables up by name. */
void r2_bench_pvars_init(r2_bench_pvars_t *pvars);

/** Gives them back. */
void r2_bench_pvars_fini(r2_bench_pvars_t *pvars);

/** Values of this process. @param values_p [R2_BENCH_PVAR_COUNT]; -1 where there is no such
 * variable. */
void r2_bench_pvars_read(const r2_bench_pvars_t *pvars, double *values_p);

#endif
