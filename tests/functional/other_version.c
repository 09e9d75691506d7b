/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * To be preloaded: Open MPI says that it is another version than it is.
 */
#include <mpi.h>
#include <stdio.h>

__attribute__((visibility("default"))) int MPI_Get_library_version(char *version, int *length_p)
{
    *length_p = snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING, "Open MPI v9.8.7, package: test");
    return MPI_SUCCESS;
}
