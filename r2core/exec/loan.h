/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Loans: who receives reads the memory of the sender's GPU itself, where both are on one host.
 *
 *     owner                                  reader
 *     offer: which memory          ->        copies it to where it belongs
 *                                  <-        answer: read, or it is to be sent after all
 *     word: it stood all the time  ->        the op is complete
 *
 * Instead of a copy off the one GPU, one or two within the host and one onto the other GPU there is
 * one. A reader waits for offer and message alike: where its peer's memory is nobody but the peer
 * knows. Its copy may come after the owner has given up its call, and the application has its
 * memory again: therefore what was read counts when the owner has given its word. Who cannot read
 * says so, and the message is sent as any other.
 *
 * Engine lock.
 */
#ifndef R2_EXEC_LOAN_H
#define R2_EXEC_LOAN_H

#include "mem/queue.h"
#include "mem/share.h"
#include "r2/schedule.h"
#include "r2/status.h"

struct r2_exec;
struct r2_exec_op;
struct r2_engine;

enum {
    /* Who receives shorter messages awaits no offer. The same for all processes */
    R2_LOAN_LEAST_BYTES = 16384,
    /* A peer that so often could not open our memory is offered none any more */
    R2_LOAN_REFUSALS = 4
};

/* Longer messages within a host are read by their receivers. The same for all processes, and no
 * less than what may travel before its receive is posted as a rule (eager_bytes) */
#define R2_LOAN_HOST_BYTES UINT64_C(65536)

/* So much of it is read in a pass of progress: timers wait meanwhile */
#define R2_LOAN_PASS_BYTES (UINT64_C(1) << 20)

/* As the least length of what is offered: nothing is */
#define R2_LOAN_NONE_BYTES (UINT64_C(1) << 40)

/** High bits of a message's tag: what it is of an op's. */
#define R2_LOAN_OFFER  (1u << 30)
#define R2_LOAN_ANSWER (2u << 30)
#define R2_LOAN_WORD   (3u << 30)
#define R2_LOAN_MASK   (3u << 30)

/** What is sent as an answer. */
typedef enum r2_loan_answer {
    R2_LOAN_READ = 1,
    R2_LOAN_NOT_NOW, /* it is to be sent: what it is for cannot be copied to */
    R2_LOAN_NEVER    /* it is to be sent: the memory cannot be opened */
} r2_loan_answer_t;

typedef enum r2_loan_state {
    /* of a SEND op */
    R2_LOAN_READY,    /* can be offered */
    R2_LOAN_OFFERED,  /* the answer is awaited */
    R2_LOAN_ANSWERED, /* and is here */
    R2_LOAN_GIVEN,    /* the word was sent */
    /* of a RECV op */
    R2_LOAN_AWAITED, /* offer or message: neither is here */
    R2_LOAN_HEARD,   /* the offer is here */
    R2_LOAN_COPYING,
    R2_LOAN_COPIED,    /* and answered; the word is awaited */
    R2_LOAN_CONFIRMED, /* the word is here */
    /* of both */
    R2_LOAN_SENT /* the message is, or was, sent */
} r2_loan_state_t;

/** What an owner says of the host's memory. Sent between processes of one host. */
typedef struct r2_loan_place {
    uint64_t pid; /* 0: it comes by the lane */
    uint64_t address;
    uint64_t word_address, word; /* it is good while this word stands there */
} r2_loan_place_t;

/** Of one op. */
typedef struct r2_loan {
    struct r2_loan *next;                  /* in exec->loans */
    struct r2_loan *busy_prev, *busy_next; /* in engine->loans.busy */
    struct r2_exec_op *op;                 /* borrowed */
    r2_loan_state_t state;
    bool in_busy;
    bool is_host;       /* of memory of the host (loan_host.c) */
    bool is_whole;      /* RECV: the message is here */
    bool is_direct;     /* RECV: it is read into the user's memory */
    r2_status_t failed; /* of a message about it; R2_OK */
    uint8_t word;
    uint32_t posted;         /* tag bits of our receive that waits; 0: none */
    uint32_t sending;        /* messages of ours that are under way */
    uint32_t answer;         /* r2_loan_answer_t */
    r2_mem_share_t share;    /* the offer */
    r2_loan_place_t place;   /* the same of the host's memory */
    _Atomic uint64_t stands; /* the word of ours that is in it; 0: none */
    uint64_t at;             /* so much of it is read; SENT: was added to a sum before */
    r2_mem_opened_t *opened; /* borrowed, until the copy has ended; or NULL */
    r2_mem_queue_t *queue;   /* borrowed: of the copy */
    uint64_t ticket;
} r2_loan_t;

/** What all runs of a process share. */
typedef struct r2_loans {
    bool enabled; /* a process of the job offers memory. The same for all processes */
    bool of_host; /* all offer the host's memory. The same for all, too: no GPUs are there */
    uint64_t least_bytes; /* shorter messages are not offered */
    r2_mem_shares_t shares;
    uint32_t forgets;    /* of the pins, when what is open was good */
    r2_loan_t *busy;     /* list: news, or copies under way */
    uint8_t *refusals;   /* owned: by process; NULL: none so far */
    uint64_t words;      /* that stood so far */
    uint64_t room_bytes; /* so much more of the host's memory may be read in this pass */
} r2_loans_t;

/** @param mem NULL: nothing is offered, and what is offered is refused. */
void r2_loans_init(r2_loans_t *loans, r2_mem_t *mem, uint64_t least_bytes);
/** No run is left. Also for zeros. */
void r2_loans_fini(r2_loans_t *loans);
/** Goes on with all of which there is news (loan_step.c). @return ops that ended, or began anew. */
unsigned r2_loans_run(struct r2_engine *engine);

/* ---- of a run: for exec/ only ---- */

/** True of a SEND op whose data need not be loaded: it can be offered, or is. */
bool r2_loan_prepare(struct r2_exec *exec, uint32_t op);
/** True if r2_loan_prepare() was, and the peer has not refused. */
bool r2_loan_is_on(const struct r2_exec_op *handle);
/** True while messages of ours about an op's loan are under way: the op does not end before. */
bool r2_loan_is_said(const struct r2_exec_op *handle);
/** The message of an op is complete at once. @return true: the op is not, r2_loan_is_said(). */
bool r2_loan_is_talking(const struct r2_exec_op *handle);
/** Offers what a SEND op sends. @return R2_IN_PROGRESS, or an error. */
r2_status_t r2_loan_offer(struct r2_exec *exec, uint32_t op);
/** A RECV op is about to be posted: awaits an offer, too. @return R2_OK, or an error. */
r2_status_t r2_loan_await(struct r2_exec *exec, uint32_t op);
/** True of a SEND op whose memory is offered, and of a RECV op that awaits an offer alone: a long
 * message within a host, no GPU in the job. */
bool r2_loan_is_lent(const struct r2_exec *exec, uint32_t op);
/** Offers what such a SEND op sends. @param data borrowed until the op ends @return R2_IN_PROGRESS;
 * R2_ERR_UNSUPPORTED: it is to be sent, and the peer knows; or an error. */
r2_status_t r2_loan_lend(struct r2_exec *exec, uint32_t op, const void *data);
/** Such a RECV op is about to be posted: awaits an offer. @return R2_OK, or an error. */
r2_status_t r2_loan_await_place(struct r2_exec *exec, uint32_t op);
/** So much of what a RECV op brings was added to a sum before it was to be sent after all. */
uint64_t r2_loan_added(const struct r2_exec_op *handle);
/** The message of an op with a loan is complete, or failed. @return true: so is the op. */
bool r2_loan_sent(r2_loan_t *loan, r2_status_t status);
/* of loan*.c */
/** @return NULL: no memory. */
r2_loan_t *r2_loan_new(struct r2_exec *exec, uint32_t op, r2_loan_state_t state);
/** True of a process that could not read our memory several times. */
bool r2_loan_is_refuser(const r2_loans_t *loans, uint32_t rank);
/** Reads on in the memory that is offered. @return R2_IN_PROGRESS: it is called again; R2_OK: the
 * message is awaited; or an error. */
r2_status_t r2_loan_fetch(r2_loan_t *loan);
/** True if code of the user takes what is read: no other thread may go on with it. */
bool r2_loan_is_for_app(const r2_loan_t *loan);
/** The memory is not to be read any more. */
void r2_loan_take_back(r2_loan_t *loan);
uint32_t r2_loan_index(const r2_loan_t *loan);
const r2_op_t *r2_loan_op(const r2_loan_t *loan);
/** The process at the other end. */
uint32_t r2_loan_peer(const struct r2_exec *exec, uint32_t op);
/** On and off the list of loans of which there is news. */
void r2_loan_note(r2_loan_t *loan);
void r2_loan_unnote(r2_loan_t *loan);
/** Sends something about it. @param bits R2_LOAN_.. @param data borrowed while loan->sending
 * counts it @return R2_OK: it is away, or under way; or an error. */
r2_status_t r2_loan_send(r2_loan_t *loan, uint32_t bits, const void *data, size_t bytes);
/** Awaits something about it: state and news say when it is here. */
r2_status_t r2_loan_recv(r2_loan_t *loan, uint32_t bits, void *data, size_t bytes);
/** It is awaited no more. @param bits 0: the message itself */
void r2_loan_unpost(const r2_loan_t *loan, uint32_t bits);

/** Nothing more happens to the run's loans. */
void r2_loans_leave(struct r2_exec *exec);
/** Gives their memory back. No copy is under way. */
void r2_loans_free(struct r2_exec *exec);

#endif
