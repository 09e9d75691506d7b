/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Simulator: the sending and receiving calls of the transport table.
 */
#include "r2_config.h"

#include "doubles/sim_state.h"

#include <stdlib.h>
#include <string.h>

static uint64_t sim_hash(uint64_t hash, const void *memory, size_t bytes)
{
    const uint8_t *at = memory;
    uint64_t word;

    for (; bytes >= sizeof(word); bytes -= sizeof(word), at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        hash = (hash ^ word) * 0x100000001b3ull;
        hash ^= hash >> 29;
    }
    for (; bytes > 0; --bytes, ++at) {
        hash = (hash ^ *at) * 0x100000001b3ull;
    }
    return hash;
}

static uint64_t sim_op_hash(const r2_tp_send_t *op)
{
    return sim_hash(sim_hash(op->data_bytes, op->header, op->header_bytes), op->data,
                    op->data_bytes);
}

void r2_sim_ep_settle(r2_tp_ep_t *ep)
{
    if (ep->counted) {
        ep->counted = false;
        --ep->worker->waiting;
    }
}

static void sim_check_unchanged(const r2_tp_ep_t *ep)
{
    const r2_tp_send_t *op = ep->pending->op;

    if (!r2_sim_of_worker(ep->worker)->config.allow_changes && !r2_sim_node_of(ep->worker)->dead &&
        ep->pending->hash != sim_op_hash(op)) {
        r2_sim_fail(r2_sim_of_worker(ep->worker),
                    "node %u: memory changed while in flight to node %u (%u + %u bytes)",
                    ep->worker->device->node, ep->peer->device->node, op->header_bytes,
                    op->data_bytes);
    }
}

void r2_sim_ep_complete(r2_tp_ep_t *ep, r2_status_t status)
{
    r2_sim_node_t *node = r2_sim_node_of(ep->worker);
    r2_sim_pending_t *pending = ep->pending;
    r2_tp_send_t *op = pending->op;

    sim_check_unchanged(ep);
    DL_DELETE(ep->pending, pending);
    r2_pool_put(&r2_sim_of_worker(ep->worker)->pendings, pending);
    ++node->callbacks;
    op->sent(op, status);
    --node->callbacks;
}

/* ---- sending ---- */

static bool sim_heard(const r2_tp_ep_t *list, const r2_tp_worker_t *worker)
{
    const r2_tp_ep_t *ep;

    DL_FOREACH(list, ep) {
        if (ep->peer == worker && 0 != ep->delivered) {
            return true;
        }
    }
    return false;
}

bool r2_sim_leads_to(const r2_tp_ep_t *list, const r2_tp_worker_t *worker)
{
    const r2_tp_ep_t *ep;

    DL_FOREACH(list, ep) {
        if (ep->peer == worker) {
            return true;
        }
    }
    return false;
}

/* Over RDMA what is sent before the peer has connected is lost for a while. */
static bool sim_is_lost(const r2_tp_ep_t *ep)
{
    const r2_tp_worker_t *peer = ep->peer;

    return ep->worker->device->is_rdma && !peer->destroyed &&
           !r2_sim_leads_to(peer->open, ep->worker) && !r2_sim_leads_to(peer->closed, ep->worker);
}

/* Checks that hold for every send. @return false: refused, and a failure of the simulator. */
static bool sim_check_send(r2_tp_ep_t *ep, const r2_tp_send_t *op)
{
    r2_sim_t *sim = r2_sim_of_worker(ep->worker);
    uint32_t node = ep->worker->device->node, peer = ep->peer->device->node;
    const r2_sim_pending_t *pending;

    if (ep->closed) {
        r2_sim_fail(sim, "node %u: send on a closed endpoint to node %u", node, peer);
        return false;
    }
    if (op->header_bytes > R2_TP_HEADER_MAX ||
        op->header_bytes + op->data_bytes > ep->worker->device->segment_bytes) {
        r2_sim_fail(sim, "node %u: packet of %u + %u bytes is too long for segments of %zu", node,
                    op->header_bytes, op->data_bytes, ep->worker->device->segment_bytes);
        return false;
    }
    if (sim_is_lost(ep)) {
        r2_sim_fail(sim, "node %u: a send to node %u before that has connected", node, peer);
    }
    DL_FOREACH(ep->pending, pending) {
        if (pending->op == op) {
            r2_sim_fail(sim, "node %u: a send to node %u is given twice", node, peer);
            return false;
        }
    }
    if (!ep->heard && NULL != sim->config.is_application &&
        sim->config.is_application(op->header, op->header_bytes)) {
        ep->heard =
            sim_heard(ep->peer->open, ep->worker) || sim_heard(ep->peer->closed, ep->worker);
        if (!ep->heard) {
            r2_sim_fail(sim, "node %u: application data to node %u before its lane is wired up",
                        node, peer);
        }
    }
    return true;
}

r2_status_t r2_sim_give(r2_tp_ep_t *ep, r2_tp_send_t *op, const r2_sim_put_t *put)
{
    r2_sim_pending_t *pending;

    if ((r2_sim_node_of(ep->worker)->dead && ep->closed) || !sim_check_send(ep, op) || ep->failed) {
        return R2_ERR_LANE_DOWN;
    }
    if (r2_sim_conn_room(ep, op->header_bytes + op->data_bytes)) {
        return r2_sim_conn_push(ep, op, put) ? R2_OK : R2_ERR_NO_MEMORY;
    }
    pending = r2_pool_get(&r2_sim_of_worker(ep->worker)->pendings);
    if (NULL == pending) {
        return R2_ERR_NO_MEMORY;
    }
    pending->op = op;
    pending->put = *put;
    pending->hash = sim_op_hash(op);
    DL_APPEND(ep->pending, pending);
    return R2_IN_PROGRESS;
}

r2_status_t r2_sim_send(r2_tp_ep_t *ep, r2_tp_send_t *op)
{
    const r2_sim_put_t put = {.key = 0};

    if (NULL != op->memory && 0 != op->memory->gpu_id && !ep->worker->device->is_rdma) {
        r2_sim_fail(r2_sim_of_worker(ep->worker),
                    "node %u: a NIC that cannot reads memory of a GPU", ep->worker->device->node);
    }
    return r2_sim_give(ep, op, &put);
}

/* ---- progress ---- */

/* Packets of so many bytes land, over what is no RDMA. */
#define SIM_LAND_BYTES 16384u

/*
 * The first half of a long packet may be written to where it belongs, and leaves nothing here; the
 * rest follows in the next progress call. @return true: it was.
 */
static bool sim_lands(r2_tp_worker_t *worker, r2_sim_packet_t *packet)
{
    r2_sim_node_t *node = r2_sim_node_of(worker);

    if (packet->asked || 0 != packet->put.key || packet->data_bytes < SIM_LAND_BYTES ||
        worker->device->is_rdma || NULL == worker->callbacks.land) {
        return false;
    }
    packet->asked = true;
    ++node->callbacks;
    packet->landing = worker->callbacks.land(worker->arg, packet->header, packet->header_bytes,
                                             packet->data_bytes);
    --node->callbacks;
    if (NULL != packet->landing) {
        memcpy(packet->landing, packet->data, packet->data_bytes / 2);
        memset(packet->data, 0xdb, packet->data_bytes / 2);
    }
    return NULL != packet->landing;
}

void r2_sim_ep_land_off(r2_tp_ep_t *ep)
{
    r2_sim_packet_t *packet = ep->worker->received.head;

    if (NULL != packet && NULL != packet->landing && packet->ep->worker == ep->peer) {
        memcpy(packet->data, packet->landing, packet->data_bytes / 2);
        packet->landing = NULL;
    }
}

/* @return where the data of a packet are that is whole. */
static const void *sim_landed(const r2_sim_packet_t *packet)
{
    const size_t half = packet->data_bytes / 2;

    if (NULL == packet->landing) {
        return packet->data;
    }
    memcpy(packet->landing + half, packet->data + half, packet->data_bytes - half);
    return packet->landing;
}

static unsigned sim_receive(r2_tp_worker_t *worker)
{
    r2_sim_t *sim = r2_sim_of_worker(worker);
    r2_sim_node_t *node = r2_sim_node_of(worker);
    unsigned events;

    for (events = 0; events < sim->config.batch && NULL != worker->received.head; ++events) {
        r2_sim_packet_t *packet = worker->received.head;
        size_t bytes = r2_sim_packet_bytes(packet);
        size_t data_bytes = 0 == packet->put.key ? packet->data_bytes : 0;

        if (sim_lands(worker, packet)) {
            return events + 1;
        }
        worker->received.head = packet->next;
        if (bytes > worker->device->segment_bytes) {
            r2_sim_fail(sim, "node %u: packet of %zu bytes is too long for its segments of %zu",
                        node->idx, bytes, worker->device->segment_bytes);
        }
        ++packet->ep->delivered;
        ++sim->stats.packets;
        sim->stats.bytes += bytes;
        sim->stats.ghosts += packet->ep->closed;
        r2_sim_conn_read(packet->ep, bytes);
        ++node->callbacks;
        worker->callbacks.received(worker->arg, packet->header, packet->header_bytes,
                                   0 == data_bytes ? NULL : sim_landed(packet), data_bytes);
        --node->callbacks;
        memset(packet->bytes, 0xdb, bytes);
        free(packet);
    }
    return events;
}

static unsigned sim_push_pending(r2_tp_ep_t *ep)
{
    r2_sim_t *sim = r2_sim_of_worker(ep->worker);
    unsigned events = 0;

    while (NULL != ep->pending && !ep->closed) {
        const r2_tp_send_t *op = ep->pending->op;
        size_t bytes = op->header_bytes + op->data_bytes;

        if (ep->failed) {
            r2_sim_ep_complete(ep, R2_ERR_LANE_DOWN);
            ++events;
            continue;
        }
        if (0 != ep->socket_bytes && ep->socket_bytes + bytes > sim->config.socket_bytes) {
            break;
        }
        if (!r2_sim_conn_push(ep, op, &ep->pending->put)) {
            break;
        }
        r2_sim_ep_complete(ep, R2_OK);
        ++events;
    }
    return events;
}

/* A failed endpoint completes its pending sends now or leaves them to ep_close(), both are
 * legal. */
static unsigned sim_report(r2_tp_ep_t *ep)
{
    r2_tp_worker_t *worker = ep->worker;
    r2_sim_node_t *node = r2_sim_node_of(worker);

    ep->report = false;
    ++node->callbacks;
    worker->callbacks.failed(worker->arg, ep->ep_arg, R2_ERR_LANE_DOWN);
    --node->callbacks;
    if (r2_prng_chance(&r2_sim_of_worker(worker)->prng, 500000)) {
        return 1 + sim_push_pending(ep);
    }
    return 1;
}

static unsigned sim_serve_endpoints(r2_tp_worker_t *worker)
{
    r2_tp_ep_t *ep, *next;
    unsigned events = 0;

    DL_FOREACH_SAFE(worker->open, ep, next) {
        if (!ep->counted) {
            continue;
        }
        r2_sim_ep_settle(ep);
        if (ep->report) {
            events += sim_report(ep);
        } else if (!ep->failed) {
            events += sim_push_pending(ep);
        }
    }
    return events;
}

unsigned r2_sim_worker_progress(r2_tp_worker_t *worker)
{
    r2_sim_node_t *node = r2_sim_node_of(worker);
    unsigned events = 0;

    if (!r2_sim_worker_usable(worker, "worker_progress")) {
        return 0;
    }
    if (0 != node->callbacks) {
        r2_sim_fail(node->sim, "node %u: worker_progress inside a callback", node->idx);
        return 0;
    }
    if (0 != worker->waiting) {
        events += sim_serve_endpoints(worker);
    }
    return events + sim_receive(worker);
}
