/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI_Barrier.
 */
#include "call.h"

int mca_coll_r2_make_barrier(mca_coll_r2_call_t *call, struct ompi_communicator_t *comm,
                             mca_coll_base_module_t *module)
{
    mca_coll_r2_call_init(call, R2_COLL_BARRIER, comm, module);
    return OMPI_SUCCESS;
}
