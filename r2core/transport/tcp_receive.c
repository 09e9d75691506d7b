/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Receiving over TCP: packets are handed up out of what one read brought, or joined.
 */
#include "r2_config.h"

#include "transport/tcp.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "transport/tcp_calls.h"

/* After a long packet another one is expected among so many. */
#define LONG_PACKETS 16u

/* A turn in which so much was read is over: what came together is acknowledged once. */
#define TURN_BYTES 65536u

/** @return bytes of a packet with its frame, or 0: this is none. */
static size_t r2_tcp_frame_bytes(const r2_tcp_worker_t *worker, const r2_tcp_frame_t *frame)
{
    return frame->header_bytes <= R2_TP_HEADER_MAX &&
                   frame->data_bytes <= worker->device->segment_bytes
               ? sizeof(*frame) + frame->header_bytes + frame->data_bytes
               : 0;
}

static void r2_tcp_hand_up(r2_tcp_ep_t *ep, const r2_tcp_frame_t *frame, const char *header,
                           const char *data)
{
    const r2_tcp_worker_t *worker = ep->worker;

    ep->last_bytes = sizeof(*frame) + frame->header_bytes + frame->data_bytes;
    if (ep->last_bytes > R2_TCP_LAND_BYTES + R2_TCP_AHEAD_BYTES) {
        ep->expects_long = LONG_PACKETS;
    } else if (ep->expects_long > 0) {
        --ep->expects_long;
    }
    worker->callbacks.received(worker->arg, header, frame->header_bytes, data, frame->data_bytes);
}

/** Bytes in front of a packet's data. */
static size_t r2_tcp_head_bytes(const r2_tcp_packet_t *packet)
{
    return sizeof(packet->frame) + packet->frame.header_bytes;
}

/** Where data suits every type in a packet's memory: what is reduced is not copied then. */
static char *r2_tcp_own_landing(r2_tcp_packet_t *packet)
{
    char *data = packet->bytes + packet->frame.header_bytes;
    const size_t beyond = (uintptr_t) data % R2_TCP_ALIGN_BYTES;

    return 0 == beyond ? data : data + (R2_TCP_ALIGN_BYTES - beyond);
}

/** Once its header is there: where the packet's data is to be. Moves there what has come. */
static void r2_tcp_land(r2_tcp_ep_t *ep)
{
    const r2_tcp_worker_t *worker = ep->worker;
    r2_tcp_packet_t *packet = ep->packet;
    size_t head_bytes;

    if (packet->asked || packet->got_bytes < sizeof(packet->frame) ||
        packet->need_bytes - packet->got_bytes < R2_TCP_LAND_BYTES) {
        return;
    }
    head_bytes = r2_tcp_head_bytes(packet);
    if (packet->got_bytes < head_bytes || NULL == worker->callbacks.land) {
        return;
    }
    packet->asked = true;
    packet->landing = worker->callbacks.land(worker->arg, packet->bytes, packet->frame.header_bytes,
                                             packet->frame.data_bytes);
    packet->lent = NULL != packet->landing;
    if (!packet->lent) {
        packet->landing = r2_tcp_own_landing(packet);
    }
    memmove(packet->landing, packet->bytes + packet->frame.header_bytes,
            packet->got_bytes - head_bytes);
}

void r2_tcp_ep_land_off(r2_tp_ep_t *tp_ep)
{
    r2_tcp_ep_t *ep = (r2_tcp_ep_t *) (void *) tp_ep;
    r2_tcp_packet_t *packet = ep->packet;

    if (NULL != packet && packet->lent) {
        char *own = r2_tcp_own_landing(packet);

        memcpy(own, packet->landing, packet->got_bytes - r2_tcp_head_bytes(packet));
        packet->landing = own;
        packet->lent = false;
    }
}

/** After more of it has come: hands the packet up if it is whole. @return packets handed up. */
static unsigned r2_tcp_packet_got(r2_tcp_ep_t *ep)
{
    r2_tcp_packet_t *packet = ep->packet;

    if (sizeof(packet->frame) == packet->got_bytes && sizeof(packet->frame) == packet->need_bytes) {
        packet->need_bytes = r2_tcp_frame_bytes(ep->worker, &packet->frame);
        if (0 == packet->need_bytes) {
            r2_tcp_ep_fail(ep, R2_ERR_LANE_DOWN);
            return 0;
        }
    }
    if (packet->got_bytes < packet->need_bytes) {
        r2_tcp_land(ep);
        return 0;
    }
    ep->packet = NULL;
    r2_tcp_hand_up(ep, &packet->frame, packet->bytes,
                   NULL != packet->landing ? packet->landing
                                           : packet->bytes + packet->frame.header_bytes);
    r2_tcp_packet_put(ep->worker, packet);
    return 1;
}

/** Where the next byte of a packet goes. */
static char *r2_tcp_packet_end(r2_tcp_packet_t *packet)
{
    if (packet->got_bytes < sizeof(packet->frame)) {
        return (char *) &packet->frame + packet->got_bytes;
    }
    return NULL != packet->landing ? packet->landing + packet->got_bytes - r2_tcp_head_bytes(packet)
                                   : packet->bytes + packet->got_bytes - sizeof(packet->frame);
}

/** Adds to a packet. @return bytes that it takes. */
static size_t r2_tcp_packet_add(r2_tcp_packet_t *packet, const char *from, size_t bytes)
{
    const size_t takes = r2_min(bytes, packet->need_bytes - packet->got_bytes);

    memcpy(r2_tcp_packet_end(packet), from, takes);
    packet->got_bytes += takes;
    return takes;
}

/** Takes apart what was read. @return packets handed up. */
static unsigned r2_tcp_take_apart(r2_tcp_ep_t *ep, const char *from, size_t bytes)
{
    r2_tcp_frame_t frame;
    unsigned count = 0;

    while (bytes > 0 && R2_OK == ep->failure) {
        size_t whole = 0;

        if (NULL == ep->packet && bytes >= sizeof(frame)) {
            memcpy(&frame, from, sizeof(frame));
            whole = r2_tcp_frame_bytes(ep->worker, &frame);
        }
        if (0 != whole && whole <= bytes) {
            r2_tcp_hand_up(ep, &frame, from + sizeof(frame),
                           from + sizeof(frame) + frame.header_bytes);
            ++count;
        } else {
            if (NULL == ep->packet) {
                ep->packet = r2_tcp_packet_get(ep->worker);
            }
            if (NULL == ep->packet) { /* r2_tcp_receive() has seen to it */
                r2_tcp_ep_fail(ep, R2_ERR_NO_MEMORY);
                return count;
            }
            whole = r2_tcp_packet_add(ep->packet, from, bytes);
            count += r2_tcp_packet_got(ep);
        }
        from += whole;
        bytes -= whole;
    }
    return count;
}

/**
 * Where a long packet may come no more than it takes to know where the rest goes, else all there
 * is. Short ones come between long ones: acknowledgements, and what precedes a long message.
 * @return bytes to read at once where no packet has begun.
 */
static size_t r2_tcp_first_bytes(const r2_tcp_ep_t *ep)
{
    const size_t room =
        sizeof(r2_tcp_frame_t) + R2_TP_HEADER_MAX + ep->worker->device->segment_bytes;

    if (ep->expects_long > 0) {
        return R2_TCP_AHEAD_BYTES;
    }
    return ep->last_bytes > R2_TCP_AHEAD_BYTES ? r2_min(ep->last_bytes + R2_TCP_AHEAD_BYTES, room)
                                               : room;
}

/**
 * One read while nothing is left of a packet: into memory for one.
 * @param full_p gets whether as much came as was asked for. @return as recv().
 */
static ssize_t r2_tcp_read_next(r2_tcp_ep_t *ep, r2_tcp_packet_t *packet, unsigned *count_p,
                                bool *full_p)
{
    const size_t room = r2_tcp_first_bytes(ep);
    const ssize_t got = r2_tcp_recv(ep->fd, &packet->frame, room);
    char *from = (char *) &packet->frame;
    size_t whole;

    if (got <= 0) {
        r2_tcp_packet_put(ep->worker, packet);
        return got;
    }
    *full_p = (size_t) got == room;
    packet->got_bytes = (size_t) got;
    whole = packet->got_bytes < sizeof(packet->frame)
                ? sizeof(packet->frame)
                : r2_tcp_frame_bytes(ep->worker, &packet->frame);
    if (packet->got_bytes < whole) {
        packet->need_bytes = whole;
        ep->packet = packet; /* begun where it is to be */
        r2_tcp_land(ep);
        return got;
    }
    *count_p += r2_tcp_take_apart(ep, from, packet->got_bytes);
    r2_tcp_packet_put(ep->worker, packet);
    return got;
}

/** One read of what is left of a packet, and a little beyond. @return as recvmsg(). */
static ssize_t r2_tcp_read_rest(r2_tcp_ep_t *ep, unsigned *count_p, bool *full_p)
{
    r2_tcp_packet_t *packet = ep->packet;
    const size_t rest = packet->need_bytes - packet->got_bytes;
    char ahead[R2_TCP_AHEAD_BYTES];
    struct iovec parts[] = {{r2_tcp_packet_end(packet), rest}, {ahead, sizeof(ahead)}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = r2_array_count(parts)};
    const ssize_t got = r2_tcp_recvmsg(ep->fd, &message);

    if (got < 0 && EFAULT == errno && packet->lent) {
        r2_tcp_ep_land_off((r2_tp_ep_t *) (void *) ep); /* who gave that memory finds out itself */
        errno = EAGAIN;
    }
    if (got <= 0) {
        return got;
    }
    *full_p = (size_t) got == rest + sizeof(ahead);
    packet->got_bytes += r2_min((size_t) got, rest);
    *count_p += r2_tcp_packet_got(ep);
    if ((size_t) got > rest) {
        *count_p += r2_tcp_take_apart(ep, ahead, (size_t) got - rest);
    }
    return got;
}

/** One read. @return as recv(); EAGAIN without memory: what has come stays with the kernel. */
static ssize_t r2_tcp_read(r2_tcp_ep_t *ep, unsigned *count_p, bool *full_p)
{
    r2_tcp_packet_t *packet = NULL == ep->packet ? r2_tcp_packet_get(ep->worker) : ep->packet;

    if (NULL == packet || !r2_tcp_packet_is_spare(ep->worker)) {
        if (NULL != packet && packet != ep->packet) {
            r2_tcp_packet_put(ep->worker, packet);
        }
        errno = EAGAIN;
        return -1;
    }
    return packet == ep->packet ? r2_tcp_read_rest(ep, count_p, full_p)
                                : r2_tcp_read_next(ep, packet, count_p, full_p);
}

/**
 * Is there more to read in this turn? What begins with the next read waits for the next turn.
 * @param begun a packet that is to go to memory of its own. @param full the last read was.
 * @param bytes that were read.
 */
static bool r2_tcp_reads_on(const r2_tcp_ep_t *ep, bool begun, bool full, size_t bytes)
{
    const r2_tcp_worker_t *worker = ep->worker;

    if (R2_OK != ep->failure || NULL == ep->packet) {
        return false;
    }
    return (begun && ep->packet->asked) ||
           (full && bytes < TURN_BYTES && NULL != worker->callbacks.takes_more &&
            worker->callbacks.takes_more(worker->arg));
}

unsigned r2_tcp_receive(r2_tcp_ep_t *ep)
{
    unsigned count = 0;
    size_t bytes = 0;
    bool more = R2_OK == ep->failure;

    while (more) {
        const bool begins = NULL == ep->packet;
        bool full = false;
        const ssize_t got = r2_tcp_read(ep, &count, &full);

        if (0 == got || (got < 0 && EAGAIN != errno && EINTR != errno)) {
            r2_tcp_ep_fail(ep, 0 == got ? R2_ERR_LANE_DOWN : r2_tcp_status(errno));
            return count;
        }
        bytes += (size_t) r2_max(got, 0);
        more = got > 0 && r2_tcp_reads_on(ep, begins, full, bytes);
    }
    if (0 == bytes) {
        return count;
    }
    r2_tcp_ep_is_recent(ep);
    return r2_max(count, 1u);
}
