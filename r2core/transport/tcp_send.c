/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Sending over TCP: straight from the caller's memory; what the socket does not take waits.
 */
#include "r2_config.h"

#include "transport/tcp.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "transport/tcp_calls.h"

/* Up to here a packet is copied into one buffer. */
#define SHORT_BYTES 2304u

/** The kernel's vectors have no const. */
static struct iovec r2_tcp_part(const void *from, size_t bytes, size_t *skip)
{
    union {
        const char *from;
        void *to;
    } pointer = {.from = from};
    const size_t skipped = r2_min(*skip, bytes);

    pointer.from += skipped;
    *skip -= skipped;
    return (struct iovec){pointer.to, bytes - skipped};
}

static size_t r2_tcp_op_bytes(const r2_tp_send_t *op)
{
    return sizeof(r2_tcp_frame_t) + op->header_bytes + op->data_bytes;
}

/** Sends a short packet: one copy costs less than a vector. @return as send(). */
static ssize_t r2_tcp_write_short(int fd, const r2_tcp_frame_t *frame, const r2_tp_send_t *op)
{
    char bytes[SHORT_BYTES];
    char *end = bytes;

    memcpy(end, frame, sizeof(*frame));
    end += sizeof(*frame);
    memcpy(end, op->header, op->header_bytes);
    end += op->header_bytes;
    if (0 != op->data_bytes) {
        memcpy(end, op->data, op->data_bytes);
        end += op->data_bytes;
    }
    return r2_tcp_sendto(fd, bytes, (size_t) (end - bytes));
}

/** Sends what is left of a packet, from where it lies. @return as sendmsg(). */
static ssize_t r2_tcp_write_parts(int fd, const r2_tcp_frame_t *frame, const r2_tp_send_t *op,
                                  size_t sent)
{
    struct iovec parts[3];
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 0 == op->data_bytes ? 2 : 3};

    parts[0] = r2_tcp_part(frame, sizeof(*frame), &sent);
    parts[1] = r2_tcp_part(op->header, op->header_bytes, &sent);
    parts[2] = r2_tcp_part(op->data, op->data_bytes, &sent);
    return r2_tcp_sendmsg(fd, &message);
}

/**
 * Sends what is left of a packet.
 * @param sent bytes of it that are sent. @return bytes that the socket took; -1: it is broken.
 */
static ssize_t r2_tcp_write(int fd, const r2_tp_send_t *op, size_t sent)
{
    const r2_tcp_frame_t frame = {.header_bytes = op->header_bytes & UINT8_MAX,
                                  .data_bytes = op->data_bytes & R2_TCP_DATA_MAX};
    const bool is_short = 0 == sent && r2_tcp_op_bytes(op) <= SHORT_BYTES;
    ssize_t took;

    do {
        took = is_short ? r2_tcp_write_short(fd, &frame, op)
                        : r2_tcp_write_parts(fd, &frame, op, sent);
    } while (took < 0 && EINTR == errno);
    if (took < 0 && (EAGAIN == errno || ENOBUFS == errno || ENOMEM == errno)) {
        return 0;
    }
    return took;
}

/** Has the epoll set tell, or not tell, when the socket takes more. */
static void r2_tcp_await_room(r2_tcp_ep_t *ep, bool awaits)
{
    if (awaits != ep->awaits_room) {
        ep->awaits_room = awaits;
        r2_tcp_ep_watch(ep);
    }
}

static r2_tp_send_t *r2_tcp_next(const r2_tp_send_t *op)
{
    return op->transport_private;
}

unsigned r2_tcp_flush(r2_tcp_ep_t *ep)
{
    unsigned count = 0;

    while (NULL != ep->first && R2_OK == ep->failure) {
        r2_tp_send_t *op = ep->first;
        const ssize_t took = r2_tcp_write(ep->fd, op, ep->sent_bytes);

        if (took < 0) {
            ep->open = false; /* what came before may say why: who reads comes to the end */
            r2_tcp_await_room(ep, false);
            return count;
        }
        ep->sent_bytes += (size_t) took;
        if (ep->sent_bytes < r2_tcp_op_bytes(op)) {
            break;
        }
        ep->first = r2_tcp_next(op);
        ep->last = NULL == ep->first ? NULL : ep->last;
        ep->sent_bytes = 0;
        op->transport_private = NULL;
        op->sent(op, R2_OK);
        ++count;
    }
    if (R2_OK == ep->failure) {
        r2_tcp_await_room(ep, NULL != ep->first);
    }
    return count;
}

static void r2_tcp_queue(r2_tcp_ep_t *ep, r2_tp_send_t *op)
{
    op->transport_private = NULL;
    if (NULL == ep->last) {
        ep->first = op;
    } else {
        ep->last->transport_private = op;
    }
    ep->last = op;
}

r2_status_t r2_tcp_send(r2_tp_ep_t *tp_ep, r2_tp_send_t *op)
{
    r2_tcp_ep_t *ep = (r2_tcp_ep_t *) (void *) tp_ep;
    ssize_t took = 0;

    r2_assert(op->header_bytes <= R2_TP_HEADER_MAX && ep->connected);
    if (R2_OK != ep->failure) {
        return R2_ERR_LANE_DOWN;
    }
    if (ep->open && NULL == ep->first) {
        took = r2_tcp_write(ep->fd, op, 0);
        if (took < 0) {
            return r2_tcp_status(errno);
        }
        if ((size_t) took == r2_tcp_op_bytes(op)) {
            return R2_OK;
        }
        ep->sent_bytes = (size_t) took;
        r2_tcp_await_room(ep, true);
    }
    r2_tcp_queue(ep, op);
    return R2_IN_PROGRESS;
}

void r2_tcp_withdraw(r2_tcp_ep_t *ep)
{
    while (NULL != ep->first) {
        r2_tp_send_t *op = ep->first;

        ep->first = r2_tcp_next(op);
        op->transport_private = NULL;
        op->sent(op, R2_ERR_CANCELED);
    }
    ep->last = NULL;
}
