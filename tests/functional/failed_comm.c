/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A communicator that failed: every later call on it returns an error, at once and without a word.
 * Two communicators fail. Usage: failed_comm; exit code 0: as it has to be.
 */
#include <mpi.h>
#include <mpi-ext.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if OMPI_MAJOR_VERSION >= 5
#    define INIT(Name) MPI_##Name##_init
#else
#    define INIT(Name) MPIX_##Name##_init
#endif

/* What a request says that is started again after its wait returned an error. Open MPI up to 5.0
 * takes it for one that is under way. */
#if OMPI_MAJOR_VERSION >= 6
#    define AGAIN MPI_ERR_COUNT
#else
#    define AGAIN MPI_ERR_REQUEST
#endif

enum { CALLS = 200, LIMIT_S = 40 };

static int me;

static void hung(int signal)
{
    (void) signal;
    (void) !write(STDERR_FILENO, "hangs\n", 6);
    _exit(2);
}

static int class_of(int rc)
{
    int class;

    MPI_Error_class(rc, &class);
    return class;
}

static int wait_for(int rc, MPI_Request *request)
{
    return MPI_SUCCESS == rc ? MPI_Wait(request, MPI_STATUS_IGNORE) : rc;
}

/* One rank has another operation. @return calls that did not say so. */
static unsigned fail(MPI_Comm comm)
{
    int in = 1, out, rc;
    unsigned wrong = 0;
    MPI_Request request, kept;

    INIT(Allreduce)(&in, &out, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &kept);
    rc = MPI_Allreduce(&in, &out, 1, MPI_INT, 0 == me ? MPI_MAX : MPI_SUM, comm);
    wrong += MPI_ERR_COUNT != class_of(rc);
    for (int i = 0; i < CALLS; ++i) {
        wrong += MPI_ERR_COUNT != class_of(MPI_Barrier(comm));
        rc = MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_SUM, comm, &request);
        wrong += MPI_ERR_COUNT != class_of(rc); /* at once */
        rc = MPI_Start(&kept);
        wrong += (0 == i ? MPI_ERR_COUNT : AGAIN) != class_of(wait_for(rc, &kept));
    }
    MPI_Request_free(&kept);
    return wrong;
}

int main(int argc, char **argv)
{
    MPI_Comm comms[2], copy;
    MPI_Request request;
    unsigned wrong = 0, all;
    int rc;

    signal(SIGALRM, hung);
    alarm(LIMIT_S);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < 2; ++i) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    }
    for (int i = 0; i < 2; ++i) {
        wrong += fail(comms[i]);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Allreduce(&wrong, &all, 1, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
    /* It calls again and again while requests end with an error that it does not look at. */
    rc = MPI_Comm_idup(comms[0], &copy, &request);
    all += MPI_SUCCESS == wait_for(rc, &request);
    printf("# rank %d: %u wrong\n", me, all);
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    _exit(0 == all ? 0 : 1); /* Open MPI's own books are not in order after such an MPI_Comm_idup */
}
