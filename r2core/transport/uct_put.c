/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Puts of the UCT transport: of no bytes, for probes.
 */
#include "r2_config.h"

#include <stdlib.h>
#include <string.h>

#include "transport/put.h"
#include "transport/uct.h"

/*
 * UCT sends puts of no bytes, which write nothing and need no key (UCP calls them done without
 * sending anything), and forgets an endpoint when it is destroyed.
 *
 * Askers connect to interfaces: a target publishes one address to all. Each asker has an interface
 * of its own: two processes that ask each other have two connections, which UCX does not try to
 * join (it aborts when both ends connect and one does so twice, tcp_cm.c:519).
 */

#define PUT_EVENTS_MAX 64 /* of one progress(), so that others get their turn */

struct r2_put_device {
    r2_uct_t *uct; /* borrowed: outlives the device */
    r2_uct_domain_t domain;
};

typedef enum put_phase {
    PUT_TARGET,  /* writes nothing */
    PUT_WRITING, /* not taken by UCX yet: connects */
    PUT_BEHIND,  /* the flush behind it is not taken yet */
    PUT_WAITING  /* for the answer */
} put_phase_t;

struct r2_put_end {
    r2_uct_port_t port;
    uct_ep_h ep; /* owned; asker */
    put_phase_t phase;
    r2_status_t status; /* R2_IN_PROGRESS until it is known */
    uct_completion_t answered;
};

/* ---- devices ---- */

static r2_status_t r2_uct_device_open(void *put, const char *name, const char *tls,
                                      r2_put_device_t **device_p)
{
    /* those that a device that does not answer takes */
    static const r2_uct_setting_t settings[] = {{"CONN_NB", "y"}, {"MAX_CONN_RETRIES", "1"}};
    r2_put_device_t *device = calloc(1, sizeof(*device));
    size_t count = 0 == strcmp(tls, "tcp") ? r2_array_count(settings) : 0;
    r2_status_t status;

    if (NULL == device) {
        return R2_ERR_NO_MEMORY;
    }
    device->uct = put;
    device->domain.gid_index = -1;
    status = r2_uct_domain_open(tls, name, settings, count, &device->domain);
    if (R2_OK != status) {
        free(device);
        return R2_ERR_NO_DEVICE;
    }
    *device_p = device;
    return R2_OK;
}

static void r2_uct_device_close(r2_put_device_t *device)
{
    r2_uct_domain_close(&device->domain);
    free(device);
}

/* ---- ends ---- */

static void r2_uct_destroy(r2_put_end_t *end)
{
    if (NULL != end->ep) {
        r2_ucx_enter();
        uct_ep_destroy(end->ep);
        r2_ucx_leave();
    }
    r2_uct_port_close(&end->port);
    free(end);
}

/** Called by UCX when a connection fails: notes, and nothing else. A target has nobody to miss. */
static ucs_status_t r2_uct_on_error(void *arg, uct_ep_h ep, ucs_status_t rc)
{
    r2_put_end_t *end = arg;

    if (NULL != end->ep && ep == end->ep && R2_IN_PROGRESS == end->status) {
        end->status = r2_uct_status(rc);
    }
    return UCS_OK;
}

static r2_status_t r2_uct_end_create(const r2_put_device_t *device, r2_put_end_t **end_p)
{
    r2_put_end_t *end;
    r2_status_t status;

    if (!r2_uct_has_room(device->uct, 1, 1, 1)) {
        return R2_ERR_NO_DESCRIPTORS;
    }
    end = calloc(1, sizeof(*end));
    if (NULL == end) {
        return R2_ERR_NO_MEMORY;
    }
    end->status = R2_IN_PROGRESS;
    end->answered.count = 1;
    status = r2_uct_port_open(device->uct, &device->domain, r2_uct_on_error, end, &end->port);
    if (R2_OK != status) {
        free(end);
        return status;
    }
    if (0 == (end->port.attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_IFACE)) {
        r2_uct_destroy(end);
        return R2_ERR_UNSUPPORTED;
    }
    *end_p = end;
    return R2_OK;
}

static r2_status_t r2_uct_target(r2_put_device_t *device, void *address_p, size_t *bytes_p,
                                 r2_put_end_t **end_p)
{
    r2_put_end_t *end;
    r2_status_t status = r2_uct_end_create(device, &end);

    if (R2_OK != status) {
        return status;
    }
    status = r2_uct_address_write(&end->port, NULL, address_p, R2_PUT_ADDRESS_MAX, bytes_p);
    if (R2_OK != status) {
        r2_uct_destroy(end);
        return status;
    }
    *end_p = end;
    return R2_OK;
}

/* ---- askers ---- */

/** Called by UCX: notes, and nothing else. */
static void r2_uct_on_answer(uct_completion_t *answered)
{
    r2_put_end_t *end = r2_container_of(answered, r2_put_end_t, answered);

    if (R2_IN_PROGRESS == end->status) {
        end->status = UCS_OK == answered->status ? R2_OK : r2_uct_status(answered->status);
    }
}

static ucs_status_t r2_uct_put_nothing(const r2_put_end_t *end)
{
    return 0 != (end->port.attr.cap.flags & UCT_IFACE_FLAG_PUT_SHORT)
               ? uct_ep_put_short(end->ep, NULL, 0, 0, 0)
               : uct_ep_put_zcopy(end->ep, NULL, 0, 0, 0, NULL);
}

/** Goes on with what UCX could not take before. */
static void r2_uct_asker_advance(r2_put_end_t *end)
{
    ucs_status_t rc = UCS_OK;

    if (PUT_WRITING == end->phase) {
        rc = r2_uct_put_nothing(end);
        end->phase = UCS_OK == rc || UCS_INPROGRESS == rc ? PUT_BEHIND : PUT_WRITING;
    }
    if (PUT_BEHIND == end->phase) {
        rc = uct_ep_flush(end->ep, UCT_FLUSH_FLAG_LOCAL, &end->answered);
        end->phase = UCS_OK == rc || UCS_INPROGRESS == rc ? PUT_WAITING : PUT_BEHIND;
        end->status = UCS_OK == rc ? R2_OK : end->status;
    }
    if (R2_IN_PROGRESS == end->status && UCS_STATUS_IS_ERR(rc) && UCS_ERR_NO_RESOURCE != rc) {
        end->status = r2_uct_status(rc);
    }
}

static r2_status_t r2_uct_asker_connect(r2_put_end_t *end, const void *address, size_t bytes)
{
    r2_uct_address_t to;
    const uct_device_addr_t *device = (const void *) to.device;
    const uct_iface_addr_t *iface = (const void *) to.iface;
    const uct_ep_params_t params = {.field_mask = UCT_EP_PARAM_FIELD_IFACE |
                                                  UCT_EP_PARAM_FIELD_DEV_ADDR |
                                                  UCT_EP_PARAM_FIELD_IFACE_ADDR,
                                    .iface = end->port.iface,
                                    .dev_addr = device,
                                    .iface_addr = iface};

    if (!r2_uct_address_read(&end->port, false, address, bytes, &to)) {
        return R2_ERR_PARAM;
    }
    if (!end->port.is_tcp && !uct_iface_is_reachable(end->port.iface, device, iface)) {
        return R2_ERR_NO_PATH;
    }
    if (UCS_OK != uct_ep_create(&params, &end->ep)) {
        end->ep = NULL;
        return R2_ERR_NO_PATH;
    }
    end->phase = PUT_WRITING;
    return R2_OK;
}

static r2_status_t r2_uct_start(r2_put_device_t *device, const void *address, size_t bytes,
                                r2_put_end_t **end_p)
{
    r2_put_end_t *end;
    r2_status_t status = r2_uct_end_create(device, &end);

    if (R2_OK != status) {
        return status;
    }
    end->answered.func = r2_uct_on_answer;
    end->answered.status = UCS_OK;
    r2_ucx_enter();
    status = r2_uct_asker_connect(end, address, bytes);
    r2_ucx_leave();
    if (R2_OK != status) {
        r2_uct_destroy(end);
        return status;
    }
    *end_p = end;
    return R2_OK;
}

/* ---- both ---- */

static r2_status_t r2_uct_progress(r2_put_end_t *end)
{
    r2_ucx_enter();
    for (unsigned i = 0; i < PUT_EVENTS_MAX && 0 != uct_worker_progress(end->port.worker); ++i) {
        /* until there is nothing left */
    }
    if (PUT_TARGET != end->phase && R2_IN_PROGRESS == end->status) {
        r2_uct_asker_advance(end);
    }
    r2_ucx_leave();
    return end->status;
}

static int r2_uct_end_fd(const r2_put_end_t *end)
{
    return end->port.fd;
}

static r2_status_t r2_uct_arm(r2_put_end_t *end)
{
    return r2_uct_port_arm(&end->port, true);
}

r2_put_t r2_put_ucx(const r2_tp_t *tp)
{
    static const r2_put_ops_t ops = {
        .device_open = r2_uct_device_open,
        .device_close = r2_uct_device_close,
        .target = r2_uct_target,
        .start = r2_uct_start,
        .progress = r2_uct_progress,
        .fd = r2_uct_end_fd,
        .arm = r2_uct_arm,
        .destroy = r2_uct_destroy,
    };

    return (r2_put_t){&ops, tp->instance};
}
