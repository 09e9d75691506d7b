/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Workers of the UCT transport: generations of a device. Progress, arrivals, completions.
 */
#include "r2_config.h"

#include "transport/uct.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/fork.h"

/* Within the host: it is looked every so many calls whether the peers' processes live. */
#define WATCH_CALLS 4096u

/* ---- arrivals and failures: called by UCX ---- */

/** @return bytes of frame and header, or 0: this is no packet for us. */
static size_t r2_uct_head_bytes(const r2_tp_worker_t *worker, const void *message, size_t bytes,
                                size_t header_max)
{
    r2_uct_frame_t frame;
    size_t head;

    if (!worker->in_progress || bytes < sizeof(frame)) {
        return 0;
    }
    memcpy(&frame, message, sizeof(frame));
    head = sizeof(frame) + frame.header_bytes;
    return frame.header_bytes <= header_max && head <= bytes &&
                   bytes - head <= worker->device->segment_bytes
               ? head
               : 0;
}

static ucs_status_t r2_uct_on_packet(void *arg, void *message, size_t bytes, unsigned flags)
{
    r2_tp_worker_t *worker = arg;
    const char *from = message;
    size_t head = r2_uct_head_bytes(worker, message, bytes, R2_TP_HEADER_MAX);

    (void) flags;
    if (0 != head) {
        worker->callbacks.received(worker->arg, from + sizeof(r2_uct_frame_t),
                                   head - sizeof(r2_uct_frame_t), from + head, bytes - head);
    }
    return UCS_OK;
}

static ucs_status_t r2_uct_on_piece(void *arg, void *message, size_t bytes, unsigned flags)
{
    r2_tp_worker_t *worker = arg;
    const char *from = message;
    size_t head = r2_uct_head_bytes(worker, message, bytes, sizeof(r2_uct_piece_t));

    (void) flags;
    if (0 != head) {
        r2_uct_piece_arrived(worker, from + sizeof(r2_uct_frame_t), head - sizeof(r2_uct_frame_t),
                             from + head, bytes - head);
    }
    return UCS_OK;
}

static ucs_status_t r2_uct_on_error(void *arg, uct_ep_h uct_ep, ucs_status_t rc)
{
    r2_tp_worker_t *worker = arg;
    r2_tp_ep_t *ep;

    DL_FOREACH(worker->eps, ep) {
        if (ep->uct_ep == uct_ep) {
            r2_uct_ep_fail(ep, r2_uct_status(rc));
        }
    }
    return UCS_OK;
}

/* ---- life ---- */

/** The descriptor to wait on; within the host it is readable, too, when a peer's process ends. */
static bool r2_uct_fd_open(r2_tp_worker_t *worker)
{
    struct epoll_event event = {.events = EPOLLIN};

    worker->fd = worker->port.fd;
    if (!worker->device->kind->is_local) {
        return true;
    }
    worker->fd = r2_fd_keep(epoll_create1(EPOLL_CLOEXEC));
    return worker->fd >= 0 && 0 == epoll_ctl(worker->fd, EPOLL_CTL_ADD, worker->port.fd, &event);
}

static void r2_uct_fd_close(r2_tp_worker_t *worker)
{
    if (worker->device->kind->is_local && worker->fd >= 0) {
        r2_fd_close(worker->fd);
    }
}

static r2_status_t r2_uct_worker_prepare(r2_tp_worker_t *worker)
{
    const uct_iface_attr_t *attr = &worker->port.attr;
    const uint64_t ways = UCT_IFACE_FLAG_CONNECT_TO_EP | UCT_IFACE_FLAG_CONNECT_TO_IFACE;
    uct_iface_h iface = worker->port.iface;

    r2_uct_limits_init(&worker->limits, attr, worker->device);
    worker->to_ep = 0 != (attr->cap.flags & UCT_IFACE_FLAG_CONNECT_TO_EP);
    if (0 == (attr->cap.flags & ways) || worker->limits.piece < 2 * sizeof(r2_uct_piece_t)) {
        return R2_ERR_UNSUPPORTED;
    }
    /* UCX says nothing of buffers that it could not register: nothing would ever arrive. */
    if (worker->device->domain.needs_handles &&
        !r2_uct_memory_is_left(worker->device->domain.md,
                               R2_UCT_RC_GROW * worker->device->segment_bytes)) {
        return R2_ERR_NO_MEMORY;
    }
    if (UCS_OK != uct_iface_set_am_handler(iface, R2_UCT_AM_PACKET, r2_uct_on_packet, worker, 0) ||
        UCS_OK != uct_iface_set_am_handler(iface, R2_UCT_AM_PIECE, r2_uct_on_piece, worker, 0)) {
        return R2_ERR_NO_MEMORY;
    }
    return r2_uct_fd_open(worker) ? R2_OK : R2_ERR_NO_DESCRIPTORS;
}

/** @return as worker_create(); R2_ERR_NO_MEMORY, too, where no more may be locked. */
static r2_status_t r2_uct_worker_open(r2_tp_worker_t *worker)
{
    r2_tp_device_t *device = worker->device;
    r2_status_t status;

    errno = 0;
    status = r2_uct_port_open(device->uct, &device->domain, r2_uct_on_error, worker, &worker->port);
    if (R2_OK != status) {
        return device->domain.needs_handles && ENOMEM == errno ? R2_ERR_NO_MEMORY : status;
    }
    r2_ucx_enter();
    status = r2_uct_worker_prepare(worker);
    r2_ucx_leave();
    if (R2_OK != status) {
        r2_uct_fd_close(worker);
        r2_uct_port_close(&worker->port);
    }
    return status;
}

r2_status_t r2_uct_worker_create(r2_tp_device_t *device, const r2_tp_callbacks_t *callbacks,
                                 void *arg, r2_tp_worker_t **worker_p)
{
    r2_tp_worker_t *worker = calloc(1, sizeof(*worker));
    r2_status_t status;

    if (NULL == worker) {
        return R2_ERR_NO_MEMORY;
    }
    worker->ops = &r2_uct_ops;
    worker->device = device;
    worker->callbacks = *callbacks;
    worker->arg = arg;
    worker->fd = -1;
    worker->stream.worker = r2_random_u64(r2_clock_system());
    do {
        status = r2_uct_worker_open(worker);
    } while (R2_ERR_NO_MEMORY == status && device->domain.needs_handles &&
             r2_uct_make_room(device->uct, R2_UCT_WORKER_BYTES));
    if (R2_OK != status) {
        free(worker);
        return status;
    }
    *worker_p = worker;
    return R2_OK;
}

void r2_uct_worker_destroy(r2_tp_worker_t *worker)
{
    r2_assert(!worker->in_progress);
    while (NULL != worker->eps) {
        r2_uct_ep_close(worker->eps);
    }
    r2_uct_fd_close(worker);
    r2_uct_port_close(&worker->port);
    r2_uct_pieces_free(worker);
    r2_uct_records_free(worker);
    free(worker);
}

/* ---- progress ---- */

static unsigned r2_uct_tell_sent(r2_tp_worker_t *worker)
{
    r2_uct_record_t *record;
    unsigned count = 0;

    while (NULL != (record = worker->completed)) {
        DL_DELETE(worker->completed, record);
        r2_uct_record_tell(record, record->status);
        ++count;
    }
    return count;
}

static unsigned r2_uct_tell_failed(r2_tp_worker_t *worker)
{
    r2_tp_ep_t *ep;
    unsigned count = 0;

    if (!worker->failures) {
        return 0;
    }
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

static void r2_uct_worker_send_waiting(r2_tp_worker_t *worker)
{
    r2_tp_ep_t *ep, *next;

    DL_FOREACH_SAFE2(worker->waiting, ep, next, waiting_next)
    {
        r2_uct_send_waiting(ep);
    }
}

unsigned r2_uct_worker_progress(r2_tp_worker_t *worker)
{
    unsigned count;

    r2_assert(!worker->in_progress);
    worker->in_progress = true;
    r2_ucx_enter();
    count = uct_worker_progress(worker->port.worker);
    worker->busy = 0 != count;
    r2_uct_worker_send_waiting(worker);
    if (NULL != worker->device->memory) {
        r2_uct_memory_reap(worker->device->memory);
    }
    r2_ucx_leave();
    if (worker->device->kind->is_local && (worker->armed || 0 == ++worker->calls % WATCH_CALLS)) {
        worker->armed = false;
        r2_uct_eps_watch(worker);
    }
    count += r2_uct_tell_sent(worker);
    count += r2_uct_tell_failed(worker);
    worker->in_progress = false;
    return count;
}

int r2_uct_worker_fd(r2_tp_worker_t *worker)
{
    return worker->fd;
}

r2_status_t r2_uct_worker_arm(r2_tp_worker_t *worker)
{
    /* What UCX has read already does not signal, nor does room at a peer within the host. */
    if (worker->busy || NULL != worker->completed || worker->failures ||
        (NULL != worker->waiting && !worker->device->kind->tells_room)) {
        return R2_ERR_AGAIN;
    }
    worker->armed = true;
    /* What was copied is nobody's any more, however long it takes: it wakes nobody. */
    return r2_uct_port_arm(&worker->port, worker->in_flight > 0 || NULL != worker->waiting);
}

bool r2_uct_worker_signals(const r2_tp_worker_t *worker)
{
    return worker->device->kind->signals && NULL == worker->completed && !worker->failures;
}

bool r2_uct_worker_is_loose(const r2_tp_worker_t *worker)
{
    return worker->device->kind->is_loose;
}
