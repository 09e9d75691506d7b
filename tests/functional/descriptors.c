/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Collectives of all pairs in a process that may open few files: descriptors SOFT [HARD [eat]]
 *
 * The limits hold from before MPI_Init on; 0: as they are. "eat": after the first round the
 * application opens all that it can, leaves MPI to work with that, and finalizes. Every element of
 * every result is checked. The last line says how many descriptors were open, at the most, on any
 * rank, and what the soft limit was at the end.
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static int rank, size, most;

static void count(void)
{
    struct rlimit limit;
    int open_fds = 0;

    getrlimit(RLIMIT_NOFILE, &limit);
    for (int fd = 0; fd < (int) (limit.rlim_cur < 65536 ? limit.rlim_cur : 65536); ++fd) {
        open_fds += fcntl(fd, F_GETFD) >= 0;
    }
    most = open_fds > most ? open_fds : most;
}

static void wrong(const char *what, int round)
{
    fprintf(stderr, "rank %d: wrong result of %s in round %d\n", rank, what, round);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void alltoall(int elements, int round)
{
    int *from = calloc((size_t) (elements * size), sizeof(int));
    int *to = calloc((size_t) (elements * size), sizeof(int));

    for (int i = 0; i < elements * size; ++i) {
        from[i] = rank * 1000003 + (i / elements) * 1009 + i % elements + round;
        to[i] = -1;
    }
    MPI_Alltoall(from, elements, MPI_INT, to, elements, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < elements * size; ++i) {
        if (to[i] != (i / elements) * 1000003 + rank * 1009 + i % elements + round) {
            wrong("alltoall", round);
        }
    }
    free(from);
    free(to);
}

static void allreduce(int elements, int round)
{
    int *from = calloc((size_t) elements, sizeof(int));
    int *to = calloc((size_t) elements, sizeof(int));

    for (int i = 0; i < elements; ++i) {
        from[i] = rank + i % 7 + round;
    }
    MPI_Allreduce(from, to, elements, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < elements; ++i) {
        if (to[i] != size * (size - 1) / 2 + size * (i % 7 + round)) {
            wrong("allreduce", round);
        }
    }
    free(from);
    free(to);
}

static void limit_files(int argc, char **argv)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_max = argc > 2 && atoi(argv[2]) > 0 ? (rlim_t) atoi(argv[2]) : limit.rlim_max;
    limit.rlim_cur = argc > 1 && atoi(argv[1]) > 0 ? (rlim_t) atoi(argv[1]) : limit.rlim_cur;
    if (0 != setrlimit(RLIMIT_NOFILE, &limit)) {
        perror("setrlimit");
        exit(2);
    }
}

static void all_rounds(int first, int last)
{
    for (int round = first; round < last; ++round) {
        alltoall(1, round);
        count();
        allreduce(1, round);
        alltoall(5000, round);
        count();
        allreduce(100000, round);
        MPI_Barrier(MPI_COMM_WORLD);
        count();
    }
}

int main(int argc, char **argv)
{
    struct rlimit limit;
    int all, own, start;

    limit_files(argc, argv);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    count();
    own = most;
    all_rounds(0, 2);
    MPI_Reduce(&most, &all, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    /* others may have opened lanes to who came late */
    MPI_Reduce(&own, &start, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
    if (argc > 3) {
        while (dup(0) >= 0) {
        }
        all_rounds(2, 4);
    }
    getrlimit(RLIMIT_NOFILE, &limit);
    if (0 == rank) {
        printf("descriptors: right results on %d ranks, %d after MPI_Init, at most %d, limit %lu\n",
               size, start, all, (unsigned long) limit.rlim_cur);
    }
    MPI_Finalize();
    return 0;
}
