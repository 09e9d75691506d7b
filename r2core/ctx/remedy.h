/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What a user can do about an error of the operating system while r2 starts.
 */
#ifndef R2_CTX_REMEDY_H
#define R2_CTX_REMEDY_H

#include <stddef.h>

#include "ctx/parts.h"
#include "r2/status.h"
#include "rail/nic_watch.h"

/** What could not be done, for a text to the user. */
typedef struct r2_failure {
    const char *what; /* "the hello listeners could not be opened" */
    const char *host_name;
    const r2_nic_t *nics; /* that it is about */
    size_t nic_count;
    int error;          /* errno; 0: not known */
    r2_status_t status; /* says why if errno does not */
} r2_failure_t;

/** "WHAT on HOST (NICs A, B): REASON. REMEDY." */
void r2_failure_text(const r2_failure_t *failure, char *text_p, size_t text_bytes);

/** The text of a failure on this host, with all its NICs and the errno of just now. */
void r2_failure_explain(const r2_ctx_parts_t *parts, const char *what, r2_status_t status,
                        char *text_p, size_t text_bytes);

#endif
