/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The UCX transport: one UCX context per device, active messages, endpoints closed by force.
 */
#include "r2_config.h"

#include "transport/ucx.h"

#include <stdlib.h>

r2_status_t r2_ucx_status(ucs_status_t rc)
{
    switch ((int) rc) {
    case UCS_OK:
        return R2_OK;
    case UCS_ERR_NO_MEMORY:
        return R2_ERR_NO_MEMORY;
    case UCS_ERR_NO_DEVICE:
        return R2_ERR_NO_DEVICE;
    case UCS_ERR_UNREACHABLE:
        return R2_ERR_NO_PATH;
    case UCS_ERR_CANCELED:
        return R2_ERR_CANCELED;
    case UCS_ERR_EXCEEDS_LIMIT:
        return R2_ERR_NO_DESCRIPTORS;
    case UCS_ERR_REJECTED:
        return R2_ERR_REFUSED;
    case UCS_ERR_TIMED_OUT:
        return R2_ERR_TIMEOUT;
    default: /* UCS_ERR_ENDPOINT_TIMEOUT too: a reset, or whatever, to UCX 1.13 */
        return R2_ERR_LANE_DOWN;
    }
}

/** Opens a context. @return UCX's code; UCS_ERR_EXCEEDS_LIMIT without the descriptors that it
 * takes. */
static ucs_status_t context_open(r2_ucx_t *ucx, const r2_tp_device_config_t *config,
                                 r2_tp_device_t *device)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                           .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP};
    ucp_config_t *ucp_config;
    ucs_status_t rc;

    if (!r2_ucx_fds_allow(ucx, 1)) {
        return UCS_ERR_EXCEEDS_LIMIT;
    }
    rc = r2_ucx_config_create(ucx, config, &ucp_config, &device->immediate_bytes);
    if (UCS_OK == rc) {
        rc = ucp_init(&params, ucp_config, &device->context);
        ucp_config_release(ucp_config);
    }
    return rc;
}

static r2_status_t device_open(void *tp, const r2_tp_device_config_t *config,
                               r2_tp_device_t **device_p)
{
    r2_tp_device_t *device = calloc(1, sizeof(*device));
    r2_ucx_t *ucx = tp;
    ucs_status_t rc;

    if (NULL == device) {
        return R2_ERR_NO_MEMORY;
    }
    device->segment_bytes = config->segment_bytes;
    device->signals = r2_ucx_config_signals(config);
    device->ucx = ucx;
    r2_ucx_fds_enter(ucx);
    rc = context_open(ucx, config, device);
    r2_ucx_fds_leave(ucx);
    if (UCS_OK != rc) {
        free(device);
        return UCS_ERR_NO_DEVICE == rc || UCS_ERR_NO_MEMORY == rc || UCS_ERR_EXCEEDS_LIMIT == rc
                   ? r2_ucx_status(rc)
                   : R2_ERR_UNSUPPORTED;
    }
    ucx->contexts++;
    *device_p = device;
    return R2_OK;
}

static void device_close(r2_tp_device_t *device)
{
    r2_ucx_fds_enter(device->ucx);
    ucp_cleanup(device->context);
    r2_ucx_fds_leave(device->ucx);
    device->ucx->contexts--;
    free(device);
}

static const r2_tp_ops_t ucx_ops = {
    .name = "ucx",
    .has_room = r2_ucx_has_room,
    .device_open = device_open,
    .device_close = device_close,
    .worker_create = r2_ucx_worker_create,
    .worker_destroy = r2_ucx_worker_destroy,
    .worker_progress = r2_ucx_worker_progress,
    .worker_fd = r2_ucx_worker_fd,
    .worker_arm = r2_ucx_worker_arm,
    .worker_signals = r2_ucx_worker_signals,
    .ep_open = r2_ucx_ep_open,
    .ep_address = r2_ucx_ep_address,
    .ep_connect = r2_ucx_ep_connect,
    .ep_close = r2_ucx_ep_close,
    .send = r2_ucx_send,
};

r2_status_t r2_tp_ucx_create(r2_tp_t *tp_p)
{
    r2_ucx_t *ucx = calloc(1, sizeof(*ucx));
    unsigned release;

    if (NULL == ucx) {
        return R2_ERR_NO_MEMORY;
    }
    ucp_get_version(&ucx->major, &ucx->minor, &release);
    ucx->filters_log = r2_ucx_log_init();
    r2_ucx_fds_init(ucx);
    tp_p->ops = &ucx_ops;
    tp_p->instance = ucx;
    return R2_OK;
}

void r2_tp_ucx_destroy(r2_tp_t *tp)
{
    r2_ucx_t *ucx = tp->instance;

    if (ucx->filters_log) {
        r2_ucx_log_fini();
    }
    r2_ucx_fds_fini(ucx);
    free(ucx);
    tp->instance = NULL;
}

const char *r2_tp_ucx_version(void)
{
    return ucp_get_version_string();
}
