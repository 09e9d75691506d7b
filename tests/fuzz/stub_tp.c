/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The transport of a net with a peer that the caller plays.
 */
#include "r2_config.h"

#include "stub_net.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utlist.h>

#include "fuzz.h"

struct r2_tp_device {
    stub_net_t *stub;
};

struct r2_tp_worker {
    stub_net_t *stub;
    const r2_tp_callbacks_t *callbacks;
    void *arg;
    int fd; /* owned; -1: none */
};

struct r2_tp_ep {
    struct r2_tp_ep *prev, *next;
    stub_net_t *stub;
    r2_tp_worker_t *worker;
};

static r2_status_t stub_device_open(void *tp, const r2_tp_device_config_t *config,
                                    r2_tp_device_t **device_p)
{
    (void) config;
    *device_p = malloc(sizeof(**device_p));
    (*device_p)->stub = tp;
    return R2_OK;
}

static void stub_device_close(r2_tp_device_t *device)
{
    free(device);
}

static r2_status_t stub_worker_create(r2_tp_device_t *device, const r2_tp_callbacks_t *callbacks,
                                      void *arg, r2_tp_worker_t **worker_p)
{
    *worker_p = malloc(sizeof(**worker_p));
    **worker_p = (r2_tp_worker_t){device->stub, callbacks, arg,
                                  0 <= device->stub->net.epoll_fd ? eventfd(0, EFD_NONBLOCK) : -1};
    ++device->stub->workers;
    return R2_OK;
}

/* Touches what is sent: memory that is gone by now is found. */
static void stub_finish(stub_send_t *send, r2_status_t status)
{
    stub_net_t *stub = send->ep->stub;
    r2_tp_send_t *op = send->op;
    volatile uint8_t sum = 0;

    for (size_t i = 0; i < op->header_bytes; ++i) {
        sum = (uint8_t) (sum + ((const uint8_t *) op->header)[i]);
    }
    for (size_t i = 0; i < op->data_bytes; ++i) {
        sum = (uint8_t) (sum + ((const uint8_t *) op->data)[i]);
    }
    DL_DELETE(stub->sends, send);
    --stub->send_count;
    free(send);
    op->sent(op, status);
}

static void stub_ep_free(r2_tp_ep_t *ep)
{
    stub_net_t *stub = ep->stub;
    stub_send_t *send, *next;

    DL_FOREACH_SAFE(stub->sends, send, next) {
        if (send->ep == ep) {
            stub_finish(send, R2_ERR_CANCELED);
        }
    }
    DL_DELETE(stub->eps, ep);
    free(ep);
}

static void stub_worker_destroy(r2_tp_worker_t *worker)
{
    r2_tp_ep_t *ep, *next;

    DL_FOREACH_SAFE(worker->stub->eps, ep, next) {
        if (ep->worker == worker) {
            stub_ep_free(ep);
        }
    }
    --worker->stub->workers;
    if (0 <= worker->fd) {
        close(worker->fd);
    }
    free(worker);
}

static unsigned stub_worker_progress(r2_tp_worker_t *worker)
{
    stub_net_t *stub = worker->stub;
    unsigned events = worker == stub->busy ? 1 : 0;

    ++stub->looks;
    if (NULL != stub->header) {
        const void *header = stub->header;

        stub->header = NULL;
        worker->callbacks->received(worker->arg, header, stub->header_bytes, stub->data,
                                    stub->data_bytes);
        ++events;
    }
    if (stub->complete) {
        stub->complete = false;
        while (NULL != stub->sends) {
            stub_finish(stub->sends, stub->complete_as);
            ++events;
        }
    }
    return events;
}

static int stub_worker_fd(r2_tp_worker_t *worker)
{
    return worker->fd;
}

static bool stub_worker_signals(const r2_tp_worker_t *worker)
{
    return !worker->stub->mute;
}

static r2_status_t stub_worker_arm(r2_tp_worker_t *worker)
{
    ++worker->stub->arms;
    return R2_OK;
}

static r2_status_t stub_ep_open(r2_tp_worker_t *worker, void *ep_arg, r2_tp_ep_t **ep_p)
{
    (void) ep_arg;
    if (worker->stub->no_device) {
        return R2_ERR_NO_DEVICE;
    }
    *ep_p = malloc(sizeof(**ep_p));
    (*ep_p)->stub = worker->stub;
    (*ep_p)->worker = worker;
    DL_APPEND(worker->stub->eps, *ep_p);
    return R2_OK;
}

static r2_status_t stub_ep_address(r2_tp_ep_t *ep, void *address_p, size_t *bytes_p)
{
    (void) ep;
    memset(address_p, 0x77, 20);
    *bytes_p = 20;
    return R2_OK;
}

static r2_status_t stub_ep_connect(r2_tp_ep_t *ep, const void *address, size_t address_bytes)
{
    volatile uint8_t sum = 0;

    fuzz_check(address_bytes <= R2_TP_ADDRESS_MAX);
    for (size_t i = 0; i < address_bytes; ++i) {
        sum = (uint8_t) (sum + ((const uint8_t *) address)[i]);
    }
    return STUB_BROKEN == ep->stub->mode ? R2_ERR_NO_DEVICE : R2_OK;
}

static void stub_ep_land_off(r2_tp_ep_t *ep)
{
    ++ep->worker->stub->lands_off;
}

static uint64_t stub_ep_path_rate(const r2_tp_ep_t *ep, uint64_t *window_bytes_p)
{
    *window_bytes_p = ep->worker->stub->path_window_bytes;
    return ep->worker->stub->path_bytes_per_s;
}

static void stub_ep_close(r2_tp_ep_t *ep)
{
    fuzz_check(!ep->stub->net.in_callback);
    stub_ep_free(ep);
}

static r2_status_t stub_keep(r2_tp_ep_t *ep, r2_tp_send_t *op)
{
    stub_send_t *send = malloc(sizeof(*send));

    send->ep = ep;
    send->op = op;
    DL_APPEND(ep->stub->sends, send);
    ++ep->stub->send_count;
    return R2_IN_PROGRESS;
}

/* Without a header, as all that is to be moved by NICs alone. */
static r2_status_t stub_move(r2_tp_ep_t *ep, r2_tp_send_t *op, const r2_tp_target_t *target)
{
    fuzz_check(!ep->stub->net.in_callback && 0 == op->header_bytes);
    ep->stub->moved_to = target->address;
    return ep->stub->moves_wait ? stub_keep(ep, op) : R2_OK;
}

static r2_status_t stub_send(r2_tp_ep_t *ep, r2_tp_send_t *op)
{
    stub_net_t *stub = ep->stub;

    fuzz_check(!stub->net.in_callback);
    fuzz_check(op->header_bytes + op->data_bytes <= stub->net.segment_bytes);
    if (STUB_AT_ONCE == stub->mode) {
        return R2_OK;
    }
    if (STUB_BROKEN == stub->mode) {
        return R2_ERR_LANE_DOWN;
    }
    if (STUB_STARVED == stub->mode) {
        return R2_ERR_NO_MEMORY;
    }
    return stub_keep(ep, op);
}

static r2_status_t stub_grant(r2_tp_worker_t *worker, void *data, size_t bytes,
                              const r2_tp_memory_t *memory, void *key_p, size_t *key_bytes_p,
                              void **grant_p)
{
    (void) bytes;
    worker->stub->granted = data;
    worker->stub->granted_gpu = NULL == memory ? 0 : memory->gpu_id;
    memset(key_p, 0x55, 8);
    *key_bytes_p = 8;
    *grant_p = worker;
    ++worker->stub->grants;
    return R2_OK;
}

static bool stub_ep_reads_gpus(const r2_tp_ep_t *ep)
{
    return ep->stub->reads_gpus;
}

static void stub_ungrant(r2_tp_worker_t *worker, void *grant)
{
    fuzz_check(grant == worker && worker->stub->grants > 0);
    --worker->stub->grants;
}

static bool stub_has_room(void *tp, uint32_t devices, uint32_t workers, uint32_t eps)
{
    (void) devices;
    (void) workers;
    (void) eps;
    return !((const stub_net_t *) tp)->no_room;
}

const r2_tp_ops_t stub_tp_ops = {
    .name = "stub",
    .has_room = stub_has_room,
    .device_open = stub_device_open,
    .device_close = stub_device_close,
    .worker_create = stub_worker_create,
    .worker_destroy = stub_worker_destroy,
    .worker_progress = stub_worker_progress,
    .worker_fd = stub_worker_fd,
    .worker_arm = stub_worker_arm,
    .worker_signals = stub_worker_signals,
    .ep_open = stub_ep_open,
    .ep_address = stub_ep_address,
    .ep_connect = stub_ep_connect,
    .ep_close = stub_ep_close,
    .ep_land_off = stub_ep_land_off,
    .send = stub_send,
    .ep_path_rate = stub_ep_path_rate,
    .ep_reads_gpus = stub_ep_reads_gpus,
    .grant = stub_grant,
    .ungrant = stub_ungrant,
    .put = stub_move,
    .get = stub_move,
};
