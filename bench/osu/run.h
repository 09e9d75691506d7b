/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One run of a benchmark on one rank: its sizes and its measured loop.
 */
#ifndef R2_BENCH_RUN_H
#define R2_BENCH_RUN_H

#include <mpi.h>
#include <stdint.h>

#include "clock.h"
#include "data.h"
#include "injector.h"
#include "options.h"
#include "overlap.h"
#include "pairs.h"
#include "payload.h"
#include "pvar.h"
#include "report.h"
#include "series.h"
#include "task.h"

/** One program run on one rank. */
typedef struct r2_bench_run {
    const r2_bench_task_t *task;   /* borrowed: outlives the run */
    r2_bench_options_t *options;   /* borrowed: outlives the run */
    r2_bench_injector_t *injector; /* borrowed: outlives the run */
    r2_bench_data_t data;
    r2_bench_pvars_t pvars;
    r2_bench_report_t report; /* used by rank 0 */
    r2_bench_clock_t clock;   /* of a barrier that is checked */
    int rank;
    int ranks;
    int hosts;
    double zero_s;  /* CLOCK_MONOTONIC at the start of the first size's measured loop; 0: not yet */
    uint64_t turn;  /* measured iterations so far, all sizes */
    uint64_t wrong; /* wrong results on any rank so far */
} r2_bench_run_t;

/** One message size of a run. */
typedef struct r2_bench_size {
    r2_bench_payload_t payload;
    r2_bench_series_t series;
    r2_bench_overlap_t overlap; /* of a nonblocking collective */
    r2_bench_pairs_t pairs;     /* of point-to-point */
    MPI_Request request;        /* owned: of a persistent collective */
} r2_bench_size_t;

/** Says why and ends the job. */
_Noreturn void r2_bench_give_up(const char *what);

/** Warm-up iterations of a size. */
void r2_bench_warm_up(r2_bench_run_t *run, r2_bench_size_t *size);

/** Measured iterations of a size, with the faults that are due. */
void r2_bench_measure(r2_bench_run_t *run, r2_bench_size_t *size);

/** One message size: buffers, warm-up, measurement, report. */
void r2_bench_run_size(r2_bench_run_t *run, size_t bytes);

#endif
