/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Packets to send, in batches, and packets that wait.
 */
#include "softverbs/nic/nic.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

bool sv_is_up(const sv_dev_t *dev)
{
    return dev->has_carrier && !dev->is_down && !dev->is_dead;
}

void sv_wake_at(sv_dev_t *dev, uint64_t when_ns)
{
    if (when_ns < dev->wake_ns) {
        dev->wake_ns = when_ns;
    }
}

sv_packet_t *sv_packet_new(sv_dev_t *dev, uint32_t ip, uint32_t dest_qpn, uint32_t source_qpn,
                           sv_op_t op)
{
    sv_packet_t *packet;

    if (SV_BATCH == dev->batched) {
        sv_packet_flush(dev);
    }
    packet = &dev->batch[dev->batched++];
    memset(packet, 0, offsetof(sv_packet_t, payload));
    packet->ip = ip;
    packet->head.magic = SV_MAGIC;
    packet->head.op = (uint8_t) op;
    packet->head.dest_qpn = dest_qpn;
    packet->head.source_qpn = source_qpn;
    return packet;
}

void sv_packet_drop(sv_dev_t *dev)
{
    --dev->batched;
}

void sv_packet_hold(sv_dev_t *dev, const sv_packet_t *packet, uint64_t due_ns, bool is_late_write)
{
    sv_held_t **place = &dev->held;
    sv_held_t *held = malloc(sizeof(*held));

    if (NULL == held) {
        return;
    }
    held->due_ns = due_ns;
    held->is_late_write = is_late_write;
    memcpy(&held->packet, packet, offsetof(sv_packet_t, payload) + packet->head.length);
    while (NULL != *place && (*place)->due_ns <= due_ns) {
        place = &(*place)->next;
    }
    held->next = *place;
    *place = held;
    sv_wake_at(dev, due_ns);
}

/* To the device itself: not by the cable, but not without a link either, as with RoCE. */
static bool goes_back(sv_dev_t *dev, const sv_packet_t *packet)
{
    if (packet->ip != dev->about.ip) {
        return false;
    }
    sv_packet_hold(dev, packet, dev->nic->now_ns, false);
    return true;
}

void sv_packet_flush(sv_dev_t *dev)
{
    int from = 0, count = dev->batched;

    dev->batched = 0;
    if (!sv_is_up(dev)) {
        return;
    }
    dev->counters.sent += (uint64_t) count;
    for (int i = 0; i <= count; ++i) { /* in runs between those to itself */
        if (i == count || goes_back(dev, &dev->batch[i])) {
            if (i > from) {
                dev->nic->world->send(dev, dev->batch + from, i - from);
            }
            from = i + 1;
        }
    }
}

void sv_touch(sv_qp_t *qp)
{
    if (!qp->is_touched) {
        qp->is_touched = true;
        qp->next_touched = qp->dev->touched;
        qp->dev->touched = qp;
    }
}
