/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Agreement in a sequence of calls: which map its plans are made from, and when calls begin.
 */
#ifndef R2_CTX_AGREE_H
#define R2_CTX_AGREE_H

#include "ctx/core.h"
#include "ctx/gauge.h"
#include "ctx/merge.h"
#include "health/agreement.h"
#include "r2/coll.h"

struct r2_comm;
struct r2_coll;

/** Agreement of one sequence: a communicator's own, or a persistent request's. Engine lock. */
typedef struct r2_agree {
    r2_agreement_t calls;
    struct r2_coll *opening;   /* owned: its place in the queue of its communicator, until the rest is known */
    r2_shared_map_t *agreed;   /* refcounted: of all hosts of the job */
    r2_basis_t *basis;         /* refcounted: as agreed now; NULL: the sequence is not open yet */
    bool dirty;                /* our map says more than the agreed one */
    uint64_t looked;           /* changes of our map when that was found out */
    struct r2_comm *merges;    /* owned: sequence of its merges; NULL: there was none yet */
    struct r2_coll *merge;     /* owned: the merge under way */
    r2_merge_t *merging;       /* owned: its memory */
    bool merged;               /* it is over, its result waits for an application thread */
    struct r2_coll *queue;     /* borrowed list: calls that wait, in order */
    struct r2_comm *next;      /* in common->ready */
    bool listed;
} r2_agree_t;

/** What all sequences of a process that agree share. Engine lock. */
typedef struct r2_agree_common {
    r2_core_t *core;               /* borrowed */
    r2_gauge_t *gauge;             /* borrowed */
    const r2_hosts_t *hosts;       /* borrowed: of the job; NULL with `ours` */
    const r2_health_map_t *ours;   /* borrowed: what this process knows; NULL: nobody agrees on anything */
    r2_shared_map_t *maps;         /* borrowed list: what is agreed on */
    r2_basis_t *bases;             /* borrowed list: what plans are made from */
    struct r2_comm *ready;         /* list: where calls may begin */
    struct r2_comm *job;           /* borrowed: the first communicator of all processes that agrees; NULL: none */
} r2_agree_common_t;

/** Starts agreement for a communicator, if the job has health maps. Engine lock. @return R2_OK, R2_ERR_NO_MEMORY. */
r2_status_t r2_agree_create(struct r2_comm *comm);
/**
 * Starts agreement for a sequence in a communicator that has agreement. Its first plans are made from
 * what the communicator agrees on before the next call: when calls wait there, that is not known yet.
 * Engine lock. @return R2_OK, R2_ERR_NO_MEMORY.
 */
r2_status_t r2_agree_open(struct r2_comm *sequence);
void r2_agree_destroy(struct r2_comm *comm);

/** True if a call of these arguments carries the dirty bit: every rank's result depends on every rank. */
bool r2_agree_carries(const struct r2_comm *comm, const r2_coll_args_t *args);
/**
 * A call takes its place. @return true: it may begin now; false: it waits (arguments are copied) and is
 * begun by r2_agree_run(). Negative status in *status_p: out of memory.
 */
bool r2_agree_enter(struct r2_coll *coll, const r2_coll_args_t *args, r2_status_t *status_p);
/** A call, or the merge before one, is over. Only noted. */
void r2_agree_left(struct r2_coll *coll);
/** Takes results of merges and begins calls that waited. Application threads only. */
void r2_agree_run(r2_agree_common_t *common);
/** Nothing of a sequence will begin any more. */
void r2_agree_abort(struct r2_comm *comm, r2_status_t status);

/** What plans are made from now; NULL: each rank on a host of its own, all rails healthy. */
const r2_basis_t *r2_agree_basis(const struct r2_comm *comm);

#endif
