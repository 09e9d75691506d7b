/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Agreement in a sequence of calls: which map its plans are made from, and when calls begin. What
 * calls are, and how maps travel, is the business of whom it serves (r2_agree_ops_t).
 */
#ifndef R2_CTX_AGREE_H
#define R2_CTX_AGREE_H

#include "ctx/core.h"
#include "ctx/estimator.h"
#include "ctx/map_sync.h"
#include "health/agreement.h"

/** A call's place in its sequence; part of the call. Engine lock. */
typedef struct r2_agree_call {
    struct r2_agree_call *prev, *next; /* in agree->queue, while it waits */
    struct r2_agree *opens; /* borrowed: no call: the place where that sequence was opened */
    uint64_t number;        /* among the calls that started, when `numbered` */
    bool numbered;
    bool carrying; /* every rank's result depends on every rank */
    bool blocking; /* its caller waits */
    bool is_long;  /* its map sync need not wait for the pause between two of them */
} r2_agree_call_t;

/** What agreement has done by those whose calls they are. Under the engine lock. */
typedef struct r2_agree_ops {
    /**
     * Starts an allreduce by all members, of sync->given into sync->taken, by an algorithm that
     * does not depend on maps; r2_agree_synced() when it is complete, be it inside of this.
     * @return R2_OK, or an error.
     */
    r2_status_t (*start_sync)(void *owner, r2_map_sync_t *sync);
    /** Frees what was started, complete or not: nothing refers to the map sync any more. */
    void (*end_sync)(void *owner);
    /** Begins a call that waited. @return R2_OK, or an error: the call has failed. */
    r2_status_t (*begin)(r2_agree_call_t *call);
    /** Ends a call that waited. */
    void (*fail)(r2_agree_call_t *call, r2_status_t status);
    /** All of an owner's calls fail, now and later: r2_agree_abort() inside of this. */
    void (*fail_all)(void *owner, r2_status_t status);
} r2_agree_ops_t;

/** What all sequences of a process that agree share. Engine lock. */
typedef struct r2_agree_common {
    r2_core_t *core;             /* borrowed */
    const r2_agree_ops_t *ops;   /* borrowed */
    r2_estimator_t *estimator;   /* borrowed */
    const r2_hosts_t *hosts;     /* borrowed: of the job; NULL with `ours` */
    const r2_health_map_t *ours; /* borrowed: what this process knows; NULL: nothing */
    r2_shared_map_t *maps;       /* borrowed list: what is agreed on */
    r2_plan_env_t *envs;         /* borrowed list: what plans are made from */
    struct r2_agree *ready;      /* list: where calls may begin */
    struct r2_agree *job;        /* borrowed: the first one of all processes; NULL: none */
} r2_agree_common_t;

/** Whose calls they are. */
typedef struct r2_agree_group {
    void *owner;           /* borrowed: for r2_agree_ops_t */
    uint64_t key;          /* for the log */
    const uint32_t *ranks; /* borrowed for the call: [size] */
    int32_t size, rank;
} r2_agree_group_t;

/** Agreement of one sequence: a communicator's own, or a persistent request's. Engine lock. */
typedef struct r2_agree {
    r2_agree_common_t *common; /* borrowed */
    struct r2_agree *root;     /* borrowed: of the communicator; of a communicator's own itself */
    void *owner;               /* borrowed */
    uint64_t key;              /* for the log */
    int32_t rank;              /* ours in the communicator */
    r2_agreement_t calls;
    r2_agree_call_t opening; /* its place in root->queue, until the rest is known */
    r2_shared_map_t *agreed; /* refcounted: of all hosts of the job */
    r2_plan_env_t *env;      /* refcounted: as agreed now; NULL: the sequence is not open yet */
    bool map_pending;        /* our map says more than the agreed one */
    uint64_t looked;         /* changes of our map when that was found out */
    r2_map_sync_t *sync;     /* owned: memory of the map sync under way */
    bool syncing;            /* the map sync was started */
    bool synced;             /* it is over, its result waits for an application thread */
    r2_status_t failed;      /* R2_OK, or why nothing begins any more */
    r2_agree_call_t *queue;  /* borrowed list: calls that wait, in order */
    struct r2_agree *next;   /* in common->ready */
    bool listed;
} r2_agree_t;

/**
 * Starts agreement for a communicator, if the job has health maps.
 * @param agree_p NULL where there is nothing to agree on. @return R2_OK, R2_ERR_NO_MEMORY.
 */
r2_status_t r2_agree_create(r2_agree_common_t *common, const r2_agree_group_t *group,
                            r2_agree_t **agree_p);
/**
 * Starts agreement for a sequence in a communicator that has agreement. Its first plans are made
 * from what the communicator agrees on before the next call: when calls wait there, that is not
 * known yet.
 * @return R2_OK, R2_ERR_NO_MEMORY.
 */
r2_status_t r2_agree_open(r2_agree_t *root, void *owner, r2_agree_t **agree_p);
/** @param agree may be NULL. */
void r2_agree_destroy(r2_agree_t *agree);

/**
 * A call takes its place.
 * @return R2_OK: it may begin now; R2_IN_PROGRESS: it has to wait; or an error.
 */
r2_status_t r2_agree_enter(r2_agree_t *agree, r2_agree_call_t *call);
/** At once after r2_agree_enter(): ops->begin() or ops->fail() will be called. */
void r2_agree_wait(r2_agree_t *agree, r2_agree_call_t *call);
/** A call that has entered is over. Only noted. @param map_pending what its map-pending bit
 * became. */
void r2_agree_left(r2_agree_t *agree, const r2_agree_call_t *call, bool map_pending);
/** What ops->start_sync() started is over. Only noted. */
void r2_agree_synced(r2_agree_t *agree);
/** Takes results of map syncs and begins calls that waited. Application threads only. */
void r2_agree_run(r2_agree_common_t *common);
/** Nothing of a sequence will begin any more. @param agree may be NULL. */
void r2_agree_abort(r2_agree_t *agree, r2_status_t status);

/** Does this rank know more than what plans of the sequence are made from? */
bool r2_agree_map_pending(r2_agree_t *agree);
/**
 * What plans are made from now; NULL: each rank on a host of its own, all rails healthy.
 * @param agree may be NULL.
 */
r2_plan_env_t *r2_agree_plan_env(const r2_agree_t *agree);

#endif
