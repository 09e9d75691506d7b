/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Relay packets: the transport of relay lanes, and what arrives by way of a third host.
 */
#include "r2_config.h"

#include "link/relay.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/** Endpoint of a relay lane. */
typedef struct r2_relay_ep {
    r2_relay_t *relay; /* borrowed */
    bool connected;
    uint32_t rank; /* the peer */
    uint32_t via;
} r2_relay_ep_t;

/* ---- transport table of the pseudo rail: device and worker are the r2_relay_t itself ---- */

static r2_status_t r2_relay_device_open(void *tp, const r2_tp_device_config_t *config,
                                        r2_tp_device_t **device_p)
{
    (void) config;
    *device_p = tp;
    return R2_OK;
}

static void r2_relay_device_close(r2_tp_device_t *device)
{
    (void) device;
}

static r2_status_t r2_relay_worker_create(r2_tp_device_t *device,
                                          const r2_tp_callbacks_t *callbacks, void *arg,
                                          r2_tp_worker_t **worker_p)
{
    (void) callbacks;
    (void) arg;
    *worker_p = (void *) device;
    return R2_OK;
}

static void r2_relay_worker_destroy(r2_tp_worker_t *worker)
{
    (void) worker;
}

static unsigned r2_relay_worker_progress(r2_tp_worker_t *worker)
{
    (void) worker;
    return 0;
}

static int r2_relay_worker_fd(r2_tp_worker_t *worker)
{
    (void) worker;
    return -1;
}

static r2_status_t r2_relay_worker_arm(r2_tp_worker_t *worker)
{
    (void) worker;
    return R2_OK;
}

static r2_status_t r2_relay_ep_open(r2_tp_worker_t *worker, void *ep_arg, r2_tp_ep_t **ep_p)
{
    r2_relay_ep_t *ep = calloc(1, sizeof(*ep));

    (void) ep_arg;
    if (NULL == ep) {
        return R2_ERR_NO_MEMORY;
    }
    ep->relay = (void *) worker;
    *ep_p = (void *) ep;
    return R2_OK;
}

/* A relay lane's address is the process; the way there is how the hello came. */
static r2_status_t r2_relay_ep_address(r2_tp_ep_t *tp_ep, void *address_p, size_t *bytes_p)
{
    const r2_relay_ep_t *ep = (const void *) tp_ep;

    memcpy(address_p, &ep->relay->net->rank, sizeof(ep->relay->net->rank));
    *bytes_p = sizeof(ep->relay->net->rank);
    return R2_OK;
}

static r2_status_t r2_relay_ep_connect(r2_tp_ep_t *tp_ep, const void *address, size_t address_bytes)
{
    r2_relay_ep_t *ep = (void *) tp_ep;
    r2_relay_t *relay = ep->relay;
    uint32_t rank;

    if (sizeof(rank) != address_bytes) {
        return R2_ERR_WIRE;
    }
    memcpy(&rank, address, sizeof(rank));
    if (rank != relay->hello.source) {
        return R2_ERR_WIRE; /* offers a lane in another's name */
    }
    ep->connected = true;
    ep->rank = rank;
    ep->via = relay->via;
    relay->net->links[rank]->path.relay->via = relay->via;
    relay->net->links[rank]->path.relay->wired_ns = relay->net->now_ns;
    return R2_OK;
}

static void r2_relay_ep_close(r2_tp_ep_t *tp_ep)
{
    r2_relay_ep_t *ep = (void *) tp_ep;

    if (ep->connected) {
        ep->relay->net->links[ep->rank]->path.relay->wired_ns = 0;
    }
    free(ep);
}

static r2_status_t r2_relay_send(r2_tp_ep_t *tp_ep, r2_tp_send_t *op)
{
    const r2_relay_ep_t *ep = (const void *) tp_ep;
    r2_net_t *net = ep->relay->net;
    const r2_wire_header_t *header = op->header;
    r2_wire_relay_t frame = {
        .source = net->rank, .op = R2_RELAY_PACKET, .id = header->connection};
    r2_tx_relay_t to = {.destination = ep->rank};
    r2_relay_parts_t parts = {op->header, op->data, op->header_bytes, op->data_bytes};

    return r2_relay_post(net, ep->via, &to, &frame, &parts);
}

static const r2_tp_ops_t r2_relay_ops = {
    .name = "relay",
    .device_open = r2_relay_device_open,
    .device_close = r2_relay_device_close,
    .worker_create = r2_relay_worker_create,
    .worker_destroy = r2_relay_worker_destroy,
    .worker_progress = r2_relay_worker_progress,
    .worker_fd = r2_relay_worker_fd,
    .worker_arm = r2_relay_worker_arm,
    .ep_open = r2_relay_ep_open,
    .ep_address = r2_relay_ep_address,
    .ep_connect = r2_relay_ep_connect,
    .ep_close = r2_relay_ep_close,
    .send = r2_relay_send,
};

r2_status_t r2_relay_init(r2_net_t *net)
{
    r2_relay_t *relay = calloc(1, sizeof(*relay));
    r2_nic_t nic;

    if (NULL == relay) {
        return R2_ERR_NO_MEMORY;
    }
    memset(&nic, 0, sizeof(nic));
    strcpy(nic.name, "relay");
    nic.carrier = true;
    relay->net = net;
    relay->tp.ops = &r2_relay_ops;
    relay->tp.instance = relay;
    r2_rail_init(&relay->rail, R2_RELAY_RAIL, &nic, &relay->tp, &net->callbacks, net->segment_bytes,
                 -1, net, net->log);
    net->relay = relay;
    return R2_OK;
}

void r2_relay_fini(r2_net_t *net)
{
    r2_relay_t *relay = net->relay;

    if (NULL == relay) {
        return;
    }
    while (NULL != relay->pending) {
        r2_relay_pending_t *pending = relay->pending;

        relay->pending = pending->next;
        free(pending);
    }
    r2_rail_fini(&relay->rail);
    free(relay->hosts);
    free(relay);
    net->relay = NULL;
}

/* ---- what arrives ---- */

/* Unwraps a packet of a relay lane. Only lanes to the one who speaks, and no relay inside a
 * relay. */
static void r2_relay_unwrap(r2_net_t *net, const r2_wire_relay_t *frame, const char *data,
                            size_t bytes)
{
    r2_rail_worker_t worker = {.rail = &net->relay->rail};
    r2_wire_header_t header;
    uint64_t connection;
    r2_lane_t *lane;

    if (bytes < sizeof(header)) {
        ++net->counters->rx_malformed;
        return;
    }
    memcpy(&header, data, sizeof(header));
    connection = header.connection;
    HASH_FIND(hh, net->connections, &connection, sizeof(connection), lane);
    if (NULL == lane) {
        ++net->counters->rx_stale;
        return;
    }
    if (R2_WIRE_RELAY == header.kind || !r2_lane_is_relay(lane) ||
        lane->link->rank != frame->source) {
        ++net->counters->rx_malformed;
        return;
    }
    worker.rail->callbacks->received(&worker, data, sizeof(header), data + sizeof(header),
                                     bytes - sizeof(header));
}

/* Hello frames may close and open lanes: not in the middle of progress. */
static void r2_relay_defer(r2_net_t *net, uint32_t via, uint32_t destination,
                           const r2_wire_relay_t *frame, const char *data, size_t bytes)
{
    r2_relay_t *relay = net->relay;
    r2_relay_pending_t *pending;

    if (relay->pending_count >= R2_RELAY_PENDING_MAX || bytes > R2_HELLO_BYTES_MAX) {
        ++net->counters->relay_refused; /* as a connect request without an answer: tried again, and
                                           elsewhere */
        return;
    }
    pending = calloc(1, sizeof(*pending) + bytes);
    if (NULL == pending) {
        return;
    }
    pending->via = via;
    pending->destination = destination;
    pending->frame = *frame;
    pending->bytes = bytes;
    if (bytes > 0) {
        memcpy(pending->data, data, bytes);
    }
    LL_APPEND(relay->pending, pending);
    ++relay->pending_count;
}

/* A frame has come as many hops as it may, and from who may send it. */
static bool r2_relay_frame_ok(const r2_link_t *from, const r2_wire_header_t *header,
                              const r2_wire_relay_t *frame)
{
    const r2_net_t *net = from->net;
    bool ours = header->destination == net->rank;

    if (header->destination >= net->size || frame->source >= net->size ||
        frame->source == header->destination || frame->source == net->rank ||
        header->hop != (ours ? 1 : 0)) {
        return false;
    }
    if (ours) {
        return frame->op >= R2_RELAY_PACKET && frame->op < R2_RELAY_OP_END;
    }
    return frame->source == from->rank && frame->op >= R2_RELAY_PACKET &&
           frame->op < R2_RELAY_CANNOT;
}

void r2_relay_received(r2_link_t *from, const r2_wire_header_t *header, const void *data)
{
    r2_net_t *net = from->net;
    const char *rest = (const char *) data + sizeof(r2_wire_relay_t);
    size_t bytes = header->length - sizeof(r2_wire_relay_t);
    r2_wire_relay_t frame;

    memcpy(&frame, data, sizeof(frame));
    if (!r2_relay_frame_ok(from, header, &frame)) {
        ++net->counters->rx_malformed;
    } else if (header->destination == net->rank && R2_RELAY_PACKET == frame.op) {
        r2_relay_unwrap(net, &frame, rest, bytes);
    } else if (header->destination == net->rank || R2_RELAY_CALL == frame.op) {
        r2_relay_defer(net, from->rank, header->destination, &frame, rest, bytes);
    } else {
        r2_relay_forward(from, header->destination, &frame, rest, bytes);
    }
}

/* The process that relays cannot go on with a call, or with a lane (CANNOT, BUSY). */
static void r2_relay_cannot(r2_lane_t *lane, const r2_relay_pending_t *pending)
{
    const struct r2_relay_way *way = lane->link->path.relay;

    if (0 != lane->connect.connect_id && lane->connect.connect_id == pending->frame.id &&
        way->connect_via == pending->via) {
        if (R2_RELAY_BUSY == pending->frame.op) {
            r2_relay_call_busy(lane);
        } else {
            r2_relay_call_failed(lane, R2_ERR_NO_PATH);
        }
    } else if (NULL != lane->conn && lane->connect.tx_connection == pending->frame.id &&
               way->via == pending->via) {
        r2_relay_lane_failed(lane);
    }
}

static void r2_relay_hello(r2_net_t *net, const r2_relay_pending_t *pending)
{
    r2_relay_t *relay = net->relay;
    r2_link_t *link;
    r2_lane_t *lane = NULL;

    if (R2_OK == r2_net_link(net, pending->frame.source, &link)) {
        lane = R2_RELAY_CALL == pending->frame.op ? r2_relay_lane(link) : r2_relay_lane_of(link);
    }
    if (NULL == lane) {
        return;
    }
    relay->via = pending->via;
    relay->hello = pending->frame;
    if (R2_RELAY_CALL == pending->frame.op) {
        r2_hello_request(net, R2_RELAY_RAIL, 0, pending->data, pending->bytes);
    } else if (R2_RELAY_CANNOT == pending->frame.op || R2_RELAY_BUSY == pending->frame.op) {
        r2_relay_cannot(lane, pending);
    } else if (lane->connect.connect_id == pending->frame.id &&
               link->path.relay->connect_via == pending->via) {
        r2_hello_result(net, pending->frame.id, R2_OK, pending->data, pending->bytes);
    } else {
        r2_hello_late(lane, pending->data, pending->bytes);
    }
}

void r2_relay_reap(r2_net_t *net)
{
    r2_relay_t *relay = net->relay;

    while (NULL != relay->pending) {
        r2_relay_pending_t *pending = relay->pending;

        relay->pending = pending->next;
        --relay->pending_count;
        if (pending->destination == net->rank) {
            r2_relay_hello(net, pending);
        } else {
            r2_relay_forward(net->links[pending->via], pending->destination, &pending->frame,
                             pending->data, pending->bytes);
        }
        free(pending);
    }
}
