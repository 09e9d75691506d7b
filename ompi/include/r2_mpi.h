/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What MPI programs can know of r2, and float16 and bfloat16 for reductions. All of it works on any
 * Open MPI, with r2 and without. Only the functions that begin with r2_mpi_half_ need a library,
 * libr2_mpi (-lr2_mpi).
 */
#ifndef R2_MPI_H
#define R2_MPI_H

#include <mpi.h>
#include <string.h>

/** How the text of the error class begins that r2 adds where MPI has none. */
#define R2_MPI_PROC_FAILED "MPI_ERR_PROC_FAILED:"

/**
 * The error class of collectives that end because a process of the communicator has died. Of the
 * communicator no call works any more; others that the dead process is not in go on. Open MPI 5.0
 * has such a class (MPI_ERR_PROC_FAILED); for 4.1 r2 adds one in MPI_Init, with the same number on
 * all ranks. Call it after MPI_Init.
 * @return the class; MPI_ERR_LASTCODE, which no error has, without r2 on 4.1.
 */
static inline int r2_mpi_err_proc_failed(void)
{
#ifdef MPI_ERR_PROC_FAILED
    return MPI_ERR_PROC_FAILED;
#else
    char text[MPI_MAX_ERROR_STRING];
    int *last, found, length;

    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &found);
    for (int code = MPI_ERR_LASTCODE + 1; found && code <= *last; ++code) {
        if (MPI_SUCCESS == MPI_Error_string(code, text, &length) &&
            0 == strncmp(text, R2_MPI_PROC_FAILED, strlen(R2_MPI_PROC_FAILED))) {
            return code;
        }
    }
    return MPI_ERR_LASTCODE;
#endif
}

#ifdef __cplusplus
extern "C" {
#endif

/** Floats of two bytes. Open MPI 4.1 and 5.0 have no datatypes for them. */
typedef enum r2_mpi_half {
    R2_MPI_FLOAT16,  /**< IEEE 754 binary16: 5 bits of exponent, 10 of fraction */
    R2_MPI_BFLOAT16, /**< the upper half of a float: 8 and 7 */
} r2_mpi_half_t;

typedef enum r2_mpi_half_op {
    R2_MPI_HALF_SUM,
    R2_MPI_HALF_PROD,
    R2_MPI_HALF_MIN,
    R2_MPI_HALF_MAX,
} r2_mpi_half_op_t;

/**
 * A datatype for them: two bytes, committed, named R2_FLOAT16 or R2_BFLOAT16. It can be given to
 * any call, and be part of other datatypes; the operations below take it, other types of two bytes
 * (as MPI_Type_contiguous(2, MPI_BYTE), or MPI_UINT16_T), and contiguous types of these.
 * @param type_p to be given to MPI_Type_free()
 * @return MPI_SUCCESS; MPI_ERR_ARG: there is no such kind; or an error of MPI.
 */
int r2_mpi_half_type(r2_mpi_half_t half, MPI_Datatype *type_p);

/**
 * An operation on them, commutative. A sum or product is that of two values in float32, rounded to
 * nearest, ties to even, after each pair; so sums of many ranks depend on their order, as those of
 * MPI_FLOAT do. NaN wins in all four, as the quiet NaN without sign; -0 is less than +0; denormal
 * numbers count. The bits are equal on all processors, with AVX2 and without, and on GPUs, which r2
 * has reduce what lies in their memory (docs/gpu.md).
 * @param op_p to be given to MPI_Op_free()
 * @return as above.
 */
int r2_mpi_half_op_create(r2_mpi_half_t half, r2_mpi_half_op_t op, MPI_Op *op_p);

#ifdef __cplusplus
}
#endif

#endif
