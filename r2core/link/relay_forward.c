/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Forwarding between two other processes: bounded, and nothing is dropped without a word.
 */
#include "r2_config.h"

#include "link/relay.h"

#include <string.h>
#include <utlist.h>

/* A pair that has been silent for so long makes room for another. */
#define R2_RELAY_IDLE_NS (10 * R2_NS_PER_S)

/*
 * What one direction of a pair may take. The sender's window bounds what it has not had
 * acknowledged by the other end, which is more than what waits here; twice, for the lane that
 * follows a fenced one.
 */
static uint64_t r2_relay_side_bytes(const r2_net_t *net)
{
    return 2 * (uint64_t) net->params->relay_window_bytes + net->segment_bytes + R2_TP_HEADER_MAX;
}

static r2_relay_pair_t *r2_relay_pair_find(r2_relay_t *relay, uint32_t low, uint32_t high)
{
    for (uint32_t i = 0; i < relay->pair_count; ++i) {
        if (relay->pairs[i].rank[0] == low && relay->pairs[i].rank[1] == high) {
            return &relay->pairs[i];
        }
    }
    return NULL;
}

/* Room for a new pair: a new one within the bound, or one that has been idle. NULL: overload. */
static r2_relay_pair_t *r2_relay_pair_room(r2_relay_t *relay)
{
    r2_net_t *net = relay->net;
    uint64_t taken_bytes = (relay->pair_count + 1) * 2 * r2_relay_side_bytes(net);

    if (relay->pair_count < R2_RELAY_PAIRS_MAX && taken_bytes <= net->params->relay_bytes) {
        return &relay->pairs[relay->pair_count++];
    }
    for (uint32_t i = 0; i < relay->pair_count; ++i) {
        r2_relay_pair_t *pair = &relay->pairs[i];

        if (0 == pair->bytes[0] && 0 == pair->bytes[1] &&
            net->now_ns - pair->used_ns > R2_RELAY_IDLE_NS) {
            return pair;
        }
    }
    return NULL;
}

/* @param admit a call may open a pair; all else belongs to a pair that is known. */
static r2_relay_pair_t *r2_relay_pair(r2_relay_t *relay, uint32_t a, uint32_t b, bool admit)
{
    uint32_t low = r2_min(a, b), high = r2_max(a, b);
    r2_relay_pair_t *pair = r2_relay_pair_find(relay, low, high);

    if (NULL == pair && admit) {
        pair = r2_relay_pair_room(relay);
        if (NULL != pair) {
            *pair = (r2_relay_pair_t){.rank = {low, high}};
        }
    }
    if (NULL != pair) {
        pair->used_ns = relay->net->now_ns;
    }
    return pair;
}

/* @param why R2_ERR_UNRESPONSIVE: the process is stopped, else it cannot be reached. */
static void r2_relay_refuse(r2_net_t *net, uint32_t source, uint32_t destination, uint64_t id,
                            r2_status_t why)
{
    r2_wire_relay_t frame = {.source = destination, .op = R2_RELAY_CANNOT, .id = id};
    r2_tx_relay_t to = {.destination = source, .hop = 1, .hello = true};
    r2_relay_parts_t parts = {NULL, NULL, 0, 0};

    if (R2_ERR_UNRESPONSIVE == why) {
        frame.op = R2_RELAY_BUSY;
    }
    ++net->counters->relay_refused;
    (void) r2_relay_post(net, source, &to, &frame, &parts);
}

/* Somebody needs this link: that its peer is gone, or only stopped, must be found out, and said. */
static r2_status_t r2_relay_missed(r2_link_t *link)
{
    if (NULL == link) {
        return R2_ERR_NO_PATH;
    }
    r2_link_inquire(link);
    return R2_OK == link->broken && r2_link_is_busy(link) ? R2_ERR_UNRESPONSIVE : R2_ERR_NO_PATH;
}

/*
 * @return R2_OK, R2_ERR_NO_PATH, R2_ERR_UNRESPONSIVE: the process is stopped. One that has not
 * taken an earlier call of the same process takes no other: it could be stopped for hours.
 */
static r2_status_t r2_relay_pass(r2_net_t *net, uint32_t destination, const r2_wire_relay_t *frame,
                                 const void *data, size_t bytes)
{
    bool call = R2_RELAY_CALL == frame->op;
    r2_relay_parts_t parts = {data, NULL, bytes, 0};
    r2_tx_relay_t to = {.destination = destination, .hop = 1};
    r2_link_t *link = net->links[destination];

    if (call && R2_OK != r2_net_link(net, destination, &link)) {
        return R2_ERR_NO_PATH;
    }
    if (NULL != link) {
        to.pair = r2_relay_pair(net->relay, frame->source, destination, call);
    }
    if (NULL == link || R2_OK != link->broken || !r2_relay_reaches(link)) {
        const r2_status_t why = r2_relay_missed(link);

        return NULL == to.pair ? R2_ERR_NO_PATH : why;
    }
    if (NULL == to.pair) {
        return R2_ERR_NO_PATH;
    }
    to.side = to.pair->rank[1] == destination;
    to.call = call;
    if (call && to.pair->calls[to.side] > 0) {
        return R2_ERR_UNRESPONSIVE;
    }
    if (to.pair->bytes[to.side] + sizeof(*frame) + bytes > r2_relay_side_bytes(net)) {
        return R2_ERR_NO_PATH;
    }
    return r2_relay_post(net, destination, &to, frame, &parts);
}

void r2_relay_forward(r2_link_t *from, uint32_t destination, const r2_wire_relay_t *frame,
                      const void *data, size_t bytes)
{
    r2_net_t *net = from->net;

    const r2_status_t status = r2_relay_pass(net, destination, frame, data, bytes);

    if (R2_OK != status) {
        r2_relay_refuse(net, frame->source, destination, frame->id, status);
        return;
    }
    ++net->counters->relayed_packets;
    net->counters->relayed_bytes += bytes;
}

/* Takes frames out of a queue; who sent them for another is told, once for each lane or call. */
static void r2_relay_drain(r2_link_t *link, r2_tx_item_t **list)
{
    r2_net_t *net = link->net;
    r2_tx_item_t *item, *next;
    uint64_t told = 0;

    DL_FOREACH_SAFE(*list, item, next) {
        bool forwarded =
            R2_WIRE_RELAY == item->kind && NULL != item->payload.relay.pair && !item->acked;
        r2_wire_relay_t frame;

        if (R2_WIRE_RELAY != item->kind) {
            continue;
        }
        memcpy(&frame, item->payload.relay.data, sizeof(frame));
        DL_DELETE(*list, item);
        item->queued = false;
        r2_control_settled(link, item);
        r2_tx_item_release(net, item);
        if (forwarded && frame.id != told) {
            told = frame.id;
            r2_relay_refuse(net, frame.source, link->rank, frame.id, r2_relay_missed(link));
        }
    }
}

void r2_relay_give_up(r2_link_t *link)
{
    if (NULL == link->tx.relayed && NULL == link->tx.retransmit) {
        return;
    }
    if (r2_relay_reaches(link)) {
        return;
    }
    r2_relay_drain(link, &link->tx.relayed);
    r2_relay_drain(link, &link->tx.retransmit);
}
