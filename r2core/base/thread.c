/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Threads of r2's own.
 */
#include "r2_config.h"

#include "base/thread.h"

#include <errno.h>
#include <signal.h>

#include "base/util.h"

r2_status_t r2_thread_start(pthread_t *thread_p, void *(*run)(void *arg), void *arg)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    sigset_t others, before;
    int rc;

    sigfillset(&others);
    for (size_t i = 0; i < r2_array_count(faults); ++i) {
        sigdelset(&others, faults[i]);
    }
    pthread_sigmask(SIG_SETMASK, &others, &before);
    rc = pthread_create(thread_p, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = rc;
    return 0 == rc ? R2_OK : R2_ERR_SYSTEM;
}
