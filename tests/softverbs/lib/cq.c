/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Completion queues and their channels.
 */
#include "softverbs/lib/lib.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOT_ARMED, ARMED_SOLICITED, ARMED_ANY };

/* ---- channels */

SV_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    sv_request_t request = {.verb = SV_CHANNEL};
    sv_lib_channel_t *channel = calloc(1, sizeof(*channel));
    sv_reply_t *reply = malloc(sizeof(*reply));
    int ends[2] = {-1, -1};
    int error = NULL == channel || NULL == reply ? ENOMEM : sv_lib_pipe(ends);

    if (0 == error) {
        error = sv_lib_ask(sv_context_of(context), &request, &ends[1], 1, reply);
    }
    if (0 == error) {
        channel->ibv.context = context;
        channel->ibv.fd = ends[0];
        channel->told = ends[1];
        channel->number = reply->object;
    } else {
        if (ends[0] >= 0) {
            close(ends[0]);
            close(ends[1]);
        }
        free(channel);
        channel = NULL;
        errno = error;
    }
    free(reply);
    return (struct ibv_comp_channel *) channel;
}

SV_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *ibv)
{
    sv_lib_channel_t *channel = (sv_lib_channel_t *) ibv;
    sv_request_t request = {.verb = SV_CHANNEL_GONE, .object = channel->number};

    if (ibv->refcnt > 0) {
        return EBUSY;
    }
    sv_lib_ask(sv_context_of(ibv->context), &request, NULL, 0, NULL);
    close(ibv->fd);
    close(channel->told);
    free(channel);
    return 0;
}

SV_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq_p, void **user)
{
    sv_lib_context_t *context = sv_context_of(channel->context);
    sv_lib_cq_t *cq = NULL;
    uint32_t number;

    while (NULL == cq) { /* what a queue told that is gone is passed over */
        if ((ssize_t) sizeof(number) != read(channel->fd, &number, sizeof(number))) {
            return -1;
        }
        pthread_mutex_lock(&context->lock);
        cq = context->cqs;
        while (NULL != cq && cq->number != number) {
            cq = cq->next;
        }
        if (NULL != cq) {
            ++cq->completions.got;
        }
        pthread_mutex_unlock(&context->lock);
    }
    *cq_p = &cq->ibv;
    *user = cq->ibv.cq_context;
    return 0;
}

SV_EXPORT void ibv_ack_cq_events(struct ibv_cq *ibv, unsigned count)
{
    sv_lib_context_t *context = sv_context_of(ibv->context);

    pthread_mutex_lock(&context->lock);
    ((sv_lib_cq_t *) ibv)->completions.acked += count;
    pthread_cond_broadcast(&context->acked);
    pthread_mutex_unlock(&context->lock);
}

/* ---- queues */

static void link_cq(sv_lib_context_t *context, sv_lib_cq_t *cq)
{
    pthread_mutex_lock(&context->lock);
    cq->next = context->cqs;
    context->cqs = cq;
    if (NULL != cq->ibv.channel) {
        ++cq->ibv.channel->refcnt;
    }
    pthread_mutex_unlock(&context->lock);
}

SV_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *user,
                                       struct ibv_comp_channel *channel, int vector)
{
    sv_request_t request = {.verb = SV_CQ};
    sv_lib_cq_t *cq = calloc(1, sizeof(*cq));
    sv_reply_t *reply = malloc(sizeof(*reply));
    int error = ENOMEM, fd = -1;

    (void) vector;
    request.u.cq.channel = NULL == channel ? 0 : ((sv_lib_channel_t *) channel)->number;
    if (NULL != cq && NULL != reply) {
        fd = sv_ring_create(&cq->ring, (uint32_t) (cqe > 0 ? cqe : 1), sizeof(sv_cqe_t));
        error = fd < 0 ? errno : sv_lib_ask(sv_context_of(context), &request, &fd, 1, reply);
    }
    if (fd >= 0) {
        close(fd);
    }
    if (0 == error) {
        pthread_mutex_init(&cq->lock, NULL);
        cq->number = reply->object;
        cq->ibv.context = context;
        cq->ibv.channel = channel;
        cq->ibv.cq_context = user;
        cq->ibv.cqe = (int) cq->ring.capacity;
        link_cq(sv_context_of(context), cq);
    } else {
        if (NULL != cq) {
            sv_ring_unmap(&cq->ring);
        }
        free(cq);
        cq = NULL;
        errno = error;
    }
    free(reply);
    return (struct ibv_cq *) cq;
}

SV_EXPORT int ibv_destroy_cq(struct ibv_cq *ibv)
{
    sv_lib_context_t *context = sv_context_of(ibv->context);
    sv_lib_cq_t *cq = (sv_lib_cq_t *) ibv, **place;
    sv_request_t request = {.verb = SV_CQ_GONE, .object = cq->number};
    int error = sv_lib_ask(context, &request, NULL, 0, NULL);

    if (0 != error) {
        return error;
    }
    pthread_mutex_lock(&context->lock);
    for (place = &context->cqs; *place != cq; place = &(*place)->next) {
        continue;
    }
    *place = cq->next;
    sv_lib_wait_acked(context, &cq->completions);
    sv_lib_wait_acked(context, &cq->events);
    if (NULL != ibv->channel) {
        --ibv->channel->refcnt;
    }
    pthread_mutex_unlock(&context->lock);
    sv_ring_unmap(&cq->ring);
    free(cq);
    return 0;
}

/* A completion is taken: its place in the queue of its request is free again, as with hardware
 * only now. */
static void release(sv_lib_context_t *context, const sv_cqe_t *cqe)
{
    sv_lib_qp_t *qp = context->qps[cqe->wc.qp_num % SV_LIB_PLACES];

    if (0 != (cqe->flags & SV_CQE_SEND)) {
        __atomic_store_n(&qp->sends_released, cqe->send_next, __ATOMIC_RELEASE);
    } else if (NULL == qp->ibv.srq) {
        __atomic_add_fetch(&qp->recvs_released, 1, __ATOMIC_RELEASE);
    } else {
        __atomic_add_fetch(&((sv_lib_srq_t *) qp->ibv.srq)->released, 1, __ATOMIC_RELEASE);
    }
}

int sv_lib_poll_cq(struct ibv_cq *ibv, int count, struct ibv_wc *wc)
{
    sv_lib_cq_t *cq = (sv_lib_cq_t *) ibv;
    int got = 0;

    if (sv_ring_tail(&cq->ring) == sv_ring_head(&cq->ring)) {
        return 0;
    }
    pthread_mutex_lock(&cq->lock);
    while (got < count && sv_ring_tail(&cq->ring) != sv_ring_head(&cq->ring)) {
        const sv_cqe_t *cqe = sv_ring_at(&cq->ring, sv_ring_head(&cq->ring));
        if (0 == (cqe->flags & SV_CQE_DEAD)) {
            release(sv_context_of(ibv->context), cqe);
            wc[got++] = cqe->wc;
        }
        sv_ring_take(&cq->ring);
    }
    pthread_mutex_unlock(&cq->lock);
    return got;
}

/* Whether a completion waits that would have fired a queue armed so. */
static bool is_waiting(sv_lib_cq_t *cq, uint32_t armed)
{
    bool any = false;

    pthread_mutex_lock(&cq->lock);
    for (uint32_t i = sv_ring_head(&cq->ring); !any && i != sv_ring_tail(&cq->ring); ++i) {
        const sv_cqe_t *cqe = sv_ring_at(&cq->ring, i);
        any = 0 == (cqe->flags & SV_CQE_DEAD) &&
              (ARMED_ANY == armed || 0 != (cqe->flags & SV_CQE_SOLICITED) ||
               IBV_WC_SUCCESS != cqe->wc.status);
    }
    pthread_mutex_unlock(&cq->lock);
    return any;
}

int sv_lib_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
    sv_lib_cq_t *cq = (sv_lib_cq_t *) ibv;
    uint32_t armed = 0 != solicited_only ? ARMED_SOLICITED : ARMED_ANY, was;

    was = __atomic_load_n(&cq->ring.shared->armed, __ATOMIC_SEQ_CST);
    __atomic_store_n(&cq->ring.shared->armed, armed > was ? armed : was, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* against the NIC's: put, then look whether armed */
    if (NULL != ibv->channel && is_waiting(cq, armed) &&
        NOT_ARMED != __atomic_exchange_n(&cq->ring.shared->armed, NOT_ARMED, __ATOMIC_SEQ_CST)) {
        if (write(((sv_lib_channel_t *) ibv->channel)->told, &cq->number, sizeof(cq->number)) < 0) {
            return errno;
        }
    }
    return 0;
}

void sv_lib_forget(struct ibv_cq *ibv, sv_lib_qp_t *qp)
{
    sv_lib_cq_t *cq = (sv_lib_cq_t *) ibv;

    pthread_mutex_lock(&cq->lock);
    for (uint32_t i = sv_ring_head(&cq->ring); i != sv_ring_tail(&cq->ring); ++i) {
        sv_cqe_t *cqe = sv_ring_at(&cq->ring, i);
        if (cqe->wc.qp_num == qp->ibv.qp_num && 0 == (cqe->flags & SV_CQE_DEAD)) {
            release(sv_context_of(ibv->context), cqe);
            cqe->flags |= SV_CQE_DEAD;
        }
    }
    pthread_mutex_unlock(&cq->lock);
}
