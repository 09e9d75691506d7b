/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Which reduction of r2core's kernels Open MPI's operation is, and those of the host that have to
 * have the kernels' bits.
 */
#include "call.h"

enum { R2_TYPES_NONE = -1 };

/* Integers of the language by their length. */
static int r2_reducer_integer(const struct ompi_datatype_t *dtype, bool is_signed)
{
    const int first = is_signed ? R2_KERNEL_TYPE_i8 : R2_KERNEL_TYPE_u8;
    size_t bytes;

    ompi_datatype_type_size(dtype, &bytes);
    switch (bytes) {
    case 1:
        return first;
    case 2:
        return first + 1;
    case 4:
        return first + 2;
    case 8:
        return first + 3;
    default:
        return R2_TYPES_NONE;
    }
}

static int r2_reducer_pair(const struct ompi_datatype_t *dtype, r2_kernel_type_t type,
                           size_t wanted)
{
    size_t bytes;

    ompi_datatype_type_size(dtype, &bytes);
    return wanted == bytes ? (int) type : R2_TYPES_NONE;
}

/* @return r2_kernel_type_t, or R2_TYPES_NONE. */
static int r2_reducer_type(const struct ompi_datatype_t *dtype)
{
    switch (ompi_op_ddt_map[dtype->id]) {
    case OMPI_OP_BASE_TYPE_INT8_T:
    case OMPI_OP_BASE_TYPE_INT16_T:
    case OMPI_OP_BASE_TYPE_INT32_T:
    case OMPI_OP_BASE_TYPE_INT64_T:
    case OMPI_OP_BASE_TYPE_INTEGER:
    case OMPI_OP_BASE_TYPE_INTEGER1:
    case OMPI_OP_BASE_TYPE_INTEGER2:
    case OMPI_OP_BASE_TYPE_INTEGER4:
    case OMPI_OP_BASE_TYPE_INTEGER8:
    case OMPI_OP_BASE_TYPE_LONG:
    case OMPI_OP_BASE_TYPE_LOGICAL:
        return r2_reducer_integer(dtype, true);
    case OMPI_OP_BASE_TYPE_UINT8_T:
    case OMPI_OP_BASE_TYPE_UINT16_T:
    case OMPI_OP_BASE_TYPE_UINT32_T:
    case OMPI_OP_BASE_TYPE_UINT64_T:
    case OMPI_OP_BASE_TYPE_UNSIGNED_LONG:
    case OMPI_OP_BASE_TYPE_BOOL:
    case OMPI_OP_BASE_TYPE_BYTE:
        return r2_reducer_integer(dtype, false);
    case OMPI_OP_BASE_TYPE_FLOAT:
    case OMPI_OP_BASE_TYPE_REAL:
    case OMPI_OP_BASE_TYPE_REAL4:
        return r2_reducer_pair(dtype, R2_KERNEL_TYPE_f32, 4);
    case OMPI_OP_BASE_TYPE_DOUBLE:
    case OMPI_OP_BASE_TYPE_REAL8:
    case OMPI_OP_BASE_TYPE_DOUBLE_PRECISION:
        return r2_reducer_pair(dtype, R2_KERNEL_TYPE_f64, 8);
    case OMPI_OP_BASE_TYPE_C_FLOAT_COMPLEX:
        return r2_reducer_pair(dtype, R2_KERNEL_TYPE_cf32, 8);
    case OMPI_OP_BASE_TYPE_C_DOUBLE_COMPLEX:
        return r2_reducer_pair(dtype, R2_KERNEL_TYPE_cf64, 16);
    case OMPI_OP_BASE_TYPE_FLOAT_INT:
        return r2_reducer_pair(dtype, R2_KERNEL_TYPE_f32i32, 8);
    case OMPI_OP_BASE_TYPE_DOUBLE_INT: /* sizes are without padding */
        return r2_reducer_pair(dtype, R2_KERNEL_TYPE_f64i32, 12);
    case OMPI_OP_BASE_TYPE_LONG_INT:
        return r2_reducer_pair(dtype, R2_KERNEL_TYPE_i64i32, 12);
    case OMPI_OP_BASE_TYPE_SHORT_INT:
        return r2_reducer_pair(dtype, R2_KERNEL_TYPE_i16i32, 6);
    case OMPI_OP_BASE_TYPE_2INT:
    case OMPI_OP_BASE_TYPE_2INTEGER:
        return r2_reducer_pair(dtype, R2_KERNEL_TYPE_i32i32, 8);
    case OMPI_OP_BASE_TYPE_2REAL:
        return r2_reducer_pair(dtype, R2_KERNEL_TYPE_f32f32, 8);
    case OMPI_OP_BASE_TYPE_2DOUBLE_PRECISION:
        return r2_reducer_pair(dtype, R2_KERNEL_TYPE_f64f64, 16);
    default:
        return R2_TYPES_NONE; /* long double, among others */
    }
}

/* By the number that Fortran has of an operation. */
static const int r2_reducer_ops[OMPI_OP_BASE_FORTRAN_OP_MAX] = {
    [OMPI_OP_BASE_FORTRAN_MAX] = R2_KERNEL_OP_max + 1,
    [OMPI_OP_BASE_FORTRAN_MIN] = R2_KERNEL_OP_min + 1,
    [OMPI_OP_BASE_FORTRAN_SUM] = R2_KERNEL_OP_sum + 1,
    [OMPI_OP_BASE_FORTRAN_PROD] = R2_KERNEL_OP_prod + 1,
    [OMPI_OP_BASE_FORTRAN_LAND] = R2_KERNEL_OP_land + 1,
    [OMPI_OP_BASE_FORTRAN_BAND] = R2_KERNEL_OP_band + 1,
    [OMPI_OP_BASE_FORTRAN_LOR] = R2_KERNEL_OP_lor + 1,
    [OMPI_OP_BASE_FORTRAN_BOR] = R2_KERNEL_OP_bor + 1,
    [OMPI_OP_BASE_FORTRAN_LXOR] = R2_KERNEL_OP_lxor + 1,
    [OMPI_OP_BASE_FORTRAN_BXOR] = R2_KERNEL_OP_bxor + 1,
    [OMPI_OP_BASE_FORTRAN_MAXLOC] = R2_KERNEL_OP_maxloc + 1,
    [OMPI_OP_BASE_FORTRAN_MINLOC] = R2_KERNEL_OP_minloc + 1,
};

/* An operation of the user that r2 knows (r2_mpi.h), on memory that is elements of it and nothing
 * else. */
static r2_kernel_t r2_reducer_known(const struct ompi_op_t *op, const struct ompi_datatype_t *dtype)
{
    r2_kernel_t kernel;
    size_t bytes;

    if (0 != (op->o_flags & (OMPI_OP_FLAGS_INTRINSIC | MCA_COLL_R2_OP_FOREIGN)) ||
        !ompi_datatype_is_contiguous_memory_layout(dtype, 2)) {
        return R2_KERNEL_NONE;
    }
    kernel = r2_kernel_of((r2_kernel_function_t) op->o_func.c_fn);
    ompi_datatype_type_size(dtype, &bytes);
    return R2_KERNEL_NONE != kernel && 0 == bytes % r2_kernel_bytes(kernel) ? kernel
                                                                            : R2_KERNEL_NONE;
}

r2_kernel_t mca_coll_r2_reducer_kernel(const struct ompi_op_t *op,
                                       const struct ompi_datatype_t *dtype)
{
    const int number = op->o_f_to_c_index;
    int type;

    if (0 == (op->o_flags & OMPI_OP_FLAGS_INTRINSIC)) {
        return r2_reducer_known(op, dtype);
    }
    if (!ompi_datatype_is_predefined(dtype) || number <= 0 ||
        number >= OMPI_OP_BASE_FORTRAN_OP_MAX || 0 == r2_reducer_ops[number]) {
        return R2_KERNEL_NONE;
    }
    type = r2_reducer_type(dtype);
    return R2_TYPES_NONE == type ? R2_KERNEL_NONE
                                 : r2_kernel_find((r2_kernel_op_t) (r2_reducer_ops[number] - 1),
                                                  (r2_kernel_type_t) type);
}

/* gcc makes vectors of such loops from -O3 on. */
#if defined(__GNUC__) && !defined(__clang__)
#    define R2_REDUCER_VECTORS __attribute__((optimize("O3")))
#else
#    define R2_REDUCER_VECTORS
#endif

/* As the kernels have it: `in`, unless `inout` is less (or more). */
#define R2_REDUCER_CHOOSE(name, number, is_before)                                 \
    R2_REDUCER_VECTORS static void name(const void *in, void *inout, size_t count) \
    {                                                                              \
        const number *from = in;                                                   \
        number *to = inout;                                                        \
                                                                                   \
        for (size_t i = 0; i < count; ++i) {                                       \
            to[i] = to[i] is_before from[i] ? to[i] : from[i];                     \
        }                                                                          \
    }
R2_REDUCER_CHOOSE(r2_reducer_min_f32, float, <)
R2_REDUCER_CHOOSE(r2_reducer_max_f32, float, >)
R2_REDUCER_CHOOSE(r2_reducer_min_f64, double, <)
R2_REDUCER_CHOOSE(r2_reducer_max_f64, double, >)

bool mca_coll_r2_reducer_choose(r2_kernel_t kernel, const void *in, void *inout, size_t count)
{
    switch ((int) kernel) {
    case R2_KERNEL_min_f32:
        r2_reducer_min_f32(in, inout, count);
        return true;
    case R2_KERNEL_max_f32:
        r2_reducer_max_f32(in, inout, count);
        return true;
    case R2_KERNEL_min_f64:
        r2_reducer_min_f64(in, inout, count);
        return true;
    case R2_KERNEL_max_f64:
        r2_reducer_max_f64(in, inout, count);
        return true;
    default:
        return false;
    }
}
