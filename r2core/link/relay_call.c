/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Frames to the process that relays, and connect requests by way of it: which one is asked.
 */
#include "r2_config.h"

#include "link/relay.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

r2_status_t r2_relay_post(r2_net_t *net, uint32_t towards, const r2_tx_relay_t *to,
                          const r2_wire_relay_t *frame, const r2_relay_parts_t *parts)
{
    r2_link_t *link = net->links[towards];
    size_t bytes = sizeof(*frame) + parts->head_bytes + parts->data_bytes;
    r2_tx_item_t *item;
    char *data;

    if (NULL == link || R2_OK != link->broken || link->path.left ||
        (to->hello && !r2_control_may(link, R2_WIRE_RELAY))) {
        return R2_ERR_NO_PATH;
    }
    data = malloc(bytes);
    item = NULL == data ? NULL : r2_tx_item_new(net, R2_WIRE_RELAY);
    if (NULL == item) {
        free(data);
        return R2_ERR_NO_MEMORY;
    }
    memcpy(data, frame, sizeof(*frame));
    if (parts->head_bytes > 0) {
        memcpy(data + sizeof(*frame), parts->head, parts->head_bytes);
    }
    if (parts->data_bytes > 0) {
        memcpy(data + sizeof(*frame) + parts->head_bytes, parts->data, parts->data_bytes);
    }
    item->payload.relay = *to;
    item->payload.relay.data = data;
    item->payload_bytes = (uint32_t) bytes;
    if (NULL != to->pair) {
        to->pair->bytes[to->side] += bytes;
        to->pair->calls[to->side] += to->call;
    }
    r2_control_opened(link, item);
    item->queued = true;
    DL_APPEND(link->tx.relayed, item);
    r2_link_activate(link);
    r2_link_push(link); /* whoever drives may sleep next; does nothing in the middle of progress */
    return R2_OK;
}

/* ---- choice of the process that relays ---- */

/* @return host id of a process; 0: not known. */
static uint64_t r2_relay_host(r2_net_t *net, uint32_t rank)
{
    r2_relay_t *relay = net->relay;
    r2_peer_info_t info;

    if (NULL != net->links[rank]) {
        return net->links[rank]->info.host_id;
    }
    if (NULL == relay->hosts) {
        relay->hosts = calloc(net->size, sizeof(relay->hosts[0]));
    }
    if (NULL == relay->hosts || 0 != relay->hosts[rank]) {
        return NULL == relay->hosts ? 0 : relay->hosts[rank];
    }
    if (R2_OK == r2_net_lookup(net, rank, &info)) {
        relay->hosts[rank] = info.host_id;
        r2_peer_info_put(&info);
    }
    return relay->hosts[rank];
}

/* A third host, which has other rails, and to which there is, or can be, a direct lane. */
static bool r2_relay_may(const r2_link_t *link, uint32_t rank)
{
    r2_net_t *net = link->net;
    const r2_net_upcalls_t *upcalls = &net->upcalls;
    r2_link_t *via;
    uint64_t host_id;

    if (rank == net->rank || rank == link->rank) {
        return false;
    }
    host_id = r2_relay_host(net, rank);
    if (0 == host_id || host_id == net->info.host_id || host_id == link->info.host_id ||
        (NULL != upcalls->reaches && !upcalls->reaches(upcalls->arg, rank, link->rank))) {
        return false;
    }
    if (R2_OK != r2_net_link(net, rank, &via) || R2_OK != via->broken) {
        return false;
    }
    if (!r2_relay_reaches(via)) {
        r2_link_inquire(via);
        if (r2_link_is_busy(via)) {
            link->path.relay->busy_ns = net->now_ns; /* it may relay when it goes on */
        }
        return false;
    }
    return true;
}

/* True if the next in rotation may relay; a lane that is only doubted leads by another one
 * already. */
static bool r2_relay_next_may(const r2_lane_t *lane)
{
    const struct r2_relay_way *way = lane->link->path.relay;

    return (NULL == lane->conn || way->cursor != way->via) && r2_relay_may(lane->link, way->cursor);
}

bool r2_relay_seek(r2_lane_t *lane)
{
    struct r2_relay_way *way = lane->link->path.relay;

    while (way->left > 0 && !r2_relay_next_may(lane)) {
        way->cursor = (way->cursor + 1) % lane->link->net->size;
        --way->left;
    }
    return way->left > 0;
}

/* The next in rotation; a lane that is only doubted may be called the way it leads, too. */
static bool r2_relay_pick(r2_lane_t *lane, uint32_t *via_p)
{
    struct r2_relay_way *way = lane->link->path.relay;
    uint32_t size = lane->link->net->size;

    if (0 == way->left) {
        way->left = size;
    }
    if (r2_relay_seek(lane)) {
        *via_p = way->cursor;
        way->cursor = (way->cursor + 1) % size;
        --way->left;
        return true;
    }
    *via_p = way->via;
    return NULL != lane->conn && r2_relay_may(lane->link, way->via);
}

/* ---- hello ---- */

r2_status_t r2_relay_call(r2_lane_t *lane, const void *request, size_t bytes)
{
    r2_net_t *net = lane->link->net;
    struct r2_relay_way *way = lane->link->path.relay;
    r2_wire_relay_t frame = {
        .source = net->rank, .op = R2_RELAY_CALL, .id = lane->connect.connect_id};
    r2_tx_relay_t to = {.destination = lane->link->rank, .hello = true};
    r2_relay_parts_t parts = {request, NULL, bytes, 0};

    if (!r2_relay_pick(lane, &way->connect_via)) {
        return R2_ERR_NO_PATH;
    }
    r2_debug(net->log, "connecting to rank %u by way of rank %u on %s", lane->link->rank,
             way->connect_via, net->links[way->connect_via]->info.host_name);
    way->connect_ns = net->now_ns;
    return r2_relay_post(net, way->connect_via, &to, &frame, &parts);
}

void r2_relay_reply(r2_net_t *net, const void *reply, size_t bytes)
{
    const r2_relay_t *relay = net->relay;
    r2_wire_relay_t frame = {.source = net->rank, .op = R2_RELAY_REPLY, .id = relay->hello.id};
    r2_tx_relay_t to = {.destination = relay->hello.source, .hello = true};
    r2_relay_parts_t parts = {reply, NULL, bytes, 0};

    /* without a way back the caller's time runs out */
    (void) r2_relay_post(net, relay->via, &to, &frame, &parts);
}
