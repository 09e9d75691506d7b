/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What one run of a benchmark measures.
 */
#ifndef R2_BENCH_TASK_H
#define R2_BENCH_TASK_H

#include <stdbool.h>
#include <stdio.h>

#include "kinds.h"

enum { R2_BENCH_NAME_BYTES = 64 };

/** How the collective is called. */
typedef enum r2_bench_form {
    R2_BENCH_BLOCKING,
    R2_BENCH_NONBLOCKING, /* with computation between start and wait */
    R2_BENCH_PERSISTENT,  /* the request is made once for each size */
} r2_bench_form_t;

/** A collective in one form. */
typedef struct r2_bench_task {
    const r2_bench_kind_t *kind; /* borrowed: static */
    r2_bench_form_t form;
    char program[R2_BENCH_NAME_BYTES]; /* how the user calls it: "r2_bench iallreduce" */
} r2_bench_task_t;

/**
 * Finds a task by the name that OSU gives it: allreduce, iallreduce, allreduce_persistent.
 * @param program of which the name is an argument; NULL: the program is r2_NAME.
 * @return false if there is no such task.
 */
bool r2_bench_task_init(r2_bench_task_t *task, const char *program, const char *name);

/** What stands before the collective in a title: "Non-blocking ". */
const char *r2_bench_form_title(r2_bench_form_t form);

/** Prints the names of all tasks, one on each line. */
void r2_bench_task_list(FILE *out);

#endif
