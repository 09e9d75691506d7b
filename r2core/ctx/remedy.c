/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What a user can do about an error of the operating system while r2 starts.
 */
#include "r2_config.h"

#include "ctx/remedy.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *r2_remedy(int error)
{
    switch (error) {
    case EMFILE:
        return "Raise the limit of open files (ulimit -n)";
    case ENFILE:
        return "Raise the host's limit of open files (sysctl fs.file-max)";
    case EAGAIN:
        return "Raise the limit of processes and threads (ulimit -u, pids.max of the container)";
    case ENOMEM:
    case ENOBUFS:
        return "Give the job more memory";
    case EPERM:
    case EACCES:
    case EAFNOSUPPORT:
    case EPROTONOSUPPORT:
        return "Allow it in the container's seccomp profile or the host's security module";
    case EADDRNOTAVAIL:
    case ENETDOWN:
    case ENODEV:
        return "Check the NICs with r2_info, or name others with --mca coll_r2_rails";
    default:
        return "r2_info shows what r2 finds on this host";
    }
}

static void r2_failure_nics(const r2_failure_t *failure, char *text_p, size_t text_bytes)
{
    size_t used = 0;

    text_p[0] = '\0';
    for (size_t i = 0; i < failure->nic_count && used + 1 < text_bytes; ++i) {
        used += (size_t) snprintf(text_p + used, text_bytes - used, "%s%s",
                                  0 == i ? (1 == failure->nic_count ? " (NIC " : " (NICs ") : ", ",
                                  failure->nics[i].name);
    }
    if (used > 0 && used + 1 < text_bytes) {
        snprintf(text_p + used, text_bytes - used, ")");
    }
}

void r2_failure_text(const r2_failure_t *failure, char *text_p, size_t text_bytes)
{
    char nics[256];
    const char *why =
        0 != failure->error ? strerror(failure->error) : r2_status_string(failure->status);

    r2_failure_nics(failure, nics, sizeof(nics));
    snprintf(text_p, text_bytes, "%s on %s%s: %s. %s, or run without r2 (--mca coll ^r2).",
             failure->what, failure->host_name, nics, why, r2_remedy(failure->error));
}

void r2_failure_explain(const r2_ctx_parts_t *parts, const char *what, r2_status_t status,
                        char *text_p, size_t text_bytes)
{
    const r2_failure_t failure = {.what = what,
                                  .host_name = parts->host_name,
                                  .nics = parts->nics,
                                  .nic_count = parts->nic_count,
                                  .error = errno,
                                  .status = status};

    r2_failure_text(&failure, text_p, text_bytes);
}
