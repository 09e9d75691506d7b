/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Checks a barrier by the times at which ranks with one clock enter and leave it.
 */
#ifndef R2_BENCH_CLOCK_H
#define R2_BENCH_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/** Which ranks share a clock: those on one kernel, in one time namespace. */
typedef struct r2_bench_clock {
    uint64_t *names;   /* owned: [ranks] equal for ranks with the same clock */
    double *entered_s; /* owned: [ranks] in the iteration that is checked */
    int ranks;
} r2_bench_clock_t;

/** Asks all ranks. @return false if there is no memory. */
bool r2_bench_clock_init(r2_bench_clock_t *clock, int ranks);

/** Releases what init allocated. Nothing, if it was never called. */
void r2_bench_clock_fini(r2_bench_clock_t *clock);

/**
 * After a barrier, on all ranks.
 * @param entered_s, left_s of this rank, CLOCK_MONOTONIC
 * @return a rank with the same clock that had not entered when this one left; -1: there is none.
 */
int r2_bench_clock_check(const r2_bench_clock_t *clock, int rank, double entered_s, double left_s);

#endif
