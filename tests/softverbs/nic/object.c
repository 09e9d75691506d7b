/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What processes make and what goes: devices, memory regions, queues, queue pairs.
 */
#include "softverbs/nic/nic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>

enum { FIRST_QPN = 16, LAST_QPN = 0xfffffe };

sv_dev_t *sv_dev_create(sv_nic_t *nic, const sv_device_t *about)
{
    sv_dev_t *dev = calloc(1, sizeof(*dev));

    if (NULL == dev) {
        return NULL;
    }
    dev->nic = nic;
    dev->about = *about;
    dev->socket = -1;
    dev->speed = 4; /* QDR */
    dev->width = 1; /* 1x: 10 Gbit/s */
    dev->gid_index = about->is_ib ? 0 : 1;
    dev->next_qpn = FIRST_QPN;
    dev->wake_ns = UINT64_MAX;
    dev->places = calloc(SV_QP_PLACES, sizeof(sv_qp_t *));
    dev->batch = malloc(SV_BATCH * sizeof(*dev->batch));
    if (NULL == dev->places || NULL == dev->batch) {
        sv_dev_destroy(dev);
        return NULL;
    }
    return dev;
}

void sv_dev_destroy(sv_dev_t *dev)
{
    while (NULL != dev->held) {
        sv_held_t *held = dev->held;
        dev->held = held->next;
        free(held);
    }
    sv_table_fini(&dev->mrs);
    if (dev->socket >= 0) {
        close(dev->socket);
    }
    free(dev->places);
    free(dev->batch);
    free(dev);
}

/* ---- addresses of InfiniBand: 16 bits in a subnet, here the last ones of the address */

uint16_t sv_lid(const sv_dev_t *dev)
{
    return dev->about.is_ib ? (uint16_t) ntohl(dev->about.ip) : 0;
}

uint32_t sv_ip_of_lid(const sv_dev_t *dev, uint32_t lid)
{
    return htonl((ntohl(dev->about.ip) & 0xffff0000u) | lid);
}

/* ---- memory */

int sv_mr_create(sv_context_t *context, const sv_request_t *request, uint32_t *key_p)
{
    static uint8_t tag; /* the key of a region that is gone fits none that takes its place */
    sv_mr_t *mr = calloc(1, sizeof(*mr));
    uint32_t number = NULL == mr ? 0 : sv_table_add(&context->dev->mrs, mr);

    if (0 == number || number >= 1u << 24) {
        sv_table_remove(&context->dev->mrs, number);
        free(mr);
        return ENOMEM;
    }
    mr->context = context;
    mr->addr = request->u.mr.addr;
    mr->length = request->u.mr.length;
    mr->iova = request->u.mr.iova;
    mr->access = request->u.mr.access;
    mr->pd = request->u.mr.pd;
    mr->key = number << 8 | ++tag;
    *key_p = mr->key;
    return 0;
}

int sv_mr_destroy(sv_context_t *context, uint32_t key)
{
    sv_mr_t *mr = sv_table_get(&context->dev->mrs, key >> 8);

    if (NULL == mr || mr->key != key || mr->context != context) {
        return EINVAL;
    }
    free(sv_table_remove(&context->dev->mrs, key >> 8));
    return 0;
}

/* ---- queues */

int sv_channel_create(sv_context_t *context, int fd, uint32_t *number_p)
{
    sv_channel_t *channel = calloc(1, sizeof(*channel));

    *number_p = NULL == channel || fd < 0 ? 0 : sv_table_add(&context->channels, channel);
    if (0 == *number_p) {
        free(channel);
        return fd < 0 ? EINVAL : ENOMEM;
    }
    channel->fd = fd;
    return 0;
}

int sv_channel_destroy(sv_context_t *context, uint32_t number)
{
    sv_channel_t *channel = sv_table_remove(&context->channels, number);

    if (NULL == channel) {
        return EINVAL;
    }
    close(channel->fd);
    free(channel);
    return 0;
}

int sv_cq_create(sv_context_t *context, const sv_ring_t *ring, uint32_t channel, uint32_t *number_p)
{
    sv_cq_t *cq = calloc(1, sizeof(*cq));

    *number_p = NULL == cq ? 0 : sv_table_add(&context->cqs, cq);
    if (0 == *number_p) {
        free(cq);
        return ENOMEM;
    }
    cq->context = context;
    cq->ring = *ring;
    cq->number = *number_p;
    cq->channel = sv_table_get(&context->channels, channel);
    return 0;
}

int sv_cq_destroy(sv_context_t *context, uint32_t number)
{
    sv_cq_t *cq = sv_table_get(&context->cqs, number);

    if (NULL == cq || cq->users > 0) {
        return NULL == cq ? EINVAL : EBUSY;
    }
    sv_table_remove(&context->cqs, number);
    sv_ring_unmap(&cq->ring);
    free(cq);
    return 0;
}

int sv_srq_create(sv_context_t *context, const sv_ring_t *ring, const sv_request_t *request,
                  uint32_t *number_p)
{
    sv_srq_t *srq = calloc(1, sizeof(*srq));

    *number_p = NULL == srq ? 0 : sv_table_add(&context->srqs, srq);
    if (0 == *number_p) {
        free(srq);
        return ENOMEM;
    }
    srq->ring = *ring;
    srq->number = *number_p;
    srq->pd = request->u.srq.pd;
    srq->limit = request->u.srq.limit;
    return 0;
}

int sv_srq_destroy(sv_context_t *context, uint32_t number)
{
    sv_srq_t *srq = sv_table_get(&context->srqs, number);

    if (NULL == srq || srq->users > 0) {
        return NULL == srq ? EINVAL : EBUSY;
    }
    sv_table_remove(&context->srqs, number);
    sv_ring_unmap(&srq->ring);
    free(srq);
    return 0;
}

/* ---- queue pairs */

/* Gives it a number and a place among the doorbells; false where there is none. */
static bool give_place(sv_context_t *context, sv_qp_t *qp)
{
    sv_dev_t *dev = context->dev;
    uint32_t tried = 0, slot = context->next_slot;

    while (tried < SV_CONTEXT_QPS && NULL != context->qps[slot]) {
        slot = (slot + 1) % SV_CONTEXT_QPS;
        ++tried;
    }
    if (SV_CONTEXT_QPS == tried) {
        return false;
    }
    for (tried = 0; NULL != dev->places[dev->next_qpn % SV_QP_PLACES]; ++tried) {
        if (SV_QP_PLACES == tried) {
            return false;
        }
        dev->next_qpn = dev->next_qpn < LAST_QPN ? dev->next_qpn + 1 : FIRST_QPN;
    }
    qp->number = dev->next_qpn;
    dev->next_qpn = dev->next_qpn < LAST_QPN ? dev->next_qpn + 1 : FIRST_QPN;
    dev->places[qp->number % SV_QP_PLACES] = qp;
    qp->slot = slot;
    context->qps[slot] = qp;
    context->next_slot = (slot + 1) % SV_CONTEXT_QPS;
    return true;
}

static void link_qp(sv_qp_t *qp)
{
    qp->next = qp->dev->qps;
    if (NULL != qp->next) {
        qp->next->prev = qp;
    }
    qp->dev->qps = qp;
    ++qp->send_cq->users;
    ++qp->recv_cq->users;
    if (NULL != qp->srq) {
        ++qp->srq->users;
    }
}

int sv_qp_create(sv_context_t *context, const sv_request_t *request, const sv_ring_t *sends,
                 const sv_ring_t *recvs, sv_qp_t **qp_p)
{
    sv_qp_t *qp = calloc(1, sizeof(*qp));
    int error = ENOMEM;

    if (NULL == qp) {
        return ENOMEM;
    }
    qp->context = context;
    qp->dev = context->dev;
    qp->send_cq = sv_table_get(&context->cqs, request->u.qp.send_cq);
    qp->recv_cq = sv_table_get(&context->cqs, request->u.qp.recv_cq);
    qp->srq = sv_table_get(&context->srqs, request->u.qp.srq);
    qp->pd = request->u.qp.pd;
    qp->type = request->u.qp.type;
    qp->signals_all = 0 != request->u.qp.signal_all;
    qp->attr.qp_state = IBV_QPS_RESET;
    qp->flights = calloc(sends->capacity, sizeof(*qp->flights));
    if (NULL == qp->send_cq || NULL == qp->recv_cq ||
        (IBV_QPT_RC != qp->type && IBV_QPT_UD != qp->type)) {
        error = EINVAL;
    } else if (NULL != qp->flights && give_place(context, qp)) {
        qp->sends = *sends;
        qp->recvs = *recvs;
        link_qp(qp);
        *qp_p = qp;
        return 0;
    }
    free(qp->flights);
    free(qp);
    return error;
}

sv_qp_t *sv_qp_of(sv_context_t *context, uint32_t number)
{
    sv_qp_t *qp = context->dev->places[number % SV_QP_PLACES];

    return NULL != qp && qp->number == number && qp->context == context ? qp : NULL;
}

/* What the change to a state needs beside it, as the kernel's ib_modify_qp_is_ok has it. */
static uint32_t needed(const sv_qp_t *qp, enum ibv_qp_state to)
{
    bool is_rc = IBV_QPT_RC == qp->type;

    if (IBV_QPS_INIT == to) {
        return IBV_QP_PKEY_INDEX | IBV_QP_PORT | (is_rc ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY);
    }
    if (IBV_QPS_RTR == to && is_rc) {
        return IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    if (IBV_QPS_RTS == to) {
        return IBV_QP_SQ_PSN | (is_rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                            IBV_QP_MAX_QP_RD_ATOMIC
                                      : 0);
    }
    return 0;
}

static bool may_become(const sv_qp_t *qp, enum ibv_qp_state to, uint32_t mask)
{
    enum ibv_qp_state from = qp->attr.qp_state;
    bool is_step = (IBV_QPS_RESET == from && IBV_QPS_INIT == to) ||
                   (IBV_QPS_INIT == from && (IBV_QPS_RTR == to || IBV_QPS_INIT == to)) ||
                   (IBV_QPS_RTR == from && IBV_QPS_RTS == to) ||
                   (IBV_QPS_RTS == from && IBV_QPS_RTS == to);

    if (IBV_QPS_RESET == to || IBV_QPS_ERR == to) {
        return true;
    }
    return is_step && (from == to || needed(qp, to) == (mask & needed(qp, to)));
}

static void reset(sv_qp_t *qp)
{
    qp->first = qp->current = qp->fresh = sv_ring_tail(&qp->sends);
    qp->una_psn = qp->next_psn = qp->end_psn = qp->expected_psn = 0;
    qp->answers = qp->retries = qp->rnr_retries = qp->window = qp->out_of_order = 0;
    qp->deadline_ns = qp->rnr_until_ns = 0;
    qp->has_gone_back = qp->is_receiving = qp->owes_ack = false;
    qp->recvs_taken = NULL == qp->recvs.shared ? 0 : sv_ring_tail(&qp->recvs);
    memset(qp->atomics, 0, sizeof(qp->atomics));
}

static void copy_attr(struct ibv_qp_attr *to, const struct ibv_qp_attr *from, uint32_t mask)
{
#define COPY(bit, field) (to->field = 0 != (mask & (bit)) ? from->field : to->field)
    COPY(IBV_QP_QKEY, qkey);
    COPY(IBV_QP_ACCESS_FLAGS, qp_access_flags);
    COPY(IBV_QP_PKEY_INDEX, pkey_index);
    COPY(IBV_QP_PORT, port_num);
    COPY(IBV_QP_PATH_MTU, path_mtu);
    COPY(IBV_QP_AV, ah_attr);
    COPY(IBV_QP_DEST_QPN, dest_qp_num);
    COPY(IBV_QP_RQ_PSN, rq_psn);
    COPY(IBV_QP_SQ_PSN, sq_psn);
    COPY(IBV_QP_TIMEOUT, timeout);
    COPY(IBV_QP_RETRY_CNT, retry_cnt);
    COPY(IBV_QP_RNR_RETRY, rnr_retry);
    COPY(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
    COPY(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
    COPY(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
#undef COPY
}

/* True if a packet could be sent so: from the place of the table that has the address, or on
 * InfiniBand to a LID. */
static bool sv_has_way(const sv_dev_t *dev, const struct ibv_ah_attr *way)
{
    return dev->about.is_ib ? 0 == way->is_global && 0 != way->dlid
                            : way->grh.sgid_index == dev->gid_index;
}

int sv_qp_modify(sv_qp_t *qp, const struct ibv_qp_attr *attr, uint32_t mask)
{
    enum ibv_qp_state to = 0 != (mask & IBV_QP_STATE) ? attr->qp_state : qp->attr.qp_state;

    if (qp->context->is_dead) {
        return EIO;
    }
    if ((0 != (mask & IBV_QP_STATE) && !may_become(qp, to, mask)) ||
        (0 != (mask & IBV_QP_AV) && !sv_has_way(qp->dev, &attr->ah_attr))) {
        return EINVAL;
    }
    copy_attr(&qp->attr, attr, mask);
    if (0 != (mask & IBV_QP_AV)) {
        if (qp->dev->about.is_ib) {
            qp->peer_ip = sv_ip_of_lid(qp->dev, attr->ah_attr.dlid);
        } else {
            memcpy(&qp->peer_ip, attr->ah_attr.grh.dgid.raw + 12, sizeof(qp->peer_ip));
        }
    }
    if (IBV_QPS_ERR == to) {
        sv_rc_error(qp, IBV_WC_WR_FLUSH_ERR);
    } else if (to != qp->attr.qp_state) {
        qp->attr.qp_state = to;
        if (IBV_QPS_RESET == to) {
            reset(qp);
        } else if (IBV_QPS_RTR == to) {
            qp->expected_psn = attr->rq_psn;
        } else if (IBV_QPS_RTS == to) {
            qp->una_psn = qp->next_psn = qp->end_psn = attr->sq_psn;
        }
    }
    return 0;
}

static void untouch(sv_qp_t *qp)
{
    sv_qp_t **place = &qp->dev->touched;

    while (qp->is_touched && NULL != *place) {
        if (*place == qp) {
            *place = qp->next_touched;
            break;
        }
        place = &(*place)->next_touched;
    }
}

uint32_t sv_qp_destroy(sv_qp_t *qp)
{
    uint32_t taken = NULL != qp->srq && qp->is_receiving ? 1 : 0;

    untouch(qp);
    if (NULL != qp->prev) {
        qp->prev->next = qp->next;
    } else {
        qp->dev->qps = qp->next;
    }
    if (NULL != qp->next) {
        qp->next->prev = qp->prev;
    }
    --qp->send_cq->users;
    --qp->recv_cq->users;
    if (NULL != qp->srq) {
        --qp->srq->users;
    }
    qp->dev->places[qp->number % SV_QP_PLACES] = NULL;
    qp->context->qps[qp->slot] = NULL;
    sv_ring_unmap(&qp->sends);
    sv_ring_unmap(&qp->recvs);
    free(qp->flights);
    free(qp);
    return taken;
}

void sv_context_fini(sv_context_t *context)
{
    sv_dev_t *dev = context->dev;

    for (uint32_t i = 0; NULL != context->qps && i < SV_CONTEXT_QPS; ++i) {
        if (NULL != context->qps[i]) {
            sv_qp_destroy(context->qps[i]);
        }
    }
    for (uint32_t i = 0; i < context->cqs.size; ++i) {
        sv_cq_destroy(context, i + 1);
    }
    for (uint32_t i = 0; i < context->srqs.size; ++i) {
        sv_srq_destroy(context, i + 1);
    }
    for (uint32_t i = 0; i < context->channels.size; ++i) {
        sv_channel_destroy(context, i + 1);
    }
    for (uint32_t i = 0; NULL != dev && i < dev->mrs.size; ++i) {
        sv_mr_t *mr = dev->mrs.at[i];
        if (NULL != mr && mr->context == context) {
            free(sv_table_remove(&dev->mrs, i + 1));
        }
    }
    sv_table_fini(&context->cqs);
    sv_table_fini(&context->srqs);
    sv_table_fini(&context->channels);
    if (NULL != context->bells) {
        munmap(context->bells, sizeof(*context->bells));
    }
    free(context->qps);
}
