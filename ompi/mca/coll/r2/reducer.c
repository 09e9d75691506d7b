/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Operations: Open MPI's ops as r2core's reductions.
 */
#include "call.h"

#include <string.h>

#include "opal/datatype/opal_datatype_internal.h"

/* Integers and logical or bitwise operations give the same bits in any order. */
static bool r2_reducer_exact(const struct ompi_op_t *op, const struct ompi_datatype_t *dtype)
{
    return 0 != (op->o_flags & OMPI_OP_FLAGS_INTRINSIC) && ompi_datatype_is_predefined(dtype) &&
           OMPI_DATATYPE_FLAG_DATA_INT == (dtype->super.flags & OMPI_DATATYPE_FLAG_DATA_TYPE);
}

/* Adds integers modulo their width, eight bytes at a time: without the top bits of the lanes
 * nothing is carried from one into the next, and the sum of top bits is their exclusive or. */
static uint64_t r2_reducer_add(uint64_t a, uint64_t b, uint64_t tops)
{
    return ((a & ~tops) + (b & ~tops)) ^ ((a ^ b) & tops);
}

static void r2_reducer_wrap(const char *in, char *inout, size_t bytes, uint64_t tops)
{
    const size_t rest = bytes % sizeof(uint64_t);
    uint64_t a, b;

    for (const char *end = in + bytes - rest; in < end; in += sizeof(a), inout += sizeof(b)) {
        memcpy(&a, in, sizeof(a));
        memcpy(&b, inout, sizeof(b));
        b = r2_reducer_add(a, b, tops);
        memcpy(inout, &b, sizeof(b));
    }
    a = b = 0;
    memcpy(&a, in, rest);
    memcpy(&b, inout, rest);
    b = r2_reducer_add(a, b, tops);
    memcpy(inout, &b, rest);
}

/*
 * op/avx adds whole vectors of 8 and 16 bit integers with saturation and what remains at the end
 * without, so that a sum that overflows would depend on where a plan cuts. @return top bits of the
 * lanes of such sums, else 0.
 */
static uint64_t r2_reducer_tops(const struct ompi_op_t *op, const struct ompi_datatype_t *dtype)
{
    size_t bytes;

    ompi_datatype_type_size(dtype, &bytes);
    if (MPI_SUM != op || !r2_reducer_exact(op, dtype)) {
        return 0;
    }
    return 1 == bytes   ? UINT64_C(0x8080808080808080)
           : 2 == bytes ? UINT64_C(0x8000800080008000)
                        : 0;
}

/* r2core's convention is that of MPI_User_function: inout = in OP inout. */
static void r2_reducer_apply(void *arg, const void *in, void *inout, size_t count)
{
    const mca_coll_r2_reducer_t *reducer = arg;
    ptrdiff_t true_lb, true_extent, lb, extent;

    if (0 != reducer->tops) {
        r2_reducer_wrap(in, inout, count * reducer->dtype->super.size, reducer->tops);
        return;
    }
    if (mca_coll_r2_reducer_choose(reducer->kernel, in, inout, count)) {
        return;
    }
    ompi_datatype_get_true_extent(reducer->dtype, &true_lb, &true_extent);
    ompi_datatype_get_extent(reducer->dtype, &lb, &extent);
    while (count > 0) {
        int part = count > (1 << 30) ? 1 << 30 : (int) count;

        ompi_op_reduce(reducer->op, (char *) (uintptr_t) in - true_lb, (char *) inout - true_lb,
                       part, reducer->dtype);
        in = (const char *) in + (ptrdiff_t) part * extent;
        inout = (char *) inout + (ptrdiff_t) part * extent;
        count -= (size_t) part;
    }
}

/* Elements lie at multiples of a positive extent and do not overlap. */
bool mca_coll_r2_reducible(const struct ompi_datatype_t *dtype)
{
    ptrdiff_t true_lb, true_extent, lb, extent;
    size_t bytes;

    ompi_datatype_get_true_extent(dtype, &true_lb, &true_extent);
    ompi_datatype_get_extent(dtype, &lb, &extent);
    ompi_datatype_type_size(dtype, &bytes);
    return bytes > 0 && extent > 0 && true_extent <= extent;
}

/*
 * Types whose memory can be sent as it lies: no holes, or predefined pairs such as MPI_DOUBLE_INT,
 * whose holes are padding of a C struct.
 */
static bool r2_reducer_dense(const struct ompi_datatype_t *dtype)
{
    return ompi_datatype_is_predefined(dtype) ||
           ompi_datatype_is_contiguous_memory_layout(dtype, 2);
}

/*
 * What all ranks must mean alike: a predefined operation by Open MPI's number of it, which is equal
 * everywhere, any other by whether it commutes, and the basic types of the elements.
 */
static uint64_t r2_reducer_meaning(struct ompi_op_t *op, const struct ompi_datatype_t *dtype)
{
    const bool intrinsic = 0 != (op->o_flags & OMPI_OP_FLAGS_INTRINSIC);
    const uint32_t foreign = ompi_op_is_commute(op) ? UINT32_MAX - 1 : UINT32_MAX;
    const uint32_t types = dtype->super.bdt_used >> OPAL_DATATYPE_FIRST_TYPE;

    return (uint64_t) (intrinsic ? (uint32_t) op->o_f_to_c_index : foreign) << 32 | types;
}

/*
 * Open MPI's own operations on its own types are functions without state. An operation of the user
 * belongs to his threads: it may have thread-local data, or be of a language whose run-time does
 * not know r2's thread.
 */
static bool r2_reducer_any_thread(const struct ompi_op_t *op, const struct ompi_datatype_t *dtype)
{
    return 0 != (op->o_flags & OMPI_OP_FLAGS_INTRINSIC) && ompi_datatype_is_predefined(dtype);
}

/*
 * One buffer for both is against the standard where it is not called MPI_IN_PLACE, but Open MPI
 * refuses it in MPI_Reduce and MPI_Allreduce only, and elsewhere its own components do what was
 * meant.
 */
int mca_coll_r2_call_reduce(mca_coll_r2_call_t *call, const void *in, void *out,
                            struct ompi_datatype_t *dtype, struct ompi_op_t *op)
{
    const bool result = R2_COLL_REDUCE != call->args.kind || !call->no_result;
    ptrdiff_t true_lb, true_extent, lb, extent;

    if (result && MPI_IN_PLACE == out) {
        return MPI_ERR_ARG;
    }
    ompi_datatype_get_true_extent(dtype, &true_lb, &true_extent);
    ompi_datatype_get_extent(dtype, &lb, &extent);
    call->reducer.op = op;
    call->reducer.dtype = dtype;
    call->reducer.tops = r2_reducer_tops(op, dtype);
    call->reducer.kernel = mca_coll_r2_reducer_kernel(op, dtype);
    call->args.reduce = r2_reducer_apply;
    call->args.kernel = call->reducer.kernel;
    call->args.any_thread = r2_reducer_any_thread(op, dtype);
    call->args.element_bytes = (uint64_t) extent;
    call->args.meaning = r2_reducer_meaning(op, dtype);
    call->args.commutative = ompi_op_is_commute(op);
    call->args.exact = r2_reducer_exact(op, dtype);
    call->args.in_place = MPI_IN_PLACE == in || (!call->no_result && in == out);
    if (!r2_reducer_dense(dtype)) {
        return mca_coll_r2_pieces_create(call, in, out);
    }
    call->args.in = call->args.in_place ? NULL : (const char *) in + true_lb;
    call->args.out = (char *) out + true_lb;
    return OMPI_SUCCESS;
}
