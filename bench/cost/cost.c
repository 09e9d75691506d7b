/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * CPU time of allreduce calls: of MPI_Allreduce, or of a bare UCX driver that does the same.
 *
 * cost mpi|bare BYTES CALLS [RAIL,RAIL...]
 *
 * Prints, over all ranks: CPU seconds (user and system) for each GiB that is sent, MB/s of the
 * vector, and the calls. Calls follow each other in rows with a barrier at both ends; the one
 * behind the last call counts, since a bare rank may be through before others have what it sent,
 * and what comes early is work of the next call. Results of the last call of a row are compared
 * with exact sums. Vectors of 8 bytes: each rank sends all it has.
 */
#include "r2_config.h"

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/cost/bare.h"

enum {
    WARM_ROWS = 1,
    ROW_CALLS = 4,
    SHORT_BYTES = 4096, /* from here on the vector is cut into shares */
    CHUNK_BYTES = 131072
};

typedef struct job {
    bare_t *bare; /* NULL: MPI */
    float *in, *out;
    size_t count;
    int rank, size;
} job_t;

static double cpu_s(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/** The call that is measured; not inlined,
since tools that count instructions ask for it by name. */
__attribute__((noinline)) void cost_call(job_t *job);
__attribute__((noinline)) void cost_call(job_t *job)
{
    if (NULL == job->bare) {
        MPI_Allreduce(job->in, job->out, (int) job->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    } else if (job->count * sizeof(float) < SHORT_BYTES) {
        bare_exchange(job->bare, job->in, job->out, job->count);
    } else {
        bare_allreduce(job->bare, job->in, job->out, job->count);
    }
}

/** Whole numbers below 2^24: the sum is exact in every order. */
static void fill(job_t *job, int call)
{
    for (size_t i = 0; i < job->count; ++i) {
        job->in[i] = (float) ((i * 7 + (size_t) call * 13) % 1009 + (size_t) job->rank * 1024);
    }
    memset(job->out, 0xee, job->count * sizeof(float));
}

static void check(const job_t *job, int call)
{
    for (size_t i = 0; i < job->count; ++i) {
        size_t sum = (size_t) job->size * ((i * 7 + (size_t) call * 13) % 1009) +
                     1024 * (size_t) (job->size * (job->size - 1) / 2);

        if (job->out[i] != (float) sum) {
            fprintf(stderr, "rank %d call %d: element %zu is %g, not %zu\n", job->rank, call, i,
                    (double) job->out[i], sum);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
}

static void barrier(const job_t *job)
{
    if (NULL != job->bare) {
        bare_barrier(job->bare);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/** @param calls rounded up to whole rows. */
static void measure(job_t *job, int calls)
{
    int rows = (calls + ROW_CALLS - 1) / ROW_CALLS;
    double mine[2] = {0, 0}, sum[2];
    double sent_bytes = job->count * sizeof(float) < SHORT_BYTES
                            ? (double) (job->count * sizeof(float)) * job->size
                            : 2.0 * (job->size - 1) * (double) (job->count * sizeof(float));

    for (int row = -WARM_ROWS; row < rows; ++row) {
        double cpu, wall;

        fill(job, row + WARM_ROWS);
        barrier(job);
        cpu = cpu_s();
        wall = MPI_Wtime();
        for (int call = 0; call < ROW_CALLS; ++call) {
            cost_call(job);
        }
        barrier(job);
        wall = MPI_Wtime() - wall;
        cpu = cpu_s() - cpu;
        if (row >= 0) {
            mine[0] += cpu;
            mine[1] += wall;
        }
        check(job, row + WARM_ROWS);
    }
    calls = rows * ROW_CALLS;
    MPI_Reduce(mine, sum, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (0 == job->rank) {
        printf("cpu_s_per_GiB %.4f MBps %.1f calls %d\n", sum[0] / (sent_bytes * calls) * (1 << 30),
               (double) (job->count * sizeof(float)) * calls * job->size / sum[1] / 1e6, calls);
    }
}

int main(int argc, char **argv)
{
    job_t job = {.bare = NULL};
    size_t bytes;

    if (argc < 4 || (0 != strcmp(argv[1], "mpi") && (0 != strcmp(argv[1], "bare") || argc < 5))) {
        fprintf(stderr, "usage: cost mpi|bare BYTES CALLS [RAIL,RAIL...]\n");
        return 2;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.size);
    bytes = strtoull(argv[2], NULL, 10);
    job.count = bytes / sizeof(float);
    job.in = malloc(bytes);
    job.out = malloc(bytes);
    if (NULL == job.in || NULL == job.out) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (0 == strcmp(argv[1], "bare")) {
        job.bare = bare_create(argv[4], CHUNK_BYTES);
        if (NULL == job.bare) {
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    measure(&job, atoi(argv[3]));
    if (NULL != job.bare) {
        bare_destroy(job.bare);
    }
    free(job.in);
    free(job.out);
    MPI_Finalize();
    return 0;
}
