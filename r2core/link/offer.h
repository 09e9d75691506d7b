/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Offers: what the two ends of a connect request tell each other of a lane. For link/ only.
 */
#ifndef R2_LINK_OFFER_H
#define R2_LINK_OFFER_H

#include "link/state.h"

#define R2_HELLO_MAGIC 0x72324845u

typedef enum r2_hello_verdict {
    R2_HELLO_ACCEPT = 1,
    R2_HELLO_BUSY,    /* our own call to you is under way */
    R2_HELLO_NOT_NOW, /* our rail is not usable */
    R2_HELLO_REJECT,  /* settings or versions differ */
    R2_HELLO_SHUT,    /* our rail is in quarantine, and there is another path */
    R2_HELLO_SHORT,   /* no descriptors for another lane now */
    R2_HELLO_RESTED   /* request: the last lane was closed for want of them */
} r2_hello_verdict_t;

/** Request and reply alike. Little endian as the wire header. */
typedef struct __attribute__((packed)) r2_hello_offer {
    uint32_t magic;
    uint32_t version;       /* of the wire format */
    uint32_t verdict;       /* of a reply; request: 0 or R2_HELLO_RESTED */
    uint32_t rank;          /* who speaks */
    uint32_t rail_idx;      /* the speaker's rail */
    uint32_t remote_idx;    /* the listener's rail, as the speaker paired them */
    uint32_t attempt;       /* number of the speaker's newest call for this lane */
    uint32_t stands;        /* request: the lane stands at the speaker, who has heard nothing on it;
                             * SHORT: other lanes of the speaker will give descriptors back */
    uint32_t closed;        /* reply: the speaker has closed the last lane, which had not failed */
    uint32_t awaits;        /* where it stands: oldest packet that is not acknowledged */
    uint64_t segment_bytes; /* must be equal: a larger packet aborts the receiver */
    uint64_t unexpected_bytes;
    uint64_t first_seq;
    uint32_t is_rdma;    /* the endpoint is of the rail's RDMA device */
    uint32_t lost;       /* the speaker's RDMA device of this rail stays dead: TCP only */
    uint64_t domain;     /* what keys to the speaker's memory must name; 0: there are none */
    uint32_t direct;     /* coll_r2_direct: must be equal, since handles differ */
    uint64_t connection; /* id that packets to the speaker must carry */
    uint32_t address_bytes;
    uint8_t address[R2_TP_ADDRESS_MAX]; /* of the speaker's endpoint */
} r2_hello_offer_t;

static_assert(sizeof(r2_hello_offer_t) <= R2_HELLO_BYTES_MAX, "an offer is one hello frame");

/** Bytes that travel. */
size_t r2_hello_offer_size(const r2_hello_offer_t *offer);
/**
 * What this process says of a lane: the address of the connection `conn`, and the id that packets
 * to it must carry.
 * @return R2_OK, or why the connection has no address.
 */
r2_status_t r2_hello_offer_fill(r2_lane_t *lane, const r2_lane_conn_t *conn, uint64_t connection,
                                r2_hello_offer_t *offer_p);
/** Notes what the caller says of its end. @return false: it offers what this end cannot have, or
 * does not want any more; it is to hear so, and calls again. */
bool r2_hello_offer_fits(r2_lane_t *lane, const r2_hello_offer_t *theirs);
/** The same of what was answered, an offer or not. @param status of the call; `theirs` zeroed where
 * nothing was answered. */
void r2_hello_offer_heard(r2_lane_t *lane, r2_status_t status, const r2_hello_offer_t *theirs);
/** @return R2_OK; R2_ERR_WIRE: it makes no sense; R2_ERR_VERSION: other version, or settings. */
r2_status_t r2_hello_offer_parse(const r2_net_t *net, const void *data, size_t bytes,
                                 r2_hello_offer_t *offer_p);

#endif
