/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Sending: queues, choice of lane, packets and their life.
 */
#include "r2_config.h"

#include "link/state.h"

#include <string.h>
#include <utlist.h>

/* Packets up to this size go to the preferred lane: latency counts, not the sum of rails. */
#define R2_SHORT_PACKET_BYTES 4096u

static uint32_t r2_chunk_length(const r2_tx_message_t *message, uint32_t chunk)
{
    uint64_t offset = (uint64_t) chunk * message->chunk_bytes;
    uint64_t rest = message->bytes - offset;

    return (uint32_t) r2_min(rest, (uint64_t) message->chunk_bytes);
}

static void r2_tx_item_release(r2_net_t *net, r2_tx_item_t *item)
{
    if (0 == item->refs && !item->queued) {
        r2_pool_put(&net->items, item);
    }
}

static r2_tx_item_t *r2_tx_item_new(r2_net_t *net, r2_wire_kind_t kind)
{
    r2_tx_item_t *item = r2_pool_get(&net->items);

    if (NULL != item) {
        memset(item, 0, offsetof(r2_tx_item_t, payload));
        item->kind = (uint8_t) kind;
    }
    return item;
}

void r2_tx_message_settle(r2_tx_message_t *message)
{
    r2_link_t *link = message->link;

    if (message->acked_chunks < message->chunk_count || message->refs > 0 || message->queued) {
        return;
    }
    DL_DELETE2(link->messages, message, all_prev, all_next);
    if (NULL != message->copy) {
        link->copied_bytes -= message->bytes;
        --link->copies;
        free(message->copy);
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
    if (NULL != packet->conn) {
        --packet->conn->bare;
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

    DL_DELETE(lane->in_flight, packet);
    lane->in_flight_bytes -= packet->bytes;
    --link->in_flight_packets;
    packet->settled = true;
    packet->lane = NULL;
    --item->in_flight;
    if (acked && !item->acked) {
        r2_tx_message_t *message = R2_WIRE_DATA == item->kind ? item->message : NULL;

        item->acked = true;
        if (NULL != message) {
            ++message->acked_chunks;
            r2_tx_message_settle(message);
        }
    }
    if (packet->transport_done) {
        r2_packet_free(packet);
    }
}

static void r2_tx_requeue(r2_link_t *link, r2_tx_item_t *item)
{
    if (!item->acked && !item->queued) {
        item->queued = true;
        DL_APPEND(link->again, item);
    }
}

void r2_tx_abandon(r2_lane_t *lane)
{
    r2_packet_t *packet, *next;

    DL_FOREACH_SAFE(lane->in_flight, packet, next)
    {
        r2_tx_item_t *item = packet->item;

        if (1 == item->in_flight) {
            r2_tx_requeue(lane->link, item);
        }
        r2_tx_packet_settle(packet, false);
    }
    r2_assert(0 == lane->in_flight_bytes);
}

static void r2_header_fill(r2_lane_t *lane, r2_wire_kind_t kind, r2_wire_header_t *header)
{
    r2_link_t *link = lane->link;

    memset(header, 0, sizeof(*header));
    header->version = R2_WIRE_VERSION;
    header->kind = (uint8_t) kind;
    header->connection = lane->tx_connection;
    header->consumed = link->consumed;
    header->destination = link->rank;
    r2_ack_fill(lane, header);
}

/* Hands a filled packet to the transport. @return false: the lane is broken, packet is freed. */
static bool r2_packet_post(r2_lane_t *lane, r2_packet_t *packet)
{
    r2_net_t *net = lane->link->net;
    r2_status_t status;

    packet->net = net;
    packet->lane = lane;
    packet->op.header = &packet->header;
    packet->op.header_bytes = sizeof(packet->header);
    packet->op.sent = r2_packet_sent;
    status = net->tp.ops->send(lane->conn->ep, &packet->op);
    if (status < 0) {
        lane->failed = true;
        lane->why = status;
        return false;
    }
    ++net->counters->tx_packets;
    packet->transport_done = R2_OK == status;
    return true;
}

r2_status_t r2_tx_bare(r2_lane_t *lane, r2_wire_kind_t kind)
{
    r2_net_t *net = lane->link->net;
    r2_packet_t *packet;

    if (lane->conn->bare >= R2_BARE_MAX) {
        return R2_ERR_AGAIN; /* a peer that makes us answer and does not read the answers */
    }
    packet = r2_pool_get(&net->packets);
    if (NULL == packet) {
        return R2_ERR_NO_MEMORY;
    }
    memset(packet, 0, sizeof(*packet));
    r2_header_fill(lane, kind, &packet->header);
    packet->settled = true;
    if (!r2_packet_post(lane, packet)) {
        r2_pool_put(&net->packets, packet);
        return R2_ERR_LANE_DOWN;
    }
    if (packet->transport_done) {
        r2_pool_put(&net->packets, packet);
        return R2_OK;
    }
    packet->conn = lane->conn;
    ++lane->conn->bare;
    return R2_OK;
}

static void r2_packet_fill_data(r2_packet_t *packet, r2_tx_item_t *item)
{
    r2_tx_message_t *message = item->message;
    r2_wire_header_t *header = &packet->header;
    uint64_t offset = (uint64_t) item->chunk * message->chunk_bytes;

    header->length = r2_chunk_length(message, item->chunk);
    header->message = message->number;
    header->tag = message->tag;
    header->message_bytes = message->bytes;
    header->chunk_bytes = message->chunk_bytes;
    header->chunk = item->chunk;
    header->digest = message->digest;
    if (item->chunk < message->unasked_chunks) {
        header->flags |= R2_WIRE_UNASKED;
    }
    if (NULL == message->copy || item->refs > 0) {
        header->flags |= R2_WIRE_ACK_NOW;
    }
    packet->op.data = message->data + offset;
    packet->op.data_bytes = header->length;
}

static void r2_packet_fill_control(r2_packet_t *packet, r2_tx_item_t *item)
{
    r2_wire_header_t *header = &packet->header;

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
    if (R2_WIRE_PING == item->kind || R2_WIRE_LANE_DOWN == item->kind) {
        header->flags |= R2_WIRE_ACK_NOW;
    }
}

static void r2_tx_count(r2_net_t *net, const r2_tx_item_t *item, uint32_t payload, bool again)
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
    }
    if (again) {
        ++counters->resent_chunks;
        counters->resent_bytes += payload;
    } else {
        ++counters->tx_chunks;
        counters->tx_bytes += payload;
    }
}

/* Sends an item on a lane. @return false: the lane is broken and the item is still the caller's. */
static bool r2_tx_send(r2_lane_t *lane, r2_tx_item_t *item, bool again)
{
    r2_link_t *link = lane->link;
    r2_net_t *net = link->net;
    r2_packet_t *packet = r2_pool_get(&net->packets);

    if (NULL == packet) {
        return false;
    }
    memset(packet, 0, sizeof(*packet));
    r2_header_fill(lane, (r2_wire_kind_t) item->kind, &packet->header);
    if (R2_WIRE_DATA == item->kind) {
        r2_packet_fill_data(packet, item);
    } else {
        r2_packet_fill_control(packet, item);
    }
    if (item->in_flight > 0) {
        packet->header.flags |= R2_WIRE_HEDGE;
    }
    packet->header.lane_seq = lane->tx_seq;
    packet->lane_seq = lane->tx_seq;
    packet->item = item;
    packet->bytes = (uint32_t) (sizeof(packet->header) + packet->op.data_bytes);
    packet->sent_ns = net->now_ns;
    if (!r2_packet_post(lane, packet)) {
        r2_pool_put(&net->packets, packet);
        return false;
    }
    if (R2_WIRE_DATA == item->kind && !packet->transport_done) {
        ++item->message->refs;
    }
    r2_tx_count(net, item, packet->header.length, again);
    ++lane->tx_seq;
    ++item->refs;
    ++item->in_flight;
    ++link->in_flight_packets;
    lane->in_flight_bytes += packet->bytes;
    DL_APPEND(lane->in_flight, packet);
    return true;
}

static bool r2_lane_usable(const r2_lane_t *lane)
{
    return R2_LANE_UP == lane->state && !lane->failed;
}

static bool r2_lane_room(r2_lane_t *lane, uint64_t bytes)
{
    if (!r2_lane_usable(lane)) {
        return false;
    }
    if (NULL == lane->in_flight || lane->in_flight_bytes + bytes <= lane->window_bytes) {
        return true;
    }
    lane->limited = true;
    return false;
}

/* True if lane a is emptier than lane b, compared with their windows. */
static bool r2_lane_emptier(const r2_lane_t *a, const r2_lane_t *b)
{
    return a->in_flight_bytes * b->window_bytes < b->in_flight_bytes * a->window_bytes;
}

static bool r2_lane_carries(const r2_lane_t *lane, const r2_tx_item_t *item)
{
    r2_packet_t *packet;

    if (0 == item->in_flight) {
        return false;
    }
    DL_FOREACH(lane->in_flight, packet)
    {
        if (packet->item == item) {
            return true;
        }
    }
    return false;
}

/* True if a lane is up that has not come in doubt: then doubtful ones get nothing new. */
bool r2_tx_has_sound_lane(const r2_link_t *link)
{
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        const r2_lane_t *lane = &link->lanes[i];

        if (R2_LANE_UP == lane->state && !lane->failed && !lane->hedged) {
            return true;
        }
    }
    return false;
}

/* True if a lane that is not in doubt has a copy of the item under way. */
static bool r2_tx_soundly_carried(const r2_link_t *link, const r2_tx_item_t *item)
{
    for (uint32_t i = 0; item->in_flight > 1 && i < link->lane_count; ++i) {
        const r2_lane_t *lane = &link->lanes[i];

        if (R2_LANE_UP == lane->state && !lane->hedged && r2_lane_carries(lane, item)) {
            return true;
        }
    }
    return false;
}

void r2_tx_hedge(r2_lane_t *lane)
{
    r2_packet_t *packet;

    lane->hedged = true;
    DL_FOREACH(lane->in_flight, packet)
    {
        if (!r2_tx_soundly_carried(lane->link, packet->item)) {
            r2_tx_requeue(lane->link, packet->item);
        }
    }
}

/* The lane that pulls the next packet; NULL: none has room. A hedge never goes where its twin is. */
static r2_lane_t *r2_tx_lane(r2_link_t *link, const r2_tx_item_t *item, uint64_t bytes)
{
    bool sound = r2_tx_has_sound_lane(link);
    bool control = NULL != item && R2_WIRE_DATA != item->kind; /* never behind a window that does not move */
    r2_lane_t *best = NULL;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        r2_lane_t *lane = &link->lanes[(link->preferred + i) % link->lane_count];

        if ((sound && lane->hedged) || !(control ? r2_lane_usable(lane) : r2_lane_room(lane, bytes)) ||
            (NULL != item && r2_lane_carries(lane, item))) {
            continue;
        }
        if (bytes <= R2_SHORT_PACKET_BYTES) {
            return lane;
        }
        if (NULL == best || r2_lane_emptier(lane, best)) {
            best = lane;
        }
    }
    return best;
}

static uint64_t r2_tx_item_bytes(const r2_tx_item_t *item)
{
    return sizeof(r2_wire_header_t) + (R2_WIRE_DATA == item->kind
                                           ? r2_chunk_length(item->message, item->chunk)
                                           : item->payload_bytes);
}

/* Sends queued items (control, or lost and to be sent again) as far as lanes have room. */
static bool r2_tx_items(r2_link_t *link, r2_tx_item_t **list, bool again)
{
    r2_tx_item_t *item, *next;

    DL_FOREACH_SAFE(*list, item, next)
    {
        r2_lane_t *lane;

        if (!item->acked) {
            lane = r2_tx_lane(link, item, r2_tx_item_bytes(item));
            if (NULL == lane && item->in_flight > 0) {
                continue; /* a hedge with nowhere to go: its twin is still under way */
            }
            if (NULL == lane || !r2_tx_send(lane, item, again)) {
                return false;
            }
        }
        DL_DELETE(*list, item);
        item->queued = false;
        if (item->acked) {
            r2_tx_item_release(link->net, item);
        }
    }
    return true;
}

/* Sends the granted, unsent chunks of a message. @return false: no lane has room. */
static bool r2_tx_chunks(r2_link_t *link, r2_tx_message_t *message)
{
    while (message->next_chunk < message->chunk_count) {
        uint32_t length = r2_chunk_length(message, message->next_chunk);
        r2_tx_item_t *item;
        r2_lane_t *lane;

        if (message->next_chunk >= message->granted_chunks) {
            break;
        }
        lane = r2_tx_lane(link, NULL, sizeof(r2_wire_header_t) + length);
        if (NULL == lane) {
            return false;
        }
        item = r2_tx_item_new(link->net, R2_WIRE_DATA);
        if (NULL == item) {
            return false;
        }
        item->message = message;
        item->chunk = message->next_chunk;
        if (!r2_tx_send(lane, item, false)) {
            r2_pool_put(&link->net->items, item);
            return false;
        }
        ++message->next_chunk;
    }
    return true;
}

static void r2_tx_grants(r2_link_t *link)
{
    if (link->grant_count > 0) {
        uint32_t count = link->grant_count;

        link->grant_count = 0;
        r2_tx_control(link, R2_WIRE_CREDIT, link->grants, count * (uint32_t) sizeof(r2_tag_t));
    }
}

void r2_link_push(r2_link_t *link)
{
    if (link->net->in_callback || R2_OK != link->broken) {
        return;
    }
    r2_tx_grants(link);
    if (!r2_tx_items(link, &link->control, false) || !r2_tx_items(link, &link->again, true)) {
        return;
    }
    for (int priority = 1; priority >= 0; --priority) {
        r2_tx_message_t *message, *next;

        DL_FOREACH_SAFE(link->queue[priority], message, next)
        {
            if (!r2_tx_chunks(link, message)) {
                return;
            }
            DL_DELETE(link->queue[priority], message);
            message->queued = false;
            r2_tx_message_settle(message);
        }
    }
}

void r2_tx_enqueue(r2_tx_message_t *message, bool front)
{
    r2_tx_message_t **queue = &message->link->queue[message->priority];

    if (message->queued) {
        return;
    }
    message->queued = true;
    if (front) {
        DL_PREPEND(*queue, message);
    } else {
        DL_APPEND(*queue, message);
    }
}

void r2_tx_control(r2_link_t *link, r2_wire_kind_t kind, const void *payload, uint32_t bytes)
{
    r2_tx_item_t *item = r2_tx_item_new(link->net, kind);

    if (NULL == item) {
        return;
    }
    r2_assert(bytes <= sizeof(item->payload));
    if (bytes > 0) {
        memcpy(&item->payload, payload, bytes);
    }
    item->payload_bytes = R2_WIRE_RTS == kind ? 0 : bytes;
    item->queued = true;
    DL_APPEND(link->control, item);
    r2_link_activate(link);
}
