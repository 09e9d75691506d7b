/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Inside of a context. For ctx/ only.
 */
#ifndef R2_CTX_STATE_H
#define R2_CTX_STATE_H

#include <stdatomic.h>

#include "base/hash.h"
#include "ctx/agree.h"
#include "ctx/consent.h"
#include "ctx/core.h"
#include "ctx/gauge.h"
#include "ctx/health.h"
#include "ctx/parts.h"
#include "ctx/record.h"
#include "plan/known.h"
#include "r2/coll.h"

struct r2_p2p;
struct r2_service;
struct r2_ctx_real;

/** A collective of the public API. */
struct r2_coll {
    r2_exec_t exec;                /* first member */
    r2_comm_t *comm;               /* borrowed: outlives the collective */
    uint32_t seq;                  /* of the part under way */
    uint32_t parts_left;           /* of a series, behind the one under way: seq + 1, seq + 2, ... */
    r2_coll_done_fn_t done;
    void *done_arg;                /* borrowed */
    _Atomic int status;            /* r2_status_t; written under the engine lock, read by anyone */
    struct r2_coll *prev, *next;   /* in comm->active, until the last part is complete */
    bool in_active;
    struct r2_coll *next_done;     /* in ctx->completed */
    /* agreement */
    uint64_t call;                 /* number among the calls that started, when `numbered` */
    bool numbered, carrying;
    bool settled;                  /* the first part has begun */
    r2_basis_t *basis;             /* refcounted: what all parts of a series are planned from; NULL: what is agreed now */
    bool deferred;                 /* waits in comm->agree->queue */
    struct r2_coll *wait_prev, *wait_next;
    r2_coll_args_t wanted;         /* while it waits */
    uint64_t *lists;               /* owned: counts and displs of wanted */
    r2_comm_t *merge_for;          /* borrowed: this is a merge of maps for that sequence */
    r2_comm_t *opens;              /* borrowed: no call: the place where that sequence was opened */
    uint64_t begun_ns;             /* a blocking call that is no series; else 0 */
};

/** A communicator identity: context id and members. Survives its communicators, to count them. */
typedef struct r2_comm_name {
    uint64_t hash;                 /* R2_COMM_HASH_BITS of context id and members */
    uint32_t incarnation;          /* of the newest communicator with it */
    r2_comm_t *live;               /* NULL: freed */
    UT_hash_handle hh;
} r2_comm_name_t;

/**
 * A communicator, or a sequence of calls of its own within one (sequence.c). Its calls match those of other
 * ranks by their number in the sequence.
 */
struct r2_comm {
    r2_ctx_t *ctx;                 /* borrowed */
    r2_comm_t *root;               /* borrowed: the communicator; of a communicator itself */
    uint64_t key;                  /* of the root: hash << R2_COMM_SEQ_BITS | incarnation */
    uint32_t sequence;             /* 0: the communicator's own. Odd: merges before calls of the one before it */
    r2_coll_kind_t kind;           /* of all calls of a sequence that is not the communicator's own */
    uint32_t *ranks;               /* process numbers; owned by the root */
    int32_t size, rank;
    uint32_t next_seq;
    struct r2_coll *active;        /* list of collectives under way */
    r2_agree_t *agree;             /* owned; NULL: plans never change (one rank, no health map, merges) */
    UT_hash_handle hh;             /* in root->sequences */
    /* of the root only */
    r2_comm_name_t *name;          /* borrowed: in ctx->names */
    r2_status_t poisoned;          /* R2_OK, or why */
    r2_status_t heard;             /* R2_OK, or why it failed at a peer, for which there was no memory among the news */
    bool untold;                   /* poisoned, and no memory was left to tell all members */
    r2_comm_t *sequences;          /* owned hash by `sequence`: all but its own */
    uint32_t next_sequence;        /* the one that is opened next */
};

#define R2_COMM_SEQ_BITS 20
#define R2_COMM_SEQ_MASK ((1u << R2_COMM_SEQ_BITS) - 1)

/**
 * A peer's word that a communicator failed for good, kept for one that is not created here yet; or that
 * messages with a peer were given up, which all communicators with it may miss.
 */
typedef struct r2_comm_news {
    struct r2_comm_news *next;
    uint64_t key;
    uint32_t rank;                 /* who says so, or the peer */
    bool lost;                     /* all communicators with `rank` */
    r2_status_t status;
} r2_comm_news_t;

#define R2_PLANS_KNOWN 64          /* (communicator, class of lengths, map) that plans were worked out for */
#define R2_COMM_NEWS_MAX 1024      /* kept at a time */

/** One process. Everything but the fields marked atomic belongs to the engine lock, that of the core. */
struct r2_ctx {
    r2_core_t core;                /* first member */
    _Atomic int service_wants;     /* the service thread waits for the lock: let it in */
    _Atomic int app_wants;         /* an application thread found the lock taken: end the takeover */
    _Atomic int waiting;           /* application threads asleep in r2_coll_wait() */
    _Atomic(const void *) driver;  /* whose calls of r2_ctx_progress_as() count; NULL: the next one's */
    r2_ctx_config_t config;
    r2_ctx_parts_t parts;
    r2_comm_name_t *names;         /* owned hash */
    r2_comm_news_t *news;          /* owned list: aborts heard of and not applied */
    uint32_t news_count;
    bool fresh_news;               /* some of them have not been looked at */
    bool missed_loss;              /* a lost peer could not be noted: all links are looked at */
    r2_comm_t *agreeing;           /* list: communicators where calls may begin */
    r2_shared_map_t *maps;         /* borrowed list: maps that communicators agree on */
    r2_basis_t *bases;             /* borrowed list: what their plans are made from */
    r2_plan_cache_t plans;
    struct r2_coll *completed;     /* list: done functions to be called outside the lock */
    r2_consent_t consent;
    bool have_key;
    r2_record_t record;
    r2_ctx_health_t *health;       /* owned; NULL before the communicator of all processes */
    r2_comm_t *job;                /* borrowed: the first communicator of all processes that agrees; NULL: none */
    r2_gauge_t gauge;
    uint64_t last_delivery_ns;     /* for the longest gap */
    struct r2_p2p *p2p;            /* borrowed; NULL: not bound */
    struct r2_service *service;    /* owned; NULL in the simulator */
    struct r2_ctx_real *real;      /* owned; NULL in the simulator */
    int epoll_fd;                  /* owned: descriptors of all workers; -1 in the simulator */
};

/** The context around a core. */
static inline r2_ctx_t *r2_ctx_of(r2_core_t *core)
{
    return (r2_ctx_t *) (void *) core;
}

/* ctx.c */
/** Tells all what net.info says. Before the launcher's fence. Engine lock. */
r2_status_t r2_ctx_publish(r2_ctx_t *ctx);
/** Polls probes and out-of-band path where they have no descriptor or a timer of theirs is due. Engine lock. */
void r2_ctx_poll(r2_ctx_t *ctx);

/* upcalls.c */
/** Gives the upcalls of the net, the probes and the out-of-band path. Before the net is started. */
void r2_upcalls_bind(r2_ctx_t *ctx);

/* users.c */
/** Starts the detector: all processes of the job are known. Engine lock. @return as r2_ctx_health_create(). */
r2_status_t r2_ctx_detect(r2_ctx_t *ctx);

/* start.c */
/** Instead of r2_ctx_create(): tells all processes that this one takes no part, and the user why. */
void r2_ctx_decline(const r2_ctx_config_t *config, const char *why);
/** If the context was made with this log function: neither it nor `idle` is called any more. */
void r2_ctx_forget_log(r2_ctx_t *ctx, r2_log_fn_t log);

/* comm.c */
/** r2_consent_of(), and gets the job's key. Engine lock. */
r2_status_t r2_comm_admit(r2_ctx_t *ctx, r2_user_t user);
/** Compares incarnations, with wrap. */
bool r2_comm_is_older(uint32_t a, uint32_t b);
void r2_comm_poison(r2_comm_t *comm, r2_status_t status);
void r2_comm_aborted(void *ctx, uint32_t rank, uint64_t comm_key, r2_status_t status);
void r2_comm_stray(void *ctx, uint32_t rank, uint64_t comm_key);
void r2_comm_lost(void *ctx, uint32_t rank, r2_status_t status);
void r2_comm_apply_news(r2_ctx_t *ctx);
void r2_comm_forget_news(r2_ctx_t *ctx);

/* sequence.c. Engine lock. */
r2_status_t r2_sequence_create(r2_comm_t *root, uint32_t number, r2_coll_kind_t kind,
                               r2_comm_t **sequence_p);
/** All its collectives are over or withdrawn. */
void r2_sequence_destroy(r2_comm_t *sequence);
/** @return NULL: there is none with this number. */
r2_comm_t *r2_sequence_find(r2_comm_t *root, uint32_t number);
/** True if that number was given to a sequence that is gone. Asked where there is none. */
bool r2_sequence_is_over(r2_comm_t *root, uint32_t number);

/* tell.c: a poisoned communicator, its members */
/** Tells those who are to hear it from us. Engine lock. */
void r2_comm_tell(r2_comm_t *comm);
/** Once there is memory for links to all of them. */
void r2_comm_tell_again(r2_comm_t *comm);
/** A member is lost that may not have passed it on: tells those who would have heard it from it. */
void r2_comm_tell_around(r2_comm_t *comm, uint32_t rank);

/* belongs.c: upcalls of the net (link/net.h) */
bool r2_comm_over(void *ctx, const r2_tag_t *tag);
bool r2_comm_sends(void *ctx, uint32_t rank, const r2_tag_t *tag, uint32_t digest);
bool r2_comm_receives(void *ctx, uint32_t rank, const r2_tag_t *tag, uint32_t digest);
/** True if there is a communicator with this key that has not failed. */
bool r2_comm_is_sound(r2_ctx_t *ctx, uint64_t comm_key);

/* coll.c */
void r2_coll_collect(r2_ctx_t *ctx);
void r2_coll_deliver(r2_ctx_t *ctx);
/** Begins a call that waited. Engine lock. */
r2_status_t r2_coll_begin_waiting(struct r2_coll *coll);
/** Ends a call that waited. Engine lock. */
void r2_coll_fail(struct r2_coll *coll, r2_status_t status);
/** Starts a merge of maps; *merge_p is set before it begins. Engine lock. */
r2_status_t r2_coll_start_merge(r2_comm_t *merges, const r2_coll_args_t *args, r2_comm_t *comm,
                                struct r2_coll **merge_p);
void r2_coll_discard(struct r2_coll *coll);

/* forced.c */
/** Name of the algorithm that a parameter asks for; NULL or empty: none does. */
const char *r2_coll_forced(const r2_params_t *params, r2_coll_kind_t kind);

/* agree.c */
bool r2_agree_dirty(struct r2_coll *coll);
/** Does this rank know more than what plans of the communicator are made from? Engine lock. */
bool r2_agree_is_dirty(r2_comm_t *comm);

/* ctx.c */
/** As r2_ctx_progress(), by who calls again at once until a collective is complete. @param waits_for or NULL. */
unsigned r2_ctx_progress_until(r2_ctx_t *ctx, const r2_coll_t *waits_for);

/* service.c */
r2_status_t r2_service_create(r2_ctx_t *ctx, r2_nic_watch_t *watch, struct r2_service **service_p);
void r2_service_destroy(struct r2_service *service);

#endif
