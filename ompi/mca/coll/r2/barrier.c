/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * MPI_Barrier.
 */
#include "call.h"

#include "ompi/win/win.h"
#include "opal/runtime/opal_progress.h"

/* Each reads a few tens of messages of a process of this host. */
#define R2_BARRIER_TURNS 8

int mca_coll_r2_make_barrier(mca_coll_r2_call_t *call, struct ompi_communicator_t *comm,
                             mca_coll_base_module_t *module)
{
    mca_coll_r2_call_init(call, R2_COLL_BARRIER, comm, module);
    return OMPI_SUCCESS;
}

/* MPI_WIN_NULL is one of them. */
static bool r2_barrier_has_windows(void)
{
    return ompi_mpi_windows.size - ompi_mpi_windows.number_free > 1;
}

void mca_coll_r2_barrier_over(void)
{
    for (int turn = 0; turn < R2_BARRIER_TURNS && r2_barrier_has_windows(); ++turn) {
        opal_progress();
    }
}
