/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * gpu_reduce COUNT [ROUNDS]: reductions of every operation and type, on buffers of gpu_alloc.h and
 * on memory of the host: the same bits, wherever they are made. Values are any bits at all, zeros
 * of both signs and NaN among them. Sums and products of floats that are NaN in both are taken for
 * equal: which of two NaN is passed on is the processor's business. Output: TAP, from rank 0.
 * gpu_reduce COUNT ROUNDS WORD: only those with this word in their name.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_alloc.h"
#include "r2_mpi.h"

typedef enum like { BITS, TRUTH, FLOAT, DOUBLE, PAIR } like_t;

typedef struct reduction {
    const char *name;
    like_t like;
    size_t bytes;
    MPI_Datatype type;
    MPI_Op op;
} reduction_t;

static int me, size, number, failed;
static char *device[2], *host[2]; /* in, out */
static size_t room;

static uint32_t random_bits(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8 ^ *state << 24;
}

/* Any bits, and one in four is special: zero, infinity, NaN or denormal of either sign. */
static void draw(char *to, size_t bytes, like_t like, uint32_t seed)
{
    static const uint32_t special[] = {0, 0x7f800000, 0x7fc00011, 1, 0x3f800000, 0x7f7fffff};
    static const uint32_t tops[] = {0, 0x7ff00000, 0x7ff80011, 1, 0x3ff00000, 0x7fefffff};
    const size_t step = DOUBLE == like ? 8 : 4;
    uint32_t state = seed;

    for (size_t at = 0; at < bytes; at += step) { /* there is room for a whole one */
        const uint32_t bits = random_bits(&state), which = random_bits(&state);
        const uint32_t sign = bits & 0x80000000;
        uint32_t words[] = {random_bits(&state), bits};

        words[1] &= TRUTH == like ? 0x01010101 : UINT32_MAX; /* a bool has no other bits */
        if (like >= FLOAT && 0 == which % 4) {
            words[0] = 0;
            words[1] = sign | (DOUBLE == like ? tops : special)[which / 4 % 6];
        }
        memcpy(to + at, &words[8 == step ? 0 : 1], step);
    }
}

static int is_nan(const char *at, like_t like)
{
    uint64_t bits = 0;

    memcpy(&bits, at, DOUBLE == like ? 8 : 4);
    return DOUBLE == like ? (bits & UINT64_MAX >> 1) > 0x7ff0000000000000
                          : (bits & 0x7fffffff) > 0x7f800000;
}

static long differences(const reduction_t *what, size_t count)
{
    const size_t step = DOUBLE == what->like ? 8 : 4, bytes = count * what->bytes;
    const int sums = (FLOAT == what->like || DOUBLE == what->like) &&
                     (MPI_SUM == what->op || MPI_PROD == what->op);
    long found = 0;

    if (PAIR == what->like) { /* a float and an int: no padding */
        return 0 != memcmp(device[1], host[1], bytes);
    }
    for (size_t at = 0; at + step <= bytes; at += step) {
        found += 0 != memcmp(device[1] + at, host[1] + at, step) &&
                         !(sums && is_nan(device[1] + at, what->like) &&
                           is_nan(host[1] + at, what->like))
                     ? 1
                     : 0;
    }
    return found + (0 != memcmp(device[1] + bytes / step * step, host[1] + bytes / step * step,
                                bytes % step));
}

static int call(int which, const reduction_t *what, char *in, char *out, int count)
{
    MPI_Request request;
    int rc = MPI_SUCCESS;

    switch (which) {
    case 0:
        return MPI_Allreduce(in, out, count, what->type, what->op, MPI_COMM_WORLD);
    case 1: /* in place */
        memcpy(out, in, (size_t) count * what->bytes);
        return MPI_Allreduce(MPI_IN_PLACE, out, count, what->type, what->op, MPI_COMM_WORLD);
    case 2:
        return MPI_Reduce(in, out, count, what->type, what->op, size - 1, MPI_COMM_WORLD);
    case 3:
        return MPI_Scan(in, out, count, what->type, what->op, MPI_COMM_WORLD);
    default:
        rc = MPI_Ireduce_scatter_block(in, out, count / size, what->type, what->op, MPI_COMM_WORLD,
                                       &request);
        return MPI_SUCCESS == rc ? MPI_Wait(&request, MPI_STATUS_IGNORE) : rc;
    }
}

static void compare(int which, const reduction_t *what, int count)
{
    static const char *const calls[] = {"allreduce", "allreduce in place", "reduce", "scan",
                                        "ireduce_scatter_block"};
    const size_t bytes = (size_t) count * what->bytes;
    long wrong, total;

    draw(host[0], bytes, what->like, (uint32_t) (1000 * me + number));
    memcpy(device[0], host[0], bytes);
    memset(host[1], 0x5a, room);
    memset(device[1], 0x5a, room);
    wrong = MPI_SUCCESS == call(which, what, host[0], host[1], count) ? 0 : 1;
    wrong += MPI_SUCCESS == call(which, what, device[0], device[1], count) ? 0 : 1;
    wrong += differences(what, (size_t) count);
    wrong += 0 != memcmp(device[0], host[0], bytes) ? 1 : 0;
    MPI_Allreduce(&wrong, &total, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    ++number;
    failed += 0 != total ? 1 : 0;
    if (0 == me) {
        printf("%s %d - %s, %s, %d: %ld differ\n", 0 == total ? "ok" : "not ok", number,
               calls[which], what->name, count, total);
        fflush(stdout);
    }
}

/* As Horovod has it: r2 knows nothing of this function, nor that the bytes are float16. */
static void user_sum(void *in, void *inout, int *length, MPI_Datatype *type)
{
    const uint16_t *a = in;
    uint16_t *b = inout;

    (void) type;
    for (int i = 0; i < *length; ++i) {
        b[i] = (uint16_t) (3 * a[i] + b[i]);
    }
}

static MPI_Op half(r2_mpi_half_t kind, r2_mpi_half_op_t which)
{
    MPI_Op op;

    r2_mpi_half_op_create(kind, which, &op);
    return op;
}

static MPI_Datatype contiguous(int count, MPI_Datatype of)
{
    MPI_Datatype type;

    MPI_Type_contiguous(count, of, &type);
    MPI_Type_commit(&type);
    return type;
}

static MPI_Op user_op(void)
{
    MPI_Op op;

    MPI_Op_create(user_sum, 1, &op);
    return op;
}

/* All of each round. */
static void reduce(const char *word, int count, size_t rounds)
{
    MPI_Datatype f16, bf16;

    r2_mpi_half_type(R2_MPI_FLOAT16, &f16);
    r2_mpi_half_type(R2_MPI_BFLOAT16, &bf16);
    const reduction_t all[] = {
        {"sum of float", FLOAT, 4, MPI_FLOAT, MPI_SUM},
        {"product of float", FLOAT, 4, MPI_FLOAT, MPI_PROD},
        {"minimum of float", FLOAT, 4, MPI_FLOAT, MPI_MIN},
        {"maximum of float", FLOAT, 4, MPI_FLOAT, MPI_MAX},
        {"sum of double", DOUBLE, 8, MPI_DOUBLE, MPI_SUM},
        {"minimum of double", DOUBLE, 8, MPI_DOUBLE, MPI_MIN},
        {"maximum of double", DOUBLE, 8, MPI_DOUBLE, MPI_MAX},
        {"product of complex", FLOAT, 8, MPI_C_FLOAT_COMPLEX, MPI_PROD},
        {"sum of double complex", DOUBLE, 16, MPI_C_DOUBLE_COMPLEX, MPI_SUM},
        {"sum of int8_t", BITS, 1, MPI_INT8_T, MPI_SUM},
        {"product of uint16_t", BITS, 2, MPI_UINT16_T, MPI_PROD},
        {"minimum of int8_t", BITS, 1, MPI_INT8_T, MPI_MIN},
        {"maximum of uint32_t", BITS, 4, MPI_UINT32_T, MPI_MAX},
        {"sum of long", BITS, 8, MPI_LONG, MPI_SUM},
        {"logical and of int", BITS, 4, MPI_INT, MPI_LAND},
        {"logical xor of bool", TRUTH, 1, MPI_C_BOOL, MPI_LXOR},
        {"bits of byte", BITS, 1, MPI_BYTE, MPI_BXOR},
        {"bits of uint64_t", BITS, 8, MPI_UINT64_T, MPI_BAND},
        {"minimum and place of float", PAIR, 8, MPI_FLOAT_INT, MPI_MINLOC},
        {"maximum and place of int", PAIR, 8, MPI_2INT, MPI_MAXLOC},
        {"sum of float16", BITS, 2, f16, half(R2_MPI_FLOAT16, R2_MPI_HALF_SUM)},
        {"product of float16", BITS, 2, f16, half(R2_MPI_FLOAT16, R2_MPI_HALF_PROD)},
        {"minimum of float16", BITS, 2, f16, half(R2_MPI_FLOAT16, R2_MPI_HALF_MIN)},
        {"maximum of float16 in threes", BITS, 6, contiguous(3, f16),
         half(R2_MPI_FLOAT16, R2_MPI_HALF_MAX)},
        {"sum of bfloat16", BITS, 2, bf16, half(R2_MPI_BFLOAT16, R2_MPI_HALF_SUM)},
        {"product of bfloat16 in pairs", BITS, 4, contiguous(2, bf16),
         half(R2_MPI_BFLOAT16, R2_MPI_HALF_PROD)},
        {"minimum of bfloat16", BITS, 2, bf16, half(R2_MPI_BFLOAT16, R2_MPI_HALF_MIN)},
        {"maximum of bfloat16", BITS, 2, MPI_UINT16_T, half(R2_MPI_BFLOAT16, R2_MPI_HALF_MAX)},
        {"the user's sum of two bytes", BITS, 2, contiguous(2, MPI_BYTE), user_op()},
    };
    for (size_t i = 0; i < rounds * sizeof(all) / sizeof(all[0]); ++i) {
        const reduction_t *what = &all[i % (sizeof(all) / sizeof(all[0]))];

        for (int which = 0; which < 5 && NULL != strstr(what->name, word); ++which) {
            compare(which, what, which % 2 ? count : count - 1);
        }
    }
}

int main(int argc, char **argv)
{
    const int count = argc > 1 ? atoi(argv[1]) : 1000;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    room = (size_t) count * 16 + 64;
    for (int i = 0; i < 2; ++i) {
        device[i] = buffer_alloc(room);
        host[i] = malloc(room);
    }
    reduce(argc > 3 ? argv[3] : "", count, argc > 2 ? (size_t) atoi(argv[2]) : 1);
    for (int i = 0; i < 2; ++i) {
        buffer_free(device[i]);
        free(host[i]);
    }
    if (0 == me) {
        printf("1..%d\n", number);
        fflush(stdout);
    }
    MPI_Finalize();
    return 0 == failed ? 0 : 1;
}
