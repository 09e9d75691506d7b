/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Names of files that parameters give: one pattern for all processes of a job.
 */
#include "r2_config.h"

#include "telemetry/path.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* Replaces %h, %r, %p and %%. @return R2_ERR_PARAM: another letter, or the name is too long. */
static r2_status_t r2_path_replace(const char *pattern, const char *host, uint32_t rank,
                                   char *path_p, size_t path_bytes)
{
    FILE *path = fmemopen(path_p, path_bytes, "w");
    r2_status_t status = R2_OK;
    long used;

    if (NULL == path) {
        return R2_ERR_NO_MEMORY;
    }
    for (const char *next = pattern; '\0' != *next && R2_OK == status; ++next) {
        if ('%' != *next) {
            fputc(*next, path);
            continue;
        }
        switch (*++next) {
        case 'h':
            fputs(host, path);
            break;
        case 'r':
            fprintf(path, "%" PRIu32, rank);
            break;
        case 'p':
            fprintf(path, "%ld", (long) getpid());
            break;
        case '%':
            fputc('%', path);
            break;
        default:
            status = R2_ERR_PARAM;
            --next;
            break;
        }
    }
    fflush(path);
    used = ftell(path);
    if (0 != ferror(path) || used < 0 || (size_t) used >= path_bytes) {
        status = R2_ERR_PARAM;
    }
    fclose(path);
    if (R2_OK == status) {
        path_p[used] = '\0'; /* a stream that nothing was written to ends nothing */
    }
    return status;
}

r2_status_t r2_path_expand(const char *name, const char *pattern, const char *host, uint32_t rank,
                           char *path_p, size_t path_bytes, char *text_p, size_t text_bytes)
{
    r2_status_t status = r2_path_replace(pattern, host, rank, path_p, path_bytes);

    if (R2_OK != status) {
        snprintf(
            text_p, text_bytes,
            "%s = \"%s\" is no usable name: it may hold %%h (host), %%r (rank), %%p (process id) "
            "and %%%% (a percent sign)",
            name, pattern);
    }
    return status;
}
