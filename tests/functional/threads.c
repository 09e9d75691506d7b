/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI_THREAD_MULTIPLE: many threads at once, each with a communicator, a window and tags of its
 * own. Every byte is checked. Output: TAP, from rank 0. Arguments: rounds, threads.
 */
#include <pthread.h>
#include <string.h>

#include "pattern.h"

#define LONGEST     (1 << 20)
#define THREADS_MAX 16

static int me, size, rounds = 20;

typedef struct worker {
    pthread_t thread;
    int number;
    MPI_Comm comm;
    MPI_Win win;
    unsigned char *window, *out, *in;
    int errors;
} worker_t;

/* Of all threads on one communicator, told apart by their tags. */
static int shift(worker_t *worker, int turn)
{
    static const int lengths[] = {0, 1, 200, 4000, 8192, 20000, 70000, LONGEST};
    long bytes = lengths[(unsigned) (turn + worker->number) % 8];
    int right = (me + 1) % size, left = (me + size - 1) % size, tag = worker->number * 1000 + turn;

    pattern_fill(worker->out, me, tag, bytes);
    memset(worker->in, 0, LONGEST);
    MPI_Sendrecv(worker->out, (int) bytes, MPI_BYTE, right, tag, worker->in, (int) bytes, MPI_BYTE,
                 left, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return pattern_wrong(worker->in, left, tag, bytes);
}

/* On the thread's own communicator: a sum, and while it runs a broadcast. */
static int collectives(worker_t *worker, int turn)
{
    int count = 1 << (turn % 15), errors = 0, root = turn % size;
    int *values = (int *) (void *) worker->out, *sums = (int *) (void *) worker->in;
    MPI_Request request;
    char word[64];

    for (int i = 0; i < count; ++i) {
        values[i] = me * 7 + i + worker->number + turn;
    }
    MPI_Iallreduce(values, sums, count, MPI_INT, MPI_SUM, worker->comm, &request);
    snprintf(word, sizeof(word), "%d", me == root ? turn : -1);
    MPI_Bcast(word, sizeof(word), MPI_CHAR, root, worker->comm);
    errors += atoi(word) != turn;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; ++i) {
        errors += sums[i] != size * (i + worker->number + turn) + 7 * (size * (size - 1) / 2);
    }
    return errors;
}

/* Into the thread's own window. */
static int one_sided(worker_t *worker, int turn)
{
    int bytes = (turn * 7919) % LONGEST, right = (me + 1) % size, left = (me + size - 1) % size,
        errors;

    pattern_fill(worker->out, me, turn, bytes);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, worker->win);
    MPI_Put(worker->out, bytes, MPI_BYTE, right, 0, bytes, MPI_BYTE, worker->win);
    MPI_Win_unlock(right, worker->win);
    MPI_Barrier(worker->comm);
    MPI_Win_lock(MPI_LOCK_SHARED, me, 0, worker->win);
    errors = pattern_wrong(worker->window, left, turn, bytes);
    MPI_Win_unlock(me, worker->win);
    MPI_Barrier(worker->comm);
    return errors;
}

typedef int (*part_fn_t)(worker_t *worker, int turn);

typedef struct job {
    worker_t *worker;
    part_fn_t part; /* NULL: all of them in turn */
} job_t;

static void *work(void *arg)
{
    const job_t *job = arg;
    const part_fn_t parts[] = {shift, collectives, one_sided};

    for (int turn = 0; turn < rounds; ++turn) {
        /* threads of a rank do different things at a time, ranks agree */
        part_fn_t part = NULL != job->part ? job->part : parts[(turn + job->worker->number) % 3];

        job->worker->errors += part(job->worker, turn);
    }
    return NULL;
}

static int run(worker_t *workers, int threads, part_fn_t part)
{
    job_t jobs[THREADS_MAX];
    int errors = 0;

    for (int i = 0; i < threads; ++i) {
        jobs[i] = (job_t){&workers[i], part};
        if (0 != pthread_create(&workers[i].thread, NULL, work, &jobs[i])) {
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    for (int i = 0; i < threads; ++i) {
        pthread_join(workers[i].thread, NULL);
        errors += workers[i].errors;
        workers[i].errors = 0;
    }
    return errors;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        part_fn_t part;
    } cases[] = {{"point-to-point", shift},
                 {"collectives", collectives},
                 {"one-sided", one_sided},
                 {"all at once", NULL}};
    worker_t workers[THREADS_MAX] = {{0}};
    int threads = argc > 2 ? atoi(argv[2]) : 6, errors = 0, number = 0, provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    rounds = argc > 1 ? atoi(argv[1]) : rounds;
    if (MPI_THREAD_MULTIPLE != provided || threads > THREADS_MAX) {
        fprintf(stderr, "# no MPI_THREAD_MULTIPLE, or too many threads\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 0; i < threads; ++i) {
        workers[i].number = i;
        workers[i].out = pattern_alloc(LONGEST);
        workers[i].in = pattern_alloc(LONGEST);
        MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
        MPI_Win_allocate(LONGEST, 1, MPI_INFO_NULL, workers[i].comm, &workers[i].window,
                         &workers[i].win);
    }
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        errors += pattern_verdict(++number, cases[i].name, run(workers, threads, cases[i].part));
    }
    for (int i = 0; i < threads; ++i) {
        MPI_Win_free(&workers[i].win);
        MPI_Comm_free(&workers[i].comm);
        free(workers[i].out);
        free(workers[i].in);
    }
    if (0 == me) {
        printf("1..%d\n", number);
    }
    MPI_Finalize();
    return 0 == errors ? 0 : 1;
}
