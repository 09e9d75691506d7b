/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI_Bcast and MPI_Ibcast.
 */
#include "call.h"

static int r2_bcast_call(mca_coll_r2_call_t *call, void *buff, int count,
                         struct ompi_datatype_t *dtype, int root, struct ompi_communicator_t *comm,
                         mca_coll_base_module_t *module)
{
    size_t type_bytes;

    mca_coll_r2_call_init(call, R2_COLL_BCAST, comm, module);
    ompi_datatype_type_size(dtype, &type_bytes);
    call->args.root = root;
    call->args.count = (uint64_t) count * type_bytes;
    return mca_coll_r2_buffer_init(&call->out, buff, dtype, &count, NULL, 1, &call->args.out,
                                   &call->args.out_mover);
}

static bool r2_bcast_empty(int count, struct ompi_datatype_t *dtype)
{
    size_t type_bytes;

    ompi_datatype_type_size(dtype, &type_bytes);
    return 0 == count || 0 == type_bytes;
}

int mca_coll_r2_bcast(void *buff, int count, struct ompi_datatype_t *dtype, int root,
                      struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    mca_coll_r2_call_t call;
    int rc;

    if (r2_bcast_empty(count, dtype)) {
        return OMPI_SUCCESS;
    }
    ++mca_coll_r2_component.calls.bcast;
    rc = r2_bcast_call(&call, buff, count, dtype, root, comm, module);
    return OMPI_SUCCESS == rc ? mca_coll_r2_call_run(&call) : rc;
}

int mca_coll_r2_ibcast(void *buff, int count, struct ompi_datatype_t *dtype, int root,
                       struct ompi_communicator_t *comm, ompi_request_t **request,
                       mca_coll_base_module_t *module)
{
    mca_coll_r2_call_t call;
    int rc;

    if (r2_bcast_empty(count, dtype)) {
        return mca_coll_r2_call_nothing(request);
    }
    ++mca_coll_r2_component.calls.ibcast;
    rc = r2_bcast_call(&call, buff, count, dtype, root, comm, module);
    return OMPI_SUCCESS == rc ? mca_coll_r2_call_start(&call, comm, request) : rc;
}
