/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Fault injection around any transport: devices, workers and endpoints are wrapped, packets judged.
 */
#include "r2_config.h"

#include "doubles/fault.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/util.h"
#include "r2/prng.h"

/** A copy of a packet that goes later, or goes now beside the original. */
typedef struct fault_packet {
    r2_tp_send_t op; /* first member */
    struct fault_packet *prev, *next;
    r2_tp_ep_t *ep; /* borrowed: a wrapper */
    uint64_t due_ns;
    uint8_t bytes[];
} fault_packet_t;

struct r2_tp_device {
    r2_tp_fault_t *fault;  /* borrowed */
    r2_tp_device_t *inner; /* owned */
};

struct r2_tp_worker {
    r2_tp_device_t *device; /* borrowed */
    r2_tp_worker_t *inner;  /* owned */
    r2_tp_callbacks_t callbacks;
    void *arg;               /* borrowed */
    fault_packet_t *delayed; /* owned list */
    r2_tp_ep_t *eps;         /* owned list */
    struct r2_tp_worker *prev, *next;
};

struct r2_tp_ep {
    r2_tp_worker_t *worker; /* borrowed */
    r2_tp_ep_t *inner;      /* owned */
    void *ep_arg;           /* borrowed */
    r2_status_t failing;    /* to be reported; R2_OK: nothing */
    bool failed;
    struct r2_tp_ep *prev, *next;
};

struct r2_tp_fault {
    const r2_tp_t *inner;    /* borrowed */
    const r2_clock_t *clock; /* borrowed */
    r2_prng_t prng;
    r2_fault_rule_t rules[R2_FAULT_RULES_MAX];
    uint64_t taken[R2_FAULT_RULES_MAX];
    size_t rule_count;
    r2_fault_stats_t stats;
    r2_tp_worker_t *workers; /* list of all */
};

static const r2_tp_ops_t *fault_inner_ops(const r2_tp_worker_t *worker)
{
    return worker->device->fault->inner->ops;
}

/* ---- devices, workers and endpoints pass through ---- */

static bool fault_has_room(void *tp, uint32_t devices, uint32_t workers, uint32_t eps)
{
    const r2_tp_t *inner = ((r2_tp_fault_t *) tp)->inner;

    return NULL == inner->ops->has_room ||
           inner->ops->has_room(inner->instance, devices, workers, eps);
}

static r2_status_t fault_device_open(void *tp, const r2_tp_device_config_t *config,
                                     r2_tp_device_t **device_p)
{
    r2_tp_fault_t *fault = tp;
    r2_tp_device_t *device = calloc(1, sizeof(*device));
    r2_status_t status;

    if (NULL == device) {
        return R2_ERR_NO_MEMORY;
    }
    device->fault = fault;
    status = fault->inner->ops->device_open(fault->inner->instance, config, &device->inner);
    if (R2_OK != status) {
        free(device);
        return status;
    }
    *device_p = device;
    return R2_OK;
}

static void fault_device_close(r2_tp_device_t *device)
{
    device->fault->inner->ops->device_close(device->inner);
    free(device);
}

static r2_status_t fault_worker_create(r2_tp_device_t *device, const r2_tp_callbacks_t *callbacks,
                                       void *arg, r2_tp_worker_t **worker_p)
{
    r2_tp_worker_t *worker = calloc(1, sizeof(*worker));
    r2_status_t status;

    if (NULL == worker) {
        return R2_ERR_NO_MEMORY;
    }
    worker->device = device;
    worker->callbacks = *callbacks;
    worker->arg = arg;
    status = fault_inner_ops(worker)->worker_create(device->inner, callbacks, arg, &worker->inner);
    if (R2_OK != status) {
        free(worker);
        return status;
    }
    DL_APPEND(device->fault->workers, worker);
    *worker_p = worker;
    return R2_OK;
}

static void fault_forget(r2_tp_ep_t *ep)
{
    fault_packet_t *packet, *next;

    DL_FOREACH_SAFE(ep->worker->delayed, packet, next) {
        if (packet->ep == ep) {
            DL_DELETE(ep->worker->delayed, packet);
            free(packet);
        }
    }
    DL_DELETE(ep->worker->eps, ep);
    free(ep);
}

static void fault_worker_destroy(r2_tp_worker_t *worker)
{
    fault_inner_ops(worker)->worker_destroy(worker->inner);
    while (NULL != worker->eps) {
        fault_forget(worker->eps);
    }
    DL_DELETE(worker->device->fault->workers, worker);
    free(worker);
}

static int fault_worker_fd(r2_tp_worker_t *worker)
{
    return fault_inner_ops(worker)->worker_fd(worker->inner);
}

static bool fault_worker_is_loose(const r2_tp_worker_t *worker)
{
    const r2_tp_ops_t *ops = worker->device->fault->inner->ops;

    return NULL != ops->worker_is_loose && ops->worker_is_loose(worker->inner);
}

static r2_status_t fault_ep_open(r2_tp_worker_t *worker, void *ep_arg, r2_tp_ep_t **ep_p)
{
    r2_tp_ep_t *ep = calloc(1, sizeof(*ep));
    r2_status_t status;

    if (NULL == ep) {
        return R2_ERR_NO_MEMORY;
    }
    ep->worker = worker;
    ep->ep_arg = ep_arg;
    status = fault_inner_ops(worker)->ep_open(worker->inner, ep_arg, &ep->inner);
    if (R2_OK != status) {
        free(ep);
        return status;
    }
    DL_APPEND(worker->eps, ep);
    *ep_p = ep;
    return R2_OK;
}

static r2_status_t fault_ep_address(r2_tp_ep_t *ep, void *address_p, size_t *bytes_p)
{
    return fault_inner_ops(ep->worker)->ep_address(ep->inner, address_p, bytes_p);
}

static r2_status_t fault_ep_connect(r2_tp_ep_t *ep, const void *address, size_t address_bytes)
{
    return fault_inner_ops(ep->worker)->ep_connect(ep->inner, address, address_bytes);
}

static void fault_ep_land_off(r2_tp_ep_t *ep)
{
    fault_inner_ops(ep->worker)->ep_land_off(ep->inner);
}

static void fault_ep_close(r2_tp_ep_t *ep)
{
    fault_inner_ops(ep->worker)->ep_close(ep->inner);
    fault_forget(ep);
}

/* ---- judging a packet ---- */

static bool fault_applies(r2_tp_fault_t *fault, size_t i, uint64_t now_ns, const r2_tp_send_t *op)
{
    const r2_fault_rule_t *rule = &fault->rules[i];

    return (0 == rule->limit || fault->taken[i] < rule->limit) && now_ns >= rule->from_ns &&
           (0 == rule->until_ns || now_ns < rule->until_ns) &&
           (NULL == rule->match || rule->match(op->header, op->header_bytes, op->data_bytes)) &&
           r2_prng_chance(&fault->prng, rule->ppm);
}

/* @return the rule for this packet, or NULL. */
static const r2_fault_rule_t *fault_judge(r2_tp_fault_t *fault, const r2_tp_send_t *op)
{
    uint64_t now_ns = r2_now_ns(fault->clock);
    size_t i;

    for (i = 0; i < fault->rule_count; ++i) {
        if (fault_applies(fault, i, now_ns, op)) {
            ++fault->taken[i];
            ++fault->stats.taken[fault->rules[i].action];
            return &fault->rules[i];
        }
    }
    return NULL;
}

static void fault_copy_sent(r2_tp_send_t *op, r2_status_t status)
{
    (void) status;
    free(r2_container_of(op, fault_packet_t, op));
}

static void fault_delay(r2_tp_ep_t *ep, const r2_tp_send_t *op, uint64_t delay_ns)
{
    r2_tp_fault_t *fault = ep->worker->device->fault;
    fault_packet_t *packet = malloc(sizeof(*packet) + op->header_bytes + op->data_bytes);

    if (NULL == packet) {
        return; /* lost: a fault as good as any */
    }
    memcpy(packet->bytes, op->header, op->header_bytes);
    if (0 != op->data_bytes) {
        memcpy(packet->bytes + op->header_bytes, op->data, op->data_bytes);
    }
    packet->op = *op;
    packet->op.header = packet->bytes;
    packet->op.data = 0 == op->data_bytes ? NULL : packet->bytes + op->header_bytes;
    packet->op.memory = NULL; /* the copy is no part of what may be gone by then */
    packet->op.sent = fault_copy_sent;
    packet->ep = ep;
    packet->due_ns = r2_now_ns(fault->clock) + 1 + r2_prng_below(&fault->prng, delay_ns);
    DL_APPEND(ep->worker->delayed, packet);
}

static r2_status_t fault_send(r2_tp_ep_t *ep, r2_tp_send_t *op)
{
    const r2_tp_ops_t *ops = fault_inner_ops(ep->worker);
    const r2_fault_rule_t *rule;

    if (ep->failed) {
        return R2_ERR_LANE_DOWN;
    }
    rule = fault_judge(ep->worker->device->fault, op);
    if (NULL == rule) {
        return ops->send(ep->inner, op);
    }
    switch (rule->action) {
    case R2_FAULT_DROP:
        return R2_OK;
    case R2_FAULT_BREAK:
        ep->failing = R2_ERR_LANE_DOWN;
        return R2_OK;
    case R2_FAULT_DUPLICATE:
        fault_delay(ep, op, rule->delay_ns);
        return ops->send(ep->inner, op);
    case R2_FAULT_DELAY:
        fault_delay(ep, op, rule->delay_ns);
        return R2_OK;
    case R2_FAULT_ERROR:
        return rule->status;
    case R2_FAULT_FAIL:
        ep->failing = rule->status;
        return ops->send(ep->inner, op);
    }
    return R2_ERR_INTERNAL;
}

/* ---- puts: lost or failing as what is sent, never twice or late ---- */

static r2_status_t fault_grant(r2_tp_worker_t *worker, void *data, size_t bytes,
                               const r2_tp_memory_t *memory, void *key_p, size_t *key_bytes_p,
                               void **grant_p)
{
    const r2_tp_ops_t *ops = fault_inner_ops(worker);

    return NULL == ops->grant
               ? R2_ERR_UNSUPPORTED
               : ops->grant(worker->inner, data, bytes, memory, key_p, key_bytes_p, grant_p);
}

static void fault_ungrant(r2_tp_worker_t *worker, void *grant)
{
    fault_inner_ops(worker)->ungrant(worker->inner, grant);
}

static r2_status_t fault_put(r2_tp_ep_t *ep, r2_tp_send_t *op, const r2_tp_target_t *target)
{
    const r2_fault_rule_t *rule;

    if (ep->failed) {
        return R2_ERR_LANE_DOWN;
    }
    rule = fault_judge(ep->worker->device->fault, op);
    if (NULL != rule && (R2_FAULT_DROP == rule->action || R2_FAULT_BREAK == rule->action)) {
        ep->failing = R2_FAULT_BREAK == rule->action ? R2_ERR_LANE_DOWN : ep->failing;
        return R2_OK;
    }
    if (NULL != rule && R2_FAULT_ERROR == rule->action) {
        return rule->status;
    }
    if (NULL != rule && R2_FAULT_FAIL == rule->action) {
        ep->failing = rule->status;
    }
    return fault_inner_ops(ep->worker)->put(ep->inner, op, target);
}

/* ---- progress ---- */

static unsigned fault_send_delayed(r2_tp_worker_t *worker)
{
    uint64_t now_ns = r2_now_ns(worker->device->fault->clock);
    fault_packet_t *packet, *next;
    unsigned events = 0;

    DL_FOREACH_SAFE(worker->delayed, packet, next) {
        if (packet->due_ns > now_ns) {
            continue;
        }
        ++events;
        DL_DELETE(worker->delayed, packet);
        if (packet->ep->failed ||
            R2_IN_PROGRESS != fault_inner_ops(worker)->send(packet->ep->inner, &packet->op)) {
            free(packet);
        }
    }
    return events;
}

static unsigned fault_report(r2_tp_worker_t *worker)
{
    unsigned events = 0;
    r2_tp_ep_t *ep;

    DL_FOREACH(worker->eps, ep) {
        if (R2_OK != ep->failing) {
            r2_status_t status = ep->failing;

            ++events;
            ep->failing = R2_OK;
            ep->failed = true;
            worker->callbacks.failed(worker->arg, ep->ep_arg, status);
        }
    }
    return events;
}

static unsigned fault_worker_progress(r2_tp_worker_t *worker)
{
    return fault_report(worker) + fault_send_delayed(worker) +
           fault_inner_ops(worker)->worker_progress(worker->inner);
}

static uint64_t fault_worker_deadline_ns(const r2_tp_worker_t *worker)
{
    uint64_t deadline_ns = R2_NEVER_NS;
    const fault_packet_t *packet;
    const r2_tp_ep_t *ep;

    DL_FOREACH(worker->delayed, packet) {
        deadline_ns = r2_min(deadline_ns, packet->due_ns);
    }
    DL_FOREACH(worker->eps, ep) {
        if (R2_OK != ep->failing) {
            return r2_now_ns(worker->device->fault->clock);
        }
    }
    return deadline_ns;
}

static r2_status_t fault_worker_arm(r2_tp_worker_t *worker)
{
    if (r2_now_ns(worker->device->fault->clock) >= fault_worker_deadline_ns(worker)) {
        return R2_ERR_AGAIN;
    }
    return fault_inner_ops(worker)->worker_arm(worker->inner);
}

uint64_t r2_tp_fault_deadline_ns(const r2_tp_fault_t *fault)
{
    uint64_t deadline_ns = R2_NEVER_NS;
    const r2_tp_worker_t *worker;

    DL_FOREACH(fault->workers, worker) {
        deadline_ns = r2_min(deadline_ns, fault_worker_deadline_ns(worker));
    }
    return deadline_ns;
}

const r2_fault_stats_t *r2_tp_fault_stats(const r2_tp_fault_t *fault)
{
    return &fault->stats;
}

r2_tp_t r2_tp_fault_transport(r2_tp_fault_t *fault)
{
    static const r2_tp_ops_t ops = {
        .name = "fault",
        .has_room = fault_has_room,
        .device_open = fault_device_open,
        .device_close = fault_device_close,
        .worker_create = fault_worker_create,
        .worker_destroy = fault_worker_destroy,
        .worker_progress = fault_worker_progress,
        .worker_fd = fault_worker_fd,
        .worker_arm = fault_worker_arm,
        .worker_is_loose = fault_worker_is_loose,
        .ep_open = fault_ep_open,
        .ep_address = fault_ep_address,
        .ep_connect = fault_ep_connect,
        .ep_close = fault_ep_close,
        .ep_land_off = fault_ep_land_off,
        .send = fault_send,
        .grant = fault_grant,
        .ungrant = fault_ungrant,
        .put = fault_put,
    };

    return (r2_tp_t){&ops, fault};
}

r2_tp_fault_t *r2_tp_fault_create(const r2_tp_t *inner, const r2_clock_t *clock, uint64_t seed,
                                  const r2_fault_rule_t *rules, size_t rule_count)
{
    r2_tp_fault_t *fault = rule_count > R2_FAULT_RULES_MAX ? NULL : calloc(1, sizeof(*fault));

    if (NULL == fault) {
        return NULL;
    }
    fault->inner = inner;
    fault->clock = clock;
    fault->rule_count = rule_count;
    memcpy(fault->rules, rules, rule_count * sizeof(*rules));
    r2_prng_seed(&fault->prng, seed);
    return fault;
}

void r2_tp_fault_destroy(r2_tp_fault_t *fault)
{
    free(fault);
}
