/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A process dies, and the others have an error that says so:
 *   dying CALL [in|after]  the last rank is killed while CALLs are made, or after the first one
 * All survivors have the error class of dead processes (r2_mpi.h) with a call within the limit and
 * with every later one on that communicator, blocking, nonblocking and persistent, while those who
 * have a communicator of their own go on with it. Exit code 0: as it has to be.
 */
#include <mpi.h>
#include <mpi-ext.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "r2_mpi.h"

#if OMPI_MAJOR_VERSION >= 5
#    define INIT(Name) MPI_##Name##_init
#else
#    define INIT(Name) MPIX_##Name##_init
#endif

enum { RANKS_MAX = 64, SHORT = 3, LONG = 60000, LATER = 20, LIMIT_S = 20 };

static int me, size;
static int *in, *out, counts[RANKS_MAX], displs[RANKS_MAX];

static void hung(int signal)
{
    (void) signal;
    (void) !write(STDERR_FILENO, "hangs\n", 6);
    _exit(2);
}

/* ---- the calls: with n ints per rank. @return the error class */

typedef int (*call_t)(int n, MPI_Comm comm);

static int call_barrier(int n, MPI_Comm comm)
{
    (void) n;
    return MPI_Barrier(comm);
}

static int call_bcast(int n, MPI_Comm comm)
{
    return MPI_Bcast(in, n, MPI_INT, size - 1, comm); /* whose root it is that dies */
}

static int call_allreduce(int n, MPI_Comm comm)
{
    return MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, comm);
}

static int call_reduce(int n, MPI_Comm comm)
{
    return MPI_Reduce(in, out, n, MPI_INT, MPI_SUM, 0, comm);
}

static int call_allgather(int n, MPI_Comm comm)
{
    return MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, comm);
}

static int call_allgatherv(int n, MPI_Comm comm)
{
    return MPI_Allgatherv(in, n, MPI_INT, out, counts, displs, MPI_INT, comm);
}

static int call_alltoall(int n, MPI_Comm comm)
{
    return MPI_Alltoall(in, n, MPI_INT, out, n, MPI_INT, comm);
}

static int call_alltoallv(int n, MPI_Comm comm)
{
    (void) n;
    return MPI_Alltoallv(in, counts, displs, MPI_INT, out, counts, displs, MPI_INT, comm);
}

static int call_gather(int n, MPI_Comm comm)
{
    return MPI_Gather(in, n, MPI_INT, out, n, MPI_INT, 0, comm);
}

static int call_scatter(int n, MPI_Comm comm)
{
    return MPI_Scatter(in, n, MPI_INT, out, n, MPI_INT, size - 1, comm);
}

static int call_reduce_scatter(int n, MPI_Comm comm)
{
    (void) n;
    return MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, comm);
}

static int call_reduce_scatter_block(int n, MPI_Comm comm)
{
    return MPI_Reduce_scatter_block(in, out, n, MPI_INT, MPI_SUM, comm);
}

static int call_scan(int n, MPI_Comm comm)
{
    return MPI_Scan(in, out, n, MPI_INT, MPI_SUM, comm);
}

static int call_exscan(int n, MPI_Comm comm)
{
    return MPI_Exscan(in, out, n, MPI_INT, MPI_SUM, comm);
}

static int call_ialltoall(int n, MPI_Comm comm)
{
    MPI_Request request;
    const int rc = MPI_Ialltoall(in, n, MPI_INT, out, n, MPI_INT, comm, &request);

    return MPI_SUCCESS == rc ? MPI_Wait(&request, MPI_STATUS_IGNORE) : rc;
}

static int call_iallreduce(int n, MPI_Comm comm)
{
    MPI_Request request;
    const int rc = MPI_Iallreduce(in, out, n, MPI_INT, MPI_SUM, comm, &request);

    return MPI_SUCCESS == rc ? MPI_Wait(&request, MPI_STATUS_IGNORE) : rc;
}

static int call_persistent(int n, MPI_Comm comm)
{
    MPI_Request request;
    int rc = INIT(Allreduce)(in, out, n, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);

    rc = MPI_SUCCESS == rc ? MPI_Start(&request) : rc;
    return MPI_SUCCESS == rc ? MPI_Wait(&request, MPI_STATUS_IGNORE) : rc;
}

static const struct {
    const char *name;
    call_t call;
} calls[] = {
    {"barrier", call_barrier},
    {"bcast", call_bcast},
    {"allreduce", call_allreduce},
    {"reduce", call_reduce},
    {"allgather", call_allgather},
    {"allgatherv", call_allgatherv},
    {"alltoall", call_alltoall},
    {"alltoallv", call_alltoallv},
    {"gather", call_gather},
    {"scatter", call_scatter},
    {"reduce_scatter", call_reduce_scatter},
    {"reduce_scatter_block", call_reduce_scatter_block},
    {"scan", call_scan},
    {"exscan", call_exscan},
    {"ialltoall", call_ialltoall},
    {"iallreduce", call_iallreduce},
    {"persistent", call_persistent},
};

#define CALLS (sizeof(calls) / sizeof(calls[0]))

/* ---- */

static int class_of(int rc)
{
    int class;

    MPI_Error_class(rc, &class);
    return class;
}

/* In calls: a child kills its parent when some have been made. */
static void die_soon(void)
{
    const pid_t parent = getpid();

    if (0 == fork()) {
        usleep((unsigned) (parent % 50) * 1000);
        kill(parent, SIGKILL);
        _exit(0);
    }
}

/* Calls until one fails. The last rank dies. @return the class of the error. */
static int until_error(call_t call, int n, const char *when, MPI_Comm comm)
{
    const double start = MPI_Wtime();
    int rc = call(n, comm);

    if (size - 1 == me) {
        if (0 != strcmp(when, "in")) {
            kill(getpid(), SIGKILL);
        }
        die_soon();
    }
    /* Who has all that it needs does not notice: a barrier tells it. */
    while (MPI_SUCCESS == rc && MPI_Wtime() - start < LIMIT_S) {
        rc = call(n, comm);
        rc = MPI_SUCCESS == rc ? MPI_Barrier(comm) : rc;
    }
    return class_of(rc);
}

/* Every later call on it, of any kind. @return how many had another error, or none. */
static int later(MPI_Comm comm, int class)
{
    int wrong = 0;

    for (int i = 0; i < LATER; ++i) {
        wrong += class != class_of(calls[(size_t) i % CALLS].call(SHORT, comm));
    }
    return wrong;
}

/* The survivors' own communicator. @return errors. */
static int go_on(MPI_Comm rest)
{
    int wrong = 0;

    for (int round = 0; round < 10; ++round) {
        for (int i = 0; i < LONG; ++i) {
            in[i] = me + round * i;
        }
        wrong += MPI_SUCCESS != MPI_Allreduce(in, out, LONG, MPI_INT, MPI_SUM, rest);
        for (int i = 0; i < LONG; ++i) {
            wrong += out[i] != (size - 1) * (size - 2) / 2 + (size - 1) * round * i;
        }
    }
    return wrong;
}

static int one(size_t number, const char *when)
{
    const int n = number % 2 ? LONG : SHORT, dead = r2_mpi_err_proc_failed();
    char text[MPI_MAX_ERROR_STRING];
    double start;
    int class, wrong, length;
    MPI_Comm rest;

    for (int r = 0; r < size; ++r) {
        counts[r] = n;
        displs[r] = r * n;
    }
    MPI_Comm_split(MPI_COMM_WORLD, size - 1 == me, me, &rest);
    MPI_Comm_set_errhandler(rest, MPI_ERRORS_RETURN);
    start = MPI_Wtime();
    class = until_error(calls[number].call, n, when, MPI_COMM_WORLD);
    start = MPI_Wtime() - start;
    wrong = class != dead || dead <= MPI_SUCCESS || MPI_ERR_OTHER == dead;
    MPI_Error_string(class, text, &length);
    wrong += later(MPI_COMM_WORLD, class);
    wrong += go_on(rest);
    printf("rank %d: %s: class %d of %d, %s, after %.2f s, %d wrong\n", me, calls[number].name,
           class, dead, text, start, wrong);
    fflush(stdout);
    return wrong;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "allreduce", *when = argc > 2 ? argv[2] : "in";
    int wrong = 1;

    signal(SIGALRM, hung);
    alarm(3 * LIMIT_S);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    in = calloc((size_t) size * LONG, sizeof(*in));
    out = calloc((size_t) size * LONG, sizeof(*out));
    for (size_t i = 0; i < CALLS; ++i) {
        if (0 == strcmp(what, calls[i].name)) {
            wrong = one(i, when);
        }
    }
    _exit(0 == wrong ? 0 : 1); /* MPI_Finalize would wait for the dead */
}
