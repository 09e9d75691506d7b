/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Bytes up to which a PML sends messages over btl/r2 eagerly: eager_limit EXPECTED.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_T_cvar_handle handle;
    unsigned bytes = 0;
    int provided, index, count;

    MPI_Init(&argc, &argv);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    if (2 == argc && MPI_SUCCESS == MPI_T_cvar_get_index("btl_r2_eager_limit", &index) &&
        MPI_SUCCESS == MPI_T_cvar_handle_alloc(index, NULL, &handle, &count)) {
        MPI_T_cvar_read(handle, &bytes);
        MPI_T_cvar_handle_free(&handle);
    }
    MPI_T_finalize();
    MPI_Finalize();
    printf("eager up to %u bytes\n", bytes);
    return 2 == argc && strtoul(argv[1], NULL, 10) == bytes ? 0 : 1;
}
