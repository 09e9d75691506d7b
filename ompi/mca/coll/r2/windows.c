/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What one-sided communication of Open MPI expects of collectives.
 */
#include "call.h"

#include "ompi/win/win.h"
#include "opal/runtime/opal_progress.h"

/* Each reads a few tens of messages of a process of this host. */
#define R2_WINDOWS_TURNS 8

/* MPI_WIN_NULL is one of them. */
static bool r2_windows_exist(void)
{
    return ompi_mpi_windows.size - ompi_mpi_windows.number_free > 1;
}

void mca_coll_r2_windows_settle(void)
{
    for (int turn = 0; turn < R2_WINDOWS_TURNS && r2_windows_exist(); ++turn) {
        opal_progress();
    }
}
