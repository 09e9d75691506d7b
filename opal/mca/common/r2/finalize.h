/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * How MPI_Finalize ends. Compiled into both components, as widen.c.
 */
#ifndef MCA_COMMON_R2_FINALIZE_H
#define MCA_COMMON_R2_FINALIZE_H

#include "opal_config.h"

#include <stdbool.h>

/** True if MPI_Finalize does not wait for the other processes (parameter async_mpi_finalize of Open MPI). */
bool mca_common_r2_async_finalize(void);

#endif
