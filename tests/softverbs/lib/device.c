/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Devices, ports, protection domains, memory regions, address handles.
 */
#include "softverbs/lib/lib.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* Devices live as long as the process: UCX frees the list and keeps what was in it. */
static struct {
    pthread_mutex_t lock;
    bool is_known;
    uint32_t count;
    char files[128];
    sv_lib_device_t of[SV_DEVICES];
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void add_device(const sv_device_t *about, uint32_t index)
{
    sv_lib_device_t *device = &all.of[index];
    struct ibv_device *ibv = &device->ibv;

    device->about = *about;
    device->index = index;
    ibv->node_type = IBV_NODE_CA;
    ibv->transport_type = IBV_TRANSPORT_IB;
    snprintf(ibv->name, sizeof(ibv->name), "%s", about->name);
    snprintf(ibv->dev_name, sizeof(ibv->dev_name), "softverbs_%s", about->name);
    snprintf(ibv->dev_path, sizeof(ibv->dev_path), "/sys/class/infiniband/%s", about->name);
    snprintf(ibv->ibdev_path, sizeof(ibv->ibdev_path), "/sys/class/infiniband/%s", about->name);
}

/* Asks the NIC which devices there are, until it has been there once. */
static void look(void)
{
    sv_request_t request = {.verb = SV_LIST};
    sv_reply_t *reply;
    int control;

    pthread_mutex_lock(&all.lock);
    reply = all.is_known ? NULL : malloc(sizeof(*reply));
    control = NULL == reply ? -1 : sv_dial();
    if (control >= 0 && 0 == sv_ask(control, &request, NULL, 0, reply, NULL)) {
        all.is_known = true;
        all.count = reply->u.devices.count;
        memcpy(all.files, reply->u.devices.files, sizeof(all.files));
        for (uint32_t i = 0; i < all.count; ++i) {
            add_device(&reply->u.devices.of[i], i);
        }
    }
    if (control >= 0) {
        close(control);
    }
    free(reply);
    pthread_mutex_unlock(&all.lock);
}

const char *sv_lib_files(void)
{
    look();
    return all.files;
}

SV_EXPORT struct ibv_device **ibv_get_device_list(int *count)
{
    struct ibv_device **list;

    look();
    list = calloc((size_t) all.count + 1, sizeof(*list));
    for (uint32_t i = 0; NULL != list && i < all.count; ++i) {
        list[i] = &all.of[i].ibv;
    }
    if (NULL != count) {
        *count = (int) all.count;
    }
    return list;
}

SV_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

SV_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

SV_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
    return ((sv_lib_device_t *) device)->about.ip;
}

SV_EXPORT int ibv_fork_init(void)
{
    return 0;
}

int sv_lib_ask(sv_lib_context_t *context, const sv_request_t *request, const int *fds, int count,
               sv_reply_t *reply_p)
{
    sv_reply_t *reply = NULL == reply_p ? malloc(sizeof(*reply)) : reply_p;
    int error;

    if (NULL == reply) {
        return ENOMEM;
    }
    pthread_mutex_lock(&context->lock);
    error = sv_ask(context->control, request, fds, count, reply, NULL);
    pthread_mutex_unlock(&context->lock);
    if (NULL == reply_p) {
        free(reply);
    }
    return error;
}

int sv_lib_pipe(int ends_p[2])
{
    if (0 != pipe2(ends_p, O_CLOEXEC)) {
        return errno;
    }
    fcntl(ends_p[1], F_SETFL, O_NONBLOCK);
    return 0;
}

/* ---- opening */

static void *map(int fd, size_t size)
{
    void *at = fd < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return MAP_FAILED == at ? NULL : at;
}

/* Asks for the device: passes the end for its events and the doorbells, gets the NIC's wake and its
 * page. */
static int open_control(sv_lib_context_t *context, const sv_lib_device_t *device)
{
    sv_request_t request = {.verb = SV_OPEN, .object = device->index};
    sv_reply_t *reply = malloc(sizeof(*reply));
    int bells = memfd_create("softverbs", MFD_CLOEXEC);
    int ends[2] = {-1, -1}, page[2] = {-1, -1}, error = ENOMEM;

    request.u.given = (uintptr_t) sv_lib_given();
    context->control = sv_dial();
    if (NULL != reply && bells >= 0 && 0 == ftruncate(bells, sizeof(sv_bells_t)) &&
        0 == sv_lib_pipe(ends)) {
        error = sv_ask(context->control, &request, (int[]){ends[1], bells}, 2, reply, page);
        context->verbs.context.async_fd = ends[0];
        context->wake = page[0];
        context->bells = map(bells, sizeof(sv_bells_t));
        context->page = map(page[1], sizeof(sv_nic_page_t));
        if (0 == error && (NULL == context->bells || NULL == context->page)) {
            error = ENOMEM;
        }
    }
    for (int i = 0; i < 3; ++i) {
        int fd = (int[]){bells, ends[1], page[1]}[i];
        if (fd >= 0) {
            close(fd);
        }
    }
    free(reply);
    return error;
}

static void set_operations(struct ibv_context *context)
{
    context->ops.poll_cq = sv_lib_poll_cq;
    context->ops.req_notify_cq = sv_lib_req_notify_cq;
    context->ops.post_send = sv_lib_post_send;
    context->ops.post_recv = sv_lib_post_recv;
    context->ops.post_srq_recv = sv_lib_post_srq_recv;
    context->num_comp_vectors = 1;
    context->cmd_fd = -1;
    context->async_fd = -1;
    context->abi_compat = __VERBS_ABI_IS_EXTENDED;
}

SV_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    sv_lib_context_t *context = calloc(1, sizeof(*context));
    int error;

    if (NULL == context) {
        return NULL;
    }
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* where Yama keeps the NIC out */
    pthread_mutex_init(&context->lock, NULL);
    pthread_mutex_init(&context->verbs.context.mutex, NULL);
    pthread_cond_init(&context->acked, NULL);
    context->control = context->wake = -1;
    context->verbs.context.device = device;
    context->verbs.sz = sizeof(context->verbs);
    set_operations(&context->verbs.context);
    context->qps = calloc(SV_LIB_PLACES, sizeof(sv_lib_qp_t *));
    error = NULL == context->qps ? ENOMEM : open_control(context, (sv_lib_device_t *) device);
    if (0 != error) {
        ibv_close_device(&context->verbs.context);
        errno = error;
        return NULL;
    }
    return &context->verbs.context;
}

SV_EXPORT int ibv_close_device(struct ibv_context *ibv)
{
    sv_lib_context_t *context = sv_context_of(ibv);

    for (int i = 0; i < 3; ++i) {
        int fd = (int[]){context->control, context->wake, ibv->async_fd}[i];
        if (fd >= 0) {
            close(fd);
        }
    }
    if (NULL != context->bells) {
        munmap(context->bells, sizeof(sv_bells_t));
    }
    if (NULL != context->page) {
        munmap(context->page, sizeof(sv_nic_page_t));
    }
    free(context->qps);
    free(context);
    return 0;
}

/* ---- what a device can do */

SV_EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    (void) context;
    memset(attr, 0, sizeof(*attr));
    snprintf(attr->fw_ver, sizeof(attr->fw_ver), "softverbs");
    attr->max_mr_size = UINT64_MAX;
    attr->page_size_cap = 0xfffff000;
    attr->max_qp = SV_CONTEXT_QPS;
    attr->max_qp_wr = 16384;
    attr->device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN;
    attr->max_sge = attr->max_sge_rd = SV_SEND_SGES;
    attr->max_cq = 65536;
    attr->max_cqe = 1 << 22;
    attr->max_mr = 1 << 23;
    attr->max_pd = 65536;
    attr->max_qp_rd_atom = attr->max_qp_init_rd_atom = SV_RD_ATOMICS;
    attr->max_res_rd_atom = 65536;
    attr->atomic_cap = IBV_ATOMIC_HCA;
    attr->max_ah = 65536;
    attr->max_srq = 65536;
    attr->max_srq_wr = 65536;
    attr->max_srq_sge = SV_RECV_SGES;
    attr->max_pkeys = 1;
    attr->phys_port_cnt = 1;
    return 0;
}

static int ask_port(struct ibv_context *context, sv_port_t *port_p)
{
    sv_request_t request = {.verb = SV_PORT,
                            .object = ((sv_lib_device_t *) context->device)->index};
    sv_reply_t *reply = malloc(sizeof(*reply));
    int error =
        NULL == reply ? ENOMEM : sv_lib_ask(sv_context_of(context), &request, NULL, 0, reply);

    if (0 == error) {
        *port_p = reply->u.port;
    }
    free(reply);
    return error;
}

static bool is_ib(struct ibv_context *context)
{
    return 0 != ((sv_lib_device_t *) context->device)->about.is_ib;
}

/* What is exported fills ibv_port_attr up to the fields that came later. */
SV_EXPORT int ibv_query_port(struct ibv_context *context, uint8_t number,
                             struct _compat_ibv_port_attr *to)
{
    struct ibv_port_attr attr;
    sv_port_t port;
    int error = 1 == number ? ask_port(context, &port) : EINVAL;

    if (0 != error) {
        return error;
    }
    memset(&attr, 0, sizeof(attr));
    attr.state = port.state;
    attr.phys_state = IBV_PORT_ACTIVE == port.state ? 5 : 3;
    attr.max_mtu = attr.active_mtu = IBV_MTU_4096;
    attr.gid_tbl_len = is_ib(context) ? 1 : SV_GIDS;
    attr.pkey_tbl_len = 1;
    attr.max_msg_sz = 1u << 30;
    attr.active_width = (uint8_t) port.width;
    attr.active_speed = (uint8_t) port.speed;
    attr.link_layer = is_ib(context) ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
    attr.lid = (uint16_t) port.lid;
    attr.sm_lid = 1; /* nobody asks it anything */
    memcpy((void *) to, &attr, offsetof(struct ibv_port_attr, flags));
    return 0;
}

SV_EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t number, int index,
                            union ibv_gid *gid)
{
    sv_port_t port;
    int error = 1 == number && index >= 0 && index < SV_GIDS ? ask_port(context, &port) : EINVAL;

    if (0 != error) {
        errno = error;
        return -1;
    }
    memset(gid, 0, sizeof(*gid));
    if (0 == index) {
        sv_link_local(&((sv_lib_device_t *) context->device)->about, gid->raw);
    } else if (is_ib(context)) {
        errno = EINVAL;
        return -1;
    } else if ((uint32_t) index == port.gid_index && 0 != port.ip) { /* ::ffff:a.b.c.d */
        gid->raw[10] = gid->raw[11] = 0xff;
        memcpy(gid->raw + 12, &port.ip, sizeof(port.ip));
    } else if ((uint32_t) index == port.other_index) {
        sv_other_gid(gid->raw);
    }
    return 0;
}

SV_EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t number, int index, __be16 *pkey)
{
    (void) context;
    if (1 != number || 0 != index) {
        errno = EINVAL;
        return -1;
    }
    *pkey = htons(0xffff);
    return 0;
}

/* ---- protection domains, memory regions, address handles */

SV_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    sv_lib_pd_t *pd = calloc(1, sizeof(*pd));

    if (NULL != pd) {
        pd->ibv.context = context;
        pd->number = __atomic_add_fetch(&sv_context_of(context)->next_pd, 1, __ATOMIC_RELAXED);
    }
    return (struct ibv_pd *) pd;
}

SV_EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
    free(pd);
    return 0;
}

SV_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
                                          uint64_t iova, unsigned access)
{
    sv_request_t request = {.verb = SV_REG_MR};
    sv_reply_t *reply = malloc(sizeof(*reply));
    struct ibv_mr *mr = calloc(1, sizeof(*mr));
    int error = ENOMEM;

    request.u.mr.length = length;
    request.u.mr.iova = iova;
    request.u.mr.access = access;
    request.u.mr.pd = ((sv_lib_pd_t *) pd)->number;
    if (NULL != reply && NULL != mr) {
        error = sv_lib_gpu_place((uintptr_t) addr, length, &request.u.mr.addr);
    }
    if (0 == error) {
        error = sv_lib_ask(sv_context_of(pd->context), &request, NULL, 0, reply);
    }
    if (0 != error) {
        free(mr);
        mr = NULL;
        errno = error;
    } else {
        mr->context = pd->context;
        mr->pd = pd;
        mr->addr = addr;
        mr->length = length;
        mr->lkey = mr->rkey = reply->object;
    }
    free(reply);
    return mr;
}

SV_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
                                         uint64_t iova, int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned) access);
}

SV_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t) addr, (unsigned) access);
}

/* UCX 1.18 asks whether there is such a thing. */
SV_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
                                           uint64_t iova, int fd, int access)
{
    (void) pd, (void) offset, (void) length, (void) iova, (void) fd, (void) access;
    errno = EOPNOTSUPP;
    return NULL;
}

SV_EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
    sv_request_t request = {.verb = SV_DEREG_MR, .object = mr->lkey};
    int error = sv_lib_ask(sv_context_of(mr->context), &request, NULL, 0, NULL);

    if (0 == error) {
        free(mr);
    }
    return error;
}

SV_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    sv_lib_ah_t *ah = calloc(1, sizeof(*ah));

    if (NULL == ah) {
        return NULL;
    }
    ah->ibv.context = pd->context;
    ah->ibv.pd = pd;
    if (is_ib(pd->context)) {
        ah->ip = attr->dlid;
    } else {
        memcpy(&ah->ip, attr->grh.dgid.raw + 12, sizeof(ah->ip));
    }
    return &ah->ibv;
}

SV_EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
    free(ah);
    return 0;
}
