/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Stand-in for a header that opal/mca/threads/mutex.h of Open MPI 5.0 includes and that Debian does
 * not install.
 *
 * Found last (-idirafter): the real one is used where it is installed. Locks of Open MPI that is
 * built for POSIX threads are POSIX threads' own: no other layout is compatible with its libraries.
 */
#ifndef R2_STANDIN_THREADS_PTHREADS_MUTEX_H
#define R2_STANDIN_THREADS_PTHREADS_MUTEX_H

#include <pthread.h>
#include <stdbool.h>

typedef pthread_mutex_t opal_thread_internal_mutex_t;
typedef pthread_cond_t opal_thread_internal_cond_t;

#define OPAL_THREAD_INTERNAL_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#define OPAL_THREAD_INTERNAL_COND_INITIALIZER  PTHREAD_COND_INITIALIZER

static inline int opal_thread_internal_mutex_init(opal_thread_internal_mutex_t *mutex,
                                                  bool recursive)
{
    pthread_mutexattr_t kind;
    int error;

    if (!recursive) {
        return pthread_mutex_init(mutex, NULL);
    }
    error = pthread_mutexattr_init(&kind);
    if (0 == error) {
        error = pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
        if (0 == error) {
            error = pthread_mutex_init(mutex, &kind);
        }
        (void) pthread_mutexattr_destroy(&kind);
    }
    return error;
}

static inline void opal_thread_internal_mutex_destroy(opal_thread_internal_mutex_t *mutex)
{
    (void) pthread_mutex_destroy(mutex);
}

static inline void opal_thread_internal_mutex_lock(opal_thread_internal_mutex_t *mutex)
{
    (void) pthread_mutex_lock(mutex);
}

/* 0: locked; as opal_mutex_trylock(). */
static inline int opal_thread_internal_mutex_trylock(opal_thread_internal_mutex_t *mutex)
{
    return 0 != pthread_mutex_trylock(mutex);
}

static inline void opal_thread_internal_mutex_unlock(opal_thread_internal_mutex_t *mutex)
{
    (void) pthread_mutex_unlock(mutex);
}

static inline int opal_thread_internal_cond_init(opal_thread_internal_cond_t *cond)
{
    return pthread_cond_init(cond, NULL);
}

static inline void opal_thread_internal_cond_destroy(opal_thread_internal_cond_t *cond)
{
    (void) pthread_cond_destroy(cond);
}

static inline void opal_thread_internal_cond_wait(opal_thread_internal_cond_t *cond,
                                                  opal_thread_internal_mutex_t *mutex)
{
    (void) pthread_cond_wait(cond, mutex);
}

static inline void opal_thread_internal_cond_signal(opal_thread_internal_cond_t *cond)
{
    (void) pthread_cond_signal(cond);
}

static inline void opal_thread_internal_cond_broadcast(opal_thread_internal_cond_t *cond)
{
    (void) pthread_cond_broadcast(cond);
}

#endif
