/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Whether a component runs in the Open MPI that it was built for. Compiled into both, as widen.c.
 */
#ifndef MCA_COMMON_R2_VERSION_H
#define MCA_COMMON_R2_VERSION_H

#include "opal_config.h"

#include <stdbool.h>

/**
 * Compares the Open MPI that has loaded the component with the one that it was built for. If a
 * component that does not fit was asked for by name, a process of each host says so. To be called
 * before anything of Open MPI's: between versions its structures differ.
 * @param framework "coll" or "btl".
 * @return true if both have the same first two numbers of the version.
 */
bool mca_common_r2_fits(const char *framework);

#endif
