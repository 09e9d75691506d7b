/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What processes ask the NIC for, and processes that are gone.
 */
#include "softverbs/nic/nic.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A request being served. What is taken from fds is replaced by -1. */
typedef struct served {
    sv_context_t *context;
    const sv_request_t *request;
    sv_reply_t *reply;
    int fds[2];
    int reply_fds[2];
    int reply_fd_count;
} served_t;

static int serve_list(served_t *served)
{
    sv_nic_t *nic = served->context->nic;

    served->reply->u.devices.count = nic->device_count;
    memcpy(served->reply->u.devices.files, nic->files, sizeof(nic->files));
    for (uint32_t i = 0; i < nic->device_count; ++i) {
        served->reply->u.devices.of[i] = nic->devices[i]->about;
    }
    return 0;
}

static int serve_open(served_t *served)
{
    sv_context_t *context = served->context;
    sv_nic_t *nic = context->nic;
    sv_dev_t *dev;
    void *bells;

    if (NULL != context->dev || served->request->object >= nic->device_count ||
        served->fds[0] < 0) {
        return EINVAL;
    }
    dev = nic->devices[served->request->object];
    if (dev->is_dead) {
        return EIO;
    }
    if (sv_fault_hits(dev, SV_FAULT_REFUSE)) {
        ++dev->counters.refused;
        return 0 == dev->faults[SV_FAULT_REFUSE].value ? EIO
                                                       : (int) dev->faults[SV_FAULT_REFUSE].value;
    }
    bells = mmap(NULL, sizeof(sv_bells_t), PROT_READ | PROT_WRITE, MAP_SHARED, served->fds[1], 0);
    context->qps = calloc(SV_CONTEXT_QPS, sizeof(sv_qp_t *));
    if (MAP_FAILED == bells || NULL == context->qps) {
        return ENOMEM;
    }
    context->bells = bells;
    context->given = served->request->u.given;
    context->events = served->fds[0];
    served->fds[0] = -1;
    context->dev = dev;
    served->reply_fds[0] = nic->wake;
    served->reply_fds[1] = nic->page_fd;
    served->reply_fd_count = 2;
    return 0;
}

static int serve_port(served_t *served)
{
    const sv_nic_t *nic = served->context->nic;
    const sv_dev_t *dev;

    if (served->request->object >= nic->device_count) {
        return EINVAL;
    }
    dev = nic->devices[served->request->object];
    served->reply->u.port = (sv_port_t){
        .state = sv_is_up(dev) ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
        .speed = dev->speed,
        .width = dev->width,
        .gid_index = dev->gid_index,
        .other_index = dev->other_index,
        .ip = dev->about.ip,
        .lid = sv_is_up(dev) ? sv_lid(dev) : 0,
        .is_dead = dev->is_dead,
    };
    return 0;
}

static int serve_reg_mr(served_t *served)
{
    int error = served->context->is_dead
                    ? EIO
                    : sv_mr_create(served->context, served->request, &served->reply->object);

    served->context->dev->counters.registered += 0 == error;
    return error;
}

static int serve_dereg_mr(served_t *served)
{
    return sv_mr_destroy(served->context, served->request->object);
}

static int serve_channel(served_t *served)
{
    int error = sv_channel_create(served->context, served->fds[0], &served->reply->object);

    served->fds[0] = 0 == error ? -1 : served->fds[0];
    return error;
}

static int serve_channel_gone(served_t *served)
{
    return sv_channel_destroy(served->context, served->request->object);
}

static int serve_cq(served_t *served)
{
    sv_ring_t ring;
    int error;

    if (served->context->is_dead) {
        return EIO;
    }
    if (0 != sv_ring_map(&ring, served->fds[0], sizeof(sv_cqe_t))) {
        return EINVAL;
    }
    error =
        sv_cq_create(served->context, &ring, served->request->u.cq.channel, &served->reply->object);
    if (0 != error) {
        sv_ring_unmap(&ring);
    }
    return error;
}

static int serve_cq_gone(served_t *served)
{
    return sv_cq_destroy(served->context, served->request->object);
}

static int serve_srq(served_t *served)
{
    sv_ring_t ring;
    int error;

    if (served->context->is_dead) {
        return EIO;
    }
    if (0 != sv_ring_map(&ring, served->fds[0], sizeof(sv_recv_t))) {
        return EINVAL;
    }
    error = sv_srq_create(served->context, &ring, served->request, &served->reply->object);
    if (0 != error) {
        sv_ring_unmap(&ring);
    }
    return error;
}

static int serve_srq_arm(served_t *served)
{
    sv_srq_t *srq = sv_table_get(&served->context->srqs, served->request->object);

    if (NULL == srq) {
        return EINVAL;
    }
    srq->limit = served->request->u.srq.limit;
    return 0;
}

static int serve_srq_gone(served_t *served)
{
    return sv_srq_destroy(served->context, served->request->object);
}

static int serve_qp(served_t *served)
{
    sv_ring_t sends, recvs = {.shared = NULL};
    sv_qp_t *qp;
    int error;

    if (served->context->is_dead) {
        return EIO;
    }
    if (0 != sv_ring_map(&sends, served->fds[0], sizeof(sv_send_t))) {
        return EINVAL;
    }
    error = 0 == served->request->u.qp.srq &&
                    0 != sv_ring_map(&recvs, served->fds[1], sizeof(sv_recv_t))
                ? EINVAL
                : sv_qp_create(served->context, served->request, &sends, &recvs, &qp);
    if (0 != error) {
        sv_ring_unmap(&sends);
        sv_ring_unmap(&recvs);
        return error;
    }
    served->reply->object = qp->number;
    served->reply->u.qp.slot = qp->slot;
    return 0;
}

static int serve_qp_modify(served_t *served)
{
    sv_qp_t *qp = sv_qp_of(served->context, served->request->object);

    return NULL == qp
               ? EINVAL
               : sv_qp_modify(qp, &served->request->u.modify.attr, served->request->u.modify.mask);
}

static int serve_qp_query(served_t *served)
{
    sv_qp_t *qp = sv_qp_of(served->context, served->request->object);

    if (NULL == qp) {
        return EINVAL;
    }
    served->reply->u.attr = qp->attr;
    return 0;
}

static int serve_qp_gone(served_t *served)
{
    sv_qp_t *qp = sv_qp_of(served->context, served->request->object);

    if (NULL == qp) {
        return EINVAL;
    }
    served->reply->u.taken = sv_qp_destroy(qp);
    return 0;
}

static int serve_fault(served_t *served)
{
    int error = sv_inject(served->context->nic, &served->request->u.fault);

    for (uint32_t i = 0; i < served->context->nic->device_count; ++i) {
        sv_files_update(served->context->nic->devices[i]);
    }
    return error;
}

/* What there is now, of all processes. */
typedef struct holdings {
    uint32_t queue_pairs, shared_receives, regions;
    uint64_t region_bytes;
} holdings_t;

static holdings_t holdings_of(const sv_nic_t *nic, const sv_dev_t *dev)
{
    holdings_t found = {0};

    for (const sv_qp_t *qp = dev->qps; NULL != qp; qp = qp->next) {
        ++found.queue_pairs;
    }
    for (const sv_context_t *context = nic->contexts; NULL != context; context = context->next) {
        for (uint32_t i = 0; dev == context->dev && i < context->srqs.size; ++i) {
            found.shared_receives += NULL != context->srqs.at[i];
        }
    }
    for (uint32_t i = 0; i < dev->mrs.size; ++i) {
        const sv_mr_t *mr = dev->mrs.at[i];

        found.regions += NULL != mr;
        found.region_bytes += NULL != mr ? mr->length : 0;
    }
    return found;
}

static int serve_counters(served_t *served)
{
    const sv_nic_t *nic = served->context->nic;
    holdings_t now;
    const sv_counters_t *counters;
    char *text = served->reply->u.text;
    size_t at = 0, size = sizeof(served->reply->u.text);

    if (served->request->object >= nic->device_count) {
        return EINVAL;
    }
    counters = &nic->devices[served->request->object]->counters;
#define PRINT(name)                                                \
    at += (size_t) snprintf(text + at, size - at, #name " %llu\n", \
                            (unsigned long long) counters->name);
    SV_COUNTERS_OF(PRINT)
#undef PRINT
    now = holdings_of(nic, nic->devices[served->request->object]);
    (void) snprintf(
        text + at, size - at, "queue_pairs %u\nshared_receives %u\nregions %u\nregion_bytes %llu\n",
        now.queue_pairs, now.shared_receives, now.regions, (unsigned long long) now.region_bytes);
    return 0;
}

/* Those from SV_REG_MR to SV_QP_GONE need an opened device. */
static int (*const serve[SV_VERBS])(served_t *) = {
    [SV_LIST] = serve_list,
    [SV_OPEN] = serve_open,
    [SV_PORT] = serve_port,
    [SV_REG_MR] = serve_reg_mr,
    [SV_DEREG_MR] = serve_dereg_mr,
    [SV_CHANNEL] = serve_channel,
    [SV_CHANNEL_GONE] = serve_channel_gone,
    [SV_CQ] = serve_cq,
    [SV_CQ_GONE] = serve_cq_gone,
    [SV_SRQ] = serve_srq,
    [SV_SRQ_ARM] = serve_srq_arm,
    [SV_SRQ_GONE] = serve_srq_gone,
    [SV_QP] = serve_qp,
    [SV_QP_MODIFY] = serve_qp_modify,
    [SV_QP_QUERY] = serve_qp_query,
    [SV_QP_GONE] = serve_qp_gone,
    [SV_FAULT] = serve_fault,
    [SV_COUNTERS] = serve_counters,
};

void sv_control_serve(sv_context_t *context)
{
    static sv_request_t request;
    static sv_reply_t reply;
    served_t served = {.context = context, .request = &request, .reply = &reply};
    bool needs_device;

    if ((int) sizeof(request) !=
        sv_packet_receive(context->socket, &request, sizeof(request), served.fds)) {
        sv_control_gone(context);
        return;
    }
    memset(&reply, 0, sizeof(reply));
    needs_device = request.verb >= SV_REG_MR && request.verb <= SV_QP_GONE;
    reply.error = request.verb >= SV_VERBS || (needs_device && NULL == context->dev)
                      ? EINVAL
                      : serve[request.verb](&served);
    for (int i = 0; i < 2; ++i) {
        if (served.fds[i] >= 0) {
            close(served.fds[i]);
        }
    }
    if (0 != sv_packet_send(context->socket, &reply, sizeof(reply), served.reply_fds,
                            served.reply_fd_count)) {
        sv_control_gone(context);
    }
}

/* ---- processes that come and go */

int sv_control_open(sv_nic_t *nic)
{
    struct sockaddr_un address;
    unsigned length = sv_socket_name(&address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd < 0 || 0 != bind(fd, (struct sockaddr *) &address, length) || 0 != listen(fd, 128)) {
        return -1;
    }
    nic->listener = fd;
    return sv_wait_for(nic, fd, SV_FROM_LISTENER, nic);
}

int sv_wait_for(sv_nic_t *nic, int fd, sv_source_t source, void *object)
{
    struct epoll_event event = {.events = EPOLLIN};

    event.data.u64 = (uint64_t) (uintptr_t) object | source;
    return epoll_ctl(nic->poll, EPOLL_CTL_ADD, fd, &event);
}

void sv_control_accept(sv_nic_t *nic)
{
    int fd = accept4(nic->listener, NULL, NULL, SOCK_CLOEXEC);
    sv_context_t *context = fd < 0 ? NULL : calloc(1, sizeof(*context));
    struct ucred peer;
    socklen_t size = sizeof(peer);

    if (NULL == context) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    context->nic = nic;
    context->socket = fd;
    context->events = -1;
    context->next = nic->contexts;
    nic->contexts = context;
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
    context->pid = peer.pid;
    /* Not the socket but this tells that a process is gone: its children may hold the socket. */
    context->pidfd = pidfd_open(peer.pid, 0);
    if (context->pidfd < 0 || 0 != sv_wait_for(nic, context->pidfd, SV_FROM_PROCESS, context) ||
        0 != sv_wait_for(nic, fd, SV_FROM_SOCKET, context)) {
        sv_control_gone(context);
    }
}

void sv_control_gone(sv_context_t *context)
{
    context->is_gone = true;
}

void sv_control_sweep(sv_nic_t *nic)
{
    sv_context_t **place = &nic->contexts;

    while (NULL != *place) {
        sv_context_t *context = *place;
        if (!context->is_gone) {
            place = &context->next;
            continue;
        }
        *place = context->next;
        sv_context_fini(context);
        close(context->socket);
        if (context->pidfd >= 0) {
            close(context->pidfd);
        }
        if (context->events >= 0) {
            close(context->events);
        }
        free(context);
    }
}
