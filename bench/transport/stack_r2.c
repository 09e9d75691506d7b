/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * r2's transport table.
 */
#include "r2_config.h"

#include <string.h>

#include "bench/transport/pair.h"
#include "r2/transport.h"

static struct {
    r2_tp_t tp;
    r2_tp_device_t *device;
    r2_tp_worker_t *worker;
    r2_tp_ep_t *ep;
    r2_tp_send_t ops[PAIR_WINDOW + 1];
    bool busy[PAIR_WINDOW + 1];
} me;

static void on_received(void *arg, const void *header, size_t header_bytes, const void *data,
                        size_t data_bytes)
{
    (void) arg;
    pair_received(header, header_bytes, data, data_bytes);
}

static void on_failed(void *arg, void *ep_arg, r2_status_t status)
{
    (void) arg;
    (void) ep_arg;
    pair_die("lane failed", r2_status_name(status));
}

static void on_sent(r2_tp_send_t *op, r2_status_t status)
{
    if (R2_OK != status) {
        pair_die("send", r2_status_name(status));
    }
    me.busy[op - me.ops] = false;
    pair_sent();
}

static void try(const char *what, r2_status_t status)
{
    if (R2_OK != status) {
        pair_die(what, r2_status_name(status));
    }
}

static void r2_open(const char *nic)
{
    static const r2_tp_callbacks_t callbacks = {.received = on_received, .failed = on_failed};
    r2_tp_device_config_t config = {.name = nic,
                                    .segment_bytes = PAIR_DATA_MAX + PAIR_HEADER_BYTES};

    try("transport", r2_tp_create(&me.tp));
    try("device", me.tp.ops->device_open(me.tp.instance, &config, &me.device));
    try("worker", me.tp.ops->worker_create(me.device, &callbacks, NULL, &me.worker));
}

static void r2_address(char address_p[PAIR_ADDRESS_BYTES])
{
    size_t bytes;

    try("endpoint", me.tp.ops->ep_open(me.worker, NULL, &me.ep));
    try("address", me.tp.ops->ep_address(me.ep, address_p + sizeof(bytes), &bytes));
    memcpy(address_p, &bytes, sizeof(bytes));
}

static void r2_connect(const char address[PAIR_ADDRESS_BYTES])
{
    size_t bytes;

    memcpy(&bytes, address, sizeof(bytes));
    try("connection", me.tp.ops->ep_connect(me.ep, address + sizeof(bytes), bytes));
}

static bool r2_send(const void *header, size_t header_bytes, const void *data, size_t data_bytes)
{
    size_t i = 0;
    r2_status_t status;

    while (me.busy[i]) {
        ++i; /* the window is smaller */
    }
    me.ops[i] = (r2_tp_send_t){.header = header,
                               .header_bytes = header_bytes,
                               .data = data,
                               .data_bytes = data_bytes,
                               .sent = on_sent};
    status = me.tp.ops->send(me.ep, &me.ops[i]);
    if (status < 0) {
        pair_die("send", r2_status_name(status));
    }
    me.busy[i] = R2_IN_PROGRESS == status;
    if (R2_OK == status) {
        pair_sent();
    }
    return true;
}

static unsigned r2_progress(void)
{
    return me.tp.ops->worker_progress(me.worker);
}

static void r2_sleep(void)
{
    if (R2_OK == me.tp.ops->worker_arm(me.worker)) {
        pair_poll(me.tp.ops->worker_fd(me.worker));
    }
}

const pair_stack_t pair_r2 = {.name = "r2",
                              .lengths = {true, true},
                              .open = r2_open,
                              .address = r2_address,
                              .connect = r2_connect,
                              .send = r2_send,
                              .progress = r2_progress,
                              .sleep = r2_sleep};
