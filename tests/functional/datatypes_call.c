/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One collective call: buffers as images, expectation, the call itself, and the comparison.
 */
#include "datatypes.h"
#include "gpu_alloc.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD_BYTES       64
#define MAX_REPORTS       5
#define MAX_ELEMENT_BYTES 4096

char dt_last_call[512];

static atomic_uint reports;

static const char *const kind_names[DT_KIND_COUNT] = {
    "allreduce", "reduce_scatter", "reduce_scatter_block", "allgather", "allgatherv",
    "bcast",     "barrier"};

static bool reduces(const dt_call_t *call)
{
    return DT_ALLREDUCE == call->kind || DT_REDUCE_SCATTER == call->kind ||
           DT_REDUCE_SCATTER_BLOCK == call->kind;
}

void dt_call_describe(const dt_call_t *call, char *text, size_t bytes)
{
    int used = snprintf(text, bytes, "%s%s%s on %s (rank %d of %d)", call->nonblocking ? "i" : "",
                        kind_names[call->kind], call->in_place ? ", in place," : "", call->on->name,
                        call->on->rank, call->on->size);

    if (0 > used || bytes <= (size_t) used || DT_BARRIER == call->kind) {
        return;
    }
    if (reduces(call)) {
        snprintf(text + used, bytes - (size_t) used, " of %d x %s", call->count,
                 call->reduction->name);
    } else {
        snprintf(text + used, bytes - (size_t) used,
                 " of %llu units, class %d, send %s, recv %s, root %d",
                 (unsigned long long) call->units, (int) call->class, call->send_type.name,
                 call->recv_type.name, call->root);
    }
}

unsigned dt_fail(const dt_call_t *call, const char *text)
{
    char what[512];

    if (MAX_REPORTS > atomic_fetch_add(&reports, 1)) {
        dt_call_describe(call, what, sizeof(what));
        fprintf(stderr, "# %s: %s\n", what, text);
    }
    return 1;
}

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes > 0 ? bytes : 1);

    if (NULL == memory) {
        fprintf(stderr, "out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
        exit(2);
    }
    return memory;
}

/* Lowest and highest byte of `count` elements at `origin`, widened into *low_p and *high_p. */
static void span(const dt_type_t *type, ptrdiff_t origin, uint64_t count, ptrdiff_t *low_p,
                 ptrdiff_t *high_p)
{
    for (size_t r = 0; count > 0 && r < type->run_count; ++r) {
        ptrdiff_t first = origin + type->runs[r].disp;
        ptrdiff_t last = first + (ptrdiff_t) (count - 1) * type->extent;
        ptrdiff_t low = first < last ? first : last;
        ptrdiff_t high = (first < last ? last : first) + (ptrdiff_t) type->runs[r].bytes;

        *low_p = low < *low_p ? low : *low_p;
        *high_p = high > *high_p ? high : *high_p;
    }
}

static void image_create(dt_image_t *image, ptrdiff_t low, ptrdiff_t high, uint32_t salt)
{
    low -= GUARD_BYTES + (low % 64 + 64) % 64; /* keeps base as aligned as malloc's memory */
    image->bytes = (size_t) (high + GUARD_BYTES - low);
    image->memory = buffer_alloc(image->bytes);
    image->expected = allocate(image->bytes);
    image->checked = allocate(image->bytes);
    if (NULL == image->memory) {
        fprintf(stderr, "out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
        exit(2);
    }
    image->base = image->memory - low;
    buffer_origin(image->memory, image->base);
    for (size_t i = 0; i < image->bytes; ++i) {
        image->memory[i] = (char) ((i * 7 + salt) % 251 + 3);
    }
    memset(image->checked, 1, image->bytes);
}

/* From here on `expected` is written instead of memory. */
static void image_freeze(dt_image_t *image)
{
    memcpy(image->expected, image->memory, image->bytes);
}

static void image_free(dt_image_t *image)
{
    buffer_free(image->memory);
    free(image->expected);
    free(image->checked);
    memset(image, 0, sizeof(*image));
}

/* Writes one element from its packed form; `target` is memory, expected or, with NULL, checked. */
static void image_put(const dt_image_t *image, char *target, const dt_type_t *type,
                      ptrdiff_t origin, const char *packed, bool exact)
{
    char *base = target + (image->base - image->memory) + origin;

    for (size_t r = 0; r < type->run_count; ++r) {
        const dt_run_t *run = &type->runs[r];

        memcpy(base + run->disp, packed, run->bytes);
        if (exact && run->exact_bytes < run->bytes) {
            memset(image->checked + (base - target) + run->disp + run->exact_bytes, 0,
                   run->bytes - run->exact_bytes);
        }
        packed += run->bytes;
    }
}

static const char *image_difference(const dt_image_t *image, char *text, size_t bytes)
{
    if (0 == memcmp(image->memory, image->expected, image->bytes)) {
        return NULL;
    }
    for (size_t i = 0; i < image->bytes; ++i) {
        if (image->checked[i] && image->memory[i] != image->expected[i]) {
            snprintf(text, bytes, "byte %td is %02x, expected %02x",
                     &image->memory[i] - image->base, (unsigned char) image->memory[i],
                     (unsigned char) image->expected[i]);
            return text;
        }
    }
    return NULL;
}

/* Puts the data of `rank` at an origin: `count` elements of a stream of bytes. */
static void put_stream(const dt_call_t *call, const dt_image_t *image, char *target,
                       const dt_type_t *type, ptrdiff_t origin, int rank, uint64_t count)
{
    char packed[MAX_ELEMENT_BYTES];
    uint64_t at = 0;

    for (uint64_t e = 0; e < count; ++e) {
        for (size_t i = 0; i < type->bytes; ++i) {
            uint64_t hash = dt_hash(call->salt, (uint64_t) rank, at / 8);

            packed[i] = (char) (hash >> at % 8 * 8);
            ++at;
        }
        image_put(image, target, type, origin + (ptrdiff_t) e * type->extent, packed, false);
    }
}

/* Units that `rank` contributes. */
static uint64_t units_of(const dt_call_t *call, int rank)
{
    if (DT_ALLGATHERV != call->kind) {
        return call->units;
    }
    return call->units * (uint64_t) ((rank * 7 + (int) (call->salt % 3)) % 3);
}

/* The blocks of the ranks lie in reverse order with a gap of one element behind each. */
static void place_blocks(dt_call_t *call)
{
    int next = 0;

    call->counts = allocate((size_t) call->on->size * sizeof(int));
    call->displs = allocate((size_t) call->on->size * sizeof(int));
    for (int r = call->on->size - 1; r >= 0; --r) {
        call->counts[r] = (int) (units_of(call, r) / (uint64_t) call->recv_type.units);
        call->displs[r] = next;
        next += call->counts[r] + 1;
    }
    for (int r = 0; DT_ALLGATHER == call->kind && r < call->on->size; ++r) {
        call->displs[r] = r * call->counts[r];
    }
}

static void movement_types(dt_call_t *call)
{
    unsigned rank = (unsigned) call->on->rank;
    uint64_t columns = (call->units / 6 + 13) * (uint64_t) call->on->size;

    dt_type_make(&call->recv_type, call->class, call->plain ? UINT32_MAX : call->variant + rank * 5,
                 columns);
    dt_type_make(&call->send_type, call->class,
                 call->plain ? UINT32_MAX : call->variant * 3 + rank * 7 + 1, columns);
}

static void gather_prepare(dt_call_t *call)
{
    const dt_type_t *type = &call->recv_type;
    int own = call->on->rank;
    uint64_t count;
    ptrdiff_t low = 0, high = 0;

    place_blocks(call);
    for (int r = 0; r < call->on->size; ++r) {
        span(type, call->displs[r] * type->extent, (uint64_t) call->counts[r], &low, &high);
    }
    image_create(&call->recv, low, high, call->salt);
    if (call->in_place) {
        put_stream(call, &call->recv, call->recv.memory, type, call->displs[own] * type->extent,
                   own, (uint64_t) call->counts[own]);
    }
    image_freeze(&call->recv);
    for (int r = 0; r < call->on->size; ++r) {
        put_stream(call, &call->recv, call->recv.expected, type, call->displs[r] * type->extent, r,
                   (uint64_t) call->counts[r]);
    }
    low = high = 0;
    count = units_of(call, own) / (uint64_t) call->send_type.units;
    span(&call->send_type, 0, count, &low, &high);
    image_create(&call->send, low, high, call->salt + 1);
    put_stream(call, &call->send, call->send.memory, &call->send_type, 0, own, count);
    image_freeze(&call->send);
}

static void bcast_prepare(dt_call_t *call)
{
    const dt_type_t *type = &call->recv_type;
    uint64_t count = call->units / (uint64_t) type->units;
    ptrdiff_t low = 0, high = 0;

    span(type, 0, count, &low, &high);
    image_create(&call->recv, low, high, call->salt);
    if (call->on->rank == call->root) {
        put_stream(call, &call->recv, call->recv.memory, type, 0, call->root, count);
    }
    image_freeze(&call->recv);
    put_stream(call, &call->recv, call->recv.expected, type, 0, call->root, count);
}

/* Elements of the whole vector; *first_p, *length_p: those that this rank gets. */
static uint64_t reduction_layout(dt_call_t *call, uint64_t *first_p, uint64_t *length_p)
{
    uint64_t total = 0;

    if (DT_ALLREDUCE == call->kind) {
        *first_p = 0;
        *length_p = (uint64_t) call->count;
        return (uint64_t) call->count;
    }
    call->counts = allocate((size_t) call->on->size * sizeof(int));
    for (int r = 0; r < call->on->size; ++r) {
        call->counts[r] = DT_REDUCE_SCATTER_BLOCK == call->kind
                              ? call->count
                              : call->count * ((r * 5 + (int) (call->salt % 3)) % 3);
        if (r == call->on->rank) {
            *first_p = total;
            *length_p = (uint64_t) call->counts[r];
        }
        total += (uint64_t) call->counts[r];
    }
    return total;
}

static void reduction_value(const dt_call_t *call, int rank, uint64_t idx, char *packed)
{
    call->reduction->value(call->reduction, rank, idx + (uint64_t) call->salt * 65537u, packed);
}

static void reduction_put_own(const dt_call_t *call, dt_image_t *image, uint64_t total)
{
    const dt_type_t *type = call->reduction->type;
    char packed[MAX_ELEMENT_BYTES];

    for (uint64_t e = 0; e < total; ++e) {
        reduction_value(call, call->on->rank, e, packed);
        image_put(image, image->memory, type, (ptrdiff_t) e * type->extent, packed, false);
    }
}

static void reduction_expect(dt_call_t *call, uint64_t first, uint64_t length)
{
    const dt_reduction_t *reduction = call->reduction;
    const dt_type_t *type = reduction->type;
    char acc[MAX_ELEMENT_BYTES], x[MAX_ELEMENT_BYTES];

    for (uint64_t e = 0; e < length; ++e) {
        reduction_value(call, 0, first + e, acc);
        for (int r = 1; r < call->on->size; ++r) {
            reduction_value(call, r, first + e, x);
            reduction->fold(reduction, acc, x);
        }
        if (reduction->gaps) {
            char *element = call->recv.checked + (call->recv.base - call->recv.memory) +
                            (ptrdiff_t) e * type->extent;

            memset(element, 0, (size_t) type->extent);
            for (size_t r = 0; r < type->run_count; ++r) {
                memset(element + type->runs[r].disp, 1, type->runs[r].bytes);
            }
        }
        image_put(&call->recv, call->recv.expected, type, (ptrdiff_t) e * type->extent, acc, true);
    }
}

/* In place, what lies behind the result of a reduce_scatter is the implementation's. */
static void reduction_forget(dt_call_t *call, uint64_t length, uint64_t total)
{
    const dt_type_t *type = call->reduction->type;

    for (uint64_t e = length; e < total; ++e) {
        for (size_t r = 0; r < type->run_count; ++r) {
            memset(call->recv.checked + (call->recv.base - call->recv.memory) +
                       (ptrdiff_t) e * type->extent + type->runs[r].disp,
                   0, type->runs[r].bytes);
        }
    }
}

static void reduction_prepare(dt_call_t *call)
{
    const dt_type_t *type = call->reduction->type;
    uint64_t first = 0, length = 0;
    uint64_t total = reduction_layout(call, &first, &length);
    ptrdiff_t low = 0, high = 0;

    span(type, 0, call->in_place ? total : length, &low, &high);
    image_create(&call->recv, low, high, call->salt);
    low = high = 0;
    span(type, 0, total, &low, &high);
    image_create(&call->send, low, high, call->salt + 1);
    reduction_put_own(call, call->in_place ? &call->recv : &call->send, total);
    image_freeze(&call->recv);
    image_freeze(&call->send);
    reduction_expect(call, first, length);
    if (call->in_place) {
        reduction_forget(call, length, total);
    }
}

static int make_movement(dt_call_t *call, const void *send, void *recv)
{
    MPI_Datatype stype = call->send_type.handle, rtype = call->recv_type.handle;
    MPI_Comm comm = call->on->comm;
    int scount = (int) (units_of(call, call->on->rank) / (uint64_t) call->send_type.units);
    int count = (int) (call->units / (uint64_t) call->recv_type.units);

    if (DT_ALLGATHERV == call->kind) {
        return MPI_Allgatherv(send, scount, stype, recv, call->counts, call->displs, rtype, comm);
    }
    if (DT_ALLGATHER == call->kind) {
        return call->nonblocking
                   ? MPI_Iallgather(send, scount, stype, recv, count, rtype, comm, &call->request)
                   : MPI_Allgather(send, scount, stype, recv, count, rtype, comm);
    }
    return call->nonblocking ? MPI_Ibcast(recv, count, rtype, call->root, comm, &call->request)
                             : MPI_Bcast(recv, count, rtype, call->root, comm);
}

static int make_reduction(dt_call_t *call, const void *send, void *recv)
{
    MPI_Datatype type = call->reduction->type->handle;
    MPI_Op op = call->reduction->op;
    MPI_Comm comm = call->on->comm;

    if (DT_REDUCE_SCATTER == call->kind) {
        return MPI_Reduce_scatter(send, recv, call->counts, type, op, comm);
    }
    if (DT_REDUCE_SCATTER_BLOCK == call->kind) {
        return MPI_Reduce_scatter_block(send, recv, call->count, type, op, comm);
    }
    return call->nonblocking
               ? MPI_Iallreduce(send, recv, call->count, type, op, comm, &call->request)
               : MPI_Allreduce(send, recv, call->count, type, op, comm);
}

static int make(dt_call_t *call)
{
    const void *send = call->in_place ? MPI_IN_PLACE : call->send.base;

    if (DT_BARRIER == call->kind) {
        return call->nonblocking ? MPI_Ibarrier(call->on->comm, &call->request)
                                 : MPI_Barrier(call->on->comm);
    }
    return reduces(call) ? make_reduction(call, send, call->recv.base)
                         : make_movement(call, send, call->recv.base);
}

void dt_call_start(dt_call_t *call)
{
    call->request = MPI_REQUEST_NULL;
    if (DT_BARRIER != call->kind && !reduces(call)) {
        movement_types(call);
    }
    if (reduces(call)) {
        reduction_prepare(call);
    } else if (DT_BCAST == call->kind) {
        bcast_prepare(call);
    } else if (DT_BARRIER != call->kind) {
        gather_prepare(call);
    }
    dt_call_describe(call, dt_last_call, sizeof(dt_last_call));
    if (MPI_SUCCESS != make(call)) {
        dt_fail(call, "an error");
    }
    if (call->nonblocking) { /* a type may be freed while it is in use */
        for (int i = 0; i < 2; ++i) {
            dt_type_t *type = 0 == i ? &call->send_type : &call->recv_type;

            if (type->derived) {
                MPI_Type_free(&type->handle);
                type->derived = false;
            }
        }
    }
}

unsigned dt_call_check(dt_call_t *call)
{
    unsigned failures = 0;
    char text[128];
    char what[192];
    dt_image_t *const images[2] = {&call->recv, &call->send};
    static const char *const names[2] = {"receive buffer", "send buffer"};

    for (int i = 0; i < 2; ++i) {
        if (NULL != images[i]->memory && NULL != image_difference(images[i], text, sizeof(text))) {
            snprintf(what, sizeof(what), "%s: %s", names[i], text);
            failures += dt_fail(call, what);
        }
        image_free(images[i]);
    }
    dt_type_free(&call->send_type);
    dt_type_free(&call->recv_type);
    free(call->counts);
    free(call->displs);
    call->counts = call->displs = NULL;
    return failures;
}

unsigned dt_call_run(dt_call_t *call)
{
    dt_call_start(call);
    MPI_Wait(&call->request, MPI_STATUS_IGNORE);
    return dt_call_check(call);
}
