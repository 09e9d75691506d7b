/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Processes that end while others go on (async_mpi_finalize): who stays gets all that was sent to
 * it. leave CASE; each rank says "rank R: right" or what is wrong, and "rank R: finalized" after
 * MPI_Finalize.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LATE_MS 700 /* who leaves at once would be gone long before */
#define ROUNDS  60  /* of SOME bytes: more than a receiver holds eager */
#define SOME    4000
#define LONG    3000000

static int me, size, wrong;
static unsigned char data[LONG];

static void late(void)
{
    struct timespec t = {0, LATE_MS * 1000000L};

    nanosleep(&t, NULL);
}

static unsigned char value(int round, int i)
{
    return (unsigned char) (round * 31 + i % 251);
}

static void fill(int round, int bytes)
{
    for (int i = 0; i < bytes; ++i) {
        data[i] = value(round, i);
    }
}

static void expect(int round, int bytes)
{
    for (int i = 0; i < bytes; ++i) {
        wrong += data[i] != value(round, i);
    }
    memset(data, 0xee, sizeof(data));
}

static void called(int rc)
{
    wrong += MPI_SUCCESS != rc;
}

/* The root is through as soon as its messages are copied; the others come late. */
static void bcasts(void)
{
    if (0 != me) {
        late();
    }
    for (int round = 0; round < ROUNDS; ++round) {
        fill(round, 0 == me ? SOME : 0);
        called(MPI_Bcast(data, SOME, MPI_BYTE, 0, MPI_COMM_WORLD));
        expect(round, SOME);
    }
}

/* Not copied: its call lasts until it is delivered, the acknowledgements are the others'. */
static void long_bcast(void)
{
    if (0 != me) {
        late();
    }
    fill(1, 0 == me ? LONG : 0);
    called(MPI_Bcast(data, LONG, MPI_BYTE, 0, MPI_COMM_WORLD));
    expect(1, LONG);
}

/* All but the root leave at once. */
static void gathers(void)
{
    static int all[64], mine;

    if (0 == me) {
        late();
    }
    for (int round = 0; round < ROUNDS; ++round) {
        mine = me + round;
        called(MPI_Gather(&mine, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD));
        for (int i = 0; 0 == me && i < size; ++i) {
            wrong += all[i] != i + round;
        }
    }
}

/* Rank 0 leaves, the others go on for a while without it. */
static void others(void)
{
    const int from = 1 + (me + size - 3) % (size - 1);
    int one = me, sum, peer;
    MPI_Comm rest;

    called(MPI_Comm_split(MPI_COMM_WORLD, 0 == me ? MPI_UNDEFINED : 1, me, &rest));
    called(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    wrong += sum != size * (size - 1) / 2;
    for (int round = 0; 0 != me && round < 3 * ROUNDS; ++round) {
        struct timespec t = {0, 10 * 1000000L};

        called(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, rest));
        wrong += sum != size * (size - 1) / 2;
        fill(round + me, SOME);
        peer = 1 + (me % (size - 1));
        called(MPI_Sendrecv_replace(data, SOME, MPI_BYTE, peer, 7, from, 7, MPI_COMM_WORLD,
                                    MPI_STATUS_IGNORE));
        expect(round + from, SOME);
        nanosleep(&t, NULL);
    }
    if (0 != me) {
        MPI_Comm_free(&rest);
    }
}

/* Rank 0 sends short messages, which are complete at once, and leaves. */
static void sends(void)
{
    if (0 == me) {
        for (int round = 0; round < ROUNDS; ++round) {
            for (int to = 1; to < size; ++to) {
                fill(round + to, SOME);
                called(MPI_Send(data, SOME, MPI_BYTE, to, round, MPI_COMM_WORLD));
            }
        }
        return;
    }
    late();
    for (int round = 0; round < ROUNDS; ++round) {
        called(MPI_Recv(data, SOME, MPI_BYTE, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        expect(round + me, SOME);
    }
}

/* Rank 1 dies before it takes what it was sent: the others end nevertheless. */
static void dead(void)
{
    called(MPI_Barrier(MPI_COMM_WORLD));
    if (1 == me) {
        kill(getpid(), SIGKILL);
    }
    fill(1, 0 == me ? SOME : 0);
    for (int round = 0; 0 == me && round < ROUNDS; ++round) {
        (void) MPI_Bcast(data, SOME, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
}

static pid_t stopped_pid;

/* Rank 1 is stopped, and woken only when rank 0 has ended. */
static void stopped(void)
{
    int pid = (int) getpid();

    called(MPI_Bcast(&pid, 1, MPI_INT, 1, MPI_COMM_WORLD));
    stopped_pid = (pid_t) pid;
    called(MPI_Barrier(MPI_COMM_WORLD));
    if (0 != me) {
        raise(SIGSTOP);
        return;
    }
    fill(1, SOME);
    called(MPI_Bcast(data, SOME, MPI_BYTE, 0, MPI_COMM_WORLD));
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {{"bcasts", bcasts}, {"long", long_bcast}, {"gathers", gathers}, {"others", others},
             {"sends", sends},   {"dead", dead},       {"stopped", stopped}};

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        if (argc > 1 && 0 == strcmp(argv[1], cases[i].name)) {
            cases[i].run();
        }
    }
    if (0 == wrong) {
        printf("rank %d: right\n", me);
    } else {
        printf("rank %d: %d wrong\n", me, wrong);
    }
    fflush(stdout);
    MPI_Finalize();
    printf("rank %d: finalized\n", me);
    fflush(stdout);
    if (0 != stopped_pid && 0 == me) {
        kill(stopped_pid, SIGCONT);
    }
    return 0 != wrong;
}
