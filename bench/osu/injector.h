/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Carries out faults while a benchmark runs, from a process of its own.
 */
#ifndef R2_BENCH_INJECTOR_H
#define R2_BENCH_INJECTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "options.h"

/*
 * The helper is forked before MPI_Init: processes that fork later may break the network libraries.
 * It runs the fault command, one fault at a time, and waits itself for those that are due at a
 * time, so that they come in the middle of a collective. It ends when the benchmark closes the
 * socket or dies.
 */

/** What became of one fault. */
typedef struct r2_bench_effect {
    bool begun; /* the helper was told, or its time came */
    bool done;
    int status;  /* of the command: 0 if it was carried out */
    double at_s; /* CLOCK_MONOTONIC when it took effect, as the command says, or when it ended */
} r2_bench_effect_t;

/** The benchmark's end of the helper. Owned by one thread. */
typedef struct r2_bench_injector {
    const r2_bench_options_t *options; /* borrowed: outlives the injector */
    r2_bench_effect_t *effects;        /* owned: one for each fault */
    uint64_t next_iteration;           /* of the next fault that is due at an iteration */
    pid_t helper;                      /* 0: there is none */
    int channel;                       /* socket to the helper */
} r2_bench_injector_t;

/**
 * Forks the helper if there are faults. To be called before MPI_Init.
 * @return false if that is not possible; errno says why.
 */
bool r2_bench_injector_init(r2_bench_injector_t *injector, const r2_bench_options_t *options);

/** Ends the helper. */
void r2_bench_injector_fini(r2_bench_injector_t *injector);

/** The measured loop begins: times count from @p zero_s of CLOCK_MONOTONIC. */
void r2_bench_injector_begin(r2_bench_injector_t *injector, double zero_s);

/** Measured iteration number @p iteration begins. Does not wait for its faults. */
void r2_bench_injector_iteration(r2_bench_injector_t *injector, uint64_t iteration);

/** Takes news from the helper. @return true if a fault was done since the last call. */
bool r2_bench_injector_poll(r2_bench_injector_t *injector);

/** Waits for the end of the commands that were begun. */
void r2_bench_injector_sync(r2_bench_injector_t *injector);

/** Seconds of CLOCK_MONOTONIC. */
double r2_bench_now_s(void);

#endif
