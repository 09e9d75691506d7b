/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Which sockets of the TCP transport wake a process, and which of them is read without asking.
 */
#include "r2_config.h"

#include "transport/tcp.h"

#include <sys/epoll.h>

/* A socket that is read so many times while nobody sleeps leaves the epoll set until somebody
 * does. */
#define STREAK_CALLS 16

bool r2_tcp_watch(const r2_tcp_worker_t *worker, int operation, int fd, uint32_t events,
                  r2_tcp_source_t *source)
{
    struct epoll_event event = {.events = events, .data.ptr = source};

    return 0 == epoll_ctl(worker->epoll_fd, operation, fd, &event);
}

void r2_tcp_ep_fail(r2_tcp_ep_t *ep, r2_status_t status)
{
    if (R2_OK != ep->failure) {
        return;
    }
    ep->failure = status;
    ep->unwatched = false; /* for good */
    ep->worker->failures = true;
    if (ep->fd >= 0) {
        /* a socket that is at its end can always be read: it would wake for ever */
        (void) epoll_ctl(ep->worker->epoll_fd, EPOLL_CTL_DEL, ep->fd, NULL);
    }
}

void r2_tcp_ep_watch(r2_tcp_ep_t *ep)
{
    const uint32_t events = EPOLLIN | (ep->awaits_room ? EPOLLOUT : 0);

    if (R2_OK == ep->failure &&
        !r2_tcp_watch(ep->worker, ep->unwatched ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, ep->fd, events,
                      &ep->source)) {
        r2_tcp_ep_fail(ep, R2_ERR_NO_MEMORY);
    }
    ep->unwatched = false;
}

/* What comes by a socket costs more if an epoll set has to be told, and those above it. */
static void r2_tcp_ep_unwatch(r2_tcp_ep_t *ep)
{
    if (!ep->awaits_room && R2_OK == ep->failure) {
        (void) epoll_ctl(ep->worker->epoll_fd, EPOLL_CTL_DEL, ep->fd, NULL);
        ep->unwatched = true;
    }
}

void r2_tcp_ep_is_recent(r2_tcp_ep_t *ep)
{
    r2_tcp_worker_t *worker = ep->worker;

    worker->streak = ep->last_bytes <= R2_TCP_HOT_BYTES ? worker->streak + 1 : 0;
    if (ep != worker->recent) {
        if (NULL != worker->recent && worker->recent->unwatched) {
            r2_tcp_ep_watch(worker->recent);
        }
        worker->recent = ep;
        worker->streak = 0;
    }
    if (worker->streak >= STREAK_CALLS && !ep->unwatched) {
        r2_tcp_ep_unwatch(ep);
    }
}

void r2_tcp_hear(r2_tcp_worker_t *worker)
{
    if (worker->deaf) {
        worker->deaf =
            !r2_tcp_watch(worker, EPOLL_CTL_ADD, worker->listener_fd, EPOLLIN, &worker->source);
    }
}
