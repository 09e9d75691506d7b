/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI_Bcast and MPI_Ibcast.
 */
#include "coll_r2.h"

int mca_coll_r2_bcast(void *buff, int count, struct ompi_datatype_t *dtype, int root,
                      struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    const mca_coll_r2_saved_t *saved = &((mca_coll_r2_module_t *) module)->saved;

    ++mca_coll_r2_component.calls.bcast;
    return saved->bcast(buff, count, dtype, root, comm, saved->bcast_module);
}

int mca_coll_r2_ibcast(void *buff, int count, struct ompi_datatype_t *dtype, int root,
                       struct ompi_communicator_t *comm, ompi_request_t **request,
                       mca_coll_base_module_t *module)
{
    const mca_coll_r2_saved_t *saved = &((mca_coll_r2_module_t *) module)->saved;

    ++mca_coll_r2_component.calls.ibcast;
    return saved->ibcast(buff, count, dtype, root, comm, request, saved->ibcast_module);
}
