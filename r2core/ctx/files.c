/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Open files: what this process will need in its job, and the limit on it.
 */
#include "r2_config.h"

#include "ctx/files.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/util.h"
#include "r2/fds.h"

/* Left to the application, beyond what it has open when it calls MPI_Init. */
#define R2_FILES_APPLICATION 64u
/* Below so many lanes at one time r2 does not begin: one to get on with, and in place of the other
 * what calls to stopped processes take (room.c). */
#define R2_FILES_LANES_MIN 2u

r2_status_t r2_files_prepare(uint32_t size, uint32_t rails, uint32_t ports, const r2_log_t *log,
                             bool *tight_p, char *text_p, size_t text_bytes)
{
    size_t least = r2_fds_least(R2_FILES_LANES_MIN, rails);
    /* two ranks may need less than that */
    size_t wanted = r2_max(r2_fds_of_job(size, rails), least) + r2_fds_of_ports(ports);
    size_t raised, has;

    *tight_p = false;
    if (size < 2) {
        return R2_OK;
    }
    raised = r2_fds_raise(wanted + R2_FILES_APPLICATION);
    if (raised > 0) {
        r2_info(log,
                "limit of open files raised by %zu to %zu: for %" PRIu32 " ranks x %" PRIu32
                " rails",
                raised, r2_fds_limit(), size, rails);
    }
    has = r2_fds_free(wanted);
    if (has < least) {
        snprintf(text_p, text_bytes,
                 "of the %zu files that a process may open (ulimit -n) %zu are free, and r2 needs "
                 "%zu; for all lanes of %" PRIu32 " ranks x %" PRIu32 " rails it needs %zu: raise "
                 "the limit, hard and soft, to %zu",
                 r2_fds_limit(), has, least, size, rails, wanted,
                 r2_fds_limit() - has + wanted + R2_FILES_APPLICATION);
        return R2_ERR_NO_DESCRIPTORS;
    }
    *tight_p = has < wanted;
    if (*tight_p) {
        r2_info(log,
                "limit of open files %zu: lanes that are idle will be closed; all lanes of %" PRIu32
                " ranks x %" PRIu32 " rails need %zu more",
                r2_fds_limit(), size, rails, wanted - has);
    }
    return R2_OK;
}
