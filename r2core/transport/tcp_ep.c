/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Endpoints of the TCP transport: open, connect to the peer's endpoint, close.
 */
#include "r2_config.h"

#include "transport/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <utlist.h>

#include "base/fork.h"

static r2_tcp_ep_t *r2_tcp_ep_of(r2_tp_ep_t *ep)
{
    return (r2_tcp_ep_t *) (void *) ep;
}

r2_status_t r2_tcp_ep_open(r2_tp_worker_t *tp_worker, void *ep_arg, r2_tp_ep_t **ep_p)
{
    r2_tcp_worker_t *worker = (r2_tcp_worker_t *) (void *) tp_worker;
    r2_tcp_ep_t *ep = calloc(1, sizeof(*ep));

    if (NULL == ep) {
        return R2_ERR_NO_MEMORY;
    }
    ep->ops = &r2_tcp_ops;
    ep->source = R2_TCP_EP;
    ep->worker = worker;
    ep->arg = ep_arg;
    ep->fd = -1;
    ep->own = (r2_tcp_token_t){worker->random, ++worker->numbers};
    DL_APPEND(worker->eps, ep);
    *ep_p = (r2_tp_ep_t *) (void *) ep;
    return R2_OK;
}

r2_status_t r2_tcp_ep_address(r2_tp_ep_t *tp_ep, void *address_p, size_t *bytes_p)
{
    const r2_tcp_ep_t *ep = r2_tcp_ep_of(tp_ep);
    const r2_tcp_address_t address = {
        .ipv4 = ep->worker->ipv4, .port = ep->worker->port, .token = ep->own};

    memcpy(address_p, &address, sizeof(address));
    *bytes_p = sizeof(address);
    return R2_OK;
}

/** Both know of one another, and the socket is connected. */
static void r2_tcp_ep_ready(r2_tcp_ep_t *ep)
{
    ep->open = true;
    (void) r2_tcp_flush(ep);
}

void r2_tcp_ep_greeted(r2_tcp_ep_t *ep, int fd, const r2_tcp_token_t *from)
{
    ep->fd = fd;
    ep->peer = *from;
    r2_tcp_tune(fd);
    if (!r2_tcp_watch(ep->worker, EPOLL_CTL_MOD, fd, EPOLLIN, &ep->source)) {
        r2_tcp_ep_fail(ep, R2_ERR_NO_MEMORY);
    } else if (ep->connected) {
        r2_tcp_ep_ready(ep);
    }
}

void r2_tcp_ep_dialed(r2_tcp_ep_t *ep)
{
    const r2_tcp_greeting_t greeting = {R2_TCP_MAGIC, ep->peer, ep->own};
    int error = 0;
    socklen_t bytes = sizeof(error);

    ep->dials = false;
    if (0 != getsockopt(ep->fd, SOL_SOCKET, SO_ERROR, &error, &bytes) || 0 != error) {
        r2_tcp_ep_fail(ep, r2_tcp_status(0 == error ? errno : error));
    } else if ((ssize_t) sizeof(greeting) !=
                   send(ep->fd, &greeting, sizeof(greeting), MSG_NOSIGNAL | MSG_DONTWAIT) ||
               !r2_tcp_watch(ep->worker, EPOLL_CTL_MOD, ep->fd, EPOLLIN, &ep->source)) {
        r2_tcp_ep_fail(ep, R2_ERR_LANE_DOWN);
    } else {
        r2_tcp_ep_ready(ep);
    }
}

static r2_status_t r2_tcp_ep_dial(r2_tcp_ep_t *ep, const r2_tcp_address_t *to)
{
    const r2_tcp_worker_t *worker = ep->worker;
    const r2_status_t status = r2_tcp_dial(worker->device->name, worker->ipv4, to, &ep->fd);

    if (R2_OK != status) {
        ep->fd = -1;
        return status;
    }
    ep->dials = true;
    if (!r2_tcp_watch(worker, EPOLL_CTL_ADD, ep->fd, EPOLLOUT, &ep->source)) {
        return R2_ERR_NO_MEMORY;
    }
    return R2_OK;
}

/** The endpoint waits for its peer's call, or has got it. */
static r2_status_t r2_tcp_ep_await(r2_tcp_ep_t *ep, const r2_tcp_address_t *from)
{
    if (ep->fd >= 0 &&
        (ep->peer.worker != from->token.worker || ep->peer.number != from->token.number)) {
        return R2_ERR_NO_PATH; /* somebody else's */
    }
    ep->peer = from->token;
    if (ep->fd >= 0) {
        r2_tcp_ep_ready(ep);
    }
    return R2_OK;
}

r2_status_t r2_tcp_ep_connect(r2_tp_ep_t *tp_ep, const void *address, size_t address_bytes)
{
    r2_tcp_ep_t *ep = r2_tcp_ep_of(tp_ep);
    r2_tcp_address_t to;
    r2_status_t status;

    r2_assert(!ep->connected);
    if (sizeof(to) != address_bytes) {
        return R2_ERR_NO_PATH;
    }
    memcpy(&to, address, sizeof(to));
    if (R2_OK != ep->failure) {
        return R2_ERR_LANE_DOWN; /* the peer connected to it, and is gone again */
    }
    if (r2_tcp_dials(&ep->own, &to.token)) {
        r2_assert(ep->fd < 0); /* greetings of those that we dial are refused */
        ep->peer = to.token;
        status = r2_tcp_ep_dial(ep, &to);
    } else {
        status = r2_tcp_ep_await(ep, &to);
    }
    ep->connected = R2_OK == status;
    return status;
}

void r2_tcp_ep_close(r2_tp_ep_t *tp_ep)
{
    r2_tcp_ep_t *ep = r2_tcp_ep_of(tp_ep);
    r2_tcp_worker_t *worker = ep->worker;

    r2_assert(!worker->in_progress);
    DL_DELETE(worker->eps, ep);
    if (ep == worker->recent) {
        worker->recent = NULL;
    }
    if (ep->fd >= 0) {
        /* A child of fork() may hold the descriptor: it would stay in the epoll set. */
        (void) epoll_ctl(worker->epoll_fd, EPOLL_CTL_DEL, ep->fd, NULL);
        r2_fd_close(ep->fd);
        r2_tcp_hear(worker);
    }
    if (NULL != ep->packet) {
        r2_tcp_packet_put(worker, ep->packet);
    }
    r2_tcp_withdraw(ep);
    free(ep);
}
