/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * late_root CALLS BYTES [FIRST]: broadcasts that all others wait for when the root begins, every
 * byte checked. Where copies are counted (tests/softverbs/copies.c) each rank tells those of all
 * calls but the first FIRST.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LATE_US                                                                      \
    20000 /* far longer than a receive takes to be posted, but for a starved process \
           */

/* Bytes that this process has copied so far, or 0 where nobody counts. */
static unsigned long long copied(void)
{
    unsigned long long (*ask)(void) =
        (unsigned long long (*)(void)) dlsym(RTLD_DEFAULT, "copies_counted");

    return NULL == ask ? 0 : ask();
}

int main(int argc, char **argv)
{
    const int calls = argc > 2 ? atoi(argv[1]) : 1;
    const int bytes = argc > 2 ? atoi(argv[2]) : 1 << 20;
    const int first = argc > 3 ? atoi(argv[3]) : 0;
    unsigned long long before = 0;
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
        before = call == first + 1 ? copied() : before;
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
    printf("rank %d copied %llu bytes\n", rank, copied() - before);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("%d calls, %ld wrong bytes\n", calls, wrong);
    }
    free(buffer);
    MPI_Finalize();
    return 0 == wrong ? 0 : 1;
}
