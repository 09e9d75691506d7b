/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Messages that are put where they belong, without a copy: granted memory and puts. For link/ only.
 */
#ifndef R2_LINK_PLACE_H
#define R2_LINK_PLACE_H

#include "link/tx.h"

/*
 * The receiver of a long message grants its memory with the first credit, to the lanes that are up
 * then. The sender puts chunks there, and each is followed on its lane by its header
 * (R2_WIRE_PLACED), which is acknowledged as data are. A chunk is put once; if it is sent again it
 * travels itself, and names the lanes that it was put over (R2_WIRE_UNSURE): that may still land,
 * at any time, until this end of the lane is closed. So such a copy is acknowledged and kept, and
 * given to its receive only when the header of each such put has come, or its lane is closed here:
 * nothing lands where a copy was taken, nor in memory that was given back. Lanes are closed as soon
 * as all that came on their rail is read, and after R2_PLACE_TIMES in any case.
 */

/** Memory of a receive that a peer may write to. */
typedef struct r2_place {
    struct r2_place *prev, *next; /* in link->rx.places */
    uint64_t number;              /* of its message, once that is known */
    uint64_t comm_key;
    uint64_t since_ns; /* since when it is held back; 0: it is not */
    bool held_back;    /* the receive is over, and its memory is not its owner's yet */
    /* of one that is held back: what its owner is to be told */
    r2_status_t status;
    r2_link_done_fn_t done; /* NULL: nobody waits */
    void *arg;              /* borrowed until done */
    struct {
        void *grant;     /* owned by the transport; NULL: nothing of this lane can land any more */
        uint32_t unsure; /* kept chunks that came by others, and were put over this one before */
        uint64_t since_ns; /* since when there are such */
    } lanes[R2_RAILS_MAX]; /* by index */
} r2_place_t;

/* ---- place.c: receiving ---- */

/** True if a message of so many bytes may be put: a lane to this peer has puts. */
bool r2_place_wants(const r2_link_t *link, uint64_t bytes);
/**
 * Grants the memory of a receive, and tells the peer, with its credit.
 * @param credit what would be told otherwise.
 * @return false: it is not granted, nothing was told.
 */
bool r2_place_offer(r2_link_t *link, r2_rx_match_t *match, const r2_wire_credit_t *credit);
/** True if the peer may have put to the receive over this lane. */
bool r2_place_is_granted(const r2_lane_t *lane, const r2_rx_match_t *match);
/** True if a chunk that was put over the lanes of these rails may still land in the receive. */
bool r2_place_doubts(const r2_link_t *link, const r2_rx_match_t *match, uint32_t rails);
/** Such a chunk has come by another lane, and is kept. */
void r2_place_unsure(r2_link_t *link, const r2_rx_match_t *match, uint32_t rails);
/** True if all that is kept of a message may be given to its receive. */
bool r2_place_is_sure(const r2_rx_match_t *match);
/** The header of a put came, of a chunk that was there already. @param match NULL: all of the
 * message was. */
void r2_place_sure(const r2_lane_t *lane, const r2_rx_match_t *match, uint64_t number);
/**
 * A receive is over. What was granted is given back, if it has all of its message; else what no
 * write can land in any more.
 * @return true: not all is; its owner is told, by match->done, when it is.
 */
bool r2_place_hold_back(r2_link_t *link, r2_rx_match_t *match, r2_status_t status);
/** A lane's endpoint is closed: gives back what was granted to it. */
void r2_place_closed(r2_lane_t *lane, r2_tp_worker_t *worker);
/** When a lane is to be closed for what may still be written over it; R2_NEVER_NS: it is not. */
uint64_t r2_place_due_ns(const r2_lane_t *lane);
/** Nobody waits any more for what is held back. */
void r2_place_forget(r2_link_t *link);
/** Frees a place of which nothing is granted any more. */
void r2_place_free(r2_link_t *link, r2_place_t *place);

/* ---- place_end.c: receives that are given up ---- */

/** A receive is given up, and its owner takes the memory back at once: lanes that may still write
 * there are closed. Never from inside a callback. */
void r2_place_drop(r2_link_t *link, r2_rx_match_t *match);
/** The same for all that is held back of a communicator: `done` is not called. */
void r2_place_withdraw(r2_link_t *link, uint64_t comm_key);

/* ---- put.c: sending ---- */

/** @param data a grant that was checked, of so many bytes. @return NULL: puts are off, or no
 * memory. */
r2_wire_grant_t *r2_put_target_new(r2_net_t *net, const void *data, size_t bytes);
/** Frees it, if there is one. */
void r2_put_target_drop(r2_net_t *net, r2_wire_grant_t **target);
/** A message is to be put, if this is for it, and it has no other. Takes the target. */
void r2_put_target_set(r2_tx_message_t *message, r2_wire_grant_t **target);
/** @return the key with which a chunk can be put over this lane now; NULL: it has to be sent. */
const r2_wire_key_t *r2_put_key(const r2_lane_t *lane, const r2_tx_item_t *item);
/** Puts a packet of data. @return as put() of the transport. */
r2_status_t r2_put_packet(r2_lane_t *lane, r2_packet_t *packet, const r2_wire_key_t *key);

#endif
