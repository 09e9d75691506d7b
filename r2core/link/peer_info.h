/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What a process publishes about itself: its host, its rails and where they listen.
 */
#ifndef R2_LINK_PEER_INFO_H
#define R2_LINK_PEER_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "r2/nic.h"
#include "r2/status.h"

/*
 * As it travels, little endian, each text with its length before it and a zero behind it:
 *   magic u32 | version u8 | version of the wire format u8 | bytes of all of it u16 |
 *   users u8 | flags u8 | host id u64 | host name u8 + | rails u8 |
 *   the listener within the host, then each rail |
 *   bytes of the out-of-band address u16 + | bytes of the cost u8 + | bytes of the inbox u8 +
 * A rail: name u8 + | IPv4 address u32, network byte order | prefix u8 | speed u32 |
 *   bytes of the hello address u8 + | bytes of the probe address u8 + | transport over RDMA u8 +
 * Of a process that takes no part, which has no users, instead of what follows the flags:
 *   host name u8 + | bytes of the reason u16 +
 * A reader takes all of it or nothing.
 */
#define R2_PEER_INFO_MAGIC     0x32724f43u
#define R2_PEER_INFO_VERSION   10u
#define R2_PEER_HOST_NAME_MAX  64u /* with the zero, as R2_NIC_NAME_MAX */
#define R2_PEER_COST_BYTES     32u
#define R2_PEER_RDMA_MAX       40u /* with the zero */
#define R2_PEER_INBOX_BYTES    32u
#define R2_PEER_INFO_BYTES_MAX 8192u

/** One rail of a peer, as published. Texts and addresses are part of the r2_peer_info_t that it is
 * from. */
typedef struct r2_peer_rail {
    const char *name;
    uint32_t ipv4;         /* network byte order */
    uint32_t mbytes_per_s; /* 10^6 bytes per second, one direction; 0: not known */
    uint16_t prefix_bits, address_bytes, probe_bytes;
    const uint8_t *address; /* of the hello listener */
    const uint8_t *probe;   /* what a probe needs beside it */
    const char *rdma;       /* r2_peer_rdma_text() */
    const char *port;       /* that it offers: RDMA device and port, for people; "": none */
} r2_peer_rail_t;

/** What a process publishes that takes no part. Plain value. */
typedef struct r2_peer_refusal {
    bool expected; /* nothing is wrong with the host */
    char host_name[R2_PEER_HOST_NAME_MAX];
    char why[512];
} r2_peer_refusal_t;

/** What a process publishes about itself. Copies share what the pointers lead to. Engine lock. */
typedef struct r2_peer_info {
    uint32_t users;   /* bits of r2_user_t: components that have r2; never 0 */
    uint64_t host_id; /* equal: same host, shared memory */
    const char *host_name;
    uint32_t rail_count;
    const r2_peer_rail_t *rails;
    r2_peer_rail_t local; /* listener for ranks of the same host */
    uint32_t post_bytes, cost_bytes, inbox_bytes;
    const uint8_t *post;         /* where out-of-band messages go */
    const uint8_t *cost;         /* for predictions (ctx/host_table.h); rank 0 alone publishes it */
    const uint8_t *inbox;        /* for processes of its host (local/inbox.h) */
    struct r2_peer_store *store; /* refcounted; NULL: the pointers lead elsewhere */
} r2_peer_info_t;

/**
 * The transport that a rail offers over its RDMA port, and the network that the port is on:
 * "rc_verbs@roce", "rc_verbs@ib:fe80000000000000", without the subnet's prefix where the port is
 * not active yet; "" for TCP alone. @param text_p R2_PEER_RDMA_MAX bytes.
 */
void r2_peer_rdma_text(const r2_nic_t *nic, char *text_p);

/**
 * True if a lane between these rails goes over RDMA: the same on both sides. Where the ends cannot
 * do the same, or their ports are not on one network, it is TCP.
 */
bool r2_peer_rails_have_rdma(const r2_peer_rail_t *a, const r2_peer_rail_t *b);

/**
 * True for an InfiniBand port without IP: it is called by its port, and no network device has a
 * colon in its name. Nothing but RDMA goes over it.
 */
bool r2_peer_rail_is_bare(const r2_peer_rail_t *rail);

/**
 * True if the rails are a pair by the rule of a pass, the same seen from both sides: 0: of equal
 * index in one subnet; 1: in one subnet; 2: of equal index, and a side has no address to tell.
 */
bool r2_peer_rails_pair(const r2_peer_rail_t *own, const r2_peer_rail_t *remote, bool same_idx,
                        int pass);

/** @param to R2_PEER_INFO_BYTES_MAX bytes. @return bytes written, 0: too long. */
size_t r2_peer_info_encode(const r2_peer_info_t *info, uint8_t *to);
/**
 * Never trusts the bytes, which are copied. To be given back by r2_peer_info_put().
 * @return R2_OK, R2_ERR_VERSION (of another r2), R2_ERR_WIRE (a refusal, too), R2_ERR_NO_MEMORY.
 */
r2_status_t r2_peer_info_decode(const void *from, size_t bytes, r2_peer_info_t *info_p);
/**
 * Which components of a process have r2; 0: it takes no part, and what it published is a refusal.
 * @param host_id_p its host, if it takes part. @return as r2_peer_info_decode().
 */
r2_status_t r2_peer_users(const void *from, size_t bytes, uint32_t *users_p, uint64_t *host_id_p);
/** @param to R2_PEER_INFO_BYTES_MAX bytes. @return bytes written. */
size_t r2_peer_refusal_encode(const r2_peer_refusal_t *refusal, uint8_t *to);
/** @return as r2_peer_info_decode(). */
r2_status_t r2_peer_refusal_decode(const void *from, size_t bytes, r2_peer_refusal_t *refusal_p);
/** A copy, to be given back, too. */
r2_peer_info_t r2_peer_info_get(const r2_peer_info_t *info);
void r2_peer_info_put(r2_peer_info_t *info);

#endif
