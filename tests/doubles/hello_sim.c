/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Hello driver of the simulator: request and reply over the simulated rails, beside the transport.
 */
#include "r2_config.h"

#include "doubles/hello_sim_state.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/util.h"

#define HELLO_MAGIC   0x68656c6fu
#define HELLO_FULL_NS (100 * R2_NS_PER_MS) /* until a process without descriptors accepts again */

/** A listener's address. */
typedef struct hello_address {
    uint32_t magic;
    uint32_t node, rail;
} hello_address_t;

/* ---- the table ---- */

static void hello_bind(void *hello, const r2_hello_upcalls_t *upcalls)
{
    hello_node_t *node = hello;

    node->upcalls = *upcalls;
}

static void hello_key(void *hello, const uint8_t *key)
{
    hello_node_t *node = hello;

    memcpy(node->key, key, R2_JOB_KEY_BYTES);
    node->keyed = true;
}

static r2_status_t hello_listen(void *hello, uint32_t rail_idx, const r2_nic_t *nic,
                                void *address_p, size_t *bytes_p)
{
    hello_node_t *node = hello;
    hello_address_t address = {HELLO_MAGIC, node->idx, rail_idx};

    if (rail_idx > R2_RAILS_MAX || (NULL == nic) != (R2_SIM_LOCAL == rail_idx)) {
        return R2_ERR_PARAM;
    }
    if (R2_HELLO_SIM_BROKEN == node->listener[rail_idx]) {
        return R2_ERR_SYSTEM;
    }
    node->listening[rail_idx] = true;
    memcpy(address_p, &address, sizeof(address));
    *bytes_p = sizeof(address);
    return R2_OK;
}

static r2_status_t hello_check_call(hello_node_t *node, uint32_t rail_idx, const void *address,
                                    size_t address_bytes, size_t bytes, hello_address_t *to_p)
{
    r2_sim_t *sim = node->hub->sim;

    if (!node->keyed) {
        return R2_ERR_AGAIN;
    }
    if (bytes > R2_HELLO_BYTES_MAX) {
        return R2_ERR_PARAM;
    }
    if (sizeof(*to_p) != address_bytes) {
        return R2_ERR_WIRE;
    }
    memcpy(to_p, address, sizeof(*to_p));
    if (HELLO_MAGIC != to_p->magic || to_p->node >= node->hub->node_count) {
        return R2_ERR_WIRE;
    }
    if (!node->listening[rail_idx]) {
        r2_sim_fail(sim, "node %u: hello over rail %u, which has no listener", node->idx, rail_idx);
    }
    if (to_p->rail != rail_idx ||
        (R2_SIM_LOCAL == rail_idx &&
         r2_sim_host_of(sim, node->idx) != r2_sim_host_of(sim, to_p->node))) {
        r2_sim_fail(sim, "node %u: hello over rail %u to a listener of rail %u of node %u",
                    node->idx, rail_idx, to_p->rail, to_p->node);
        return R2_ERR_LANE_DOWN;
    }
    return R2_OK;
}

static r2_status_t hello_connect(void *hello, uint32_t rail_idx, const void *address,
                                 size_t address_bytes, const void *request, size_t bytes,
                                 uint64_t timeout_ns, uint64_t connect_id)
{
    hello_node_t *node = hello;
    r2_hello_sim_t *hub = node->hub;
    bool carrier = r2_sim_carrier(hub->sim, node->idx, rail_idx);
    hello_address_t to;
    hello_connect_t *call;
    r2_status_t status = hello_check_call(node, rail_idx, address, address_bytes, bytes, &to);

    if (R2_OK != status) {
        return status;
    }
    if (!carrier && 0 == (r2_sim_random_u64(hub->sim) & 1)) {
        return R2_ERR_NO_DEVICE;
    }
    if (R2_SIM_LOCAL == rail_idx && r2_hello_sim_is_full(&hub->nodes[to.node], rail_idx)) {
        return R2_ERR_AGAIN; /* as connect() of a Unix domain socket */
    }
    if (!r2_sim_take_descriptors(hub->sim, node->idx, 1)) {
        return R2_ERR_AGAIN;
    }
    call = calloc(1, sizeof(*call));
    if (NULL == call) {
        r2_sim_put_descriptors(hub->sim, node->idx, 1);
        return R2_ERR_NO_MEMORY;
    }
    call->caller = node;
    call->callee = &hub->nodes[to.node];
    call->rail = rail_idx;
    call->serial = ++hub->next_serial;
    call->connect_id = connect_id;
    call->timeout_ns = timeout_ns;
    call->deadline_ns = r2_sim_now_ns(hub->sim) + timeout_ns;
    call->bytes = bytes;
    memcpy(call->text, request, bytes);
    DL_APPEND(hub->calls, call);
    if (carrier) {
        r2_hello_sim_step_after(call, 3 * r2_sim_latency_ns(hub->sim, rail_idx));
    } else {
        r2_hello_sim_finish(call, R2_ERR_NO_DEVICE);
    }
    return R2_OK;
}

static void hello_take_out(hello_connect_t *call)
{
    DL_DELETE(call->caller->hub->calls, call);
    r2_sim_put_descriptors(call->caller->hub->sim, call->caller->idx, 1);
}

/* It lies in the queue: the process at the other end knows nothing of it. */
static bool hello_is_unread(const hello_connect_t *call)
{
    const hello_request_t *request;

    DL_FOREACH(call->callee->requests, request) {
        if (request->serial == call->serial) {
            return HELLO_WAITING == call->state;
        }
    }
    return false;
}

static bool hello_cancel(void *hello, uint64_t connect_id)
{
    const hello_node_t *node = hello;
    r2_hello_sim_t *hub = node->hub;
    hello_connect_t *call;

    DL_FOREACH(hub->calls, call) {
        if (call->caller == node && call->connect_id == connect_id &&
            (HELLO_CONNECTING == call->state || hello_is_unread(call))) {
            hello_take_out(call);
            free(call);
            return true;
        }
    }
    return false;
}

static bool hello_connected(void *hello, uint64_t connect_id)
{
    const hello_node_t *node = hello;
    const hello_connect_t *call;

    DL_FOREACH(node->hub->calls, call) {
        if (call->caller == node && call->connect_id == connect_id &&
            HELLO_CONNECTING == call->state) {
            return false;
        }
    }
    return true;
}

static void hello_reply(void *hello, uint64_t token, const void *reply, size_t bytes)
{
    hello_node_t *node = hello;
    hello_connect_t *call = r2_hello_sim_find(node->hub, token);

    if (bytes > R2_HELLO_BYTES_MAX) {
        r2_sim_fail(node->hub->sim, "node %u: hello reply of %zu bytes", node->idx, bytes);
        return;
    }
    if (NULL == call || call->callee != node || HELLO_DONE == call->state) {
        return;
    }
    if (HELLO_WAITING != call->state) {
        r2_sim_fail(node->hub->sim, "node %u: hello request answered twice", node->idx);
        return;
    }
    call->state = HELLO_REPLYING;
    call->tries = 0;
    call->bytes = bytes;
    memcpy(call->text, reply, bytes);
    r2_hello_sim_step_after(call, r2_sim_latency_ns(node->hub->sim, call->rail));
}

static int hello_fd(void *hello)
{
    (void) hello;
    return -1;
}

static void hello_deliver(hello_node_t *node, hello_connect_t *call)
{
    bool ok = R2_OK == call->status;

    hello_take_out(call);
    node->upcalls.result(node->upcalls.arg, call->connect_id, call->status, ok ? call->text : NULL,
                         ok ? call->bytes : 0);
    free(call);
}

/*
 * Time is up. One that was not read yet may wait for a process that is stopped, as long as the path
 * is there: kernels ask each other.
 */
static void hello_expire(hello_node_t *node, hello_connect_t *call)
{
    const r2_hello_upcalls_t *upcalls = &node->upcalls;

    if (hello_is_unread(call) && NULL != upcalls->waits && r2_hello_sim_passes(call) &&
        upcalls->waits(upcalls->arg, call->connect_id)) {
        call->deadline_ns = r2_sim_now_ns(node->hub->sim) + call->timeout_ns;
        return;
    }
    r2_hello_sim_finish(call,
                        HELLO_CONNECTING == call->state ? R2_ERR_TIMEOUT : R2_ERR_UNRESPONSIVE);
}

/* @return a call of the node that is over, or NULL. */
static hello_connect_t *hello_next_result(hello_node_t *node)
{
    uint64_t now_ns = r2_sim_now_ns(node->hub->sim);
    hello_connect_t *call;

    DL_FOREACH(node->hub->calls, call) {
        if (call->caller != node) {
            continue;
        }
        if (HELLO_DONE != call->state && now_ns >= call->deadline_ns) {
            hello_expire(node, call);
        }
        if (HELLO_DONE == call->state) {
            return call;
        }
    }
    return NULL;
}

/*
 * The challenge needs both processes: a request is not seen by a process that was stopped until its
 * caller had given up.
 */
static bool hello_still_waits(r2_hello_sim_t *hub, uint64_t serial)
{
    const hello_connect_t *call = r2_hello_sim_find(hub, serial);

    return NULL != call && HELLO_WAITING == call->state &&
           r2_sim_now_ns(hub->sim) < call->deadline_ns;
}

static void hello_try_accept(void *arg, uint64_t unused)
{
    hello_node_t *node = arg;

    (void) unused;
    node->pausing = false;
    r2_sim_wake(node->hub->sim, node->idx);
}

/* Without a descriptor nothing is accepted, and it is tried again a moment later. */
static bool hello_may_accept(hello_node_t *node)
{
    r2_sim_t *sim = node->hub->sim;

    if (r2_sim_take_descriptors(sim, node->idx, 1)) {
        r2_sim_put_descriptors(sim, node->idx, 1);
        return true;
    }
    if (!node->pausing) {
        node->pausing =
            r2_sim_at(sim, r2_sim_now_ns(sim) + HELLO_FULL_NS, hello_try_accept, node, 0);
    }
    return false;
}

static void hello_poll(void *hello)
{
    hello_node_t *node = hello;
    hello_request_t *request;
    hello_connect_t *call;

    if (node->polling) {
        r2_sim_fail(node->hub->sim, "node %u: hello poll inside an upcall", node->idx);
        return;
    }
    node->polling = true;
    while (NULL != (request = node->requests) && hello_may_accept(node)) {
        DL_DELETE(node->requests, request);
        if (hello_still_waits(node->hub, request->serial)) {
            node->upcalls.request(node->upcalls.arg, request->rail, request->serial, request->text,
                                  request->bytes);
        }
        free(request);
    }
    while (NULL != (call = hello_next_result(node))) {
        hello_deliver(node, call);
    }
    node->polling = false;
}

static uint64_t hello_deadline_ns(void *hello)
{
    const hello_node_t *node = hello;
    uint64_t deadline_ns = R2_NEVER_NS;
    const hello_connect_t *call;

    DL_FOREACH(node->hub->calls, call) {
        if (call->caller == node) {
            deadline_ns = r2_min(deadline_ns, call->deadline_ns);
        }
    }
    return deadline_ns;
}

r2_hello_t r2_hello_sim_node(r2_hello_sim_t *hub, uint32_t node)
{
    static const r2_hello_ops_t ops = {
        .name = "sim",
        .bind = hello_bind,
        .key = hello_key,
        .listen = hello_listen,
        .call = hello_connect,
        .cancel = hello_cancel,
        .connected = hello_connected,
        .reply = hello_reply,
        .fd = hello_fd,
        .poll = hello_poll,
        .deadline_ns = hello_deadline_ns,
    };

    return (r2_hello_t){&ops, &hub->nodes[node]};
}
