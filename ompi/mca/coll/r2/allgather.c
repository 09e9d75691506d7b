/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI_Allgather, MPI_Allgatherv and MPI_Iallgather.
 */
#include "coll_r2.h"

int mca_coll_r2_allgather(const void *sbuf, int scount, struct ompi_datatype_t *sdtype, void *rbuf,
                          int rcount, struct ompi_datatype_t *rdtype,
                          struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    const mca_coll_r2_saved_t *saved = &((mca_coll_r2_module_t *) module)->saved;

    ++mca_coll_r2_component.calls.allgather;
    return saved->allgather(sbuf, scount, sdtype, rbuf, rcount, rdtype, comm,
                            saved->allgather_module);
}

int mca_coll_r2_allgatherv(const void *sbuf, int scount, struct ompi_datatype_t *sdtype, void *rbuf,
                           const int *rcounts, const int *disps, struct ompi_datatype_t *rdtype,
                           struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    const mca_coll_r2_saved_t *saved = &((mca_coll_r2_module_t *) module)->saved;

    ++mca_coll_r2_component.calls.allgatherv;
    return saved->allgatherv(sbuf, scount, sdtype, rbuf, rcounts, disps, rdtype, comm,
                             saved->allgatherv_module);
}

int mca_coll_r2_iallgather(const void *sbuf, int scount, struct ompi_datatype_t *sdtype, void *rbuf,
                           int rcount, struct ompi_datatype_t *rdtype,
                           struct ompi_communicator_t *comm, ompi_request_t **request,
                           mca_coll_base_module_t *module)
{
    const mca_coll_r2_saved_t *saved = &((mca_coll_r2_module_t *) module)->saved;

    ++mca_coll_r2_component.calls.iallgather;
    return saved->iallgather(sbuf, scount, sdtype, rbuf, rcount, rdtype, comm, request,
                             saved->iallgather_module);
}
