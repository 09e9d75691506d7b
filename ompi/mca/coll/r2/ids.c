/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Calls by which Open MPI makes context ids (ompi_comm_nextcid_nb()). MPI_Comm_idup begins them
 * in the progress loop, on each rank at another place among the calls of the application. So they
 * have an order of their own: allreduces one, and reduces and broadcasts, which intercommunicators
 * make ids by in each of their groups, another. The application's own of the same form are in it,
 * too, since nothing tells them apart. What is of the form is equal on all ranks: of a broadcast
 * the length is, whatever its datatypes.
 */
#include "call.h"

#include "ompi/datatype/ompi_datatype_internal.h"
#include "ompi/op/op.h"

static bool r2_reduces_an_id(const mca_coll_r2_call_t *call)
{
    const struct ompi_op_t *op = call->reducer.op;
    const opal_datatype_t *dtype = &call->reducer.dtype->super;

    return 1 == call->args.count && sizeof(int) == dtype->size &&
           ompi_mpi_int.dt.super.bdt_used == dtype->bdt_used &&
           (&ompi_mpi_op_max.op == op || &ompi_mpi_op_min.op == op);
}

r2_status_t mca_coll_r2_ids_open(mca_coll_r2_module_t *module)
{
    r2_status_t status;

    if (r2_comm_leaves(module->r2)) {
        return R2_OK; /* who leaves calls to others has none that is not blocking */
    }
    status = r2_sequence_open(module->r2, R2_COLL_ALLREDUCE, &module->ids);
    return R2_OK == status ? r2_sequence_open(module->r2, R2_SEQUENCE_ANY_KIND, &module->group_ids)
                           : status;
}

void mca_coll_r2_ids_take(mca_coll_r2_call_t *call)
{
    const r2_coll_kind_t kind = call->args.kind;
    mca_coll_r2_module_t *module = call->module;

    if (R2_COLL_ALLREDUCE == kind && NULL != module->ids && r2_reduces_an_id(call)) {
        call->comm = module->ids;
    } else if (NULL != module->group_ids &&
               ((R2_COLL_REDUCE == kind && r2_reduces_an_id(call)) ||
                (R2_COLL_BCAST == kind && sizeof(int) == call->args.count))) {
        call->comm = module->group_ids;
    }
}
