/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Probe driver of the simulator: probes and beacons over the simulated rails, beside the transport.
 */
#include "r2_config.h"

#include "doubles/probe_sim.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/util.h"
#include "rail/hello.h"
#include "rail/probe_limit.h"

#define PROBE_MAGIC 0x70726f62u

/** A published address. */
typedef struct probe_address {
    uint32_t magic;
    uint32_t node, rail;
} probe_address_t;

_Static_assert(sizeof(probe_address_t) <= R2_PROBE_ADDRESS_MAX, "an address fits its buffer");

/** A probe until its result was told. */
typedef struct probe_request {
    struct probe_request *prev, *next;
    struct probe_node *from, *to; /* borrowed */
    uint32_t rail;
    bool there; /* the way there passed */
    bool done;
    r2_probe_answer_t answer;
    uint64_t serial, probe_id, start_ns, rtt_ns, deadline_ns;
} probe_request_t;

/** A beacon: in one of the lists of the node that it goes to. */
typedef struct probe_beacon {
    struct probe_beacon *prev, *next;
    struct probe_node *from, *to; /* borrowed */
    uint32_t rail, rank;
    uint64_t beacon_id;
} probe_beacon_t;

typedef struct probe_node {
    struct r2_probe_sim *hub; /* borrowed */
    uint32_t idx;
    bool keyed, polling;
    bool listening[R2_RAILS_MAX];
    bool shielded[R2_RAILS_MAX]; /* a firewall drops what is sent to its ports */
    uint8_t key[R2_JOB_KEY_BYTES];
    r2_probe_upcalls_t upcalls;
    r2_probe_limit_t limit[R2_RAILS_MAX];
    probe_beacon_t *coming, *arrived; /* owned lists */
} probe_node_t;

struct r2_probe_sim {
    r2_sim_t *sim; /* borrowed */
    uint32_t node_count;
    uint32_t loss_ppm;
    uint64_t next_serial;
    probe_request_t *requests; /* owned list */
    probe_node_t nodes[];
};

static bool probe_passes(r2_probe_sim_t *hub, const probe_node_t *from, const probe_node_t *to,
                         uint32_t rail)
{
    return r2_sim_passes(hub->sim, from->idx, to->idx, rail) &&
           !(0 != hub->loss_ppm && r2_sim_random_u64(hub->sim) % 1000000 < hub->loss_ppm);
}

static void probe_finish(probe_request_t *request, r2_probe_answer_t answer)
{
    r2_sim_t *sim = request->from->hub->sim;

    request->done = true;
    request->answer = answer;
    request->rtt_ns = r2_sim_now_ns(sim) - request->start_ns;
    r2_sim_wake(sim, request->from->idx);
}

static probe_request_t *probe_find(r2_probe_sim_t *hub, uint64_t serial)
{
    probe_request_t *request;

    DL_FOREACH(hub->requests, request) {
        if (request->serial == serial) {
            return request;
        }
    }
    return NULL;
}

/* A packet of a probe is at the other host, then its answer at ours. */
static void probe_step(void *arg, uint64_t serial)
{
    r2_probe_sim_t *hub = arg;
    probe_request_t *request = probe_find(hub, serial);

    if (NULL == request || request->done) {
        return;
    }
    if (request->there) {
        if (probe_passes(hub, request->to, request->from, request->rail)) {
            probe_finish(request, R2_PROBE_ALIVE);
        }
    } else if (!request->to->shielded[request->rail] &&
               probe_passes(hub, request->from, request->to, request->rail)) {
        request->there = true;
        (void) r2_sim_at(hub->sim,
                         r2_sim_now_ns(hub->sim) + r2_sim_latency_ns(hub->sim, request->rail),
                         probe_step, hub, serial);
    }
}

static void probe_beacon_step(void *arg, uint64_t unused)
{
    probe_beacon_t *beacon = arg;
    probe_node_t *to = beacon->to;
    r2_sim_t *sim = to->hub->sim;

    (void) unused;
    DL_DELETE(to->coming, beacon);
    if (r2_sim_dead(sim, to->idx) || !to->keyed || !to->listening[beacon->rail] ||
        to->shielded[beacon->rail] || 0 != memcmp(to->key, beacon->from->key, R2_JOB_KEY_BYTES) ||
        !probe_passes(to->hub, beacon->from, to, beacon->rail)) {
        free(beacon);
        return;
    }
    DL_APPEND(to->arrived, beacon);
    r2_sim_wake(sim, to->idx);
}

/* ---- the table ---- */

static void probe_bind(void *probe, const r2_probe_upcalls_t *upcalls)
{
    probe_node_t *node = probe;

    node->upcalls = *upcalls;
}

static void probe_share(void *probe, uint32_t processes)
{
    probe_node_t *node = probe;

    for (size_t i = 0; i < r2_array_count(node->limit); ++i) {
        node->limit[i].rate = r2_probe_limit_rate(processes);
    }
}

static void probe_key(void *probe, const uint8_t *key)
{
    probe_node_t *node = probe;

    memcpy(node->key, key, R2_JOB_KEY_BYTES);
    node->keyed = true;
}

static r2_status_t probe_listen(void *probe, uint32_t rail_idx, const r2_nic_t *nic,
                                void *address_p, size_t *bytes_p)
{
    probe_node_t *node = probe;
    const probe_address_t address = {PROBE_MAGIC, node->idx, rail_idx};

    if (rail_idx >= R2_RAILS_MAX || NULL == nic) {
        return R2_ERR_PARAM;
    }
    node->listening[rail_idx] = true;
    memcpy(address_p, &address, sizeof(address));
    *bytes_p = sizeof(address);
    return R2_OK;
}

/** @return the node that an address names, or NULL. */
static probe_node_t *probe_target(probe_node_t *node, uint32_t rail_idx, const void *from,
                                  size_t bytes)
{
    probe_address_t address;

    if (rail_idx >= R2_RAILS_MAX || sizeof(address) != bytes) {
        return NULL;
    }
    memcpy(&address, from, sizeof(address));
    if (PROBE_MAGIC != address.magic || address.node >= node->hub->node_count) {
        return NULL;
    }
    if (address.rail != rail_idx || !node->listening[rail_idx]) {
        r2_sim_fail(node->hub->sim, "node %u: probe over rail %u to rail %u of node %u", node->idx,
                    rail_idx, address.rail, address.node);
        return NULL;
    }
    return &node->hub->nodes[address.node];
}

static r2_status_t probe_probe(void *probe, uint32_t rail_idx, const void *hello_address,
                               size_t hello_address_bytes, const void *address,
                               size_t address_bytes, uint64_t timeout_ns, uint64_t probe_id)
{
    probe_node_t *node = probe;
    r2_probe_sim_t *hub = node->hub;
    probe_node_t *to = probe_target(node, rail_idx, address, address_bytes);
    const uint64_t now_ns = r2_sim_now_ns(hub->sim);
    probe_request_t *request;
    uint64_t start_ns;

    (void) hello_address;
    (void) hello_address_bytes;
    if (NULL == to) {
        return R2_ERR_PARAM;
    }
    if (!r2_probe_limit_take(&node->limit[rail_idx], now_ns, &start_ns)) {
        return R2_ERR_NO_MEMORY;
    }
    request = calloc(1, sizeof(*request));
    if (NULL == request) {
        return R2_ERR_NO_MEMORY;
    }
    request->from = node;
    request->to = to;
    request->rail = rail_idx;
    request->serial = ++hub->next_serial;
    request->probe_id = probe_id;
    request->start_ns = start_ns;
    request->deadline_ns = start_ns + r2_min(timeout_ns, R2_NEVER_NS - start_ns);
    DL_APPEND(hub->requests, request);
    if (r2_sim_carrier(hub->sim, node->idx, rail_idx)) {
        (void) r2_sim_at(hub->sim, start_ns + r2_sim_latency_ns(hub->sim, rail_idx), probe_step,
                         hub, request->serial);
    } else {
        probe_finish(request, R2_PROBE_UNABLE);
        request->rtt_ns = 0;
    }
    return R2_OK;
}

static void probe_send_beacon(void *probe, uint32_t rail_idx, const void *hello_address,
                              size_t hello_address_bytes, const void *address, size_t address_bytes,
                              uint32_t own_rank, uint64_t beacon_id)
{
    probe_node_t *node = probe;
    r2_sim_t *sim = node->hub->sim;
    probe_node_t *to = probe_target(node, rail_idx, address, address_bytes);
    probe_beacon_t *beacon;
    uint64_t start_ns;

    (void) hello_address;
    (void) hello_address_bytes;
    if (NULL == to || !node->keyed ||
        !r2_probe_limit_take(&node->limit[rail_idx], r2_sim_now_ns(sim), &start_ns) ||
        NULL == (beacon = calloc(1, sizeof(*beacon)))) {
        return;
    }
    beacon->from = node;
    beacon->to = to;
    beacon->rail = rail_idx;
    beacon->rank = own_rank;
    beacon->beacon_id = beacon_id;
    DL_APPEND(to->coming, beacon);
    if (!r2_sim_at(sim, start_ns + r2_sim_latency_ns(sim, rail_idx), probe_beacon_step, beacon,
                   0)) {
        DL_DELETE(to->coming, beacon);
        free(beacon);
    }
}

static int probe_fd(void *probe)
{
    (void) probe;
    return -1;
}

/* @return a probe of the node that is over, or NULL. */
static probe_request_t *probe_next_result(probe_node_t *node)
{
    r2_sim_t *sim = node->hub->sim;
    probe_request_t *request;

    DL_FOREACH(node->hub->requests, request) {
        if (request->from != node) {
            continue;
        }
        if (!request->done && r2_sim_now_ns(sim) >= request->deadline_ns) {
            probe_finish(request, r2_sim_carrier(sim, node->idx, request->rail) ? R2_PROBE_SILENT
                                                                                : R2_PROBE_UNABLE);
        }
        if (request->done) {
            return request;
        }
    }
    return NULL;
}

static void probe_poll(void *probe)
{
    probe_node_t *node = probe;
    probe_request_t *request;
    probe_beacon_t *beacon;

    if (node->polling) {
        r2_sim_fail(node->hub->sim, "node %u: probe poll inside an upcall", node->idx);
        return;
    }
    node->polling = true;
    while (NULL != (beacon = node->arrived)) {
        DL_DELETE(node->arrived, beacon);
        node->upcalls.heard(node->upcalls.arg, beacon->rank, beacon->rail, beacon->beacon_id);
        free(beacon);
    }
    while (NULL != (request = probe_next_result(node))) {
        DL_DELETE(node->hub->requests, request);
        node->upcalls.result(node->upcalls.arg, request->probe_id, request->answer,
                             request->rtt_ns);
        free(request);
    }
    node->polling = false;
}

static uint64_t probe_deadline_ns(void *probe)
{
    const probe_node_t *node = probe;
    uint64_t deadline_ns = R2_NEVER_NS;
    const probe_request_t *request;

    DL_FOREACH(node->hub->requests, request) {
        if (request->from == node) {
            deadline_ns = r2_min(deadline_ns, request->deadline_ns);
        }
    }
    return deadline_ns;
}

r2_probe_t r2_probe_sim_node(r2_probe_sim_t *hub, uint32_t node)
{
    static const r2_probe_ops_t ops = {
        .name = "sim",
        .bind = probe_bind,
        .share = probe_share,
        .key = probe_key,
        .listen = probe_listen,
        .probe = probe_probe,
        .beacon = probe_send_beacon,
        .fd = probe_fd,
        .poll = probe_poll,
        .deadline_ns = probe_deadline_ns,
    };

    return (r2_probe_t){&ops, &hub->nodes[node]};
}

/* ---- the hub ---- */

r2_probe_sim_t *r2_probe_sim_create(r2_sim_t *sim, uint32_t node_count)
{
    r2_probe_sim_t *hub = calloc(1, sizeof(*hub) + node_count * sizeof(hub->nodes[0]));
    uint32_t i;

    if (NULL == hub) {
        return NULL;
    }
    hub->sim = sim;
    hub->node_count = node_count;
    for (i = 0; i < node_count; ++i) {
        hub->nodes[i].hub = hub;
        hub->nodes[i].idx = i;
    }
    return hub;
}

static void probe_free_beacons(probe_beacon_t *list)
{
    probe_beacon_t *beacon, *next;

    DL_FOREACH_SAFE(list, beacon, next) {
        free(beacon);
    }
}

void r2_probe_sim_destroy(r2_probe_sim_t *hub)
{
    probe_request_t *request, *next;
    uint32_t i;

    if (NULL == hub) {
        return;
    }
    DL_FOREACH_SAFE(hub->requests, request, next) {
        free(request);
    }
    for (i = 0; i < hub->node_count; ++i) {
        probe_free_beacons(hub->nodes[i].coming);
        probe_free_beacons(hub->nodes[i].arrived);
    }
    free(hub);
}

void r2_probe_sim_set_loss(r2_probe_sim_t *hub, uint32_t ppm)
{
    hub->loss_ppm = ppm;
}

void r2_probe_sim_set_shield(r2_probe_sim_t *hub, uint32_t node, uint32_t rail, bool shield)
{
    hub->nodes[node].shielded[rail] = shield;
}
