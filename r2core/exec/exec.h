/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Engine: runs the ops of schedules over links.
 */
#ifndef R2_EXEC_H
#define R2_EXEC_H

#include "base/blocks.h"
#include "exec/landing.h"
#include "exec/loan.h"
#include "exec/program.h"
#include "exec/staging.h"
#include "link/link.h"
#include "r2/coll.h"
#include "r2/schedule.h"

struct r2_exec;

/** All collectives under way in this process. Engine lock. */
typedef struct r2_engine {
    r2_net_t *net;          /* borrowed */
    struct r2_exec *ready;  /* list: have ops that may start */
    struct r2_exec *ending; /* list: wait for acknowledgements only */
    /* list: complete or failed, to be collected by r2_engine_collect() */
    struct r2_exec *finished;
    r2_blocks_t blocks; /* memory of runs: state, scratch, packed sends */
    r2_staging_t staging;
    r2_loans_t loans;
} r2_engine_t;

/** What one run needs besides its schedule. */
typedef struct r2_exec_args {
    const void *in; /* borrowed until finished */
    void *out;      /* borrowed until finished */
    r2_reduce_fn_t reduce;
    void *reduce_arg;   /* borrowed until finished */
    r2_kernel_t kernel; /* does the same on a GPU */
    /* `reduce` may be called by any thread, not only by the application's */
    bool any_thread;
    uint64_t element_bytes;
    const uint32_t *ranks;        /* borrowed: process numbers by communicator rank */
    r2_tag_t tag;                 /* of the collective; ops add theirs */
    r2_convertor_t convertors[2]; /* of R2_BUF_IN and R2_BUF_OUT */
    r2_mem_at_t at[2];            /* where these are */
    uint64_t pack_bytes;          /* bound of packed sends under way */
    uint64_t copy_bytes;          /* who sends no more in all sends copies */
    uint64_t keep_bytes;          /* most that is copied in place of waiting for its end */
} r2_exec_args_t;

/** An op's handle in the link's callbacks. */
typedef struct r2_exec_op {
    struct r2_exec *exec;     /* borrowed */
    char *packed;             /* owned: what a SEND op of a buffer with a convertor sends */
    r2_tx_message_t *message; /* borrowed: of a SEND op that is under way */
    uint32_t waiting;         /* dependencies not complete yet */
    bool done;
    /* SEND: was started with the RECV op whose bytes it passes on. RECV: there are such */
    bool follows;
    bool fused;            /* RECV: its chunks were reduced as they came */
    bool unlent;           /* SEND: what it sends is not offered */
    bool by_nic;           /* NICs read it, or write it, where the user has it (nic.c) */
    bool fetching;         /* SEND: and cannot: it is loaded */
    bool filling;          /* SEND: has begun, and waits for loads (stream.c) */
    bool is_whole;         /* SEND: meanwhile all of it was acknowledged */
    bool sought_src;       /* all that is missing of what it reads is on its way (stage.c) */
    bool sought_dst;       /* the same of what it adds to */
    bool direct;           /* RECV: the user's memory has it, and not the copy */
    r2_loan_t *loan;       /* borrowed: in exec->loans; or NULL */
    r2_landing_t *landing; /* RECV: borrowed, in exec->landings; or NULL */
} r2_exec_op_t;

/** One collective under way. */
typedef struct r2_exec {
    struct r2_exec *prev, *next; /* in engine->ready, engine->ending or engine->finished */
    r2_engine_t *engine;         /* borrowed */
    r2_exec_args_t args;
    r2_program_t *program;                       /* refcounted; NULL: nothing to finish */
    const r2_schedule_t *schedule;               /* that of the program */
    char *scratch;                               /* owned: a block of the engine, or of the stage */
    r2_staged_t *stage;                          /* owned; NULL: both buffers are the CPU's */
    struct r2_exec *copying_prev, *copying_next; /* in engine->staging.copying */
    r2_loan_t *loans;                            /* owned list: blocks of the engine */
    r2_landing_t *landings;                      /* the same */
    r2_exec_op_t *ops;  /* owned: a block of the engine; parallel to schedule->ops */
    size_t state_bytes; /* of that block: ops, queue, held */
    uint32_t *queue;    /* ops that may start; each enters once */
    uint32_t queue_head, queue_tail;
    uint32_t *held; /* with convertors: SEND ops that wait for room; each enters once */
    uint32_t held_head, held_tail;
    uint32_t lowest; /* every SEND op before it is complete */
    uint32_t ops_left;
    uint32_t sending;      /* SEND ops that were started and are not complete */
    uint32_t sends_left;   /* SEND ops that were not started */
    uint64_t packed_bytes; /* in packed sends under way */
    bool carrying;         /* messages carry the map-pending bit (health/agreement.h) */
    bool map_pending;      /* ours, or that of a message received so far */
    bool in_ready, in_ending, in_finished; /* on which list of the engine */
    bool in_copying;                       /* on that of staging, too */
    bool over;                             /* its status is final */
    bool app_only;      /* its ops run code of the user: a reduction of his, convertors */
    bool fuses;         /* what its program fuses is fused */
    bool asked;         /* for the acknowledgements that it waits for at its end */
    bool patient;       /* it needs no acknowledgement before its end, and can end by copies */
    r2_status_t status; /* R2_IN_PROGRESS, then the outcome */
} r2_exec_t;

/** @param keep_bytes the most memory that is kept for runs to come. */
void r2_engine_init(r2_engine_t *engine, r2_net_t *net, uint64_t keep_bytes);
/** No run is left. */
void r2_engine_fini(r2_engine_t *engine);

/**
 * Prepares a run in the caller's memory. Engine lock.
 * @param program taken over in every case. @return R2_OK, R2_ERR_NO_MEMORY: nothing to finish.
 */
r2_status_t r2_exec_init(r2_exec_t *exec, r2_engine_t *engine, const r2_exec_args_t *args,
                         r2_program_t *program);
/** Ops without dependencies may start with the next r2_engine_run(). */
void r2_exec_start(r2_exec_t *exec);
/**
 * Ends a run with an error. The caller withdraws its messages from the links. Nothing happens to
 * one that is not prepared: a call may be listed while what comes before it is under way.
 */
void r2_exec_abort(r2_exec_t *exec, r2_status_t status);
/** Gives its memory back. Also for zeros, and again. Engine lock. */
void r2_exec_fini(r2_exec_t *exec);

/**
 * True if the run has an op, done or not, for the message with this tag and digest.
 * @param kind R2_OP_SEND or R2_OP_RECV.
 * @param rank process number of the other end.
 */
bool r2_exec_has_op(const r2_exec_t *exec, r2_op_kind_t kind, uint32_t rank, uint32_t tag,
                    uint32_t digest);

/** Takes a run off the lists of its engine: nobody looks at it any more. Nothing happens if it is
 * on none. */
void r2_exec_leave(r2_exec_t *exec);

/**
 * Starts ops as far as they go.
 * @param app an application thread calls; else runs that are `app_only` wait for one. @return ops
 * started.
 */
unsigned r2_engine_run(r2_engine_t *engine, bool app);
/** The next finished run, or NULL. */
r2_exec_t *r2_engine_collect(r2_engine_t *engine);

/* ---- for exec/ only ---- */

/** The GPU has done an op, or a peer has, or not: then the run ends. */
void r2_exec_ended(r2_exec_t *exec, uint32_t op, r2_status_t status);
/** Loads of an op that waits for them have ended, well or not, or are on the way. */
void r2_exec_loaded(r2_exec_t *exec, uint32_t op, r2_status_t status);
/** What is complete was stored, or not: finishes the run if that was all, or with an error. */
void r2_exec_stored(r2_exec_t *exec, r2_status_t status);

/* nic.c */
/** True of a SEND op whose data need not be loaded: NICs read it, now; and of a RECV op whose data
 * NICs may write where it belongs. */
bool r2_nic_prepare(r2_exec_t *exec, uint32_t op);
/** What such an op sends, or where it belongs. @param memory_p the allocation that it is in
 * @return NULL: there is none. */
char *r2_nic_memory(const r2_exec_t *exec, const r2_op_t *op, r2_tp_memory_t *memory_p);

/** So many bytes of a RECV op are there: what was started with it sends them. @param arg the op's
 * handle. */
void r2_exec_pass_on(void *arg, uint64_t bytes);
/** Does an op. @param done gets its r2_exec_op_t when its message is complete.
 * @return R2_OK; R2_IN_PROGRESS: `done` will be called; R2_ERR_AGAIN: no room to pack what it
 * sends; or an error. */
r2_status_t r2_exec_perform(r2_exec_t *exec, uint32_t op, r2_link_done_fn_t done);
/** What a message of an op says: where it belongs, and by which plan. */
r2_tag_t r2_exec_tag(const r2_exec_t *exec, const r2_op_t *op);
uint32_t r2_exec_digest(const r2_exec_t *exec, const r2_op_t *op);
/** The copy that stands for a buffer; NULL: ops work on the buffer. */
const r2_staged_side_t *r2_exec_staged(const r2_exec_t *exec, r2_buf_t buf);
/** Where ops find a region: in the buffer, or in the copy that stands for it. */
char *r2_exec_address(const r2_exec_t *exec, const r2_region_t *region);
/** How to reach the memory of a region; NULL: it is contiguous. */
const r2_convertor_t *r2_exec_convertor(const r2_exec_t *exec, const r2_region_t *region);
/** The first SEND op that is not complete. */
uint32_t r2_exec_lowest(r2_exec_t *exec);

/** Starts ops of a run as far as they go. @return ops started. */
unsigned r2_exec_run(r2_exec_t *exec);
/** Ends a run that waits for acknowledgements only, by a copy of what they are missing for. */
void r2_exec_end(r2_exec_t *exec);

#endif
