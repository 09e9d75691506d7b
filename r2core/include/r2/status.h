/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Status codes shared by all of r2.
 */
#ifndef R2_STATUS_H
#define R2_STATUS_H

/** Outcome of an r2 call: 0 ok, 1 in progress, < 0 error (see base/status.def). */
typedef enum r2_status {
#define R2_STATUS(name, value, text) name = (value),
#include "base/status.def"
#undef R2_STATUS
} r2_status_t;

#define R2_EXPORT __attribute__((visibility("default")))

/** Text of a status. @return a constant string, never NULL. */
R2_EXPORT const char *r2_status_string(r2_status_t status);

/** Name of a status, e.g. "R2_ERR_NO_PATH". @return a constant string, never NULL. */
R2_EXPORT const char *r2_status_name(r2_status_t status);

#endif
