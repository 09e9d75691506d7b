/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Receives, the messages that come for them, and credit: what a link keeps of those. For link/
 * only.
 */
#ifndef R2_LINK_MATCH_H
#define R2_LINK_MATCH_H

#include "base/table.h"
#include "base/util.h"
#include "link/link.h"

/** A chunk that arrived before its receive was posted. */
typedef struct r2_early_chunk {
    struct r2_early_chunk *next;
    uint64_t offset;
    uint32_t bytes;
    bool eager;
    char data[];
} r2_early_chunk_t;

/** A message being received or received and not yet given to a receive. */
typedef struct r2_rx_message {
    r2_table_node_t node; /* in link->rx.arriving, by number, until all chunks are held */
    struct r2_rx_message *prev, *next; /* in link->rx.deferred, or link->rx.grants.discards */
    uint64_t number;
    r2_tag_t tag;
    uint64_t bytes;
    uint32_t chunk_bytes, chunk_count;
    uint32_t held; /* chunks received */
    uint32_t digest;
    bool map_pending;        /* R2_WIRE_MAP_PENDING was on it */
    bool awaited;            /* R2_WIRE_ACK_NOW was on it: the sender waits */
    uint32_t first;          /* so many chunks were given to the receive from the start on */
    bool discard;            /* nobody wants it: acknowledge and drop */
    bool deferred;           /* in link->rx.deferred: has unexpected chunks and a posted receive */
    bool untold;             /* in link->rx.grants.discards */
    r2_early_chunk_t *early; /* owned list */
    uint64_t *bitmap;        /* owned: chunks received; for up to 64 of them `bits` */
    uint64_t bits;
    struct r2_rx_match *match; /* borrowed; NULL when discarding */
} r2_rx_message_t;

/** Meeting point of a receive and a message with the same tag. */
typedef struct r2_rx_match {
    r2_table_node_t node; /* in link->matches, by tag */
    r2_tag_t tag;
    bool posted;
    bool striped;           /* r2_link_stripes(), when it was posted */
    bool is_short;          /* of up to R2_RX_SHORT_BYTES */
    bool rts;               /* the sender asked for credit */
    bool asking;            /* in link->rx.grants.recvs: it is to get more credit */
    uint32_t chunk_bytes;   /* of its message, once that was heard of; 0 = not yet */
    uint64_t granted_bytes; /* the most that was granted, from the start of the message */
    uint64_t given_bytes;   /* bytes that were given to the receive */
    uint64_t open_bytes;    /* counted in link->rx.grants: granted and not given */
    char *data;             /* borrowed; NULL with a sink that takes all */
    r2_link_sink_fn_t sink;
    uint32_t grain_bytes; /* as in r2_link_recv_t */
    r2_tp_memory_t gpu;   /* gpu_id 0: what is put goes to data */
    void *gpu_data;       /* borrowed */
    uint64_t bytes;       /* as digest */
    uint32_t digest;      /* the receive's; not posted: the sender's that asked for credit */
    uint64_t since_ns;    /* when it was posted */
    bool lands;           /* lanes may write to it now: r2_lane_conn_t.landing */
    bool *map_pending;    /* borrowed, or NULL */
    r2_link_arrived_fn_t arrived;
    r2_link_done_fn_t done;
    void *arg;
    struct r2_place *place;          /* owned: its memory is granted; NULL: it is not (place.h) */
    r2_rx_message_t *message;        /* owned once there */
    r2_unexpected_t unexpected;      /* which of link->rx.unexpected it is in */
    struct r2_rx_match *prev, *next; /* there, or in link->rx.grants.recvs */
} r2_rx_match_t;

/** Credit that came before its message. */
typedef struct r2_credit {
    r2_table_node_t node; /* in link->credits, by tag */
    r2_tag_t tag;
    uint64_t bytes;
    r2_wire_grant_t *target; /* owned: where the message may be put; NULL: it is sent */
} r2_credit_t;

/** Receives by what is known of their messages (grant.c). */
typedef enum r2_grant_kind {
    R2_GRANT_UNHEARD, /* nothing: they may be late for ever */
    R2_GRANT_HEARD,   /* under way: what is granted comes, unless the peer is stopped */
    R2_GRANT_KINDS
} r2_grant_kind_t;

/** Unexpected messages of a kind that a link has for its receiver (unexpected.c). */
typedef struct r2_unexpected_queue {
    struct r2_unexpected_queue *prev, *next; /* in net->unexpected, while there are calls */
    r2_link_t *link;                         /* borrowed */
    r2_rx_match_t *matches;                  /* list: receives that are not posted, oldest first */
} r2_unexpected_queue_t;

/** Credit that a link gives to its peer. */
typedef struct r2_grants {
    r2_rx_match_t *recvs[R2_GRANT_KINDS]; /* lists: receives that are to get more, oldest first */
    uint64_t open_bytes[R2_GRANT_KINDS];  /* granted and not given to the receives */
    r2_wire_credit_t notify[R2_WIRE_CREDITS_MAX]; /* to be sent with the next packet */
    uint32_t notify_count;
    r2_rx_message_t *discards; /* list: thrown away, and the peer is to be told that all may come */
} r2_grants_t;

#endif
