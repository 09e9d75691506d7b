/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Inside of communicators and collectives. They stand on the core. For ctx/ only.
 */
#ifndef R2_CTX_COMM_H
#define R2_CTX_COMM_H

#include <stdatomic.h>

#include "base/hash.h"
#include "base/pool.h"
#include "ctx/agree.h"
#include "ctx/core.h"
#include "ctx/programs.h"
#include "exec/exec.h"
#include "r2/coll.h"

typedef struct r2_comms r2_comms_t;

/** What was planned of a call before it began (coll_pins.c). */
typedef struct r2_coll_ahead {
    r2_program_t *program; /* owned; NULL: none */
    uint64_t map;          /* r2_plan_env_t.map_digest, which it is for */
} r2_coll_ahead_t;

/** Nobody needs it any more. Also for zeros. */
static inline void r2_coll_ahead_drop(r2_coll_ahead_t *ahead)
{
    if (NULL != ahead->program) {
        r2_program_put(ahead->program);
        ahead->program = NULL;
    }
}

/** A collective of the public API. */
struct r2_coll {
    r2_exec_t exec;      /* first member */
    r2_comm_t *comm;     /* borrowed: outlives the collective */
    uint32_t seq;        /* of the part under way */
    uint32_t parts_left; /* of a series, behind the one under way: seq + 1, seq + 2, ... */
    r2_coll_done_fn_t done;
    void *done_arg;              /* borrowed */
    _Atomic int status;          /* r2_status_t; written under the engine lock, read by anyone */
    struct r2_coll *prev, *next; /* in comm->active, until the last part is complete */
    bool in_active;
    struct r2_coll *next_done; /* in comms->completed, at last in comms->released */
    /* agreement */
    r2_agree_call_t place;
    bool settled;          /* the first part has begun */
    r2_plan_env_t *env;    /* refcounted: what a series is planned from; NULL: what is agreed */
    r2_coll_args_t wanted; /* while it waits */
    uint64_t *lists;       /* owned: counts and displs of wanted */
    r2_comm_t *sync_for;   /* borrowed: this is a sync of maps for that sequence */
    uint64_t begun_ns;     /* a blocking call that is no series; else 0 */
    r2_coll_ahead_t ahead; /* of the part that is about to begin */
    bool drive_due;        /* nobody had driven for long when it began */
};

/** A communicator identity: context id and members. Survives its communicators, to count them. */
typedef struct r2_comm_name {
    uint64_t hash;        /* R2_COMM_HASH_BITS of context id and members */
    uint32_t incarnation; /* of the newest communicator with it */
    r2_comm_t *live;      /* NULL: freed */
    r2_status_t failed;   /* R2_OK, or why the newest one had failed when it was freed */
    UT_hash_handle hh;
} r2_comm_name_t;

/**
 * A communicator, or a sequence of calls of its own within one (sequence.c). Its calls match those
 * of other ranks by their number in the sequence.
 */
struct r2_comm {
    r2_comms_t *comms;   /* borrowed */
    r2_comm_t *root;     /* borrowed: the communicator; of a communicator itself */
    uint64_t key;        /* of the root: hash << R2_COMM_SEQ_BITS | incarnation */
    uint32_t sequence;   /* 0: the communicator's own. Odd: map syncs for the one before */
    r2_coll_kind_t kind; /* of all calls of another sequence, or R2_SEQUENCE_ANY_KIND */
    uint32_t *ranks;     /* process numbers; owned by the root */
    int32_t size, rank;
    uint32_t next_seq;      /* written by the thread that calls, without the lock, too: atomic */
    uint32_t program_hint;  /* where the program of its newest call was (r2_programs_find()) */
    struct r2_coll *active; /* list of collectives under way */
    r2_agree_t *agree;    /* owned; NULL: plans never change (one rank, no health map, map syncs) */
    r2_comm_t *map_syncs; /* owned: sequence of its syncs of maps; NULL: there was none yet */
    struct r2_coll *sync; /* owned: the map sync under way */
    UT_hash_handle hh;    /* in root->sequences */
    /* of the root only */
    r2_comm_name_t *name;        /* borrowed: in comms->names */
    r2_status_t failed;          /* R2_OK, or why; read without the lock, too: atomic */
    r2_status_t heard;           /* R2_OK, or why it failed at a peer: no memory for that fault */
    bool untold;                 /* failed, and no memory was left to tell all members */
    r2_comm_t *next_untold;      /* in comms->untold */
    r2_comm_t *sequences;        /* owned hash by `sequence`: all but its own */
    r2_comm_t *sequenced;        /* borrowed: the one of them that was found last, or NULL */
    uint32_t next_sequence;      /* the one that is opened next */
    struct r2_coll_local *local; /* owned: calls within a host; NULL: none */
    bool leaves;                 /* what those do not make is left to others */
};

#define R2_COMM_SEQ_BITS 20
#define R2_COMM_SEQ_MASK ((1u << R2_COMM_SEQ_BITS) - 1)

/** Compares incarnations, with wrap. */
static inline bool r2_comm_is_older(uint32_t a, uint32_t b)
{
    return a != b && ((b - a) & R2_COMM_SEQ_MASK) <= R2_COMM_SEQ_MASK / 2;
}

/**
 * A peer's word that a communicator failed for good, kept for one that is not created here yet; or
 * that messages with a peer were given up, which all communicators with it may miss.
 */
typedef struct r2_comm_fault {
    struct r2_comm_fault *next;
    uint64_t key;
    uint32_t rank; /* who says so, or the peer */
    bool lost;     /* all communicators with `rank` */
    r2_status_t status;
} r2_comm_fault_t;

#define R2_COMM_FAULTS_MAX 1024 /* kept at a time */

/** Communicators of a process, and their collectives. Engine lock. */
struct r2_comms {
    r2_core_t *core; /* borrowed */
    r2_agree_common_t agree;
    r2_comm_name_t *names;   /* owned hash */
    r2_comm_name_t *named;   /* borrowed: the one that was found last; NULL: none */
    r2_comm_fault_t *faults; /* owned list: aborts heard of and not applied */
    uint32_t fault_count;
    bool fresh_faults; /* some of them have not been looked at */
    bool missed_loss;  /* a lost peer could not be noted: all links are looked at */
    r2_comm_t *untold; /* owned list: freed since they failed, and not told yet */
    uint32_t segments; /* of communicators within this host (coll_local.h) */
    r2_programs_t programs;
    struct r2_coll *completed; /* list: done functions to be called outside the lock */
    r2_pool_t colls;
    _Atomic(struct r2_coll *) released; /* owned list: given back by any thread, by next_done */
};

/**
 * Messages of one communicator follow each other, so most need no hash; names last as long as the
 * process. @return NULL: there is none.
 */
static inline r2_comm_name_t *r2_comm_name_find(r2_comms_t *comms, uint64_t hash)
{
    if (NULL == comms->named || hash != comms->named->hash) {
        HASH_FIND(hh, comms->names, &hash, sizeof(hash), comms->named);
    }
    return comms->named;
}

/* comm.c */
/** @param estimator, ops borrowed. @return R2_OK, R2_ERR_NO_MEMORY. */
r2_status_t r2_comms_init(r2_comms_t *comms, r2_core_t *core, r2_estimator_t *estimator,
                          const r2_agree_ops_t *ops);
/** No communicator is left. Also for one that could not be initialized, and for zeros. */
void r2_comms_fini(r2_comms_t *comms);
/** A communicator that is not known to anybody yet. No lock. @return NULL: no memory. */
r2_comm_t *r2_comm_new(r2_comms_t *comms, const uint32_t *ranks, int32_t size, int32_t rank);
/** Gives it its identity and opens it. Engine lock. @return R2_OK, R2_ERR_NO_MEMORY. */
r2_status_t r2_comm_open(r2_comm_t *comm, r2_comm_id_t id);
/** Frees one that is not open. */
void r2_comm_free(r2_comm_t *comm);
void r2_comm_fail(r2_comm_t *comm, r2_status_t status);
/* As the upcalls of the net (link/net.h). */
void r2_comm_aborted(r2_comms_t *comms, uint32_t rank, uint64_t comm_key, r2_status_t status);
void r2_comm_stray(r2_comms_t *comms, uint32_t rank, uint64_t comm_key);
void r2_comm_lost(r2_comms_t *comms, uint32_t rank, r2_status_t status);
void r2_comm_apply_faults(r2_comms_t *comms);

/* sequence.c. Engine lock. */
r2_status_t r2_sequence_create(r2_comm_t *root, uint32_t number, r2_coll_kind_t kind,
                               r2_comm_t **sequence_p);
/** All its collectives are over or withdrawn. */
void r2_sequence_destroy(r2_comm_t *sequence);
/** @return NULL: there is none with this number. */
r2_comm_t *r2_sequence_find(r2_comm_t *root, uint32_t number);
/** True if that number was given to a sequence that is gone. Asked where there is none. */
bool r2_sequence_is_over(r2_comm_t *root, uint32_t number);

/* tell.c: a failed communicator, its members */
/** Tells those who are to hear it from us. Engine lock. */
void r2_comm_tell(r2_comm_t *comm);
/** Once there is memory for links to all of them. */
void r2_comm_tell_rest(r2_comm_t *comm);
/** A member is lost that may not have passed it on: tells those who would have heard it from it. */
void r2_comm_tell_around(r2_comm_t *comm, uint32_t rank);

/** A member asks after a message of a communicator that failed here. Also in callbacks. */
void r2_comm_tell_asker(const r2_comms_t *comms, uint32_t rank, uint64_t comm_key,
                        r2_status_t status);

/* msg_scope.c: as the upcalls of the net (link/net.h) */
bool r2_comm_over(r2_comms_t *comms, const r2_tag_t *tag);
bool r2_comm_sends(r2_comms_t *comms, uint32_t rank, const r2_tag_t *tag, uint32_t digest);
bool r2_comm_receives(r2_comms_t *comms, uint32_t rank, const r2_tag_t *tag, uint32_t digest);
/** True if there is a communicator with this key that has not failed. */
bool r2_comm_is_sound(r2_comms_t *comms, uint64_t comm_key);

/** Counts a call. Some are counted without the lock, so that one may be missed. */
static inline void r2_coll_count(uint64_t *counter)
{
    const uint64_t count = __atomic_load_n(counter, __ATOMIC_RELAXED);

    __atomic_store_n(counter, count + 1, __ATOMIC_RELAXED);
}

/* coll_pins.c, coll.c */
/** Before a call begins, or a part of a `series`: what it takes of pinned memory is kept then. The
 * engine lock is left for that, and entered again. @param series NULL: its first part, or none
 * @return what was planned for that, so that it is not planned again: for `ahead` of the call */
r2_coll_ahead_t r2_coll_pin_ahead(r2_comm_t *comm, const struct r2_coll *series,
                                  const r2_coll_args_t *args);
/** What a run of a call's part needs besides its schedule. */
r2_exec_args_t r2_coll_exec_args(const struct r2_coll *coll, const r2_coll_args_t *args);

/* coll_plan.c */
/**
 * The program of a call, kept or planned, now or ahead, for what is agreed now or what its series
 * began with.
 * @param program_p to be given back by r2_program_put(). @return as r2_plan_build().
 */
r2_status_t r2_coll_program(struct r2_coll *coll, const r2_coll_args_t *args,
                            r2_program_t **program_p);
/** True if a call carries the map-pending bit: every rank's result depends on every rank. */
bool r2_coll_carries(const r2_comm_t *comm, const r2_coll_args_t *args);
/** True of a call that a map sync is little against; equal on all ranks if it carries. */
bool r2_coll_is_long(const r2_coll_args_t *args);

/* coll.c. Engine lock. */
/** What agreement has done by collectives. */
extern const r2_agree_ops_t r2_coll_agree_ops;
/** A call begins, or waits for what is agreed. @return R2_OK, or an error: it has no place. */
r2_status_t r2_coll_start(r2_comm_t *comm, const r2_coll_args_t *args, struct r2_coll *coll);
/** The next part of a series. */
r2_status_t r2_coll_follow(struct r2_coll *coll, const r2_coll_args_t *args);
/** Its last part is over, or nothing more of it will run. */
void r2_coll_retire(struct r2_coll *coll);
/** Moves finished runs to where their callers find them. */
void r2_coll_collect(r2_comms_t *comms);
/* coll_pool.c. Engine lock. */
/** A collective of a communicator that is not started. @return NULL: no memory. */
struct r2_coll *r2_coll_new(r2_comm_t *comm);
/** Frees it: it is retired, nothing of it runs. */
void r2_coll_free(r2_comms_t *comms, struct r2_coll *coll);
/** Frees those that were released. */
void r2_coll_reap(r2_comms_t *comms);

/* coll_post.c */
/** Calls the done functions of finished collectives. No lock. */
void r2_coll_deliver(r2_comms_t *comms);

/* override.c */
/** Name of the algorithm that a parameter asks for; NULL or empty: none does. */
const char *r2_coll_override(const r2_params_t *params, r2_coll_kind_t kind);

/** The algorithm that reduces in the order of a segment (local/team.h). */
#define R2_LOCAL_ORDER "direct"

/** Is there one for this kind of reduction? */
static inline bool r2_kind_has_local_order(r2_coll_kind_t kind)
{
    return R2_COLL_ALLREDUCE == kind || R2_COLL_REDUCE == kind || R2_COLL_REDUCE_SCATTER == kind ||
           R2_COLL_REDUCE_SCATTER_BLOCK == kind;
}

#endif
