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
#include "base/logger.h"
#include "base/util.h"
#include "ctx/observer.h"
#include "exec/exec.h"
#include "link/link.h"
#include "link/net.h"
#include "r2/counters.h"
#include "r2/params.h"

/** Who drives a process and finds nothing to do. */
typedef struct r2_idle {
    _Atomic uint64_t until_ns; /* so long calls look at nothing; 0: it is not idle */
    uint32_t passes;           /* with nothing to do, one after the other */
    uint64_t since_ns;         /* when the first of them was */
    uint64_t last_ns;          /* when the newest was */
} r2_idle_t;

/** One process. `lock` is the engine lock: all but the fields marked atomic belongs to it. */
typedef struct r2_core {
    pthread_mutex_t lock;
    _Atomic int app_blocked; /* application threads in r2_core_enter() */
    _Atomic uint32_t gone;   /* processes known to be gone; written under the lock */
    const r2_clock_t *clock; /* borrowed */
    r2_net_t net;
    r2_engine_t engine;
    r2_mem_t mem;
    r2_idle_t idle;
    r2_observer_t *observers; /* borrowed list: told what happens */
    r2_params_t params;
    r2_counters_t counters;
    r2_log_t log;
} r2_core_t;

/**
 * Takes the engine lock for an application thread that cannot do without. Mutexes are not fair: the
 * service thread, which may have work for as long as the application is away, must know and let it
 * in.
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

/** Gives the engine lock back after the application drove at `net.now_ns`. */
static inline void r2_core_leave_drove(r2_core_t *core)
{
    r2_observe_app_drove(core->observers, core->net.now_ns);
    pthread_mutex_unlock(&core->lock);
}

/**
 * Gives the engine lock back after something was started at `net.now_ns`. The application may not
 * come back for long, or only to start more: the service thread, which sleeps for ever while there
 * is nothing to do, has to look after it then.
 */
static inline void r2_core_leave_started(r2_core_t *core)
{
    core->idle.passes = 0;
    atomic_store_explicit(&core->idle.until_ns, 0, memory_order_relaxed);
    r2_observe_app_started(core->observers, core->net.now_ns);
    pthread_mutex_unlock(&core->lock);
}

/** @return the link to a process; NULL: none was needed yet. */
static inline r2_link_t *r2_core_link(const r2_core_t *core, uint32_t rank)
{
    return rank < core->net.size ? core->net.links[rank] : NULL;
}

/** Links in turn, of those that are there. None is taken away while a process runs. */
typedef struct r2_links {
    const r2_core_t *core; /* borrowed */
    const uint32_t *ranks; /* borrowed: [count] to whom; NULL: to everybody */
    uint32_t at, count;
} r2_links_t;

/** Links to everybody from a rank on. */
static inline r2_links_t r2_core_links(const r2_core_t *core, uint32_t from)
{
    return (r2_links_t){.core = core, .at = from, .count = core->net.size};
}

/** Links to some ranks. @param ranks [count], outlives what is returned. */
static inline r2_links_t r2_core_links_to(const r2_core_t *core, const uint32_t *ranks,
                                          int32_t count)
{
    return (r2_links_t){.core = core, .ranks = ranks, .count = (uint32_t) count};
}

/** @return the next one; NULL: that was all. */
static inline r2_link_t *r2_links_next(r2_links_t *links)
{
    while (links->at < links->count) {
        const uint32_t rank = NULL == links->ranks ? links->at : links->ranks[links->at];
        r2_link_t *link = links->core->net.links[rank];

        ++links->at;
        if (NULL != link) {
            return link;
        }
    }
    return NULL;
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
