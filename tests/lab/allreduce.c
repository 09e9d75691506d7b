/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 * Exact sums by MPI_Allreduce: COUNT ints, ITERATIONS times; exit status 1 if any is wrong. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 1000;
    int iterations = argc > 2 ? atoi(argv[2]) : 1;
    int rank, ranks, wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int *in = malloc((size_t) count * sizeof *in);
    int *out = malloc((size_t) count * sizeof *out);
    for (int k = 0; k < iterations; ++k) {
        for (int i = 0; i < count; ++i) {
            in[i] = rank * 7 + i + k;
            out[i] = -1;
        }
        MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < count; ++i) {
            wrong += out[i] != ranks * (i + k) + 7 * ranks * (ranks - 1) / 2;
        }
        if (0 == rank) {
            printf("iteration %d done\n", k);
            fflush(stdout);
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("wrong %d\n", wrong);
    }
    free(in);
    free(out);
    MPI_Finalize();
    return 0 != wrong;
}
