/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Rail life cycle.
 */
#include "r2_config.h"

#include "rail/rail.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/util.h"
#include "r2/params.h"
#include "rail/nic_parts.h"

/* An RDMA device that could not be opened is not tried again before: that takes milliseconds. */
#define R2_REOPEN_NS (100 * R2_NS_PER_MS)

void r2_rail_init(r2_rail_t *rail, uint32_t idx, const r2_nic_t *nic, const r2_tp_t *tp,
                  const r2_tp_callbacks_t *callbacks, size_t segment_bytes, int epoll_fd,
                  void *owner, const r2_log_t *log)
{
    memset(rail, 0, sizeof(*rail));
    rail->idx = idx;
    if (NULL != nic) {
        rail->nic = *nic;
    } else {
        strcpy(rail->nic.name, "local");
        rail->nic.carrier = true;
    }
    rail->tp = tp;
    rail->callbacks = callbacks;
    rail->segment_bytes = segment_bytes;
    rail->epoll_fd = epoll_fd;
    rail->owner = owner;
    rail->log = log;
}

static void r2_rail_watch(r2_rail_t *rail, r2_rail_worker_t *worker, int operation)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = worker};
    int fd = rail->tp->ops->worker_fd(worker->worker);

    if (fd >= 0 && rail->epoll_fd >= 0) {
        epoll_ctl(rail->epoll_fd, operation, fd, &event);
    }
}

static void r2_rail_device_close(r2_rail_t *rail, r2_rail_device_t *device)
{
    r2_rail_device_t **slot = &rail->devices;

    while (*slot != device) {
        slot = &(*slot)->next;
    }
    *slot = device->next;
    rail->tp->ops->device_close(device->device);
    free(device);
}

/* A dead device goes with its last worker. */
static void r2_rail_device_put(r2_rail_t *rail, r2_rail_device_t *device)
{
    if (device->is_dead && 0 == device->workers) {
        r2_rail_device_close(rail, device);
    }
}

static void r2_rail_worker_destroy(r2_rail_worker_t *worker)
{
    r2_worker_peer_t *peer, *next;

    r2_rail_watch(worker->rail, worker, EPOLL_CTL_DEL);
    worker->rail->tp->ops->worker_destroy(worker->worker);
    HASH_ITER(hh, worker->peers, peer, next)
    {
        HASH_DEL(worker->peers, peer);
        free(peer);
    }
    --worker->device->workers;
    r2_rail_device_put(worker->rail, worker->device);
    free(worker);
}

void r2_rail_fini(r2_rail_t *rail)
{
    while (NULL != rail->workers) {
        r2_rail_worker_t *worker = rail->workers;

        rail->workers = worker->next;
        r2_rail_worker_destroy(worker);
    }
    while (NULL != rail->devices) {
        r2_rail_device_close(rail, rail->devices);
    }
}

/* The device that new workers are made of; NULL: none is open. */
static r2_rail_device_t *r2_rail_device(const r2_rail_t *rail, bool is_rdma)
{
    r2_rail_device_t *device = rail->devices;

    while (NULL != device && (is_rdma != device->is_rdma || device->is_dead)) {
        device = device->next;
    }
    return device;
}

int r2_rail_gid_index(const r2_rail_t *rail)
{
    r2_rdma_port_t port;

    if (NULL != r2_params_ucx("IB_GID_INDEX")) {
        return -1;
    }
    r2_rdma_port_read("", rail->nic.rdma, &rail->nic, &port);
    return R2_LINK_ETHERNET == port.link && R2_GID_NONE != port.gid_kind ? port.gid_idx : -1;
}

static r2_status_t r2_rail_open(r2_rail_t *rail, bool is_rdma, uint64_t now_ns)
{
    r2_tp_device_config_t config = {
        .name = R2_RAILS_MAX == rail->idx ? NULL : is_rdma ? rail->nic.rdma : rail->nic.name,
        .tls = is_rdma ? rail->nic.tls : NULL,
        .segment_bytes = is_rdma ? r2_min(rail->segment_bytes, (size_t) R2_TP_RDMA_BYTES)
                                 : rail->segment_bytes,
        .gid_index = is_rdma ? r2_rail_gid_index(rail) : -1,
    };
    r2_rail_device_t *device;
    r2_status_t status;

    if (is_rdma && now_ns < rail->reopen_ns) {
        return R2_ERR_NO_DEVICE;
    }
    device = calloc(1, sizeof(*device));
    if (NULL == device) {
        return R2_ERR_NO_MEMORY;
    }
    status = rail->tp->ops->device_open(rail->tp->instance, &config, &device->device);
    if (R2_OK != status) {
        rail->reopen_ns = is_rdma ? now_ns + R2_REOPEN_NS : rail->reopen_ns;
        free(device);
        return status;
    }
    device->is_rdma = is_rdma;
    device->gid_index = config.gid_index;
    device->next = rail->devices;
    rail->devices = device;
    return R2_OK;
}

static r2_status_t r2_rail_worker_create(r2_rail_t *rail, r2_rail_device_t *device)
{
    r2_rail_worker_t *worker = calloc(1, sizeof(*worker));
    r2_status_t status;

    if (NULL == worker) {
        return R2_ERR_NO_MEMORY;
    }
    worker->rail = rail;
    worker->device = device;
    worker->is_rdma = device->is_rdma;
    status = rail->tp->ops->worker_create(device->device, rail->callbacks, worker, &worker->worker);
    if (R2_OK != status) {
        free(worker);
        return status;
    }
    ++device->workers;
    r2_rail_watch(rail, worker, EPOLL_CTL_ADD);
    worker->next = rail->workers;
    rail->workers = worker;
    return R2_OK;
}

static void r2_rail_device_dies(r2_rail_t *rail, r2_rail_device_t *device)
{
    device->is_dead = true;
    r2_rail_device_put(rail, device);
}

/* Its RDMA devices get no new lanes, but for those that go by this index of the address. */
static void r2_rail_devices_die(r2_rail_t *rail, const int *but_gid_index)
{
    r2_rail_device_t *device = rail->devices, *next;

    for (; NULL != device; device = next) {
        next = device->next;
        if (device->is_rdma && !device->is_dead &&
            (NULL == but_gid_index || device->gid_index != *but_gid_index)) {
            r2_rail_device_dies(rail, device);
        }
    }
}

void r2_rail_moved(r2_rail_t *rail, int gid_index)
{
    r2_rail_devices_die(rail, &gid_index);
}

void r2_rail_lost(r2_rail_t *rail)
{
    r2_rail_devices_die(rail, NULL);
}

void r2_rail_doubt(r2_rail_worker_t *worker, r2_status_t status)
{
    if (worker->is_rdma && R2_ERR_NO_DEVICE == status) {
        worker->device->is_dead = true; /* it goes with this worker */
    }
}

/*
 * What was opened of an RDMA device stays dead after the device's death, though it may be back: it
 * is opened anew then. So it is after its port's address has got another index.
 */
static r2_status_t r2_rail_worker_add(r2_rail_t *rail, bool is_rdma, uint64_t now_ns)
{
    r2_rail_device_t *device = r2_rail_device(rail, is_rdma);
    r2_status_t status = R2_ERR_NO_DEVICE;

    if (NULL != device && is_rdma && device->gid_index != r2_rail_gid_index(rail)) {
        r2_rail_device_dies(rail, device);
        device = NULL;
    }
    if (NULL != device) {
        status = r2_rail_worker_create(rail, device);
        if (R2_ERR_NO_DEVICE != status || !is_rdma) {
            return status;
        }
        r2_rail_device_dies(rail, device);
    }
    status = r2_rail_open(rail, is_rdma, now_ns);
    if (R2_OK != status) {
        return status;
    }
    device = rail->devices;
    status = r2_rail_worker_create(rail, device);
    if (R2_ERR_NO_DEVICE == status && is_rdma) {
        rail->reopen_ns = now_ns + R2_REOPEN_NS;
        r2_rail_device_dies(rail, device);
    }
    return status;
}

static r2_rail_worker_t *r2_rail_newest(const r2_rail_t *rail, bool is_rdma)
{
    r2_rail_worker_t *worker = rail->workers;

    while (NULL != worker && (is_rdma != worker->is_rdma || worker->device->is_dead)) {
        worker = worker->next;
    }
    return worker;
}

/* True if the newest worker may have an endpoint to this peer. */
static bool r2_rail_worker_serves(const r2_rail_t *rail, bool is_rdma, uint32_t peer)
{
    const r2_rail_worker_t *worker = r2_rail_newest(rail, is_rdma);
    r2_worker_peer_t *entry;

    if (NULL == worker || (rail->alone && worker->users > 0)) {
        return false;
    }
    HASH_FIND(hh, worker->peers, &peer, sizeof(peer), entry);
    return NULL == entry;
}

r2_status_t r2_rail_get(r2_rail_t *rail, bool is_rdma, uint32_t peer, uint32_t pending,
                        uint64_t now_ns, r2_rail_worker_t **worker_p)
{
    const r2_tp_t *tp = rail->tp;
    const bool serves = r2_rail_worker_serves(rail, is_rdma, peer);
    r2_status_t status = R2_OK;

    if (NULL != tp->ops->has_room &&
        !tp->ops->has_room(tp->instance, NULL == r2_rail_device(rail, is_rdma), serves ? 0 : 1,
                           pending + 1)) {
        return R2_ERR_NO_DESCRIPTORS;
    }
    if (!serves) {
        status = r2_rail_worker_add(rail, is_rdma, now_ns);
    }
    if (R2_OK != status) {
        return status;
    }
    *worker_p = r2_rail_newest(rail, is_rdma);
    ++(*worker_p)->users;
    return R2_OK;
}

r2_status_t r2_rail_connect(r2_rail_worker_t *worker, r2_tp_ep_t *ep, uint32_t peer,
                            const void *address, size_t address_bytes)
{
    r2_worker_peer_t *entry = calloc(1, sizeof(*entry));
    r2_status_t status;

    if (NULL == entry) {
        return R2_ERR_NO_MEMORY;
    }
    entry->rank = peer;
    HASH_ADD(hh, worker->peers, rank, sizeof(entry->rank), entry);
    if (!r2_hash_has(&entry->hh)) {
        free(entry);
        return R2_ERR_NO_MEMORY;
    }
    status = worker->rail->tp->ops->ep_connect(ep, address, address_bytes);
    /* A worker whose NIC has another address by now serves this peer no more. */
    if (R2_OK != status && (worker->is_rdma || R2_ERR_NO_DEVICE != status)) {
        HASH_DEL(worker->peers, entry);
        free(entry);
    }
    return status;
}

uint64_t r2_rail_domain(const r2_rail_worker_t *worker, const r2_clock_t *clock)
{
    r2_rail_device_t *device = worker->device;

    while (0 == device->domain) {
        device->domain = r2_random_u64(clock);
    }
    return device->domain;
}

void r2_rail_put(r2_rail_worker_t *worker)
{
    --worker->users;
}

/* One process of each host warns. */
static void r2_rail_tell_refusal(r2_rail_t *rail)
{
    r2_rdma_advice_t advice;
    r2_tp_refusal_t refusal;

    for (const r2_rail_device_t *device = rail->devices; NULL != device; device = device->next) {
        if (device->is_rdma && !rail->refusal_told &&
            rail->tp->ops->device_refused(device->device, &refusal)) {
            rail->refusal_told = true;
            r2_rdma_refusal_advise(r2_memlock_bytes(), rail->idx, &rail->nic, &refusal, &advice);
            r2_log_at(rail->log, r2_params_first_of_host() ? R2_LOG_WARN : R2_LOG_INFO, "%s; %s",
                      advice.what, advice.remedy);
        }
    }
}

void r2_rail_reap(r2_rail_t *rail)
{
    r2_rail_worker_t **slot = &rail->workers;

    while (NULL != *slot) {
        r2_rail_worker_t *worker = *slot;
        const bool stays = !rail->alone && worker == r2_rail_newest(rail, worker->is_rdma);

        if (0 == worker->users && !stays) {
            *slot = worker->next;
            r2_rail_worker_destroy(worker);
        } else {
            slot = &worker->next;
        }
    }
    if (!rail->refusal_told && NULL != rail->tp->ops->device_refused) {
        r2_rail_tell_refusal(rail);
    }
}

r2_status_t r2_rail_arm(r2_rail_t *rail)
{
    for (r2_rail_worker_t *worker = rail->workers; NULL != worker; worker = worker->next) {
        if (R2_OK != rail->tp->ops->worker_arm(worker->worker)) {
            return R2_ERR_AGAIN;
        }
    }
    return R2_OK;
}

static void r2_rail_note(r2_rail_worker_t *worker, unsigned found, uint64_t now_ns, bool rare)
{
    if (0 == found) {
        worker->unread_ns = 0;
    } else if (0 == worker->unread_ns) {
        worker->unread_ns = now_ns;
    }
    worker->rare_ns = rare && found > 0 ? now_ns : worker->rare_ns;
}

static bool r2_rail_worker_is_hot(const r2_rail_worker_t *worker)
{
    const r2_tp_ops_t *ops = worker->rail->tp->ops;

    return NULL != ops->worker_signals && !ops->worker_signals(worker->worker);
}

bool r2_rail_is_hot(const r2_rail_t *rail)
{
    const r2_rail_worker_t *worker = rail->workers;

    while (NULL != worker && !r2_rail_worker_is_hot(worker)) {
        worker = worker->next;
    }
    return NULL != worker;
}

void r2_rail_cool(r2_rail_t *rail)
{
    for (r2_rail_worker_t *worker = rail->workers; NULL != worker; worker = worker->next) {
        if (!worker->is_rdma && r2_rail_worker_is_hot(worker)) {
            /* a failure that it has to tell of keeps it hot */
            (void) rail->tp->ops->worker_arm(worker->worker);
        }
    }
}

unsigned r2_rail_worker_progress(r2_rail_worker_t *worker, uint64_t now_ns, bool rare)
{
    unsigned found;

    worker->readable = false;
    found = worker->rail->tp->ops->worker_progress(worker->worker);
    r2_rail_note(worker, found, now_ns, rare);
    return found;
}

unsigned r2_rail_ep_progress(r2_rail_worker_t *worker, r2_tp_ep_t *ep, uint64_t now_ns, bool rare)
{
    const r2_tp_ops_t *ops = worker->rail->tp->ops;
    unsigned found;

    if (NULL == ops->ep_progress) {
        return r2_rail_worker_progress(worker, now_ns, rare);
    }
    found = ops->ep_progress(worker->worker, ep);
    if (found > 0) { /* that there is nothing is not said of the others */
        r2_rail_note(worker, found, now_ns, rare);
    }
    return found;
}

unsigned r2_rail_progress(r2_rail_t *rail, bool all, uint64_t now_ns, bool rare)
{
    const r2_tp_ops_t *ops = rail->tp->ops;
    unsigned events = 0;

    for (r2_rail_worker_t *worker = rail->workers; NULL != worker; worker = worker->next) {
        if (all || worker->readable || NULL == ops->worker_signals ||
            !ops->worker_signals(worker->worker)) {
            events += r2_rail_worker_progress(worker, now_ns, rare);
        } else {
            r2_rail_note(worker, 0, now_ns, rare);
        }
    }
    return events;
}
