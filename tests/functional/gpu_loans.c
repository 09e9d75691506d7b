/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Collectives on memory of GPUs within a host, and what copies of the driver a byte of payload
 * takes: bytes off a GPU, onto one, and from GPU to GPU, in all processes. All data are checked.
 *
 * gpu_loans BYTES: buffers are allocated anew for each call, so what was lent is freed meanwhile.
 */
#include <mpi.h>

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int (*alloc_fn_t)(unsigned long long *at_p, size_t bytes);
typedef int (*free_fn_t)(unsigned long long at);
typedef int (*copy_fn_t)(unsigned long long to, const void *from, size_t bytes, void *stream);
typedef int (*back_fn_t)(void *to, unsigned long long from, size_t bytes);
typedef uint64_t (*counter_fn_t)(const char *name);

typedef struct gpu {
    alloc_fn_t alloc;
    free_fn_t free;
    copy_fn_t to_device; /* in the default stream */
    back_fn_t to_host;
    counter_fn_t counter;
} gpu_t;

static gpu_t gpu;
static int rank, size;
static size_t bytes;

static void must(int rc, const char *what)
{
    if (0 != rc) {
        fprintf(stderr, "rank %d: %s: error %d\n", rank, what, rc);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}

static void *function(void *library, const char *name)
{
    void *found = dlsym(library, name);

    must(NULL == found, name);
    return found;
}

static void open_gpu(void)
{
    int (*init)(unsigned);
    int (*create)(void **ctx_p, unsigned flags, int device);
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;

    must(NULL == library, "libcuda.so.1");
    *(void **) &init = function(library, "cuInit");
    *(void **) &create = function(library, "cuCtxCreate_v2");
    *(void **) &gpu.alloc = function(library, "cuMemAlloc_v2");
    *(void **) &gpu.free = function(library, "cuMemFree_v2");
    *(void **) &gpu.to_device = function(library, "cuMemcpyHtoDAsync_v2");
    *(void **) &gpu.to_host = function(library, "cuMemcpyDtoH_v2");
    *(void **) &gpu.counter = function(library, "fakecuda_counter");
    must(init(0), "cuInit");
    must(create(&context, 0, 0), "cuCtxCreate");
}

static unsigned value(int owner, size_t i, unsigned round)
{
    return (unsigned) owner * 1000003u + (unsigned) i * 7u + round * 65537u;
}

static unsigned long long buffer(size_t length)
{
    unsigned long long at = 0;

    must(gpu.alloc(&at, length), "cuMemAlloc");
    return at;
}

/* Our part of what is sent, with the next value of each round. */
static void fill(unsigned long long at, unsigned *host, unsigned round)
{
    for (size_t i = 0; i < bytes / sizeof(*host); ++i) {
        host[i] = value(rank, i, round);
    }
    must(gpu.to_device(at, host, bytes, NULL), "cuMemcpyHtoDAsync");
}

typedef struct call {
    const char *name;
    int (*make)(void *in, void *out);
    size_t parts; /* of the result */
    unsigned (*expected)(size_t part, size_t i, unsigned round);
} call_t;

static int bcast(void *in, void *out)
{
    return MPI_Bcast(0 == rank ? in : out, (int) (bytes / 4), MPI_UNSIGNED, 0, MPI_COMM_WORLD);
}

static unsigned of_root(size_t part, size_t i, unsigned round)
{
    (void) part;
    return value(0, i, round);
}

static int allgather(void *in, void *out)
{
    const int count = (int) (bytes / 4);

    return MPI_Allgather(in, count, MPI_UNSIGNED, out, count, MPI_UNSIGNED, MPI_COMM_WORLD);
}

static unsigned of_part(size_t part, size_t i, unsigned round)
{
    return value((int) part, i, round);
}

static int alltoall(void *in, void *out)
{
    const int count = (int) (bytes / 4) / size;

    return MPI_Alltoall(in, count, MPI_UNSIGNED, out, count, MPI_UNSIGNED, MPI_COMM_WORLD);
}

static unsigned of_all(size_t part, size_t i, unsigned round)
{
    const size_t block = bytes / 4 / (size_t) size;

    (void) part;
    return value((int) (i / block), (size_t) rank * block + i % block, round);
}

static int allreduce(void *in, void *out)
{
    return MPI_Allreduce(in, out, (int) (bytes / 4), MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
}

static unsigned of_sum(size_t part, size_t i, unsigned round)
{
    unsigned sum = 0;

    (void) part;
    for (int r = 0; r < size; ++r) {
        sum += value(r, i, round);
    }
    return sum;
}

static const call_t calls[] = {{"bcast", bcast, 1, of_root},
                               {"allgather", allgather, 0, of_part},
                               {"alltoall", alltoall, 1, of_all},
                               {"allreduce", allreduce, 1, of_sum}};

static long check(const call_t *call, unsigned long long out, unsigned *host, unsigned round)
{
    const size_t parts = 0 == call->parts ? (size_t) size : call->parts, count = bytes / 4;
    long wrong = 0;

    if (bcast == call->make && 0 == rank) {
        return 0;
    }
    must(gpu.to_host(host, out, parts * bytes), "cuMemcpyDtoH");
    for (size_t i = 0; i < parts * count; ++i) {
        wrong += host[i] != call->expected(i / count, i % count, round);
    }
    return wrong;
}

static const char *const counters[] = {"bytes_d2h", "bytes_h2d", "bytes_d2d"};

/* Of the second of two calls, without what this program copies. */
static long report(const call_t *call, unsigned *host, unsigned round)
{
    unsigned long long in = buffer(bytes), out = buffer(bytes * (size_t) size), used[3], sums[3];
    long wrong;

    fill(in, host, round);
    for (int c = 0; c < 3; ++c) {
        used[c] = gpu.counter(counters[c]);
    }
    must(call->make((void *) (uintptr_t) in, (void *) (uintptr_t) out), call->name);
    for (int c = 0; c < 3; ++c) {
        used[c] = gpu.counter(counters[c]) - used[c];
    }
    wrong = check(call, out, host, round);
    MPI_Reduce(used, sums, 3, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (0 == rank && round % 2 == 1) {
        printf("%s: %.2f off a GPU, %.2f onto one, %.2f between\n", call->name,
               (double) sums[0] / (double) bytes, (double) sums[1] / (double) bytes,
               (double) sums[2] / (double) bytes);
    }
    must(gpu.free(in) | gpu.free(out), "cuMemFree");
    return wrong;
}

int main(int argc, char **argv)
{
    unsigned *host;
    long wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    bytes -= bytes % (4 * (size_t) size);
    host = malloc(bytes * (size_t) size + 1);
    must(NULL == host || 0 == bytes, "memory");
    open_gpu();
    for (unsigned round = 0; round < 8; ++round) {
        wrong += report(&calls[round / 2], host, round);
    }
    printf("rank %d: %ld wrong, %llu opened, %llu mistakes\n", rank, wrong,
           (unsigned long long) gpu.counter("ipc_opens"),
           (unsigned long long) gpu.counter("mistakes"));
    free(host);
    MPI_Finalize();
    return 0 == wrong ? 0 : 1;
}
