/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Hello driver of the simulator: request and reply over the simulated rails, beside the transport.
 */
#include "r2_config.h"

#include "rail/hello_sim.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/prng.h"
#include "base/util.h"

#define HELLO_MAGIC       0x68656c6fu
#define HELLO_WATCH_NS    (20 * R2_NS_PER_MS) /* how soon a caller notices that the other end died */
#define HELLO_KEY_WAIT_NS (5 * R2_NS_PER_MS)

/** A listener's address. */
typedef struct hello_address {
    uint32_t magic;
    uint32_t node, rail;
} hello_address_t;

typedef enum hello_state {
    HELLO_CONNECTING, /* the request is on its way */
    HELLO_WAITING,    /* the request arrived */
    HELLO_REPLYING,   /* the reply is on its way */
    HELLO_DONE        /* the result waits for poll() */
} hello_state_t;

/** One call; its serial is the token of the request. */
typedef struct hello_call {
    struct hello_call *prev, *next;
    struct hello_node *caller, *callee; /* borrowed */
    uint32_t rail;
    uint32_t tries;
    hello_state_t state;
    r2_status_t status;
    uint64_t serial, call_id, deadline_ns;
    size_t bytes; /* of the request, then of the reply */
    uint8_t text[R2_HELLO_BYTES_MAX];
} hello_call_t;

/** What lies in an accept queue until the callee polls; as a closed connection, if the caller gave up. */
typedef struct hello_request {
    struct hello_request *prev, *next;
    uint32_t rail;
    uint64_t serial;
    size_t bytes;
    uint8_t text[R2_HELLO_BYTES_MAX];
} hello_request_t;

typedef struct hello_node {
    struct r2_hello_sim *hub; /* borrowed */
    uint32_t idx;
    r2_hello_upcalls_t upcalls;
    bool keyed, polling;
    bool listening[R2_RAILS_MAX + 1];
    r2_hello_sim_listener_t listener[R2_RAILS_MAX + 1];
    uint8_t key[R2_JOB_KEY_BYTES];
    hello_request_t *requests; /* owned list */
} hello_node_t;

struct r2_hello_sim {
    r2_sim_t *sim; /* borrowed */
    uint32_t node_count;
    uint32_t loss_ppm;
    uint32_t backlog; /* of one listener; 0: no limit */
    uint64_t next_serial;
    hello_call_t *calls; /* owned list */
    hello_node_t nodes[];
};

static hello_call_t *hello_find(r2_hello_sim_t *hub, uint64_t serial)
{
    hello_call_t *call;

    DL_FOREACH(hub->calls, call) {
        if (call->serial == serial) {
            return call;
        }
    }
    return NULL;
}

static void hello_finish(hello_call_t *call, r2_status_t status)
{
    call->state = HELLO_DONE;
    call->status = status;
    r2_sim_wake(call->caller->hub->sim, call->caller->idx);
}

static bool hello_passes(const hello_call_t *call)
{
    r2_hello_sim_t *hub = call->caller->hub;

    return r2_sim_passes(hub->sim, call->caller->idx, call->callee->idx, call->rail) &&
           r2_sim_passes(hub->sim, call->callee->idx, call->caller->idx, call->rail) &&
           !(0 != hub->loss_ppm && r2_sim_random_u64(hub->sim) % 1000000 < hub->loss_ppm);
}

static void hello_step(void *arg, uint64_t serial);

static void hello_step_after(hello_call_t *call, uint64_t pause_ns)
{
    r2_hello_sim_t *hub = call->caller->hub;

    r2_sim_at(hub->sim, r2_sim_now_ns(hub->sim) + pause_ns, hello_step, hub, call->serial);
}

/* The accept queue of a listener is full: the kernel drops what else would connect. */
static bool hello_is_full(const hello_node_t *callee, uint32_t rail)
{
    const hello_request_t *request;
    uint32_t waiting = 0;

    DL_FOREACH(callee->requests, request) {
        waiting += request->rail == rail;
    }
    return 0 != callee->hub->backlog && waiting >= callee->hub->backlog;
}

/* Nothing came back: the caller's kernel tries again, with growing pauses. */
static void hello_try_later(hello_call_t *call)
{
    call->tries = r2_min(call->tries + 1, 5u);
    hello_step_after(call, R2_NS_PER_S << (call->tries - 1));
}

/* The request is at the callee's host. */
static void hello_arrive(hello_call_t *call)
{
    hello_node_t *callee = call->callee;
    r2_sim_t *sim = callee->hub->sim;
    hello_request_t *request;

    if (r2_sim_dead(sim, callee->idx) || !callee->listening[call->rail] ||
        R2_HELLO_SIM_REFUSES == callee->listener[call->rail]) {
        hello_finish(call, R2_ERR_REFUSED);
        return;
    }
    if (hello_is_full(callee, call->rail)) {
        hello_try_later(call);
        return;
    }
    if (!callee->keyed) {
        hello_step_after(call, HELLO_KEY_WAIT_NS);
        return;
    }
    if (0 != memcmp(callee->key, call->caller->key, R2_JOB_KEY_BYTES)) {
        hello_finish(call, R2_ERR_AUTH);
        return;
    }
    request = calloc(1, sizeof(*request));
    if (NULL == request) {
        hello_finish(call, R2_ERR_NO_MEMORY);
        return;
    }
    request->rail = call->rail;
    request->serial = call->serial;
    request->bytes = call->bytes;
    memcpy(request->text, call->text, call->bytes);
    DL_APPEND(callee->requests, request);
    call->state = HELLO_WAITING;
    r2_sim_wake(sim, callee->idx);
    hello_step_after(call, HELLO_WATCH_NS);
}

/* One step of a call: a try to get through, or a look at whether the other end still lives. */
static void hello_step(void *arg, uint64_t serial)
{
    r2_hello_sim_t *hub = arg;
    hello_call_t *call = hello_find(hub, serial);

    if (NULL == call || HELLO_DONE == call->state) {
        return;
    }
    if (HELLO_WAITING != call->state && !hello_passes(call)) {
        hello_try_later(call);
    } else if (HELLO_CONNECTING == call->state) {
        hello_arrive(call);
    } else if (HELLO_REPLYING == call->state) {
        hello_finish(call, R2_OK);
    } else if (hello_passes(call) && r2_sim_dead(hub->sim, call->callee->idx)) {
        hello_finish(call, R2_ERR_LANE_DOWN);
    } else {
        hello_step_after(call, HELLO_WATCH_NS);
    }
}

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

static r2_status_t hello_call(void *hello, uint32_t rail_idx, const void *address,
                              size_t address_bytes, const void *request, size_t bytes,
                              uint64_t timeout_ns, uint64_t call_id)
{
    hello_node_t *node = hello;
    r2_hello_sim_t *hub = node->hub;
    bool carrier = r2_sim_carrier(hub->sim, node->idx, rail_idx);
    hello_address_t to;
    hello_call_t *call;
    r2_status_t status = hello_check_call(node, rail_idx, address, address_bytes, bytes, &to);

    if (R2_OK != status) {
        return status;
    }
    if (!carrier && 0 == (r2_sim_random_u64(hub->sim) & 1)) {
        return R2_ERR_NO_DEVICE;
    }
    if (R2_SIM_LOCAL == rail_idx && hello_is_full(&hub->nodes[to.node], rail_idx)) {
        return R2_ERR_AGAIN; /* as connect() of a Unix domain socket */
    }
    call = calloc(1, sizeof(*call));
    if (NULL == call) {
        return R2_ERR_NO_MEMORY;
    }
    call->caller = node;
    call->callee = &hub->nodes[to.node];
    call->rail = rail_idx;
    call->serial = ++hub->next_serial;
    call->call_id = call_id;
    call->deadline_ns = r2_sim_now_ns(hub->sim) + timeout_ns;
    call->bytes = bytes;
    memcpy(call->text, request, bytes);
    DL_APPEND(hub->calls, call);
    if (carrier) {
        hello_step_after(call, 3 * r2_sim_latency_ns(hub->sim, rail_idx));
    } else {
        hello_finish(call, R2_ERR_NO_DEVICE);
    }
    return R2_OK;
}

static bool hello_cancel(void *hello, uint64_t call_id)
{
    const hello_node_t *node = hello;
    r2_hello_sim_t *hub = node->hub;
    hello_call_t *call;

    DL_FOREACH(hub->calls, call) {
        if (call->caller == node && call->call_id == call_id && HELLO_CONNECTING == call->state) {
            DL_DELETE(hub->calls, call);
            free(call);
            return true;
        }
    }
    return false;
}

static void hello_reply(void *hello, uint64_t token, const void *reply, size_t bytes)
{
    hello_node_t *node = hello;
    hello_call_t *call = hello_find(node->hub, token);

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
    hello_step_after(call, r2_sim_latency_ns(node->hub->sim, call->rail));
}

static int hello_fd(void *hello)
{
    (void) hello;
    return -1;
}

static void hello_deliver(hello_node_t *node, hello_call_t *call)
{
    bool ok = R2_OK == call->status;

    DL_DELETE(node->hub->calls, call);
    node->upcalls.result(node->upcalls.arg, call->call_id, call->status, ok ? call->text : NULL,
                         ok ? call->bytes : 0);
    free(call);
}

/* @return a call of the node that is over, or NULL. */
static hello_call_t *hello_next_result(hello_node_t *node)
{
    uint64_t now_ns = r2_sim_now_ns(node->hub->sim);
    hello_call_t *call;

    DL_FOREACH(node->hub->calls, call) {
        if (call->caller != node) {
            continue;
        }
        if (HELLO_DONE != call->state && now_ns >= call->deadline_ns) {
            hello_finish(call,
                         HELLO_CONNECTING == call->state ? R2_ERR_TIMEOUT : R2_ERR_UNRESPONSIVE);
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
    const hello_call_t *call = hello_find(hub, serial);

    return NULL != call && HELLO_WAITING == call->state &&
           r2_sim_now_ns(hub->sim) < call->deadline_ns;
}

static void hello_poll(void *hello)
{
    hello_node_t *node = hello;
    hello_request_t *request;
    hello_call_t *call;

    if (node->polling) {
        r2_sim_fail(node->hub->sim, "node %u: hello poll inside an upcall", node->idx);
        return;
    }
    node->polling = true;
    while (NULL != (request = node->requests)) {
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
    const hello_call_t *call;

    DL_FOREACH(node->hub->calls, call) {
        if (call->caller == node) {
            deadline_ns = r2_min(deadline_ns, call->deadline_ns);
        }
    }
    return deadline_ns;
}

r2_hello_sim_t *r2_hello_sim_create(r2_sim_t *sim, uint32_t node_count)
{
    r2_hello_sim_t *hub = calloc(1, sizeof(*hub) + node_count * sizeof(hub->nodes[0]));
    uint32_t i;

    if (NULL == hub) {
        return NULL;
    }
    hub->sim = sim;
    hub->node_count = node_count;
    for (i = 0; i < node_count; i++) {
        hub->nodes[i].hub = hub;
        hub->nodes[i].idx = i;
    }
    return hub;
}

void r2_hello_sim_destroy(r2_hello_sim_t *hub)
{
    hello_request_t *request, *request_next;
    hello_call_t *call, *call_next;
    uint32_t i;

    if (NULL == hub) {
        return;
    }
    DL_FOREACH_SAFE(hub->calls, call, call_next) {
        free(call);
    }
    for (i = 0; i < hub->node_count; i++) {
        DL_FOREACH_SAFE(hub->nodes[i].requests, request, request_next) {
            free(request);
        }
    }
    free(hub);
}

void r2_hello_sim_set_loss(r2_hello_sim_t *hub, uint32_t ppm)
{
    hub->loss_ppm = ppm;
}

void r2_hello_sim_set_backlog(r2_hello_sim_t *hub, uint32_t backlog)
{
    hub->backlog = backlog;
}

void r2_hello_sim_set_listener(r2_hello_sim_t *hub, uint32_t node, uint32_t rail,
                               r2_hello_sim_listener_t listener)
{
    hub->nodes[node].listener[rail] = listener;
}

r2_hello_t r2_hello_sim_node(r2_hello_sim_t *hub, uint32_t node)
{
    static const r2_hello_ops_t ops = {
        .name = "sim",
        .bind = hello_bind,
        .key = hello_key,
        .listen = hello_listen,
        .call = hello_call,
        .cancel = hello_cancel,
        .reply = hello_reply,
        .fd = hello_fd,
        .poll = hello_poll,
        .deadline_ns = hello_deadline_ns,
    };

    return (r2_hello_t){&ops, &hub->nodes[node]};
}
