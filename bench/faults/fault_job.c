/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The job of bench/faults: one allreduce after the other, each compared with the exact sum.
 */
/*
 * usage: fault_job FOLDER BYTES. Works until the file FOLDER/stop is there. A file FOLDER/busy with
 * the words RANK SECONDS makes that rank compute for so long without MPI; it is removed when that
 * begins. FOLDER/rank.R gets the line "pid P" and for each iteration "I FROM TO WRONG", times in
 * seconds of CLOCK_MONOTONIC. Everything in the loop is an allreduce or a bcast: nothing needs the
 * management network.
 */
#include <mpi.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Inputs that take turns. Results of two variants differ in every element, so what an earlier call
 * left in the receive buffer is never taken for this one's; two would hide what comes one turn
 * late. */
#define VARIANTS 3

typedef struct job {
    const char *folder; /* borrowed: argv */
    FILE *log;          /* owned */
    size_t count;       /* elements */
    int rank, size;
    uint32_t *in[VARIANTS];       /* owned */
    uint32_t *expected[VARIANTS]; /* owned */
    uint32_t *out;                /* owned */
} job_t;

/** What rank 0 tells all before each iteration. */
typedef struct order {
    int stop;
    int busy_rank; /* -1: none */
    int busy_s;
} order_t;

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

static uint32_t value(int rank, size_t element, int variant)
{
    uint32_t x = (uint32_t) element * 2654435761u + (uint32_t) rank * 0x9e3779b9u;

    x ^= x >> 15;
    return x * 0x2c1b3c6du + (uint32_t) variant * 0x01000193u;
}

static void *must_have(size_t bytes)
{
    void *memory = malloc(bytes);

    if (NULL == memory) {
        fprintf(stderr, "fault_job: no memory for %zu bytes\n", bytes);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return memory;
}

static void make_buffers(job_t *job)
{
    size_t bytes = job->count * sizeof(*job->out);

    job->out = must_have(bytes);
    memset(job->out, 0xa5, bytes);
    for (int variant = 0; variant < VARIANTS; ++variant) {
        job->in[variant] = must_have(bytes);
        job->expected[variant] = must_have(bytes);
        for (size_t i = 0; i < job->count; ++i) {
            uint32_t sum = 0;

            for (int rank = 0; rank < job->size; ++rank) {
                sum += value(rank, i, variant);
            }
            job->in[variant][i] = value(job->rank, i, variant);
            job->expected[variant][i] = sum;
        }
    }
}

static void free_buffers(job_t *job)
{
    for (int variant = 0; variant < VARIANTS; ++variant) {
        free(job->in[variant]);
        free(job->expected[variant]);
    }
    free(job->out);
}

/* Number of elements that are not the sum. */
static size_t wrong_elements(const job_t *job, int variant)
{
    size_t wrong = 0;

    if (0 == memcmp(job->out, job->expected[variant], job->count * sizeof(*job->out))) {
        return 0;
    }
    for (size_t i = 0; i < job->count; ++i) {
        wrong += job->out[i] != job->expected[variant][i];
    }
    return wrong;
}

/* Rank 0 looks whether somebody asked for something. */
static order_t read_order(const job_t *job)
{
    order_t order = {.busy_rank = -1};
    char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/stop", job->folder);
    order.stop = 0 == access(path, F_OK);
    snprintf(path, sizeof(path), "%s/busy", job->folder);
    file = fopen(path, "r");
    if (NULL != file) {
        if (2 != fscanf(file, "%d %d", &order.busy_rank, &order.busy_s)) {
            order.busy_rank = -1;
        }
        fclose(file);
        unlink(path);
    }
    return order;
}

static void compute(int seconds)
{
    double end_s = now_s() + seconds;

    while (now_s() < end_s) {
    }
}

static void run(job_t *job)
{
    for (long iteration = 0;; ++iteration) {
        int variant = (int) (iteration % VARIANTS);
        order_t order = {.busy_rank = -1};
        double from_s, to_s;

        if (0 == job->rank) {
            order = read_order(job);
        }
        MPI_Bcast(&order, sizeof(order), MPI_BYTE, 0, MPI_COMM_WORLD);
        if (order.stop) {
            return;
        }
        if (order.busy_rank == job->rank) {
            compute(order.busy_s);
        }
        from_s = now_s();
        MPI_Allreduce(job->in[variant], job->out, (int) job->count, MPI_UINT32_T, MPI_SUM,
                      MPI_COMM_WORLD);
        to_s = now_s();
        fprintf(job->log, "%ld %.6f %.6f %zu\n", iteration, from_s, to_s,
                wrong_elements(job, variant));
        fflush(job->log);
    }
}

int main(int argc, char **argv)
{
    job_t job = {0};
    char path[512];

    MPI_Init(&argc, &argv);
    if (3 != argc || atol(argv[2]) < 4) {
        fprintf(stderr, "usage: fault_job FOLDER BYTES\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    job.folder = argv[1];
    job.count = (size_t) atol(argv[2]) / sizeof(*job.out);
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.size);
    snprintf(path, sizeof(path), "%s/rank.%d", job.folder, job.rank);
    job.log = fopen(path, "w");
    if (NULL == job.log) {
        perror(path);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    fprintf(job.log, "pid %d\n", (int) getpid());
    fflush(job.log);
    make_buffers(&job);
    run(&job);
    fclose(job.log);
    free_buffers(&job);
    MPI_Finalize();
    return 0;
}
