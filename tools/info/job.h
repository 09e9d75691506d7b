/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A short job without MPI on the hosts that mpirun starts this program on: what it plans from.
 */
#ifndef R2_TOOLS_INFO_JOB_H
#define R2_TOOLS_INFO_JOB_H

#include <stddef.h>

#include "r2/status.h"

/**
 * To be called by all processes of the job. Looks at rails, connects, moves data for about three
 * seconds, so that broken rails are found and rates seen, and lets all ranks agree.
 * @param text_p  topology file, owned by the caller; NULL on all ranks but 0.
 * @param error_p what failed, naming host, rail or parameter.
 * @return R2_OK, or why it failed.
 */
r2_status_t info_job_run(char **text_p, char *error_p, size_t error_bytes);

#endif
