/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Connections that peers make to a worker of the TCP transport, until they have said for whom.
 */
#include "r2_config.h"

#include "transport/tcp.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <utlist.h>

#include "base/fork.h"

void r2_tcp_guest_close(r2_tcp_worker_t *worker, r2_tcp_guest_t *guest)
{
    DL_DELETE(worker->guests, guest);
    --worker->guest_count;
    if (guest->fd >= 0) {
        /* A child of fork() may hold the descriptor: it would stay in the epoll set. */
        (void) epoll_ctl(worker->epoll_fd, EPOLL_CTL_DEL, guest->fd, NULL);
        r2_fd_close(guest->fd);
    }
    free(guest);
}

/** The endpoint that a greeting is for; NULL: it is closed, or has its connection. */
static r2_tcp_ep_t *r2_tcp_guest_host(const r2_tcp_worker_t *worker,
                                      const r2_tcp_greeting_t *greeting)
{
    r2_tcp_ep_t *ep;

    DL_FOREACH(worker->eps, ep) {
        if (ep->own.number == greeting->to.number && ep->own.worker == greeting->to.worker) {
            break;
        }
    }
    if (NULL == ep || ep->fd >= 0 || R2_OK != ep->failure ||
        r2_tcp_dials(&greeting->to, &greeting->from) ||
        (ep->connected &&
         (ep->peer.worker != greeting->from.worker || ep->peer.number != greeting->from.number))) {
        return NULL;
    }
    return ep;
}

void r2_tcp_guest_read(r2_tcp_worker_t *worker, r2_tcp_guest_t *guest)
{
    char *to = (char *) &guest->greeting + guest->got_bytes;
    const ssize_t got =
        recv(guest->fd, to, sizeof(guest->greeting) - guest->got_bytes, MSG_DONTWAIT);
    r2_tcp_ep_t *ep = NULL;

    if (got < 0 && (EAGAIN == errno || EINTR == errno)) {
        return;
    }
    guest->got_bytes += got > 0 ? (size_t) got : 0;
    if (got > 0 && guest->got_bytes < sizeof(guest->greeting)) {
        return;
    }
    if (got > 0 && R2_TCP_MAGIC == guest->greeting.magic) {
        ep = r2_tcp_guest_host(worker, &guest->greeting);
    }
    if (NULL != ep) {
        r2_tcp_ep_greeted(ep, guest->fd, &guest->greeting.from);
        guest->fd = -1;
    }
    r2_tcp_guest_close(worker, guest);
}

/** True if there are more guests than endpoints that await one, and R2_TCP_GUESTS_MAX. */
static bool r2_tcp_guests_are_many(const r2_tcp_worker_t *worker)
{
    uint32_t awaited = 0;
    const r2_tcp_ep_t *ep;

    if (worker->guest_count <= R2_TCP_GUESTS_MAX) {
        return false;
    }
    DL_FOREACH(worker->eps, ep) {
        awaited += ep->fd < 0 ? 1 : 0;
    }
    return worker->guest_count > R2_TCP_GUESTS_MAX + awaited;
}

/** @return false: no memory, and the socket is closed. */
static bool r2_tcp_guest_add(r2_tcp_worker_t *worker, int fd)
{
    r2_tcp_guest_t *guest = calloc(1, sizeof(*guest));

    if (NULL == guest) {
        r2_fd_close(fd);
        return false;
    }
    guest->source = R2_TCP_GUEST;
    guest->fd = fd;
    DL_APPEND(worker->guests, guest);
    ++worker->guest_count;
    if (!r2_tcp_watch(worker, EPOLL_CTL_ADD, fd, EPOLLIN, &guest->source)) {
        r2_tcp_guest_close(worker, guest);
        return false;
    }
    r2_tcp_guest_read(worker, guest); /* most have greeted by now */
    while (r2_tcp_guests_are_many(worker)) {
        r2_tcp_guest_close(worker, worker->guests); /* says nothing: a stranger */
    }
    return true;
}

void r2_tcp_accept(r2_tcp_worker_t *worker)
{
    int fd;

    worker->deaf = false;
    do {
        fd = r2_fd_keep(accept4(worker->listener_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
    } while (fd >= 0 ? r2_tcp_guest_add(worker, fd) : EINTR == errno || ECONNABORTED == errno);
    if (fd < 0 && EAGAIN != errno) {
        /* callers stay with the kernel; the listener could be read all the time and wake for
         * ever */
        (void) epoll_ctl(worker->epoll_fd, EPOLL_CTL_DEL, worker->listener_fd, NULL);
        worker->deaf = true;
    }
}
