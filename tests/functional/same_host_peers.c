/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Short collectives of processes of one host while something happens to the last of them:
 *   same_host going              nothing
 *   same_host stopped            it is stopped three times for 0.3 s
 *   same_host computing          it computes while others send to it
 *   same_host killed             it is killed; the others have an error within 10 s
 *   same_host stopped-killed     it is stopped, and killed 0.5 s later
 * With "lanes" behind it no message went by mailboxes, with "some" it does not matter. With
 * "blocking" as third word calls are blocking, and go through a segment, not with "lanes".
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counted.h"
#include "strike.h"

#define LONGEST 20000 /* ints: also more than mailboxes take */
#define GOING_S 1.6
#define BURST   400

static int me, size;
static bool dies;   /* the last one: then nothing is long, and mailboxes take all */
static bool blocks; /* blocking calls, which need no messages where all share memory */
static int in[LONGEST], out[LONGEST];

/* The end of a call. @param rc of its start. */
static int end(int rc, MPI_Request *request)
{
    return MPI_SUCCESS == rc ? MPI_Wait(request, MPI_STATUS_IGNORE) : rc;
}

static int allreduce(int count)
{
    MPI_Request request;

    return blocks ? MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD)
                  : end(MPI_Iallreduce(in, out, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request),
                        &request);
}

static int bcast(int count, int root)
{
    MPI_Request request;

    return blocks ? MPI_Bcast(in, count, MPI_INT, root, MPI_COMM_WORLD)
                  : end(MPI_Ibcast(in, count, MPI_INT, root, MPI_COMM_WORLD, &request), &request);
}

static int allgather(const int *mine)
{
    MPI_Request request;

    return blocks ? MPI_Allgather(mine, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_WORLD)
                  : end(MPI_Iallgather(mine, 1, MPI_INT, out, 1, MPI_INT, MPI_COMM_WORLD, &request),
                        &request);
}

static int barrier(void)
{
    MPI_Request request;

    return blocks ? MPI_Barrier(MPI_COMM_WORLD) : end(MPI_Ibarrier(MPI_COMM_WORLD, &request),
                                                      &request);
}

/* Rank 0 says whether they go on. @return an error class; over_p is the same on all. */
static int sum(int count, int round, bool over, bool *over_p, int *wrong)
{
    int rc;

    for (int i = 0; i < count; ++i) {
        in[i] = me + round * i;
    }
    in[count] = over ? 1 : 0;
    rc = allreduce(count + 1);
    for (int i = 0; MPI_SUCCESS == rc && i < count; ++i) {
        *wrong += out[i] != size * (size - 1) / 2 + size * round * i;
    }
    *over_p = 0 != out[count];
    return rc;
}

static int spread(int count, int round, int *wrong)
{
    const int root = round % size;
    int rc;

    for (int i = 0; i < count; ++i) {
        in[i] = me == root ? round + i : -1;
    }
    rc = bcast(count, root);
    for (int i = 0; MPI_SUCCESS == rc && i < count; ++i) {
        *wrong += in[i] != round + i;
    }
    return rc;
}

static int collect(int round, int *wrong)
{
    const int mine = me * 7 + round;
    int rc = allgather(&mine);

    for (int i = 0; MPI_SUCCESS == rc && i < size; ++i) {
        *wrong += out[i] != i * 7 + round;
    }
    return rc;
}

/* Until rank 0 has had enough. @return the class of the first error. */
static int go_on(double until, int *rounds_p, int *wrong, double *newest_p)
{
    static const int counts[] = {1, 200, 1023, 1500, 5, LONGEST - 1};
    bool over = false;
    int rc = MPI_SUCCESS, round;

    for (round = 0; MPI_SUCCESS == rc && !over; ++round) {
        const int kind = round % 64 < 5 ? round % 64 : (63 == round % 64 ? 5 : 0);
        const int count = counts[dies ? 0 : kind];

        *newest_p = MPI_Wtime();
        rc = sum(count, round, 0 == me && MPI_Wtime() > until, &over, wrong);
        rc = MPI_SUCCESS == rc ? spread(count, round, wrong) : rc;
        rc = MPI_SUCCESS == rc ? collect(round, wrong) : rc;
        rc = MPI_SUCCESS == rc ? barrier() : rc;
    }
    *rounds_p = round;
    return rc;
}

/* More than mailboxes hold is sent to who does not look. */
static int burst(int *wrong)
{
    const double start = MPI_Wtime();
    int rc = MPI_SUCCESS;

    while (size - 1 == me && MPI_Wtime() - start < 0.8) {
    }
    for (int round = 0; MPI_SUCCESS == rc && round < BURST * size; round += size) {
        rc = spread(round % 3 ? 500 : 20, round, wrong);
    }
    return rc;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "going", *by = argc > 2 ? argv[2] : "mailboxes";
    int wrong = 0, rounds = 0, rc, failed;
    unsigned long long local;
    double newest = 0;

    blocks = argc > 3;
    dies = NULL != strstr(what, "killed");
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    if (size - 1 == me) {
        strike(what);
    }
    rc = 0 == strcmp(what, "computing") ? burst(&wrong) : MPI_SUCCESS;
    rc = MPI_SUCCESS == rc ? go_on(MPI_Wtime() + (dies ? 60 : GOING_S), &rounds, &wrong, &newest)
                           : rc;
    local = counted(blocks ? "coll_r2_local_collectives" : "coll_r2_local_messages");
    failed = 0 != wrong || (0 != strcmp(by, "some") && (0 == local) != (0 == strcmp(by, "lanes")));
    if (dies) {
        failed = failed || 0 != survived(me, rc, MPI_Wtime() - newest);
    } else {
        failed = failed || MPI_SUCCESS != rc;
        MPI_Finalize();
    }
    printf("rank %d: %s, %d rounds, %d wrong, %llu by %s\n", me, failed ? "failed" : "right",
           rounds, wrong, local, blocks ? "segment" : "mailboxes");
    fflush(stdout);
    _exit(failed);
}
