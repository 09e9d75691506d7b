/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Items and packets: filling, handing to the transport, and their life until they are settled.
 */
#include "r2_config.h"

#include "link/place.h"
#include "link/relay.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Packets that nobody waits for ask so often in a window of their lane. */
#define R2_ASKS_PER_WINDOW 8u

/*
 * What the peer holds of it is all that it gets: it need not remember it any longer, nor that the
 * number is missing.
 */
static void r2_message_void(const r2_tx_message_t *message)
{
    r2_link_t *link = message->link;

    if (R2_ERR_PEER_GONE != link->broken && !link->net->ending) {
        (void) r2_tx_control(link, R2_WIRE_VOID, &message->number, sizeof(message->number));
    }
}

void r2_tx_message_settle(r2_tx_message_t *message)
{
    r2_link_t *link = message->link;

    if (message->acked_chunks < message->chunk_count || message->refs > 0 || message->queued) {
        return;
    }
    DL_DELETE2(link->tx.messages, message, all_prev, all_next);
    r2_copies_release(message);
    r2_put_target_drop(link->net, &message->target);
    if (message->in_part) {
        r2_message_void(message);
    }
    if (NULL != message->copy) {
        r2_blocks_put(&link->net->blocks, message->copy, message->copy_bytes);
    } else if (!message->withdrawn) {
        message->done(message->arg, R2_OK);
    }
    r2_pool_put(&link->net->messages, message);
}

static void r2_packet_free(r2_packet_t *packet)
{
    r2_net_t *net = packet->net;
    r2_tx_item_t *item = packet->item;

    r2_pool_put(&net->packets, packet);
    if (NULL != item) {
        --item->refs;
        if (item->acked) {
            r2_tx_item_release(net, item);
        }
    }
}

/* The transport is through with a packet (or it was cancelled with its lane). */
static void r2_packet_sent(r2_tp_send_t *op, r2_status_t status)
{
    r2_packet_t *packet = (r2_packet_t *) (void *) op;
    r2_tx_message_t *message = NULL;

    (void) status;
    packet->transport_done = true;
    if (NULL != packet->lane) {
        packet->lane->tx.sent_ns = packet->net->now_ns;
        packet->told = r2_unread_clock(packet->lane->link); /* it was not on its way before */
    }
    if (NULL != packet->conn) {
        --packet->conn->unsequenced;
    }
    if (NULL != packet->item && R2_WIRE_DATA == packet->item->kind) {
        message = packet->item->message;
        --message->refs;
    }
    if (packet->settled) {
        r2_packet_free(packet);
    }
    if (NULL != message) {
        r2_tx_message_settle(message);
    }
}

void r2_tx_packet_settle(r2_packet_t *packet, bool acked)
{
    r2_lane_t *lane = packet->lane;
    r2_link_t *link = lane->link;
    r2_tx_item_t *item = packet->item;

    DL_DELETE(lane->tx.in_flight, packet);
    lane->tx.in_flight_bytes -= packet->bytes;
    lane->tx.pings -= R2_WIRE_PING == item->kind ? 1u : 0u;
    lane->rail->under_way_bytes -= packet->bytes;
    --link->tx.in_flight_packets;
    packet->settled = true;
    packet->lane = NULL;
    --item->in_flight;
    if (acked && !item->acked) {
        r2_tx_message_t *message = R2_WIRE_DATA == item->kind ? item->message : NULL;

        r2_control_settled(link, item);
        if (NULL != message) {
            ++message->acked_chunks;
            r2_tx_message_settle(message);
        }
    }
    if (packet->transport_done) {
        r2_packet_free(packet);
    }
}

void r2_tx_abandon(r2_lane_t *lane)
{
    r2_packet_t *packet, *next;

    DL_FOREACH_SAFE(lane->tx.in_flight, packet, next) {
        r2_tx_item_t *item = packet->item;

        if (1 == item->in_flight) {
            r2_tx_requeue(lane->link, item);
        }
        r2_tx_packet_settle(packet, false);
    }
    r2_assert(0 == lane->tx.in_flight_bytes);
}

static void r2_header_fill(const r2_lane_t *lane, r2_wire_kind_t kind, r2_wire_header_t *header)
{
    const r2_link_t *link = lane->link;

    *header = (r2_wire_header_t){.version = R2_WIRE_VERSION};
    header->kind = (uint8_t) kind;
    header->connection = lane->connect.tx_connection;
    header->consumed = link->rx.consumed;
    header->destination = link->rank;
    header->unread = link->same_host ? link->net->unread_local : link->net->unread;
    header->unread_at = r2_unread_stamp(link->net->now_ns);
    r2_ack_fill(lane, header);
}

/*
 * Gives a packet its header: in the short form where there is one. A relay lane wraps packets with
 * long headers only.
 */
static void r2_packet_set_header(r2_packet_t *packet, const r2_lane_t *lane,
                                 const r2_wire_header_t *header)
{
    const bool near = lane->link->tx.next_number - header->message < R2_WIRE_NEAR;

    if (near && !r2_lane_is_relay(lane) && r2_wire_shorten(header, &packet->brief)) {
        packet->op.header_bytes = sizeof(packet->brief);
    } else {
        packet->header = *header;
        packet->op.header_bytes = sizeof(packet->header);
    }
    packet->op.header = &packet->header;
}

/* Puts its data, with a key, or sends it. @return as send() of the transport. */
static r2_status_t r2_packet_give(r2_lane_t *lane, r2_packet_t *packet, const r2_wire_key_t *key)
{
    r2_status_t status = NULL == key ? R2_ERR_UNSUPPORTED : r2_put_packet(lane, packet, key);

    if (R2_ERR_UNSUPPORTED != status) {
        return status;
    }
    if (NULL != key) {
        packet->header.flags &= (uint8_t) ~R2_WIRE_PLACED;
    }
    return lane->rail->tp->ops->send(lane->conn->ep, &packet->op);
}

static bool r2_packet_is_on_gpu(const r2_packet_t *packet)
{
    return NULL != packet->op.memory && 0 != packet->op.memory->gpu_id;
}

/*
 * Hands a filled packet to the transport, or frees it. @param key to put its data with; NULL: sent.
 * @return R2_OK, R2_ERR_NO_MEMORY (later), R2_ERR_UNSUPPORTED (it is to be fetched),
 * R2_ERR_LANE_DOWN (the lane is broken).
 */
static r2_status_t r2_packet_post(r2_lane_t *lane, r2_packet_t *packet, const r2_wire_key_t *key)
{
    r2_net_t *net = lane->link->net;
    const bool on_gpu = r2_packet_is_on_gpu(packet);
    r2_status_t status;

    packet->net = net;
    packet->lane = lane;
    packet->op.sent = r2_packet_sent;
    status = on_gpu && !r2_lane_reads_gpus(lane) ? R2_ERR_UNSUPPORTED
                                                 : r2_packet_give(lane, packet, key);
    if (status < 0) {
        r2_pool_put(&net->packets, packet);
        if (R2_ERR_NO_MEMORY == status) {
            r2_tx_short(lane->link);
            return status;
        }
        if (R2_ERR_UNSUPPORTED == status && on_gpu) {
            return status; /* and no fault of the lane's */
        }
        lane->failed = true;
        lane->why = status;
        return R2_ERR_LANE_DOWN;
    }
    r2_ack_sent(lane);
    ++net->counters->tx_packets;
    packet->transport_done = R2_OK == status;
    return R2_OK;
}

r2_status_t r2_tx_unsequenced(r2_lane_t *lane, r2_wire_kind_t kind)
{
    r2_net_t *net = lane->link->net;
    r2_wire_header_t header;
    r2_packet_t *packet;
    r2_status_t status;

    if (lane->conn->unsequenced >= R2_UNSEQUENCED_MAX) {
        return R2_ERR_AGAIN; /* a peer that makes us answer and does not read the answers */
    }
    packet = r2_pool_get(&net->packets);
    if (NULL == packet) {
        r2_tx_short(lane->link);
        return R2_ERR_NO_MEMORY;
    }
    memset(packet, 0, offsetof(r2_packet_t, header));
    r2_header_fill(lane, kind, &header);
    r2_packet_set_header(packet, lane, &header);
    packet->settled = true;
    status = r2_packet_post(lane, packet, NULL);
    if (R2_OK != status) {
        return status;
    }
    if (packet->transport_done) {
        r2_pool_put(&net->packets, packet);
        return R2_OK;
    }
    packet->conn = lane->conn;
    ++lane->conn->unsequenced;
    return R2_OK;
}

/* True if less than a quarter of `most` is left with `bytes`, and more was without them. */
static bool r2_runs_low(uint64_t used, uint64_t bytes, uint64_t most)
{
    return 4 * used <= 3 * most && 4 * (used + bytes) > 3 * most;
}

/*
 * What nobody waits for is acknowledged with what the peer sends, or after many packets. By then
 * the lane, or the room for copies, may be full: so the packet asks that leaves less than a quarter
 * of either. Messages that are packed have room of their own, of which each lane asks for its part
 * (r2_copies_ask).
 */
static bool r2_packet_runs_low(const r2_lane_t *lane, const r2_tx_message_t *message,
                               uint32_t bytes)
{
    uint32_t cost = bytes + (uint32_t) sizeof(r2_wire_header_t);

    cost = r2_lane_is_relay(lane) ? r2_relay_cost(lane, cost) : cost;
    return r2_runs_low(lane->tx.in_flight_bytes, cost, lane->tx.window_bytes) ||
           r2_copies_ask(lane, message, bytes);
}

/*
 * Who waits for a message waits for its last chunks, of which each lane may have one. So that the
 * lane goes on sending, some packet in each quarter of its window asks. A relay's window is short,
 * and a chunk that is sent again is evidence.
 */
static bool r2_packet_wants_ack(const r2_lane_t *lane, const r2_tx_item_t *item, uint32_t bytes,
                                bool retransmit)
{
    const r2_tx_message_t *message = item->message;

    if (retransmit || item->refs > 0 || r2_packet_runs_low(lane, message, bytes)) {
        return true;
    }
    if (message->may_copy) {
        return false;
    }
    return r2_lane_is_relay(lane) || !r2_lane_is_fast(lane) ||
           R2_ASKS_PER_WINDOW * (lane->tx.unasked_bytes + (uint64_t) bytes) >
               lane->tx.window_bytes ||
           (!message->late_ack && item->chunk + lane->link->lane_count >= message->chunk_count);
}

static void r2_packet_fill_data(const r2_lane_t *lane, r2_packet_t *packet,
                                r2_wire_header_t *header, const r2_tx_item_t *item, bool retransmit)
{
    const r2_tx_message_t *message = item->message;
    uint64_t offset = (uint64_t) item->chunk * message->chunk_bytes;

    header->length = r2_tx_chunk_length(message, item->chunk);
    header->message = message->number;
    header->tag = message->tag;
    header->message_bytes = message->bytes;
    header->chunk_bytes = message->chunk_bytes;
    header->chunk = item->chunk;
    header->digest = message->digest;
    if (message->map_pending) {
        header->flags |= R2_WIRE_MAP_PENDING;
    }
    if (item->chunk < message->eager_chunks) {
        header->flags |= R2_WIRE_EAGER;
    }
    if (0 != item->puts) { /* the first time it was put: that may still land */
        header->flags |= R2_WIRE_UNSURE;
        header->destination = item->puts;
    }
    if (r2_packet_wants_ack(lane, item, header->length, retransmit)) {
        header->flags |= R2_WIRE_ACK_NOW;
    }
    packet->op.data = message->data + offset;
    packet->op.memory = message->on_gpu ? &message->gpu : &message->memory;
    packet->op.data_bytes = header->length;
}

static void r2_packet_fill_control(r2_packet_t *packet, r2_wire_header_t *header,
                                   r2_tx_item_t *item)
{
    if (R2_WIRE_RTS == item->kind) {
        header->message = item->payload.rts.number;
        header->tag = item->payload.rts.tag;
        header->message_bytes = item->payload.rts.bytes;
        header->chunk_bytes = item->payload.rts.chunk_bytes;
        header->digest = item->payload.rts.digest;
        return;
    }
    header->length = item->payload_bytes;
    packet->op.data = item->payload_bytes > 0 ? &item->payload : NULL;
    packet->op.data_bytes = item->payload_bytes;
    if (R2_WIRE_RELAY == item->kind) {
        header->destination = item->payload.relay.destination;
        header->hop = item->payload.relay.hop;
        packet->op.data = item->payload.relay.data;
        header->flags |= R2_WIRE_ACK_NOW; /* memory waits for it, at most two hops */
    }
    if (R2_WIRE_PING == item->kind || R2_WIRE_LANE_DOWN == item->kind ||
        R2_WIRE_LEAVE == item->kind) {
        header->flags |= R2_WIRE_ACK_NOW;
    }
}

static void r2_tx_count(r2_net_t *net, const r2_tx_item_t *item, uint32_t payload, bool retransmit)
{
    r2_counters_t *counters = net->counters;

    if (R2_WIRE_CREDIT == item->kind) {
        ++counters->tx_credits;
    }
    if (R2_WIRE_DATA != item->kind) {
        return;
    }
    if (item->in_flight > 0) {
        ++counters->hedged_chunks;
        counters->hedged_bytes += payload;
    }
    if (retransmit) {
        ++counters->resent_chunks;
        counters->resent_bytes += payload;
    } else {
        ++counters->tx_chunks;
        counters->tx_bytes += payload;
    }
}

/* Sends an item on a lane. @return false: not now, and the item is still the caller's. */
bool r2_tx_send(r2_lane_t *lane, r2_tx_item_t *item, bool retransmit)
{
    r2_link_t *link = lane->link;
    r2_net_t *net = link->net;
    r2_packet_t *packet = r2_pool_get(&net->packets);
    const r2_wire_key_t *key = NULL;
    r2_wire_header_t header;
    r2_status_t status;

    if (NULL == packet) {
        r2_tx_short(link);
        return false;
    }
    memset(packet, 0, offsetof(r2_packet_t, header));
    r2_header_fill(lane, (r2_wire_kind_t) item->kind, &header);
    if (R2_WIRE_DATA == item->kind) {
        r2_packet_fill_data(lane, packet, &header, item, retransmit);
        key = r2_put_key(lane, item);
        header.flags |= NULL == key ? 0 : R2_WIRE_PLACED;
    } else {
        r2_packet_fill_control(packet, &header, item);
    }
    if (item->in_flight > 0) {
        header.flags |= R2_WIRE_HEDGE;
    }
    header.lane_seq = lane->tx.seq;
    r2_packet_set_header(packet, lane, &header);
    packet->item = item;
    packet->bytes = (uint32_t) (packet->op.header_bytes + packet->op.data_bytes);
    if (r2_lane_is_relay(lane)) {
        packet->bytes = r2_relay_cost(lane, packet->bytes);
    }
    packet->sent_ns = net->now_ns;
    packet->told = r2_unread_clock(link);
    status = r2_packet_post(lane, packet, key);
    if (R2_OK != status) {
        if (R2_ERR_UNSUPPORTED == status) {
            r2_message_fetch(item->message);
        }
        return false;
    }
    if (R2_WIRE_DATA == item->kind && !packet->transport_done) {
        ++item->message->refs;
    }
    r2_tx_count(net, item, header.length, retransmit);
    lane->rail->tx_bytes += header.length;
    lane->tx.unasked_bytes =
        0 != (header.flags & R2_WIRE_ACK_NOW) ? 0 : lane->tx.unasked_bytes + packet->bytes;
    ++lane->tx.seq;
    ++item->refs;
    ++item->in_flight;
    ++link->tx.in_flight_packets;
    r2_delivery_sending(lane);
    lane->tx.in_flight_bytes += packet->bytes;
    lane->tx.pings += R2_WIRE_PING == item->kind ? 1u : 0u;
    lane->rail->under_way_bytes += packet->bytes;
    DL_APPEND(lane->tx.in_flight, packet);
    return true;
}

bool r2_lane_ping(r2_lane_t *lane)
{
    r2_net_t *net = lane->link->net;
    r2_tx_item_t *ping = r2_tx_item_new(net, R2_WIRE_PING);

    if (NULL == ping) {
        return false;
    }
    if (!r2_tx_send(lane, ping, false)) {
        r2_tx_item_release(net, ping);
        return false;
    }
    r2_control_opened(lane->link, ping);
    return true;
}
