/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A packet that has come finds its queue pair; what is due by the clock.
 */
#include "softverbs/nic/nic.h"

#include <stdlib.h>

static sv_qp_t *find(sv_dev_t *dev, uint32_t number)
{
    sv_qp_t *qp = dev->places[number % SV_QP_PLACES];

    if (NULL == qp || qp->number != number ||
        (IBV_QPS_RTR != qp->attr.qp_state && IBV_QPS_RTS != qp->attr.qp_state)) {
        return NULL;
    }
    return qp;
}

static void handle(sv_dev_t *dev, sv_packet_t *packet, bool is_late_write)
{
    static void (*const acked[SV_OPS])(sv_qp_t *, const sv_packet_t *) = {
        [SV_OP_ANSWER] = sv_rc_answer,     [SV_OP_ACK] = sv_rc_acked,
        [SV_OP_NAK_GAP] = sv_rc_acked,     [SV_OP_NAK_RNR] = sv_rc_acked,
        [SV_OP_NAK_ACCESS] = sv_rc_acked,  [SV_OP_NAK_LENGTH] = sv_rc_acked,
        [SV_OP_NAK_FAILED] = sv_rc_acked,
    };
    const sv_head_t *head = &packet->head;
    sv_qp_t *qp = find(dev, head->dest_qpn);

    if (NULL == qp && SV_OP_WRITE == head->op && head->length > 0) {
        ++dev->counters.late_refused;
    }
    if (NULL == qp || head->op >= SV_OPS) {
        return;
    }
    if (IBV_QPT_UD == qp->type) {
        if (SV_OP_DATAGRAM == head->op) {
            sv_ud_arrived(qp, packet);
        }
    } else if (SV_OP_DATAGRAM != head->op && packet->ip == qp->peer_ip &&
               head->source_qpn == qp->attr.dest_qp_num) {
        if (is_late_write) {
            sv_rc_late_write(qp, packet);
        } else if (NULL == acked[head->op]) {
            sv_rc_request(qp, packet);
        } else if (IBV_QPS_RTS == qp->attr.qp_state) {
            acked[head->op](qp, packet);
        }
    }
}

void sv_arrived(sv_dev_t *dev, sv_packet_t *packet)
{
    if (!sv_is_up(dev) || SV_MAGIC != packet->head.magic) {
        return;
    }
    ++dev->counters.received;
    if (sv_fault_hits(dev, SV_FAULT_DROP)) {
        ++dev->counters.dropped;
        return;
    }
    if (sv_fault_hits(dev, SV_FAULT_DELAY)) {
        ++dev->counters.delayed;
        sv_packet_hold(dev, packet,
                       dev->nic->now_ns + dev->faults[SV_FAULT_DELAY].value * UINT64_C(1000000),
                       false);
        return;
    }
    handle(dev, packet, false);
}

void sv_round_end(sv_dev_t *dev)
{
    while (NULL != dev->touched) {
        sv_qp_t *qp = dev->touched;
        dev->touched = qp->next_touched;
        qp->is_touched = false;
        if (qp->owes_ack && IBV_QPS_ERR != qp->attr.qp_state) {
            sv_rc_control(qp, SV_OP_ACK);
        }
        sv_rc_push(qp);
    }
    sv_packet_flush(dev);
}

/* What waited is handled even if a fault struck it before; a port that is down loses it. */
static void release(sv_dev_t *dev)
{
    while (NULL != dev->held && dev->held->due_ns <= dev->nic->now_ns) {
        sv_held_t *held = dev->held;
        dev->held = held->next;
        if (sv_is_up(dev)) {
            handle(dev, &held->packet, held->is_late_write);
        }
        free(held);
    }
    if (NULL != dev->held) {
        sv_wake_at(dev, dev->held->due_ns);
    }
}

void sv_timers(sv_dev_t *dev)
{
    if (dev->nic->now_ns < dev->wake_ns) {
        return;
    }
    dev->wake_ns = UINT64_MAX;
    release(dev);
    for (sv_qp_t *qp = dev->qps; NULL != qp && !dev->is_dead; qp = qp->next) {
        sv_rc_timer(qp);
    }
    sv_round_end(dev);
}

void sv_posted(sv_qp_t *qp)
{
    enum ibv_qp_state state = qp->attr.qp_state;

    if (qp->context->is_dead || (IBV_QPS_RTS != state && IBV_QPS_ERR != state)) {
        return;
    }
    if (IBV_QPT_UD == qp->type) {
        sv_ud_posted(qp);
    } else {
        sv_rc_posted(qp);
    }
}
