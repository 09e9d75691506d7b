/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI_Reduce_scatter and MPI_Reduce_scatter_block.
 */
#include "coll_r2.h"

int mca_coll_r2_reduce_scatter(const void *sbuf, void *rbuf, const int *rcounts,
                               struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                               struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    const mca_coll_r2_saved_t *saved = &((mca_coll_r2_module_t *) module)->saved;

    ++mca_coll_r2_component.calls.reduce_scatter;
    return saved->reduce_scatter(sbuf, rbuf, rcounts, dtype, op, comm,
                                 saved->reduce_scatter_module);
}

int mca_coll_r2_reduce_scatter_block(const void *sbuf, void *rbuf, int rcount,
                                     struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                                     struct ompi_communicator_t *comm,
                                     mca_coll_base_module_t *module)
{
    const mca_coll_r2_saved_t *saved = &((mca_coll_r2_module_t *) module)->saved;

    ++mca_coll_r2_component.calls.reduce_scatter_block;
    return saved->reduce_scatter_block(sbuf, rbuf, rcount, dtype, op, comm,
                                       saved->reduce_scatter_block_module);
}
