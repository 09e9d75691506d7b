/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Requests of collectives: what their statuses say, and misuse of persistent ones that Open MPI
 * lets through. Output: TAP, from rank 0.
 */
#include "job.h"
#include "pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define ROUNDS      20
#define AWAY_MS     400
#define SHORT_COUNT 1000
#define LONG_COUNT  (12 << 20)

static int me, number;

/* Leaves rubbish in the memory that is allocated next. */
static void litter(void)
{
    void *pieces[64];

    for (size_t i = 0; i < 64; ++i) {
        pieces[i] = malloc(256 + 32 * i);
        memset(pieces[i], 0xa5, 256 + 32 * i);
    }
    for (size_t i = 0; i < 64; ++i) {
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

    for (int i = 0; i < ROUNDS; ++i) {
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
        for (int k = 0; k < 3; ++k) {
            errors += wrong_status(&status[k]);
        }
    }
    return errors;
}

/* MPI_Start and MPI_Request_free of a request that is under way are refused; it completes normally.
 * */
static int persistent_twice(MPI_Comm comm)
{
    int errors = 0, one = 1, sum = 0, size;
    MPI_Request request, same;
    MPI_Status status;

    MPI_Comm_size(comm, &size);
    JOB_INIT(Allreduce)(&one, &sum, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
    for (int i = 0; i < ROUNDS; ++i) {
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

/* Adds pairs of an int and two that are not to be touched; does not commute: the left one counts
 * twice. */
static void add_left_twice(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void) type;
    for (int i = 0; i < 3 * *count; i += 3) {
        ((int *) inout)[i] += 2 * ((int *) in)[i];
    }
}

/* An inactive request is complete, and empty. */
static int wrong_inactive(MPI_Request *requests, int count)
{
    int errors = 0, at = 0, done = 0;
    MPI_Status status;

    for (int i = 0; i < count; ++i) {
        errors += MPI_SUCCESS != MPI_Test(&requests[i], &done, &status) || !done ||
                  wrong_status(&status) || MPI_REQUEST_NULL == requests[i];
    }
    return errors +
           (MPI_SUCCESS != MPI_Waitany(count, requests, &at, &status) || MPI_UNDEFINED != at);
}

/* Starts two of three, with new data, and checks the results. */
static int persistent_start(MPI_Request *requests, int *in, int *out, int start, int size)
{
    int errors = 0, all;

    for (int i = 0; i < 3 * SHORT_COUNT; ++i) {
        in[i] = 0 == i % 3 ? me + start + i : -1;
        out[i] = -2;
    }
    out[3 * SHORT_COUNT] = 0 == me ? start : -2;
    errors += MPI_SUCCESS != MPI_Startall(2, requests) ||
              MPI_SUCCESS != MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 3 * SHORT_COUNT; ++i) {
        all = size - 1 + start + i;
        for (int r = size - 2; r >= 0 && 0 == i % 3; --r) {
            all += 2 * (r + start + i);
        }
        errors += out[i] != (0 == i % 3 ? all : -2);
    }
    return errors + (start != out[3 * SHORT_COUNT]);
}

/* Made, started often, or never, and freed; what they were made of is freed before, the
 * communicator in between. */
static int persistent_life(void)
{
    int in[3 * SHORT_COUNT], out[3 * SHORT_COUNT + 1], errors = 0, size;
    MPI_Request requests[3];
    MPI_Datatype single, holes;
    MPI_Comm comm;
    MPI_Op op;

    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < ROUNDS; ++i) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Type_dup(MPI_INT, &single);
        MPI_Type_create_resized(MPI_INT, 0, 3 * sizeof(int), &holes);
        MPI_Type_commit(&holes);
        MPI_Op_create(add_left_twice, 0, &op);
        JOB_INIT(Allreduce)(in, out, SHORT_COUNT, holes, op, comm, MPI_INFO_NULL, &requests[0]);
        JOB_INIT(Bcast)(out + 3 * SHORT_COUNT, 1, single, 0, comm, MPI_INFO_NULL, &requests[1]);
        JOB_INIT(Allgather)(in, 1, holes, out, 1, holes, comm, MPI_INFO_NULL, &requests[2]);
        MPI_Type_free(&single);
        MPI_Type_free(&holes);
        MPI_Op_free(&op);
        litter();
        errors += wrong_inactive(requests, 3);
        for (int start = 0; start < ROUNDS; ++start) {
            errors += persistent_start(requests, in, out, start, size);
        }
        MPI_Comm_free(&comm);
        litter();
        errors += persistent_start(requests, in, out, ROUNDS, size) + wrong_inactive(requests, 3);
        for (int k = 0; k < 3; ++k) {
            errors += MPI_SUCCESS != MPI_Request_free(&requests[k]);
        }
    }
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
 * A process that sleeps in the middle of a long call,
 with all that may be kept for it there and more to come,
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
    for (int i = 0; i < LONG_COUNT; ++i) {
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
            ++errors;
        }
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < LONG_COUNT; ++i) {
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
    errors = pattern_verdict(++number, "statuses", statuses());
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    errors += pattern_verdict(++number, "persistent requests under way", persistent_twice(comm));
    errors +=
        pattern_verdict(++number, "persistent requests from first to last", persistent_life());
    errors += pattern_verdict(++number, "away in the middle of a call", away(comm));
    MPI_Comm_free(&comm);
    if (0 == me) {
        printf("1..%d\n", number);
    }
    MPI_Finalize();
    return 0 == errors ? 0 : 1;
}
