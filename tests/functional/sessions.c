/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI sessions (Open MPI 5.0 and later) before, beside, after and without MPI_Init.
 * Usage: sessions alone|before|beside|after|again; prints what each rank did.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#if OMPI_MAJOR_VERSION >= 5

static int wrong;

/* Sums with known results: short, long, nonblocking, on a communicator and on a part of it. */
static void use(MPI_Comm comm, const char *what)
{
    enum { COUNT = 20000 };
    static int in[COUNT], out[COUNT];
    int rank, size, sum = -1;
    MPI_Comm half;
    MPI_Request request;

    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < COUNT; ++i) {
        in[i] = rank + i;
    }
    MPI_Iallreduce(in, out, COUNT, MPI_INT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < COUNT; ++i) {
        wrong += out[i] != size * i + size * (size - 1) / 2;
    }
    MPI_Comm_split(comm, rank % 2, rank, &half);
    MPI_Comm_size(half, &size);
    MPI_Allreduce(&size, &sum, 1, MPI_INT, MPI_SUM, half);
    wrong += sum != size * size;
    MPI_Comm_free(&half);
    MPI_Barrier(comm);
    if (0 == rank) {
        printf("# %s: done\n", what);
    }
}

static void open_session(MPI_Session *session, MPI_Comm *comm, const char *tag)
{
    MPI_Group group;

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session);
    MPI_Group_from_session_pset(*session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, comm);
    MPI_Group_free(&group);
    use(*comm, tag);
}

static void close_session(MPI_Session *session, MPI_Comm *comm)
{
    MPI_Comm_free(comm);
    MPI_Session_finalize(session);
}

int main(int argc, char **argv)
{
    const char *order = argc > 1 ? argv[1] : "";
    const int again = 0 == strcmp(order, "again");
    MPI_Session session;
    MPI_Comm comm;

    if (0 == strcmp(order, "alone") || again) {
        open_session(&session, &comm, "a session");
        close_session(&session, &comm);
    }
    if (again) {
        open_session(&session, &comm, "another session");
        close_session(&session, &comm);
        MPI_Init(NULL, NULL);
        use(MPI_COMM_WORLD, "world");
        MPI_Finalize();
    } else if (0 == strcmp(order, "before")) {
        open_session(&session, &comm, "a session");
        MPI_Init(NULL, NULL);
        use(MPI_COMM_WORLD, "world");
        use(comm, "the session's communicator");
        MPI_Finalize();
        use(comm, "the session's communicator after MPI_Finalize");
        close_session(&session, &comm);
    } else if (0 == strcmp(order, "beside")) {
        MPI_Init(NULL, NULL);
        open_session(&session, &comm, "a session");
        use(MPI_COMM_WORLD, "world");
        close_session(&session, &comm);
        use(MPI_COMM_WORLD, "world");
        MPI_Finalize();
    } else if (0 == strcmp(order, "after")) {
        MPI_Init(NULL, NULL);
        use(MPI_COMM_WORLD, "world");
        MPI_Finalize();
        open_session(&session, &comm, "a session");
        close_session(&session, &comm);
    }
    printf("%d wrong\n", wrong);
    return 0 != wrong;
}

#else

int main(void)
{
    puts("this Open MPI has no sessions");
    return 77;
}

#endif
