/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Inside of a context. For ctx/ only.
 */
#ifndef R2_CTX_STATE_H
#define R2_CTX_STATE_H

#include <sched.h>
#include <stdatomic.h>

#include "ctx/comm.h"
#include "ctx/consent.h"
#include "ctx/core.h"
#include "ctx/detector.h"
#include "ctx/drive.h"
#include "ctx/estimator.h"
#include "ctx/parts.h"
#include "ctx/record.h"
#include "ctx/source.h"

struct r2_member;
struct r2_p2p;
struct r2_service;
struct r2_ctx_real;

/** What a component that uses the context gives, to progress what is not r2's. */
typedef struct r2_idler {
    r2_log_fn_t log; /* which component it is */
    void (*idle)(void *arg);
    void *arg;
} r2_idler_t;

/** One process. All but the fields marked atomic belongs to the engine lock, that of the core. */
struct r2_ctx {
    r2_core_t core;
    _Atomic int service_wants;    /* the service thread waits for the lock: let it in */
    _Atomic int app_wants;        /* an application thread found the lock taken: end the takeover */
    _Atomic int waiting;          /* application threads asleep in r2_coll_wait() */
    _Atomic bool crowded;         /* the job has more processes on this machine than it has cores */
    _Atomic int inside;           /* application threads in r2_coll_wait(), asleep or not */
    _Atomic uint64_t gave_way_ns; /* when a call that is over last did (r2_wait_gives_way()) */
    _Atomic(const void *) driver; /* whose calls of r2_ctx_progress_as() count; NULL: any */
    r2_ctx_config_t config;
    r2_idler_t idler;       /* whose `idle` config has */
    r2_idler_t other_idler; /* of who came before it, and may stay longer */
    r2_ctx_parts_t parts;
    r2_sources_t sources; /* what is looked at beside the rails */
    r2_comms_t comms;
    r2_consent_t consent;
    bool have_key;
    r2_record_t record;
    r2_hosts_t *hosts;       /* owned; NULL before somebody asks */
    r2_ctx_health_t *health; /* owned; NULL before the communicator of all processes */
    r2_estimator_t estimator;
    uint64_t last_delivery_ns; /* for the longest gap */
    struct r2_member
        *sleeps_on;     /* borrowed: an application thread sleeps until it writes; or NULL */
    struct r2_p2p *p2p; /* borrowed; NULL: not bound */
    struct r2_service *service; /* owned; NULL in the simulator */
    struct r2_ctx_real *real;   /* owned; NULL in the simulator */
    int epoll_fd;               /* owned: descriptors of all workers; -1 in the simulator */
};

/** The context around a core. */
static inline r2_ctx_t *r2_ctx_of(r2_core_t *core)
{
    return r2_container_of(core, r2_ctx_t, core);
}

/* ctx.c */
/** Tells all what net.info says. Before the launcher's fence. Engine lock. */
r2_status_t r2_ctx_publish(r2_ctx_t *ctx);

/* upcalls.c */
/** Gives the upcalls of the net, the probes and the out-of-band path. Before the net is started. */
void r2_upcalls_bind(r2_ctx_t *ctx);

/* users.c */
/** Does the job take part with this user? From now on peers are let in. Engine lock. @return as
 * r2_consent_of(), R2_ERR_SYSTEM (no key). */
r2_status_t r2_ctx_admit(r2_ctx_t *ctx, r2_user_t user);

/* start.c */
/**
 * Instead of r2_ctx_create(): tells all processes that this one takes no part, and the user why.
 * @return R2_OK; R2_ERR_UNTOLD: they were not told, which those of the same job take for a no, and
 * those of another job wait for.
 */
r2_status_t r2_ctx_decline(const r2_ctx_config_t *config, const char *why);
/** If the context was made with this log function: it is not called any more. */
void r2_ctx_forget_log(r2_ctx_t *ctx, r2_log_fn_t log);

/* drive.c */
/**
 * As r2_ctx_progress(), by who calls again at once until a collective is complete.
 * @param waits_for or NULL.
 * @param glance the last whole pass found nothing: only what is waited for is looked at.
 */
unsigned r2_ctx_progress_until(r2_ctx_t *ctx, const r2_coll_t *waits_for, bool glance);

/* wait.c */
/** A thread that waits for a collective. */
typedef struct r2_wait {
    const r2_coll_t *coll; /* borrowed */
    uint64_t idle_ns;      /* since when nothing came; 0: something did in the newest pass */
    uint32_t glances;      /* to come before the next pass that looks at all rails */
} r2_wait_t;

/** What it does after a pass. */
typedef enum r2_wait_next {
    R2_WAIT_AGAIN, /* something came: there may be more */
    R2_WAIT_POLL,  /* nothing did, of late: looks again (r2_wait_poll()) */
    R2_WAIT_SLEEP  /* nothing did for long */
} r2_wait_next_t;

/** Begins with a glance: it may be there already. */
static inline r2_wait_t r2_wait_for(const r2_coll_t *coll)
{
    return (r2_wait_t){.coll = coll, .glances = 1};
}
/** Drives once for a thread that waits. The simulator's processes do the same. */
r2_wait_next_t r2_wait_pass(r2_ctx_t *ctx, r2_wait_t *wait);

/** Progresses what is not r2's. No lock. */
void r2_wait_idle(const r2_ctx_t *ctx);

/**
 * A blocking call is over, or goes on for long, and its thread may never have waited, as who is
 * always the last does not: is it time for what else is under way?
 */
bool r2_wait_gives_way(r2_ctx_t *ctx);

/**
 * Between two looks. Lets others have the processor if processes of the job share it, or the user
 * wants so. Whoever else works on this host would keep it for some milliseconds.
 */
static inline void r2_wait_poll(const r2_ctx_t *ctx)
{
    const bool *yields = ctx->config.yields;

    if (atomic_load_explicit(&ctx->crowded, memory_order_relaxed) || (NULL != yields && *yields)) {
        (void) sched_yield();
    }
}

/* service.c */
/** Starts the thread: all sources are known, and files opened. */
r2_status_t r2_service_create(r2_ctx_t *ctx, struct r2_service **service_p);
void r2_service_destroy(struct r2_service *service);
/** An application thread sleeps elsewhere (sleeps_on), with the rails armed: they wake it. Engine
 * lock. */
void r2_service_watch(struct r2_service *service);

#endif
