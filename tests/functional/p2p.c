/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI point-to-point between all pairs: modes, storms, probes, wildcards, lengths around every
 * limit, derived datatypes, one-sided. Every byte is checked. Output: TAP, from rank 0.
 */
#include <string.h>

#include "gpu_alloc.h"
#include "pattern.h"

#define LONGEST (16 << 20)
#define STORM   200

static int me, size, number;
static unsigned char *out, *in;

/* The first that most ranks do with rank 0 is to receive: they must let it in and drive the
 * engine. */
static int receive_first(void)
{
    int errors = 0;

    if (0 != me) {
        MPI_Recv(in, 100, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return pattern_wrong(in, 0, 0, 100);
    }
    pattern_fill(out, me, 0, 100);
    for (int p = size - 1; p > 0; --p) {
        errors += MPI_SUCCESS != MPI_Send(out, 100, MPI_BYTE, p, 0, MPI_COMM_WORLD);
    }
    return errors;
}

/* Ring shift of every length, received from the left while the right gets ours. */
static int lengths(void)
{
    static const int at[] = {0,    1,     7,     64,    4095,  4096,   4097,  8100,
                             8128, 8191,  8192,  8193,  16384, 32768,  65471, 65472,
                             65535, 65536, 65537, 131072, 262144, 1 << 20, LONGEST - 1, LONGEST};
    int right = (me + 1) % size, left = (me + size - 1) % size, errors = 0;

    for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); ++i) {
        MPI_Status status;
        int count;

        pattern_fill(out, me, (int) i, at[i]);
        memset(in, 0xa5, (size_t) at[i] + 1);
        MPI_Sendrecv(out, at[i], MPI_BYTE, right, (int) i, in, LONGEST + 1, MPI_BYTE, left, (int) i,
                     MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        errors += count != at[i] || pattern_wrong(in, left, (int) i, at[i]) || 0xa5 != in[at[i]];
        memset(out, 0x5a, (size_t) at[i]); /* the buffer is ours again */
    }
    return errors;
}

/* Even ranks send in every mode to the next odd one. */
static int modes(int bytes)
{
    int errors = 0, peer = me ^ 1;
    char *attached = malloc((size_t) bytes + MPI_BSEND_OVERHEAD);

    if (0 == me % 2 && peer < size) {
        int unused;

        pattern_fill(out, me, 1, bytes);
        MPI_Send(out, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
        MPI_Ssend(out, bytes, MPI_BYTE, peer, 2, MPI_COMM_WORLD);
        MPI_Buffer_attach(attached, bytes + MPI_BSEND_OVERHEAD);
        MPI_Bsend(out, bytes, MPI_BYTE, peer, 3, MPI_COMM_WORLD);
        MPI_Buffer_detach(&attached, &unused);
        MPI_Recv(NULL, 0, MPI_BYTE, peer, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Rsend(out, bytes, MPI_BYTE, peer, 5, MPI_COMM_WORLD);
    } else if (1 == me % 2) {
        static const int tag[] = {1, 2, 3, 5};
        MPI_Request ready;

        for (int i = 0; i < 4; ++i) {
            memset(in, 0, (size_t) bytes);
            MPI_Irecv(in, bytes, MPI_BYTE, peer, tag[i], MPI_COMM_WORLD, &ready);
            if (3 == i) {
                MPI_Send(NULL, 0, MPI_BYTE, peer, 4, MPI_COMM_WORLD);
            }
            MPI_Wait(&ready, MPI_STATUS_IGNORE);
            errors += pattern_wrong(in, peer, 1, bytes);
        }
    }
    free(attached);
    return errors;
}

/* Everybody to everybody, many at a time, unexpected ones too; order per pair is kept. */
static int storm(void)
{
    MPI_Request *requests = malloc(sizeof(*requests) * (size_t) (2 * STORM * size));
    int used = 0, errors = 0;
    const int slot = LONGEST / (STORM * size);

    for (int p = 0; p < size; ++p) {
        for (int i = 0; i < STORM; ++i) {
            pattern_fill(out + (long) (p * STORM + i) * slot, me, i, (i * 997) % slot);
            MPI_Isend(out + (long) (p * STORM + i) * slot, (i * 997) % slot, MPI_BYTE, p, 9,
                      MPI_COMM_WORLD, &requests[used++]);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int p = 0; p < size; ++p) {
        for (int i = 0; i < STORM; ++i) {
            MPI_Irecv(in + (long) (p * STORM + i) * slot, slot, MPI_BYTE, p, 9, MPI_COMM_WORLD,
                      &requests[used++]);
        }
    }
    MPI_Waitall(used, requests, MPI_STATUSES_IGNORE);
    for (int p = 0; p < size; ++p) {
        for (int i = 0; i < STORM; ++i) {
            errors += pattern_wrong(in + (long) (p * STORM + i) * slot, p, i, (i * 997) % slot);
        }
    }
    free(requests);
    return errors;
}

/* Rank 0 takes whatever comes, by probe. */
static int wildcards(void)
{
    int errors = 0;

    if (0 != me) {
        for (int i = 0; i < 50; ++i) {
            pattern_fill(out, me, i, i * 1500);
            MPI_Send(out, i * 1500, MPI_BYTE, 0, i, MPI_COMM_WORLD);
        }
        return 0;
    }
    for (int i = 0; i < 50 * (size - 1); ++i) {
        MPI_Status status;
        int count;

        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        MPI_Recv(in, count, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
        errors += count != status.MPI_TAG * 1500 ||
                  pattern_wrong(in, status.MPI_SOURCE, status.MPI_TAG, count);
    }
    return errors;
}

/* A column of a matrix against contiguous memory, both ways round. */
static int datatypes(int rows)
{
    int right = (me + 1) % size, left = (me + size - 1) % size, errors = 0;
    int *matrix = (int *) (void *) out, *column = (int *) (void *) in;
    MPI_Datatype type;

    MPI_Type_vector(rows, 1, 3, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < 3 * rows; ++i) {
        matrix[i] = me * 1000003 + i;
    }
    MPI_Sendrecv(matrix, 1, type, right, 1, column, rows, MPI_INT, left, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < rows; ++i) {
        errors += column[i] != left * 1000003 + 3 * i;
    }
    memset(column, 0, sizeof(int) * 3 * (size_t) rows);
    MPI_Sendrecv(matrix, rows, MPI_INT, right, 2, column, 1, type, left, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < rows; ++i) {
        errors += column[3 * i] != left * 1000003 + i || (i < rows - 1 && 0 != column[3 * i + 1]);
    }
    MPI_Type_free(&type);
    return errors;
}

static int one_sided(void)
{
    const int bytes = 300000;
    int right = (me + 1) % size, left = (me + size - 1) % size, errors = 0, one = 1, total;
    unsigned char *window;
    MPI_Win win, counter_win;
    int *counter;

    MPI_Win_allocate(2 * bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &counter,
                     &counter_win);
    *counter = 0;
    pattern_fill(window, me, 1, bytes);
    pattern_fill(out, me, 2, bytes);
    MPI_Win_fence(0, win);
    MPI_Put(out, bytes, MPI_BYTE, right, bytes, bytes, MPI_BYTE, win);
    MPI_Get(in, bytes, MPI_BYTE, right, 0, bytes, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    errors += pattern_wrong(window + bytes, left, 2, bytes) + pattern_wrong(in, right, 1, bytes);
    MPI_Win_fence(0, counter_win);
    for (int i = 0; i < 20; ++i) {
        MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, counter_win);
    }
    MPI_Win_fence(0, counter_win);
    total = *counter;
    errors += total != (0 == me ? 20 * size : 0);
    MPI_Win_free(&win);
    MPI_Win_free(&counter_win);
    return errors;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1, errors = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    out = buffer_alloc(LONGEST + 1);
    in = buffer_alloc(LONGEST + 1);
    errors += pattern_verdict(++number, "receive first", receive_first());
    for (int i = 0; i < rounds; ++i) {
        errors += pattern_verdict(++number, "lengths", lengths());
        errors += pattern_verdict(++number, "modes, short", modes(100));
        errors += pattern_verdict(++number, "modes, long", modes(3 << 20));
        errors += pattern_verdict(++number, "storm", storm());
        errors += pattern_verdict(++number, "probes and wildcards", wildcards());
        errors += pattern_verdict(++number, "datatypes, short", datatypes(50));
        errors += pattern_verdict(++number, "datatypes, long", datatypes(400000));
        if (!buffer_is_gpus()) { /* Open MPI's own take none of such memory */
            errors += pattern_verdict(++number, "one-sided", one_sided());
        }
    }
    if (0 == me) {
        printf("1..%d\n", number);
    }
    buffer_free(out);
    buffer_free(in);
    MPI_Finalize();
    return 0 == errors ? 0 : 1;
}
