/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI_Barrier and MPI_Ibarrier.
 */
#include "call.h"

int mca_coll_r2_barrier(struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    mca_coll_r2_call_t call;

    ++mca_coll_r2_component.calls.barrier;
    mca_coll_r2_call_init(&call, R2_COLL_BARRIER, comm, module);
    return mca_coll_r2_call_run(&call);
}

int mca_coll_r2_ibarrier(struct ompi_communicator_t *comm, ompi_request_t **request,
                         mca_coll_base_module_t *module)
{
    mca_coll_r2_call_t call;

    ++mca_coll_r2_component.calls.ibarrier;
    mca_coll_r2_call_init(&call, R2_COLL_BARRIER, comm, module);
    return mca_coll_r2_call_start(&call, comm, request);
}
