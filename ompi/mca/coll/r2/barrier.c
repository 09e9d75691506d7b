/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI_Barrier and MPI_Ibarrier.
 */
#include "coll_r2.h"

int mca_coll_r2_barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    const mca_coll_r2_saved_t *saved = &((mca_coll_r2_module_t *) module)->saved;

    ++mca_coll_r2_component.calls.barrier;
    return saved->barrier(comm, saved->barrier_module);
}

int mca_coll_r2_ibarrier(struct ompi_communicator_t *comm, ompi_request_t **request,
                         mca_coll_base_module_t *module)
{
    const mca_coll_r2_saved_t *saved = &((mca_coll_r2_module_t *) module)->saved;

    ++mca_coll_r2_component.calls.ibarrier;
    return saved->ibarrier(comm, request, saved->ibarrier_module);
}
