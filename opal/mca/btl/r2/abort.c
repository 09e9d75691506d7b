/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The end of a process that others count on, and that cannot go on.
 */
#include "btl_r2.h"

#include "ompi/communicator/communicator.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/mca/common/r2/help.h"

void mca_btl_r2_abort(const char *what, r2_status_t status)
{
    const char *host = opal_process_info.nodename;

    /* 4.1's mpirun loses help messages that reach it together. */
    opal_output(0, "btl:r2: %s, process %u, cannot go on: %s: %s", host,
                (unsigned) OPAL_PROC_MY_NAME.vpid, what, r2_status_string(status));
    mca_common_r2_help("help-btl-r2.txt", "alone", host, what, r2_status_string(status));
    ompi_mpi_abort(&ompi_mpi_comm_world.comm, MPI_ERR_OTHER);
}
