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

/** Why r2 stays out of such a job. */
#define MCA_COMMON_R2_ASYNC_MODEX                                                             \
    "pmix_base_async_modex is set, and MPI_Init does not wait until all processes have said " \
    "whether they use r2"

/**
 * True if MPI_Init does not wait until all have published (parameter pmix_base_async_modex of Open
 * MPI): what is not there may still come, so processes would not agree about r2.
 */
bool mca_common_r2_async_modex(void);
/** True if MPI_Finalize does not wait for the other processes (parameter async_mpi_finalize of Open
 * MPI). */
bool mca_common_r2_async_finalize(void);

#endif
