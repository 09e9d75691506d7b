/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * late_root CALLS BYTES: broadcasts that all others wait for when the root begins, every byte
 * checked.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LATE_US                                                                      \
    20000 /* far longer than a receive takes to be posted, but for a starved process \
           */

int main(int argc, char **argv)
{
    const int calls = argc > 2 ? atoi(argv[1]) : 1;
    const int bytes = argc > 2 ? atoi(argv[2]) : 1 << 20;
    unsigned char *buffer;
    long wrong = 0;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    buffer = malloc((size_t) bytes);
    if (NULL == buffer) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int call = 1; call <= calls; ++call) {
        memset(buffer, 0 == rank ? call : 0, (size_t) bytes);
        MPI_Barrier(MPI_COMM_WORLD);
        if (0 == rank) {
            usleep(LATE_US);
        }
        MPI_Bcast(buffer, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        for (int i = 0; i < bytes; ++i) {
            wrong += (unsigned char) call != buffer[i];
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("%d calls, %ld wrong bytes\n", calls, wrong);
    }
    free(buffer);
    MPI_Finalize();
    return 0 == wrong ? 0 : 1;
}
