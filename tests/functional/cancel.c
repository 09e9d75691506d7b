/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Point-to-point requests that are cancelled, freed while under way, or outlive their communicator.
 * Two ranks. Checks what MPI says of them; prints one line per status, so that two stacks can be
 * compared.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 4000000, NOBODY_SENDS = 77, REQUESTS = 6 };
enum { LATE = 1, WORD, MATCHED, AFTER, SYNCHRONOUS, FREED, FORGOTTEN, DROPPED };

static int me, other, failures;
static char *out, *in;

static void expect(bool holds, const char *what, int length)
{
    if (!holds) {
        ++failures;
        printf("%d: %s, %d bytes: wrong\n", me, what, length);
    }
}

/* A status is all that there is to see of a cancelled request. @return whether it was cancelled. */
static bool tell(const char *what, int length, const MPI_Status *status)
{
    int cancelled = -1, count = -1;

    MPI_Test_cancelled(status, &cancelled);
    if (cancelled) {
        printf("%d: %s, %d bytes: cancelled\n", me, what, length);
        return true;
    }
    MPI_Get_count(status, MPI_BYTE, &count);
    printf("%d: %s, %d bytes: %d from %d, tag %d\n", me, what, length, count, status->MPI_SOURCE,
           status->MPI_TAG);
    return false;
}

static void fill(int length, int value)
{
    memset(out, value, (size_t) length);
    memset(in, 0, (size_t) length);
}

static void expect_data(const char *what, int length, int value)
{
    int wrong = 0;

    for (int i = 0; i < length; ++i) {
        wrong += (char) value != in[i];
    }
    expect(0 == wrong, what, length);
}

/* Receives that nobody sends to: of any kind, all at once, cancelled in another order than
 * posted. */
static void unmatched(int length)
{
    MPI_Request requests[REQUESTS], persistent;
    MPI_Status statuses[REQUESTS], status;

    for (int i = 0; i < REQUESTS; ++i) {
        MPI_Irecv(in, length, MPI_BYTE, 0 == i % 3 ? MPI_ANY_SOURCE : other,
                  0 == i % 2 ? MPI_ANY_TAG : NOBODY_SENDS, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < REQUESTS; ++i) {
        MPI_Cancel(&requests[i * 5 % REQUESTS]);
    }
    MPI_Waitall(REQUESTS, requests, statuses);
    for (int i = 0; i < REQUESTS; ++i) {
        expect(tell("unmatched", length, &statuses[i]), "unmatched", length);
    }
    MPI_Recv_init(in, length, MPI_BYTE, other, NOBODY_SENDS, MPI_COMM_WORLD, &persistent);
    for (int i = 0; i < 3; ++i) {
        MPI_Start(&persistent);
        MPI_Cancel(&persistent);
        MPI_Wait(&persistent, &status);
        expect(tell("persistent", length, &status), "persistent", length);
    }
    MPI_Request_free(&persistent);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A send is cancelled before there is a receive: it arrives, or it is cancelled, and never both or
 * neither. */
static void unreceived(int length)
{
    MPI_Request request;
    MPI_Status status;
    int cancelled;

    fill(length, 1);
    if (0 == me) {
        MPI_Isend(out, length, MPI_BYTE, other, LATE, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &cancelled);
        printf("%d: send, %d bytes: cancelled %d\n", me, length, cancelled);
        MPI_Send(&cancelled, 1, MPI_INT, other, WORD, MPI_COMM_WORLD);
        return;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Irecv(in, length, MPI_BYTE, other, LATE, MPI_COMM_WORLD, &request);
    MPI_Recv(&cancelled, 1, MPI_INT, other, WORD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (cancelled) {
        MPI_Cancel(&request);
    }
    MPI_Wait(&request, &status);
    expect((0 != cancelled) == tell("late receive", length, &status), "late receive", length);
    expect_data("late receive", length, cancelled ? 0 : 1);
}

/* Too late to cancel: messages do not overtake each other, so the one before `AFTER` has found its
 * receive. */
static void matched(int length)
{
    MPI_Request request;
    MPI_Status status;
    int word = 0;

    fill(length, 2);
    if (0 == me) {
        MPI_Isend(out, length, MPI_BYTE, other, MATCHED, MPI_COMM_WORLD, &request);
        MPI_Send(&word, 1, MPI_INT, other, AFTER, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return;
    }
    MPI_Irecv(in, length, MPI_BYTE, other, MATCHED, MPI_COMM_WORLD, &request);
    MPI_Recv(&word, 1, MPI_INT, other, AFTER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    expect(!tell("matched", length, &status), "matched", length);
    expect_data("matched", length, 2);
}

/* A persistent receive that is cancelled between messages that it takes. */
static void synchronous(int length)
{
    MPI_Request request;
    MPI_Status status;

    fill(length, 3);
    if (0 == me) {
        MPI_Ssend_init(out, length, MPI_BYTE, other, SYNCHRONOUS, MPI_COMM_WORLD, &request);
        for (int i = 0; i < 2; ++i) {
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Start(&request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Request_free(&request);
        return;
    }
    MPI_Recv_init(in, length, MPI_BYTE, other, SYNCHRONOUS, MPI_COMM_WORLD, &request);
    for (int i = 0; i < 2; ++i) {
        MPI_Start(&request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        expect(tell("before the message", length, &status), "before the message", length);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Start(&request);
        MPI_Wait(&request, &status);
        expect(!tell("the message", length, &status), "the message", length);
        expect_data("the message", length, 3);
    }
    MPI_Request_free(&request);
}

/* A communicator that is freed, and a request that is, with messages under way in both
 * directions. */
static void freed(int length)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Comm dup;

    fill(length, 4 + me);
    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    MPI_Irecv(in, length, MPI_BYTE, other, FREED, dup, &requests[0]);
    MPI_Isend(out, length, MPI_BYTE, other, FREED, dup, &requests[1]);
    MPI_Comm_free(&dup);
    MPI_Waitall(2, requests, statuses);
    expect(!tell("freed communicator", length, &statuses[0]), "freed communicator", length);
    expect_data("freed communicator", length, 4 + other);
    fill(length, 6 + me);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Irecv(in, length, MPI_BYTE, other, FORGOTTEN, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, length, MPI_BYTE, other, FORGOTTEN, MPI_COMM_WORLD, &requests[1]);
    MPI_Request_free(&requests[1]);
    MPI_Wait(&requests[0], &statuses[0]);
    expect(!tell("forgotten send", length, &statuses[0]), "forgotten send", length);
    expect_data("forgotten send", length, 6 + other);
    MPI_Barrier(MPI_COMM_WORLD); /* what was forgotten has been sent */
}

/* A receive that was cancelled and freed does not take the message of the next one. */
static void dropped(int length)
{
    MPI_Request request;
    MPI_Status status;

    fill(length, 8);
    MPI_Irecv(out, length, MPI_BYTE, MPI_ANY_SOURCE, DROPPED, MPI_COMM_SELF, &request);
    MPI_Cancel(&request);
    MPI_Request_free(&request);
    if (1 == me) {
        MPI_Irecv(out, length, MPI_BYTE, other, DROPPED, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Request_free(&request);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == me) {
        MPI_Send(out, length, MPI_BYTE, other, DROPPED, MPI_COMM_WORLD);
    } else {
        MPI_Recv(in, length, MPI_BYTE, other, DROPPED, MPI_COMM_WORLD, &status);
        expect(!tell("after a dropped one", length, &status), "after a dropped one", length);
        expect_data("after a dropped one", length, 8);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    static const int lengths[] = {0, 100, 20000, LONGEST};
    int size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (2 != size) {
        printf("2 ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    other = 1 - me;
    out = malloc(LONGEST);
    in = malloc(LONGEST);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i) {
        unmatched(lengths[i]);
        unreceived(lengths[i]);
        matched(lengths[i]);
        synchronous(lengths[i]);
        freed(lengths[i]);
        dropped(lengths[i]);
    }
    free(out);
    free(in);
    MPI_Finalize();
    return 0 == failures ? 0 : 1;
}
