/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Receiving, shared by its files. For link/ only.
 */
#ifndef R2_LINK_RX_H
#define R2_LINK_RX_H

#include "link/state.h"

/* rx_match.c */
/** What a chunk that came without credit takes of the budget of unexpected data, in bytes. */
uint64_t r2_rx_cost(uint32_t bytes);
/** Bytes of the bitmap of a message with so many chunks. */
size_t r2_rx_bitmap_bytes(uint32_t chunk_count);
/** A message of so many chunks in no table, with nothing held. @return NULL: no memory. */
r2_rx_message_t *r2_rx_message_get(r2_net_t *net, uint32_t chunk_count);
/** Gives the memory of one back that is in no table and holds nothing. */
void r2_rx_message_drop(r2_net_t *net, r2_rx_message_t *message);
void r2_rx_message_free(r2_link_t *link, r2_rx_message_t *message);
/** The meeting point for a tag, made if there is none. @return NULL: no memory. */
r2_rx_match_t *r2_rx_match(r2_link_t *link, const r2_tag_t *tag);
/** True if receive and message have equal length and plan digest. */
bool r2_rx_agree(const r2_rx_match_t *match, const r2_rx_message_t *message);
/** True if a receive and what a request for credit tells of its message fit, or others have to
 * tell. */
static inline bool r2_rx_announced_fits(const r2_rx_match_t *match, uint64_t bytes, uint32_t digest)
{
    return NULL != match->message || (match->bytes == bytes && match->digest == digest);
}
/** A receive and what the peer plans do not fit: says so where errors are told. @return
 * R2_ERR_PLAN_MISMATCH. */
r2_status_t r2_rx_mismatch(r2_link_t *link);
/** A message that no receive took came for a collective that is over. */
void r2_rx_stray(r2_link_t *link, uint64_t comm_key);
/** True if all of the receive's message is here. */
static inline bool r2_rx_match_is_whole(const r2_rx_match_t *match)
{
    return NULL != match->message && match->message->held == match->message->chunk_count;
}
/** Tells who receives a message what has been given to him of it, if he wants to know. */
void r2_rx_arrived(r2_rx_message_t *message);
/** Ends a receive: frees the match, calls done. */
void r2_rx_finish(r2_link_t *link, r2_rx_match_t *match, r2_status_t status);
/** Gives bytes of a message to its receive. @param offset in bytes, from the start of the
 * message. */
void r2_rx_write(r2_link_t *link, r2_rx_match_t *match, uint64_t offset, const void *data,
                 uint32_t bytes, bool eager);
/** True if who drives may write to the receive now: sinks that run code of the user wait for a
 * thread of his. */
static inline bool r2_rx_may_write(const r2_link_t *link, const r2_rx_match_t *match)
{
    return link->net->app_drives ||
           (link->net->may_deliver && (NULL == match->sink || match->grain_bytes > 0));
}
/* rx_land.c, landing.c */
/** As land() of transports: `worker` is a rail's. */
void *r2_rx_land(void *worker, const void *packet_header, size_t header_bytes, size_t data_bytes);
/** As takes_more() of transports: the newest packet was handed over. What is for calls is better
 * left with the kernel until its receive is posted. */
bool r2_rx_takes_more(void *worker);
/** What lands in the memory of a receive goes on elsewhere: its owner gets it back. */
void r2_landing_off(r2_link_t *link, const r2_rx_match_t *match);
/** True if a chunk whose receive is not posted comes out of the sender's budget of unexpected
 * data. */
bool r2_rx_may_keep(const r2_link_t *link, const r2_wire_header_t *header);
/** Keeps a chunk for later. @return false: it could not be held and must not be acknowledged. */
bool r2_rx_keep(r2_link_t *link, r2_rx_message_t *message, uint64_t offset, const void *data,
                const r2_wire_header_t *header);

/* grant.c: credit for receives */
/** Grants what receives are to get and what there is room for. To be called after data was given to
 * receives. */
void r2_grant_refill(r2_link_t *link);
/** Hands what was granted to the queue of control packets, as far as there is memory. */
void r2_grant_flush(r2_link_t *link);
/** A receive was posted, or is asked for: it is to get credit. */
void r2_grant_want(r2_link_t *link, r2_rx_match_t *match);
/** A message was heard of: from now on what is granted for its receive comes. @param chunk_bytes >
 * 0. */
void r2_grant_heard(r2_link_t *link, r2_rx_match_t *match, uint32_t chunk_bytes);
/** Grants at once what a receive may get before its message is heard of; not told to the peer.
 * @return bytes. */
uint64_t r2_grant_first(r2_link_t *link, r2_rx_match_t *match);
/** Bytes were given to a receive. */
void r2_grant_given(r2_link_t *link, r2_rx_match_t *match, uint32_t bytes);
/** A receive gets no more credit, and holds none. */
void r2_grant_end(r2_link_t *link, r2_rx_match_t *match);
/** What is left of a message is thrown away as it comes: all of it may, and the peer is told so. */
void r2_grant_all(r2_link_t *link, r2_rx_message_t *message);
/** The peer knows, or need not know: before a message is freed. */
void r2_grant_told(r2_link_t *link, r2_rx_message_t *message);
/** The peer has no use for credit any more. */
void r2_grant_part(r2_link_t *link);

/* unexpected.c */
/** An unexpected message without a receive: its receiver is to hear of it. Nothing for other
 * messages. */
void r2_rx_unexpected(r2_link_t *link, r2_rx_match_t *match, uint64_t bytes, bool complete);
/** It has a receive, or is given up. */
void r2_rx_expected(r2_link_t *link, r2_rx_match_t *match);

/* rx_data.c: @return false: the packet was not taken and must not be acknowledged */
bool r2_rx_data(r2_lane_t *lane, const r2_wire_header_t *header, const void *data);
bool r2_rx_rts(r2_link_t *link, const r2_wire_header_t *header);
/** What is left of a message never comes. */
void r2_rx_void(r2_link_t *link, uint64_t number);

/* rx.c, rx_match.c */
void r2_rx_packet(void *worker, const void *header, size_t header_bytes, const void *data,
                  size_t data_bytes);
/** The lane of a connection's number; NULL: there is none. */
r2_lane_t *r2_rx_lane(r2_net_t *net, uint64_t connection);
/** The short form tells the end of a message's number: puts all of it into the header. */
void r2_rx_number(const r2_lane_t *lane, r2_wire_header_t *header, bool is_short);
void r2_rx_deferred(r2_link_t *link);
void r2_rx_match_drop(r2_link_t *link, r2_rx_match_t *match);
void r2_rx_free(r2_link_t *link);

/* read.c */
/**
 * Reads mailboxes and rails.
 * @param glance only where what is waited for may come, if who drives waits (`staying`), else by
 * which rail all came of late.
 * @param rare it is long since the last time. @return events.
 */
unsigned r2_net_read_rails(r2_net_t *net, bool glance, bool rare);

/* mismatch.c: receives and messages that do not meet */
void r2_mismatch_timer(r2_link_t *link);
/** Looks for what is kept as unexpected and will never be wanted, now and then. */
void r2_mismatch_scan(r2_net_t *net);
uint64_t r2_mismatch_deadline_ns(const r2_link_t *link);
void r2_mismatch_received(r2_link_t *link, const void *waits, size_t count);
void r2_mismatch_denied(r2_link_t *link, const void *waits, size_t count);

#endif
