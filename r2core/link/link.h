/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Links: reliable, striped, tagged messages between two processes over all their rails.
 */
#ifndef R2_LINK_LINK_H
#define R2_LINK_LINK_H

#include "link/net.h"
#include "r2/near.h"

typedef struct r2_link r2_link_t;
typedef struct r2_tx_message r2_tx_message_t;

/** A message or a posted receive is complete (or failed for good). Only notes it: called in the
 * middle of progress. */
typedef void (*r2_link_done_fn_t)(void *arg, r2_status_t status);

/** The CPU has to read a message that is in memory of a GPU: r2_link_fetched() is to be called, not
 * from within this. Only notes it: called in the middle of progress, once. @param arg of done */
typedef void (*r2_link_fetch_fn_t)(void *arg);

/** Takes part of a message in place of memory: each byte once, in any order; called by application
 * threads only. */
typedef void (*r2_link_sink_fn_t)(void *arg, uint64_t offset, const void *data, uint64_t bytes);

/** So many bytes of a message are in the memory of its receive, from the start on. Called before it
 * is complete, in the middle of progress: may do no more than r2_link_ready(). */
typedef void (*r2_link_arrived_fn_t)(void *arg, uint64_t bytes);

/**
 * Key of unexpected messages: the receiver posts their receives when it hears of them
 * (r2_net_unexpected()). No communicator has it.
 */
#define R2_LINK_UNEXPECTED_KEY UINT64_MAX
/**
 * Messages with this key and above belong to no communicator. Nothing ever ends them, so no credit
 * is sent for their receives before they are heard of: it might come late, and be kept for ever.
 */
#define R2_LINK_OWN_KEYS (R2_LINK_UNEXPECTED_KEY - 1)

/** From the last word of a peer whose lanes rest, to a question that opens one. */
#define R2_ASK_RESTING_NS (5 * R2_NS_PER_S)

/** Unexpected messages whose receive is not posted yet. */
typedef enum r2_unexpected {
    R2_UNEXPECTED_NONE,
    R2_UNEXPECTED_COMPLETE, /* all of it is kept as unexpected: a receive is complete at once */
    R2_UNEXPECTED_ASKING    /* the sender waits for credit */
} r2_unexpected_t;

/**
 * The next unexpected message of a kind: the oldest of the link whose turn it is. It stays there
 * until its receive is posted.
 * @return false: there is none.
 */
bool r2_net_unexpected(const r2_net_t *net, r2_unexpected_t which, r2_link_t **link_p,
                       r2_tag_t *tag_p, uint64_t *bytes_p);
/** Gives the turn to the next link with unexpected messages of a kind. */
void r2_net_unexpected_turn(r2_net_t *net, r2_unexpected_t which);
/** Throws the next unexpected message of a kind away: what arrives of it is acknowledged and
 * dropped, and it gets no credit. */
void r2_net_unexpected_refuse(r2_net_t *net, r2_unexpected_t which);

/** A message to send. */
typedef struct r2_link_send {
    r2_tag_t tag;
    const void *data;       /* borrowed until done */
    uint64_t bytes;         /* 0 allowed */
    uint32_t chunk_bytes;   /* unit of striping; at most chunk_max_bytes */
    uint32_t digest;        /* plan digest, must match the receiver's */
    uint32_t order;         /* lower ones go first; equal ones in turn */
    uint64_t granted_bytes; /* what the receiver's receive has got already (r2_link_recv_t), and
                               told otherwise */
    bool map_pending;       /* R2_WIRE_MAP_PENDING on all of it */
    void *block;            /* of r2_link_block(), in place of `data`: owned unless it fails */
    bool copied;            /* only if `data` is free again at once */
    bool brief;             /* so it is where there is room, whatever the length */
    bool patient;           /* where there is room for a copy, no acknowledgement is asked for */
    bool late_ack;          /* until r2_link_ask() nothing waits for its acknowledgement */
    bool filling;           /* nothing of `data` is there yet: r2_link_ready() tells what is */
    /* not NULL: `data` is in this memory of a GPU, and r2_link_reads_gpus(). What NICs cannot read
     * there, and what has to be sent again, is fetched */
    const r2_tp_memory_t *gpu;
    r2_link_fetch_fn_t fetch; /* of `gpu` */
    /* how near rails are to `data`: lanes of the nearest go first where they are done as soon;
     * outlives the net; NULL: all are as near */
    const r2_near_t *near;
    r2_tx_message_t **message_p; /* gets the message if it is under way: for r2_link_keep(), until
                                    done; or NULL */
    r2_link_done_fn_t done;
    void *arg; /* borrowed until done */
} r2_link_send_t;

/**
 * Part of what NICs were to read or write was not, and its connection is closed here. To be moved
 * in another way; a write may still land until r2_link_fence() was called at the peer. Only notes
 * it: called in the middle of progress.
 * @param connection as the peer knows it; 0: none of it was ever under way.
 * @return false: there is no memory to note it, it is told again.
 */
typedef bool (*r2_direct_lost_fn_t)(void *arg, uint64_t offset, uint64_t bytes,
                                    uint64_t connection);

#define R2_DIRECT_KEYS_MAX 8u /* rails of which a peer is told keys */

/** Memory of the peer that NICs are to read or write by themselves. */
typedef struct r2_link_direct {
    bool writes;
    void *local; /* borrowed until done */
    uint64_t remote, bytes;
    const r2_tp_key_t *keys; /* borrowed for the call */
    uint32_t key_count;      /* at most R2_DIRECT_KEYS_MAX */
    r2_direct_lost_fn_t lost;
    r2_link_done_fn_t done; /* R2_OK: all of it is moved, but for what is lost */
    void *arg;              /* borrowed until done */
} r2_link_direct_t;

/** A receive that waits for a message. */
typedef struct r2_link_recv {
    r2_tag_t tag;
    void *data;             /* borrowed until done; NULL with a sink that takes all */
    r2_link_sink_fn_t sink; /* NULL: copied to data */
    /* not 0: the sink may be called by any thread, and a message whose chunks are no multiples of
     * this, or that is put there, is in data all the same */
    uint32_t grain_bytes;
    /* not NULL: r2_link_puts_to_gpus(), and peers may put the message to `gpu_data`, in this memory
     * of a GPU: the sink, with a grain of 1, is given what comes otherwise */
    const r2_tp_memory_t *gpu;
    void *gpu_data; /* borrowed until done */
    uint64_t bytes; /* must equal the message's */
    uint32_t digest;
    /* credit that the sender is to be told by the caller; NULL: it gets a packet */
    uint64_t *granted_p;
    bool *map_pending; /* borrowed until done; set, before done, if the message says that a map is
                          pending; or NULL */
    r2_link_arrived_fn_t arrived; /* told of what has come so far; NULL: of the end only */
    r2_link_done_fn_t done;
    void *arg; /* borrowed until done */
} r2_link_recv_t;

/**
 * Sends a message. Delivered exactly once, over any lanes.
 * @return R2_OK: `data` is free again, `done` is not called (short: copied); R2_IN_PROGRESS: `done`
 *         will be called when everything is acknowledged and nothing references `data`;
 *         R2_ERR_NO_PATH, R2_ERR_PEER_GONE, R2_ERR_PARAM (too long), R2_ERR_NO_MEMORY (also: cannot
 * be copied, but has to be).
 */
r2_status_t r2_link_send(r2_link_t *link, const r2_link_send_t *args);

/**
 * So many bytes of a message that was sent as `filling` are there, from its start on. Not fewer
 * than before. May be called while a receive is told of bytes that have arrived.
 */
void r2_link_ready(r2_tx_message_t *message, uint64_t bytes);

/** True if every lane to the peer that is up, and one is, can send memory of a GPU. */
bool r2_link_reads_gpus(const r2_link_t *link);
/** True if, besides, this process lets peers put messages to its memory. */
bool r2_link_puts_to_gpus(const r2_link_t *link);
/** A message that was to be fetched is here. @param data borrowed until done */
void r2_link_fetched(r2_tx_message_t *message, const void *data);

/** Whether a message of this length would be copied now, so that r2_link_send() gives R2_OK. */
bool r2_link_copies(const r2_link_t *link, uint64_t bytes);

/**
 * Memory for a message to be written straight to where it would be copied, if all of it would leave
 * at once. @return NULL: it would not, or there is no memory.
 */
void *r2_link_block(r2_link_t *link, uint64_t bytes, uint32_t chunk_bytes);
/** For one that was not sent. @param bytes as asked for. */
void r2_link_block_free(r2_link_t *link, void *block, uint64_t bytes);

/**
 * Whether a message is only to be acknowledged yet, and there is room for a copy of it: all of it
 * was handed to the transport, which reads it no more.
 */
bool r2_link_may_keep(const r2_tx_message_t *message);
/**
 * Copies a message that may be kept, so that its data is free again.
 * @return true: `done` will not be called; false: it may not, or no memory; nothing has changed.
 */
bool r2_link_keep(r2_tx_message_t *message);

/**
 * From now on somebody waits for a message with `late_ack`: what of it is not acknowledged is asked
 * for, on each lane once.
 */
void r2_link_ask(r2_tx_message_t *message);

/**
 * Posts a receive for a message, granting credit for it.
 * @return R2_OK: already there, `done` is not called; R2_IN_PROGRESS: `done` will be called, with
 *         R2_ERR_PLAN_MISMATCH if length or digest differ; R2_ERR_PEER_GONE, R2_ERR_NO_MEMORY.
 */
r2_status_t r2_link_recv(r2_link_t *link, const r2_link_recv_t *args);

/**
 * Has NICs read or write a peer's memory. Which pieces go over which lane is seen as they go.
 * @return R2_IN_PROGRESS; R2_ERR_UNSUPPORTED: no lane is up that could, R2_ERR_NO_PATH,
 *         R2_ERR_PEER_GONE, R2_ERR_NO_MEMORY: nothing is done.
 */
r2_status_t r2_link_direct(r2_link_t *link, const r2_link_direct_t *args);
/** A peer's write over this connection was lost: nothing of it lands any more when this returns.
 * Never from inside a callback. @param connection as packets to us name it. */
void r2_link_fence(r2_link_t *link, uint64_t connection);
/** What NICs read and write ends: `done` is not called. Never from inside a callback. */
void r2_direct_withdraw(r2_link_t *link);

/**
 * Gives a posted receive up, if it is there: `done` is not called. What comes of its message is
 * thrown away, if the upcall `over` is true of the tag from now on.
 */
void r2_link_unpost(r2_link_t *link, const r2_tag_t *tag);

/** Forgets early credits of a collective that is over on this process. @param tag of any receive of
 * it. */
void r2_link_forget(r2_link_t *link, const r2_tag_t *tag);

/**
 * Withdraws everything of a communicator (freed or failed): posted receives, unexpected data,
 * credits, and messages whose data is borrowed. `done` is not called. Copied messages are still
 * delivered.
 */
void r2_link_withdraw(r2_link_t *link, uint64_t comm_key);

/** Tells the peer that a communicator failed for good here. @return false: no memory now. */
bool r2_link_abort(r2_link_t *link, uint64_t comm_key, r2_status_t status);

/** True if nothing waits to be sent to the peer, and little is under way beside so many bytes. */
bool r2_link_is_quiet(const r2_link_t *link, uint64_t bytes);
/** True if the peer is on this host. */
bool r2_link_is_beside(const r2_link_t *link);
/** True if both ends have mailboxes for each other. Both know alike. */
bool r2_link_lends(const r2_link_t *link);
/** Reads memory of the peer where both ends have mailboxes. @param pid what the peer says it is
 * @param address there @return false: it cannot be read, also where some of it was. */
bool r2_link_fetch(const r2_link_t *link, uint64_t pid, uint64_t address, void *to, uint64_t bytes);
/** Process number of the peer. */
uint32_t r2_link_peer(const r2_link_t *link);
/** R2_OK, or why messages to and from the peer were given up. */
r2_status_t r2_link_broken(const r2_link_t *link);
/** The peer's process has ended, as is known from elsewhere: what is under way with it is lost. */
void r2_link_gone(r2_link_t *link);
/** True if the peer has called MPI_Finalize. */
bool r2_link_is_left(const r2_link_t *link);
/**
 * What has become of a peer to which nothing is sent any more. @return R2_ERR_PEER_GONE: it has
 * said that it ends, or its host refuses for it; R2_ERR_AGAIN: no lane to it works, and it is asked
 * for from now on; R2_OK: a lane works.
 */
r2_status_t r2_link_ask_after(r2_link_t *link);
/**
 * Is it time to ask after a peer that nothing is sent to, since it was asked after so long ago?
 * Where lanes rest for want of descriptors a question opens one: those are asked after at least
 * R2_ASK_RESTING_NS after the peer was heard, or asked after.
 */
bool r2_link_may_ask(const r2_link_t *link, uint64_t pause_ns);
/** Says so in the net's error text. @return R2_ERR_PEER_GONE. */
r2_status_t r2_link_has_left(const r2_link_t *link);
/** Says in the net's error text that the peer makes other calls. @return R2_ERR_PLAN_MISMATCH. */
r2_status_t r2_link_mismatch(r2_link_t *link);
/** Host name of the peer. */
const char *r2_link_host(const r2_link_t *link);

/** Text that names both ends' rails and their state, for error messages. */
void r2_link_describe(const r2_link_t *link, char *text_p, size_t text_bytes);

#endif
