/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Core: what all parts of a process's r2 stand on. Collectives, point-to-point and adapters take
 * this, and nothing of the context around it.
 */
#ifndef R2_CTX_CORE_H
#define R2_CTX_CORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/util.h"
#include "ctx/observer.h"
#include "exec/exec.h"
#include "link/net.h"
#include "r2/counters.h"
#include "r2/params.h"

/** One process. `lock` is the engine lock: everything but the fields marked atomic belongs to it. */
typedef struct r2_core {
    pthread_mutex_t lock;
    _Atomic int app_blocked;   /* application threads in r2_core_enter(): the service thread lets them in */
    const r2_clock_t *clock;   /* borrowed */
    r2_net_t net;
    r2_engine_t engine;
    r2_observer_t *observers;  /* borrowed list: told what happens */
    r2_params_t params;
    r2_counters_t counters;
    r2_log_t log;
} r2_core_t;

/**
 * Takes the engine lock for an application thread that cannot do without. Mutexes are not fair: the
 * service thread, which may have work for as long as the application is away, must know and let it in.
 */
static inline void r2_core_enter(r2_core_t *core)
{
    atomic_fetch_add(&core->app_blocked, 1);
    pthread_mutex_lock(&core->lock);
    atomic_fetch_sub(&core->app_blocked, 1);
}

static inline void r2_core_leave(r2_core_t *core)
{
    pthread_mutex_unlock(&core->lock);
}

/**
 * Gives the engine lock back after something was started at `net.now_ns`. The application may not come back for
 * long: the service thread, which sleeps for ever while there is nothing to do, has to look after it then.
 */
static inline void r2_core_leave_started(r2_core_t *core)
{
    r2_observe_app_drove(core->observers, core->net.now_ns);
    pthread_mutex_unlock(&core->lock);
}

/** Tells an observer from now on what happens, after those that are there. Engine lock. */
static inline void r2_core_watch(r2_core_t *core, r2_observer_t *observer)
{
    LL_APPEND(core->observers, observer);
}

static inline void r2_core_unwatch(r2_core_t *core, r2_observer_t *observer)
{
    LL_DELETE(core->observers, observer);
}

#endif
