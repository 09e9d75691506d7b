/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Simulator: connections. Packets leave a socket, share a rail, arrive in order, or come late.
 */
#include "r2_config.h"

#include "doubles/sim_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A packet's way: push (copied into the socket) -> transmit (takes the sending direction of its
 * port for bytes / rate, then the receiving direction of the other port) -> arrive -> receive queue
 * of the worker -> read. A broken path or a lost packet rewinds: everything under way is unsent
 * again.
 */

static void conn_kick(r2_sim_port_t *port);

static r2_sim_t *conn_sim(const r2_tp_ep_t *ep)
{
    return ep->port->sim;
}

static uint64_t conn_wire_ns(const r2_sim_port_t *port, size_t bytes)
{
    return (bytes + R2_SIM_OVERHEAD_BYTES) * R2_NS_PER_S / port->bytes_per_s;
}

void r2_sim_ep_waits(r2_tp_ep_t *ep)
{
    if (!ep->counted) {
        ep->counted = true;
        ++ep->worker->waiting;
    }
    r2_sim_wake(conn_sim(ep), ep->worker->device->node);
}

/* ---- the ring of a port ---- */

static bool conn_may_send(const r2_tp_ep_t *ep)
{
    size_t held = ep->under_way_bytes + ep->unread_bytes;

    return NULL != ep->unsent && !ep->stalled && !ep->reset &&
           (0 == held || 0 != ep->part_bytes ||
            held + r2_sim_packet_bytes(ep->unsent) <= conn_sim(ep)->config.receive_bytes);
}

static void conn_enter_ring(r2_tp_ep_t *ep)
{
    if (!ep->in_ring && conn_may_send(ep)) {
        ep->in_ring = true;
        DL_APPEND2(ep->port->ready, ep, ready_prev, ready_next);
    }
}

static void conn_activate(r2_tp_ep_t *ep)
{
    conn_enter_ring(ep);
    conn_kick(ep->port);
}

static void conn_port_free(void *arg, uint64_t value)
{
    r2_sim_port_t *port = arg;

    (void) value;
    port->sending = false;
    conn_kick(port);
}

/* ---- late data ---- */

static void conn_rewind(r2_tp_ep_t *ep)
{
    ++ep->epoch;
    ep->unsent = ep->socket.head;
    ep->part_bytes = 0;
    ep->under_way_bytes = 0;
    ep->stalled = true;
    ep->stalled_since_ns = conn_sim(ep)->now_ns;
    conn_sim(ep)->stats.rewinds++;
}

static void conn_learn_arrivals(r2_tp_ep_t *ep)
{
    if (0 != ep->unknown_bytes && r2_sim_ports_pass(ep->peer_port, ep->port)) {
        ep->socket_bytes -= ep->unknown_bytes;
        ep->unknown_bytes = 0;
        if (NULL != ep->pending) {
            r2_sim_ep_waits(ep);
        }
    }
}

static void conn_retry(void *arg, uint64_t value)
{
    r2_tp_ep_t *ep = arg;

    (void) value;
    ep->retrying = false;
    if (ep->reset) {
        return;
    }
    conn_learn_arrivals(ep);
    if (ep->stalled && r2_sim_ports_pass(ep->port, ep->peer_port)) {
        ep->stalled = false;
        conn_activate(ep);
    }
}

static void conn_retry_after(r2_tp_ep_t *ep, uint64_t pause_ns)
{
    r2_sim_t *sim = conn_sim(ep);

    if (!ep->retrying) {
        ep->retrying = true;
        r2_sim_at(sim, sim->now_ns + pause_ns, conn_retry, ep, 0);
    }
}

/* Pause of a retransmission timer that doubled while the path was broken. */
static uint64_t conn_backoff_ns(const r2_tp_ep_t *ep)
{
    r2_sim_t *sim = conn_sim(ep);
    uint64_t broken_ns = ep->stalled ? sim->now_ns - ep->stalled_since_ns : 0;
    uint64_t limit_ns = r2_min(broken_ns, sim->config.retry_max_ns);

    return ep->port->latency_ns + r2_prng_below(&sim->prng, limit_ns + 1);
}

static uint64_t conn_loss_pause_ns(const r2_tp_ep_t *ep)
{
    r2_sim_t *sim = conn_sim(ep);

    return r2_prng_chance(&sim->prng, 900000)
               ? 4 * ep->port->latency_ns + 200 * R2_NS_PER_US
               : r2_prng_between(&sim->prng, R2_NS_PER_MS, sim->config.retry_max_ns);
}

static void conn_reset_event(void *arg, uint64_t value)
{
    r2_tp_ep_t *ep = arg;

    (void) value;
    if (ep->reset) {
        return;
    }
    if (r2_sim_ports_pass(ep->peer_port, ep->port)) {
        r2_sim_conn_reset(ep);
    } else {
        ep->reset_waits = true;
    }
}

void r2_sim_conn_peer_gone(r2_tp_ep_t *ep)
{
    r2_sim_t *sim = conn_sim(ep);

    r2_sim_at(sim, sim->now_ns + ep->port->latency_ns, conn_reset_event, ep, 0);
}

void r2_sim_conns_resume(r2_sim_t *sim)
{
    r2_tp_ep_t *ep;

    for (ep = sim->eps; NULL != ep; ep = ep->all_next) {
        if (ep->reset) {
            continue;
        }
        if (ep->reset_waits && r2_sim_ports_pass(ep->peer_port, ep->port)) {
            ep->reset_waits = false;
            r2_sim_conn_peer_gone(ep);
        }
        if ((ep->stalled && r2_sim_ports_pass(ep->port, ep->peer_port)) ||
            (0 != ep->unknown_bytes && r2_sim_ports_pass(ep->peer_port, ep->port))) {
            conn_retry_after(ep, conn_backoff_ns(ep));
        }
    }
}

/* ---- arrival ---- */

static void conn_deliver(r2_tp_ep_t *ep)
{
    r2_sim_packet_t *packet = ep->socket.head;
    size_t bytes = r2_sim_packet_bytes(packet);

    ep->socket.head = packet->next;
    if (NULL == ep->socket.head) {
        ep->socket.tail = NULL;
    }
    packet->next = NULL;
    ep->under_way_bytes -= bytes;
    ep->unknown_bytes += bytes;
    if (ep->peer->destroyed) {
        conn_sim(ep)->stats.puts_refused += 0 != packet->put.key;
        free(packet);
        r2_sim_conn_peer_gone(ep);
    } else {
        r2_sim_put_arrived(packet);
        ep->unread_bytes += bytes;
        if (NULL == ep->peer->received.head) {
            ep->peer->received.head = packet;
        } else {
            ep->peer->received.tail->next = packet;
        }
        ep->peer->received.tail = packet;
        r2_sim_wake(conn_sim(ep), ep->peer->device->node);
    }
    conn_learn_arrivals(ep);
    conn_activate(ep);
}

/* value: epoch of the connection, doubled, plus 1 if the packet was lost */
static void conn_arrive(void *arg, uint64_t value)
{
    r2_tp_ep_t *ep = arg;

    if (ep->reset || value >> 1 != ep->epoch) {
        return;
    }
    if (!r2_sim_ports_pass(ep->port, ep->peer_port)) {
        conn_rewind(ep);
    } else if (value & 1) {
        conn_rewind(ep);
        conn_retry_after(ep, conn_loss_pause_ns(ep));
    } else {
        conn_deliver(ep);
    }
}

/*
 * Sends the next part of the first unsent packet. Parts of several connections alternate on a rail,
 * as the segments of TCP do; the packet arrives with its last part.
 */
static void conn_transmit(r2_tp_ep_t *ep)
{
    r2_sim_t *sim = conn_sim(ep);
    r2_sim_port_t *to = ep->peer_port;
    size_t rest = r2_sim_packet_bytes(ep->unsent) - ep->part_bytes;
    size_t bytes = r2_min(rest, sim->config.quantum_bytes);
    uint64_t out_ns = sim->now_ns + conn_wire_ns(ep->port, bytes);
    uint64_t in_ns =
        r2_max(sim->now_ns + ep->port->latency_ns, to->in_busy_ns) + conn_wire_ns(to, bytes);
    bool lost = false;

    ep->under_way_bytes += bytes;
    ep->part_bytes += bytes;
    ep->port->sending = true;
    r2_sim_at(sim, out_ns, conn_port_free, ep->port, 0);
    to->in_busy_ns = in_ns;
    in_ns = r2_max(in_ns, out_ns + ep->port->latency_ns);
    ep->arrival_ns = r2_max(ep->arrival_ns, in_ns);
    if (bytes == rest) {
        ep->unsent = ep->unsent->next;
        ep->part_bytes = 0;
        lost = r2_prng_chance(&sim->prng, ep->port->loss_ppm) ||
               r2_prng_chance(&sim->prng, to->loss_ppm);
        r2_sim_at(sim, ep->arrival_ns, conn_arrive, ep, (uint64_t) ep->epoch << 1 | (lost ? 1 : 0));
    }
}

static void conn_kick(r2_sim_port_t *port)
{
    while (!port->sending && NULL != port->ready) {
        r2_tp_ep_t *ep = port->ready;

        DL_DELETE2(port->ready, ep, ready_prev, ready_next);
        ep->in_ring = false;
        if (!conn_may_send(ep)) {
            continue;
        }
        if (!r2_sim_ports_pass(port, ep->peer_port)) {
            conn_rewind(ep);
            continue;
        }
        conn_transmit(ep);
        conn_enter_ring(ep);
    }
}

/* ---- the sender's and the receiver's end ---- */

bool r2_sim_conn_room(const r2_tp_ep_t *ep, size_t bytes)
{
    return NULL == ep->pending &&
           (0 == ep->socket_bytes || ep->socket_bytes + bytes <= conn_sim(ep)->config.socket_bytes);
}

bool r2_sim_conn_push(r2_tp_ep_t *ep, const r2_tp_send_t *op, const r2_sim_put_t *put)
{
    r2_sim_t *sim = conn_sim(ep);
    size_t shift = r2_prng_below(&sim->prng, 8);
    r2_sim_packet_t *packet;

    r2_sim_takes_memory = true;
    packet = malloc(sizeof(*packet) + shift + op->header_bytes + op->data_bytes);
    r2_sim_takes_memory = false;
    if (NULL == packet) {
        r2_sim_fail(sim, "out of memory for packets");
        return false;
    }
    packet->next = NULL;
    packet->ep = ep;
    packet->put = *put;
    packet->landing = NULL;
    packet->asked = false;
    packet->header = packet->bytes + shift;
    packet->data = packet->header + op->header_bytes;
    packet->header_bytes = op->header_bytes;
    packet->data_bytes = op->data_bytes;
    memcpy(packet->header, op->header, op->header_bytes);
    if (0 != op->data_bytes) {
        memcpy(packet->data, op->data, op->data_bytes);
    }
    if (NULL == ep->socket.head) {
        ep->socket.head = packet;
    } else {
        ep->socket.tail->next = packet;
    }
    ep->socket.tail = packet;
    if (NULL == ep->unsent) {
        ep->unsent = packet;
    }
    ep->socket_bytes += r2_sim_packet_bytes(packet);
    conn_activate(ep);
    return true;
}

void r2_sim_conn_read(r2_tp_ep_t *ep, size_t bytes)
{
    ep->unread_bytes -= bytes;
    conn_activate(ep);
}

static void conn_drop_socket(r2_tp_ep_t *ep)
{
    r2_sim_packet_t *packet, *next;

    LL_FOREACH_SAFE(ep->socket.head, packet, next) {
        free(packet);
    }
    ep->socket.head = ep->socket.tail = ep->unsent = NULL;
    ep->part_bytes = 0;
    ep->under_way_bytes = 0;
    ++ep->epoch;
    ep->reset = true;
}

void r2_sim_conn_close(r2_tp_ep_t *ep)
{
    r2_sim_t *sim = conn_sim(ep);

    if (!r2_prng_chance(&sim->prng, sim->config.keep_ppm)) {
        conn_drop_socket(ep);
    }
}

void r2_sim_conn_reset(r2_tp_ep_t *ep)
{
    r2_sim_t *sim = conn_sim(ep);

    if (ep->peer->destroyed || !r2_prng_chance(&sim->prng, sim->config.keep_ppm)) {
        conn_drop_socket(ep);
    }
    if (!ep->closed && !ep->failed) {
        ++sim->stats.resets;
        ep->failed = ep->report = true;
        r2_sim_ep_waits(ep);
    }
}

void r2_sim_dump(const r2_sim_t *sim, void (*write)(void *arg, const char *line), void *arg)
{
    const r2_tp_ep_t *ep;
    char line[256];

    for (ep = sim->eps; NULL != ep; ep = ep->all_next) {
        if (NULL == ep->socket.head && NULL == ep->pending && 0 == ep->unread_bytes) {
            continue;
        }
        snprintf(line, sizeof(line),
                 "conn node %u -> %u rail %u worker %" PRIu64 " -> %" PRIu64
                 ": socket %zu under way %zu unread %zu unknown %zu%s%s%s%s%s%s%s",
                 ep->worker->device->node, ep->peer->device->node, ep->port->rail, ep->worker->id,
                 ep->peer->id, ep->socket_bytes, ep->under_way_bytes, ep->unread_bytes,
                 ep->unknown_bytes, NULL != ep->pending ? " pending" : "",
                 ep->stalled ? " stalled" : "", ep->retrying ? " retrying" : "",
                 ep->reset ? " reset" : "", ep->closed ? " closed" : "",
                 ep->failed ? " failed" : "", ep->peer->destroyed ? " peer destroyed" : "");
        write(arg, line);
    }
}
