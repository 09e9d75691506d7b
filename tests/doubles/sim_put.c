/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Simulator: memory that peers write to by themselves, and writes that come late.
 */
#include "r2_config.h"

#include "doubles/sim_state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/** A key in the place of a pointer, into which nobody looks. */
typedef union sim_handle {
    uintptr_t key;
    void *grant;
} sim_handle_t;

static bool sim_grants_grow(r2_sim_t *sim)
{
    const size_t room = 0 == sim->grant_room ? 64 : 2 * sim->grant_room;
    r2_sim_grant_t *grants;

    if (sim->grant_count < sim->grant_room) {
        return true;
    }
    r2_sim_takes_memory = true;
    grants = realloc(sim->grants, room * sizeof(*grants));
    r2_sim_takes_memory = false;
    if (NULL == grants) {
        r2_sim_fail(sim, "out of memory for grants");
        return false;
    }
    sim->grants = grants;
    sim->grant_room = room;
    return true;
}

r2_status_t r2_sim_grant(r2_tp_worker_t *worker, void *data, size_t bytes,
                         const r2_tp_memory_t *memory, void *key_p, size_t *key_bytes_p,
                         void **grant_p)
{
    r2_sim_t *sim = r2_sim_of_worker(worker);
    sim_handle_t handle;
    uint64_t key;

    if (!worker->device->puts || !r2_sim_worker_usable(worker, "grant")) {
        return R2_ERR_UNSUPPORTED;
    }
    if (NULL != memory && ((uintptr_t) data < (uintptr_t) memory->data ||
                           (uintptr_t) data + bytes > (uintptr_t) memory->data + memory->bytes)) {
        r2_sim_fail(sim, "node %u: what is granted is not in its memory", worker->device->node);
    }
    if (!sim_grants_grow(sim)) {
        return R2_ERR_NO_MEMORY;
    }
    sim->grants[sim->grant_count++] = (r2_sim_grant_t){
        .node = worker->device->node, .start = (uintptr_t) data, .end = (uintptr_t) data + bytes};
    key = sim->grant_count;
    memcpy(key_p, &key, sizeof(key));
    *key_bytes_p = sizeof(key);
    handle.key = (uintptr_t) key;
    *grant_p = handle.grant;
    return R2_OK;
}

void r2_sim_ungrant(r2_tp_worker_t *worker, void *grant)
{
    r2_sim_t *sim = r2_sim_of_worker(worker);
    const sim_handle_t handle = {.grant = grant};
    const size_t idx = (size_t) handle.key - 1;

    if (idx >= sim->grant_count || sim->grants[idx].node != worker->device->node ||
        sim->grants[idx].given_back) {
        r2_sim_fail(sim, "node %u: memory given back that was not granted", worker->device->node);
        return;
    }
    sim->grants[idx].given_back = true;
}

r2_status_t r2_sim_put(r2_tp_ep_t *ep, r2_tp_send_t *op, const r2_tp_target_t *target)
{
    r2_sim_put_t put = {.address = target->address};

    if (!ep->worker->device->puts || sizeof(put.key) != target->key_bytes || 0 == op->data_bytes) {
        return R2_ERR_UNSUPPORTED;
    }
    memcpy(&put.key, target->key, sizeof(put.key));
    return r2_sim_give(ep, op, &put);
}

void r2_sim_put_arrived(const r2_sim_packet_t *packet)
{
    const r2_tp_ep_t *ep = packet->ep;
    r2_sim_t *sim = r2_sim_of_worker(ep->worker);
    const uint32_t node = ep->peer->device->node;
    const r2_sim_grant_t *grant;
    union {
        uintptr_t at;
        void *pointer;
    } to = {.at = (uintptr_t) packet->put.address};

    if (0 == packet->put.key) {
        return;
    }
    if (!r2_sim_leads_to(ep->peer->open, ep->worker)) {
        ++sim->stats.puts_refused;
        return;
    }
    grant = packet->put.key > sim->grant_count ? NULL : &sim->grants[packet->put.key - 1];
    if (NULL == grant || grant->node != node || to.at < grant->start ||
        to.at + packet->data_bytes > grant->end) {
        r2_sim_fail(sim, "node %u: a write of %zu bytes from node %u without a grant", node,
                    packet->data_bytes, ep->worker->device->node);
        return;
    }
    if (grant->given_back) {
        r2_sim_fail(sim, "node %u: a late write of %zu bytes from node %u into memory given back",
                    node, packet->data_bytes, ep->worker->device->node);
        return;
    }
    memcpy(to.pointer, packet->data, packet->data_bytes);
    ++sim->stats.puts;
    sim->stats.put_bytes += packet->data_bytes;
    sim->stats.puts_late += ep->closed;
}
