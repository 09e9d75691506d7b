/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Requests of collectives: what their statuses say, and misuse of persistent ones that Open MPI lets through.
 * Output: TAP, from rank 0.
 */
#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define ROUNDS 20
#define AWAY_MS 400
#define LONG_COUNT (12 << 20)

static int me, number;

/* Collects the verdict of all ranks. @return errors of all. */
static int verdict(const char *name, int errors)
{
    int sum;

    MPI_Allreduce(&errors, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (0 == me) {
        printf("%sok %d - %s\n", 0 == sum ? "" : "not ", ++number, name);
        fflush(stdout);
    }
    return sum;
}

/* Leaves rubbish in the memory that is allocated next. */
static void litter(void)
{
    void *pieces[64];

    for (size_t i = 0; i < 64; i++) {
        pieces[i] = malloc(256 + 32 * i);
        memset(pieces[i], 0xa5, 256 + 32 * i);
    }
    for (size_t i = 0; i < 64; i++) {
        free(pieces[i]);
    }
}

/* Not cancelled, and without data. */
static int wrong_status(const MPI_Status *status)
{
    int cancelled = 1, count = -1;

    MPI_Test_cancelled(status, &cancelled);
    MPI_Get_count(status, MPI_BYTE, &count);
    return cancelled || 0 != count;
}

static int statuses(void)
{
    int errors = 0, one = 1, sum, done;
    char data[2000] = {0};

    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request requests[3];
        MPI_Status status[3];

        litter();
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
        MPI_Ibcast(data, sizeof(data), MPI_BYTE, 0, MPI_COMM_WORLD, &requests[1]);
        MPI_Ibarrier(MPI_COMM_WORLD, &requests[2]);
        for (done = 0; !done;) {
            MPI_Request_get_status(requests[2], &done, &status[2]);
        }
        errors += wrong_status(&status[2]);
        MPI_Waitall(3, requests, status);
        for (int k = 0; k < 3; k++) {
            errors += wrong_status(&status[k]);
        }
    }
    return errors;
}

/* MPI_Start and MPI_Request_free of a request that is under way are refused; it completes normally. */
static int persistent_twice(MPI_Comm comm)
{
    int errors = 0, one = 1, sum = 0, size;
    MPI_Request request, same;
    MPI_Status status;

    MPI_Comm_size(comm, &size);
    JOB_INIT(Allreduce)(&one, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Barrier(comm);
        if (0 != me) {
            MPI_Start(&request);
            errors += MPI_SUCCESS == MPI_Start(&request);
            same = request;
            errors += MPI_SUCCESS == MPI_Request_free(&same) || same != request;
        }
        /* Rank 0 comes last: without it the call is under way as long as the others try. */
        MPI_Barrier(MPI_COMM_WORLD);
        if (0 == me) {
            MPI_Start(&request);
        }
        MPI_Wait(&request, &status);
        errors += size != sum || wrong_status(&status);
        sum = 0;
    }
    errors += MPI_SUCCESS != MPI_Request_free(&request) || MPI_REQUEST_NULL != request;
    return errors;
}

static double cpu_s(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/*
 * A process that sleeps in the middle of a long call, with all that may be kept for it there and more to come,
 * takes no processor time: what cannot be read must not keep its service thread awake.
 */
static int away(MPI_Comm comm)
{
    struct timespec pause = {0, AWAY_MS * 1000000};
    int *in = malloc(LONG_COUNT * sizeof(*in)), *out = malloc(LONG_COUNT * sizeof(*out));
    int errors = 0, size;
    MPI_Request request;
    double took_s;

    MPI_Comm_size(comm, &size);
    for (int i = 0; i < LONG_COUNT; i++) {
        in[i] = i % 1000;
    }
    MPI_Barrier(comm);
    MPI_Iallreduce(in, out, LONG_COUNT, MPI_INT, MPI_SUM, comm, &request);
    if (0 == me) {
        took_s = cpu_s();
        nanosleep(&pause, NULL);
        took_s = cpu_s() - took_s;
        if (took_s > AWAY_MS * 1e-3 / 2) {
            printf("# %.3f s of processor time in %d ms of sleep\n", took_s, AWAY_MS);
            errors++;
        }
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < LONG_COUNT; i++) {
        errors += out[i] != size * (i % 1000);
    }
    free(in);
    free(out);
    return errors;
}

int main(int argc, char **argv)
{
    int errors;
    MPI_Comm comm;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    errors = verdict("statuses", statuses());
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    errors += verdict("persistent requests under way", persistent_twice(comm));
    errors += verdict("away in the middle of a call", away(comm));
    MPI_Comm_free(&comm);
    if (0 == me) {
        printf("1..%d\n", number);
    }
    MPI_Finalize();
    return 0 == errors ? 0 : 1;
}
