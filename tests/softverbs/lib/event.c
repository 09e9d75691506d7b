/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Asynchronous events. An event of an object that is gone meanwhile is passed over; an object whose
 * event the application has got, and not acknowledged, is not destroyed yet.
 */
#include "softverbs/lib/lib.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

typedef enum sv_subject { OF_PORT, OF_QP, OF_CQ, OF_SRQ } sv_subject_t;

static sv_subject_t subject_of(uint32_t type)
{
    switch (type) {
    case IBV_EVENT_CQ_ERR:
        return OF_CQ;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return OF_QP;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return OF_SRQ;
    default:
        return OF_PORT;
    }
}

/* The count of an event's object; NULL for a port's. */
static sv_told_t *told_of(const struct ibv_async_event *event)
{
    switch (subject_of((uint32_t) event->event_type)) {
    case OF_QP:
        return &((sv_lib_qp_t *) event->element.qp)->events;
    case OF_CQ:
        return &((sv_lib_cq_t *) event->element.cq)->events;
    case OF_SRQ:
        return &((sv_lib_srq_t *) event->element.srq)->events;
    case OF_PORT:
    default:
        return NULL;
    }
}

/* Number -> object; false where it is gone. With the lock held. */
static bool resolve(sv_lib_context_t *context, const sv_event_t *from, struct ibv_async_event *to)
{
    sv_lib_qp_t *qp = context->qps[from->object % SV_LIB_PLACES];
    sv_lib_cq_t *cq = context->cqs;
    sv_lib_srq_t *srq = context->srqs;

    memset(to, 0, sizeof(*to));
    to->event_type = (enum ibv_event_type) from->type;
    switch (subject_of(from->type)) {
    case OF_QP:
        to->element.qp = NULL != qp && qp->ibv.qp_num == from->object ? &qp->ibv : NULL;
        return NULL != to->element.qp;
    case OF_CQ:
        while (NULL != cq && cq->number != from->object) {
            cq = cq->next;
        }
        to->element.cq = (struct ibv_cq *) cq;
        return NULL != cq;
    case OF_SRQ:
        while (NULL != srq && srq->number != from->object) {
            srq = srq->next;
        }
        to->element.srq = (struct ibv_srq *) srq;
        return NULL != srq;
    case OF_PORT:
    default:
        to->element.port_num = 1;
        return true;
    }
}

SV_EXPORT int ibv_get_async_event(struct ibv_context *ibv, struct ibv_async_event *event)
{
    sv_lib_context_t *context = sv_context_of(ibv);
    sv_event_t arrived;
    bool is_there = false;

    while (!is_there) {
        if ((ssize_t) sizeof(arrived) != read(ibv->async_fd, &arrived, sizeof(arrived))) {
            return -1;
        }
        pthread_mutex_lock(&context->lock);
        is_there = resolve(context, &arrived, event);
        if (is_there && NULL != told_of(event)) {
            ++told_of(event)->got;
        }
        pthread_mutex_unlock(&context->lock);
    }
    return 0;
}

static struct ibv_context *context_of(const struct ibv_async_event *event)
{
    switch (subject_of((uint32_t) event->event_type)) {
    case OF_QP:
        return event->element.qp->context;
    case OF_CQ:
        return event->element.cq->context;
    case OF_SRQ:
        return event->element.srq->context;
    case OF_PORT:
    default:
        return NULL;
    }
}

SV_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
    struct ibv_context *ibv = context_of(event);

    if (NULL != ibv) {
        sv_lib_context_t *context = sv_context_of(ibv);
        pthread_mutex_lock(&context->lock);
        ++told_of(event)->acked;
        pthread_cond_broadcast(&context->acked);
        pthread_mutex_unlock(&context->lock);
    }
}

void sv_lib_wait_acked(sv_lib_context_t *context, const sv_told_t *told)
{
    while (told->got != told->acked) {
        pthread_cond_wait(&context->acked, &context->lock);
    }
}
