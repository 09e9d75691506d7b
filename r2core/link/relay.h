/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Relaying: lanes that lead through a process on a third host, and forwarding for others. For link/
 * only.
 */
#ifndef R2_LINK_RELAY_H
#define R2_LINK_RELAY_H

#include "link/tx.h"

/*
 * A relay lane is one more lane of a link. Its rail is a pseudo rail, whose transport wraps each
 * packet into a RELAY packet of the link to the process that relays (the via). So acknowledgement,
 window, * fencing and duplicates are the relay lane's own, end to end,
 and the via keeps no state of it but what
 * waits to be forwarded.
 */

#define R2_RELAY_PAIRS_MAX   64u /* pairs of processes that one process relays for */
#define R2_RELAY_PENDING_MAX 64u /* hello frames that wait for the end of a progress pass */

/** What a process does with a frame: the second word of a RELAY packet's payload. */
typedef enum r2_relay_op {
    R2_RELAY_PACKET = 1, /* a packet of a relay lane; id: its connection id */
    R2_RELAY_CALL,       /* a hello request; id: the caller's call */
    R2_RELAY_REPLY,      /* a hello reply; id: that call */
    /* the via answers in the name of a process that it cannot reach; id: of the frame */
    R2_RELAY_CANNOT,
    R2_RELAY_BUSY,       /* the same, but the process is only stopped */
    R2_RELAY_OP_END
} r2_relay_op_t;

/** A hello frame that arrived in the middle of progress. */
typedef struct r2_relay_pending {
    struct r2_relay_pending *next;
    uint32_t via, destination;
    r2_wire_relay_t frame;
    size_t bytes;
    uint8_t data[];
} r2_relay_pending_t;

/** What a net needs for relaying. Engine lock. */
typedef struct r2_relay {
    r2_net_t *net;               /* borrowed */
    r2_tp_t tp;                  /* of relay lanes */
    r2_rail_t rail;              /* pseudo rail of all relay lanes */
    r2_relay_pending_t *pending; /* owned list, oldest first */
    uint32_t pending_count;
    uint64_t *hosts;       /* owned: host ids by rank, 0 = not looked up; NULL until needed */
    uint32_t via;          /* where the hello that is being handled came through */
    r2_wire_relay_t hello; /* that hello */
    r2_relay_pair_t pairs[R2_RELAY_PAIRS_MAX];
    uint32_t pair_count;
} r2_relay_t;

/** The way to a peer through others: state of a link's relay lane beside the lane itself. */
struct r2_relay_way {
    uint32_t lane_idx;    /* in link->lanes */
    uint32_t via;         /* of the connection, if there is one */
    uint32_t connect_via; /* of the call under way, if there is one */
    uint64_t connect_ns;  /* when it began */
    uint64_t wired_ns;    /* when the connection was wired; 0 = none */
    uint64_t busy_ns;     /* when the peer, or who relays, was last found stopped; 0 = never */
    uint32_t cursor;      /* rank that is tried next */
    uint32_t left;        /* ranks not looked at in this round of tries */
};

/** What follows the start of the payload. */
typedef struct r2_relay_parts {
    const void *head, *data; /* borrowed */
    size_t head_bytes, data_bytes;
} r2_relay_parts_t;

/* relay_call.c */
/** Sends a hello request for a relay lane by the next process that may relay. @return as call() of
 * hello.h. */
r2_status_t r2_relay_call(r2_lane_t *lane, const void *request, size_t bytes);
/** Answers the hello request that is being handled. */
void r2_relay_reply(r2_net_t *net, const void *reply, size_t bytes);
/**
 * Queues a copy of a frame on the link to `towards`.
 * @param to where it goes and what it counts for; `data` is not used.
 * @return R2_OK, R2_ERR_NO_PATH, R2_ERR_NO_MEMORY.
 */
r2_status_t r2_relay_post(r2_net_t *net, uint32_t towards, const r2_tx_relay_t *to,
                          const r2_wire_relay_t *frame, const r2_relay_parts_t *parts);

/** Moves on to the first of what is left of this round that may relay. @return false: none may. */
bool r2_relay_seek(r2_lane_t *lane);

/* relay_lane.c */
/** True if a lane must not carry an item (NULL: new data) because of where it leads. */
bool r2_relay_bars(const r2_link_t *link, const r2_lane_t *lane, const r2_tx_item_t *item);
/** What a packet takes of a relay lane's window. */
uint32_t r2_relay_cost(const r2_lane_t *lane, uint32_t bytes);
/** True if who could relay has found the peer stopped of late, or is stopped itself. */
bool r2_relay_is_busy(const r2_link_t *link, uint64_t since_ns);
/** The relay lane of a link, made when there is none. @return NULL: no memory, or same host. */
r2_lane_t *r2_relay_lane(r2_link_t *link);
/** The relay lane of a link; NULL: there is none. */
r2_lane_t *r2_relay_lane_of(r2_link_t *link);
/** True if this link has, or may soon have, a lane that is no relay lane. */
bool r2_relay_reaches(const r2_link_t *link);
/** True if a direct lane is sound, so that no relay lane is needed. */
bool r2_relay_needless(const r2_link_t *link);

/* relay_way.c */
/** Opens, watches and closes the relay lane of a link. */
void r2_relay_timer(r2_link_t *link);
uint64_t r2_relay_deadline_ns(const r2_link_t *link);
/** A connect request came to nothing: the next process is tried at once, if there is one left. */
void r2_relay_call_failed(r2_lane_t *lane, r2_status_t status);
/** The via's answer to a call: the peer is stopped. */
void r2_relay_call_busy(r2_lane_t *lane);
/** The relay lane's way is broken. */
void r2_relay_lane_failed(r2_lane_t *lane);

/* relay_forward.c */
/** Forwards a frame of a peer, or answers CANNOT. */
void r2_relay_forward(r2_link_t *from, uint32_t destination, const r2_wire_relay_t *frame,
                      const void *data, size_t bytes);
/** Gives up frames that wait on a link which has no direct lane any more, and tells. */
void r2_relay_give_up(r2_link_t *link);

/* relay.c */
r2_status_t r2_relay_init(r2_net_t *net);
void r2_relay_fini(r2_net_t *net);
/** Handles what came in this progress pass. */
void r2_relay_reap(r2_net_t *net);
/** A RELAY packet arrived: it is ours, or is to be forwarded. In the middle of progress. */
void r2_relay_received(r2_link_t *from, const r2_wire_header_t *header, const void *data);

#endif
