/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Open files: what this process will need in its job, and the limit on it.
 */
#ifndef R2_CTX_FILES_H
#define R2_CTX_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/logger.h"
#include "r2/status.h"

/**
 * Raises the soft limit to what the job needs, no further, as far as the hard limit goes.
 * Before anything of it is opened. @param size processes of the job.
 * @param ports of RDMA that are followed.
 * @param tight_p set if it is not enough for all lanes at one time.
 * @return R2_OK; R2_ERR_NO_DESCRIPTORS: it is not enough to begin, `text_p` says what is needed.
 */
r2_status_t r2_files_prepare(uint32_t size, uint32_t rails, uint32_t ports, const r2_log_t *log,
                             bool *tight_p, char *text_p, size_t text_bytes);

#endif
