/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI_Allreduce and MPI_Iallreduce.
 */
#include "coll_r2.h"

int mca_coll_r2_allreduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *dtype,
                          struct ompi_op_t *op, struct ompi_communicator_t *comm,
                          mca_coll_base_module_t *module)
{
    const mca_coll_r2_saved_t *saved = &((mca_coll_r2_module_t *) module)->saved;

    ++mca_coll_r2_component.calls.allreduce;
    return saved->allreduce(sbuf, rbuf, count, dtype, op, comm, saved->allreduce_module);
}

int mca_coll_r2_iallreduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *dtype,
                           struct ompi_op_t *op, struct ompi_communicator_t *comm,
                           ompi_request_t **request, mca_coll_base_module_t *module)
{
    const mca_coll_r2_saved_t *saved = &((mca_coll_r2_module_t *) module)->saved;

    ++mca_coll_r2_component.calls.iallreduce;
    return saved->iallreduce(sbuf, rbuf, count, dtype, op, comm, request, saved->iallreduce_module);
}
