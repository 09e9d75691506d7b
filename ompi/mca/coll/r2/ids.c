/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Calls by which Open MPI makes context ids (ompi_comm_nextcid_nb()). MPI_Comm_idup begins them
 * in the progress loop, on each rank at another place among the calls of the application. So they
 * have an order of their own.
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

r2_status_t mca_coll_r2_ids_open(mca_coll_r2_module_t *module)
{
    /* who leaves calls to others has none that is not blocking */
    return r2_comm_leaves(module->r2)
               ? R2_OK
               : r2_sequence_open(module->r2, R2_COLL_ALLREDUCE, &module->ids);
}

void mca_coll_r2_ids_take(mca_coll_r2_call_t *call)
{
    if (NULL != call->module->ids && r2_call_is_of_ids(call)) {
        call->comm = call->module->ids;
    }
}
