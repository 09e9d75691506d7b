/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Packets, and what they carry: messages that are sent, control packets. For link/ only.
 */
#ifndef R2_LINK_PACKET_H
#define R2_LINK_PACKET_H

#include "base/table.h"
#include "base/util.h"
#include "link/link.h"

/** What an RTS says in its header: the message may be gone when it is sent. */
typedef struct r2_tx_rts {
    uint64_t number;
    r2_tag_t tag;
    uint64_t bytes;
    uint32_t chunk_bytes, digest;
} r2_tx_rts_t;

/** Two processes that this one relays for. Never given to others while something waits. */
typedef struct r2_relay_pair {
    uint32_t rank[2];  /* lower first */
    uint64_t bytes[2]; /* waiting for, or not acknowledged by, rank[i] */
    uint32_t calls[2]; /* of these the calls */
    uint64_t used_ns;  /* newest frame */
} r2_relay_pair_t;

/** What a RELAY packet carries, and for whom. */
typedef struct r2_tx_relay {
    char *data;            /* owned: the payload */
    r2_relay_pair_t *pair; /* borrowed: whose memory it takes; NULL: our own packet */
    uint32_t destination;
    uint8_t hop, side; /* of the header; of the pair */
    bool hello;        /* our own frame, and not of a relay lane */
    bool call;         /* counted in the pair's calls */
} r2_tx_relay_t;

/** What is sent and must be acknowledged: a chunk of a message, or a control packet. */
typedef struct r2_tx_item {
    struct r2_tx_item *prev, *next; /* in link->tx.control or link->tx.again */
    struct r2_tx_message *message;  /* DATA: borrowed, not to be used once acked; else NULL */
    uint32_t chunk;
    uint8_t kind; /* r2_wire_kind_t */
    bool acked, queued;
    uint16_t in_flight;     /* packets in flight on live lanes that carry it */
    uint16_t puts;          /* rails of the peer that it was put over, as bits */
    uint32_t refs;          /* packets that reference it in any way */
    uint32_t payload_bytes; /* control only */
    union {
        r2_wire_credit_t credits[R2_WIRE_CREDITS_MAX];
        r2_wire_lane_down_t lane_down;
        uint64_t given_up; /* VOID: message number */
        r2_wire_abort_t abort;
        r2_wire_query_t queries[R2_WIRE_QUERY_MAX];
        uint8_t notice[R2_NOTICE_BYTES_MAX];
        r2_tx_rts_t rts;
        r2_tx_relay_t relay;
        r2_wire_grant_t grant;
    } payload;
} r2_tx_item_t;
static_assert(offsetof(r2_tx_item_t, payload) <= 48,
              "all that a chunk needs of its item is in one cache line; the rest is never touched");
static_assert(sizeof(r2_tx_item_t) <= 560, "bounded by R2_WIRE_CREDITS_MAX entries of credit");

/** A message being sent. Freed when all chunks are acknowledged and no packet references it. */
typedef struct r2_tx_message {
    r2_table_node_t node;              /* in link->tx.uncredited, by tag, until all of it may go */
    struct r2_tx_message *prev, *next; /* in link->tx.queue while chunks are unsent */
    struct r2_tx_message *all_prev, *all_next; /* in link->tx.messages */
    r2_link_t *link;                           /* borrowed */
    uint64_t number;
    r2_tag_t tag;
    const char *data; /* borrowed, or copy */
    char *copy;       /* owned; NULL: data is the caller's */
    uint64_t copy_bytes;
    uint64_t bytes;
    r2_tp_memory_t memory;   /* data and bytes, for the transport */
    r2_tp_memory_t gpu;      /* what chunks were first sent from, if that is a GPU's */
    r2_wire_grant_t *target; /* owned: where it may be put; NULL: it is sent (put.c) */
    uint32_t chunk_bytes, chunk_count;
    uint32_t granted_chunks; /* first chunks that may be sent now */
    uint32_t ready_chunks;   /* first chunks whose data is there */
    uint32_t eager_chunks;   /* first chunks that travel against the budget of unexpected data */
    uint32_t next_chunk;     /* first unsent */
    uint32_t acked_chunks;
    uint32_t refs; /* packets that reference data */
    uint32_t digest;
    uint32_t order;   /* lower ones go first */
    bool map_pending; /* R2_WIRE_MAP_PENDING */
    bool uncredited;  /* in link->tx.uncredited */
    bool credited;    /* the receiver has granted some of it */
    bool requested;   /* credit was asked for */
    bool asks;        /* it is to be asked for when there is room for that */
    bool queued;
    bool may_copy;  /* it has room for a copy: its end waits for no acknowledgement */
    bool packed;    /* that of r2_link_block() */
    bool late_ack;  /* nothing waits for its acknowledgement so far */
    bool withdrawn; /* nobody waits any more */
    bool in_part;   /* withdrawn: what is not sent so far never is */
    bool on_gpu;    /* the CPU cannot read data (fetch.c) */
    bool fetching;  /* but will: they are being copied */
    r2_link_fetch_fn_t fetch;
    const r2_near_t *near;  /* borrowed: outlives the net; NULL: no rail is nearer */
    r2_link_done_fn_t done; /* NULL when copied */
    void *arg;
} r2_tx_message_t;

/** One transmission on one lane. Freed when the transport is through with it and it is settled. */
typedef struct r2_packet {
    r2_tp_send_t op;               /* first member */
    struct r2_packet *prev, *next; /* in lane->tx.in_flight, in order of lane_seq */
    struct r2_lane *lane;          /* borrowed; NULL once the lane was fenced */
    r2_net_t *net;                 /* borrowed */
    r2_tx_item_t *item;            /* NULL: not sequenced */
    uint64_t sent_ns;
    uint32_t bytes;            /* counted in the lane's window */
    uint32_t told;             /* the peer's clock when it was sent (unread.c) */
    struct r2_lane_conn *conn; /* borrowed: unsequenced packets only */
    bool settled;              /* acknowledged, abandoned, or never to be */
    bool transport_done;
    union {                      /* op.header_bytes tells which; not cleared */
        r2_wire_header_t header; /* of a short one only lane_seq and connection are to be read */
        r2_wire_short_t brief;
    };
} r2_packet_t;
static_assert(sizeof(r2_packet_t) <= 208,
              "cleared for each packet; a window of 1 MiB has hundreds");

#endif
