/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Observers: who is told what happens in a process, and changes nothing there.
 */
#ifndef R2_CTX_OBSERVER_H
#define R2_CTX_OBSERVER_H

#include <stddef.h>
#include <stdint.h>

/** Called under the engine lock, some in the middle of a sweep. NULL: of no interest. */
typedef struct r2_observer {
    /** The application drove the engine, or started something. */
    void (*app_drove)(void *arg, uint64_t now_ns);
    void *arg;                 /* borrowed: outlives the observer */
    struct r2_observer *next;
} r2_observer_t;

static inline void r2_observe_app_drove(const r2_observer_t *observers, uint64_t now_ns)
{
    for (; NULL != observers; observers = observers->next) {
        if (NULL != observers->app_drove) {
            observers->app_drove(observers->arg, now_ns);
        }
    }
}

#endif
