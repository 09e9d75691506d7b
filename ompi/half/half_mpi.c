/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * float16 and bfloat16 for MPI programs: datatypes and operations of the user, as MPI has them.
 */
#include "r2_config.h"

#include "ompi/include/r2_mpi.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "half.h"

#define EXPORT __attribute__((visibility("default")))

static_assert(R2_HALF_KINDS == R2_MPI_BFLOAT16 + 1 && R2_HALF_OPS == R2_MPI_HALF_MAX + 1,
              "functions are found by these numbers");

/* MPI passes no argument of the operation's own: a function for each. */
static void apply(r2_mpi_half_t half, r2_mpi_half_op_t op, const void *in, void *inout,
                  const int *count, MPI_Datatype *type)
{
    int bytes = 0;

    MPI_Type_size(*type, &bytes);
    (*r2_half_best())[half][op](in, inout, (size_t) *count * (size_t) bytes / sizeof(uint16_t));
}

#define OPERATION(name, half, op)                                           \
    static void name(void *in, void *inout, int *count, MPI_Datatype *type) \
    {                                                                       \
        apply(half, op, in, inout, count, type);                            \
    }
OPERATION(float16_sum, R2_MPI_FLOAT16, R2_MPI_HALF_SUM)
OPERATION(float16_prod, R2_MPI_FLOAT16, R2_MPI_HALF_PROD)
OPERATION(float16_min, R2_MPI_FLOAT16, R2_MPI_HALF_MIN)
OPERATION(float16_max, R2_MPI_FLOAT16, R2_MPI_HALF_MAX)
OPERATION(bfloat16_sum, R2_MPI_BFLOAT16, R2_MPI_HALF_SUM)
OPERATION(bfloat16_prod, R2_MPI_BFLOAT16, R2_MPI_HALF_PROD)
OPERATION(bfloat16_min, R2_MPI_BFLOAT16, R2_MPI_HALF_MIN)
OPERATION(bfloat16_max, R2_MPI_BFLOAT16, R2_MPI_HALF_MAX)

static int is_known(r2_mpi_half_t half)
{
    return R2_MPI_FLOAT16 == half || R2_MPI_BFLOAT16 == half;
}

EXPORT int r2_mpi_half_type(r2_mpi_half_t half, MPI_Datatype *type_p)
{
    MPI_Datatype type;
    int rc;

    if (!is_known(half) || NULL == type_p) {
        return MPI_ERR_ARG;
    }
    rc = MPI_Type_contiguous(2, MPI_BYTE, &type);
    if (MPI_SUCCESS != rc) {
        return rc;
    }
    rc = MPI_Type_set_name(type, R2_MPI_FLOAT16 == half ? "R2_FLOAT16" : "R2_BFLOAT16");
    if (MPI_SUCCESS == rc) {
        rc = MPI_Type_commit(&type);
    }
    if (MPI_SUCCESS != rc) {
        (void) MPI_Type_free(&type);
        return rc;
    }
    *type_p = type;
    return MPI_SUCCESS;
}

/* Where r2 is loaded its GPUs have kernels for these functions. Found at run time: this library
 * needs no r2. */
static void tell(r2_mpi_half_t half, r2_mpi_half_op_t op, MPI_User_function *function)
{
    static const char *const kernels[R2_HALF_KINDS][R2_HALF_OPS] = {
        {"r2_reduce_sum_f16", "r2_reduce_prod_f16", "r2_reduce_min_f16", "r2_reduce_max_f16"},
        {"r2_reduce_sum_bf16", "r2_reduce_prod_bf16", "r2_reduce_min_bf16", "r2_reduce_max_bf16"},
    };
    bool (*stands_for)(const char *name, void (*function)(void));
    void *core = dlopen("libr2core.so.0", RTLD_LAZY | RTLD_NOLOAD);
    void *symbol = NULL == core ? NULL : dlsym(core, "r2_kernel_stands_for");

    if (NULL != symbol) {
        memcpy(&stands_for, &symbol, sizeof(stands_for));
        (void) stands_for(kernels[half][op], (void (*)(void)) function);
    }
    if (NULL != core) {
        dlclose(core);
    }
}

EXPORT int r2_mpi_half_op_create(r2_mpi_half_t half, r2_mpi_half_op_t op, MPI_Op *op_p)
{
    static MPI_User_function *const functions[R2_HALF_KINDS][R2_HALF_OPS] = {
        {float16_sum, float16_prod, float16_min, float16_max},
        {bfloat16_sum, bfloat16_prod, bfloat16_min, bfloat16_max},
    };

    if (!is_known(half) || (unsigned) op >= R2_HALF_OPS || NULL == op_p) {
        return MPI_ERR_ARG;
    }
    tell(half, op, functions[half][op]);
    return MPI_Op_create(functions[half][op], 1, op_p);
}
