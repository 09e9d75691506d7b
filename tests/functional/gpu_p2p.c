/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Point-to-point on buffers of gpu_alloc.h, in the ways that p2p.c has not: persistent and matched
 * receives, requests that are freed or cancelled, receives with holes that others fill, threads.
 * Every byte is checked. Output: TAP, from rank 0.
 */
#include <pthread.h>
#include <string.h>

#include "gpu_alloc.h"
#include "pattern.h"

#define LONGEST (4 << 20)
#define THREADS 3
#define TURNS   40

static int me, size, number;
static unsigned char *out, *in;

static int right_of(void)
{
    return (me + 1) % size;
}

static int left_of(void)
{
    return (me + size - 1) % size;
}

/* The same two requests again and again, with other bytes, in either order. */
static int persistent(int bytes)
{
    MPI_Request requests[2];
    int errors = 0;

    MPI_Send_init(out, bytes, MPI_BYTE, right_of(), 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(in, bytes, MPI_BYTE, left_of(), 1, MPI_COMM_WORLD, &requests[1]);
    for (int turn = 0; turn < 6; ++turn) {
        MPI_Status statuses[2];
        int count = 0;

        pattern_fill(out, me, turn, bytes);
        memset(in, 0xa5, (size_t) bytes);
        if (0 == turn % 2) {
            MPI_Startall(2, requests);
        } else {
            MPI_Start(&requests[1]);
            MPI_Start(&requests[0]);
        }
        MPI_Waitall(2, requests, statuses);
        MPI_Get_count(&statuses[1], MPI_BYTE, &count);
        errors += count != bytes || left_of() != statuses[1].MPI_SOURCE;
        errors += pattern_wrong(in, left_of(), turn, bytes) + pattern_wrong(out, me, turn, bytes);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    return errors;
}

/* Messages that were looked at before, blocking and not. */
static int matched(int bytes)
{
    MPI_Request request, sent;
    MPI_Message message;
    MPI_Status status;
    int errors = 0;

    for (int turn = 0; turn < 2; ++turn) {
        int count = 0;

        pattern_fill(out, me, turn, bytes);
        memset(in, 0xa5, (size_t) bytes + 1);
        MPI_Isend(out, bytes, MPI_BYTE, right_of(), turn, MPI_COMM_WORLD, &sent);
        MPI_Mprobe(MPI_ANY_SOURCE, turn, MPI_COMM_WORLD, &message, &status);
        if (0 == turn) {
            MPI_Mrecv(in, LONGEST, MPI_BYTE, &message, &status);
        } else {
            MPI_Imrecv(in, LONGEST, MPI_BYTE, &message, &request);
            MPI_Wait(&request, &status);
        }
        MPI_Wait(&sent, MPI_STATUS_IGNORE);
        MPI_Get_count(&status, MPI_BYTE, &count);
        errors += count != bytes || left_of() != status.MPI_SOURCE || turn != status.MPI_TAG;
        errors += pattern_wrong(in, left_of(), turn, bytes) || 0xa5 != in[bytes];
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return errors;
}

/* Even and odd places come by two receives, of which the second is complete first: neither touches
 * what the other one fills. */
static int interleaved(int pairs)
{
    MPI_Request requests[2], sent[2];
    MPI_Datatype type;
    int errors = 0, index;

    MPI_Type_vector(pairs, 1, 2, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    memset(in, 0xa5, (size_t) (2 * pairs));
    pattern_fill(out, me, 1, pairs);
    pattern_fill(out + pairs, me, 2, pairs);
    MPI_Irecv(in, 1, type, left_of(), 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in + 1, 1, type, left_of(), 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(out + pairs, pairs, MPI_BYTE, right_of(), 2, MPI_COMM_WORLD, &sent[1]);
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    errors += 1 != index;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Isend(out, pairs, MPI_BYTE, right_of(), 1, MPI_COMM_WORLD, &sent[0]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Waitall(2, sent, MPI_STATUSES_IGNORE);
    for (int i = 0; i < pairs; ++i) {
        errors +=
            in[2 * i] != pattern(left_of(), 1, i) || in[2 * i + 1] != pattern(left_of(), 2, i);
    }
    MPI_Type_free(&type);
    return errors;
}

/* The program gives a send away; a receive is cancelled, and one that is not comes to its end. */
static int freed_and_cancelled(int bytes)
{
    MPI_Request request;
    MPI_Status status;
    int errors = 0, cancelled = 0;

    pattern_fill(out, me, 3, bytes);
    memset(in, 0xa5, (size_t) bytes);
    MPI_Isend(out, bytes, MPI_BYTE, right_of(), 3, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    MPI_Irecv(in, bytes, MPI_BYTE, left_of(), 99, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    errors += !cancelled || 0xa5 != in[0];
    MPI_Recv(in, bytes, MPI_BYTE, left_of(), 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    errors += pattern_wrong(in, left_of(), 3, bytes);
    MPI_Barrier(MPI_COMM_WORLD); /* the sends have arrived: their buffers are ours again */
    return errors;
}

/* More than fits: an error, and nothing behind the buffer is touched. Short messages only: with
 * long ones pml/ob1 of 4.1 writes all of it, also into memory of the host, where btl/vader reads
 * memory of other processes. */
static int truncated(void)
{
    const int bytes = 100;
    MPI_Request sent, request;
    int errors = 0, class = 0, rc;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    memset(in, 0xa5, (size_t) bytes);
    MPI_Irecv(in, bytes / 2, MPI_BYTE, left_of(), 4, MPI_COMM_WORLD, &request);
    MPI_Isend(out, bytes, MPI_BYTE, right_of(), 4, MPI_COMM_WORLD, &sent);
    rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Error_class(rc, &class);
    errors += MPI_ERR_TRUNCATE != class || 0xa5 != in[bytes / 2];
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    return errors;
}

/* Messages that arrive while collectives run on such memory, and are waited for afterwards. */
static int beside_collectives(int bytes)
{
    MPI_Request requests[2];
    int errors = 0, *from = (int *) (void *) (out + LONGEST / 2),
        *to = (int *) (void *) (in + LONGEST / 2);

    for (int turn = 0; turn < TURNS; ++turn) {
        memset(in, 0xa5, (size_t) bytes);
        pattern_fill(out, me, turn, bytes);
        MPI_Irecv(in, bytes, MPI_BYTE, left_of(), turn, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, bytes, MPI_BYTE, right_of(), turn, MPI_COMM_WORLD, &requests[1]);
        for (int i = 0; i < 100; ++i) {
            from[i] = me + i * turn;
        }
        MPI_Allreduce(from, to, 100, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < 100; ++i) {
            errors += to[i] != size * (size - 1) / 2 + size * i * turn;
        }
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        errors += pattern_wrong(in, left_of(), turn, bytes);
    }
    return errors;
}

/* Open MPI's own collectives between two groups, which start requests of both kinds together. */
static int intercommunicator(int bytes)
{
    const int group = me % 2, others = group ? (size + 1) / 2 : size / 2;
    int counts[16], displs[16], errors = 0;
    MPI_Datatype types[16];
    MPI_Comm local, inter;

    MPI_Comm_split(MPI_COMM_WORLD, group, 0, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - group, 5, &inter);
    for (int i = 0; i < others; ++i) {
        counts[i] = bytes;
        displs[i] = i * bytes;
        types[i] = MPI_BYTE;
        pattern_fill(out + i * bytes, me, 2 * i + 1 - group, bytes);
    }
    memset(in, 0xa5, LONGEST);
    MPI_Alltoallw(out, counts, displs, types, in, counts, displs, types, inter);
    for (int i = 0; i < others; ++i) {
        errors += pattern_wrong(in + i * bytes, 2 * i + 1 - group, me, bytes);
    }
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
    return errors;
}

static MPI_Comm comms[THREADS];
static int thread_errors[THREADS];

/* Each on a communicator and a part of the buffers of its own. */
static void *thread(void *arg)
{
    const int index = (int) (size_t) arg, bytes = 30000;
    unsigned char *to = in + (long) index * bytes, *from = out + (long) index * bytes;

    for (int turn = 0; turn < TURNS; ++turn) {
        MPI_Request requests[2];
        const int length = 1 + turn * bytes / TURNS;

        pattern_fill(from, me, turn, length);
        MPI_Irecv(to, bytes, MPI_BYTE, left_of(), turn, comms[index], &requests[0]);
        MPI_Isend(from, length, MPI_BYTE, right_of(), turn, comms[index], &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        thread_errors[index] += pattern_wrong(to, left_of(), turn, length);
    }
    return NULL;
}

static int threads(void)
{
    pthread_t ids[THREADS];
    int errors = 0;

    for (int i = 0; i < THREADS; ++i) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        thread_errors[i] = 0;
    }
    for (int i = 0; i < THREADS; ++i) {
        pthread_create(&ids[i], NULL, thread, (void *) (size_t) i);
    }
    for (int i = 0; i < THREADS; ++i) {
        pthread_join(ids[i], NULL);
        errors += thread_errors[i];
        MPI_Comm_free(&comms[i]);
    }
    return errors;
}

/* On rank 1 the driver refuses the copies 1, 2, 4 and 5: of two receives, and of two sends, whose
 * messages then do not go. What follows is right. */
static int refused(void)
{
    const int bytes = 5000, peer = 1 - me;
    MPI_Request request;
    int errors = 0;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (0 == me) {
        for (int i = 0; i < 3; ++i) {
            pattern_fill(out, me, i, bytes);
            MPI_Send(out, bytes, MPI_BYTE, peer, i, MPI_COMM_WORLD);
        }
        MPI_Recv(in, bytes, MPI_BYTE, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        errors += pattern_wrong(in, peer, 5, bytes);
    } else {
        errors += MPI_SUCCESS ==
                  MPI_Recv(in, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Irecv(in, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &request);
        errors += MPI_SUCCESS == MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Recv(in, bytes, MPI_BYTE, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        errors += pattern_wrong(in, peer, 2, bytes);
        pattern_fill(out, me, 4, bytes);
        errors += MPI_SUCCESS == MPI_Send(out, bytes, MPI_BYTE, peer, 3, MPI_COMM_WORLD);
        errors += MPI_SUCCESS == MPI_Isend(out, bytes, MPI_BYTE, peer, 3, MPI_COMM_WORLD, &request);
        pattern_fill(out, me, 5, bytes);
        MPI_Send(out, bytes, MPI_BYTE, peer, 3, MPI_COMM_WORLD);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    return errors;
}

static int all(void)
{
    int errors = 0;

    for (int bytes = 100; bytes < LONGEST; bytes *= 100) {
        errors += pattern_verdict(++number, "persistent", persistent(bytes));
        errors += pattern_verdict(++number, "matched", matched(bytes));
        errors += pattern_verdict(++number, "interleaved", interleaved(bytes));
        errors += pattern_verdict(++number, "freed, cancelled", freed_and_cancelled(bytes));
    }
    errors += pattern_verdict(++number, "truncated", truncated());
    errors += pattern_verdict(++number, "beside collectives", beside_collectives(1000));
    errors += pattern_verdict(++number, "beside collectives", beside_collectives(100000));
    errors += pattern_verdict(++number, "between groups", intercommunicator(50000));
    return errors + pattern_verdict(++number, "threads", threads());
}

/* "refused": only that, by two ranks. */
int main(int argc, char **argv)
{
    int errors, provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    out = buffer_alloc(LONGEST + 1);
    in = buffer_alloc(LONGEST + 1);
    errors = argc > 1 ? pattern_verdict(++number, "refused", refused()) : all();
    if (0 == me) {
        printf("1..%d\n", number);
    }
    buffer_free(out);
    buffer_free(in);
    MPI_Finalize();
    return 0 == errors ? 0 : 1;
}
