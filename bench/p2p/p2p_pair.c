/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Two ranks: latency of 8-byte messages, throughput of long ones, as a line of numbers from rank 0.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCHES    20
#define PINGS      200 /* round trips of a batch */
#define LONG_BYTES (4 << 20)
#define WINDOW     4  /* long messages under way */
#define ROUNDS     10 /* of windows */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

/* @return half a round trip, us: the median of batches. */
static double latency_us(int me)
{
    double batches[BATCHES], start;
    char word[8] = {0};

    for (int b = 0; b < BATCHES; ++b) {
        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        for (int i = 0; i < PINGS; ++i) {
            if (0 == me) {
                MPI_Send(word, sizeof(word), MPI_BYTE, 1, 1, MPI_COMM_WORLD);
            }
            MPI_Recv(word, sizeof(word), MPI_BYTE, 1 - me, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (1 == me) {
                MPI_Send(word, sizeof(word), MPI_BYTE, 0, 1, MPI_COMM_WORLD);
            }
        }
        batches[b] = (MPI_Wtime() - start) * 1e6 / PINGS / 2;
    }
    qsort(batches, BATCHES, sizeof(batches[0]), by_value);
    return batches[BATCHES / 2];
}

/* @return 10^6 bytes per second, from rank 0 to rank 1; the first window is not counted. */
static double throughput(int me)
{
    char *data = calloc(WINDOW, LONG_BYTES);
    MPI_Request requests[WINDOW];
    double start = 0;

    if (NULL == data) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int round = 0; round <= ROUNDS; ++round) {
        if (1 == round) {
            MPI_Barrier(MPI_COMM_WORLD);
            start = MPI_Wtime();
        }
        for (int i = 0; i < WINDOW; ++i) {
            char *at = data + (size_t) i * LONG_BYTES;

            if (0 == me) {
                MPI_Isend(at, LONG_BYTES, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[i]);
            } else {
                MPI_Irecv(at, LONG_BYTES, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &requests[i]);
            }
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    free(data);
    return (double) ROUNDS * WINDOW * LONG_BYTES / (MPI_Wtime() - start) / 1e6;
}

int main(int argc, char **argv)
{
    int me, size;
    double us, mb;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (2 != size) {
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    us = latency_us(me);
    mb = throughput(me);
    if (0 == me) {
        printf("p2p %.2f %.2f\n", us, mb);
    }
    MPI_Finalize();
    return 0;
}
