/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Threads of r2's own.
 */
#ifndef R2_BASE_THREAD_H
#define R2_BASE_THREAD_H

#include <pthread.h>

#include "r2/status.h"

/** Starts a thread to which no signal is delivered: those are the application's. Those of faults in
 * the thread itself are not blocked: the kernel would end the process, and no handler would say
 * where.
 * @param thread_p to be given to pthread_join()
 * @return R2_OK; R2_ERR_SYSTEM: there is none, errno says why. */
r2_status_t r2_thread_start(pthread_t *thread_p, void *(*run)(void *arg), void *arg);

#endif
