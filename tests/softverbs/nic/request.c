/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Reliable connections, the side that makes requests: go-back-N with a window of SV_WINDOW packets.
 *
 *   una_psn <= next_psn <= end_psn     oldest not acknowledged, next to send, first not posted
 *
 * A timeout goes back to una_psn, retry_cnt times without progress, then the queue pair fails with
 * RETRY_EXC. A gap that is told goes back once for each una_psn; what is lost again is the timer's.
 * Where no receive is posted one packet asks for one, and what is taken doubles what may be under
 * way: a NIC that sends its whole window again and again costs nobody a processor, this one does.
 */
#include "softverbs/nic/nic.h"

enum { NO_LIMIT_RNR = 7, ASK_ACK_EVERY = SV_WINDOW / 4 };

static sv_send_t *send_at(const sv_qp_t *qp, uint32_t number)
{
    return sv_ring_at(&qp->sends, number);
}

static sv_flight_t *flight_at(const sv_qp_t *qp, uint32_t number)
{
    return &qp->flights[number & (qp->sends.capacity - 1)];
}

static bool is_atomic(const sv_send_t *send)
{
    return IBV_WR_ATOMIC_CMP_AND_SWP == send->opcode || IBV_WR_ATOMIC_FETCH_AND_ADD == send->opcode;
}

/* Moved on by its answer, not by acknowledgements. */
static bool is_answered(const sv_send_t *send)
{
    return IBV_WR_RDMA_READ == send->opcode || is_atomic(send);
}

static uint32_t window_of(const sv_qp_t *qp)
{
    return 0 == qp->window ? SV_WINDOW : qp->window;
}

/* ---- errors and timers */

void sv_rc_error(sv_qp_t *qp, enum ibv_wc_status status)
{
    if (IBV_QPS_ERR == qp->attr.qp_state) {
        return;
    }
    qp->attr.qp_state = IBV_QPS_ERR;
    qp->deadline_ns = qp->rnr_until_ns = 0;
    while (qp->first != sv_ring_tail(&qp->sends)) {
        sv_complete_send(qp, qp->first, status);
        status = IBV_WC_WR_FLUSH_ERR;
        ++qp->first;
    }
    qp->fresh = qp->current = qp->first;
    qp->una_psn = qp->next_psn = qp->end_psn;
    sv_flush_recvs(qp);
    if (NULL != qp->srq) {
        sv_tell_event(qp->context, IBV_EVENT_QP_LAST_WQE_REACHED, qp->number);
    }
}

static void set_timer(sv_qp_t *qp)
{
    uint64_t least = qp->dev->nic->least_timeout_ns, wait = UINT64_C(4096)
                                                            << (qp->attr.timeout & 31);

    qp->deadline_ns = 0;
    if (qp->una_psn != qp->next_psn && 0 != qp->attr.timeout) {
        qp->deadline_ns = qp->dev->nic->now_ns + (wait < least ? least : wait);
        sv_wake_at(qp->dev, qp->deadline_ns);
    }
}

/* ---- sending */

static sv_packet_t *new_request(sv_qp_t *qp, const sv_send_t *send, sv_op_t op, uint32_t offset)
{
    sv_packet_t *packet = sv_packet_new(qp->dev, qp->peer_ip, qp->attr.dest_qp_num, qp->number, op);

    packet->head.psn = qp->next_psn;
    packet->head.offset = offset;
    packet->head.message_length = send->length;
    packet->head.remote_addr = send->remote_addr + offset;
    packet->head.rkey = send->rkey;
    return packet;
}

static void push_atomic(sv_qp_t *qp, const sv_send_t *send)
{
    sv_head_t *head = &new_request(qp, send, SV_OP_ATOMIC, 0)->head;

    head->flags = IBV_WR_ATOMIC_CMP_AND_SWP == send->opcode ? SV_COMPARES : 0;
    head->value = send->compare_add;
    head->swap = send->swap;
    ++qp->next_psn;
}

static void push_read(sv_qp_t *qp, const sv_send_t *send, uint32_t done, uint32_t packets)
{
    uint32_t segment = qp->dev->nic->segment, offset = done * segment;
    uint32_t room = SV_WINDOW - (qp->next_psn - qp->una_psn);
    uint32_t count = packets - done < room ? packets - done : room, left = send->length - offset;
    sv_head_t *head = &new_request(qp, send, SV_OP_READ, offset)->head;

    head->packets = count;
    head->message_length = left < count * segment ? left : count * segment;
    qp->next_psn += count;
}

/* False where the memory may not be read: the queue pair fails once all before is done. */
static bool push_data(sv_qp_t *qp, const sv_send_t *send, uint32_t done, uint32_t packets)
{
    static const uint8_t has_imm[] = {
        [IBV_WR_RDMA_WRITE_WITH_IMM] = SV_HAS_IMM,
        [IBV_WR_SEND_WITH_IMM] = SV_HAS_IMM,
    };
    bool is_write = send->opcode <= IBV_WR_RDMA_WRITE_WITH_IMM;
    uint32_t segment = qp->dev->nic->segment, offset = done * segment;
    uint32_t left = send->length - offset;
    sv_packet_t *packet = new_request(qp, send, is_write ? SV_OP_WRITE : SV_OP_SEND, offset);
    sv_head_t *head = &packet->head;

    head->length = (uint16_t) (left < segment ? left : segment);
    if (SV_REACHED != sv_gather(qp, send, offset, packet->payload, head->length)) {
        sv_packet_drop(qp->dev);
        if (qp->una_psn == qp->next_psn) {
            sv_rc_error(qp, IBV_WC_LOC_PROT_ERR);
        }
        return false;
    }
    ++qp->next_psn;
    head->imm = send->imm;
    head->flags = send->opcode < sizeof(has_imm) ? has_imm[send->opcode] : 0;
    head->flags |= 0 != (send->flags & IBV_SEND_SOLICITED) ? SV_SOLICITED : 0;
    if (done + 1 == packets || 0 == qp->next_psn % ASK_ACK_EVERY ||
        qp->next_psn - qp->una_psn == qp->window) {
        head->flags |= SV_WANTS_ACK;
    }
    return true;
}

/* The send that next_psn is in, where it may go now; NULL: later. */
static const sv_send_t *next_send(sv_qp_t *qp, uint32_t *done_p)
{
    const sv_send_t *send;
    uint32_t most = qp->attr.max_rd_atomic;

    while (qp->next_psn - flight_at(qp, qp->current)->psn >= flight_at(qp, qp->current)->packets) {
        ++qp->current;
    }
    send = send_at(qp, qp->current);
    *done_p = qp->next_psn - flight_at(qp, qp->current)->psn;
    if (0 == *done_p && 0 != (send->flags & IBV_SEND_FENCE) && qp->una_psn != qp->next_psn) {
        return NULL;
    }
    if (0 == *done_p && is_answered(send)) {
        if (qp->answers >= (most < SV_RD_ATOMICS ? most : SV_RD_ATOMICS)) {
            return NULL;
        }
        ++qp->answers;
    }
    return send;
}

void sv_rc_push(sv_qp_t *qp)
{
    bool was_idle = qp->una_psn == qp->next_psn;

    if (IBV_QPS_RTS != qp->attr.qp_state || qp->rnr_until_ns > qp->dev->nic->now_ns) {
        return;
    }
    qp->rnr_until_ns = 0;
    while (qp->next_psn != qp->end_psn && qp->next_psn - qp->una_psn < window_of(qp)) {
        uint32_t done;
        const sv_send_t *send = next_send(qp, &done);
        if (NULL == send) {
            break;
        }
        if (is_atomic(send)) {
            push_atomic(qp, send);
        } else if (IBV_WR_RDMA_READ == send->opcode) {
            push_read(qp, send, done, flight_at(qp, qp->current)->packets);
        } else if (!push_data(qp, send, done, flight_at(qp, qp->current)->packets)) {
            break;
        }
    }
    if (was_idle && qp->una_psn != qp->next_psn) {
        set_timer(qp);
    }
}

void sv_rc_posted(sv_qp_t *qp)
{
    uint32_t segment = qp->dev->nic->segment;

    while (qp->fresh != sv_ring_tail(&qp->sends) && qp->fresh - qp->first < qp->sends.capacity) {
        const sv_send_t *send = send_at(qp, qp->fresh);
        sv_flight_t *flight = flight_at(qp, qp->fresh);
        if (IBV_QPS_ERR == qp->attr.qp_state) {
            sv_complete_send(qp, qp->fresh, IBV_WC_WR_FLUSH_ERR);
            ++qp->first;
        }
        flight->psn = qp->end_psn;
        flight->packets =
            is_atomic(send) || 0 == send->length ? 1 : (send->length + segment - 1) / segment;
        if (IBV_QPS_ERR != qp->attr.qp_state) {
            qp->end_psn += flight->packets;
        }
        ++qp->fresh;
    }
    sv_rc_push(qp);
}

/* ---- what comes back */

static void go_back(sv_qp_t *qp)
{
    qp->dev->counters.resent += qp->next_psn - qp->una_psn;
    qp->next_psn = qp->una_psn;
    qp->current = qp->first;
    qp->answers = 0;
}

static void gap(sv_qp_t *qp)
{
    if (!qp->has_gone_back || qp->went_back_psn != qp->una_psn) {
        qp->has_gone_back = true;
        qp->went_back_psn = qp->una_psn;
        go_back(qp);
        sv_rc_push(qp);
    }
}

/* una_psn has moved on. */
static void progressed(sv_qp_t *qp)
{
    if ((int32_t) (qp->next_psn - qp->una_psn) < 0) { /* what was to be sent again has arrived */
        qp->next_psn = qp->una_psn;
    }
    if ((int32_t) (qp->current - qp->first) < 0) {
        qp->current = qp->first;
    }
    qp->retries = qp->rnr_retries = 0;
    qp->window = 2 * qp->window < SV_WINDOW ? 2 * qp->window : 0;
    qp->has_gone_back = false;
    set_timer(qp);
    sv_touch(qp);
}

static void finish_first(sv_qp_t *qp)
{
    if (is_answered(send_at(qp, qp->first)) && qp->answers > 0) {
        --qp->answers;
    }
    sv_complete_send(qp, qp->first, IBV_WC_SUCCESS);
    ++qp->first;
}

/* All before psn has arrived; an answer that was passed over has been lost. */
static void arrived_before(sv_qp_t *qp, uint32_t psn)
{
    uint32_t was = qp->una_psn;
    bool is_lost = false;

    if ((int32_t) (psn - qp->end_psn) > 0) {
        return;
    }
    while ((int32_t) (psn - qp->una_psn) > 0 && !is_lost) {
        const sv_flight_t *flight = flight_at(qp, qp->first);
        uint32_t end = flight->psn + flight->packets;
        is_lost = is_answered(send_at(qp, qp->first));
        if (!is_lost) {
            qp->una_psn = (int32_t) (psn - end) < 0 ? psn : end;
            if (qp->una_psn == end) {
                finish_first(qp);
            }
        }
    }
    if (was != qp->una_psn) {
        progressed(qp);
    }
    if (is_lost) {
        gap(qp);
    }
}

void sv_rc_answer(sv_qp_t *qp, const sv_packet_t *packet)
{
    uint32_t psn = packet->head.psn;
    const sv_send_t *send;
    const sv_flight_t *flight;

    arrived_before(qp, psn);
    if (psn != qp->una_psn) {
        if ((int32_t) (psn - qp->una_psn) > 0 && (int32_t) (qp->end_psn - psn) > 0) {
            gap(qp);
        }
        return;
    }
    send = send_at(qp, qp->first);
    flight = flight_at(qp, qp->first);
    if (qp->una_psn == qp->end_psn || qp->first == qp->fresh || !is_answered(send)) {
        return;
    }
    if (SV_REACHED != sv_scatter(qp, send->data.sge, send->sge_count,
                                 (psn - flight->psn) * qp->dev->nic->segment, packet->payload,
                                 packet->head.length)) {
        sv_rc_error(qp, IBV_WC_LOC_PROT_ERR);
        return;
    }
    ++qp->una_psn;
    if (qp->una_psn == flight->psn + flight->packets) {
        finish_first(qp);
    }
    progressed(qp);
}

static void no_receive(sv_qp_t *qp, uint64_t wait_ns)
{
    if (NO_LIMIT_RNR != qp->attr.rnr_retry && ++qp->rnr_retries > qp->attr.rnr_retry) {
        sv_rc_error(qp, IBV_WC_RNR_RETRY_EXC_ERR);
        return;
    }
    go_back(qp);
    qp->window = 1;
    qp->deadline_ns = 0;
    qp->rnr_until_ns = qp->dev->nic->now_ns + wait_ns;
    sv_wake_at(qp->dev, qp->rnr_until_ns);
}

void sv_rc_acked(sv_qp_t *qp, const sv_packet_t *packet)
{
    static const enum ibv_wc_status failed[SV_OPS] = {
        [SV_OP_NAK_ACCESS] = IBV_WC_REM_ACCESS_ERR,
        [SV_OP_NAK_LENGTH] = IBV_WC_REM_INV_REQ_ERR,
        [SV_OP_NAK_FAILED] = IBV_WC_REM_OP_ERR,
    };
    uint32_t rnr_retries = qp->rnr_retries, una_psn = qp->una_psn;

    arrived_before(qp, packet->head.psn);
    if (SV_OP_NAK_GAP == packet->head.op) {
        gap(qp);
    } else if (SV_OP_NAK_RNR == packet->head.op) {
        qp->rnr_retries = una_psn == qp->una_psn ? rnr_retries : 0;
        no_receive(qp, packet->head.value);
    } else if (SV_OP_ACK != packet->head.op) {
        sv_rc_error(qp, failed[packet->head.op]);
    }
}

void sv_rc_timer(sv_qp_t *qp)
{
    uint64_t now = qp->dev->nic->now_ns;

    if (0 != qp->rnr_until_ns && now >= qp->rnr_until_ns) {
        sv_rc_push(qp);
    }
    if (0 != qp->deadline_ns && now >= qp->deadline_ns) {
        ++qp->dev->counters.timeouts;
        if (++qp->retries > qp->attr.retry_cnt) {
            sv_rc_error(qp, IBV_WC_RETRY_EXC_ERR);
            return;
        }
        go_back(qp);
        sv_rc_push(qp);
        set_timer(qp);
    }
    if (0 != qp->deadline_ns) {
        sv_wake_at(qp->dev, qp->deadline_ns);
    }
    if (0 != qp->rnr_until_ns) {
        sv_wake_at(qp->dev, qp->rnr_until_ns);
    }
}
