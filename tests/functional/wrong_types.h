/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Types that no collective takes, or not with every count.
 */
#ifndef R2_TESTS_WRONG_TYPES_H
#define R2_TESTS_WRONG_TYPES_H

#include <mpi.h>

/** Types that are wrong somewhere. */
typedef struct types {
    MPI_Datatype uncommitted, derived, huge, far;
} types_t;

static inline types_t types_make(void)
{
    types_t types;
    MPI_Datatype large;

    MPI_Type_contiguous(2, MPI_INT, &types.uncommitted);
    MPI_Type_contiguous(2, MPI_INT, &types.derived);
    MPI_Type_commit(&types.derived);
    MPI_Type_contiguous(1 << 30, MPI_CHAR, &large);
    MPI_Type_contiguous(1 << 30, large, &types.huge);
    MPI_Type_commit(&types.huge);
    MPI_Type_free(&large);
    MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint) 1 << 58, &types.far);
    MPI_Type_commit(&types.far);
    return types;
}

static inline void types_free(types_t *types)
{
    MPI_Type_free(&types->uncommitted);
    MPI_Type_free(&types->derived);
    MPI_Type_free(&types->huge);
    MPI_Type_free(&types->far);
}

#endif
