/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Receiving: fence, de-duplication of packets, and what each kind of packet does.
 */
#include "r2_config.h"

#include "link/idle.h"
#include "link/relay.h"
#include "link/rx.h"

#include <string.h>

static void r2_rx_lane_down(r2_link_t *link, const void *data)
{
    r2_wire_lane_down_t down;

    memcpy(&down, data, sizeof(down));
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        r2_lane_t *lane = &link->lanes[i];

        if (lane->connect.tx_connection != down.connection) {
            continue;
        }
        if (NULL != lane->conn) {
            lane->failed = true;
            lane->why = R2_ERR_LANE_DOWN;
            lane->connect.past = 0 != down.rested ? R2_PAST_RESTED : lane->connect.past;
        } else if (0 != down.rested && R2_PAST_RESTED != lane->connect.past) {
            r2_idle_judge(lane, true);
        }
    }
}

static void r2_rx_abort(r2_link_t *link, const void *data)
{
    r2_net_t *net = link->net;
    r2_wire_abort_t abort;

    memcpy(&abort, data, sizeof(abort));
    if (abort.status < 0) {
        net->upcalls.aborted(net->upcalls.arg, link->rank, abort.comm_key,
                             (r2_status_t) abort.status);
    }
}

/* @return false: the packet was not taken and must not be acknowledged. */
static bool r2_rx_sequenced(r2_lane_t *lane, const r2_wire_header_t *header, const void *data)
{
    r2_link_t *link = lane->link;
    uint64_t number;

    switch ((r2_wire_kind_t) header->kind) {
    case R2_WIRE_DATA:
        lane->rail->rx_bytes += header->length;
        return r2_rx_data(lane, header, data);
    case R2_WIRE_RTS:
        return r2_rx_rts(link, header);
    case R2_WIRE_CREDIT:
        return r2_credit_received(link, data, header->length / sizeof(r2_wire_credit_t));
    case R2_WIRE_GRANT:
        return r2_credit_granted(link, data, header->length);
    case R2_WIRE_VOID:
        memcpy(&number, data, sizeof(number));
        r2_rx_void(link, number);
        return true;
    case R2_WIRE_LANE_DOWN:
        r2_rx_lane_down(link, data);
        return true;
    case R2_WIRE_ABORT:
        r2_rx_abort(link, data);
        return true;
    case R2_WIRE_NOTICE:
        if (NULL != link->net->upcalls.notice) {
            link->net->upcalls.notice(link->net->upcalls.arg, link->rank, data, header->length);
        }
        return true;
    case R2_WIRE_QUERY:
        r2_mismatch_received(link, data, header->length / sizeof(r2_wire_query_t));
        return true;
    case R2_WIRE_DENIED:
        r2_mismatch_denied(link, data, header->length / sizeof(r2_wire_query_t));
        return true;
    case R2_WIRE_RELAY:
        r2_relay_received(link, header, data);
        return true;
    case R2_WIRE_LEAVE:
        link->path.left = true; /* the rest when this progress pass tends the link */
        return true;
    case R2_WIRE_PING:
    case R2_WIRE_HELLO:
    case R2_WIRE_HELLO_ACK:
    case R2_WIRE_ACK:
    case R2_WIRE_CLOSE:
    case R2_WIRE_CLOSED:
    case R2_WIRE_KIND_END:
        return true;
    }
    return true;
}

/*
 * The end of a silence: the peer slept, and so did its acknowledgements. Lanes that came in doubt
 * get half a timeout more; once, or a peer that speaks rarely would hide a lane that is dead.
 */
static void r2_rx_grace(r2_lane_t *lane, uint64_t now_ns)
{
    const uint64_t half_ns = r2_lane_timeout_ns(lane) / 2;

    if (r2_lane_is_silent(lane) && !lane->timing.grace_used) {
        lane->timing.grace_used = true;
        lane->timing.base_ns = r2_max(lane->timing.base_ns, now_ns - r2_min(half_ns, now_ns));
    }
}

static void r2_rx_life(r2_lane_t *lane)
{
    r2_link_t *link = lane->link;
    uint64_t now_ns = link->net->now_ns;
    uint64_t silence_ns = r2_net_pause_ns(link->net);

    for (uint32_t i = 0; now_ns - link->path.last_rx_ns > silence_ns && i < link->lane_count; ++i) {
        r2_rx_grace(&link->lanes[i], now_ns);
    }
    if (now_ns - lane->rx.last_ns > r2_scaled_timeout_ns(link->net, R2_ACK_STALL_TIMES)) {
        lane->rx.awake_ns = now_ns;
    }
    r2_rtt_heard(link);
    link->path.heard_ns += r2_min(now_ns - link->path.last_rx_ns, silence_ns);
    link->path.last_rx_ns = now_ns;
    link->net->last_rx_ns = now_ns;
    lane->rx.last_ns = now_ns;
    if (R2_ERR_NO_PATH == link->broken && lane->state >= R2_LANE_UP) {
        link->broken = R2_OK;
    }
}

/*
 * Few lanes have traffic at a time, so most packets find theirs without a hash. Lanes stay in
 * memory as long as the net; one that is not connected has the number 0.
 * @return NULL: there is none.
 */
r2_lane_t *r2_rx_lane(r2_net_t *net, uint64_t connection)
{
    r2_lane_t **recent = &net->recent[connection % R2_NET_RECENT], *lane = *recent;

    if (NULL == lane || 0 == connection || connection != lane->connect.rx_connection) {
        HASH_FIND(hh, net->connections, &connection, sizeof(connection), lane);
        *recent = lane;
    }
    return lane;
}

void r2_rx_number(const r2_lane_t *lane, r2_wire_header_t *header, bool is_short)
{
    const r2_link_t *link = lane->link;

    if (is_short) {
        header->message = r2_wire_message((uint32_t) header->message,
                                          r2_runs_newest(&link->rx.completed, link->rx.watermark));
    }
}

void r2_rx_packet(void *worker, const void *packet_header, size_t header_bytes, const void *data,
                  size_t data_bytes)
{
    r2_net_t *net = ((r2_rail_worker_t *) worker)->rail->owner;
    r2_wire_header_t header;
    r2_lane_t *lane;
    bool is_short;

    ++net->counters->rx_packets;
    if (R2_OK != r2_wire_parse(packet_header, header_bytes, data_bytes, &header, &is_short)) {
        ++net->counters->rx_malformed;
        return;
    }
    lane = r2_rx_lane(net, header.connection);
    if (NULL == lane || lane->failed) {
        if (NULL != lane && R2_WIRE_CLOSED == header.kind) {
            r2_idle_heard(lane, header.kind); /* that is why: the peer closed it, we were stopped */
        }
        ++net->counters->rx_stale;
        return;
    }
    if (NULL != lane->conn) {
        lane->conn->landing = NULL; /* this is what landed, if anything did */
    }
    r2_rx_number(lane, &header, is_short);
    r2_rx_life(lane);
    r2_unread_heard(lane, header.unread, header.unread_at);
    r2_lane_reached(lane);
    if (header.kind <= R2_WIRE_HELLO_ACK || R2_LANE_WIRING == lane->state) {
        r2_lane_connected(lane, header.kind);
    }
    if (R2_WIRE_HELLO == header.kind || R2_WIRE_HELLO_ACK == header.kind) {
        return;
    }
    r2_idle_heard(lane, header.kind);
    r2_ack_received(lane, &header);
    r2_credit_consumed(lane->link, header.consumed);
    if (!r2_wire_sequenced(header.kind)) {
        return;
    }
    if (r2_ack_is_duplicate(lane, header.lane_seq)) {
        r2_ack_note(lane, &header); /* our acknowledgement was lost: say it again */
        ++net->counters->rx_duplicates;
        return;
    }
    if (R2_WIRE_DATA == header.kind && header.length == header.message_bytes &&
        0 == (header.flags & R2_WIRE_HEDGE)) {
        r2_tx_turn_heard(lane, header.length);
    }
    lane->link->rx.hurry = false;
    if (r2_rx_sequenced(lane, &header, data)) {
        r2_ack_note(lane, &header);
    }
    if (lane->link->rx.hurry) {
        r2_ack_hurry(lane->link);
    }
}
