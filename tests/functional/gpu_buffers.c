/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Preloaded: buffers of test programs (gpu_alloc.h) are memory of the stand-in for the CUDA driver,
 * and collectives and point-to-point get the addresses that the application of a GPU has.
 *
 * R2_TEST_GPU says of which kind: device, managed, pool, pinned, or mixed: any of these, or the
 * host's, another one for each buffer and rank. MPI_Finalize tells what the stand-in calls a
 * mistake of r2's.
 */
#include <mpi.h>
#include <mpi-ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda/api.h"
#include "fakecuda/fakecuda.h"
#include "gpu_alloc.h"
#include "job.h"

typedef enum kind { HOST, DEVICE, MANAGED, POOL, PINNED, KINDS, MIXED } kind_t;

typedef struct buffer {
    struct buffer *next;
    char *seen;        /* where the CPU may look */
    char *origin;      /* what the program gives to MPI, beside what lies within */
    CUdeviceptr given; /* what MPI gets for `seen` */
    size_t bytes;
    kind_t kind;
} buffer_t;

static buffer_t *buffers;
static kind_t kinds = HOST;
static unsigned drawn;

static void must(CUresult rc, const char *what)
{
    if (CUDA_SUCCESS != rc) {
        fprintf(stderr, "# %s: error %d\n", what, (int) rc);
        abort();
    }
}

static void start(void)
{
    static const char *const names[] = {"host",   "device", "managed", "pool",
                                        "pinned", "",       "mixed"};
    const char *wanted = getenv("R2_TEST_GPU");
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    CUcontext context;
    int devices;

    must(cuInit(0), "cuInit");
    must(cuDeviceGetCount(&devices), "cuDeviceGetCount");
    drawn = NULL == rank ? 0 : (unsigned) atoi(rank);
    must(cuDevicePrimaryCtxRetain(&context, (int) drawn % devices), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    for (int i = 0; NULL != wanted && i <= (int) MIXED; ++i) {
        kinds = 0 == strcmp(names[i], wanted) ? (kind_t) i : kinds;
    }
    if (HOST == kinds) {
        fprintf(stderr, "# R2_TEST_GPU: no such kind\n");
        abort();
    }
}

static kind_t draw(void)
{
    drawn = drawn * 1103515245u + 12345u;
    return MIXED == kinds ? (kind_t) ((drawn >> 16) % KINDS) : kinds;
}

static void take(buffer_t *buffer)
{
    void *memory = NULL;

    switch (buffer->kind) {
    case DEVICE:
        must(cuMemAlloc(&buffer->given, buffer->bytes), "cuMemAlloc");
        break;
    case POOL:
        must(cuMemAllocAsync(&buffer->given, buffer->bytes, NULL), "cuMemAllocAsync");
        must(cuCtxSynchronize(), "cuCtxSynchronize");
        break;
    case MANAGED:
        must(cuMemAllocManaged(&buffer->given, buffer->bytes, CU_MEM_ATTACH_GLOBAL),
             "cuMemAllocManaged");
        break;
    case PINNED:
        must(cuMemAllocHost(&memory, buffer->bytes), "cuMemAllocHost");
        buffer->given = (CUdeviceptr) memory;
        break;
    case HOST:
    case KINDS:
    case MIXED:
        buffer->given = (CUdeviceptr) malloc(buffer->bytes);
        break;
    }
    buffer->seen = DEVICE == buffer->kind || POOL == buffer->kind
                       ? fakecuda_look(buffer->given, buffer->bytes)
                       : (char *) buffer->given;
}

FAKECUDA_EXPORT void *gpu_alloc(size_t bytes);
FAKECUDA_EXPORT void gpu_free(void *memory);
FAKECUDA_EXPORT void gpu_origin(void *memory, void *origin);

void *gpu_alloc(size_t bytes)
{
    buffer_t *buffer = calloc(1, sizeof(*buffer));

    if (HOST == kinds) {
        start();
    }
    buffer->bytes = bytes > 0 ? bytes : 1;
    buffer->kind = draw();
    take(buffer);
    buffer->next = buffers;
    buffers = buffer;
    return buffer->seen;
}

void gpu_free(void *memory)
{
    buffer_t **at = &buffers, *buffer;

    while (NULL != memory && (*at)->seen != (char *) memory) {
        at = &(*at)->next;
    }
    if (NULL == memory) {
        return;
    }
    buffer = *at;
    *at = buffer->next;
    if (HOST == buffer->kind) {
        free(memory);
    } else if (PINNED == buffer->kind) {
        must(cuMemFreeHost(memory), "cuMemFreeHost");
    } else {
        must(cuMemFree(buffer->given), "cuMemFree");
    }
    free(buffer);
}

void gpu_origin(void *memory, void *origin)
{
    buffer_t *buffer = buffers;

    while (buffer->seen != (char *) memory) {
        buffer = buffer->next;
    }
    buffer->origin = origin;
}

/* The application's address for one at which the CPU may look. */
static void *given(const void *memory)
{
    const char *at = memory;

    for (const buffer_t *buffer = buffers; NULL != buffer; buffer = buffer->next) {
        if ((at >= buffer->seen && at < buffer->seen + buffer->bytes) || at == buffer->origin) {
            return (void *) (buffer->given + (CUdeviceptr) (at - buffer->seen));
        }
    }
    return (void *) (size_t) memory;
}

#define DEV(memory) given(memory)
#if OMPI_MAJOR_VERSION >= 5
#    define GPU_INIT(prefix, Name) prefix##MPI_##Name##_init
#else
#    define GPU_INIT(prefix, Name) prefix##MPIX_##Name##_init
#endif
/* A list in parentheses without them. */
#define GPU_BARE(...) __VA_ARGS__
#define GPU_CALL(Name, name, parameters, arguments)                                 \
    int MPI_##Name(GPU_BARE parameters)                                             \
    {                                                                               \
        return PMPI_##Name(GPU_BARE arguments);                                     \
    }                                                                               \
    int MPI_I##name(GPU_BARE parameters, MPI_Request *request)                      \
    {                                                                               \
        return PMPI_I##name(GPU_BARE arguments, request);                           \
    }                                                                               \
    int GPU_INIT(, Name)(GPU_BARE parameters, MPI_Info info, MPI_Request * request) \
    {                                                                               \
        return GPU_INIT(P, Name)(GPU_BARE arguments, info, request);                \
    }
#include "gpu_calls.def"

#define GPU_P2P(Name, parameters, arguments)    \
    int MPI_##Name(GPU_BARE parameters)         \
    {                                           \
        return PMPI_##Name(GPU_BARE arguments); \
    }
#include "gpu_p2p.def"

int MPI_Finalize(void)
{
    const uint64_t copies = fakecuda_counter("copies_h2d") + fakecuda_counter("copies_d2h");
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (0 == rank || 0 != fakecuda_counter("mistakes")) {
        printf("# rank %d: %d copies, %d mistakes %s\n# rank %d: %d launches\n", rank,
               (int) copies, (int) fakecuda_counter("mistakes"), fakecuda_mistake(), rank,
               (int) fakecuda_counter("launches"));
        fflush(stdout);
    }
    if (0 != fakecuda_counter("mistakes")) {
        printf("not ok - the driver was used well\n");
        fflush(stdout);
    }
    return PMPI_Finalize();
}
