/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * r2core's parameters as variables of Open MPI: both components register them, with equal types.
 */
#ifndef MCA_COMMON_R2_PARAMS_H
#define MCA_COMMON_R2_PARAMS_H

#include "opal_config.h"

#include "opal/mca/base/mca_base_var.h"
#include "r2/params.h"

static inline mca_base_var_type_t mca_common_r2_var_type(r2_param_type_t type)
{
    switch (type) {
    case R2_PARAM_BOOL:
        return MCA_BASE_VAR_TYPE_BOOL;
    case R2_PARAM_UINT:
        return MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG;
    case R2_PARAM_SIZE:
        return MCA_BASE_VAR_TYPE_SIZE_T;
    case R2_PARAM_STRING:
        break;
    }
    return MCA_BASE_VAR_TYPE_STRING;
}

#endif
