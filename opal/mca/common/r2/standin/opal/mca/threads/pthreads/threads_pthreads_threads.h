/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Stand-in for a header that opal/mca/threads/threads.h of Open MPI 5.0 includes and that Debian
 * does not install. See threads_pthreads_mutex.h.
 */
#ifndef R2_STANDIN_THREADS_PTHREADS_THREADS_H
#define R2_STANDIN_THREADS_PTHREADS_THREADS_H

#include <pthread.h>
#include <sched.h>

static inline void opal_thread_yield(void)
{
    (void) sched_yield();
}

#endif
