/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Whether a component runs in the Open MPI that it was built for.
 *
 * Open MPI checks the version of the component interface, which is the same in 4.1 and 5.0; what is
 * behind the pointers is not. So a component of the other version would be taken, and crash.
 */
#include "opal/mca/common/r2/version.h"

#include <mpi.h>
#include <stdio.h>

#include "r2/params.h"

bool mca_common_r2_fits(const char *framework)
{
    char loaded[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0, major = -1, minor = -1;

    /* One of the few calls that are there before MPI_Init, and that stay as they are. */
    if (MPI_SUCCESS != MPI_Get_library_version(loaded, &length) ||
        2 != sscanf(loaded, "Open MPI v%d.%d", &major, &minor)) {
        return true; /* a vendor's build, with a text of its own */
    }
    if (OPAL_MAJOR_VERSION == major && OPAL_MINOR_VERSION == minor) {
        return true;
    }
    if (r2_params_names_r2(framework)) {
        fprintf(stderr,
                "%s:r2: not in use: it was built for Open MPI %d.%d, and loaded by Open MPI %d.%d. "
                "Build r2 for this Open MPI (configure --with-openmpi=DIR), and install it apart "
                "from the other; r2_info shows which one it finds.\n",
                framework, OPAL_MAJOR_VERSION, OPAL_MINOR_VERSION, major, minor);
    }
    return false;
}
