/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Wire format: the packed header of every packet, its short form, and their validation
 * (docs/protocol.md).
 */
#ifndef R2_LINK_WIRE_H
#define R2_LINK_WIRE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "r2/status.h"
#include "r2/verdict.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#    error "the wire format is little endian; add conversions to link/wire.c"
#endif

#define R2_WIRE_VERSION      11
#define R2_WIRE_SHORT        0x80 /* in place of the kind, with the flags: DATA in the short form */
#define R2_WIRE_MESSAGE_MAX  (1ull << 40) /* bytes of one message */
#define R2_WIRE_CHUNKS_MAX \
    (1u << 28) /* of one message: R2_WIRE_MESSAGE_MAX in halves of the least chunk_max_bytes */
#define R2_WIRE_CHUNKS_MANY (1u << 20) /* above this chunks grow as far as chunk_max_bytes allows \
                                        */
#define R2_WIRE_CREDITS_MAX 16         /* entries in one credit packet */
#define R2_WIRE_QUERY_MAX   8          /* entries in one packet of waits or denials */
#define R2_WIRE_KEYS_MAX    16         /* lanes that one grant names */
#define R2_WIRE_KEY_BYTES   12         /* of a transport's key, at most */

/** Kinds of packets. From R2_WIRE_DATA to R2_WIRE_LEAVE they carry a lane sequence number and are
 * acknowledged. */
typedef enum r2_wire_kind {
    R2_WIRE_HELLO = 1, /* first packet of a lane, each way */
    R2_WIRE_HELLO_ACK, /* answer to HELLO: the lane works in the other direction */
    R2_WIRE_ACK,       /* nothing but the acknowledgement fields */
    R2_WIRE_DATA,      /* one chunk of a message */
    R2_WIRE_CREDIT,    /* payload: r2_wire_credit_t[]: how much of messages may come */
    R2_WIRE_RTS,       /* a message waits for credit */
    R2_WIRE_LANE_DOWN, /* payload: r2_wire_lane_down_t: a lane of the receiver that is no more */
    R2_WIRE_PING,      /* asks for an acknowledgement */
    R2_WIRE_ABORT,     /* payload: r2_wire_abort_t: a communicator failed for good */
    R2_WIRE_NOTICE,    /* payload: a notice about health, up to R2_NOTICE_BYTES_MAX bytes */
    R2_WIRE_RELAY,  /* payload: r2_wire_relay_t and a frame between two processes by way of a third
                     */
    R2_WIRE_QUERY,  /* payload: r2_wire_query_t[]: receives that have waited for long: will they get
                       a  message? */
    R2_WIRE_DENIED, /* payload: r2_wire_query_t[]: receives of the peer that never will */
    R2_WIRE_VOID,   /* payload: uint64_t: number of a message whose rest never comes */
    R2_WIRE_GRANT,  /* payload: r2_wire_grant_t: credit, and where its message may be put */
    R2_WIRE_LEAVE,  /* the sender ends: it holds all it wants, and all it had is acknowledged */
    R2_WIRE_CLOSE,  /* not sequenced: asks for the end of this lane, which carries nothing */
    R2_WIRE_CLOSED, /* not sequenced: this lane is over */
    R2_WIRE_KIND_END
} r2_wire_kind_t;

enum {
    R2_WIRE_ACK_NOW = 1 << 0, /* the sender waits for the acknowledgement */
    R2_WIRE_EAGER = 1 << 1, /* sent without credit: counts against the budget of unexpected data */
    R2_WIRE_HEDGE = 1 << 2, /* sent again while the first copy may still arrive */
    R2_WIRE_MAP_PENDING = 1 << 3, /* the sender's health map is newer than the agreed one */
    R2_WIRE_PLACED = 1 << 4, /* DATA without data: they were put to granted memory before */
    /* DATA that were put before, over lanes of the receiver's rails that are in `destination`: that
     * may still land */
    R2_WIRE_UNSURE = 1 << 5,
    R2_WIRE_FLAGS_ALL = (1 << 6) - 1
};

/** Where a message belongs: communicator with incarnation, sequence in it, collective, receive. */
typedef struct __attribute__((packed)) r2_tag {
    uint64_t comm_key;
    uint32_t sequence; /* 0: the communicator's own (docs/protocol.md) */
    uint32_t coll_seq;
    uint32_t id;
} r2_tag_t;

static_assert(20 == sizeof(r2_tag_t), "tags travel in credit packets and are hash keys");

/** True if both are of the same collective. */
static inline bool r2_tag_same_coll(const r2_tag_t *a, const r2_tag_t *b)
{
    return a->comm_key == b->comm_key && a->sequence == b->sequence && a->coll_seq == b->coll_seq;
}

/**
 * Credit for a receive: first bytes of its message that may come, up to a whole chunk. Counted from
 * the start of the message, so that the most of all that was ever said for a receive holds, in
 * whatever order it arrives.
 */
typedef struct r2_wire_credit {
    r2_tag_t tag;
    uint32_t heard; /* 1: the message is known to be under way; 0: only its receive is there */
    uint64_t bytes;
} r2_wire_credit_t;

static_assert(32 == sizeof(r2_wire_credit_t), "travels in credit packets");

/** Lets the sender of a message put over one lane. */
typedef struct r2_wire_key {
    uint64_t connection; /* the receiver's id of the lane: of another one the key is no good */
    uint32_t bytes;      /* of the key */
    uint8_t key[R2_WIRE_KEY_BYTES];
} r2_wire_key_t;

/** Credit for a receive, and where its message may be put. `count` keys travel. */
typedef struct r2_wire_grant {
    r2_wire_credit_t credit;
    uint64_t address; /* of all of it, in the receiver's process */
    uint64_t bytes;   /* of all of it: the message's, or there are no puts; as the digest */
    uint32_t digest;
    uint32_t count;
    r2_wire_key_t keys[R2_WIRE_KEYS_MAX];
} r2_wire_grant_t;

static_assert(56 == offsetof(r2_wire_grant_t, keys) && 24 == sizeof(r2_wire_key_t),
              "travels in packets of grants");

/** A lane whose connection the sender has closed. */
typedef struct r2_wire_lane_down {
    uint64_t connection; /* the sender's id of it, which its packets to the sender carry */
    uint32_t rested;     /* 1: closed for what it held, it had not failed; 0: it had */
    uint32_t reserved;
} r2_wire_lane_down_t;

static_assert(16 == sizeof(r2_wire_lane_down_t), "travels in packets about lanes");

/** Tells the members of a communicator that it failed for good. */
typedef struct r2_wire_abort {
    uint64_t comm_key;
    int32_t status; /* r2_status_t, < 0 */
    uint32_t reserved;
} r2_wire_abort_t;

static_assert(16 == sizeof(r2_wire_abort_t), "travels in abort packets");

/** A receive that waits. */
typedef struct r2_wire_query {
    r2_tag_t tag;
    uint32_t digest; /* of its plan */
} r2_wire_query_t;

static_assert(24 == sizeof(r2_wire_query_t), "travels in packets of waits and denials");

/** What is relayed: the start of the payload. The header tells destination and hop. */
typedef struct r2_wire_relay {
    uint32_t source; /* process that speaks, or in whose name is spoken */
    uint32_t op;     /* r2_relay_op_t */
    uint64_t id;     /* connection or call, depends on op */
} r2_wire_relay_t;

static_assert(16 == sizeof(r2_wire_relay_t), "travels in relay packets");

/** The header. Fields from `message` on are 0 unless the kind is DATA or RTS. */
typedef struct __attribute__((packed)) r2_wire_header {
    uint8_t version;
    uint8_t kind; /* r2_wire_kind_t */
    uint8_t flags;
    uint8_t hop;         /* relays so far */
    uint32_t lane_seq;   /* of this packet on its lane */
    uint64_t connection; /* the receiver's id of this lane: fence and cookie */
    /* every lane_seq before this one is held by the sender of this packet */
    uint32_t ack_next;
    uint32_t ack_bits;      /* bit i: lane_seq ack_next + 1 + i is held, too */
    uint32_t ack_held_us;   /* how long the newest of them waited for this acknowledgement */
    uint32_t consumed;      /* eager bytes given to receives so far on this link, modulo 2^32 */
    uint32_t digest;        /* of the plan that the message belongs to */
    uint32_t length;        /* payload bytes of this packet */
    uint64_t message;       /* link message number: de-duplication */
    r2_tag_t tag;           /* routing */
    uint64_t message_bytes; /* whole message */
    uint32_t chunk_bytes;   /* unit it is cut into */
    uint32_t chunk;         /* index: bytes from chunk * chunk_bytes */
    uint32_t destination;   /* final process, for relaying; R2_WIRE_UNSURE: rails, as bits */
    uint16_t unread;    /* bit r: rail r of the sender may have more than it has read (unread.c) */
    uint16_t unread_at; /* when that was so, by the sender's clock: r2_unread_stamp() */
} r2_wire_header_t;

static_assert(92 == sizeof(r2_wire_header_t), "wire layout is frozen per version");

/**
 * The short form: of a message that is one chunk, where what it leaves out is 0. With UCX's 5 bytes
 * and the transport's one, header and 8 bytes of data are 64 bytes.
 */
typedef struct __attribute__((packed)) r2_wire_short {
    uint8_t version;
    uint8_t flags; /* R2_WIRE_SHORT and the flags */
    uint16_t unread_at;
    uint32_t lane_seq;
    uint64_t connection;
    uint32_t ack_next;
    uint16_t ack_held_us;
    uint16_t id; /* of the tag, as what is left of it below */
    uint32_t consumed;
    uint32_t digest;
    uint32_t message; /* low bits: r2_wire_message() */
    uint64_t comm_key;
    uint32_t coll_seq;
    uint16_t sequence;
} r2_wire_short_t;

static_assert(50 == sizeof(r2_wire_short_t), "wire layout is frozen per version");
static_assert(offsetof(r2_wire_short_t, lane_seq) == offsetof(r2_wire_header_t, lane_seq) &&
                  offsetof(r2_wire_short_t, connection) == offsetof(r2_wire_header_t, connection),
              "a packet in flight is known by them, whichever form its header has");

/* A message further from the newest one than this keeps its long header. */
#define R2_WIRE_NEAR (1u << 30)

/** True if packets of this kind carry a lane sequence number. */
static inline bool r2_wire_sequenced(uint8_t kind)
{
    return kind >= R2_WIRE_DATA && kind <= R2_WIRE_LEAVE;
}

/** Number of chunks of a message. @param chunk_bytes > 0. @return at least 1. */
static inline uint64_t r2_wire_chunks(uint64_t message_bytes, uint32_t chunk_bytes)
{
    return 0 == message_bytes ? 1 : (message_bytes + chunk_bytes - 1) / chunk_bytes;
}

/** Chunk length of a message that is one chunk: its own, or 1. */
static inline uint32_t r2_wire_chunk_only(uint32_t message_bytes)
{
    return 0 == message_bytes ? 1 : message_bytes;
}

/**
 * Chunk length of a message: its own if it is one chunk; else `chunk_bytes`, or the least multiple
 * of it with which there are not too many chunks.
 * @param chunk_bytes > 0; @param chunk_max_bytes may not be exceeded, at least 8192.
 */
uint32_t r2_wire_chunk_bytes(uint64_t message_bytes, uint32_t chunk_bytes,
                             uint64_t chunk_max_bytes);

/**
 * Writes the short form of a header.
 * @return false: it has none.
 */
bool r2_wire_shorten(const r2_wire_header_t *header, r2_wire_short_t *short_p);

/** The number of a message by its low bits. @param near any number less than 2^31 away from it. */
static inline uint64_t r2_wire_message(uint32_t low, uint64_t near)
{
    return near + (uint64_t) (int64_t) (int32_t) (low - (uint32_t) near);
}

/**
 * Copies a header, in either form, out of a received packet and checks every field that memory
 * safety depends on.
 * @param header_p of the short form `message` has the low bits only.
 * @param is_short_p it came in the short form.
 * @return R2_OK or R2_ERR_WIRE.
 */
r2_status_t r2_wire_parse(const void *packet_header, size_t header_bytes, size_t data_bytes,
                          r2_wire_header_t *header_p, bool *is_short_p);

#endif
