/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Log levels and the sink that an embedding program may give.
 */
#ifndef R2_LOG_H
#define R2_LOG_H

#include "r2/status.h"

/** Levels: error = cannot continue, warn = degraded, info = epoch change, debug = per object. */
enum {
    R2_LOG_ERROR = 0,
    R2_LOG_WARN = 1,
    R2_LOG_INFO = 2,
    R2_LOG_DEBUG = 3,
    R2_LOG_TRACE = 4
};

/** Receives one complete line without newline. May be called from the service thread. */
typedef void (*r2_log_fn_t)(void *arg, int level, const char *line);

/**
 * Around every call of a text printer that is not reentrant and that several components use: Open
 * MPI's parser of help texts is one. Threads whose communicators fail at the same time would crash
 * in it.
 */
R2_EXPORT void r2_log_lock(void);
R2_EXPORT void r2_log_unlock(void);

#endif
