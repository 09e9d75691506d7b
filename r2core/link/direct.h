/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A peer's memory, read and written by NICs while its process does something else. For link/ only.
 */
#ifndef R2_LINK_DIRECT_H
#define R2_LINK_DIRECT_H

#include "link/tx.h"

/*
 * The owner has registered the memory and told its keys, one for each rail (r2_tp_key_t). Lanes
 * pull pieces, as they pull chunks, and each piece is one work request.
 *
 * A read is over when our NIC says so. One that has failed may be written here until our queue pair
 * is gone: only then it counts as lost.
 *
 * A write is over when our NIC says so, which ends reading of our memory, and the peer has
 * acknowledged a packet that went on the same connection after it: that the peer's NIC has
 * acknowledged the write says nothing of the peer's memory. A write whose connection ends before
 * that counts as lost, and may land as long as the peer's end of that connection stands: whoever
 * writes again has the peer close that first (r2_link_fence()).
 */

/** What has become of a piece. */
typedef enum r2_piece_state {
    R2_PIECE_IDLE,   /* free for the next one */
    R2_PIECE_FLYING, /* the transport has it */
    R2_PIECE_UNSURE, /* written, as our NIC says: to be confirmed by the peer's process */
    R2_PIECE_FAILED, /* the transport says so: until the connection is closed it may go on */
    R2_PIECE_OVER,
    R2_PIECE_LOST
} r2_piece_state_t;

/** A part of what is read or written, on one lane. */
typedef struct r2_piece {
    struct r2_direct *direct; /* borrowed */
    r2_lane_t *lane;          /* borrowed: on its connection of that time */
    r2_lane_conn_t *conn;     /* borrowed while FLYING */
    r2_tp_send_t op;
    uint64_t offset;
    uint64_t connection; /* as the peer knows it */
    uint32_t bytes;
    uint32_t seq; /* a packet with this number on the lane, or a later one, goes after it */
    r2_piece_state_t state;
    bool confirmed; /* the peer's process has got such a packet */
} r2_piece_t;

#define R2_DIRECT_PIECES 2u /* on each lane at a time */
/* So many of a link are under way at a time, those that began first: each look and each
 * acknowledgement is for all their pieces. */
#define R2_DIRECT_OPEN 16u

/** What is under way. */
typedef struct r2_direct {
    struct r2_direct *prev, *next; /* in link->directs */
    r2_link_t *link;               /* borrowed */
    r2_link_direct_t args;         /* keys: `keys` */
    r2_tp_key_t keys[R2_DIRECT_KEYS_MAX];
    r2_tp_memory_t memory; /* `local`, for the transport */
    uint64_t next_offset;  /* all before is done, under way or lost */
    uint32_t piece_bytes;
    uint32_t refused;    /* lanes, by index, whose transport did not take one */
    uint32_t count;      /* of pieces */
    r2_piece_t pieces[]; /* R2_DIRECT_PIECES for each lane */
} r2_direct_t;

/** The first of a link that may be under way, and the next one; NULL: the others wait. */
#define R2_DIRECT_FOREACH(direct, link, count)                                                  \
    for ((count) = 0, (direct) = (link)->directs; NULL != (direct) && (count) < R2_DIRECT_OPEN; \
         (direct) = (direct)->next, ++(count))

/* ---- direct.c: what becomes of pieces ---- */

/** The peer holds all packets of a lane before this one. */
void r2_direct_acked(const r2_lane_t *lane, uint32_t next);
/** A lane's endpoint is closed: neither end reads or writes by it any more, as far as this end
 * knows. */
void r2_direct_closed(const r2_lane_t *lane);
/** The transport is done with a piece. */
void r2_piece_sent(r2_tp_send_t *op, r2_status_t status);
/** Takes it off, and frees it: no piece is FLYING. */
void r2_direct_free(r2_direct_t *direct);

/* ---- direct_move.c: lanes pull pieces ---- */

/** Goes on with all of a link. In each progress pass. */
void r2_direct_progress(r2_link_t *link);
/** @return when it is to be called next; R2_NEVER_NS: not by itself. */
static inline uint64_t r2_direct_deadline_ns(const r2_link_t *link)
{
    return 0 == link->tx.direct_ns ? R2_NEVER_NS : link->tx.direct_ns;
}
/** All of a link fails. Never from inside a callback. */
void r2_direct_break(r2_link_t *link, r2_status_t status);

#endif
