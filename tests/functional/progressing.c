/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What Open MPI has under way goes on while a process makes blocking collectives in which it never
 * waits, since it is always the last. Of three ranks 0 has sent a long message to 2, which has
 * to be asked for by its receiver, and calls collectives with 1, which hears of it when it is
 * there. Prints TAP.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define BYTES 1000000
#define CALLS 300 /* a handful do */
#define LATE  1e-3

static int me, wrong;
static unsigned char data[BYTES];
static MPI_Comm two;

static unsigned char value(int i)
{
    return (unsigned char) (i % 251);
}

static void call_allreduce(void)
{
    int one = 1, sum = 0;

    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, two);
    wrong += 2 != sum;
}

static void call_allreduce_of_floats(void)
{
    double half = 0.5, sum = 0;

    MPI_Allreduce(&half, &sum, 1, MPI_DOUBLE, MPI_SUM, two);
    wrong += 1.0 != sum;
}

static void call_bcast(void)
{
    int word = 0 == me ? 7 : 0;

    MPI_Bcast(&word, 1, MPI_INT, 0, two);
    wrong += 7 != word;
}

static void call_reduce(void)
{
    int one = 1, sum = -1;

    MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, 1, two); /* rank 0 does not wait */
    wrong += (1 == me ? 2 : -1) != sum;
}

static void call_barrier(void)
{
    MPI_Barrier(two);
}

/* Computes for so long: the other one is there before. */
static void be_late(void)
{
    const double begin = MPI_Wtime();

    while (MPI_Wtime() - begin < LATE) {
    }
}

static void first(void (*call)(void))
{
    MPI_Request sent;

    MPI_Isend(data, BYTES, MPI_BYTE, 2, 0, MPI_COMM_WORLD, &sent);
    for (int i = 0; i < CALLS; ++i) {
        be_late();
        call();
    }
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
}

static void second(void (*call)(void))
{
    MPI_Request told;
    int there = 0, calls = 0, word;

    MPI_Irecv(&word, 1, MPI_INT, 2, 1, MPI_COMM_WORLD, &told);
    for (int i = 0; i < CALLS; ++i) {
        calls += !there;
        call();
        if (!there) {
            MPI_Test(&told, &there, MPI_STATUS_IGNORE);
        }
    }
    printf("# it was there after %d of %d calls\n", calls, CALLS);
    if (!there) {
        ++wrong;
        MPI_Wait(&told, MPI_STATUS_IGNORE);
    }
}

static void third(void)
{
    MPI_Recv(data, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < BYTES; ++i) {
        wrong += data[i] != value(i);
    }
    MPI_Send(&(int){1}, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
}

static void run(void (*call)(void))
{
    for (int i = 0; i < BYTES; ++i) {
        data[i] = 0 == me ? value(i) : 0;
    }
    for (int i = 0; i < 20 && me < 2; ++i) {
        call(); /* all that is only done once */
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == me) {
        first(call);
    } else if (1 == me) {
        second(call);
    } else if (2 == me) {
        third();
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*call)(void);
    } cases[] = {{"allreduce", call_allreduce},
                 {"allreduce of floats", call_allreduce_of_floats},
                 {"bcast", call_bcast},
                 {"reduce", call_reduce},
                 {"barrier", call_barrier}};
    const int count = (int) (sizeof(cases) / sizeof(cases[0]));
    int size, all, failed = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (3 != size) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    MPI_Comm_split(MPI_COMM_WORLD, me < 2 ? 0 : MPI_UNDEFINED, me, &two);
    for (int i = 0; i < count; ++i) {
        wrong = 0;
        run(cases[i].call);
        MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        failed += 0 != all;
        if (0 == me) {
            printf("%sok %d - a message goes on beside calls of %s\n", 0 == all ? "" : "not ",
                   i + 1, cases[i].name);
        }
    }
    if (0 == me) {
        printf("1..%d\n", count);
    }
    if (MPI_COMM_NULL != two) {
        MPI_Comm_free(&two);
    }
    MPI_Finalize();
    return 0 == failed ? EXIT_SUCCESS : EXIT_FAILURE;
}
