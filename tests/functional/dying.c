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
#include "call_kinds.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "r2_mpi.h"

enum { LATER = 20, LIMIT_S = 20 };

static void hung(int signal)
{
    (void) signal;
    (void) !write(STDERR_FILENO, "hangs\n", 6);
    _exit(2);
}

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
