/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What is wrong with the arguments of one rank.
 *
 * Open MPI's MPI layer looks at arguments before a component does, but not at all of them:
 * MPI_Allgatherv does not look at the counts on intracommunicators, MPI_Scatter not at what the
 * root sends, MPI_Exscan not at the receive buffer, and with mpi_param_check 0 nothing looks at
 * anything. As there, a rank that is wrong returns before it sends, and its call takes no place
 * among those of the communicator.
 */
#include "call.h"

/* A type that is not committed is let through: what Open MPI lets through it moves, and so does
 * r2. */
static int r2_type_check(const struct ompi_datatype_t *dtype, size_t count)
{
    if (NULL == dtype || (0 != count && MPI_DATATYPE_NULL == dtype)) {
        return MPI_ERR_TYPE;
    }
    return count > PTRDIFF_MAX ? MPI_ERR_COUNT : OMPI_SUCCESS; /* negative as an int */
}

/* Adds what `count` elements of `each` bytes take. @return false: more than memory can have. */
static bool r2_add_bytes(ptrdiff_t *sum, ptrdiff_t count, ptrdiff_t each)
{
    ptrdiff_t bytes;

    return !__builtin_mul_overflow(count, each, &bytes) &&
           !__builtin_add_overflow(*sum, bytes, sum);
}

/* @param packed, next where the block starts, in the stream of data and in memory. */
static int r2_block_check(const mca_coll_r2_blocks_t *blocks, int block, ptrdiff_t *packed,
                          ptrdiff_t *next)
{
    const size_t count = mca_coll_r2_block_count(blocks, block);
    const struct ompi_datatype_t *dtype =
        NULL != blocks->dtype || NULL == blocks->dtypes ? blocks->dtype : blocks->dtypes[block];
    const int rc = r2_type_check(dtype, count);
    ptrdiff_t lb, extent, first = 0;
    size_t bytes;

    if (OMPI_SUCCESS != rc || 0 == count) {
        return rc;
    }
    ompi_datatype_type_size(dtype, &bytes);
    ompi_datatype_get_extent(dtype, &lb, &extent);
    if (bytes > PTRDIFF_MAX || !r2_add_bytes(packed, (ptrdiff_t) count, (ptrdiff_t) bytes) ||
        !r2_add_bytes(next, (ptrdiff_t) count, extent)) {
        return MPI_ERR_COUNT;
    }
    return !mca_coll_r2_displs_given(blocks->displs) ||
                   r2_add_bytes(&first, mca_coll_r2_displ_at(blocks->displs, block), extent)
               ? OMPI_SUCCESS
               : MPI_ERR_ARG;
}

int mca_coll_r2_check_blocks(const mca_coll_r2_blocks_t *blocks)
{
    ptrdiff_t packed = 0, next = 0;
    int rc = OMPI_SUCCESS;

    if (blocks->listed && !mca_coll_r2_counts_given(blocks->counts) && 0 < blocks->block_count) {
        return MPI_ERR_COUNT;
    }
    for (int i = 0; OMPI_SUCCESS == rc && i < blocks->block_count; ++i) {
        rc = r2_block_check(blocks, i, &packed, &next);
    }
    return rc;
}

static bool r2_side_matters(const mca_coll_r2_blocks_t *side)
{
    return NULL != side && MPI_IN_PLACE != side->base;
}

int mca_coll_r2_check_sides(const mca_coll_r2_blocks_t *from, const mca_coll_r2_blocks_t *to)
{
    const int rc = r2_side_matters(from) ? mca_coll_r2_check_blocks(from) : OMPI_SUCCESS;

    return OMPI_SUCCESS == rc && r2_side_matters(to) ? mca_coll_r2_check_blocks(to) : rc;
}
