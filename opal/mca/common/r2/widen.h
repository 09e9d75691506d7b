/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What both components do to the selection of their framework. Compiled into each: neither needs
 * the other.
 */
#ifndef MCA_COMMON_R2_WIDEN_H
#define MCA_COMMON_R2_WIDEN_H

#include "opal_config.h"

#include <stdbool.h>

#include "opal/mca/base/base.h"
#include "opal/mca/base/mca_base_framework.h"

/** @return true if the framework's components were selected by a list that names r2. */
bool mca_common_r2_is_named(const mca_base_framework_t *framework);

/**
 * Makes a list that names r2 mean "r2 above the components of `fallback`".
 *
 * Does nothing unless the framework's components were selected by a list that names r2. To be
 * called while r2 registers its parameters.
 * @param fallback comma separated names; those that are not installed are left out. NULL or empty:
 * none.
 * @return OPAL_SUCCESS or an error of Open MPI's.
 */
int mca_common_r2_widen(mca_base_framework_t *framework, const char *fallback);

#endif
