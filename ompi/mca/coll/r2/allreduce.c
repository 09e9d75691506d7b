/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI_Allreduce and MPI_Iallreduce.
 */
#include "call.h"

static int r2_allreduce_call(mca_coll_r2_call_t *call, const void *sbuf, void *rbuf, int count,
                             struct ompi_datatype_t *dtype, struct ompi_op_t *op,
                             struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    mca_coll_r2_call_init(call, R2_COLL_ALLREDUCE, comm, module);
    call->args.count = (uint64_t) count;
    return mca_coll_r2_call_reduce(call, sbuf, rbuf, dtype, op);
}

int mca_coll_r2_allreduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *dtype,
                          struct ompi_op_t *op, struct ompi_communicator_t *comm,
                          mca_coll_base_module_t *module)
{
    const mca_coll_r2_saved_t *saved = &((mca_coll_r2_module_t *) module)->saved;
    mca_coll_r2_call_t call;
    int rc;

    if (0 == count || !mca_coll_r2_reducible(dtype)) {
        return saved->allreduce(sbuf, rbuf, count, dtype, op, comm, saved->allreduce_module);
    }
    ++mca_coll_r2_component.calls.allreduce;
    rc = r2_allreduce_call(&call, sbuf, rbuf, count, dtype, op, comm, module);
    return OMPI_SUCCESS == rc ? mca_coll_r2_call_run(&call) : rc;
}

int mca_coll_r2_iallreduce(const void *sbuf, void *rbuf, int count, struct ompi_datatype_t *dtype,
                           struct ompi_op_t *op, struct ompi_communicator_t *comm,
                           ompi_request_t **request, mca_coll_base_module_t *module)
{
    const mca_coll_r2_saved_t *saved = &((mca_coll_r2_module_t *) module)->saved;
    mca_coll_r2_call_t call;
    int rc;

    if (0 == count || !mca_coll_r2_reducible(dtype)) {
        return saved->iallreduce(sbuf, rbuf, count, dtype, op, comm, request,
                                 saved->iallreduce_module);
    }
    ++mca_coll_r2_component.calls.iallreduce;
    rc = r2_allreduce_call(&call, sbuf, rbuf, count, dtype, op, comm, module);
    return OMPI_SUCCESS == rc ? mca_coll_r2_call_start(&call, comm, request) : rc;
}
