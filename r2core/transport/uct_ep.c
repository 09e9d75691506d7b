/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Endpoints of the UCT transport: open, connect to the peer's endpoint, close.
 */
#include "r2_config.h"

#include "transport/uct.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utlist.h>

#include "base/fork.h"

#define EVENTS_MAX 16 /* of one look; the rest comes with the next */

r2_status_t r2_uct_ep_open(r2_tp_worker_t *worker, void *ep_arg, r2_tp_ep_t **ep_p)
{
    const uct_ep_params_t params = {.field_mask = UCT_EP_PARAM_FIELD_IFACE,
                                    .iface = worker->port.iface};
    r2_tp_ep_t *ep = calloc(1, sizeof(*ep));
    ucs_status_t rc = UCS_OK;

    if (NULL == ep) {
        return R2_ERR_NO_MEMORY;
    }
    if (worker->to_ep) {
        r2_ucx_enter();
        rc = uct_ep_create(&params, &ep->uct_ep);
        r2_ucx_leave();
    }
    if (UCS_OK != rc) {
        free(ep);
        return UCS_ERR_NO_MEMORY == rc ? R2_ERR_NO_MEMORY : R2_ERR_NO_DEVICE;
    }
    ep->ops = &r2_uct_ops;
    ep->worker = worker;
    ep->arg = ep_arg;
    ep->pidfd = -1;
    ++worker->stream.number;
    ep->stream = worker->stream;
    DL_APPEND(worker->eps, ep);
    *ep_p = ep;
    return R2_OK;
}

r2_status_t r2_uct_ep_address(r2_tp_ep_t *ep, void *address_p, size_t *bytes_p)
{
    return r2_uct_address_write(&ep->worker->port, ep->uct_ep, address_p, R2_TP_ADDRESS_MAX,
                                bytes_p);
}

/** Within the host UCX tells nothing of a peer that ends: the kernel does. */
static void r2_uct_watch_process(r2_tp_ep_t *ep, uint32_t pid)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = ep};

    ep->pidfd = r2_fd_keep((int) syscall(SYS_pidfd_open, (pid_t) pid, 0));
    if (ep->pidfd >= 0) {
        (void) epoll_ctl(ep->worker->fd, EPOLL_CTL_ADD, ep->pidfd, &event);
    }
}

/** Ends the watch. A child of fork() may hold the descriptor: it would stay in the epoll set. */
static void r2_uct_unwatch_process(r2_tp_ep_t *ep)
{
    if (ep->pidfd >= 0) {
        (void) epoll_ctl(ep->worker->fd, EPOLL_CTL_DEL, ep->pidfd, NULL);
        r2_fd_close(ep->pidfd);
        ep->pidfd = -1;
    }
}

static ucs_status_t r2_uct_connect_to_iface(r2_tp_ep_t *ep, const r2_uct_address_t *address)
{
    const uct_device_addr_t *device = (const void *) address->device;
    const uct_iface_addr_t *iface = (const void *) address->iface;
    const uct_ep_params_t params = {.field_mask = UCT_EP_PARAM_FIELD_IFACE |
                                                  UCT_EP_PARAM_FIELD_DEV_ADDR |
                                                  UCT_EP_PARAM_FIELD_IFACE_ADDR,
                                    .iface = ep->worker->port.iface,
                                    .dev_addr = device,
                                    .iface_addr = iface};
    ucs_status_t rc;

    if (!uct_iface_is_reachable(ep->worker->port.iface, device, iface)) {
        return UCS_ERR_UNREACHABLE;
    }
    rc = uct_ep_create(&params, &ep->uct_ep);
    ep->uct_ep = UCS_OK == rc ? ep->uct_ep : NULL;
    return rc;
}

static ucs_status_t r2_uct_connect_to_ep(const r2_tp_ep_t *ep, const r2_uct_address_t *address)
{
    const r2_uct_port_t *port = &ep->worker->port;
    const uct_device_addr_t *device = (const void *) address->device;

    if (!uct_iface_is_reachable(port->iface, device, (const void *) address->iface)) {
        return UCS_ERR_UNREACHABLE;
    }
    return uct_ep_connect_to_ep(ep->uct_ep, device, (const void *) address->ep);
}

/** Why an endpoint could not be connected. Without descriptors UCX speaks of an I/O error. */
static r2_status_t r2_uct_connect_status(const r2_tp_ep_t *ep, ucs_status_t rc)
{
    if (UCS_OK == rc || UCS_ERR_NO_MEMORY == rc || UCS_ERR_NO_DEVICE == rc) {
        return r2_uct_status(rc);
    }
    if (!r2_uct_has_room(ep->worker->device->uct, 0, 0, 1)) {
        return R2_ERR_NO_DESCRIPTORS;
    }
    return UCS_ERR_CONNECTION_RESET == rc ? R2_ERR_LANE_DOWN : R2_ERR_NO_PATH;
}

r2_status_t r2_uct_ep_connect(r2_tp_ep_t *ep, const void *address, size_t address_bytes)
{
    const r2_tp_worker_t *worker = ep->worker;
    r2_uct_address_t to;
    ucs_status_t rc;

    r2_assert(!ep->connected);
    if (!r2_uct_address_read(&worker->port, worker->to_ep, address, address_bytes, &to)) {
        return R2_ERR_NO_PATH;
    }
    if (R2_OK != ep->failure) {
        return R2_ERR_LANE_DOWN; /* the peer connected to it, and is gone again */
    }
    r2_ucx_enter();
    rc = worker->to_ep ? r2_uct_connect_to_ep(ep, &to) : r2_uct_connect_to_iface(ep, &to);
    r2_ucx_leave();
    ep->connected = UCS_OK == rc;
    if (ep->connected && worker->device->kind->is_local) {
        r2_uct_watch_process(ep, to.pid);
    }
    return r2_uct_connect_status(ep, rc);
}

/** Completes what the endpoint was given. */
static void r2_uct_tell_canceled(r2_tp_ep_t *ep)
{
    r2_tp_worker_t *worker = ep->worker;
    r2_uct_record_t *record, *next;

    DL_FOREACH_SAFE(worker->completed, record, next) {
        if (record->ep == ep) {
            DL_DELETE(worker->completed, record);
            r2_uct_record_tell(record, R2_ERR_CANCELED);
        }
    }
}

void r2_uct_ep_close(r2_tp_ep_t *ep)
{
    r2_tp_worker_t *worker = ep->worker;

    r2_assert(!worker->in_progress);
    r2_uct_send_withdraw(ep);
    if (NULL != ep->uct_ep) {
        r2_ucx_enter();
        uct_ep_destroy(ep->uct_ep); /* completes what is in flight */
        r2_ucx_leave();
    }
    r2_assert(NULL == ep->in_flight);
    DL_DELETE(worker->eps, ep);
    r2_uct_unwatch_process(ep);
    r2_uct_tell_canceled(ep);
    free(ep);
}

void r2_uct_eps_watch(r2_tp_worker_t *worker)
{
    struct epoll_event events[EVENTS_MAX];
    const int count = epoll_wait(worker->fd, events, EVENTS_MAX, 0);

    for (int i = 0; i < count; ++i) {
        r2_tp_ep_t *ep = events[i].data.ptr;

        if (NULL != ep) { /* else UCX's own descriptor */
            r2_uct_unwatch_process(ep);
            r2_uct_ep_fail(ep, R2_ERR_LANE_DOWN);
        }
    }
}
