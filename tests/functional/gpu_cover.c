/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * gpu_cover FILE: makes the calls that FILE lists, one a line, each on memory of the host and on
 * that of a GPU of the stand-in: all bytes have to be the same, those that no call writes, too.
 *   form way place mixed kind type op class count
 * Rank 0 says "case N" before each, and all pause before case 4, when rails are broken; at the end
 * each rank says rank R: N cases, W wrong, M mistakes, T touches, C copies, L launches The
 * stand-in's device memory cannot be touched by the CPU: a touch ends the process, or is listed
 * with FAKECUDA_AUDIT.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "counted.h"
#include "fakecuda/api.h"
#include "fakecuda/fakecuda.h"
#include "gpu_cover.h"

enum { CASES_MAX = 4096, CHUNK = 2 << 20, PAUSE_CASE = 4, PAUSE_US = 300000 };

int cover_rank, cover_size;
MPI_Comm cover_comm;

/* A buffer on the host, and the same on a GPU, or on the host as well. */
typedef struct buffer {
    char *host, *found; /* found: a copy of what is at `at` */
    CUdeviceptr at;
    size_t bytes, room;
    const char *kind;
} buffer_t;

static const cover_case_t *current; /* for the operation of the user */

static void must(CUresult rc, const char *what)
{
    if (CUDA_SUCCESS != rc) {
        fprintf(stderr, "rank %d: %s: error %d\n", cover_rank, what, (int) rc);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}
#define OK(call) must(call, #call)

size_t cover_extent(const cover_case_t *what)
{
    return (size_t) what->units * what->unit_bytes;
}

size_t cover_bytes(const cover_case_t *what)
{
    return (size_t) (cover_size + 1) * (size_t) (what->count + 3) * cover_extent(what);
}

/* ---- datatypes and operations ---- */

static void sum_units(const cover_case_t *what, const char *in, char *inout, int at)
{
    if (MPI_INT == what->unit) {
        ((int32_t *) (void *) inout)[at] += ((const int32_t *) (const void *) in)[at];
    } else if (MPI_INT64_T == what->unit) {
        ((int64_t *) (void *) inout)[at] += ((const int64_t *) (const void *) in)[at];
    } else if (MPI_INT16_T == what->unit) {
        int16_t *to = (int16_t *) (void *) inout;

        to[at] = (int16_t) (to[at] + ((const int16_t *) (const void *) in)[at]);
    } else if (MPI_DOUBLE == what->unit) {
        ((double *) (void *) inout)[at] += ((const double *) (const void *) in)[at];
    } else if (MPI_FLOAT == what->unit) {
        ((float *) (void *) inout)[at] += ((const float *) (const void *) in)[at];
    } else {
        inout[at] = (char) (inout[at] + in[at]);
    }
}

static void user_sum(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void) type;
    for (int i = 0; i < *length; ++i) {
        for (int k = 0; k < current->used; ++k) {
            sum_units(current, in, inout, i * current->units + current->offsets[k]);
        }
    }
}

static void set_offsets(cover_case_t *what, int units, const int *offsets, int used)
{
    what->units = units;
    what->used = used;
    memcpy(what->offsets, offsets, (size_t) used * sizeof(*offsets));
}

/* plain; vector: equal blocks at equal distances; indexed: neither; spaced: gaps at the ends. */
static void set_class(cover_case_t *what)
{
    static const int vector[] = {0, 1, 3, 4, 6, 7}, indexed[] = {0, 3, 5, 6, 9, 10, 11};
    static const int spaced[] = {0, 1}, lengths[] = {1, 1, 2, 3}, displs[] = {0, 3, 5, 9};
    MPI_Datatype pair;

    if (0 == strcmp(what->class, "vector")) {
        MPI_Type_vector(3, 2, 3, what->unit, &what->dtype);
        set_offsets(what, 8, vector, 6);
    } else if (0 == strcmp(what->class, "indexed")) {
        MPI_Type_indexed(4, lengths, displs, what->unit, &what->dtype);
        set_offsets(what, 12, indexed, 7);
    } else if (0 == strcmp(what->class, "spaced")) {
        MPI_Type_contiguous(2, what->unit, &pair);
        MPI_Type_create_resized(pair, 0, (MPI_Aint) (3 * what->unit_bytes), &what->dtype);
        MPI_Type_free(&pair);
        set_offsets(what, 3, spaced, 2);
    } else {
        MPI_Type_contiguous(1, what->unit, &what->dtype);
        set_offsets(what, 1, spaced, 1);
    }
    MPI_Type_commit(&what->dtype);
}

static void set_op(cover_case_t *what)
{
    const int user = 0 == strcmp(what->op, "user") || 0 != strcmp(what->class, "plain");

    what->reduce = 0 == strcmp(what->op, "prod")  ? MPI_PROD
                   : 0 == strcmp(what->op, "max") ? MPI_MAX
                   : 0 == strcmp(what->op, "min") ? MPI_MIN
                                                  : MPI_SUM;
    what->own_op = user;
    if (user) {
        MPI_Op_create(user_sum, 1, &what->reduce);
    } else if (cover_reduces(what)) { /* predefined operations take predefined types */
        MPI_Type_free(&what->dtype);
        what->dtype = what->unit;
    }
}

static int read_case(cover_case_t *what, FILE *file, int index)
{
    char form[64];
    int unit_bytes;

    memset(what, 0, sizeof(*what));
    if (9 != fscanf(file, "%31s %15s %15s %15s %15s %15s %15s %15s %d", form, what->way,
                    what->place, what->mixed, what->kind, what->type, what->op, what->class,
                    &what->count)) {
        return 0;
    }
    memcpy(what->form, form, sizeof(what->form));
    what->index = index;
    what->unit = 0 == strcmp(what->type, "int")      ? MPI_INT
                 : 0 == strcmp(what->type, "double") ? MPI_DOUBLE
                 : 0 == strcmp(what->type, "float")  ? MPI_FLOAT
                 : 0 == strcmp(what->type, "short")  ? MPI_INT16_T
                 : 0 == strcmp(what->type, "long")   ? MPI_INT64_T
                                                     : MPI_INT8_T;
    MPI_Type_size(what->unit, &unit_bytes);
    what->unit_bytes = (size_t) unit_bytes;
    set_class(what);
    set_op(what);
    return 1;
}

/* ---- memory ---- */

static CUdeviceptr map_chunks(size_t bytes, int device)
{
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
    const CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;

    OK(cuMemAddressReserve(&at, bytes, 0, 0, 0));
    for (size_t done = 0; done < bytes; done += CHUNK) {
        OK(cuMemCreate(&handle, CHUNK, &prop, 0));
        OK(cuMemMap(at + done, CHUNK, 0, handle, 0));
        OK(cuMemRelease(handle));
    }
    OK(cuMemSetAccess(at, bytes, &access, 1));
    return at;
}

static void take(buffer_t *buffer, const char *kind, size_t bytes)
{
    void *memory = NULL;
    int device;

    buffer->bytes = bytes;
    buffer->room = (bytes + CHUNK - 1) / CHUNK * CHUNK;
    buffer->kind = kind;
    buffer->host = malloc(bytes);
    buffer->found = malloc(bytes);
    if (0 == strcmp(kind, "device")) {
        OK(cuMemAlloc(&buffer->at, bytes));
    } else if (0 == strcmp(kind, "managed")) {
        OK(cuMemAllocManaged(&buffer->at, bytes, CU_MEM_ATTACH_GLOBAL));
    } else if (0 == strcmp(kind, "pool")) {
        OK(cuMemAllocAsync(&buffer->at, bytes, NULL));
        OK(cuCtxSynchronize());
    } else if (0 == strcmp(kind, "chunks")) {
        OK(cuCtxGetDevice(&device));
        buffer->at = map_chunks(buffer->room, device);
    } else if (0 == strcmp(kind, "pinned")) {
        OK(cuMemAllocHost(&memory, bytes));
        buffer->at = (CUdeviceptr) memory;
    } else {
        memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
        buffer->at = (CUdeviceptr) memory;
        if (0 == strcmp(kind, "registered")) {
            OK(cuMemHostRegister(memory, (bytes + 4095) / 4096 * 4096, 0));
        }
    }
}

static void give_back(buffer_t *buffer)
{
    void *memory = (void *) (uintptr_t) buffer->at;

    if (0 == strcmp(buffer->kind, "chunks")) {
        OK(cuMemUnmap(buffer->at, buffer->room));
        OK(cuMemAddressFree(buffer->at, buffer->room));
    } else if (0 == strcmp(buffer->kind, "pinned")) {
        OK(cuMemFreeHost(memory));
    } else if (0 == strcmp(buffer->kind, "registered") || 0 == strcmp(buffer->kind, "host")) {
        if ('r' == buffer->kind[0]) {
            OK(cuMemHostUnregister(memory));
        }
        free(memory);
    } else {
        OK(cuMemFree(buffer->at));
    }
    free(buffer->host);
    free(buffer->found);
}

/* Copies by the driver, which knows all kinds but the host's own. */
static void move(buffer_t *buffer, char *host, int to_gpu)
{
    const CUdeviceptr other = (CUdeviceptr) (uintptr_t) host;

    if (0 == strcmp(buffer->kind, "host")) {
        memcpy(to_gpu ? (void *) (uintptr_t) buffer->at : host,
               to_gpu ? host : (void *) (uintptr_t) buffer->at, buffer->bytes);
    } else {
        OK(cuMemcpy(to_gpu ? buffer->at : other, to_gpu ? other : buffer->at, buffer->bytes));
        OK(cuCtxSynchronize());
    }
}

/* Small whole numbers: sums and products are exact in all types. */
static void fill(const cover_case_t *what, char *to, size_t bytes, int salt)
{
    for (size_t i = 0; i < bytes / what->unit_bytes; ++i) {
        const int value = 1 + (int) ((i * 7 + (size_t) (cover_rank * 3 + salt)) % 3);
        const float single = (float) value;
        const double twice = value;
        const int64_t whole = value; /* its first bytes are those of shorter ones */
        const void *from = MPI_FLOAT == what->unit    ? (const void *) &single
                           : MPI_DOUBLE == what->unit ? (const void *) &twice
                                                      : (const void *) &whole;

        memcpy(to + i * what->unit_bytes, from, what->unit_bytes);
    }
}

/* ---- cases ---- */

static const char *kind_of(const cover_case_t *what, int is_in)
{
    if ((is_in && 0 == strcmp(what->mixed, "send-on-host")) ||
        (!is_in && 0 == strcmp(what->mixed, "receive-on-host")) ||
        (cover_rank % 2 && 0 == strcmp(what->mixed, "odd-on-host"))) {
        return "host";
    }
    return what->kind;
}

static int differs(buffer_t *buffer)
{
    move(buffer, buffer->found, 0);
    return 0 != memcmp(buffer->host, buffer->found, buffer->bytes);
}

/* @return 1: it was wrong here. */
static int run(const cover_case_t *what, MPI_Comm ring)
{
    const int in_place = 0 == strcmp(what->place, "in-place") && cover_takes_in_place(what);
    buffer_t in, out;
    int wrong;

    current = what;
    take(&in, kind_of(what, 1), cover_bytes(what));
    take(&out, kind_of(what, 0), cover_bytes(what));
    fill(what, in.host, in.bytes, what->index);
    fill(what, out.host, out.bytes, what->index + 1);
    move(&in, in.host, 1);
    move(&out, out.host, 1);
    wrong = MPI_SUCCESS != cover_call(what, in_place ? MPI_IN_PLACE : in.host, out.host, ring);
    wrong |= MPI_SUCCESS != cover_call(what, in_place ? MPI_IN_PLACE : (void *) (uintptr_t) in.at,
                                       (void *) (uintptr_t) out.at, ring);
    wrong |= differs(&in);
    wrong |= differs(&out);
    if (wrong) {
        printf("not ok - rank %d, case %d: %s %s %s %s %s %s %s %s %d\n", cover_rank, what->index,
               what->form, what->way, what->place, what->mixed, what->kind, what->type, what->op,
               what->class, what->count);
    }
    give_back(&in);
    give_back(&out);
    return wrong;
}

static void end_case(cover_case_t *what)
{
    if (what->own_op) {
        MPI_Op_free(&what->reduce);
    }
    if (what->dtype != what->unit) {
        MPI_Type_free(&what->dtype);
    }
}

static void start_gpu(void)
{
    CUcontext context;
    int devices;

    OK(cuInit(0));
    OK(cuDeviceGetCount(&devices));
    OK(cuDevicePrimaryCtxRetain(&context, cover_rank % devices));
    OK(cuCtxSetCurrent(context));
}

int main(int argc, char **argv)
{
    static const int periodic[] = {1};
    int cases = 0, wrong = 0;
    cover_case_t what;
    MPI_Comm ring;
    FILE *file;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &cover_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &cover_size);
    cover_comm = MPI_COMM_WORLD;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &cover_size, periodic, 0, &ring);
    start_gpu();
    file = argc > 1 ? fopen(argv[1], "r") : NULL;
    while (NULL != file && cases < CASES_MAX && read_case(&what, file, cases)) {
        if (0 == cover_rank) {
            printf("case %d\n", cases);
            fflush(stdout);
        }
        if (PAUSE_CASE == cases) { /* now rails break */
            usleep(PAUSE_US);
        }
        wrong += run(&what, ring);
        end_case(&what);
        ++cases;
    }
    MPI_Comm_free(&ring);
    printf("# rank %d: %llu messages for NICs to read, %llu bytes put\n", cover_rank,
           counted("coll_r2_gpu_messages"), counted("coll_r2_gpu_placed_bytes"));
    MPI_Finalize();
    printf("rank %d: %d cases, %d wrong, %d mistakes, %d touches, %d copies, %d launches\n%s",
           cover_rank, cases, wrong, (int) fakecuda_counter("mistakes"),
           (int) (fakecuda_counter("cpu_touches") + fakecuda_counter("early_touches")),
           (int) (fakecuda_counter("copies_h2d") + fakecuda_counter("copies_d2h")),
           (int) fakecuda_counter("launches"), fakecuda_mistake());
    return 0 == wrong && cases > 0 ? 0 : 1;
}
