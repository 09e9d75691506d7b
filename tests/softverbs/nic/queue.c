/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Completions, receives and events: what a NIC tells a process and takes from it.
 */
#include "softverbs/nic/nic.h"

#include <string.h>

void sv_tell_event(sv_context_t *context, uint32_t type, uint32_t object)
{
    sv_event_t event = {.type = type, .object = object};

    if (context->events >= 0) {
        context->nic->world->tell(context->events, &event, sizeof(event));
    }
}

/* Takes an armed queue's word: true if its channel is to be told. */
static bool fires(sv_cq_t *cq, bool is_solicited)
{
    uint32_t armed = __atomic_load_n(&cq->ring.shared->armed, __ATOMIC_SEQ_CST);

    if (0 == armed || (1 == armed && !is_solicited)) {
        return false;
    }
    return 0 != __atomic_exchange_n(&cq->ring.shared->armed, 0, __ATOMIC_SEQ_CST);
}

void sv_complete(sv_cq_t *cq, const struct ibv_wc *wc, uint32_t flags, uint32_t send_next)
{
    sv_dev_t *dev = cq->context->dev;
    sv_cqe_t *cqe;

    if (cq->context->is_dead) {
        return;
    }
    if (sv_ring_tail(&cq->ring) - sv_ring_head(&cq->ring) >= cq->ring.capacity) {
        ++dev->counters.overruns;
        if (!cq->has_overrun) {
            cq->has_overrun = true;
            sv_tell_event(cq->context, IBV_EVENT_CQ_ERR, cq->number);
        }
        return;
    }
    cqe = sv_ring_at(&cq->ring, sv_ring_tail(&cq->ring));
    cqe->wc = *wc;
    cqe->flags = flags;
    cqe->send_next = send_next;
    sv_ring_put(&cq->ring);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* against the other side's: arm, then look */
    if (NULL != cq->channel &&
        fires(cq, 0 != (flags & SV_CQE_SOLICITED) || IBV_WC_SUCCESS != wc->status)) {
        cq->context->nic->world->tell(cq->channel->fd, &cq->number, sizeof(cq->number));
    }
}

static enum ibv_wc_opcode done_as(uint32_t opcode)
{
    switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
        return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return IBV_WC_FETCH_ADD;
    default:
        return IBV_WC_SEND;
    }
}

void sv_complete_send(sv_qp_t *qp, uint32_t number, enum ibv_wc_status status)
{
    const sv_send_t *send = sv_ring_at(&qp->sends, number);
    sv_dev_t *dev = qp->dev;
    struct ibv_wc wc;

    if (IBV_WC_SUCCESS == status) {
        if (0 == (send->flags & IBV_SEND_SIGNALED) && !qp->signals_all) {
            return;
        }
        if (sv_fault_hits(dev, SV_FAULT_NO_COMPLETION)) {
            ++dev->counters.untold;
            return;
        }
        if (sv_fault_hits(dev, SV_FAULT_ERROR)) {
            status = (enum ibv_wc_status) dev->faults[SV_FAULT_ERROR].value;
        }
    }
    memset(&wc, 0, sizeof(wc));
    wc.wr_id = send->wr_id;
    wc.status = status;
    wc.opcode = done_as(send->opcode);
    wc.byte_len = send->length;
    wc.qp_num = qp->number;
    sv_complete(qp->send_cq, &wc, SV_CQE_SEND | SV_CQE_SOLICITED, number + 1);
}

void sv_complete_recv(sv_qp_t *qp, const sv_recv_t *recv, const sv_head_t *head,
                      enum ibv_wc_status status, enum ibv_wc_opcode opcode, uint32_t size,
                      uint32_t flags)
{
    struct ibv_wc wc;
    bool is_solicited = false;

    memset(&wc, 0, sizeof(wc));
    wc.wr_id = recv->wr_id;
    wc.status = status;
    wc.opcode = opcode;
    wc.byte_len = size;
    wc.qp_num = qp->number;
    wc.wc_flags = flags;
    if (NULL != head) {
        wc.src_qp = head->source_qpn;
        wc.imm_data = head->imm;
        wc.wc_flags |= 0 != (head->flags & SV_HAS_IMM) ? IBV_WC_WITH_IMM : 0;
        is_solicited = 0 != (head->flags & SV_SOLICITED);
    }
    if (0 != (flags & IBV_WC_GRH)) {
        wc.sl = 0xa; /* as mlx5 tells RoCE v2 (8) over IPv4 (2): UCX's ud looks at it */
    }
    sv_complete(qp->recv_cq, &wc, is_solicited ? SV_CQE_SOLICITED : 0, 0);
}

bool sv_take_recv(sv_qp_t *qp, sv_recv_t *recv_p)
{
    sv_ring_t *ring = NULL == qp->srq ? &qp->recvs : &qp->srq->ring;
    uint32_t *taken = NULL == qp->srq ? &qp->recvs_taken : &qp->srq->taken;
    uint32_t left;

    if (NULL == ring->shared || *taken == sv_ring_tail(ring)) {
        return false;
    }
    memcpy(recv_p, sv_ring_at(ring, *taken), sizeof(*recv_p));
    if (recv_p->sge_count > SV_RECV_SGES) {
        recv_p->sge_count = SV_RECV_SGES;
    }
    ++*taken;
    left = sv_ring_tail(ring) - *taken;
    if (NULL != qp->srq && left < qp->srq->limit) {
        qp->srq->limit = 0;
        sv_tell_event(qp->context, IBV_EVENT_SRQ_LIMIT_REACHED, qp->srq->number);
    }
    return true;
}

void sv_flush_recvs(sv_qp_t *qp)
{
    sv_recv_t recv;

    if (qp->is_receiving) {
        qp->is_receiving = false;
        sv_complete_recv(qp, &qp->recv, NULL, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV, 0, 0);
    }
    while (NULL == qp->srq && sv_take_recv(qp, &recv)) {
        sv_complete_recv(qp, &recv, NULL, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV, 0, 0);
    }
}
