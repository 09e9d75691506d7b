/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Workers of the TCP transport: progress, waiting, failures.
 */
#include "r2_config.h"

#include "transport/tcp.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/fork.h"

#define EVENTS_MAX 16 /* of one look; the rest comes with the next */
/* While something comes from one endpoint all the time, others wait for so many calls at most. */
#define LOOK_CALLS 8
/* Without descriptors it is tried again this often to take who calls. */
#define DEAF_CALLS 64

static r2_tcp_worker_t *r2_tcp_worker_of(r2_tp_worker_t *worker)
{
    return (r2_tcp_worker_t *) (void *) worker;
}

static r2_status_t r2_tcp_worker_open(r2_tcp_worker_t *worker)
{
    const char *nic = worker->device->name;
    r2_status_t status = r2_tcp_nic_ipv4(nic, &worker->ipv4);

    if (R2_OK != status) {
        return status;
    }
    worker->epoll_fd = r2_fd_keep(epoll_create1(EPOLL_CLOEXEC));
    if (worker->epoll_fd < 0) {
        return R2_ERR_NO_DESCRIPTORS;
    }
    status = r2_tcp_listen(nic, worker->ipv4, &worker->listener_fd, &worker->port);
    if (R2_OK == status &&
        !r2_tcp_watch(worker, EPOLL_CTL_ADD, worker->listener_fd, EPOLLIN, &worker->source)) {
        status = R2_ERR_NO_MEMORY;
    }
    return R2_ERR_LANE_DOWN == status ? R2_ERR_NO_DEVICE : status;
}

r2_status_t r2_tcp_worker_create(r2_tp_device_t *device, const r2_tp_callbacks_t *callbacks,
                                 void *arg, r2_tp_worker_t **worker_p)
{
    r2_tcp_worker_t *worker = calloc(1, sizeof(*worker));
    r2_status_t status;

    if (NULL == worker) {
        return R2_ERR_NO_MEMORY;
    }
    worker->ops = &r2_tcp_ops;
    worker->source = R2_TCP_LISTENER;
    worker->device = (r2_tcp_device_t *) (void *) device;
    worker->callbacks = *callbacks;
    worker->arg = arg;
    worker->listener_fd = worker->epoll_fd = -1;
    worker->random = r2_random_u64(r2_clock_system());
    *worker_p = (r2_tp_worker_t *) (void *) worker;
    status = r2_tcp_worker_open(worker);
    if (R2_OK != status) {
        r2_tcp_worker_destroy(*worker_p);
    }
    return status;
}

void r2_tcp_worker_destroy(r2_tp_worker_t *tp_worker)
{
    r2_tcp_worker_t *worker = r2_tcp_worker_of(tp_worker);
    r2_tcp_packet_t *packet, *next;

    r2_assert(!worker->in_progress);
    while (NULL != worker->eps) {
        r2_tcp_ep_close((r2_tp_ep_t *) (void *) worker->eps);
    }
    while (NULL != worker->guests) {
        r2_tcp_guest_close(worker, worker->guests);
    }
    if (worker->listener_fd >= 0) {
        r2_fd_close(worker->listener_fd);
    }
    if (worker->epoll_fd >= 0) {
        r2_fd_close(worker->epoll_fd);
    }
    LL_FOREACH_SAFE(worker->spare, packet, next) {
        free(packet);
    }
    free(worker);
}

/* ---- progress ---- */

static unsigned r2_tcp_tell_failed(r2_tcp_worker_t *worker)
{
    r2_tcp_ep_t *ep;
    unsigned count = 0;

    worker->failures = false;
    DL_FOREACH(worker->eps, ep) {
        if (R2_OK != ep->failure && ep->connected && !ep->failure_told) {
            ep->failure_told = true;
            worker->callbacks.failed(worker->arg, ep->arg, ep->failure);
            ++count;
        }
    }
    return count;
}

static unsigned r2_tcp_ep_event(r2_tcp_ep_t *ep, uint32_t events)
{
    unsigned count = 0;

    if (ep->dials) {
        r2_tcp_ep_dialed(ep);
        return 1;
    }
    if (0 != (events & EPOLLOUT) && ep->open) {
        count += r2_tcp_flush(ep);
    }
    return 0 != (events & ~(uint32_t) EPOLLOUT) ? count + r2_tcp_receive(ep) : count;
}

/** Looks at all sockets. A guest or an endpoint of one event is not closed by another one. */
static unsigned r2_tcp_look(r2_tcp_worker_t *worker)
{
    struct epoll_event events[EVENTS_MAX];
    const int count = epoll_wait(worker->epoll_fd, events, EVENTS_MAX, 0);
    unsigned found = 0;
    bool calls = false;

    for (int i = 0; i < count; ++i) {
        r2_tcp_source_t *source = events[i].data.ptr;

        switch (*source) {
        case R2_TCP_LISTENER:
            calls = true;
            break;
        case R2_TCP_GUEST:
            r2_tcp_guest_read(worker, r2_container_of(source, r2_tcp_guest_t, source));
            ++found;
            break;
        case R2_TCP_EP:
            found +=
                r2_tcp_ep_event(r2_container_of(source, r2_tcp_ep_t, source), events[i].events);
            break;
        }
    }
    if (calls) {
        r2_tcp_accept(worker); /* last: it may close a guest */
        ++found;
    }
    if (0 == worker->calls % DEAF_CALLS) {
        r2_tcp_hear(worker);
    }
    return found;
}

/*
 * Looks at one socket. Long packets are better awaited with the epoll
 * set: who asks a socket for data all the time holds up those who bring them.
 */
static unsigned r2_tcp_ask(r2_tcp_worker_t *worker, r2_tcp_ep_t *ep)
{
    const unsigned count = r2_tcp_receive(ep);

    if (0 != count && ep == worker->recent && ep->unwatched && ep->last_bytes > R2_TCP_HOT_BYTES) {
        worker->streak = 0;
        r2_tcp_ep_watch(ep);
    }
    return count;
}

/* True if all sockets are to be looked at. @param hot one was read. @param count what it had. */
static bool r2_tcp_looks(const r2_tcp_worker_t *worker, bool hot, unsigned count)
{
    const bool has_others = hot && worker->eps != worker->eps->prev;

    return !hot || (0 == count && has_others) || 0 == worker->calls % LOOK_CALLS;
}

unsigned r2_tcp_worker_progress(r2_tp_worker_t *tp_worker)
{
    r2_tcp_worker_t *worker = r2_tcp_worker_of(tp_worker);
    const bool hot = NULL != worker->recent && worker->recent->unwatched;
    unsigned count = 0;

    r2_assert(!worker->in_progress);
    worker->in_progress = true;
    ++worker->calls;
    if (hot) {
        count = r2_tcp_ask(worker, worker->recent);
    }
    if (r2_tcp_looks(worker, hot, count)) {
        count += r2_tcp_look(worker);
    }
    if (worker->failures) {
        count += r2_tcp_tell_failed(worker);
    }
    worker->in_progress = false;
    return count;
}

/* Who waits for an endpoint asks its socket, whether it is in the epoll set or not. */
unsigned r2_tcp_ep_progress(r2_tp_worker_t *tp_worker, r2_tp_ep_t *tp_ep)
{
    r2_tcp_worker_t *worker = r2_tcp_worker_of(tp_worker);
    r2_tcp_ep_t *ep = (r2_tcp_ep_t *) (void *) tp_ep;
    unsigned count;

    if (!ep->open || ep->last_bytes > R2_TCP_HOT_BYTES) {
        return r2_tcp_worker_progress(tp_worker);
    }
    r2_assert(!worker->in_progress);
    worker->in_progress = true;
    count = r2_tcp_ask(worker, ep);
    worker->in_progress = false;
    return count;
}

int r2_tcp_worker_fd(r2_tp_worker_t *worker)
{
    return r2_tcp_worker_of(worker)->epoll_fd;
}

r2_status_t r2_tcp_worker_arm(r2_tp_worker_t *tp_worker)
{
    r2_tcp_worker_t *worker = r2_tcp_worker_of(tp_worker);

    worker->streak = 0;
    if (NULL != worker->recent && worker->recent->unwatched) {
        r2_tcp_ep_watch(worker->recent);
    }
    return worker->failures ? R2_ERR_AGAIN : R2_OK;
}

bool r2_tcp_worker_signals(const r2_tp_worker_t *tp_worker)
{
    const r2_tcp_worker_t *worker = (const r2_tcp_worker_t *) (const void *) tp_worker;

    return !worker->failures && !worker->deaf &&
           (NULL == worker->recent || !worker->recent->unwatched);
}
