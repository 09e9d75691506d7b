/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI_Allreduce, MPI_Reduce, MPI_Scan and MPI_Exscan: reductions element by element.
 */
#include "call.h"

static int r2_reduction_make(mca_coll_r2_call_t *call, r2_coll_kind_t kind, const void *sbuf,
                             void *rbuf, size_t count, struct ompi_datatype_t *dtype,
                             struct ompi_op_t *op, int root, struct ompi_communicator_t *comm,
                             mca_coll_base_module_t *module)
{
    const mca_coll_r2_blocks_t blocks = {.block_count = 1, .count = count, .dtype = dtype};
    int rc = mca_coll_r2_check_blocks(&blocks);

    mca_coll_r2_call_init(call, kind, comm, module);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    if (0 == count) {
        return MCA_COLL_R2_NOTHING;
    }
    if (!mca_coll_r2_reducible(dtype)) {
        return MCA_COLL_R2_DECLINED;
    }
    call->args.count = count;
    call->args.root = root;
    call->no_result =
        R2_COLL_REDUCE == kind ? root != call->rank : R2_COLL_EXSCAN == kind && 0 == call->rank;
    return mca_coll_r2_call_reduce(call, sbuf, rbuf, dtype, op);
}

int mca_coll_r2_make_allreduce(mca_coll_r2_call_t *call, const void *sbuf, void *rbuf,
                               mca_coll_r2_mpi_count_t count, struct ompi_datatype_t *dtype,
                               struct ompi_op_t *op, struct ompi_communicator_t *comm,
                               mca_coll_base_module_t *module)
{
    return r2_reduction_make(call, R2_COLL_ALLREDUCE, sbuf, rbuf, count, dtype, op, 0, comm,
                             module);
}

int mca_coll_r2_make_reduce(mca_coll_r2_call_t *call, const void *sbuf, void *rbuf,
                            mca_coll_r2_mpi_count_t count, struct ompi_datatype_t *dtype,
                            struct ompi_op_t *op, int root, struct ompi_communicator_t *comm,
                            mca_coll_base_module_t *module)
{
    return r2_reduction_make(call, R2_COLL_REDUCE, sbuf, rbuf, count, dtype, op, root, comm,
                             module);
}

int mca_coll_r2_make_scan(mca_coll_r2_call_t *call, const void *sbuf, void *rbuf,
                          mca_coll_r2_mpi_count_t count, struct ompi_datatype_t *dtype,
                          struct ompi_op_t *op, struct ompi_communicator_t *comm,
                          mca_coll_base_module_t *module)
{
    return r2_reduction_make(call, R2_COLL_SCAN, sbuf, rbuf, count, dtype, op, 0, comm, module);
}

int mca_coll_r2_make_exscan(mca_coll_r2_call_t *call, const void *sbuf, void *rbuf,
                            mca_coll_r2_mpi_count_t count, struct ompi_datatype_t *dtype,
                            struct ompi_op_t *op, struct ompi_communicator_t *comm,
                            mca_coll_base_module_t *module)
{
    return r2_reduction_make(call, R2_COLL_EXSCAN, sbuf, rbuf, count, dtype, op, 0, comm, module);
}
