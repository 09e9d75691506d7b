/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What the benchmarks print: OSU's table, faults and phases, counters, CSV, progress.
 */
#ifndef R2_BENCH_REPORT_H
#define R2_BENCH_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "task.h"
#include "injector.h"
#include "options.h"
#include "overlap.h"
#include "series.h"

enum { R2_BENCH_TAILS = 3 };

/** The percentiles of -z. */
extern const unsigned r2_bench_tails[R2_BENCH_TAILS];

/** Results of one message size over all ranks. */
typedef struct r2_bench_row {
    size_t bytes;        /* message size as OSU counts it */
    double avg_s;        /* latency, with computation: mean over iterations and ranks */
    double min_s;        /* of the rank with the smallest mean */
    double max_s;        /* of the rank with the largest mean */
    uint64_t iterations; /* measured ones */
    r2_bench_overlap_times_t overlap; /* of a nonblocking collective: means over ranks */
    double tail_s[R2_BENCH_TAILS];    /* percentiles of the slowest rank's times */
    uint64_t wrong;                   /* results of one rank in one iteration that were wrong */
    uint64_t digest;
    double resent_bytes; /* by all ranks in this size; -1: unknown */
    double gap_ns;       /* longest of all ranks since MPI_Init; -1: unknown */
    double lanes_failed; /* of all ranks in this size; -1: unknown */
    double collectives;  /* that r2 ran itself on rank 0 in this size; -1: unknown */
} r2_bench_row_t;

/** Where rank 0 reports to. */
typedef struct r2_bench_report {
    const r2_bench_task_t *task;       /* borrowed: static */
    const r2_bench_options_t *options; /* borrowed: outlives the report */
    int ranks;
    int hosts;
    FILE *csv;              /* owned; NULL: none */
    bool progress;          /* wanted */
    bool terminal;          /* overwrite the line */
    double next_progress_s; /* since the start of the first size's measured loop */
    size_t last_count;      /* iterations at the last line */
} r2_bench_report_t;

/** Opens the CSV file. @return false if that fails; errno says why. */
bool r2_bench_report_init(r2_bench_report_t *report, const r2_bench_task_t *task,
                          const r2_bench_options_t *options, int ranks, int hosts);

/** Closes the CSV file. @return false if it could not be written. */
bool r2_bench_report_fini(r2_bench_report_t *report);

/** Title and column names. */
void r2_bench_report_head(const r2_bench_report_t *report);

/** One line of the table. */
void r2_bench_report_row(const r2_bench_report_t *report, const r2_bench_row_t *row,
                         const r2_bench_series_t *series);

/** The line that sums up -c. @param iterations all that were checked. */
void r2_bench_report_validation(const r2_bench_report_t *report, uint64_t iterations,
                                uint64_t wrong);

/** Throughput in each phase and pause after each fault that took effect in this size. */
void r2_bench_report_phases(const r2_bench_report_t *report, const r2_bench_row_t *row,
                            const r2_bench_series_t *series, const r2_bench_effect_t *effects,
                            double zero_s);

/** What the library counted in this size. */
void r2_bench_report_counters(const r2_bench_row_t *row);

/** Writes the iterations and the faults of this size to the CSV file, if there is one. */
void r2_bench_report_csv(const r2_bench_report_t *report, size_t bytes,
                         const r2_bench_series_t *series, const r2_bench_effect_t *effects,
                         double zero_s);

/** A line on stderr once a second. @param now_s as the series. */
void r2_bench_report_progress(r2_bench_report_t *report, size_t bytes,
                              const r2_bench_series_t *series, double now_s);

/** The line for the end of a size: ends an overwritten line. */
void r2_bench_report_progress_end(r2_bench_report_t *report);

/**
 * Names the faults that were not carried out.
 * @return how many there are.
 */
unsigned r2_bench_report_failed_faults(const r2_bench_report_t *report,
                                       const r2_bench_effect_t *effects);

#endif
