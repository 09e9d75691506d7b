/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Point-to-point on the core: states and what the context calls. For ctx/ only.
 */
#ifndef R2_CTX_P2P_STATE_H
#define R2_CTX_P2P_STATE_H

#include "base/hash.h"
#include "ctx/core.h"
#include "r2/p2p.h"

/** Key of data that r2_p2p_get() asks for; its receive is posted before the request is sent. */
#define R2_P2P_DATA_KEY R2_LINK_OWN_KEYS

/**
 * Bytes of long active messages that may be on their way to us at a time, over all peers. Beside
 * that each peer may have one, so that none that is stopped or slow bars another.
 */
#define R2_P2P_GRANTED_MAX (4u << 20)

/**
 * Answers under way to one peer, in bytes, beyond which its short reads wait. What the link has
 * copied does not count: that has bounds of its own (copies.c).
 */
#define R2_P2P_ANSWERS_MAX (1u << 20)

/** A peer that cannot be answered for so long because there is no memory is given up. */
#define R2_P2P_SHORT_NS (10 * R2_NS_PER_S)

/** Ids of active messages: the user's message ids come first. */
enum {
    R2_P2P_AM_IDS = 256, /* below: active messages */
    R2_P2P_AM_GET = R2_P2P_AM_IDS,
    R2_P2P_AM_RELEASE, /* the peer's memory is not referred to any more */
    R2_P2P_AM_REQUEST, /* something that the peer does and answers */
    R2_P2P_AM_REPLY
};

/** Data of up to this length travels with the request, or with the reply. */
#define R2_P2P_SHORT_BYTES 16384u

/** The request of a get, and with only its id and the outcome, the release. */
typedef struct r2_get_request {
    uint64_t address;
    uint64_t bytes;
    uint64_t granted_bytes; /* credit of the receive that is posted for it */
    uint32_t id;
    int32_t status; /* r2_status_t */
} r2_get_request_t;

/** A message that arrives or has arrived. */
typedef struct r2_p2p_inbound {
    struct r2_p2p_inbound *prev, *next;
    struct r2_p2p *p2p; /* borrowed */
    uint32_t rank, am_id;
    uint64_t bytes;
    char data[];
} r2_p2p_inbound_t;

/** Takes an inbound message of one id of ours: gives its memory back, or keeps it. */
typedef void (*r2_p2p_am_fn_t)(struct r2_p2p *p2p, r2_p2p_inbound_t *inbound);

/** A short message of ours in memory of its own. */
typedef struct r2_am_buf {
    struct r2_am_buf *prev, *next; /* in p2p->am_bufs or p2p->unsent */
    struct r2_p2p *p2p;            /* borrowed */
    uint32_t rank, am_id;
    uint64_t bytes;        /* of data */
    uint64_t answer_bytes; /* counted as answers to the peer */
    char data[];
} r2_am_buf_t;

/** What is kept of each process of the job. */
typedef struct r2_p2p_peer {
    bool talked;               /* something was sent or received */
    r2_status_t lost;          /* to be told to the user; R2_OK: nothing */
    uint64_t granted_bytes;    /* of active messages whose receive is posted */
    uint64_t answer_bytes;     /* of AM buffers under way or being made */
    uint64_t short_since_ns;   /* it cannot be answered since then; 0: it can */
    r2_p2p_inbound_t *waiting; /* owned list: requests, oldest first */
} r2_p2p_peer_t;

/** A peer that is lost. */
typedef struct r2_p2p_loss {
    uint32_t rank;
    r2_status_t status;
} r2_p2p_loss_t;

/** Memory of ours that is read by a peer. */
typedef struct r2_p2p_serve {
    struct r2_p2p_serve *prev, *next; /* in p2p->serving or p2p->served */
    struct r2_p2p *p2p;               /* borrowed */
    uint32_t id;
    r2_status_t status;
    r2_am_buf_t *release; /* owned: the message that ends it */
} r2_p2p_serve_t;

/** A get of ours. */
typedef struct r2_p2p_get {
    struct r2_p2p *p2p; /* borrowed */
    uint32_t id, rank;
    bool here;     /* the data */
    bool released; /* the peer said so */
    r2_status_t status;
    r2_p2p_op_t *op;   /* borrowed */
    UT_hash_handle hh; /* in p2p->gets, by id */
} r2_p2p_get_t;

/** What a peer is asked to do with its memory. */
typedef enum r2_p2p_kind {
    R2_P2P_KIND_READ,   /* replies with the data */
    R2_P2P_KIND_WRITE,  /* the data follows the request */
    R2_P2P_KIND_PULL,   /* gets the data from `source` */
    R2_P2P_KIND_UPDATE, /* replies with the old value */
    R2_P2P_KIND_FENCED, /* PULL, once a connection is closed over which it was written in part: its
                           id follows */
    R2_P2P_KINDS
} r2_p2p_kind_t;

/** The request. */
typedef struct r2_rma_request {
    uint64_t address;
    uint64_t bytes;
    uint64_t source;           /* PULL: address at who asks */
    uint64_t operand, compare; /* UPDATE */
    uint32_t id;
    uint8_t kind; /* r2_p2p_kind_t */
    uint8_t verb; /* UPDATE: r2_p2p_verb_t */
    uint16_t zero;
} r2_rma_request_t;

/** The reply; data follows. */
typedef struct r2_p2p_reply {
    uint32_t id;
    int32_t status; /* r2_status_t */
} r2_p2p_reply_t;

/** A request of ours. */
typedef struct r2_rma_issued {
    uint32_t id, rank;
    uint64_t bytes;    /* of the reply's data */
    void *local;       /* borrowed: where they go; NULL: not wanted */
    r2_p2p_op_t *op;   /* borrowed */
    UT_hash_handle hh; /* in p2p->issued, by id */
} r2_rma_issued_t;

/** Data that we get because a peer puts it. */
typedef struct r2_p2p_pull {
    struct r2_p2p_pull *prev, *next; /* in p2p->pulls */
    r2_p2p_op_t op;
    r2_am_buf_t *answer; /* owned */
} r2_p2p_pull_t;

/** Reading or writing by NICs. */
typedef struct r2_p2p_direct {
    struct r2_p2p_direct *prev, *next; /* in p2p->directs */
    struct r2_p2p *p2p;                /* borrowed */
    uint32_t rank;
    bool writes;
    char *local; /* borrowed until done */
    uint64_t remote;
    uint32_t open; /* the NICs' work, and parts that go by messages */
    r2_status_t status;
    r2_p2p_op_t *op; /* borrowed */
} r2_p2p_direct_t;

/** A part that the NICs have not moved. */
typedef struct r2_p2p_part {
    struct r2_p2p_part *prev, *next; /* in p2p->lost_parts, then p2p->parts */
    r2_p2p_op_t op;
    r2_p2p_direct_t *direct; /* borrowed: lives as long */
    uint64_t offset, bytes;
    uint64_t connection; /* that it may still be written over; 0: none */
} r2_p2p_part_t;

/** All of it belongs to the engine lock. */
struct r2_p2p {
    r2_core_t *core; /* borrowed */
    r2_p2p_handlers_t handlers;
    uint32_t next_seq, next_get, next_rma;
    uint64_t granted_bytes;
    r2_p2p_inbound_t *pending;             /* owned list: receives posted */
    r2_p2p_inbound_t *arrived;             /* list: complete, not looked at */
    r2_p2p_inbound_t *inbox;               /* list: to be given to the user */
    _Atomic(r2_p2p_inbound_t *) told;      /* owned stack: the user has had them. Without a lock */
    r2_p2p_op_t *finished, *finished_tail; /* to be told to the user */
    r2_p2p_serve_t *serving;               /* owned list: data under way */
    r2_p2p_serve_t *served;                /* owned list: releases to be sent */
    r2_p2p_get_t *gets;                    /* owned hash */
    r2_rma_issued_t *issued;               /* owned hash */
    r2_p2p_pull_t *pulls;                  /* owned list */
    r2_p2p_region_t *regions;              /* borrowed list: their owners deregister them */
    r2_p2p_part_t *lost_parts;             /* owned list: to be asked for by messages */
    r2_p2p_part_t *parts;                  /* owned list: such questions under way */
    r2_p2p_direct_t *directs;              /* owned list */
    r2_am_buf_t *am_bufs;                  /* owned list: under way */
    r2_am_buf_t *unsent;                   /* owned list: there was no memory to send them */
    r2_p2p_peer_t *peers;                  /* owned: by rank */
    uint32_t lost_count, waiting_count;    /* over all peers */
};

/** What is to be told to the user, outside the lock. */
typedef struct r2_p2p_completions {
    struct r2_p2p *p2p;      /* borrowed */
    r2_p2p_inbound_t *inbox; /* owned list */
    r2_p2p_op_t *finished;   /* list */
    r2_p2p_loss_t *lost;     /* owned */
    uint32_t lost_count;
} r2_p2p_completions_t;

/* Called by the context. */
/** Nobody talks to it yet. No lock. @return R2_OK, R2_ERR_NO_MEMORY. */
r2_status_t r2_p2p_create(r2_core_t *core, const r2_p2p_handlers_t *handlers, r2_p2p_t **p2p_p);
/** Links refer to nothing of it any more. Engine lock. */
void r2_p2p_withdraw(r2_p2p_t *p2p);
/** After it was withdrawn, or if nothing was sent. Engine lock. */
void r2_p2p_destroy(r2_p2p_t *p2p);
/** A message that nobody announced is here. Engine lock. @return false: no memory. */
bool r2_p2p_take_whole(r2_p2p_t *p2p, uint32_t rank, const r2_tag_t *tag, const void *data,
                       uint64_t bytes);
/** Takes what arrived. Engine lock, application threads. @return messages taken. */
unsigned r2_p2p_collect(r2_p2p_t *p2p);
/** Takes out what is to be told. Engine lock. */
void r2_p2p_take_completions(r2_p2p_t *p2p, r2_p2p_completions_t *completions_p);
/** Tells the user. No lock. */
void r2_p2p_tell(const r2_p2p_completions_t *completions);

/* p2p_inbound.c. Engine lock, but for r2_p2p_inbound_told() */
/** @return a message for the caller to fill; NULL: no memory. */
r2_p2p_inbound_t *r2_p2p_inbound_new(r2_p2p_t *p2p, uint32_t rank, uint32_t am_id, uint64_t bytes);
void r2_p2p_inbound_put(r2_p2p_inbound_t *inbound);
/** The user has had it. No lock. */
void r2_p2p_inbound_told(r2_p2p_inbound_t *inbound);
/** Gives back what he has had. */
void r2_p2p_inbound_take_back(r2_p2p_t *p2p);

/* p2p_am.c. Engine lock. */
/** The link to a peer that is talked to from now on. @return as r2_net_link(). */
r2_status_t r2_p2p_link(r2_p2p_t *p2p, uint32_t rank, r2_link_t **link_p);
/**
 * Sends a call. @param done NULL: only if `data` is free again at once.
 * @return as r2_link_send().
 */
r2_status_t r2_p2p_am_send(r2_p2p_t *p2p, r2_link_t *link, uint32_t am_id, const void *data,
                           uint64_t bytes, r2_link_done_fn_t done, void *arg);
/** The same with a block of the link's. @return R2_OK, or an error: it is still the caller's. */
r2_status_t r2_p2p_am_send_block(r2_p2p_t *p2p, r2_link_t *link, uint32_t am_id, void *block,
                                 uint64_t bytes);
void r2_p2p_finish(r2_p2p_op_t *op, r2_status_t status);
uint32_t r2_p2p_chunk_bytes(const r2_p2p_t *p2p, uint64_t bytes);

/* p2p_am_buf.c. Engine lock. */
/** @return a message for the caller to fill; NULL: no memory. */
r2_am_buf_t *r2_am_buf_new(r2_p2p_t *p2p, uint32_t rank, uint32_t am_id, uint64_t bytes);
/** The same as an answer to a peer: counted, and if there is no memory for long, the peer is given
 * up. */
r2_am_buf_t *r2_am_buf_answer(r2_p2p_t *p2p, uint32_t rank, uint32_t am_id, uint64_t bytes);
/** Sends it. @return R2_OK: it frees itself; or an error: it is still the caller's. */
r2_status_t r2_am_buf_send(r2_am_buf_t *buf);
/** Sends it for sure, unless the link is broken: where there is no memory, later. Consumes it. */
void r2_am_buf_post(r2_am_buf_t *buf);
/** For one that was not sent; NULL: nothing. */
void r2_am_buf_free(r2_am_buf_t *buf);
/** True if a peer's short reads have to wait until it has taken what is under way to it. */
bool r2_p2p_answers_full(const r2_p2p_t *p2p, uint32_t rank);
/** Tries again to send those for which there was no memory. @return how many are sent. */
unsigned r2_am_bufs_retry(r2_p2p_t *p2p);
/** Those of a peer will not be sent. */
void r2_am_bufs_drop(r2_p2p_t *p2p, uint32_t rank);
void r2_p2p_am_bufs_fini(r2_p2p_t *p2p);

/* p2p_get.c. Engine lock. */
r2_status_t r2_p2p_get_long(r2_p2p_t *p2p, uint32_t rank, void *local, uint64_t remote,
                            uint64_t bytes, r2_p2p_op_t *op);
/** Serves a request. @return false: not now. */
bool r2_p2p_get_serve(r2_p2p_t *p2p, const r2_p2p_inbound_t *inbound);
/** True while a get is not over: only then is data with its tag wanted. */
bool r2_p2p_awaits(const r2_p2p_t *p2p, const r2_tag_t *tag);
/** A release arrived. */
void r2_p2p_get_released(r2_p2p_t *p2p, r2_p2p_inbound_t *inbound);
/** Tells the peers of gets that are over. */
void r2_p2p_release(r2_p2p_t *p2p);
void r2_p2p_get_lost(r2_p2p_t *p2p, uint32_t rank, r2_status_t status);
void r2_p2p_get_fini(r2_p2p_t *p2p);

/* p2p_rma.c. Engine lock. */
/** Does what is asked. @return false: not now. */
bool r2_p2p_rma_serve(r2_p2p_t *p2p, const r2_p2p_inbound_t *inbound);
void r2_p2p_rma_replied(r2_p2p_t *p2p, r2_p2p_inbound_t *inbound);
void r2_p2p_rma_lost(r2_p2p_t *p2p, uint32_t rank, r2_status_t status);
void r2_p2p_rma_fini(r2_p2p_t *p2p);

/** r2_p2p_put() for a part: it is written when the peer has closed a connection. */
r2_status_t r2_p2p_put_fenced(r2_p2p_t *p2p, uint32_t rank, const void *local, uint64_t remote,
                              uint64_t bytes, uint64_t connection, r2_p2p_op_t *op);

/* p2p_direct.c. Engine lock. */
/** Asks for what the NICs have not moved. @return how much of it. */
unsigned r2_p2p_parts_start(r2_p2p_t *p2p);
void r2_p2p_direct_fini(r2_p2p_t *p2p);

/* p2p_requests.c. Engine lock. */
/** A request arrived: answered, or kept until it can be. */
void r2_p2p_requested(r2_p2p_t *p2p, r2_p2p_inbound_t *inbound);
/** Tries again what had to wait. @return how much of it is done. */
unsigned r2_p2p_retry(r2_p2p_t *p2p);
/** The link to a peer broke for good: only noted, if anything of ours was on it. */
void r2_p2p_lost(r2_p2p_t *p2p, uint32_t rank, r2_status_t status);
void r2_p2p_requests_fini(r2_p2p_t *p2p);

#endif
