/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Snapshot: a file that always holds the newest text, whole.
 */
#ifndef R2_TELEMETRY_SNAPSHOT_H
#define R2_TELEMETRY_SNAPSHOT_H

#include <stddef.h>

#include "base/logger.h"
#include "r2/status.h"

/** All functions but create() take NULL: no file. A lock of its own guards the text that waits. */
typedef struct r2_snapshot r2_snapshot_t;

/**
 * @param name   of the parameter, for errors.
 * @param path   "": no file.
 * @param log    borrowed: outlives the snapshot. Gets one warning when writing fails.
 * @param text_p on error: what is wrong, naming the parameter.
 * @return R2_OK, R2_ERR_PARAM (cannot be written), R2_ERR_NO_MEMORY, R2_ERR_SYSTEM.
 */
r2_status_t r2_snapshot_create(const char *name, const char *path, const r2_log_t *log,
                               r2_snapshot_t **snapshot_p, char *text_p, size_t text_bytes);
/** Takes a text (malloc) that replaces what the file holds. Never waits for the file. NULL:
 * ignored. */
void r2_snapshot_put(r2_snapshot_t *snapshot, char *text);
/** Becomes readable when a text waits. @return -1: no file. */
int r2_snapshot_fd(const r2_snapshot_t *snapshot);
/** Writes it. May wait for the disk: not under the engine lock. One thread at a time. */
void r2_snapshot_flush(r2_snapshot_t *snapshot);
/** Writes the last text; the file stays. */
void r2_snapshot_destroy(r2_snapshot_t *snapshot);

#endif
