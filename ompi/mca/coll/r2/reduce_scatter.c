/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI_Reduce_scatter and MPI_Reduce_scatter_block.
 */
#include "call.h"

#include <stdlib.h>

int mca_coll_r2_make_reduce_scatter(mca_coll_r2_call_t *call, const void *sbuf, void *rbuf,
                                    mca_coll_r2_mpi_counts_t rcounts, struct ompi_datatype_t *dtype,
                                    struct ompi_op_t *op, struct ompi_communicator_t *comm,
                                    mca_coll_base_module_t *module)
{
    const mca_coll_r2_blocks_t blocks = {.block_count = ompi_comm_size(comm),
                                         .listed = true,
                                         .counts = mca_coll_r2_counts_of(rcounts),
                                         .dtype = dtype};
    int rc = mca_coll_r2_check_blocks(&blocks);
    uint64_t total = 0;

    mca_coll_r2_call_init(call, R2_COLL_REDUCE_SCATTER, comm, module);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    for (int i = 0; i < call->size; ++i) {
        total += mca_coll_r2_count_at(blocks.counts, i);
    }
    if (0 == total) {
        return MCA_COLL_R2_NOTHING;
    }
    if (!mca_coll_r2_reducible(dtype)) {
        return MCA_COLL_R2_DECLINED;
    }
    call->counts = malloc((size_t) call->size * sizeof(*call->counts));
    if (NULL == call->counts) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    for (int i = 0; i < call->size; ++i) {
        call->counts[i] = mca_coll_r2_count_at(blocks.counts, i);
    }
    call->args.counts = call->counts;
    return mca_coll_r2_call_reduce(call, sbuf, rbuf, dtype, op);
}

int mca_coll_r2_make_reduce_scatter_block(mca_coll_r2_call_t *call, const void *sbuf, void *rbuf,
                                          mca_coll_r2_mpi_count_t rcount,
                                          struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                                          struct ompi_communicator_t *comm,
                                          mca_coll_base_module_t *module)
{
    const mca_coll_r2_blocks_t blocks = {
        .block_count = ompi_comm_size(comm), .count = rcount, .dtype = dtype};
    int rc = mca_coll_r2_check_blocks(&blocks);

    mca_coll_r2_call_init(call, R2_COLL_REDUCE_SCATTER_BLOCK, comm, module);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    if (0 == rcount) {
        return MCA_COLL_R2_NOTHING;
    }
    if (!mca_coll_r2_reducible(dtype)) {
        return MCA_COLL_R2_DECLINED;
    }
    call->args.count = blocks.count;
    return mca_coll_r2_call_reduce(call, sbuf, rbuf, dtype, op);
}
