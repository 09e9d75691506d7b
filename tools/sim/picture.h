/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Pictures: drawn by r2_timeline, which is given JSON.
 */
#ifndef R2_TOOLS_PICTURE_H
#define R2_TOOLS_PICTURE_H

#include <stdio.h>

#include "r2/status.h"

/** Writes what is to be drawn. @return R2_OK or why it failed. */
typedef r2_status_t (*picture_fn_t)(const void *arg, FILE *json);

/**
 * Runs r2_timeline, which lies beside this program or in PATH, on what `write` writes.
 * @param path .svg or .png.
 * @return R2_OK, what `write` returned, R2_ERR_NOT_FOUND (there is no r2_timeline), or
 * R2_ERR_SYSTEM, after r2_timeline has told what is wrong with the file.
 */
r2_status_t picture_draw(const char *path, picture_fn_t write, const void *arg);

#endif
