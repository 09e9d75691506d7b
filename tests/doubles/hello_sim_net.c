/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Hello driver of the simulator: calls on their way, accept queues, the hub.
 */
#include "r2_config.h"

#include "doubles/hello_sim_state.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/util.h"

#define HELLO_WATCH_NS    (20 * R2_NS_PER_MS) /* until a caller notices that the other end died */
#define HELLO_KEY_WAIT_NS (5 * R2_NS_PER_MS)

hello_connect_t *r2_hello_sim_find(r2_hello_sim_t *hub, uint64_t serial)
{
    hello_connect_t *call;

    DL_FOREACH(hub->calls, call) {
        if (call->serial == serial) {
            return call;
        }
    }
    return NULL;
}

void r2_hello_sim_finish(hello_connect_t *call, r2_status_t status)
{
    call->state = HELLO_DONE;
    call->status = status;
    r2_sim_wake(call->caller->hub->sim, call->caller->idx);
}

bool r2_hello_sim_passes(const hello_connect_t *call)
{
    r2_hello_sim_t *hub = call->caller->hub;

    return r2_sim_passes(hub->sim, call->caller->idx, call->callee->idx, call->rail) &&
           r2_sim_passes(hub->sim, call->callee->idx, call->caller->idx, call->rail) &&
           !(0 != hub->loss_ppm && r2_sim_random_u64(hub->sim) % 1000000 < hub->loss_ppm);
}

static void hello_step(void *arg, uint64_t serial);

void r2_hello_sim_step_after(hello_connect_t *call, uint64_t pause_ns)
{
    r2_hello_sim_t *hub = call->caller->hub;

    r2_sim_at(hub->sim, r2_sim_now_ns(hub->sim) + pause_ns, hello_step, hub, call->serial);
}

bool r2_hello_sim_is_full(const hello_node_t *callee, uint32_t rail)
{
    const hello_request_t *request;
    uint32_t waiting = 0;

    DL_FOREACH(callee->requests, request) {
        waiting += request->rail == rail;
    }
    return 0 != callee->hub->backlog && waiting >= callee->hub->backlog &&
           !r2_sim_dead(callee->hub->sim, callee->idx); /* its queue went with it */
}

/* Nothing came back: the caller's kernel tries again, with growing pauses. */
static void hello_try_later(hello_connect_t *call)
{
    call->tries = r2_min(call->tries + 1, 5u);
    r2_hello_sim_step_after(call, R2_NS_PER_S << (call->tries - 1));
}

/* The request is at the callee's host. */
static void hello_arrive(hello_connect_t *call)
{
    hello_node_t *callee = call->callee;
    r2_sim_t *sim = callee->hub->sim;
    hello_request_t *request;

    if (r2_sim_dead(sim, callee->idx) || !callee->listening[call->rail] ||
        R2_HELLO_SIM_REFUSES == callee->listener[call->rail]) {
        r2_hello_sim_finish(call, R2_ERR_REFUSED);
        return;
    }
    if (r2_hello_sim_is_full(callee, call->rail)) {
        hello_try_later(call);
        return;
    }
    if (!callee->keyed) {
        r2_hello_sim_step_after(call, HELLO_KEY_WAIT_NS);
        return;
    }
    if (0 != memcmp(callee->key, call->caller->key, R2_JOB_KEY_BYTES)) {
        r2_hello_sim_finish(call, R2_ERR_AUTH);
        return;
    }
    request = calloc(1, sizeof(*request));
    if (NULL == request) {
        r2_hello_sim_finish(call, R2_ERR_NO_MEMORY);
        return;
    }
    request->rail = call->rail;
    request->serial = call->serial;
    request->bytes = call->bytes;
    memcpy(request->text, call->text, call->bytes);
    DL_APPEND(callee->requests, request);
    call->state = HELLO_WAITING;
    r2_sim_wake(sim, callee->idx);
    r2_hello_sim_step_after(call, HELLO_WATCH_NS);
}

/* One step of a call: a try to get through, or a look at whether the other end still lives. */
static void hello_step(void *arg, uint64_t serial)
{
    r2_hello_sim_t *hub = arg;
    hello_connect_t *call = r2_hello_sim_find(hub, serial);

    if (NULL == call || HELLO_DONE == call->state) {
        return;
    }
    if (HELLO_WAITING != call->state && !r2_hello_sim_passes(call)) {
        hello_try_later(call);
    } else if (HELLO_CONNECTING == call->state) {
        hello_arrive(call);
    } else if (HELLO_REPLYING == call->state) {
        r2_hello_sim_finish(call, R2_OK);
    } else if (r2_hello_sim_passes(call) && r2_sim_dead(hub->sim, call->callee->idx)) {
        r2_hello_sim_finish(call, R2_ERR_LANE_DOWN);
    } else {
        r2_hello_sim_step_after(call, HELLO_WATCH_NS);
    }
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
    for (i = 0; i < node_count; ++i) {
        hub->nodes[i].hub = hub;
        hub->nodes[i].idx = i;
    }
    return hub;
}

void r2_hello_sim_destroy(r2_hello_sim_t *hub)
{
    hello_request_t *request, *request_next;
    hello_connect_t *call, *call_next;
    uint32_t i;

    if (NULL == hub) {
        return;
    }
    DL_FOREACH_SAFE(hub->calls, call, call_next) {
        free(call);
    }
    for (i = 0; i < hub->node_count; ++i) {
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
