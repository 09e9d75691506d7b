/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What MPIX_Query_cuda_support() says before MPI_Init, in between, and after MPI_Finalize: one line
 * of rank 0.
 */
#include <mpi.h>
#include <mpi-ext.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int before = MPIX_Query_cuda_support(), between, rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    between = MPIX_Query_cuda_support();
    MPI_Finalize();
    if (0 == rank) {
        printf("cuda support: %d %d %d\n", before, between, MPIX_Query_cuda_support());
    }
    return 0;
}
