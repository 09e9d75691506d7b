/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * How often who waits in a collective lets others have the processor: yields ROUNDS. Before each
 * round all but rank 0 are late. Rank 0 tells its own number.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LATE_US = 2000 };

static _Thread_local unsigned long yields;

/* The program's own is found before the library's. */
__attribute__((visibility("default"))) int sched_yield(void);

int sched_yield(void)
{
    ++yields;
    return (int) syscall(SYS_sched_yield);
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 1;
    unsigned long before;
    int rank, sum = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    before = yields;
    for (int i = 0; i < rounds; ++i) {
        if (0 != rank) {
            usleep(LATE_US);
        }
        MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (i != sum) {
            printf("round %d gave %d\n", i, sum);
        }
    }
    if (0 == rank) {
        printf("yields %lu\n", yields - before);
    }
    MPI_Finalize();
    return 0;
}
