/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Every kernel that reduces, in its C form on the stand-in for the CUDA driver, against Open MPI's
 * own operation: every bit of every element, at every alignment, with lengths that are not even.
 * Open MPI gets one element at a time: its vectors choose otherwise than its loops between two NaN,
 * a NaN and a number, and two zeros (docs/gpu.md). Output: TAP. Run by itself, as one process.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda/parts.h"
#include "mem/kernels.h"
#include "r2/prng.h"
#include "r2_mpi.h"

extern const fakecuda_kernel_t fakecuda_kernels[];

enum { MOST = 6000, SLACK = 64, LENGTH_BYTES = 16 * MOST + SLACK };

/* How a kernel is compared. */
typedef enum like { BITS, FLOAT, COMPLEX, PAIR } like_t;

typedef struct type {
    like_t like;
    uint32_t part; /* bytes of a value: those of which specials are drawn */
    MPI_Datatype mpi;
} type_t;

static r2_mem_t mem;
static r2_mem_at_t place;
static r2_mem_queue_t queue;
static r2_kernels_t kernels;
static r2_prng_t prng;
static MPI_Op halves[2][4];
static CUdeviceptr device[3]; /* in, inout, to */
static char host[3][LENGTH_BYTES];
static int tests, failed;

static void setup(type_t *types_p)
{
    const type_t types[R2_KERNEL_TYPE_COUNT] = {
        [R2_KERNEL_TYPE_u8] = {BITS, 1, MPI_UINT8_T},
        [R2_KERNEL_TYPE_u16] = {BITS, 2, MPI_UINT16_T},
        [R2_KERNEL_TYPE_u32] = {BITS, 4, MPI_UINT32_T},
        [R2_KERNEL_TYPE_u64] = {BITS, 8, MPI_UINT64_T},
        [R2_KERNEL_TYPE_i8] = {BITS, 1, MPI_INT8_T},
        [R2_KERNEL_TYPE_i16] = {BITS, 2, MPI_INT16_T},
        [R2_KERNEL_TYPE_i32] = {BITS, 4, MPI_INT32_T},
        [R2_KERNEL_TYPE_i64] = {BITS, 8, MPI_INT64_T},
        [R2_KERNEL_TYPE_f32] = {FLOAT, 4, MPI_FLOAT},
        [R2_KERNEL_TYPE_f64] = {FLOAT, 8, MPI_DOUBLE},
        [R2_KERNEL_TYPE_f16] = {BITS, 2, MPI_DATATYPE_NULL},
        [R2_KERNEL_TYPE_bf16] = {BITS, 2, MPI_DATATYPE_NULL},
        [R2_KERNEL_TYPE_cf32] = {COMPLEX, 4, MPI_C_FLOAT_COMPLEX},
        [R2_KERNEL_TYPE_cf64] = {COMPLEX, 8, MPI_C_DOUBLE_COMPLEX},
        [R2_KERNEL_TYPE_f32i32] = {PAIR, 4, MPI_FLOAT_INT},
        [R2_KERNEL_TYPE_f64i32] = {PAIR, 8, MPI_DOUBLE_INT},
        [R2_KERNEL_TYPE_i16i32] = {PAIR, 2, MPI_SHORT_INT},
        [R2_KERNEL_TYPE_i32i32] = {PAIR, 4, MPI_2INT},
        [R2_KERNEL_TYPE_i64i32] = {PAIR, 8, MPI_LONG_INT},
        [R2_KERNEL_TYPE_f32f32] = {PAIR, 4, MPI_2REAL},
        [R2_KERNEL_TYPE_f64f64] = {PAIR, 8, MPI_2DOUBLE_PRECISION},
    };

    memcpy(types_p, types, sizeof(types));
    MUST(MPI_SUCCESS == r2_mpi_half_type(R2_MPI_FLOAT16, &types_p[R2_KERNEL_TYPE_f16].mpi));
    MUST(MPI_SUCCESS == r2_mpi_half_type(R2_MPI_BFLOAT16, &types_p[R2_KERNEL_TYPE_bf16].mpi));
    for (int op = 0; op < 4; ++op) {
        for (int half = 0; half < 2; ++half) {
            MUST(MPI_SUCCESS == r2_mpi_half_op_create((r2_mpi_half_t) half, (r2_mpi_half_op_t) op,
                                                      &halves[half][op]));
        }
    }
}

static MPI_Op op_of(r2_kernel_op_t op, r2_kernel_type_t type)
{
    const MPI_Op ops[R2_KERNEL_OP_COUNT] = {
        [R2_KERNEL_OP_sum] = MPI_SUM,       [R2_KERNEL_OP_prod] = MPI_PROD,
        [R2_KERNEL_OP_min] = MPI_MIN,       [R2_KERNEL_OP_max] = MPI_MAX,
        [R2_KERNEL_OP_band] = MPI_BAND,     [R2_KERNEL_OP_bor] = MPI_BOR,
        [R2_KERNEL_OP_bxor] = MPI_BXOR,     [R2_KERNEL_OP_land] = MPI_LAND,
        [R2_KERNEL_OP_lor] = MPI_LOR,       [R2_KERNEL_OP_lxor] = MPI_LXOR,
        [R2_KERNEL_OP_minloc] = MPI_MINLOC, [R2_KERNEL_OP_maxloc] = MPI_MAXLOC,
    };

    return R2_KERNEL_TYPE_f16 == type    ? halves[R2_MPI_FLOAT16][op]
           : R2_KERNEL_TYPE_bf16 == type ? halves[R2_MPI_BFLOAT16][op]
                                         : ops[op];
}

/* Bits that are special in some type of so many bytes: zeros, ones, infinities, NaN of both signs,
 * quiet and signalling, the least denormal, the greatest, the least normal and the greatest
 * numbers. */
static uint64_t special(uint32_t bytes)
{
    static const uint64_t f64[] = {0, 0x3ff0000000000000, 0x7ff0000000000000, 0x7ff8000000000011,
                                   0x7ff0000000000022, 1, 0x000fffffffffffff, 0x0010000000000000,
                                   0x7fefffffffffffff, 0x3ca0000000000000, 0x0008000000000000};
    static const uint64_t f32[] = {0, 0x3f800000, 0x7f800000, 0x7fc00011, 0x7f800022, 1,
                                   0x007fffff, 0x00800000, 0x7f7fffff, 0x33800000, 0x00400000};
    static const uint64_t f16[] = {0, 0x3c00, 0x7c00, 0x7e11, 0x7c22, 1, 0x3ff, 0x400, 0x7bff,
                                   0x3f80, 0x7f80, 0x7fc1, 0x7f83, 0x7f, 0x80, 0x7f7f};
    const uint64_t sign = r2_prng_below(&prng, 2) << (8 * bytes - 1);

    switch (bytes) {
    case 8:
        return sign | f64[r2_prng_below(&prng, sizeof(f64) / sizeof(f64[0]))];
    case 4:
        return sign | f32[r2_prng_below(&prng, sizeof(f32) / sizeof(f32[0]))];
    default:
        return sign | f16[r2_prng_below(&prng, sizeof(f16) / sizeof(f16[0]))];
    }
}

static void draw(char *to, size_t bytes, uint32_t part)
{
    for (size_t at = 0; at + part <= bytes; at += part) {
        const uint64_t value = 0 == r2_prng_below(&prng, 3) ? r2_prng_u64(&prng) : special(part);

        memcpy(to + at, &value, part);
    }
}

static int is_nan(const char *at, uint32_t bytes)
{
    uint64_t bits = 0;

    memcpy(&bits, at, bytes);
    return 4 == bytes ? (bits & 0x7fffffff) > 0x7f800000
                      : (bits & UINT64_MAX >> 1) > 0x7ff0000000000000;
}

/* Of two NaN the first one counts, and is quiet then. */
static int is_first_nan(const char *in, const char *found, uint32_t bytes)
{
    uint64_t bits = 0, there = 0;

    memcpy(&bits, in, bytes);
    memcpy(&there, found, bytes);
    return there == (bits | (4 == bytes ? 0x00400000u : 0x0008000000000000u));
}

/* @param wanted what Open MPI has made of `in` and `inout`. */
static int is_right(const type_t *type, r2_kernel_op_t op, const char *in, const char *inout,
                    const char *wanted, const char *found, uint32_t bytes)
{
    const int sums = R2_KERNEL_OP_sum == op || R2_KERNEL_OP_prod == op;
    const uint32_t index = bytes / 2; /* of pairs: where it is */

    switch (type->like) {
    case FLOAT:
        if (sums && is_nan(in, bytes) && is_nan(inout, bytes)) {
            return is_first_nan(in, found, bytes);
        }
        return 0 == memcmp(wanted, found, bytes);
    case COMPLEX:
        for (uint32_t at = 0; at < bytes; at += type->part) {
            if (0 != memcmp(wanted + at, found + at, type->part) &&
                !(is_nan(wanted + at, type->part) && is_nan(found + at, type->part))) {
                return 0;
            }
        }
        return 1;
    case PAIR: /* without padding */
        return 0 == memcmp(wanted, found, type->part) &&
               0 == memcmp(wanted + index, found + index,
                           R2_KERNEL_OP_COUNT == op || type->mpi == MPI_2DOUBLE_PRECISION ? 8 : 4);
    case BITS:
        break;
    }
    return 0 == memcmp(wanted, found, bytes);
}

typedef struct trial {
    r2_kernel_t kernel;
    r2_kernel_op_t op;
    r2_kernel_type_t type;
    size_t count;
    size_t shift[3]; /* in, inout, to: in units of the alignment */
    int in_place;
} trial_t;

static void launch(const trial_t *trial, const size_t *start)
{
    const size_t bytes = r2_kernel_bytes(trial->kernel);
    const int to = trial->in_place ? 1 : 2;
    r2_kernel_pieces_t pieces;
    uint32_t used = 0;

    memset(&pieces, 0, sizeof(pieces));
    for (size_t from = 0, part; from < trial->count; from += part) {
        part = (trial->count + 2) / 3; /* pieces that do not end at a vector */
        part = part < trial->count - from ? part : trial->count - from;
        pieces.piece[used++] = (r2_kernel_piece_t){.to = device[to] + start[to] + from * bytes,
                                                   .in = device[0] + start[0] + from * bytes,
                                                   .inout = device[1] + start[1] + from * bytes,
                                                   .count = part};
    }
    MUST(R2_OK == r2_kernels_launch(&kernels, &queue, trial->kernel, &pieces, used));
    MUST(R2_OK == r2_mem_queue_drain(&queue));
}

/* @return elements that are wrong, and bytes beside them that are not as they were. */
static long attempt(const trial_t *trial, const type_t *type)
{
    const size_t bytes = r2_kernel_bytes(trial->kernel), align = r2_kernel_align(trial->kernel);
    const int to = trial->in_place ? 1 : 2;
    const char *found = fakecuda_look(device[to], LENGTH_BYTES);
    const size_t used = trial->count * bytes + SLACK; /* of the buffers */
    size_t start[3];
    long wrong = 0;
    char wanted[16];

    for (int i = 0; i < 3; ++i) {
        start[i] = trial->shift[i] * align;
        draw(host[i], used, type->part);
        memcpy(fakecuda_look(device[i], LENGTH_BYTES), host[i], used);
    }
    launch(trial, start);
    for (size_t i = 0; i < trial->count; ++i) {
        const char *in = host[0] + start[0] + i * bytes, *inout = host[1] + start[1] + i * bytes;
        _Alignas(16) char a[16], b[16];

        memcpy(a, in, bytes);
        memcpy(b, inout, bytes);
        MPI_Reduce_local(a, b, 1, type->mpi, op_of(trial->op, trial->type));
        memcpy(wanted, b, bytes);
        wrong += is_right(type, trial->op, in, inout, wanted, found + start[to] + i * bytes,
                          (uint32_t) bytes)
                     ? 0
                     : 1;
    }
    wrong += 0 != memcmp(found, host[to], start[to]) ? 1 : 0;
    found += start[to] + trial->count * bytes;
    return wrong +
           (0 != memcmp(found, host[to] + start[to] + trial->count * bytes, SLACK - start[to]) ? 1
                                                                                               : 0);
}

static void try_kernel(r2_kernel_t kernel, r2_kernel_op_t op, r2_kernel_type_t number,
                       const type_t *type)
{
    static const size_t counts[] = {1, 3, 17, 61, 259, MOST - 1};
    const size_t most = 16 / r2_kernel_align(kernel) < 5 ? 16 / r2_kernel_align(kernel) : 5;
    long wrong = 0;
    int trials = 0;

    MUST(kernel == r2_kernel_find(op, number));
    (void) r2_kernels_ask(&kernels, &mem, &place, kernel);
    r2_kernels_settle(&kernels);
    MUST(r2_kernels_ask(&kernels, &mem, &place, kernel));
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); ++c) {
        for (size_t i = 0; i < most * most * most; ++i, ++trials) {
            trial_t trial = {kernel, op, number, counts[c], {i % most, i / most % most, 0}, 0};

            trial.shift[2] = i / most / most;
            trial.in_place = i % 5 == 1;
            if (counts[c] > 100 && i % 7 > 0 && i > 0) {
                continue; /* long ones at some alignments only */
            }
            wrong += attempt(&trial, type);
        }
    }
    failed += 0 != wrong ? 1 : 0;
    printf("%s %d - %s: %ld wrong in %d trials\n", 0 == wrong ? "ok" : "not ok", ++tests,
           r2_kernel_name(kernel), wrong, trials);
}

int main(int argc, char **argv)
{
    type_t types[R2_KERNEL_TYPE_COUNT];
    CUcontext context;

    MPI_Init(&argc, &argv);
    if (NULL != r2_kernels_missing()) {
        printf("%s\n", r2_kernels_missing());
        MPI_Finalize();
        return 77;
    }
    setup(types);
    context = start_device();
    fakecuda_add_kernels(fakecuda_kernels);
    for (int i = 0; i < 3; ++i) {
        OK(cuMemAlloc(&device[i], LENGTH_BYTES));
    }
    r2_mem_init(&mem, "libcuda.so.1");
    MUST(R2_OK == r2_mem_look(&mem, (void *) (uintptr_t) device[0], &place));
    MUST(R2_OK == r2_mem_queue_init(&queue, &mem, &place));
    r2_prng_seed(&prng, 7);
#define R2_KERNEL(op, type, class)                                                \
    try_kernel(R2_KERNEL_##op##_##type, R2_KERNEL_OP_##op, R2_KERNEL_TYPE_##type, \
               &types[R2_KERNEL_TYPE_##type]);
#include "base/kernels.def"
    MUST(R2_KERNEL_sum_u16 == r2_kernel_find(R2_KERNEL_OP_sum, R2_KERNEL_TYPE_i16));
    MUST(R2_KERNEL_NONE == r2_kernel_find(R2_KERNEL_OP_band, R2_KERNEL_TYPE_f32));
    r2_mem_queue_fini(&queue);
    r2_kernels_fini(&kernels);
    r2_mem_fini(&mem);
    OK(cuCtxSetCurrent(context));
    failed += 0 != fakecuda_counter("mistakes") ? 1 : 0;
    printf("%s %d - the driver was used well: %d launches, seed 7\n",
           0 == fakecuda_counter("mistakes") ? "ok" : "not ok", ++tests,
           (int) fakecuda_counter("launches"));
    printf("1..%d\n", tests);
    MPI_Finalize();
    return 0 == failed ? 0 : 1;
}
