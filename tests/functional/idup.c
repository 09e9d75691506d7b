/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI_Comm_idup() beside other calls on the same communicator, and on an intercommunicator:
 * blocking collectives, which each rank begins at another time, and nonblocking ones of the form of
 * those by which Open MPI makes context ids, many at a time. Exact checks. Prints TAP.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if OMPI_MAJOR_VERSION >= 5
#    define INIT(Name) MPI_##Name##_init
#else
#    include <mpi-ext.h>
#    define INIT(Name) MPIX_##Name##_init
#endif

#define ROUNDS 100
#define MANY   8
#define LONG_S 4

static int me, size, wrong;

static void check(bool right)
{
    wrong += !right;
}

static int most(int call)
{
    return size - 1 + 1000 * call;
}

static void be_late(int number)
{
    if (0 == (me + number) % 3) {
        usleep(300);
    }
}

static void blocking_calls(int round)
{
    for (int i = 0; i < 1 + round % 7; ++i) {
        const int mine = me + 1000 * i;
        int max = -1;

        be_late(round + i);
        MPI_Allreduce(&mine, &max, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        check(most(i) == max);
    }
}

/* Who receives progresses what is under way, who sends does not. */
static void progress_some(int round)
{
    const int other = me ^ 1;
    int word = round;

    if (other < size && me < other) {
        MPI_Send(&word, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
    } else if (other < size) {
        MPI_Recv(&word, 1, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    check(round == word);
}

/* From rank 0, by calls of the form of those that make ids; each rank describes it in its way. */
static void get_word(int round)
{
    MPI_Request requests[2];
    MPI_Datatype one;
    int word = 0 == me ? round : -1;
    const float mine = (float) me;
    float max = -1;

    MPI_Type_contiguous(1, MPI_INT, &one);
    MPI_Type_commit(&one);
    MPI_Ibcast(&word, 1, 0 == me % 2 ? MPI_INT : one, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Iallreduce(&mine, &max, 1, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD, &requests[1]);
    check(MPI_SUCCESS == MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    check(round == word && (float) (size - 1) == max);
    MPI_Type_free(&one);
}

static void persistent_call(void)
{
    MPI_Request request;
    int max = -1;

    INIT(Allreduce)(&me, &max, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    check(MPI_SUCCESS == MPI_Wait(&request, MPI_STATUS_IGNORE));
    check(most(0) == max);
    MPI_Request_free(&request);
}

/* @param others ranks whose words are summed */
static void use(MPI_Comm comm, int others)
{
    int one = 1, sum = 0;

    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    check(others == sum);
    MPI_Comm_free(&comm);
}

static void duplicate(int round)
{
    MPI_Request request;
    MPI_Comm comm;

    be_late(round);
    MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
    progress_some(round);
    get_word(round);
    persistent_call();
    blocking_calls(round);
    check(MPI_SUCCESS == MPI_Wait(&request, MPI_STATUS_IGNORE));
    use(comm, size);
}

/* Of intercommunicators: calls in the group of this side, and the exchange of both sides. */
static void duplicate_inter(MPI_Comm inter, int round)
{
    const int side = me % 2;
    const int others = (size + side) / 2;
    MPI_Request request;
    MPI_Comm comm;

    be_late(round);
    MPI_Comm_idup(inter, &comm, &request);
    for (int i = 0; i < 1 + round % 7; ++i) {
        const int mine = me + 1000 * i;
        int sum = 0;

        be_late(round + i);
        MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, inter);
        check((others - side) * others + 1000 * i * others == sum);
    }
    check(MPI_SUCCESS == MPI_Wait(&request, MPI_STATUS_IGNORE));
    use(comm, others);
}

/* Ranks with even numbers on one side, with odd ones on the other. */
static void duplicate_between_groups(void)
{
    MPI_Comm local, inter;

    MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - me % 2, 0, &inter);
    for (int round = 0; round < ROUNDS; ++round) {
        duplicate_inter(inter, round);
    }
    if (1 == me) {
        sleep(LONG_S); /* the broadcast of the other side has not begun: that is no mismatch */
    }
    duplicate_inter(inter, 0);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
}

/* All are under way at once. One word comes from rank 0. */
static void nonblocking_calls(int round)
{
    MPI_Request requests[MANY + 1];
    int mine[MANY], max[MANY], word = 0 == me ? round : -1;

    for (int i = 0; i < MANY; ++i) {
        mine[i] = me + 1000 * i;
        max[i] = -1;
        be_late(round + i);
        MPI_Iallreduce(&mine[i], &max[i], 1, MPI_INT, 0 == i % 2 ? MPI_MAX : MPI_MIN,
                       MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Ibcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[MANY]);
    blocking_calls(round);
    check(MPI_SUCCESS == MPI_Waitall(MANY + 1, requests, MPI_STATUSES_IGNORE));
    check(round == word);
    for (int i = 0; i < MANY; ++i) {
        check((0 == i % 2 ? most(i) : 1000 * i) == max[i]);
    }
}

static bool is_right(void)
{
    int all = wrong;

    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return 0 == all;
}

/* @return 1: all were right, on all ranks */
static int told(int number, const char *what)
{
    const bool right = is_right();

    if (0 == me) {
        printf("%sok %d - %s\n", right ? "" : "not ", number, what);
        fflush(stdout);
    }
    wrong = 0;
    return right;
}

int main(int argc, char **argv)
{
    int right;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < ROUNDS; ++round) {
        duplicate(round);
    }
    right = told(1, "duplicated beside blocking calls");
    for (int round = 0; round < ROUNDS / 4; ++round) {
        nonblocking_calls(round);
    }
    right += told(2, "many small calls at a time");
    duplicate_between_groups();
    right += told(3, "an intercommunicator beside blocking calls");
    if (0 == me) {
        printf("1..3\n");
    }
    MPI_Finalize();
    return 3 == right ? EXIT_SUCCESS : EXIT_FAILURE;
}
