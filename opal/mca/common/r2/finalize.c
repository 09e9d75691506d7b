/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * How MPI_Init begins and MPI_Finalize ends. The variables are of other layers: asked for by name.
 */
#include "opal/mca/common/r2/finalize.h"

#include <stddef.h>

#include "opal/mca/base/mca_base_var.h"

static bool r2_is_set(int var_idx)
{
    const bool *value = NULL;

    return 0 <= var_idx && OPAL_SUCCESS == mca_base_var_get_value(var_idx, &value, NULL, NULL) &&
           NULL != value && *value;
}

/* Set by default since 6, where what was published is collected in the meantime, and waited for
 * before it is read; unless it is not collected. */
bool mca_common_r2_async_modex(void)
{
    if (OPAL_MAJOR_VERSION >= 6 &&
        r2_is_set(mca_base_var_find("opal", "pmix", "base", "collect_data"))) {
        return false;
    }
    return r2_is_set(mca_base_var_find("opal", "pmix", "base", "async_modex"));
}

bool mca_common_r2_async_finalize(void)
{
    return r2_is_set(mca_base_var_find("ompi", "async", "mpi", "finalize"));
}
