/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Writes log lines.
 */
#include "r2_config.h"

#include "base/logger.h"

#include <pthread.h>
#include <stdio.h>

static const char *const r2_log_names[] = {"error", "warning", "info", "debug", "trace"};

static pthread_mutex_t r2_log_mutex = PTHREAD_MUTEX_INITIALIZER;
/* Held while a line is handed over: who is unloaded waits until nobody is in its function. */
static pthread_mutex_t r2_log_fn_mutex = PTHREAD_MUTEX_INITIALIZER;

void r2_log_lock(void)
{
    pthread_mutex_lock(&r2_log_mutex);
}

void r2_log_unlock(void)
{
    pthread_mutex_unlock(&r2_log_mutex);
}

void r2_log_write(const r2_log_t *log, int level, const char *format, ...)
{
    char line[1024];
    int used;
    va_list args;

    used = snprintf(line, sizeof(line), "r2 %s: %s: ", log->prefix,
                    r2_log_names[level > R2_LOG_TRACE ? R2_LOG_TRACE : level]);
    if (used < 0 || (size_t) used >= sizeof(line)) {
        used = 0;
    }
    va_start(args, format);
    vsnprintf(line + used, sizeof(line) - (size_t) used, format, args);
    va_end(args);
    pthread_mutex_lock(&r2_log_fn_mutex);
    if (NULL != log->fn) {
        log->fn(log->arg, level, line);
    } else {
        fprintf(stderr, "%s\n", line);
    }
    pthread_mutex_unlock(&r2_log_fn_mutex);
}

void r2_log_forget(r2_log_t *log)
{
    pthread_mutex_lock(&r2_log_fn_mutex);
    log->fn = NULL;
    pthread_mutex_unlock(&r2_log_fn_mutex);
}
