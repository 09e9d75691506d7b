/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Payloads: values, shapes of buffers, expected results.
 */
#include "r2_config.h"

#include "payload_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "plan/kinds.h"
#include "r2/prng.h"

static const uint64_t type_bytes[TYPE_COUNT] = {
    [TYPE_I64] = 8, [TYPE_F64] = 8, [TYPE_MATRIX] = 16, [TYPE_BYTES3] = 3};

uint64_t payload_mix(uint64_t a, uint64_t b)
{
    r2_prng_t prng = {a ^ (b * 0xd6e8feb86659fd93ull)};

    return r2_prng_u64(&prng);
}

uint64_t payload_hash(uint64_t hash, const void *memory, size_t bytes)
{
    const uint8_t *at = memory;
    uint64_t word;

    for (; bytes >= sizeof(word); bytes -= sizeof(word), at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        hash = (hash ^ word) * 0x100000001b3ull;
        hash ^= hash >> 31;
    }
    for (; bytes > 0; --bytes, ++at) {
        hash = (hash ^ *at) * 0x100000001b3ull;
    }
    return hash;
}

static bool has_blocks(r2_coll_kind_t kind)
{
    return R2_COLL_ALLGATHERV == kind || R2_COLL_REDUCE_SCATTER == kind;
}

static bool is_gather(r2_coll_kind_t kind)
{
    return R2_COLL_ALLGATHER == kind || R2_COLL_ALLGATHERV == kind;
}

/** Kinds of payload_kinds.c. */
static bool is_other(r2_coll_kind_t kind)
{
    return kind > R2_COLL_BARRIER;
}

static bool is_scatter(r2_coll_kind_t kind)
{
    return R2_COLL_REDUCE_SCATTER == kind || R2_COLL_REDUCE_SCATTER_BLOCK == kind;
}

bool payload_call_init(payload_call_t *call, const scenario_step_t *step, const uint32_t *host_of,
                       int32_t size, uint64_t salt)
{
    memset(call, 0, sizeof(*call));
    call->step = step;
    call->size = size;
    call->salt = salt;
    call->element_bytes = type_bytes[step->type];
    if (R2_OK != payload_hosts_init(&call->hosts, host_of, size) || !payload_edges_init(call)) {
        payload_call_fini(call);
        return false;
    }
    if (!has_blocks(step->coll)) {
        return true;
    }
    call->counts = calloc((size_t) size, sizeof(*call->counts));
    call->displs = calloc((size_t) size, sizeof(*call->displs));
    if (NULL == call->counts || NULL == call->displs) {
        payload_call_fini(call);
        return false;
    }
    for (int32_t r = 0; r < size; ++r) {
        uint64_t h = payload_mix(salt, (uint64_t) r);

        /* some ranks have nothing, the others up to twice the count */
        call->counts[r] = 0 == h % 5 ? 0 : (h >> 8) % (2 * step->count + 1);
    }
    if (0 == payload_mix(salt, 77) % 2) { /* blocks in reverse order with gaps of one element */
        uint64_t at = 0;

        for (int32_t r = size; r-- > 0;) {
            call->displs[r] = at;
            at += call->counts[r] + 1;
        }
    } else {
        free(call->displs);
        call->displs = NULL;
    }
    return true;
}

void payload_call_fini(payload_call_t *call)
{
    for (int32_t r = 0; NULL != call->interpreted && r < call->size; ++r) {
        free(call->interpreted[r]);
    }
    free(call->interpreted);
    payload_edges_fini(call);
    r2_topology_fini(&call->hosts);
    free(call->reduced);
    free(call->counts);
    free(call->displs);
    memset(call, 0, sizeof(*call));
}

/* Elements of block r, and of everything before it in rank order. */
static uint64_t block_count(const payload_call_t *call, int32_t r)
{
    return NULL == call->counts ? call->step->count : call->counts[r];
}

static uint64_t block_start(const payload_call_t *call, int32_t r)
{
    uint64_t start = 0;

    for (int32_t i = 0; i < r; ++i) {
        start += block_count(call, i);
    }
    return start;
}

static uint64_t gather_place(const payload_call_t *call, int32_t r)
{
    return NULL == call->displs ? block_start(call, r) : call->displs[r];
}

static uint64_t gather_extent(const payload_call_t *call)
{
    uint64_t extent = 0;

    for (int32_t r = 0; r < call->size; ++r) {
        extent = r2_max(extent, gather_place(call, r) + block_count(call, r));
    }
    return extent;
}

payload_shape_t payload_shape(const payload_call_t *call, int32_t rank)
{
    const scenario_step_t *step = call->step;
    uint64_t in = step->count, out = step->count;

    if (R2_COLL_BARRIER == step->coll) {
        in = out = 0;
    } else if (R2_COLL_BCAST == step->coll) {
        in = 0;
    } else if (is_gather(step->coll)) {
        in = block_count(call, rank);
        out = gather_extent(call);
    } else if (is_scatter(step->coll)) {
        in = block_start(call, call->size);
        out = step->in_place ? in : block_count(call, rank);
    } else if (is_other(step->coll)) {
        const payload_shape_t shape = payload_kind_shape(call, rank);

        in = shape.in_bytes;
        out = shape.out_bytes;
    }
    if (payload_in_place(call, rank)) {
        in = 0;
    }
    return (payload_shape_t){in * call->element_bytes, out * call->element_bytes};
}

/* ---- values ---- */

static void put_element(const payload_call_t *call, int32_t rank, uint64_t index, uint8_t *at)
{
    uint64_t h =
        payload_mix(call->salt + (uint64_t) (uint32_t) rank * 0x9e3779b97f4a7c15ull, index);
    double value = ldexp((double) (int64_t) h, (int) (h % 30) - 80);
    uint64_t words[2] = {h, h * 0x2545f4914f6cdd1dull};

    switch (call->step->type) {
    case TYPE_I64:
    case TYPE_MATRIX:
    case TYPE_BYTES3:
        memcpy(at, words, call->element_bytes);
        break;
    case TYPE_F64:
        memcpy(at, &value, sizeof(value));
        break;
    case TYPE_COUNT:
        break;
    }
}

void payload_put(const payload_call_t *call, int32_t rank, uint64_t first, uint64_t count,
                 uint8_t *at)
{
    for (uint64_t i = 0; i < count; ++i) {
        put_element(call, rank, first + i, at + i * call->element_bytes);
    }
}

static void reduce_i64(void *arg, const void *in, void *inout, size_t count)
{
    const uint64_t *a = in;
    uint64_t *b = inout;

    (void) arg;
    for (size_t i = 0; i < count; ++i) {
        b[i] = a[i] + b[i];
    }
}

static void reduce_f64(void *arg, const void *in, void *inout, size_t count)
{
    const double *a = in;
    double *b = inout;

    (void) arg;
    for (size_t i = 0; i < count; ++i) {
        b[i] = a[i] + b[i];
    }
}

static uint64_t user_reductions;

uint64_t payload_user_reductions(void)
{
    return user_reductions;
}

/* Plays an operation of the user, which the service thread must not run. */
static void reduce_matrix(void *arg, const void *in, void *inout, size_t count)
{
    const uint32_t *a = in;
    uint32_t *b = inout;

    (void) arg;
    ++user_reductions;
    for (size_t i = 0; i < count; ++i, a += 4, b += 4) {
        uint32_t c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3],
                         a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};

        memcpy(b, c, sizeof(c));
    }
}

static const r2_reduce_fn_t reduce_fns[TYPE_COUNT] = {
    [TYPE_I64] = reduce_i64, [TYPE_F64] = reduce_f64, [TYPE_MATRIX] = reduce_matrix};

void payload_reduce(const payload_call_t *call, const uint8_t *in, uint8_t *inout, uint64_t count)
{
    reduce_fns[call->step->type](NULL, in, inout, count);
}

void payload_args(const payload_call_t *call, int32_t rank, void *in, void *out,
                  r2_coll_args_t *args_p)
{
    static const payload_edges_t none = {.send_count = 0};
    const scenario_step_t *step = call->step;
    const payload_edges_t *edges = NULL == call->edges ? &none : &call->edges[rank];
    const bool in_place = payload_in_place(call, rank);

    *args_p = (r2_coll_args_t){
        .kind = step->coll,
        .root = step->root,
        .in = in_place ? NULL : in,
        .out = out,
        .in_place = in_place,
        .blocking = !step->nonblocking,
        .count = step->count,
        .counts = call->counts,
        .displs = R2_COLL_ALLGATHERV == step->coll ? call->displs : NULL,
        .sends = edges->sends,
        .send_count = edges->send_count,
        .recvs = edges->recvs,
        .recv_count = edges->recv_count,
        .element_bytes = payload_by_edges(step->coll) ? 1 : call->element_bytes,
        .reduce = reduce_fns[step->type],
        .any_thread = TYPE_MATRIX != step->type,
        .commutative = TYPE_MATRIX != step->type,
        .exact = TYPE_F64 != step->type,
        .parts = step->parts,
    };
}

void payload_fill(const payload_call_t *call, int32_t rank, uint8_t *in, uint8_t *out)
{
    const scenario_step_t *step = call->step;
    payload_shape_t shape = payload_shape(call, rank);
    uint8_t *input = payload_in_place(call, rank) ? out : in;

    memset(out, PAYLOAD_POISON, shape.out_bytes);
    if (R2_COLL_BARRIER == step->coll) {
        return;
    }
    if (R2_COLL_BCAST == step->coll) {
        if (rank == step->root) {
            payload_put(call, rank, 0, step->count, out);
        }
        return;
    }
    if (is_other(step->coll)) {
        payload_put(call, rank, 0, payload_kind_shape(call, rank).in_bytes,
                    input + payload_kind_place(call, rank) * call->element_bytes);
    } else if (is_gather(step->coll)) {
        uint64_t place = step->in_place ? gather_place(call, rank) : 0;

        payload_put(call, rank, 0, block_count(call, rank), input + place * call->element_bytes);
    } else if (is_scatter(step->coll)) {
        payload_put(call, rank, 0, block_start(call, call->size), input);
    } else {
        payload_put(call, rank, 0, step->count, input);
    }
}

/* ---- expected results ---- */

/* Elements of the reduced vector, multiplied or added in rank order. */
static bool make_reduced(payload_call_t *call)
{
    uint64_t count =
        is_scatter(call->step->coll) ? block_start(call, call->size) : call->step->count;
    size_t bytes = count * call->element_bytes;
    uint8_t *next = malloc(bytes + 1);

    call->reduced = malloc(bytes + 1);
    if (NULL == next || NULL == call->reduced) {
        free(next);
        return false;
    }
    payload_put(call, call->size - 1, 0, count, call->reduced);
    for (int32_t r = call->size - 1; r-- > 0;) {
        payload_put(call, r, 0, count, next);
        reduce_fns[call->step->type](NULL, next, call->reduced, count);
    }
    free(next);
    return true;
}

static bool make_interpreted(payload_call_t *call, const r2_params_t *params)
{
    uint8_t **in = calloc((size_t) call->size, sizeof(*in));
    bool ok = NULL != in;

    call->interpreted = calloc((size_t) call->size, sizeof(*call->interpreted));
    for (int32_t r = 0; ok && NULL != call->interpreted && r < call->size; ++r) {
        payload_shape_t shape = payload_shape(call, r);

        in[r] = malloc(shape.in_bytes + 1);
        call->interpreted[r] = malloc(shape.out_bytes + 1);
        ok = NULL != in[r] && NULL != call->interpreted[r];
        if (ok) {
            payload_fill(call, r, in[r], call->interpreted[r]);
        }
    }
    ok = ok && payload_interpret(call, params, in, call->interpreted);
    for (int32_t r = 0; NULL != in && r < call->size; ++r) {
        free(in[r]);
    }
    free(in);
    return ok;
}

static bool compare(const payload_call_t *call, int32_t rank, const uint8_t *out, uint64_t place,
                    const uint8_t *expected, uint64_t count, char *text_p, size_t text_bytes)
{
    const uint8_t *got = out + place * call->element_bytes;
    uint64_t i;

    if (0 == count || 0 == memcmp(got, expected, count * call->element_bytes)) {
        return true;
    }
    for (i = 0; 0 == memcmp(got + i * call->element_bytes, expected + i * call->element_bytes,
                            call->element_bytes);
         ++i) {
    }
    snprintf(text_p, text_bytes,
             "wrong result: rank %d element %" PRIu64 " of %" PRIu64 ": got %02x%02x%02x expected "
             "%02x%02x%02x",
             rank, place + i, count, got[i * call->element_bytes], got[i * call->element_bytes + 1],
             got[i * call->element_bytes + 2], expected[i * call->element_bytes],
             expected[i * call->element_bytes + 1], expected[i * call->element_bytes + 2]);
    return false;
}

static bool check_gather(const payload_call_t *call, int32_t rank, const uint8_t *out, char *text_p,
                         size_t text_bytes)
{
    uint64_t extent = gather_extent(call), written = 0;
    uint8_t *expected = malloc(extent * call->element_bytes + 1);
    bool ok = NULL != expected;

    if (!ok) {
        return false;
    }
    memset(expected, PAYLOAD_POISON, extent * call->element_bytes);
    for (int32_t r = 0; r < call->size; ++r) {
        payload_put(call, r, 0, block_count(call, r),
                    expected + gather_place(call, r) * call->element_bytes);
        written += block_count(call, r);
    }
    ok = compare(call, rank, out, 0, expected, extent, text_p, text_bytes);
    free(expected);
    return ok && written <= extent;
}

static bool check_bcast(const payload_call_t *call, int32_t rank, const uint8_t *out, char *text_p,
                        size_t text_bytes)
{
    uint8_t *expected = malloc(call->step->count * call->element_bytes + 1);
    bool ok = NULL != expected;

    if (ok) {
        payload_put(call, call->step->root, 0, call->step->count, expected);
        ok = compare(call, rank, out, 0, expected, call->step->count, text_p, text_bytes);
    }
    free(expected);
    return ok;
}

static bool check_reduced(payload_call_t *call, int32_t rank, const uint8_t *out,
                          const r2_params_t *params, char *text_p, size_t text_bytes)
{
    bool scatter = is_scatter(call->step->coll);
    uint64_t count = scatter ? block_count(call, rank) : call->step->count;
    const uint8_t *expected;

    if (TYPE_F64 == call->step->type) {
        if (NULL == call->interpreted && !make_interpreted(call, params)) {
            snprintf(text_p, text_bytes, "the schedules do not end");
            return false;
        }
        expected = call->interpreted[rank];
    } else {
        if (NULL == call->reduced && !make_reduced(call)) {
            return false;
        }
        expected = call->reduced + (scatter ? block_start(call, rank) * call->element_bytes : 0);
    }
    return compare(call, rank, out, 0, expected, count, text_p, text_bytes);
}

/** Kinds of payload_kinds.c: all of OUT, gaps and what must not be written included. */
static bool check_other(payload_call_t *call, int32_t rank, const uint8_t *out,
                        const r2_params_t *params, char *text_p, size_t text_bytes)
{
    const payload_shape_t shape = payload_shape(call, rank);
    const uint64_t count = shape.out_bytes / call->element_bytes;
    uint8_t *in, *expected;
    bool ok;

    if (TYPE_F64 == call->step->type && r2_kind(call->step->coll)->reduces) {
        if (NULL == call->interpreted && !make_interpreted(call, params)) {
            snprintf(text_p, text_bytes, "the schedules do not end");
            return false;
        }
        return compare(call, rank, out, 0, call->interpreted[rank], count, text_p, text_bytes);
    }
    in = malloc(shape.in_bytes + 1);
    expected = malloc(shape.out_bytes + 1);
    ok = NULL != in && NULL != expected;
    if (ok) {
        payload_fill(call, rank, in, expected);
        ok = payload_kind_expect(call, rank, expected) &&
             compare(call, rank, out, 0, expected, count, text_p, text_bytes);
    }
    free(in);
    free(expected);
    return ok;
}

bool payload_check(payload_call_t *call, int32_t rank, const uint8_t *out,
                   const r2_params_t *params, char *text_p, size_t text_bytes)
{
    snprintf(text_p, text_bytes, "out of memory");
    if (is_other(call->step->coll)) {
        return check_other(call, rank, out, params, text_p, text_bytes);
    }
    if (is_gather(call->step->coll)) {
        return check_gather(call, rank, out, text_p, text_bytes);
    }
    if (R2_COLL_BCAST == call->step->coll) {
        return check_bcast(call, rank, out, text_p, text_bytes);
    }
    if (R2_COLL_BARRIER != call->step->coll) {
        return check_reduced(call, rank, out, params, text_p, text_bytes);
    }
    return true;
}
