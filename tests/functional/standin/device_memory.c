/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Collectives on device memory, which only a component that knows it can read. Results are checked;
 * rank 0 prints how often each was called.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <mpi.h>

#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device_memory.h"

#define CALLS 3
#define COUNT 1000 /* elements */
#define MOST  16   /* ranks */

static int64_t *const device_in = (int64_t *) DEVICE_AT;
static int64_t *const device_out = (int64_t *) (DEVICE_AT + DEVICE_BYTES / 2);
static int64_t *const host_in = (int64_t *) DEVICE_HOST_AT;
static int64_t *const host_out = (int64_t *) (DEVICE_HOST_AT + DEVICE_BYTES / 2);
static int rank, size, failed;

static int map_device(void)
{
    const int fd = memfd_create("device", MFD_CLOEXEC);

    return fd >= 0 && 0 == ftruncate(fd, (off_t) DEVICE_BYTES) &&
           (void *) DEVICE_AT == mmap((void *) DEVICE_AT, DEVICE_BYTES, PROT_NONE,
                                      MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0) &&
           (void *) DEVICE_HOST_AT == mmap((void *) DEVICE_HOST_AT, DEVICE_BYTES,
                                           PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE,
                                           fd, 0);
}

static int64_t value(int of, int at)
{
    return 1000000 * (of + 1) + at;
}

static void fill(int count)
{
    for (int i = 0; i < count; ++i) {
        host_in[i] = value(rank, i);
        host_out[i] = -1;
    }
}

static void expect(const char *call, int at, int64_t got, int64_t wanted)
{
    if (got != wanted && 0 == failed++) {
        fprintf(stderr, "rank %d: %s: element %d is %ld, not %ld\n", rank, call, at, (long) got,
                (long) wanted);
    }
}

/* Sum over ranks 0 .. last. */
static int64_t sum(int last, int at)
{
    int64_t all = 0;

    for (int of = 0; of <= last; ++of) {
        all += value(of, at);
    }
    return all;
}

static void reductions(MPI_Comm comm, int root)
{
    fill(COUNT);
    MPI_Allreduce(device_in, device_out, COUNT, MPI_INT64_T, MPI_SUM, comm);
    for (int i = 0; i < COUNT; ++i) {
        expect("allreduce", i, host_out[i], sum(size - 1, i));
    }
    fill(COUNT);
    MPI_Scan(device_in, device_out, COUNT, MPI_INT64_T, MPI_SUM, comm);
    for (int i = 0; i < COUNT; ++i) {
        expect("scan", i, host_out[i], sum(rank, i));
    }
    fill(COUNT);
    MPI_Reduce(device_in, device_out, COUNT, MPI_INT64_T, MPI_SUM, root, comm);
    for (int i = 0; i < COUNT; ++i) {
        expect("reduce", i, host_out[i], rank == root ? sum(size - 1, i) : -1);
    }
}

static void movements(MPI_Comm comm, int root)
{
    fill(COUNT);
    MPI_Bcast(device_in, COUNT, MPI_INT64_T, root, comm);
    for (int i = 0; i < COUNT; ++i) {
        expect("bcast", i, host_in[i], value(root, i));
    }
    fill(COUNT * size);
    MPI_Allgather(device_in, COUNT, MPI_INT64_T, device_out, COUNT, MPI_INT64_T, comm);
    for (int i = 0; i < COUNT * size; ++i) {
        expect("allgather", i, host_out[i], value(i / COUNT, i % COUNT));
    }
    fill(COUNT * size);
    MPI_Alltoall(device_in, COUNT, MPI_INT64_T, device_out, COUNT, MPI_INT64_T, comm);
    for (int i = 0; i < COUNT * size; ++i) {
        expect("alltoall", i, host_out[i], value(i / COUNT, rank * COUNT + i % COUNT));
    }
}

int main(int argc, char **argv)
{
    MPI_Comm other;
    int all;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!map_device() || size > MOST) {
        fprintf(stderr,
                "rank %d: device memory cannot be mapped, or there are more than %d ranks\n", rank,
                MOST);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    for (int i = 0; i < CALLS; ++i) {
        reductions(0 == i % 2 ? MPI_COMM_WORLD : other, i % size);
        movements(0 == i % 2 ? other : MPI_COMM_WORLD, i % size);
    }
    MPI_Comm_free(&other);
    MPI_Reduce(&failed, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("%d calls of each, %d wrong elements\n", CALLS, all);
    }
    MPI_Finalize();
    return 0 == failed ? 0 : 1;
}
