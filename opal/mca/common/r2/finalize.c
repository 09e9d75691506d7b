/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * How MPI_Finalize ends. The variable is the MPI layer's, and btl/r2 links with the layer below it: asked for by name.
 */
#include "opal/mca/common/r2/finalize.h"

#include <stddef.h>

#include "opal/mca/base/mca_base_var.h"

bool mca_common_r2_async_finalize(void)
{
    int var_idx = mca_base_var_find("ompi", "async", "mpi", "finalize");
    const bool *value = NULL;

    return 0 <= var_idx && OPAL_SUCCESS == mca_base_var_get_value(var_idx, &value, NULL, NULL) &&
           NULL != value && *value;
}
