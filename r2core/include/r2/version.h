/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Versions of r2 and of the libraries it runs on.
 */
#ifndef R2_VERSION_H
#define R2_VERSION_H

#include <stddef.h>

#include "r2/status.h"

/** A library in use, as it tells its own version at run time. */
typedef struct r2_library {
    const char *name;    /* "UCX" */
    const char *version; /* "1.13.1"; static */
} r2_library_t;

/** Version of r2core, "0.1.0". */
R2_EXPORT const char *r2_version(void);

/**
 * Versions of UCX, PMIx, hwloc and libsodium, in this order. Not thread safe.
 * @param count_p number of rows. @return the first row, static.
 */
R2_EXPORT const r2_library_t *r2_libraries(size_t *count_p);

#endif
