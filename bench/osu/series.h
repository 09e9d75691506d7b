/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The iterations of one message size on the time axis: throughput, phases between faults, pauses.
 */
#ifndef R2_BENCH_SERIES_H
#define R2_BENCH_SERIES_H

#include <stdbool.h>
#include <stddef.h>

/** One iteration. Times in seconds; starts count from the start of the first size's measured
 * loop. */
typedef struct r2_bench_sample {
    double start_s;
    double took_s; /* of the slowest rank */
} r2_bench_sample_t;

/** All iterations of one message size, in order. */
typedef struct r2_bench_series {
    r2_bench_sample_t *samples; /* owned */
    size_t count;
    size_t capacity;
    double wire_bytes; /* that a host has to send in one iteration */
} r2_bench_series_t;

/** Makes room and appends. @return false if there is no memory. */
bool r2_bench_series_add(r2_bench_series_t *series, double start_s, double took_s);

/** Releases the samples. */
void r2_bench_series_fini(r2_bench_series_t *series);

/**
 * Bus bandwidth in MB/s between two times: bytes over time spent in the calls. An iteration that is
 * only partly between them counts with that part.
 * @return 0 if there is none.
 */
double r2_bench_series_rate(const r2_bench_series_t *series, double from_s, double to_s);

/** Number of iterations that end between two times. */
size_t r2_bench_series_completed(const r2_bench_series_t *series, double from_s, double to_s);

/** Longest time between the ends of two successive iterations that touches the times given; 0:
 * none. */
double r2_bench_series_longest_gap(const r2_bench_series_t *series, double from_s, double to_s);

/** Median time between the ends of two successive iterations that end before @p to_s; 0: none. */
double r2_bench_series_median_gap(const r2_bench_series_t *series, double to_s);

/** The time that @p percent of the iterations did not take longer than; 0: there are none. */
double r2_bench_series_percentile(const r2_bench_series_t *series, unsigned percent);

/** Median bus bandwidth of the iterations that end before @p to_s, MB/s; 0: none. */
double r2_bench_series_median_rate(const r2_bench_series_t *series, double to_s);

#endif
