/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Sending: items, packets, lanes' queues, acknowledgement, credit of the peer. For link/ only.
 */
#ifndef R2_LINK_TX_H
#define R2_LINK_TX_H

#include "link/state.h"

/* item.c */
/** @return an item without payload, or NULL: no memory. */
r2_tx_item_t *r2_tx_item_new(r2_net_t *net, r2_wire_kind_t kind);
/** Bytes of a chunk: the last of a message may be shorter. */
uint32_t r2_tx_chunk_length(const r2_tx_message_t *message, uint32_t chunk);
/** Frees what an item owns: the payload of a RELAY packet. */
void r2_tx_item_strip(r2_tx_item_t *item);
/** Frees an item that nothing references. */
void r2_tx_item_release(r2_net_t *net, r2_tx_item_t *item);
/** Puts an item that is not acknowledged into the queue of those to be sent again. */
void r2_tx_requeue(r2_link_t *link, r2_tx_item_t *item);
/** Puts a message into the queue of those with chunks to be sent, behind all of its order. */
void r2_tx_enqueue(r2_tx_message_t *message);

/* control.c */
/**
 * Queues a control packet, which then arrives unless the peer is gone.
 * @return false: not now (too many of its kind are under way, or no memory): the caller has to keep
 * what it has to say.
 */
bool r2_tx_control(r2_link_t *link, r2_wire_kind_t kind, const void *payload, uint32_t bytes);
/** False while as many of a kind as may be are under way. */
bool r2_control_may(const r2_link_t *link, r2_wire_kind_t kind);
/** The same of questions of one lane: what a silent one has under way is not in another's way. */
bool r2_lane_may_ping(const r2_lane_t *lane);
/** An item is there to be sent, or needs no acknowledgement any more: keeps the counts. */
void r2_control_opened(r2_link_t *link, const r2_tx_item_t *item);
void r2_control_settled(r2_link_t *link, r2_tx_item_t *item);
/** There was no memory for something that is to be sent: it is tried again soon. */
void r2_tx_short(r2_link_t *link);
void r2_tx_short_timer(r2_link_t *link);
uint64_t r2_tx_short_deadline_ns(const r2_link_t *link);

/* tx_packet.c */
/**
 * Sends an item on a lane.
 * @return false: the lane is broken, or memory is short; the item is still the caller's.
 */
bool r2_tx_send(r2_lane_t *lane, r2_tx_item_t *item, bool retransmit);
r2_status_t r2_tx_unsequenced(r2_lane_t *lane, r2_wire_kind_t kind);
/** Sends PING on this very lane. @return false: it cannot be sent. */
bool r2_lane_ping(r2_lane_t *lane);
/** An item is acknowledged, or lost with its lane. */
void r2_tx_packet_settle(r2_packet_t *packet, bool acked);
/** Frees a message that is acknowledged and that nothing references. */
void r2_tx_message_settle(r2_tx_message_t *message);
/** What a lane carries is to be sent again. */
void r2_tx_abandon(r2_lane_t *lane);

/* hedge.c */
/** True if a packet in flight on the lane carries the item. */
bool r2_lane_carries(const r2_lane_t *lane, const r2_tx_item_t *item);
void r2_tx_hedge(r2_lane_t *lane);
bool r2_tx_has_sound_lane(const r2_link_t *link);
/** Sends again on idle lanes what slow ones still hold, when nothing else is left to send: once in
 * each whole pass. */
void r2_tx_hedge_tail(r2_link_t *link);
uint64_t r2_tx_tail_deadline_ns(const r2_link_t *link);

/* Up to this part of a window, or of a message, what is under way is next to nothing beside it. */
#define R2_LITTLE_PART 4u

/* tx.c */
/** Sends what may be sent. Does nothing in the middle of progress. */
void r2_link_push(r2_link_t *link);
/** When data that waits for room asks for it. @return ns; R2_NEVER_NS: it need not. */
uint64_t r2_tx_room_deadline_ns(const r2_link_t *link);
/** A message of one chunk came by a lane. */
void r2_tx_turn_heard(r2_lane_t *lane, uint32_t length);

/* fetch.c */
/** True if the lane's NIC reads memory of GPUs. */
bool r2_lane_reads_gpus(const r2_lane_t *lane);
/** True of a chunk in memory of a GPU. */
static inline bool r2_tx_is_on_gpu(const r2_tx_item_t *item)
{
    return R2_WIRE_DATA == item->kind && item->message->on_gpu;
}
/** True of a message in memory of a GPU that no lane can send from there, while one can send. */
bool r2_message_is_stuck(const r2_tx_message_t *message);
/** Has a message brought to where the CPU can read it. Nothing happens if it is, or will be. */
void r2_message_fetch(r2_tx_message_t *message);

/* copies.c */
/** A message has room for its copy from now on. @param packed of r2_link_block(). */
void r2_copies_reserve(r2_tx_message_t *message, bool packed);
/** Its room, if it has any, is others' again. */
void r2_copies_release(r2_tx_message_t *message);
/** True if a packet of so many bytes asks for an acknowledgement so that its message's kind of room
 * does not run out. */
bool r2_copies_ask(const r2_lane_t *lane, const r2_tx_message_t *message, uint32_t bytes);
/** True if there is room for a copy of so many bytes. */
bool r2_copies_fit(const r2_link_t *link, uint64_t bytes);
/** The same, but a quarter of the room stays for short messages, which nobody waits for so far. */
bool r2_copies_spare(const r2_link_t *link, uint64_t bytes);
/**
 * True if all of a message would leave at once. What is copied is over for the caller, who may
 * compute then: what still has to wait for room on the lanes would stay here until somebody reads
 * acknowledgements.
 */
bool r2_link_takes_all(const r2_link_t *link, const r2_link_send_t *args);

/* message.c */
/** Takes a message out of the queues for sending. */
void r2_message_unqueue(r2_tx_message_t *message);
/** Settles all chunks of a message; lanes whose transport still reads it are closed. */
void r2_message_discard(r2_tx_message_t *message);
/**
 * The first message that is to be given up: any, or one of a communicator whose data is borrowed.
 * To be searched anew each time, since closing a lane completes other messages, too.
 */
r2_tx_message_t *r2_message_wanted(const r2_link_t *link, bool any, uint64_t comm_key);

/* ack_state.c */
bool r2_ack_is_duplicate(const r2_lane_t *lane, uint32_t lane_seq);
/** A sequenced packet was taken, or is a duplicate: it is to be acknowledged. */
void r2_ack_note(r2_lane_t *lane, const r2_wire_header_t *header);
/** What lanes owe is said at the end of this progress pass: the peer waits for all of it. */
void r2_ack_hurry(r2_link_t *link);
/** Acknowledges what came in a header that is about to be sent. */
void r2_ack_fill(const r2_lane_t *lane, r2_wire_header_t *header);
/** The transport has taken such a header: nothing is owed until more comes. */
void r2_ack_sent(r2_lane_t *lane);

/* ack.c */
void r2_ack_received(r2_lane_t *lane, const r2_wire_header_t *header);
/** Sends acknowledgements that no packet has taken along, where they are due. */
void r2_ack_flush(r2_link_t *link);
/** Sends all acknowledgements that are owed, due or not: nobody is there to send them later. */
void r2_net_ack_last(r2_net_t *net);

/* rates.c */
/** Chunks wait for room on the lanes, or none does any more. */
void r2_rates_waiting(r2_link_t *link, bool waiting);
/** A lane's packets were acknowledged. @param oldest_ns when the oldest was sent. */
void r2_rates_acked(r2_lane_t *lane, uint64_t bytes, uint64_t oldest_ns);
/** They were, after the lane was taken for broken: it is slow. @param sent_ns of the oldest. */
void r2_rates_late(r2_lane_t *lane, uint64_t bytes, uint64_t sent_ns);

/* delivery.c */
/** A sequenced packet is about to be in flight. */
void r2_delivery_sending(r2_lane_t *lane);
/** Packets were acknowledged. @param took_ns since the oldest was sent; 0: that says nothing. */
void r2_delivery_acked(r2_lane_t *lane, uint64_t bytes, uint64_t took_ns);
/** Bytes per second that the lane's path carries from kernel to kernel, the least of some 10 s;
 * 0: not known. */
uint64_t r2_lane_path_rate(const r2_lane_t *lane);
/** True while the path carries about what a processor sends, by most that is seen of it. */
bool r2_lane_path_is_quick(const r2_lane_t *lane);

/* rtt.c */
/** HELLO was answered: the lane carries nothing yet, so that is what the way takes at most. */
void r2_rtt_wired(r2_lane_t *lane);
void r2_rtt_sample(r2_lane_t *lane, uint64_t sample_ns, uint64_t acked_bytes);
/** A packet of the peer has come, of whichever lane: before path.last_rx_ns is set. */
void r2_rtt_heard(r2_link_t *link);

/* credit.c */
/** Asks for credit, now or when there is room for the question. */
void r2_credit_request(r2_tx_message_t *message);
/** Asks for messages that could not be asked for so far. */
void r2_credit_request_deferred(r2_link_t *link);
/** Asks for messages that may not go, where nothing else is left to send. @return true: something
 * is to be sent. */
bool r2_credit_request_mute(r2_link_t *link);
/** When that may ask at the earliest. */
uint64_t r2_credit_mute_deadline_ns(const r2_link_t *link);
bool r2_credit_received(r2_link_t *link, const void *credits, size_t count);
/** The same, and its message may be put to the receiver's memory. @param grant r2_wire_grant_t, so
 * many bytes of it. */
bool r2_credit_granted(r2_link_t *link, const void *grant, size_t bytes);
void r2_credit_withdraw(r2_tx_message_t *message);
void r2_credit_drop(r2_link_t *link, r2_credit_t *credit);
/** @param granted_bytes what the receiver has granted by other ways. */
void r2_credit_open(r2_tx_message_t *message, uint64_t granted_bytes);
void r2_credit_consumed(r2_link_t *link, uint32_t consumed);

#endif
