/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI_Bcast.
 */
#include "call.h"

int mca_coll_r2_make_bcast(mca_coll_r2_call_t *call, void *buff, mca_coll_r2_mpi_count_t count,
                           struct ompi_datatype_t *dtype, int root,
                           struct ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
    const mca_coll_r2_blocks_t blocks = {
        .base = buff, .block_count = 1, .count = count, .dtype = dtype};
    int rc = mca_coll_r2_check_blocks(&blocks);

    mca_coll_r2_call_init(call, R2_COLL_BCAST, comm, module);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    call->args.root = root;
    call->args.count = mca_coll_r2_bytes(count, dtype);
    if (0 == call->args.count) {
        return MCA_COLL_R2_NOTHING;
    }
    return mca_coll_r2_stream_init(&call->out, &blocks, &call->args.out, &call->args.out_convertor);
}
