/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The same reduction of floating-point numbers on the same communicator has the same bits each
 * time, and those it has on another communicator of the same processes. Prints TAP.
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST  3000
#define TIMES 40
#define RANKS 16

static int me, size;
static double in[MOST * RANKS], out[MOST * RANKS], first[MOST * RANKS];

typedef void (*call_t)(int count, MPI_Comm comm);

static void call_allreduce(int count, MPI_Comm comm)
{
    MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, comm);
}

static void call_reduce(int count, MPI_Comm comm)
{
    MPI_Reduce(in, out, count, MPI_DOUBLE, MPI_SUM, size - 1, comm);
}

static void call_scan(int count, MPI_Comm comm)
{
    MPI_Scan(in, out, count, MPI_DOUBLE, MPI_SUM, comm);
}

static void call_exscan(int count, MPI_Comm comm)
{
    MPI_Exscan(in, out, count, MPI_DOUBLE, MPI_SUM, comm);
}

static void call_reduce_scatter_block(int count, MPI_Comm comm)
{
    MPI_Reduce_scatter_block(in, out, count, MPI_DOUBLE, MPI_SUM, comm);
}

static void call_reduce_scatter(int count, MPI_Comm comm)
{
    int counts[RANKS];

    for (int i = 0; i < size; ++i) {
        counts[i] = count;
    }
    MPI_Reduce_scatter(in, out, counts, MPI_DOUBLE, MPI_SUM, comm);
}

/* Sums depend on their order. */
static void fill(void)
{
    srand(7 + (unsigned) me);
    for (int i = 0; i < MOST * size; ++i) {
        in[i] = (rand() - RAND_MAX / 2) / (1.0 + rand() % 1000);
    }
}

/* @return how many calls had other bits than the first one of all. */
static int differs(call_t call, int count, bool is_first)
{
    const size_t bytes = (size_t) count * sizeof(double);
    int wrong = 0;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < TIMES; ++i) {
        memset(out, 0, bytes);
        call(count, comm);
        if (is_first && 0 == i) {
            memcpy(first, out, bytes);
        }
        wrong += 0 != memcmp(first, out, bytes);
    }
    MPI_Comm_free(&comm);
    return wrong;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        call_t call;
    } rows[] = {{"allreduce", call_allreduce},
                {"reduce", call_reduce},
                {"scan", call_scan},
                {"exscan", call_exscan},
                {"reduce_scatter_block", call_reduce_scatter_block},
                {"reduce_scatter", call_reduce_scatter}};
    static const int counts[] = {1, 100, MOST};
    const int row_count = (int) (sizeof(rows) / sizeof(rows[0]));
    int failed = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > RANKS) {
        MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
    }
    fill();
    for (int i = 0; i < row_count; ++i) {
        int wrong = 0, all;

        for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); ++k) {
            wrong +=
                differs(rows[i].call, counts[k], true) + differs(rows[i].call, counts[k], false);
        }
        MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        failed += 0 != all;
        if (0 == me) {
            printf("%sok %d - %s has the same bits each time\n", 0 == all ? "" : "not ", i + 1,
                   rows[i].name);
        }
    }
    if (0 == me) {
        printf("1..%d\n", row_count);
    }
    MPI_Finalize();
    return 0 == failed ? EXIT_SUCCESS : EXIT_FAILURE;
}
