/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The process context: rails, links and engine of one process.
 *
 * In a child that the process forked nothing of r2 can be used: calls return R2_ERR_FORKED, or do
 * nothing.
 */
#ifndef R2_CTX_H
#define R2_CTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "r2/counters.h"
#include "r2/log.h"
#include "r2/params.h"
#include "r2/status.h"

typedef struct r2_ctx r2_ctx_t;

/** Who uses a context; bits. All processes of a job have the same users, or the job does
 * without. */
typedef enum r2_user {
    R2_USER_COLL = 1,    /* collectives */
    R2_USER_P2P = 2,     /* point-to-point */
    R2_USER_ONE_HOST = 4, /* beside COLL: of communicators on one host what memory makes, too */
    R2_USER_GPU = 8, /* not of users: what has memory of GPUs that only r2 can read */
    R2_USER_SHARES = 16, /* not of users: what shares memory with others of its host */
    R2_USER_LENDS = 32, /* not of users: what offers memory of its GPU to peers */
    R2_USER_JOBS = 64, /* beside P2P: point-to-point with other jobs, too */
    R2_USER_ONE_HOST_ALL = 128 /* beside ONE_HOST: all that communicators on one host do */
} r2_user_t;

/** What an embedding program gives. */
typedef struct r2_ctx_config {
    const r2_params_t *params; /* copied; strings are borrowed and outlive the context */
    r2_log_fn_t log;           /* NULL: stderr */
    void *log_arg;             /* borrowed */
    /**
     * Progresses what is not r2's while a call waits (opal_progress); NULL: nothing else.
     * Must not be needed for r2's own progress. Called without the engine lock.
     */
    void (*idle)(void *arg);
    void *idle_arg; /* borrowed */
    uint32_t users; /* bits of r2_user_t; 0: all */
    bool named;     /* the user asked for r2 by name: is told why it is not used */
    /* The launcher has no fence: who asks for what a process publishes gets what is there, so r2,
     * which comes first, publishes nothing. It cannot be used then. */
    bool no_fence;
    /* borrowed: true while who polls is to let others have the processor, also where each process
     * can have one; NULL: never */
    const bool *yields;
    /** The context is for what passes to another job: its PMIx name space; borrowed for the call.
     * NULL: for this process's own job. */
    const char *other_job;
} r2_ctx_config_t;

/**
 * Finds rails, opens listeners, publishes addresses through PMIx and starts the service thread.
 * Before the launcher's fence (in MPI_Init: component open). Does not wait for peers.
 * @param text_p on error: cause and remedy for the user.
 * After an error the whole job does without r2, which rank 0 has logged, unless there is no PMIx.
 * @return R2_OK, R2_ERR_PARAM, R2_ERR_UNSUPPORTED (not launched by PMIx), R2_ERR_NOT_FOUND (no
 * NIC), R2_ERR_DECLINED (not for this host), R2_ERR_SYSTEM, R2_ERR_NO_MEMORY; R2_ERR_UNTOLD: the
 * others count on this process, and could not be told that it takes no part: the job has to end;
 * R2_ERR_PEER_GONE: the other job has ended.
 */
R2_EXPORT r2_status_t r2_ctx_create(const r2_ctx_config_t *config, r2_ctx_t **ctx_p, char *text_p,
                                    size_t text_bytes);
/**
 * Instead of r2_ctx_acquire(): what the component knows keeps this process out, and so the whole
 * job. Tells, if this is rank 0. No context can be acquired afterwards.
 * @param why for the user.
 */
R2_EXPORT void r2_ctx_refuse(const r2_ctx_config_t *config, const char *why);

/**
 * Before the launcher's fence: this user will not be there after all.
 * @return R2_OK; R2_ERR_UNTOLD: the others could not be told, the job has to end.
 */
R2_EXPORT r2_status_t r2_ctx_withdraw(r2_ctx_t *ctx, r2_user_t user);

/**
 * Do all processes of the job have this user? To be asked after the launcher's fence, by any number
 * of them; the answer is the same on all. Where all are on one host and not all have
 * R2_USER_ONE_HOST, there is no R2_USER_COLL.
 * @return R2_OK, R2_ERR_UNSUPPORTED (no, and the log says why), or an error: this process could not
 * find out, while others may have. It has to end the job; r2_ctx_error_text() says what happened.
 */
R2_EXPORT r2_status_t r2_ctx_agreed(r2_ctx_t *ctx, r2_user_t user);

/** How many processes of the job are known to be gone. Only grows. Any thread; cheap. */
R2_EXPORT uint32_t r2_ctx_gone_count(const r2_ctx_t *ctx);
/**
 * Asks after each process that was talked to and no lane to which works. Who has ended while its
 * host runs is known to be gone so, though nobody has anything to send to it: the host refuses for
 * it. Of a host that is silent (no power, no path) nothing becomes known so, however often it is
 * asked. Any thread; to be repeated: a question is given up, and lanes are lost.
 * @param pause_ns from one question after the same process to the next, if it is not heard
 * meanwhile. Who has no lane for want of descriptors is asked after seconds after it was heard.
 */
R2_EXPORT void r2_ctx_ask_after_lost(r2_ctx_t *ctx, uint64_t pause_ns);
/** Is this one among them, and not heard by this process? @param rank in the job. Any thread. */
R2_EXPORT bool r2_ctx_is_gone(r2_ctx_t *ctx, uint32_t rank);

/**
 * For a process that ends without the launcher's fence, while others go on: returns when they hold
 * all that it has sent and have what they need of it, when they have left themselves, are gone, or
 * are not heard of for no_path_timeout_ms. Nothing may be sent or received afterwards.
 */
R2_EXPORT void r2_ctx_linger(r2_ctx_t *ctx);
/** After the launcher's fence at the end, or r2_ctx_linger(): discards replays, stops the service
 * thread. */
R2_EXPORT void r2_ctx_destroy(r2_ctx_t *ctx);

/**
 * The context that the components of a process share: made by the first of them, with its
 * configuration, as r2_ctx_create() does. Before the launcher's fence; by one thread at a time. A
 * further one that could not be published is told to the user, and the job does without that one.
 * @param text_p why, unless an earlier call has failed.
 */
R2_EXPORT r2_status_t r2_ctx_acquire(const r2_ctx_config_t *config, r2_ctx_t **ctx_p, char *text_p,
                                     size_t text_bytes);
/**
 * Gives it back; the last one destroys it.
 * @param log the log function that was given to r2_ctx_acquire(): not called any more afterwards,
 * and neither is `idle` if the context was made with it.
 */
R2_EXPORT void r2_ctx_release(r2_ctx_t *ctx, r2_log_fn_t log);

/*
 * What passes between two jobs has a context of its own in each process, made by r2_ctx_create()
 * with `other_job` when processes of the two have met, at any time, with R2_USER_P2P alone. Its
 * ranks are those of both jobs: only processes of the other one are reached.
 */

/** Number of a process of the other job in such a context. @param rank in its own job. */
R2_EXPORT uint32_t r2_ctx_other_rank(const r2_ctx_t *ctx, uint32_t rank);
/**
 * Asks once whether a process of the other job has such a context, too. It has to be told of this
 * job, as MPI does to all that meet: then it answers sooner or later, and what it answers does not
 * change. So who asks until there is an answer uses r2 exactly if the other one does.
 * @param rank in its own job.
 * @return R2_OK; R2_ERR_UNSUPPORTED: it does without; R2_ERR_AGAIN: it has said nothing so far, or
 * the launcher not in time; R2_ERR_PEER_GONE: it is dead, or its job has ended, and it has said
 * nothing;
 * R2_ERR_NO_MEMORY; others: the launcher does not answer.
 */
R2_EXPORT r2_status_t r2_ctx_meet(r2_ctx_t *ctx, uint32_t rank);
/** Has the other job ended, by the launcher's word? Who has said nothing then will not. false also
 * where the launcher does not tell. Asks nobody. */
R2_EXPORT bool r2_ctx_other_ended(const r2_ctx_t *ctx);
/** From now on those that come first are let in; r2_ctx_meet() does it, too. @return R2_OK,
 * R2_ERR_NOT_FOUND (the other job has no r2), others: the launcher does not answer. */
R2_EXPORT r2_status_t r2_ctx_let_in(r2_ctx_t *ctx);
/** Meets those that came first: each is refused until then, and comes again. Cheap; for each turn
 * of the application's progress. */
R2_EXPORT void r2_ctx_meet_callers(r2_ctx_t *ctx);
/**
 * Instead of r2_ctx_create() for another job: tells its processes that this one does without.
 * @return R2_OK; R2_ERR_UNTOLD: they would wait for its word for ever, it has to end;
 * R2_ERR_PEER_GONE: the other job has ended.
 */
R2_EXPORT r2_status_t r2_ctx_refuse_job(const r2_ctx_config_t *config, const char *why);

/** Progresses all rails once. Any thread; returns at once if another thread does it. @return
 * events. */
R2_EXPORT unsigned r2_ctx_progress(r2_ctx_t *ctx);

/**
 * As r2_ctx_progress(), for components that are called in turn: only the calls of the first of them
 * do something, until it gives that up; where nothing was to do for long, one in a microsecond.
 * Any thread.
 * @param driver tells the components apart; only its address is used.
 */
R2_EXPORT unsigned r2_ctx_progress_as(r2_ctx_t *ctx, const void *driver);
/** This component will not call any more; another one that does takes over. */
R2_EXPORT void r2_ctx_progress_end(r2_ctx_t *ctx, const void *driver);

/** This process in the job. */
R2_EXPORT uint32_t r2_ctx_rank(const r2_ctx_t *ctx);
R2_EXPORT uint32_t r2_ctx_size(const r2_ctx_t *ctx);

/** Counters, read without lock. */
R2_EXPORT const r2_counters_t *r2_ctx_counters(const r2_ctx_t *ctx);

#define R2_ERROR_TEXT_BYTES 4096 /* enough for it, on hosts with many rails, too */

/**
 * After a failed call: a text for the user that names hosts, rails and verdicts. Its later lines
 * begin with two blanks.
 * @param text_p "" when there is none.
 */
R2_EXPORT void r2_ctx_error_text(const r2_ctx_t *ctx, char *text_p, size_t text_bytes);

/**
 * What plans are made from now, as a topology file (docs/simulation.md).
 * @param text_p owned by the caller.
 * @return R2_OK, R2_ERR_AGAIN (the text is there, but this process knows more than all agree on),
 * R2_ERR_NOT_FOUND (there is no communicator of all processes), R2_ERR_NO_MEMORY.
 */
R2_EXPORT r2_status_t r2_ctx_plan_text(r2_ctx_t *ctx, char **text_p);

/**
 * Waits for all processes of the job. For programs without MPI, whose launcher's fence this is:
 * after r2_ctx_create(), and before r2_ctx_destroy(). @return R2_OK, R2_ERR_SYSTEM,
 * R2_ERR_UNSUPPORTED (no launcher).
 */
R2_EXPORT r2_status_t r2_ctx_fence(r2_ctx_t *ctx);

/** One line for the log at start: rails, speeds, how plans are made, version. */
R2_EXPORT void r2_ctx_describe(const r2_ctx_t *ctx, char *text_p, size_t text_bytes);

#endif
