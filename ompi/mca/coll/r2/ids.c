/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Calls by which Open MPI makes context ids (ompi_comm_nextcid_nb()). MPI_Comm_idup begins them
 * in the progress loop, on each rank at another place among the calls of the application. So they
 * have an order of their own. In a communicator they are allreduces, in the local groups of an
 * intercommunicator a reduce and a broadcast.
 */
#include "call.h"

#include "ompi/op/op.h"

static bool r2_reduces_an_id(const mca_coll_r2_call_t *call)
{
    const struct ompi_op_t *op = call->reducer.op;

    return 1 == call->args.count && sizeof(int) == call->reducer.dtype->super.size &&
           (&ompi_mpi_op_max.op == op || &ompi_mpi_op_min.op == op);
}

/* The application's own of this form are made so, too: nothing tells them apart. By what is equal
 * on all ranks: datatypes may be others. */
static bool r2_call_is_of_ids(const mca_coll_r2_call_t *call)
{
    const r2_coll_kind_t kind = call->args.kind;

    return R2_COLL_BCAST == kind
               ? sizeof(int) == call->args.count
               : (R2_COLL_ALLREDUCE == kind || R2_COLL_REDUCE == kind) && r2_reduces_an_id(call);
}

r2_status_t mca_coll_r2_ids_open(mca_coll_r2_module_t *module)
{
    /* who leaves calls to others has none that is not blocking */
    return r2_comm_leaves(module->r2)
               ? R2_OK
               : r2_sequence_open(module->r2, R2_SEQUENCE_ANY_KIND, &module->ids);
}

void mca_coll_r2_ids_take(mca_coll_r2_call_t *call)
{
    if (NULL != call->module->ids && r2_call_is_of_ids(call)) {
        call->comm = call->module->ids;
    }
}
