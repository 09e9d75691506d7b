/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Queue pairs.
 */
#include "softverbs/lib/lib.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEAST_SGES = 2 };

static bool is_possible(const struct ibv_qp_init_attr *attr)
{
    return (IBV_QPT_RC == attr->qp_type || IBV_QPT_UD == attr->qp_type) &&
           attr->cap.max_send_sge <= SV_SEND_SGES && attr->cap.max_recv_sge <= SV_RECV_SGES &&
           attr->cap.max_inline_data <= SV_INLINE_BYTES;
}

/* Makes the rings and asks the NIC for a queue pair. Returns 0 or an errno. */
static int make(sv_lib_qp_t *qp, sv_lib_pd_t *pd, const struct ibv_qp_init_attr *attr)
{
    sv_request_t request = {.verb = SV_QP};
    sv_reply_t *reply = malloc(sizeof(*reply));
    int fds[2] = {-1, -1}, count = NULL == attr->srq ? 2 : 1, error = ENOMEM;

    request.u.qp.pd = pd->number;
    request.u.qp.type = (uint32_t) attr->qp_type;
    request.u.qp.send_cq = ((sv_lib_cq_t *) attr->send_cq)->number;
    request.u.qp.recv_cq = ((sv_lib_cq_t *) attr->recv_cq)->number;
    request.u.qp.srq = NULL == attr->srq ? 0 : ((sv_lib_srq_t *) attr->srq)->number;
    request.u.qp.signal_all = attr->sq_sig_all != 0;
    fds[0] = sv_ring_create(&qp->sends, qp->cap.max_send_wr, sizeof(sv_send_t));
    if (2 == count) {
        fds[1] = sv_ring_create(&qp->recvs, qp->cap.max_recv_wr, sizeof(sv_recv_t));
    }
    if (NULL != reply && fds[0] >= 0 && fds[count - 1] >= 0) {
        error = sv_lib_ask(sv_context_of(pd->ibv.context), &request, fds, count, reply);
    }
    if (0 == error) {
        qp->ibv.qp_num = reply->object;
        qp->slot = reply->u.qp.slot;
    }
    for (int i = 0; i < 2; ++i) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    free(reply);
    return error;
}

static void fill(struct ibv_qp *ibv, struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
    ibv->context = pd->context;
    ibv->qp_context = attr->qp_context;
    ibv->pd = pd;
    ibv->send_cq = attr->send_cq;
    ibv->recv_cq = attr->recv_cq;
    ibv->srq = attr->srq;
    ibv->qp_type = attr->qp_type;
    ibv->state = IBV_QPS_RESET;
}

SV_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    sv_lib_context_t *context = sv_context_of(pd->context);
    sv_lib_qp_t *qp = is_possible(attr) ? calloc(1, sizeof(*qp)) : NULL;
    int error;

    if (NULL == qp) {
        errno = EINVAL;
        return NULL;
    }
    qp->cap = attr->cap;
    qp->cap.max_send_wr = 0 == qp->cap.max_send_wr ? 1 : qp->cap.max_send_wr;
    qp->cap.max_recv_wr = 0 == qp->cap.max_recv_wr ? 1 : qp->cap.max_recv_wr;
    if (qp->cap.max_send_sge < LEAST_SGES) {
        qp->cap.max_send_sge = LEAST_SGES;
    }
    qp->cap.max_inline_data = SV_INLINE_BYTES;
    qp->signals_all = 0 != attr->sq_sig_all;
    error = make(qp, (sv_lib_pd_t *) pd, attr);
    if (0 != error) {
        sv_ring_unmap(&qp->sends);
        sv_ring_unmap(&qp->recvs);
        free(qp);
        errno = error;
        return NULL;
    }
    attr->cap = qp->cap;
    fill(&qp->ibv, pd, attr);
    pthread_mutex_init(&qp->lock, NULL);
    pthread_mutex_lock(&context->lock);
    context->qps[qp->ibv.qp_num % SV_LIB_PLACES] = qp;
    pthread_mutex_unlock(&context->lock);
    return &qp->ibv;
}

SV_EXPORT int ibv_destroy_qp(struct ibv_qp *ibv)
{
    sv_lib_context_t *context = sv_context_of(ibv->context);
    sv_lib_qp_t *qp = (sv_lib_qp_t *) ibv;
    sv_request_t request = {.verb = SV_QP_GONE, .object = ibv->qp_num};
    sv_reply_t *reply = malloc(sizeof(*reply));
    int error = NULL == reply ? ENOMEM : sv_lib_ask(context, &request, NULL, 0, reply);

    if (0 != error) {
        free(reply);
        return error;
    }
    if (NULL != ibv->srq) { /* what was being filled */
        __atomic_add_fetch(&((sv_lib_srq_t *) ibv->srq)->released, reply->u.taken,
                           __ATOMIC_RELEASE);
    }
    free(reply);
    sv_lib_forget(ibv->send_cq, qp);
    sv_lib_forget(ibv->recv_cq, qp);
    pthread_mutex_lock(&context->lock);
    context->qps[ibv->qp_num % SV_LIB_PLACES] = NULL;
    sv_lib_wait_acked(context, &qp->events);
    pthread_mutex_unlock(&context->lock);
    sv_ring_unmap(&qp->sends);
    sv_ring_unmap(&qp->recvs);
    free(qp);
    return 0;
}

SV_EXPORT int ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask)
{
    sv_lib_qp_t *qp = (sv_lib_qp_t *) ibv;
    sv_request_t request = {.verb = SV_QP_MODIFY, .object = ibv->qp_num};
    int error;

    request.u.modify.attr = *attr;
    request.u.modify.mask = (uint32_t) mask;
    error = sv_lib_ask(sv_context_of(ibv->context), &request, NULL, 0, NULL);
    if (0 == error && 0 != (mask & IBV_QP_STATE)) {
        ibv->state = attr->qp_state; /* set by nothing else, as in rdma-core */
        if (IBV_QPS_RESET == attr->qp_state) {
            sv_lib_forget(ibv->send_cq, qp);
            sv_lib_forget(ibv->recv_cq, qp);
            qp->sends_released = sv_ring_tail(&qp->sends);
            if (NULL == ibv->srq) {
                qp->recvs_released = sv_ring_tail(&qp->recvs);
            }
        }
    }
    errno = 0 == error ? errno : error;
    return error;
}

SV_EXPORT int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int mask,
                           struct ibv_qp_init_attr *init)
{
    const sv_lib_qp_t *qp = (sv_lib_qp_t *) ibv;
    sv_request_t request = {.verb = SV_QP_QUERY, .object = ibv->qp_num};
    sv_reply_t *reply = malloc(sizeof(*reply));
    int error =
        NULL == reply ? ENOMEM : sv_lib_ask(sv_context_of(ibv->context), &request, NULL, 0, reply);

    if (0 == error) {
        *attr = reply->u.attr;
        attr->cap = qp->cap;
        if (0 != (mask & IBV_QP_STATE)) {
            ibv->state = attr->qp_state;
        }
        memset(init, 0, sizeof(*init));
        init->cap = qp->cap;
        init->qp_type = ibv->qp_type;
        init->send_cq = ibv->send_cq;
        init->recv_cq = ibv->recv_cq;
        init->srq = ibv->srq;
        init->sq_sig_all = qp->signals_all;
    }
    free(reply);
    return error;
}

SV_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void) qp, (void) ece;
    return EOPNOTSUPP;
}

SV_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    (void) qp, (void) ece;
    return EOPNOTSUPP;
}

/* ---- work requests */

int sv_lib_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    sv_lib_qp_t *qp = (sv_lib_qp_t *) ibv;
    int error;

    if (NULL != ibv->srq || IBV_QPS_RESET == ibv->state) {
        *bad = wr;
        return EINVAL;
    }
    pthread_mutex_lock(&qp->lock);
    error = sv_lib_put_recvs(&qp->recvs, qp->cap.max_recv_wr, &qp->recvs_released, wr, bad);
    pthread_mutex_unlock(&qp->lock);
    return error;
}

/* The bytes of a send: copied, or where they lie. False where that is more than there may be. */
static bool set_pieces(sv_send_t *send, const struct ibv_send_wr *wr)
{
    uint32_t length = 0;

    send->sge_count = 0 != (wr->send_flags & IBV_SEND_INLINE) ? 0 : (uint32_t) wr->num_sge;
    for (int i = 0; i < wr->num_sge; ++i) {
        const struct ibv_sge *sge = &wr->sg_list[i];
        if (0 == (wr->send_flags & IBV_SEND_INLINE)) {
            send->data.sge[i] = *sge;
        } else if (length + sge->length > SV_INLINE_BYTES) {
            return false;
        } else if (sge->length > 0) {
            memcpy(send->data.bytes + length, (const void *) (uintptr_t) sge->addr, sge->length);
        }
        length += sge->length;
    }
    send->length = length;
    return true;
}

static void set_target(sv_send_t *send, const struct ibv_send_wr *wr, enum ibv_qp_type type)
{
    if (IBV_QPT_UD == type) {
        send->dest_ip = ((const sv_lib_ah_t *) wr->wr.ud.ah)->ip;
        send->dest_qpn = wr->wr.ud.remote_qpn;
        send->qkey = wr->wr.ud.remote_qkey;
    } else if (IBV_WR_ATOMIC_CMP_AND_SWP == wr->opcode ||
               IBV_WR_ATOMIC_FETCH_AND_ADD == wr->opcode) {
        send->remote_addr = wr->wr.atomic.remote_addr;
        send->rkey = wr->wr.atomic.rkey;
        send->compare_add = wr->wr.atomic.compare_add;
        send->swap = wr->wr.atomic.swap;
    } else {
        send->remote_addr = wr->wr.rdma.remote_addr;
        send->rkey = wr->wr.rdma.rkey;
    }
}

/* Puts one request into the queue of sends. Returns 0 or an errno. */
static int put_send(sv_lib_qp_t *qp, const struct ibv_send_wr *wr)
{
    sv_send_t *send = sv_ring_at(&qp->sends, sv_ring_tail(&qp->sends));
    uint32_t used =
        sv_ring_tail(&qp->sends) - __atomic_load_n(&qp->sends_released, __ATOMIC_ACQUIRE);

    if (used >= qp->cap.max_send_wr || wr->num_sge > SV_SEND_SGES) {
        return ENOMEM;
    }
    if ((IBV_QPS_RTS != qp->ibv.state && IBV_QPS_ERR != qp->ibv.state) ||
        wr->opcode > IBV_WR_ATOMIC_FETCH_AND_ADD || !set_pieces(send, wr)) {
        return EINVAL;
    }
    send->wr_id = wr->wr_id;
    send->opcode = wr->opcode;
    send->flags = wr->send_flags;
    send->imm = wr->imm_data;
    set_target(send, wr, qp->ibv.qp_type);
    sv_lib_gpu_touch(wr);
    sv_ring_put(&qp->sends);
    return 0;
}

static void ring_bell(sv_lib_context_t *context, uint32_t slot)
{
    uint64_t one = 1;

    __atomic_or_fetch(&context->bells->bits[slot / 64], one << slot % 64, __ATOMIC_SEQ_CST);
    __atomic_or_fetch(&context->bells->some[slot / 64 / 64], one << slot / 64 % 64,
                      __ATOMIC_SEQ_CST);
    if (0 != __atomic_load_n(&context->page->asleep, __ATOMIC_SEQ_CST) &&
        0 != __atomic_exchange_n(&context->page->asleep, 0, __ATOMIC_SEQ_CST)) {
        if (write(context->wake, &one, sizeof(one)) < 0) {
            return; /* it is told already */
        }
    }
}

int sv_lib_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    sv_lib_qp_t *qp = (sv_lib_qp_t *) ibv;
    int error = 0;

    pthread_mutex_lock(&qp->lock);
    for (; 0 == error && NULL != wr; wr = 0 == error ? wr->next : wr) {
        error = put_send(qp, wr);
        if (0 != error) {
            *bad = wr;
        }
    }
    pthread_mutex_unlock(&qp->lock);
    ring_bell(sv_context_of(ibv->context), qp->slot);
    return error;
}
