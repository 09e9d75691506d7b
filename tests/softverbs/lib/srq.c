/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Receives, and queues of them that several queue pairs share.
 */
#include "softverbs/lib/lib.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int sv_lib_put_recvs(sv_ring_t *ring, uint32_t most, const uint32_t *released,
                     struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    for (; NULL != wr; wr = wr->next) {
        sv_recv_t *recv = sv_ring_at(ring, sv_ring_tail(ring));
        if (sv_ring_tail(ring) - __atomic_load_n(released, __ATOMIC_ACQUIRE) >= most ||
            wr->num_sge > SV_RECV_SGES) {
            *bad = wr;
            return ENOMEM;
        }
        recv->wr_id = wr->wr_id;
        recv->sge_count = (uint32_t) wr->num_sge;
        if (wr->num_sge > 0) {
            memcpy(recv->sge, wr->sg_list, (size_t) wr->num_sge * sizeof(*wr->sg_list));
        }
        sv_ring_put(ring);
    }
    return 0;
}

int sv_lib_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    sv_lib_srq_t *srq = (sv_lib_srq_t *) ibv;
    int error;

    pthread_mutex_lock(&srq->lock);
    error = sv_lib_put_recvs(&srq->ring, srq->most, &srq->released, wr, bad);
    pthread_mutex_unlock(&srq->lock);
    return error;
}

SV_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    sv_lib_context_t *context = sv_context_of(pd->context);
    sv_request_t request = {.verb = SV_SRQ};
    sv_lib_srq_t *srq = calloc(1, sizeof(*srq));
    sv_reply_t *reply = malloc(sizeof(*reply));
    int error = ENOMEM, fd = -1;

    request.u.srq.pd = ((sv_lib_pd_t *) pd)->number;
    request.u.srq.limit = attr->attr.srq_limit;
    if (attr->attr.max_sge > SV_RECV_SGES) {
        error = EINVAL;
    } else if (NULL != srq && NULL != reply) {
        fd = sv_ring_create(&srq->ring, attr->attr.max_wr, sizeof(sv_recv_t));
        error = fd < 0 ? errno : sv_lib_ask(context, &request, &fd, 1, reply);
    }
    if (fd >= 0) {
        close(fd);
    }
    if (0 == error) {
        pthread_mutex_init(&srq->lock, NULL);
        srq->number = reply->object;
        srq->most = attr->attr.max_wr;
        srq->ibv.context = pd->context;
        srq->ibv.pd = pd;
        srq->ibv.srq_context = attr->srq_context;
        pthread_mutex_lock(&context->lock);
        srq->next = context->srqs;
        context->srqs = srq;
        pthread_mutex_unlock(&context->lock);
    } else {
        if (NULL != srq) {
            sv_ring_unmap(&srq->ring);
        }
        free(srq);
        srq = NULL;
        errno = error;
    }
    free(reply);
    return (struct ibv_srq *) srq;
}

SV_EXPORT int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
    sv_request_t request = {.verb = SV_SRQ_ARM, .object = ((sv_lib_srq_t *) ibv)->number};

    if (IBV_SRQ_LIMIT != mask) {
        return EOPNOTSUPP;
    }
    request.u.srq.limit = attr->srq_limit;
    return sv_lib_ask(sv_context_of(ibv->context), &request, NULL, 0, NULL);
}

SV_EXPORT int ibv_destroy_srq(struct ibv_srq *ibv)
{
    sv_lib_context_t *context = sv_context_of(ibv->context);
    sv_lib_srq_t *srq = (sv_lib_srq_t *) ibv, **place;
    sv_request_t request = {.verb = SV_SRQ_GONE, .object = srq->number};
    int error = sv_lib_ask(context, &request, NULL, 0, NULL);

    if (0 != error) {
        return error;
    }
    pthread_mutex_lock(&context->lock);
    for (place = &context->srqs; *place != srq; place = &(*place)->next) {
        continue;
    }
    *place = srq->next;
    sv_lib_wait_acked(context, &srq->events);
    pthread_mutex_unlock(&context->lock);
    sv_ring_unmap(&srq->ring);
    free(srq);
    return 0;
}
