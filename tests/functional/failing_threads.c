/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Calls that fail in several threads at once: each gets its error, and printing the help texts
 * crashes nobody.
 *
 * Usage: failing_threads; needs MPI_THREAD_MULTIPLE.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

#define THREADS 6
#define ROUNDS  20

/** One thread's communicator, and what its call came to. */
typedef struct job {
    pthread_t thread;
    pthread_barrier_t *start;
    MPI_Comm comm;
    MPI_Op op;
    int class;
} job_t;

static void *job_main(void *arg)
{
    job_t *job = arg;
    int in = 1, out;

    pthread_barrier_wait(job->start);
    MPI_Error_class(MPI_Allreduce(&in, &out, 1, MPI_INT, job->op, job->comm), &job->class);
    return NULL;
}

/* Rank 0 calls with another operation than the others. */
static unsigned play(int rank)
{
    job_t jobs[THREADS];
    pthread_barrier_t start;
    unsigned failures = 0;

    pthread_barrier_init(&start, NULL, THREADS);
    for (int t = 0; t < THREADS; ++t) {
        jobs[t] = (job_t){.start = &start, .op = 0 == rank ? MPI_MAX : MPI_SUM};
        MPI_Comm_dup(MPI_COMM_WORLD, &jobs[t].comm);
        MPI_Comm_set_errhandler(jobs[t].comm, MPI_ERRORS_RETURN);
    }
    for (int t = 0; t < THREADS; ++t) {
        pthread_create(&jobs[t].thread, NULL, job_main, &jobs[t]);
    }
    for (int t = 0; t < THREADS; ++t) {
        pthread_join(jobs[t].thread, NULL);
        failures += MPI_ERR_COUNT != jobs[t].class;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int t = 0; t < THREADS; ++t) {
        MPI_Comm_free(&jobs[t].comm);
    }
    pthread_barrier_destroy(&start);
    return failures;
}

int main(int argc, char **argv)
{
    unsigned failures = 0, all;
    int level, rank;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (MPI_THREAD_MULTIPLE != level) {
        printf("not ok 1 - MPI_THREAD_MULTIPLE\n1..1\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int round = 0; round < ROUNDS; ++round) {
        failures += play(rank);
    }
    MPI_Allreduce(&failures, &all, 1, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("%s 1 - %d threads fail at once, %d times\n1..1\n", 0 == all ? "ok" : "not ok",
               THREADS, ROUNDS);
    }
    MPI_Finalize();
    return 0 == all ? 0 : 1;
}
