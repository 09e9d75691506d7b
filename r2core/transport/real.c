/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The transports of a process behind one table: TCP of our own, all else UCX.
 */
#include "r2_config.h"

#include <stdlib.h>

#include "r2/transport.h"
#include "transport/tcp.h"

/* What devices, workers and endpoints of all transports begin with. */
typedef struct object {
    const r2_tp_ops_t *ops; /* borrowed: static */
} object_t;

/** The instance. */
typedef struct real {
    r2_tp_t ucx; /* owned */
} real_t;

static const r2_tp_ops_t *r2_real_ops(const void *object)
{
    return ((const object_t *) object)->ops;
}

static bool r2_real_has_room(void *tp, uint32_t devices, uint32_t workers, uint32_t eps)
{
    const r2_tp_t *ucx = &((real_t *) tp)->ucx;

    return ucx->ops->has_room(ucx->instance, devices, workers, eps);
}

static r2_status_t r2_real_device_open(void *tp, const r2_tp_device_config_t *config,
                                       r2_tp_device_t **device_p)
{
    const r2_tp_t *ucx = &((real_t *) tp)->ucx;

    return NULL != config->name && NULL == config->tls
               ? r2_tcp_ops.device_open(NULL, config, device_p)
               : ucx->ops->device_open(ucx->instance, config, device_p);
}

static void r2_real_device_close(r2_tp_device_t *device)
{
    r2_real_ops(device)->device_close(device);
}

static bool r2_real_device_refused(const r2_tp_device_t *device, r2_tp_refusal_t *refusal_p)
{
    const r2_tp_ops_t *ops = r2_real_ops(device);

    return NULL != ops->device_refused && ops->device_refused(device, refusal_p);
}

static r2_status_t r2_real_worker_create(r2_tp_device_t *device, const r2_tp_callbacks_t *callbacks,
                                         void *arg, r2_tp_worker_t **worker_p)
{
    return r2_real_ops(device)->worker_create(device, callbacks, arg, worker_p);
}

static void r2_real_worker_destroy(r2_tp_worker_t *worker)
{
    r2_real_ops(worker)->worker_destroy(worker);
}

static unsigned r2_real_worker_progress(r2_tp_worker_t *worker)
{
    return r2_real_ops(worker)->worker_progress(worker);
}

static unsigned r2_real_ep_progress(r2_tp_worker_t *worker, r2_tp_ep_t *ep)
{
    const r2_tp_ops_t *ops = r2_real_ops(worker);

    return NULL != ops->ep_progress ? ops->ep_progress(worker, ep) : ops->worker_progress(worker);
}

static int r2_real_worker_fd(r2_tp_worker_t *worker)
{
    return r2_real_ops(worker)->worker_fd(worker);
}

static r2_status_t r2_real_worker_arm(r2_tp_worker_t *worker)
{
    return r2_real_ops(worker)->worker_arm(worker);
}

static bool r2_real_worker_signals(const r2_tp_worker_t *worker)
{
    return r2_real_ops(worker)->worker_signals(worker);
}

static bool r2_real_worker_is_loose(const r2_tp_worker_t *worker)
{
    const r2_tp_ops_t *ops = r2_real_ops(worker);

    return NULL != ops->worker_is_loose && ops->worker_is_loose(worker);
}

static r2_status_t r2_real_ep_open(r2_tp_worker_t *worker, void *ep_arg, r2_tp_ep_t **ep_p)
{
    return r2_real_ops(worker)->ep_open(worker, ep_arg, ep_p);
}

static r2_status_t r2_real_ep_address(r2_tp_ep_t *ep, void *address_p, size_t *bytes_p)
{
    return r2_real_ops(ep)->ep_address(ep, address_p, bytes_p);
}

static r2_status_t r2_real_ep_connect(r2_tp_ep_t *ep, const void *address, size_t address_bytes)
{
    return r2_real_ops(ep)->ep_connect(ep, address, address_bytes);
}

static void r2_real_ep_close(r2_tp_ep_t *ep)
{
    r2_real_ops(ep)->ep_close(ep);
}

static void r2_real_ep_land_off(r2_tp_ep_t *ep)
{
    const r2_tp_ops_t *ops = r2_real_ops(ep);

    if (NULL != ops->ep_land_off) {
        ops->ep_land_off(ep);
    }
}

static r2_status_t r2_real_send(r2_tp_ep_t *ep, r2_tp_send_t *op)
{
    return r2_real_ops(ep)->send(ep, op);
}

static uint64_t r2_real_ep_path_rate(const r2_tp_ep_t *ep, uint64_t *window_bytes_p)
{
    const r2_tp_ops_t *ops = r2_real_ops(ep);

    return NULL == ops->ep_path_rate ? 0 : ops->ep_path_rate(ep, window_bytes_p);
}

static bool r2_real_ep_reads_gpus(const r2_tp_ep_t *ep)
{
    const r2_tp_ops_t *ops = r2_real_ops(ep);

    return NULL != ops->ep_reads_gpus && ops->ep_reads_gpus(ep);
}

static r2_status_t r2_real_grant(r2_tp_worker_t *worker, void *data, size_t bytes,
                                 const r2_tp_memory_t *memory, void *key_p, size_t *key_bytes_p,
                                 void **grant_p)
{
    const r2_tp_ops_t *ops = r2_real_ops(worker);

    return NULL == ops->grant
               ? R2_ERR_UNSUPPORTED
               : ops->grant(worker, data, bytes, memory, key_p, key_bytes_p, grant_p);
}

static void r2_real_ungrant(r2_tp_worker_t *worker, void *grant)
{
    r2_real_ops(worker)->ungrant(worker, grant);
}

static void *r2_real_pin_begin(r2_tp_worker_t *worker, void *data, size_t bytes)
{
    const r2_tp_ops_t *ops = r2_real_ops(worker);

    return NULL == ops->pin_begin ? NULL : ops->pin_begin(worker, data, bytes);
}

static void r2_real_pin(r2_tp_worker_t *worker, void *pin)
{
    r2_real_ops(worker)->pin(worker, pin);
}

static void r2_real_pin_end(r2_tp_worker_t *worker, void *pin)
{
    r2_real_ops(worker)->pin_end(worker, pin);
}

static r2_status_t r2_real_put(r2_tp_ep_t *ep, r2_tp_send_t *op, const r2_tp_target_t *target)
{
    const r2_tp_ops_t *ops = r2_real_ops(ep);

    return NULL == ops->put ? R2_ERR_UNSUPPORTED : ops->put(ep, op, target);
}

static r2_status_t r2_real_get(r2_tp_ep_t *ep, r2_tp_send_t *op, const r2_tp_target_t *target)
{
    const r2_tp_ops_t *ops = r2_real_ops(ep);

    return NULL == ops->get ? R2_ERR_UNSUPPORTED : ops->get(ep, op, target);
}

static const r2_tp_ops_t real_ops = {
    .name = "real",
    .has_room = r2_real_has_room,
    .device_open = r2_real_device_open,
    .device_close = r2_real_device_close,
    .device_refused = r2_real_device_refused,
    .worker_create = r2_real_worker_create,
    .worker_destroy = r2_real_worker_destroy,
    .worker_progress = r2_real_worker_progress,
    .ep_progress = r2_real_ep_progress,
    .worker_fd = r2_real_worker_fd,
    .worker_arm = r2_real_worker_arm,
    .worker_signals = r2_real_worker_signals,
    .worker_is_loose = r2_real_worker_is_loose,
    .ep_open = r2_real_ep_open,
    .ep_address = r2_real_ep_address,
    .ep_connect = r2_real_ep_connect,
    .ep_close = r2_real_ep_close,
    .ep_land_off = r2_real_ep_land_off,
    .send = r2_real_send,
    .ep_path_rate = r2_real_ep_path_rate,
    .ep_reads_gpus = r2_real_ep_reads_gpus,
    .grant = r2_real_grant,
    .ungrant = r2_real_ungrant,
    .pin_begin = r2_real_pin_begin,
    .pin = r2_real_pin,
    .pin_end = r2_real_pin_end,
    .put = r2_real_put,
    .get = r2_real_get,
};

r2_status_t r2_tp_create(r2_tp_t *tp_p)
{
    real_t *real = calloc(1, sizeof(*real));
    r2_status_t status;

    if (NULL == real) {
        return R2_ERR_NO_MEMORY;
    }
    status = r2_tp_ucx_create(&real->ucx);
    if (R2_OK != status) {
        free(real);
        return status;
    }
    tp_p->ops = &real_ops;
    tp_p->instance = real;
    return R2_OK;
}

void r2_tp_destroy(r2_tp_t *tp)
{
    real_t *real = tp->instance;

    r2_tp_ucx_destroy(&real->ucx);
    free(real);
    tp->instance = NULL;
}

const r2_tp_t *r2_tp_ucx(const r2_tp_t *tp)
{
    const real_t *real = tp->instance;

    return &real->ucx;
}
