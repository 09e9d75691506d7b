/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * float16 and bfloat16 of r2_mpi.h in reductions: every bit of every result. With two ranks any
 * values, since one pair gives one result; with more, whole numbers whose sums are exact. Output:
 * TAP, from rank 0.
 */
#include <stdint.h>
#include <string.h>

#include "pattern.h"
#include "r2_mpi.h"

#define COUNT 5000
#define OPS   (R2_MPI_HALF_MAX + 1)

static int me, size, number;
static MPI_Datatype type;
static MPI_Op ops[OPS];

/* Small whole numbers of either kind: their sums and products are exact. */
static uint16_t whole(r2_mpi_half_t half, int value)
{
    const float number_of = (float) value;
    uint32_t bits;

    memcpy(&bits, &number_of, sizeof(bits));
    if (R2_MPI_BFLOAT16 == half || 0 == value) {
        return (uint16_t) (bits >> 16);
    }
    return (uint16_t) ((bits >> 16 & 0x8000) | ((bits & 0x7fffffff) - (112u << 23)) >> 13);
}

/* Products have no zeros: -0 is another number. */
static int small(int op, int rank, int i)
{
    return R2_MPI_HALF_PROD == op ? 1 + (i + rank) % 4 : (i + rank) % 5 - (i / 7) % 3;
}

static int expected(int op, int ranks, int i)
{
    int value = small(op, 0, i);

    for (int r = 1; r < ranks; ++r) {
        const int next = small(op, r, i);

        value = R2_MPI_HALF_SUM == op    ? value + next
                : R2_MPI_HALF_PROD == op ? value * next
                : R2_MPI_HALF_MIN == op  ? (next < value ? next : value)
                                         : (next > value ? next : value);
    }
    return value;
}

static int calls(r2_mpi_half_t half, int op, const uint16_t *in, uint16_t *out)
{
    const int block = COUNT / size;
    MPI_Request request;
    int errors = 0;

    for (int turn = 0; turn < 4; ++turn) {
        int first = 0, count = COUNT, ranks = size;

        memset(out, 0xff, COUNT * sizeof(*out));
        if (0 == turn) {
            MPI_Allreduce(in, out, COUNT, type, ops[op], MPI_COMM_WORLD);
        } else if (1 == turn) {
            MPI_Iallreduce(in, out, COUNT, type, ops[op], MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if (2 == turn) {
            MPI_Reduce_scatter_block(in, out, block, type, ops[op], MPI_COMM_WORLD);
            first = me * block;
            count = block;
        } else {
            MPI_Scan(in, out, COUNT, type, ops[op], MPI_COMM_WORLD);
            ranks = me + 1;
        }
        for (int i = 0; i < count; ++i) {
            errors += out[i] != whole(half, expected(op, ranks, first + i));
        }
    }
    return errors;
}

static int exact(r2_mpi_half_t half)
{
    uint16_t *in = pattern_alloc(COUNT * sizeof(*in)), *out = pattern_alloc(COUNT * sizeof(*out));
    int errors = 0;

    for (int op = 0; op < OPS; ++op) {
        for (int i = 0; i < COUNT; ++i) {
            in[i] = whole(half, small(op, me, i));
        }
        errors += calls(half, op, in, out);
    }
    free(in);
    free(out);
    return errors;
}

/* Any bits: the result of two is that of the operation on them, which MPI_Reduce_local gives. */
static int any_bits(void)
{
    uint16_t *in = pattern_alloc(65536 * 2), *out = pattern_alloc(65536 * 2),
             *other = pattern_alloc(65536 * 2);
    int errors = 0;

    for (int i = 0; 2 == size && i < 65536; ++i) {
        in[i] = (uint16_t) (0 == me ? i : i * 40503);
        other[i] = (uint16_t) (0 == me ? i * 40503 : i);
    }
    for (int op = 0; 2 == size && op < OPS; ++op) {
        MPI_Allreduce(in, out, 65536, type, ops[op], MPI_COMM_WORLD);
        MPI_Reduce_local(in, other, 65536, type, ops[op]);
        errors += 0 != memcmp(out, other, 65536 * 2);
        for (int i = 0; i < 65536; ++i) {
            other[i] = (uint16_t) (0 == me ? i * 40503 : i);
        }
    }
    free(in);
    free(out);
    free(other);
    return errors;
}

/* What programs of others call a float16, and three of them. */
static int other_types(r2_mpi_half_t half)
{
    uint16_t in[300], out[300];
    MPI_Datatype two, three;
    int errors = 0;

    MPI_Type_contiguous(2, MPI_BYTE, &two);
    MPI_Type_contiguous(3, type, &three);
    MPI_Type_commit(&two);
    MPI_Type_commit(&three);
    for (int i = 0; i < 300; ++i) {
        in[i] = whole(half, small(R2_MPI_HALF_SUM, me, i));
    }
    MPI_Allreduce(in, out, 300, two, ops[R2_MPI_HALF_SUM], MPI_COMM_WORLD);
    for (int i = 0; i < 300; ++i) {
        errors += out[i] != whole(half, expected(R2_MPI_HALF_SUM, size, i));
    }
    memset(out, 0, sizeof(out));
    MPI_Allreduce(in, out, 100, three, ops[R2_MPI_HALF_SUM], MPI_COMM_WORLD);
    for (int i = 0; i < 300; ++i) {
        errors += out[i] != whole(half, expected(R2_MPI_HALF_SUM, size, i));
    }
    MPI_Type_free(&two);
    MPI_Type_free(&three);
    return errors;
}

static int arguments(void)
{
    MPI_Datatype none;
    MPI_Op no_op;

    return (MPI_ERR_ARG != r2_mpi_half_type((r2_mpi_half_t) 2, &none)) +
           (MPI_ERR_ARG != r2_mpi_half_type(R2_MPI_FLOAT16, NULL)) +
           (MPI_ERR_ARG !=
            r2_mpi_half_op_create(R2_MPI_FLOAT16, (r2_mpi_half_op_t) OPS, &no_op)) +
           (MPI_ERR_ARG != r2_mpi_half_op_create((r2_mpi_half_t) 2, R2_MPI_HALF_SUM, &no_op));
}

static int is_named(const char *wanted)
{
    char name[MPI_MAX_OBJECT_NAME];
    int length;

    MPI_Type_get_name(type, name, &length);
    return 0 == strcmp(name, wanted) ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"R2_FLOAT16", "R2_BFLOAT16"};
    int errors = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    errors += pattern_verdict(++number, "arguments", arguments());
    for (r2_mpi_half_t half = R2_MPI_FLOAT16; half <= R2_MPI_BFLOAT16; ++half) {
        r2_mpi_half_type(half, &type);
        for (int op = 0; op < OPS; ++op) {
            r2_mpi_half_op_create(half, (r2_mpi_half_op_t) op, &ops[op]);
        }
        errors += pattern_verdict(++number, names[half], is_named(names[half]));
        errors += pattern_verdict(++number, "exact numbers", exact(half));
        errors += pattern_verdict(++number, "any bits", any_bits());
        errors += pattern_verdict(++number, "other types", other_types(half));
        for (int op = 0; op < OPS; ++op) {
            MPI_Op_free(&ops[op]);
        }
        MPI_Type_free(&type);
    }
    if (0 == me) {
        printf("1..%d\n", number);
    }
    MPI_Finalize();
    return 0 == errors ? 0 : 1;
}
