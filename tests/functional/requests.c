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

#define ROUNDS 20

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
    MPI_Comm_free(&comm);
    if (0 == me) {
        printf("1..%d\n", number);
    }
    MPI_Finalize();
    return 0 == errors ? 0 : 1;
}
