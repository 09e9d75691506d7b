/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The end of a run that cannot go on.
 */
#include "r2_config.h"

#include "run.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

_Noreturn void r2_bench_give_up(const char *what)
{
    fprintf(stderr, "r2 benchmark: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}
