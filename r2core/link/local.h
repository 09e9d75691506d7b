/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Links within a host: short messages through mailboxes in shared memory, beside the lane. For
 * link/ only.
 *
 * Memory loses nothing: a message in a mailbox is delivered as far as its sender is concerned, and
 * needs no number, acknowledgement or copy. It comes out of the same budget of unexpected data as
 * what is sent eagerly on lanes. Where there is no mailbox, no room in it, or no budget, a message
 * takes the lane: each of them for itself, as messages have no order. So the two ends need not
 * agree on anything, and all that is not data (credit, aborts, the end) stays with the lane.
 *
 * What a peer says on the lane may overtake what it wrote before: who acts on LEAVE or DENIED reads
 * the mailbox first.
 */
#ifndef R2_LINK_LOCAL_H
#define R2_LINK_LOCAL_H

#include "link/state.h"
#include "local/inbox.h"

#define R2_LOCAL_MAP_PENDING 1u /* flag of a record: as R2_WIRE_MAP_PENDING */

/** A record: a message. */
typedef struct r2_local_record {
    r2_tag_t tag;
    uint32_t digest;
    uint32_t flags;
} r2_local_record_t;

static_assert(28 == sizeof(r2_local_record_t), "28 bytes of data beside it in the first line");

/** The mailboxes of a link. Engine lock. */
typedef struct r2_local {
    struct r2_local *prev, *next; /* in net->locals, once `in` is there */
    r2_link_t *link;              /* borrowed */
    r2_outbox_t out;              /* owned; head NULL: messages take the lane */
    r2_mailbox_in_t in;           /* box borrowed: the inbox's; NULL: none so far */
    uint32_t out_most, in_most;   /* bytes of the longest message that each takes */
    uint32_t budget_bytes;        /* of unexpected data */
    uint32_t told;                /* what the peer was told of rx.consumed */
    bool wrong;                   /* what the peer wrote is no record: it is to be given up */
} r2_local_t;

/* local.c */
/** Bytes of the longest message that a mailbox takes. @param lines of its ring. */
uint32_t r2_local_most(uint32_t lines);
/**
 * Makes the inbox of this process, if it can.
 * @param address_p to be published: R2_INBOX_ADDRESS_BYTES. @return bytes of it; 0: there is none.
 */
uint32_t r2_local_init(r2_net_t *net, uint8_t *address_p);
/** After all links are gone. */
void r2_local_fini(r2_net_t *net);
/** What a link within the host has for this, made when first asked for. @return NULL: no memory. */
r2_local_t *r2_local_get(r2_link_t *link);
void r2_local_free(r2_link_t *link);
/** Puts a message into the peer's mailbox. @return false: it has to take the lane. */
bool r2_local_send(r2_link_t *link, const r2_link_send_t *args);
/**
 * True if the next record in the mailbox is what this receive is for: it got it.
 * @param status_p R2_OK, or R2_ERR_PLAN_MISMATCH.
 */
bool r2_local_at_hand(r2_link_t *link, const r2_link_recv_t *args, r2_status_t *status_p);
/** Whoever writes from now on wakes this process. @return false: there is something already. */
bool r2_local_arm(r2_net_t *net);
/** Gives the record back that was taken, and tells the peer what of it is consumed. */
void r2_local_release(r2_local_t *local);
/** What is read of the next record; its data stays in the mailbox. @return R2_OK,
 * R2_IN_PROGRESS: there is none; R2_ERR_WIRE. */
r2_status_t r2_local_peek(r2_local_t *local, r2_local_record_t *record_p, const void **data_p,
                          uint32_t *bytes_p);

/* local_rx.c */
/** Reads all mailboxes of a net with an inbox. @return messages. */
unsigned r2_local_poll(r2_net_t *net);
/** Reads all that is in a link's mailbox now. @return false: not all of it, there was no memory. */
bool r2_local_drain(r2_link_t *link);

/** True if what the peer sends may come by a mailbox. */
static inline bool r2_local_hears(const r2_link_t *link)
{
    return NULL != link->local && NULL != link->local->in.box;
}

/** True if messages went into a mailbox of the peer. */
static inline bool r2_local_speaks(const r2_link_t *link)
{
    return NULL != link->local && 0 != link->local->out.ring.at;
}

#endif
