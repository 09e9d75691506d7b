/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Simulator: the transport table, devices, workers and endpoints. Checks the call rules of
 * transport.h.
 */
#include "r2_config.h"

#include "doubles/sim_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define SIM_ADDRESS_MAGIC 0x73696d72u

/** What ep_address() gives: the worker, which is what packets are sent to. */
typedef struct sim_address {
    uint32_t magic;
    uint32_t node, rail;
    uint32_t is_rdma;
    uint64_t worker;
} sim_address_t;

/* ---- devices ---- */

static r2_status_t sim_rail_of(const r2_sim_node_t *node, const char *name, uint32_t *rail_p)
{
    char end;

    if (NULL == name) {
        *rail_p = R2_SIM_LOCAL;
        return R2_OK;
    }
    if (1 != sscanf(name, "rail%u%c", rail_p, &end) || *rail_p >= node->sim->config.rail_count) {
        return R2_ERR_UNSUPPORTED;
    }
    return r2_sim_carrier(node->sim, node->idx, *rail_p) ? R2_OK : R2_ERR_NO_DEVICE;
}

static r2_status_t sim_device_open(void *tp, const r2_tp_device_config_t *config,
                                   r2_tp_device_t **device_p)
{
    r2_sim_node_t *node = tp;
    r2_tp_device_t *device;
    uint32_t rail;
    r2_status_t status = sim_rail_of(node, config->name, &rail);

    if (R2_OK != status) {
        return status;
    }
    device = calloc(1, sizeof(*device));
    if (NULL == device) {
        return R2_ERR_NO_MEMORY;
    }
    device->sim = node->sim;
    device->node = node->idx;
    device->rail = rail;
    device->is_rdma = NULL != config->tls;
    device->puts = device->is_rdma && 0 == strcmp(config->tls, "rc_verbs");
    device->segment_bytes = config->segment_bytes;
    device->all_next = node->sim->devices;
    node->sim->devices = device;
    *device_p = device;
    return R2_OK;
}

static void sim_device_close(r2_tp_device_t *device)
{
    if (device->closed) {
        r2_sim_fail(device->sim, "node %u: device closed twice", device->node);
    }
    if (0 != device->worker_count) {
        r2_sim_fail(device->sim, "node %u: device closed with %u workers", device->node,
                    device->worker_count);
    }
    device->closed = true;
}

/* ---- descriptors ---- */

void r2_sim_set_descriptors(r2_sim_t *sim, uint32_t node, uint32_t most)
{
    sim->nodes[node].descriptors_max = most;
}

bool r2_sim_take_descriptors(r2_sim_t *sim, uint32_t node, uint32_t count)
{
    r2_sim_node_t *n = &sim->nodes[node];

    if (0 != n->descriptors_max && n->descriptors + count > n->descriptors_max) {
        return false;
    }
    n->descriptors += count;
    sim->stats.descriptors_max = r2_max(sim->stats.descriptors_max, n->descriptors);
    return true;
}

void r2_sim_put_descriptors(r2_sim_t *sim, uint32_t node, uint32_t count)
{
    sim->nodes[node].descriptors -= count;
}

static bool sim_has_room(void *tp, uint32_t devices, uint32_t workers, uint32_t eps)
{
    const r2_sim_node_t *node = tp;
    uint32_t wanted = R2_SIM_WORKER_FDS * workers + R2_SIM_EP_FDS * eps + R2_SIM_SLACK_FDS;

    (void) devices;
    return 0 == node->descriptors_max || node->descriptors + wanted <= node->descriptors_max;
}

/* ---- workers ---- */

static r2_status_t sim_worker_create(r2_tp_device_t *device, const r2_tp_callbacks_t *callbacks,
                                     void *arg, r2_tp_worker_t **worker_p)
{
    r2_sim_t *sim = device->sim;
    r2_tp_worker_t *worker;

    if (device->closed) {
        r2_sim_fail(sim, "node %u: worker created on a closed device", device->node);
        return R2_ERR_NO_DEVICE;
    }
    if (sim->nodes[device->node].dead ||
        (R2_SIM_LOCAL != device->rail && !r2_sim_carrier(sim, device->node, device->rail))) {
        return R2_ERR_NO_DEVICE;
    }
    if (!r2_sim_take_descriptors(sim, device->node, R2_SIM_WORKER_FDS)) {
        r2_sim_fail(sim, "node %u: worker created without descriptors",
                    device->node); /* UCX may abort */
        return R2_ERR_NO_DESCRIPTORS;
    }
    worker = calloc(1, sizeof(*worker));
    if (NULL == worker) {
        r2_sim_put_descriptors(sim, device->node, R2_SIM_WORKER_FDS);
        return R2_ERR_NO_MEMORY;
    }
    worker->descriptors = R2_SIM_WORKER_FDS;
    worker->device = device;
    worker->callbacks = *callbacks;
    worker->arg = arg;
    worker->id = ++sim->next_worker;
    worker->all_next = sim->workers;
    sim->workers = worker;
    ++device->worker_count;
    *worker_p = worker;
    return R2_OK;
}

bool r2_sim_worker_usable(const r2_tp_worker_t *worker, const char *call)
{
    if (worker->destroyed && !r2_sim_node_of(worker)->dead) {
        r2_sim_fail(r2_sim_of_worker(worker), "node %u: %s on a destroyed worker",
                    worker->device->node, call);
    }
    return !worker->destroyed;
}

static int sim_worker_fd(r2_tp_worker_t *worker)
{
    (void) worker;
    return -1;
}

static r2_status_t sim_worker_arm(r2_tp_worker_t *worker)
{
    return NULL != worker->received.head || 0 != worker->waiting ? R2_ERR_AGAIN : R2_OK;
}

/* ---- endpoints ---- */

static r2_tp_worker_t *sim_worker_find(const r2_sim_t *sim, const void *bytes, size_t size)
{
    sim_address_t address;
    r2_tp_worker_t *worker;

    if (size != sizeof(address)) {
        return NULL;
    }
    memcpy(&address, bytes, sizeof(address));
    for (worker = sim->workers; NULL != worker; worker = worker->all_next) {
        if (SIM_ADDRESS_MAGIC == address.magic && worker->id == address.worker) {
            return worker;
        }
    }
    return NULL;
}

static bool sim_has_peer(const r2_tp_ep_t *list, uint32_t node)
{
    const r2_tp_ep_t *ep;

    DL_FOREACH(list, ep) {
        if (ep->peer->device->node == node) {
            return true;
        }
    }
    return false;
}

static bool sim_worker_is_loose(const r2_tp_worker_t *worker)
{
    return worker->device->is_rdma;
}

static r2_status_t sim_ep_open(r2_tp_worker_t *worker, void *ep_arg, r2_tp_ep_t **ep_p)
{
    r2_tp_ep_t *ep;

    if (!r2_sim_worker_usable(worker, "ep_open")) {
        return R2_ERR_NO_DEVICE;
    }
    ep = calloc(1, sizeof(*ep));
    if (NULL == ep) {
        return R2_ERR_NO_MEMORY;
    }
    ep->worker = worker;
    ep->ep_arg = ep_arg;
    DL_APPEND(worker->offered, ep);
    *ep_p = ep;
    return R2_OK;
}

static r2_status_t sim_ep_address(r2_tp_ep_t *ep, void *address_p, size_t *bytes_p)
{
    const r2_tp_worker_t *worker = ep->worker;
    sim_address_t address = {SIM_ADDRESS_MAGIC, worker->device->node, worker->device->rail,
                             worker->device->is_rdma, worker->id};

    if (!r2_sim_worker_usable(worker, "ep_address")) {
        return R2_ERR_NO_DEVICE;
    }
    memcpy(address_p, &address, sizeof(address));
    *bytes_p = sizeof(address);
    return R2_OK;
}

static r2_status_t sim_ep_connect(r2_tp_ep_t *ep, const void *address, size_t address_bytes)
{
    r2_tp_worker_t *worker = ep->worker;
    r2_sim_t *sim = r2_sim_of_worker(worker);
    r2_tp_worker_t *peer = sim_worker_find(sim, address, address_bytes);
    uint32_t rail = worker->device->rail;

    if (!r2_sim_worker_usable(worker, "ep_connect")) {
        return R2_ERR_NO_DEVICE;
    }
    if (NULL == peer || peer->device->rail != rail ||
        (R2_SIM_LOCAL == rail &&
         r2_sim_node_of(worker)->host != sim->nodes[peer->device->node].host)) {
        return R2_ERR_NO_PATH;
    }
    if (peer->device->is_rdma != worker->device->is_rdma) {
        r2_sim_fail(sim, "node %u rail %u: connects to node %u by another transport",
                    worker->device->node, rail, peer->device->node);
    }
    if (sim_has_peer(worker->open, peer->device->node) ||
        sim_has_peer(worker->closed, peer->device->node)) {
        r2_sim_fail(sim, "node %u rail %u: second endpoint to node %u on one worker generation",
                    worker->device->node, rail, peer->device->node);
    }
    if (!r2_sim_take_descriptors(sim, worker->device->node, R2_SIM_EP_FDS)) {
        return R2_ERR_NO_DESCRIPTORS;
    }
    worker->descriptors += R2_SIM_EP_FDS;
    ep->peer = peer;
    ep->port = r2_sim_port(sim, r2_sim_node_of(worker)->host, rail);
    ep->peer_port = r2_sim_port(sim, sim->nodes[peer->device->node].host, rail);
    ep->all_next = sim->eps;
    sim->eps = ep;
    DL_DELETE(worker->offered, ep);
    ep->towards_next = peer->towards;
    peer->towards = ep;
    DL_APPEND(worker->open, ep);
    if (peer->destroyed) {
        r2_sim_conn_peer_gone(ep);
    }
    return R2_OK;
}

static void sim_cancel(r2_tp_ep_t *ep)
{
    while (NULL != ep->pending) {
        r2_sim_ep_complete(ep, R2_ERR_CANCELED);
    }
}

static void sim_close(r2_tp_ep_t *ep)
{
    r2_tp_worker_t *worker = ep->worker;

    ep->closed = true;
    r2_sim_ep_settle(ep);
    DL_DELETE(worker->open, ep);
    DL_APPEND(worker->closed, ep);
    if (!ep->reset) {
        r2_sim_conn_close(ep);
    }
}

static void sim_ep_close(r2_tp_ep_t *ep)
{
    r2_tp_worker_t *worker = ep->worker;

    if (NULL == ep->peer) {
        DL_DELETE(worker->offered, ep);
        free(ep);
        return;
    }
    if (r2_sim_node_of(worker)->dead && ep->closed) {
        sim_cancel(ep);
        return;
    }
    if (ep->closed) {
        r2_sim_fail(r2_sim_of_worker(worker), "node %u: endpoint to node %u closed twice",
                    worker->device->node, ep->peer->device->node);
        return;
    }
    if (0 != r2_sim_node_of(worker)->callbacks) {
        r2_sim_fail(r2_sim_of_worker(worker), "node %u: endpoint closed inside a callback",
                    worker->device->node);
    }
    r2_sim_ep_land_off(ep);
    sim_cancel(ep);
    sim_close(ep);
}

void r2_sim_worker_end(r2_tp_worker_t *worker)
{
    r2_sim_packet_t *packet, *next;
    r2_tp_ep_t *ep;

    while (NULL != worker->open) {
        sim_close(worker->open);
    }
    worker->destroyed = true;
    r2_sim_put_descriptors(r2_sim_of_worker(worker), worker->device->node, worker->descriptors);
    LL_FOREACH_SAFE(worker->received.head, packet, next) {
        free(packet);
    }
    worker->received.head = worker->received.tail = NULL;
    for (ep = worker->towards; NULL != ep; ep = ep->towards_next) {
        if (!ep->reset) {
            r2_sim_conn_peer_gone(ep);
        }
    }
}

static void sim_worker_destroy(r2_tp_worker_t *worker)
{
    r2_sim_node_t *node = r2_sim_node_of(worker);
    r2_tp_ep_t *ep, *next;

    if (worker->destroyed && !node->dead) {
        r2_sim_fail(node->sim, "node %u: worker destroyed twice", node->idx);
        return;
    }
    if (0 != node->callbacks) {
        r2_sim_fail(node->sim, "node %u: worker destroyed inside a callback", node->idx);
    }
    --worker->device->worker_count;
    DL_FOREACH_SAFE(worker->offered, ep, next) {
        DL_DELETE(worker->offered, ep);
        free(ep);
    }
    DL_FOREACH(worker->open, ep) {
        sim_cancel(ep);
    }
    DL_FOREACH(worker->closed, ep) {
        sim_cancel(ep);
    }
    if (!worker->destroyed) {
        r2_sim_worker_end(worker);
    }
}

static bool sim_ep_reads_gpus(const r2_tp_ep_t *ep)
{
    return ep->worker->device->is_rdma;
}

const r2_tp_ops_t r2_sim_tp_ops = {
    .name = "sim",
    .has_room = sim_has_room,
    .device_open = sim_device_open,
    .device_close = sim_device_close,
    .worker_create = sim_worker_create,
    .worker_destroy = sim_worker_destroy,
    .worker_progress = r2_sim_worker_progress,
    .worker_fd = sim_worker_fd,
    .worker_arm = sim_worker_arm,
    .worker_is_loose = sim_worker_is_loose,
    .ep_open = sim_ep_open,
    .ep_address = sim_ep_address,
    .ep_connect = sim_ep_connect,
    .ep_close = sim_ep_close,
    .ep_land_off = r2_sim_ep_land_off,
    .send = r2_sim_send,
    .ep_reads_gpus = sim_ep_reads_gpus,
    .grant = r2_sim_grant,
    .ungrant = r2_sim_ungrant,
    .put = r2_sim_put,
};
