/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * gpu_steps COUNT STEPS: a loop as of a training, on buffers of gpu_alloc.h: each step reduces,
 * broadcasts, gathers and exchanges COUNT numbers, with exact checks. A line of rank 0 for each
 * step, how many messages NICs were to read in memory of a GPU, and how long rates of it were
 * measured; errors of MPI are told by each
 * rank, which then ends with 3. Nothing hangs.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "counted.h"
#include "gpu_alloc.h"

typedef struct loop {
    int rank, size, count;
    float *in, *out;
} loop_t;

static float value(int rank, int step, int i)
{
    return (float) ((rank + 1) * (step % 7 + 1) + i % 13);
}

static void fill(const loop_t *loop, int step)
{
    for (int i = 0; i < loop->count; ++i) {
        loop->in[i] = value(loop->rank, step, i);
    }
    memset(loop->out, 0xff, (size_t) loop->count * sizeof(float));
}

static float total(const loop_t *loop, int step, int i)
{
    float sum = 0;

    for (int r = 0; r < loop->size; ++r) {
        sum += value(r, step, i);
    }
    return sum;
}

/* @return MPI's error code; *wrong_p grows. */
static int reduce(const loop_t *loop, int step, long *wrong_p)
{
    MPI_Request request;
    int rc = MPI_Iallreduce(loop->in, loop->out, loop->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                            &request);

    if (MPI_SUCCESS == rc) {
        rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; MPI_SUCCESS == rc && i < loop->count; ++i) {
        *wrong_p += total(loop, step, i) != loop->out[i] ? 1 : 0;
    }
    return rc;
}

static int spread(const loop_t *loop, int step, long *wrong_p)
{
    const int root = step % loop->size;
    int rc;

    if (root == loop->rank) {
        memcpy(loop->out, loop->in, (size_t) loop->count * sizeof(float));
    }
    rc = MPI_Bcast(loop->out, loop->count, MPI_FLOAT, root, MPI_COMM_WORLD);
    for (int i = 0; MPI_SUCCESS == rc && i < loop->count; ++i) {
        *wrong_p += value(root, step, i) != loop->out[i] ? 1 : 0;
    }
    return rc;
}

static int exchange(const loop_t *loop, int step, long *wrong_p)
{
    const int block = loop->count / loop->size;
    int rc = MPI_Alltoall(loop->in, block, MPI_FLOAT, loop->out, block, MPI_FLOAT, MPI_COMM_WORLD);

    for (int i = 0; MPI_SUCCESS == rc && i < block * loop->size; ++i) {
        *wrong_p += value(i / block, step, loop->rank * block + i % block) != loop->out[i] ? 1 : 0;
    }
    return rc;
}

static int gather(const loop_t *loop, int step, long *wrong_p)
{
    const int block = loop->count / loop->size;
    int rc = MPI_Allgather(loop->in, block, MPI_FLOAT, loop->out, block, MPI_FLOAT, MPI_COMM_WORLD);

    for (int i = 0; MPI_SUCCESS == rc && i < block * loop->size; ++i) {
        *wrong_p += value(i / block, step, i % block) != loop->out[i] ? 1 : 0;
    }
    return rc;
}

int main(int argc, char **argv)
{
    static int (*const calls[])(const loop_t *, int, long *) = {reduce, spread, exchange, gather};
    loop_t loop = {.count = argc > 2 ? atoi(argv[1]) : 0};
    const int steps = argc > 2 ? atoi(argv[2]) : 0;
    long wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &loop.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &loop.size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    loop.in = buffer_alloc((size_t) loop.count * sizeof(float));
    loop.out = buffer_alloc((size_t) loop.count * sizeof(float));
    for (int step = 0; step < steps; ++step) {
        for (size_t k = 0; k < sizeof(calls) / sizeof(calls[0]); ++k) {
            fill(&loop, step);
            if (MPI_SUCCESS != calls[k](&loop, step, &wrong)) {
                printf("error on rank %d\n", loop.rank);
                fflush(stdout);
                sleep(2); /* the others hear why before this process is gone */
                _Exit(3);
            }
        }
        if (0 == loop.rank) {
            printf("step %d, %ld wrong here\n", step, wrong);
            fflush(stdout);
        }
    }
    buffer_free(loop.in);
    buffer_free(loop.out);
    printf("# rank %d: %llu messages for NICs to read, %llu fetched, %llu bytes put\n", loop.rank,
           counted("coll_r2_gpu_messages"), counted("coll_r2_fetched_messages"),
           counted("coll_r2_gpu_placed_bytes"));
    printf("# rank %d: %llu us of measuring\n", loop.rank, counted("coll_r2_gpu_measure_us"));
    MPI_Finalize();
    printf("rank %d: %ld wrong\n", loop.rank, wrong);
    return 0 == wrong ? 0 : 1;
}
