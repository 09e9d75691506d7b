/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What MPIX_Query_cuda_support() says before MPI_Init, in between, and after MPI_Finalize: one line
 * of rank 0. To ask changes nothing of what threads may do.
 */
#include <mpi.h>
#include <mpi-ext.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int before = MPIX_Query_cuda_support(), between, rank, provided, level;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    between = MPIX_Query_cuda_support();
    MPI_Query_thread(&level);
    if (level != provided) {
        fprintf(stderr, "threads may do %d after the question, and %d before it\n", level,
                provided);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    if (0 == rank) {
        printf("cuda support: %d %d %d\n", before, between, MPIX_Query_cuda_support());
    }
    return 0;
}
