/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Reliable connections, the side that answers requests.
 *
 *   psn              SEND, WRITE        READ               ATOMIC
 *   as expected      done, acknowledged answered           done, answered, answer kept
 *   behind (repeat)  acknowledged       answered again     kept answer again
 *   ahead (gap)      NAK_GAP            NAK_GAP            NAK_GAP
 *
 * What is refused ends the queue pair on both sides.
 */
#include "softverbs/nic/nic.h"

#include <string.h>

enum { GAPS_PER_NAK = 64 };

/* Waiting times of RNR NAKs in units of 10 us. Source: InfiniBand specification, table 45. */
static const uint16_t rnr_times[32] = {
    0xffff, 1,    2,    3,    4,    6,    8,    12,   16,    24,    32,
    48,     64,   96,   128,  192,  256,  384,  512,  768,   1024,  1536,
    2048,   3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

void sv_rc_control(sv_qp_t *qp, sv_op_t op)
{
    sv_packet_t *packet = sv_packet_new(qp->dev, qp->peer_ip, qp->attr.dest_qp_num, qp->number, op);

    packet->head.psn = qp->expected_psn;
    if (SV_OP_NAK_RNR == op) {
        packet->head.value = rnr_times[qp->attr.min_rnr_timer & 31] * UINT64_C(10000);
    }
    qp->dev->counters.naks += SV_OP_ACK != op;
    qp->owes_ack = false;
}

static void refuse(sv_qp_t *qp, sv_op_t op)
{
    sv_rc_control(qp, op);
    sv_tell_event(qp->context,
                  SV_OP_NAK_ACCESS == op ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR,
                  qp->number);
    sv_rc_error(qp, IBV_WC_WR_FLUSH_ERR);
}

static void no_receive(sv_qp_t *qp)
{
    sv_rc_control(qp, SV_OP_NAK_RNR);
    qp->out_of_order = 1; /* what is behind in flight is not told again */
}

/* A part of a message has come into a posted receive. */
static bool take_send(sv_qp_t *qp, const sv_packet_t *packet)
{
    const sv_head_t *head = &packet->head;
    sv_reach_t reach;

    if (!qp->is_receiving && !sv_take_recv(qp, &qp->recv)) {
        no_receive(qp);
        return false;
    }
    qp->is_receiving = true;
    reach = sv_scatter(qp, qp->recv.sge, (uint32_t) qp->recv.sge_count, head->offset,
                       packet->payload, head->length);
    if (SV_REACHED != reach) {
        qp->is_receiving = false;
        sv_complete_recv(qp, &qp->recv, head,
                         SV_TOO_SHORT == reach ? IBV_WC_LOC_LEN_ERR : IBV_WC_LOC_PROT_ERR,
                         IBV_WC_RECV, head->message_length, 0);
        refuse(qp, SV_TOO_SHORT == reach ? SV_OP_NAK_LENGTH : SV_OP_NAK_FAILED);
        return false;
    }
    if (head->offset + head->length == head->message_length) {
        qp->is_receiving = false;
        sv_complete_recv(qp, &qp->recv, head, IBV_WC_SUCCESS, IBV_WC_RECV, head->message_length, 0);
    }
    return true;
}

/* The whole message is looked at, so of one that does not fit nothing is written. */
static bool may_write(sv_qp_t *qp, const sv_head_t *head, uint64_t *at_p)
{
    if (0 == (qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE) ||
        !sv_key_allows(qp, head->rkey, head->remote_addr - head->offset, head->message_length,
                       IBV_ACCESS_REMOTE_WRITE, at_p)) {
        return false;
    }
    *at_p += head->offset;
    return true;
}

static bool take_write(sv_qp_t *qp, const sv_packet_t *packet)
{
    const sv_head_t *head = &packet->head;
    sv_dev_t *dev = qp->dev;
    sv_recv_t recv;
    uint64_t at;

    if (head->length > 0) {
        if (!may_write(qp, head, &at)) {
            refuse(qp, SV_OP_NAK_ACCESS);
            return false;
        }
        sv_write_for_peer(qp, at, packet->payload, head->length);
        if (sv_fault_hits(dev, SV_FAULT_LATE_WRITE)) {
            uint64_t later = dev->faults[SV_FAULT_LATE_WRITE].value * UINT64_C(1000000);
            sv_packet_hold(dev, packet, dev->nic->now_ns + later, true);
        }
    }
    if (0 != (head->flags & SV_HAS_IMM) && head->offset + head->length == head->message_length) {
        if (!sv_take_recv(qp, &recv)) {
            no_receive(qp);
            return false;
        }
        sv_complete_recv(qp, &recv, head, IBV_WC_SUCCESS, IBV_WC_RECV_RDMA_WITH_IMM,
                         head->message_length, 0);
    }
    return true;
}

void sv_rc_late_write(sv_qp_t *qp, const sv_packet_t *packet)
{
    uint64_t at;

    if (may_write(qp, &packet->head, &at)) {
        ++qp->dev->counters.late_landed;
        sv_write_for_peer(qp, at, packet->payload, packet->head.length);
    } else {
        ++qp->dev->counters.late_refused;
    }
}

static bool take_read(sv_qp_t *qp, const sv_packet_t *packet)
{
    const sv_head_t *head = &packet->head;
    uint32_t segment = qp->dev->nic->segment;
    uint64_t at = 0;

    if (head->message_length > 0 &&
        (0 == (qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_READ) ||
         !sv_key_allows(qp, head->rkey, head->remote_addr, head->message_length,
                        IBV_ACCESS_REMOTE_READ, &at))) {
        refuse(qp, SV_OP_NAK_ACCESS);
        return false;
    }
    for (uint32_t i = 0; i < head->packets && i < SV_WINDOW; ++i) {
        uint32_t offset = i * segment, left = head->message_length - offset;
        sv_packet_t *answer =
            sv_packet_new(qp->dev, qp->peer_ip, qp->attr.dest_qp_num, qp->number, SV_OP_ANSWER);
        answer->head.psn = head->psn + i;
        answer->head.length = (uint16_t) (left < segment ? left : segment);
        sv_read(qp, answer->payload, at + offset, answer->head.length);
    }
    return true;
}

static void answer_atomic(sv_qp_t *qp, uint32_t psn, uint64_t value)
{
    sv_packet_t *answer =
        sv_packet_new(qp->dev, qp->peer_ip, qp->attr.dest_qp_num, qp->number, SV_OP_ANSWER);

    answer->head.psn = psn;
    answer->head.length = sizeof(value);
    memcpy(answer->payload, &value, sizeof(value));
}

/* Atomic with regard to other operations of NICs on this host only (IBV_ATOMIC_HCA). */
static bool take_atomic(sv_qp_t *qp, const sv_packet_t *packet)
{
    const sv_head_t *head = &packet->head;
    uint32_t place = qp->atomics_done % SV_RD_ATOMICS;
    uint64_t at, old, value;

    if (0 == (qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC) || 0 != head->remote_addr % 8 ||
        !sv_key_allows(qp, head->rkey, head->remote_addr, sizeof(old), IBV_ACCESS_REMOTE_ATOMIC,
                       &at)) {
        refuse(qp, SV_OP_NAK_ACCESS);
        return false;
    }
    sv_read(qp, &old, at, sizeof(old));
    if (0 == (head->flags & SV_COMPARES)) {
        value = old + head->value;
    } else {
        value = old == head->value ? head->swap : old;
    }
    if (value != old) {
        sv_write_for_peer(qp, at, &value, sizeof(value));
    }
    qp->atomics[place].psn = head->psn;
    qp->atomics[place].value = old;
    qp->atomics[place].is_set = true;
    ++qp->atomics_done;
    answer_atomic(qp, head->psn, old);
    return true;
}

static void repeated(sv_qp_t *qp, const sv_packet_t *packet)
{
    const sv_head_t *head = &packet->head;
    uint32_t end = head->psn + head->packets;

    if (SV_OP_READ == head->op) {
        if (take_read(qp, packet) && (int32_t) (end - qp->expected_psn) > 0) {
            qp->expected_psn = end; /* it was asked for in other pieces before */
        }
    } else if (SV_OP_ATOMIC == head->op) {
        for (int i = 0; i < SV_RD_ATOMICS; ++i) {
            if (qp->atomics[i].is_set && qp->atomics[i].psn == head->psn) {
                answer_atomic(qp, head->psn, qp->atomics[i].value);
            }
        }
    } else {
        qp->owes_ack = true;
        sv_touch(qp);
    }
}

void sv_rc_request(sv_qp_t *qp, sv_packet_t *packet)
{
    static bool (*const take[])(sv_qp_t *, const sv_packet_t *) = {
        [SV_OP_SEND] = take_send,
        [SV_OP_WRITE] = take_write,
        [SV_OP_READ] = take_read,
        [SV_OP_ATOMIC] = take_atomic,
    };
    int32_t ahead = (int32_t) (packet->head.psn - qp->expected_psn);

    if (SV_OP_SEND != packet->head.op && sv_fault_hits(qp->dev, SV_FAULT_KEY)) {
        packet->head.rkey ^= 0x80; /* the part that an index has when it is used again */
        ++qp->dev->counters.keys_changed;
    }
    if (ahead > 0) {
        if (0 == qp->out_of_order++ % GAPS_PER_NAK) {
            sv_rc_control(qp, SV_OP_NAK_GAP);
        }
    } else if (ahead < 0) {
        repeated(qp, packet);
    } else {
        qp->out_of_order = 0;
        if (take[packet->head.op](qp, packet)) {
            qp->expected_psn += SV_OP_READ == packet->head.op ? packet->head.packets : 1;
            if (0 != (packet->head.flags & SV_WANTS_ACK)) {
                qp->owes_ack = true;
                sv_touch(qp);
            }
        }
    }
}
