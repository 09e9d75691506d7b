/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Probes by puts: which rails use them, the targets, the requests.
 */
#include "r2_config.h"

#include <string.h>
#include <sys/epoll.h>
#include <utlist.h>

#include "base/util.h"
#include "rail/probe_parts.h"

#define R2_PROBE_PUTS_MAX \
    32 /* under way in a process; above that connections ask: five descriptors each */
#define R2_PROBE_SERVES_MAX 16           /* rounds of one poll(), so that others get their turn */
#define R2_PROBE_PUT_NS     R2_NS_PER_MS /* between two looks at a put */

bool r2_probe_choice_find(const char *word, r2_probe_choice_t *choice_p)
{
    static const char *const words[] = {
        [R2_PROBE_AUTO] = "auto", [R2_PROBE_CONNECT] = "connect", [R2_PROBE_PUT] = "put"};

    for (size_t i = 0; i < r2_array_count(words); ++i) {
        if (0 == strcmp(word, words[i])) {
            *choice_p = (r2_probe_choice_t) i;
            return true;
        }
    }
    return false;
}

/** Opens the device that puts leave by: RDMA, else TCP where puts are asked for. */
static r2_status_t r2_probe_put_device(const r2_probe_tcp_t *probe, const r2_nic_t *nic,
                                       r2_put_device_t **device_p)
{
    const r2_put_ops_t *ops = probe->put.ops;
    r2_status_t status = R2_ERR_NO_DEVICE;

    if ('\0' != nic->rdma[0]) {
        /* Of the connections of RDMA only these come up without the other process. */
        status = ops->device_open(probe->put.instance, nic->rdma, "dc_mlx5", device_p);
    }
    if (R2_OK != status && R2_PROBE_PUT == probe->choice) {
        status = ops->device_open(probe->put.instance, nic->name, "tcp", device_p);
    }
    return status;
}

void r2_probe_put_close(r2_probe_rail_t *rail)
{
    const r2_put_ops_t *ops = rail->probe->put.ops;
    r2_probe_request_t *request;

    if (NULL == rail->put.device) {
        return;
    }
    DL_FOREACH(rail->probe->requests, request) {
        if (request->rail == rail) {
            r2_probe_put_drop(request);
        }
    }
    if (NULL != rail->put.target) {
        epoll_ctl(rail->probe->epoll_fd, EPOLL_CTL_DEL, ops->fd(rail->put.target), NULL);
        ops->destroy(rail->put.target);
    }
    ops->device_close(rail->put.device);
    rail->put.device = NULL;
    rail->put.target = NULL;
    rail->put.bytes = 0;
}

void r2_probe_put_open(r2_probe_rail_t *rail, const r2_nic_t *nic)
{
    const r2_put_ops_t *ops = rail->probe->put.ops;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &rail->put.source};
    r2_status_t status;

    if (NULL == ops || R2_PROBE_CONNECT == rail->probe->choice ||
        (R2_PROBE_AUTO == rail->probe->choice && '\0' == nic->rdma[0])) {
        return;
    }
    status = r2_probe_put_device(rail->probe, nic, &rail->put.device);
    if (R2_OK == status) {
        status =
            ops->target(rail->put.device, rail->put.address, &rail->put.bytes, &rail->put.target);
    }
    if (R2_OK == status &&
        0 != epoll_ctl(rail->probe->epoll_fd, EPOLL_CTL_ADD, ops->fd(rail->put.target), &event)) {
        status = R2_ERR_SYSTEM;
    }
    if (R2_OK != status) {
        r2_info(rail->probe->log, "rail %u %s: probes connect, puts are not possible: %s",
                rail->idx, nic->name, r2_status_string(status));
        r2_probe_put_close(rail);
        return;
    }
    r2_info(rail->probe->log, "rail %u %s: probes put", rail->idx, nic->name);
    r2_probe_put_serve(rail);
}

void r2_probe_put_serve(r2_probe_rail_t *rail)
{
    const r2_put_ops_t *ops = rail->probe->put.ops;

    for (int i = 0; i < R2_PROBE_SERVES_MAX; ++i) {
        (void) ops->progress(rail->put.target);
        if (R2_OK == ops->arm(rail->put.target)) {
            return;
        }
    }
}

void r2_probe_put_drop(r2_probe_request_t *request)
{
    r2_probe_tcp_t *probe = request->rail->probe;

    if (NULL != request->put) {
        probe->put.ops->destroy(request->put);
        request->put = NULL;
        --probe->puts;
    }
}

bool r2_probe_put_begin(r2_probe_request_t *request, uint64_t now_ns)
{
    const r2_probe_rail_t *rail = request->rail;
    r2_probe_tcp_t *probe = rail->probe;

    if (NULL == rail->put.device || 0 == request->put_bytes || probe->puts >= R2_PROBE_PUTS_MAX ||
        R2_OK != probe->put.ops->start(rail->put.device, request->put_address, request->put_bytes,
                                       &request->put)) {
        request->put_bytes = 0;
        return false;
    }
    ++probe->puts;
    request->sent = true;
    request->askers[0].sent_ns = now_ns;
    request->put_ns = now_ns;
    return true;
}

bool r2_probe_put_advance(r2_probe_request_t *request, uint64_t now_ns, r2_probe_answer_t *answer_p)
{
    const r2_status_t status = request->rail->probe->put.ops->progress(request->put);

    request->put_ns = r2_min(now_ns + R2_PROBE_PUT_NS, request->deadline_ns);
    if (R2_OK == status) {
        request->rtt_ns = now_ns - request->askers[0].sent_ns;
        *answer_p = R2_PROBE_ALIVE;
        return true;
    }
    if (status < 0 && now_ns >= request->deadline_ns) {
        *answer_p = R2_PROBE_UNABLE; /* as below, noticed too late to connect */
        return true;
    }
    if (status < 0) {
        /* Refused, reset: somebody is there or nobody is, but it is no silence. */
        r2_probe_put_drop(request);
        request->put_bytes = 0;
        request->start_ns[0] = now_ns;
        request->start_ns[1] =
            now_ns + (request->deadline_ns - r2_min(now_ns, request->deadline_ns)) / 2;
    }
    return false;
}
