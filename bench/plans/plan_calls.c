/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The job of bench_plans: one allreduce after the other until it is told to stop, each timed and
 * its result hashed: plan_calls BYTES STOP-FILE
 */
/*
 * Lines on standard output of rank 0, times are CLOCK_MONOTONIC, which all hosts of a lab share:
 *   want HASH                        of the sum in the order that r2 promises, from all inputs
 *   call I START END EPOCHS HASH     EPOCHS: agreed maps so far when it began; HASH 0: ranks differ
 */
#include "r2_config.h"

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

/* Short calls between two long ones: merges of maps are limited by the number of calls. */
#define CALLS_BETWEEN 24

/* Reference sums are made in pieces of this many elements. */
#define PIECE 4096u

typedef struct job {
    int rank, size;
    size_t count;
    float *in, *out; /* owned */
    const char *stop_file;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle epochs;
} job_t;

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + 1e-9 * (double) now.tv_nsec;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
    return x ^ (x >> 32);
}

/** Over seven decades and of both signs: another order of addition gives other bits. */
static float input_of(int rank, size_t element)
{
    static const float scale[8] = {1e-3f, 1e-2f, 1e-1f, 1.0f, 1e1f, 1e2f, 1e3f, 1e4f};
    uint64_t bits = mix(element * 1024 + (uint64_t) rank + 1);
    float value = (float) (bits >> 40) / 16777216.0f;

    return (0 != (bits & 8) ? -value : value) * scale[bits & 7];
}

static uint64_t hash_add(uint64_t hash, const float *values, size_t count)
{
    const uint32_t *words = (const uint32_t *) (const void *) values;

    for (size_t i = 0; i < count; ++i) {
        hash = (hash ^ words[i]) * 0x100000001b3u;
    }
    return hash;
}

/** x0 + (x1 + (x2 + ...)), the order of docs/planner.md. */
static uint64_t hash_wanted(const job_t *job)
{
    static float sum[PIECE];
    uint64_t hash = 1;

    for (size_t from = 0; from < job->count; from += PIECE) {
        size_t count = job->count - from < PIECE ? job->count - from : PIECE;

        for (size_t i = 0; i < count; ++i) {
            sum[i] = input_of(job->size - 1, from + i);
        }
        for (int r = job->size - 2; r >= 0; --r) {
            for (size_t i = 0; i < count; ++i) {
                sum[i] = input_of(r, from + i) + sum[i];
            }
        }
        hash = hash_add(hash, sum, count);
    }
    return hash;
}

static void counters_open(job_t *job)
{
    int level, index, count;

    job->epochs = MPI_T_PVAR_HANDLE_NULL;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_T_pvar_session_create(&job->session);
    if (MPI_SUCCESS == MPI_T_pvar_get_index("coll_r2_epochs", MPI_T_PVAR_CLASS_GENERIC, &index)) {
        MPI_T_pvar_handle_alloc(job->session, index, NULL, &job->epochs, &count);
    }
}

static unsigned long long epochs(const job_t *job)
{
    unsigned long long value = 0;

    if (MPI_T_PVAR_HANDLE_NULL != job->epochs) {
        MPI_T_pvar_read(job->session, job->epochs, &value);
    }
    return value;
}

static void one_call(job_t *job, int number)
{
    /* maxima: the last end, and the largest hash of the results and of their complements */
    double first_s, last_s, start_s, end_s;
    uint64_t mine[2], most[2];
    unsigned long long agreed;

    for (int i = 0; i < CALLS_BETWEEN; ++i) {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    agreed = epochs(job);
    start_s = now_s();
    MPI_Allreduce(job->in, job->out, (int) job->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    end_s = now_s();
    mine[0] = hash_add(1, job->out, job->count);
    mine[1] = ~mine[0];
    MPI_Allreduce(&start_s, &first_s, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&end_s, &last_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(mine, most, 2, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    if (0 == job->rank) {
        printf("call %d %.6f %.6f %llu %016llx\n", number, first_s, last_s, agreed,
               most[0] == ~most[1] ? (unsigned long long) most[0] : 0ull);
        fflush(stdout);
    }
}

static int told_to_stop(const job_t *job)
{
    struct stat found;
    int stop = 0 == job->rank && 0 == stat(job->stop_file, &found);

    MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return stop;
}

int main(int argc, char **argv)
{
    job_t job = {0};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.size);
    if (3 != argc) {
        fprintf(stderr, "usage: plan_calls BYTES STOP-FILE\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    job.count = strtoull(argv[1], NULL, 10) / sizeof(float);
    job.stop_file = argv[2];
    job.in = malloc((job.count + 1) * sizeof(float));
    job.out = malloc((job.count + 1) * sizeof(float));
    if (NULL == job.in || NULL == job.out) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (size_t i = 0; i < job.count; ++i) {
        job.in[i] = input_of(job.rank, i);
    }
    counters_open(&job);
    if (0 == job.rank) {
        printf("want %016llx\n", (unsigned long long) hash_wanted(&job));
    }
    for (int i = 0; !told_to_stop(&job); ++i) {
        one_call(&job, i);
    }
    free(job.in);
    free(job.out);
    MPI_T_finalize();
    MPI_Finalize();
    return 0;
}
