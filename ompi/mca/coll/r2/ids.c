/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Calls by which Open MPI makes context ids (ompi_comm_nextcid_nb()). MPI_Comm_idup begins all but
 * the first whenever the one before is complete, on each rank at another place among the calls of
 * the application. So they have an order of their own.
 */
#include "call.h"

#include "ompi/datatype/ompi_datatype_internal.h"
#include "ompi/op/op.h"

/* The application's own of this form are made so, too: nothing tells them apart. */
static bool r2_call_is_of_ids(const mca_coll_r2_call_t *call)
{
    const struct ompi_op_t *op = call->reducer.op;

    return R2_COLL_ALLREDUCE == call->args.kind && 1 == call->args.count &&
           &ompi_mpi_int.dt == call->reducer.dtype &&
           (&ompi_mpi_op_max.op == op || &ompi_mpi_op_min.op == op);
}

r2_status_t mca_coll_r2_call_order(mca_coll_r2_call_t *call)
{
    r2_status_t status = R2_OK;

    if (!r2_call_is_of_ids(call)) {
        return R2_OK;
    }
    if (NULL == call->module->ids) {
        status = r2_sequence_open(call->comm, R2_COLL_ALLREDUCE, &call->module->ids);
    }
    call->comm = R2_OK == status ? call->module->ids : call->comm;
    return status;
}
