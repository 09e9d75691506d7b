/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI_Reduce_scatter and MPI_Reduce_scatter_block.
 */
#include "call.h"

#include <stdlib.h>

int mca_coll_r2_reduce_scatter(const void *sbuf, void *rbuf, const int *rcounts,
                               struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                               struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    const mca_coll_r2_saved_t *saved = &((mca_coll_r2_module_t *) module)->saved;
    uint64_t *counts, total = 0;
    mca_coll_r2_call_t call;
    int rc;

    for (int i = 0; i < ompi_comm_size(comm); ++i) {
        total += (uint64_t) rcounts[i];
    }
    if (0 == total || !mca_coll_r2_reducible(dtype)) {
        return saved->reduce_scatter(sbuf, rbuf, rcounts, dtype, op, comm,
                                     saved->reduce_scatter_module);
    }
    counts = malloc((size_t) ompi_comm_size(comm) * sizeof(*counts));
    if (NULL == counts) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    for (int i = 0; i < ompi_comm_size(comm); ++i) {
        counts[i] = (uint64_t) rcounts[i];
    }
    ++mca_coll_r2_component.calls.reduce_scatter;
    mca_coll_r2_call_init(&call, R2_COLL_REDUCE_SCATTER, comm, module);
    call.args.counts = counts;
    rc = mca_coll_r2_call_reduce(&call, sbuf, rbuf, dtype, op);
    if (OMPI_SUCCESS == rc) {
        rc = mca_coll_r2_call_run(&call);
    }
    free(counts);
    return rc;
}

int mca_coll_r2_reduce_scatter_block(const void *sbuf, void *rbuf, int rcount,
                                     struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                                     struct ompi_communicator_t *comm,
                                     mca_coll_base_module_t *module)
{
    const mca_coll_r2_saved_t *saved = &((mca_coll_r2_module_t *) module)->saved;
    mca_coll_r2_call_t call;
    int rc;

    if (0 == rcount || !mca_coll_r2_reducible(dtype)) {
        return saved->reduce_scatter_block(sbuf, rbuf, rcount, dtype, op, comm,
                                           saved->reduce_scatter_block_module);
    }
    ++mca_coll_r2_component.calls.reduce_scatter_block;
    mca_coll_r2_call_init(&call, R2_COLL_REDUCE_SCATTER_BLOCK, comm, module);
    call.args.count = (uint64_t) rcount;
    rc = mca_coll_r2_call_reduce(&call, sbuf, rbuf, dtype, op);
    return OMPI_SUCCESS == rc ? mca_coll_r2_call_run(&call) : rc;
}
