/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The program around a collective.
 */
#ifndef R2_BENCH_H
#define R2_BENCH_H

#include "task.h"

/**
 * The whole program: arguments, MPI_Init, all sizes, report.
 * @return exit status: 0; 1 if a result was wrong or a fault was not carried out; 2 for bad
 * arguments.
 */
int r2_bench_main(int argc, char **argv, const r2_bench_task_t *task);

#endif
