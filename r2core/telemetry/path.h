/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Names of files that parameters give: one pattern for all processes of a job.
 */
#ifndef R2_TELEMETRY_PATH_H
#define R2_TELEMETRY_PATH_H

#include <stddef.h>
#include <stdint.h>

#include "r2/status.h"

/**
 * Replaces %h (host), %r (rank), %p (process id) and %%.
 * @param name   of the parameter, for the error.
 * @param text_p on error: what is wrong, naming the parameter.
 * @return R2_OK, R2_ERR_PARAM (another letter, or too long), R2_ERR_NO_MEMORY.
 */
r2_status_t r2_path_expand(const char *name, const char *pattern, const char *host, uint32_t rank,
                           char *path_p, size_t path_bytes, char *text_p, size_t text_bytes);

#endif
