/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Log lines of r2: lowercase text, objects by number, never user data.
 */
#ifndef R2_BASE_LOGGER_H
#define R2_BASE_LOGGER_H

#include <stdarg.h>

#include "r2/log.h"

/**
 * Where log lines of one context go. Shared by the application and the service thread:
 * set once before either runs; only `fn` may be taken away later (r2_log_forget()).
 */
typedef struct r2_log {
    int level;       /* lines above this level are dropped */
    r2_log_fn_t fn;  /* NULL: stderr */
    void *arg;       /* borrowed: outlives the log */
    char prefix[96]; /* "host:rank" put before each line */
} r2_log_t;

void r2_log_write(const r2_log_t *log, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Lines go to stderr from now on. Nobody is in `fn` any more when it returns. */
void r2_log_forget(r2_log_t *log);

#define r2_log_at(log, lvl, ...)                     \
    do {                                             \
        if ((lvl) <= (log)->level) {                 \
            r2_log_write((log), (lvl), __VA_ARGS__); \
        }                                            \
    } while (0)

#define r2_error(log, ...) r2_log_at(log, R2_LOG_ERROR, __VA_ARGS__)
#define r2_warn(log, ...)  r2_log_at(log, R2_LOG_WARN, __VA_ARGS__)
#define r2_info(log, ...)  r2_log_at(log, R2_LOG_INFO, __VA_ARGS__)
#define r2_debug(log, ...) r2_log_at(log, R2_LOG_DEBUG, __VA_ARGS__)
#define r2_trace(log, ...) r2_log_at(log, R2_LOG_TRACE, __VA_ARGS__)

#endif
