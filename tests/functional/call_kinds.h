/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Collectives of each kind, each as a function of a length and a communicator, for tests in which a
 * process dies. Ranks are those of MPI_COMM_WORLD; the last one is the root of what has one.
 */
#ifndef R2_TESTS_CALL_KINDS_H
#define R2_TESTS_CALL_KINDS_H

#include <mpi.h>
#include <mpi-ext.h>

#if OMPI_MAJOR_VERSION >= 5
#    define INIT(Name) MPI_##Name##_init
#else
#    define INIT(Name) MPIX_##Name##_init
#endif

enum { RANKS_MAX = 64, SHORT = 3, LONG = 60000 };

static int me, size;
static int *in, *out, counts[RANKS_MAX], displs[RANKS_MAX];

/* With n ints per rank. @return an error code */

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

#endif
