/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The TCP transport: its devices and its table.
 */
#include "r2_config.h"

#include "transport/tcp.h"

#include <stdio.h>
#include <stdlib.h>

static r2_status_t r2_tcp_device_open(void *tp, const r2_tp_device_config_t *config,
                                      r2_tp_device_t **device_p)
{
    r2_tcp_device_t *device;
    uint32_t ipv4;
    const r2_status_t status = r2_tcp_nic_ipv4(config->name, &ipv4);

    (void) tp;
    if (R2_OK != status || config->segment_bytes > R2_TCP_DATA_MAX) {
        return R2_OK == status ? R2_ERR_UNSUPPORTED : status;
    }
    device = calloc(1, sizeof(*device));
    if (NULL == device) {
        return R2_ERR_NO_MEMORY;
    }
    device->ops = &r2_tcp_ops;
    snprintf(device->name, sizeof(device->name), "%s", config->name);
    device->segment_bytes = config->segment_bytes;
    *device_p = (r2_tp_device_t *) device;
    return R2_OK;
}

static void r2_tcp_device_close(r2_tp_device_t *device)
{
    free(device);
}

const r2_tp_ops_t r2_tcp_ops = {
    .name = "tcp",
    .device_open = r2_tcp_device_open,
    .device_close = r2_tcp_device_close,
    .worker_create = r2_tcp_worker_create,
    .worker_destroy = r2_tcp_worker_destroy,
    .worker_progress = r2_tcp_worker_progress,
    .ep_progress = r2_tcp_ep_progress,
    .worker_fd = r2_tcp_worker_fd,
    .worker_arm = r2_tcp_worker_arm,
    .worker_signals = r2_tcp_worker_signals,
    .ep_open = r2_tcp_ep_open,
    .ep_address = r2_tcp_ep_address,
    .ep_connect = r2_tcp_ep_connect,
    .ep_close = r2_tcp_ep_close,
    .ep_land_off = r2_tcp_ep_land_off,
    .send = r2_tcp_send,
    .ep_path_rate = r2_tcp_ep_path_rate,
};
