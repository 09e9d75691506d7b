/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Transport between threads: a queue with a lock and an eventfd for each worker.
 */
#include "r2_config.h"

#include "thread_net.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utlist.h>

#include "base/util.h"

#define WORKERS_MAX 4096

typedef struct wire_packet {
    struct wire_packet *prev, *next;
    size_t header_bytes, data_bytes;
    char bytes[];
} wire_packet_t;

struct r2_tp_device {
    thread_net_t *net; /* borrowed */
};

struct r2_tp_ep {
    struct r2_tp_ep *prev, *next;    /* in worker->eps */
    r2_tp_worker_t *worker, *remote; /* borrowed */
};

/** A send that is not complete. */
typedef struct wire_send {
    struct wire_send *prev, *next; /* in worker->sends */
    r2_tp_ep_t *ep;                /* borrowed */
    r2_tp_send_t *op;              /* borrowed */
} wire_send_t;

/** `lock` guards the queue and `dead`; the rest belongs to the engine lock of its rank. */
struct r2_tp_worker {
    thread_net_t *net; /* borrowed */
    pthread_mutex_t lock;
    wire_packet_t *queue; /* owned list: arrived */
    bool dead;
    int fd;
    uint32_t idx;
    r2_tp_callbacks_t callbacks;
    void *arg;
    r2_tp_ep_t *eps;    /* owned list */
    wire_send_t *sends; /* owned list */
    uint32_t turn;
};

/** `lock` guards the table. Workers stay in memory to the end, so that no rank reads freed ones. */
struct thread_net {
    pthread_mutex_t lock;
    uint32_t worker_count;
    r2_tp_worker_t *workers[WORKERS_MAX]; /* owned */
};

static r2_status_t wire_device_open(void *tp, const r2_tp_device_config_t *config,
                                    r2_tp_device_t **device_p)
{
    (void) config;
    *device_p = malloc(sizeof(**device_p));
    (*device_p)->net = tp;
    return R2_OK;
}

static void wire_device_close(r2_tp_device_t *device)
{
    free(device);
}

static r2_status_t wire_worker_create(r2_tp_device_t *device, const r2_tp_callbacks_t *callbacks,
                                      void *arg, r2_tp_worker_t **worker_p)
{
    thread_net_t *net = device->net;
    r2_tp_worker_t *worker = calloc(1, sizeof(*worker));

    pthread_mutex_init(&worker->lock, NULL);
    worker->net = net;
    worker->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    worker->callbacks = *callbacks;
    worker->arg = arg;
    pthread_mutex_lock(&net->lock);
    worker->idx = net->worker_count;
    if (WORKERS_MAX == net->worker_count) {
        abort();
    }
    net->workers[net->worker_count++] = worker;
    pthread_mutex_unlock(&net->lock);
    *worker_p = worker;
    return R2_OK;
}

static void wire_cancel(r2_tp_worker_t *worker, const r2_tp_ep_t *ep)
{
    wire_send_t *entry, *next;

    DL_FOREACH_SAFE(worker->sends, entry, next) {
        if (NULL == ep || entry->ep == ep) {
            r2_tp_send_t *op = entry->op;

            DL_DELETE(worker->sends, entry);
            free(entry);
            op->sent(op, R2_ERR_CANCELED);
        }
    }
}

static void wire_worker_destroy(r2_tp_worker_t *worker)
{
    r2_tp_ep_t *ep, *next_ep;
    wire_packet_t *packet, *next;

    wire_cancel(worker, NULL);
    DL_FOREACH_SAFE(worker->eps, ep, next_ep) {
        free(ep);
    }
    pthread_mutex_lock(&worker->lock);
    worker->dead = true;
    DL_FOREACH_SAFE(worker->queue, packet, next) {
        free(packet);
    }
    close(worker->fd);
    pthread_mutex_unlock(&worker->lock);
}

static void wire_push(r2_tp_worker_t *to, const r2_tp_send_t *op)
{
    wire_packet_t *packet = malloc(sizeof(*packet) + op->header_bytes + op->data_bytes);
    uint64_t one = 1;

    packet->header_bytes = op->header_bytes;
    packet->data_bytes = op->data_bytes;
    memcpy(packet->bytes, op->header, op->header_bytes);
    if (op->data_bytes > 0) {
        memcpy(packet->bytes + op->header_bytes, op->data, op->data_bytes);
    }
    pthread_mutex_lock(&to->lock);
    if (to->dead) {
        free(packet);
    } else {
        DL_APPEND(to->queue, packet);
        (void) !write(to->fd, &one, sizeof(one));
    }
    pthread_mutex_unlock(&to->lock);
}

static unsigned wire_complete(r2_tp_worker_t *worker)
{
    unsigned events = 0;

    while (NULL != worker->sends) {
        wire_send_t *entry = worker->sends;
        r2_tp_send_t *op = entry->op;

        DL_DELETE(worker->sends, entry);
        wire_push(entry->ep->remote, op);
        free(entry);
        op->sent(op, R2_OK);
        ++events;
    }
    return events;
}

static unsigned wire_worker_progress(r2_tp_worker_t *worker)
{
    wire_packet_t *list, *packet, *next;
    unsigned events;

    pthread_mutex_lock(&worker->lock);
    list = worker->queue;
    worker->queue = NULL;
    pthread_mutex_unlock(&worker->lock);
    events = wire_complete(worker);
    DL_FOREACH_SAFE(list, packet, next) {
        worker->callbacks.received(worker->arg, packet->bytes, packet->header_bytes,
                                   packet->bytes + packet->header_bytes, packet->data_bytes);
        free(packet);
        ++events;
    }
    return events;
}

static int wire_worker_fd(r2_tp_worker_t *worker)
{
    return worker->fd;
}

static r2_status_t wire_worker_arm(r2_tp_worker_t *worker)
{
    r2_status_t status = NULL == worker->sends ? R2_OK : R2_ERR_AGAIN;
    uint64_t drained;

    pthread_mutex_lock(&worker->lock);
    if (NULL != worker->queue) {
        status = R2_ERR_AGAIN;
    } else {
        (void) !read(worker->fd, &drained, sizeof(drained));
    }
    pthread_mutex_unlock(&worker->lock);
    return status;
}

static r2_status_t wire_ep_open(r2_tp_worker_t *worker, void *ep_arg, r2_tp_ep_t **ep_p)
{
    r2_tp_ep_t *ep = calloc(1, sizeof(*ep));

    (void) ep_arg;
    ep->worker = worker;
    DL_APPEND(worker->eps, ep);
    *ep_p = ep;
    return R2_OK;
}

static r2_status_t wire_ep_address(r2_tp_ep_t *ep, void *address_p, size_t *bytes_p)
{
    memcpy(address_p, &ep->worker->idx, sizeof(ep->worker->idx));
    *bytes_p = sizeof(ep->worker->idx);
    return R2_OK;
}

static r2_status_t wire_ep_connect(r2_tp_ep_t *ep, const void *address, size_t address_bytes)
{
    thread_net_t *net = ep->worker->net;
    uint32_t idx;

    memcpy(&idx, address, r2_min(sizeof(idx), address_bytes));
    pthread_mutex_lock(&net->lock);
    ep->remote = net->workers[idx];
    pthread_mutex_unlock(&net->lock);
    return R2_OK;
}

static void wire_ep_close(r2_tp_ep_t *ep)
{
    wire_cancel(ep->worker, ep);
    DL_DELETE(ep->worker->eps, ep);
    free(ep);
}

/* Every other send is complete at once, the others when their worker is progressed. */
static r2_status_t wire_send(r2_tp_ep_t *ep, r2_tp_send_t *op)
{
    wire_send_t *entry;

    if (0 == ++ep->worker->turn % 2 && NULL == ep->worker->sends) {
        wire_push(ep->remote, op);
        return R2_OK;
    }
    entry = malloc(sizeof(*entry));
    entry->ep = ep;
    entry->op = op;
    DL_APPEND(ep->worker->sends, entry);
    return R2_IN_PROGRESS;
}

thread_net_t *thread_net_create(void)
{
    thread_net_t *net = calloc(1, sizeof(*net));

    pthread_mutex_init(&net->lock, NULL);
    return net;
}

void thread_net_destroy(thread_net_t *net)
{
    for (uint32_t i = 0; i < net->worker_count; ++i) {
        pthread_mutex_destroy(&net->workers[i]->lock);
        free(net->workers[i]);
    }
    pthread_mutex_destroy(&net->lock);
    free(net);
}

r2_tp_t thread_net_rank(thread_net_t *net)
{
    static const r2_tp_ops_t ops = {
        .name = "threads",
        .device_open = wire_device_open,
        .device_close = wire_device_close,
        .worker_create = wire_worker_create,
        .worker_destroy = wire_worker_destroy,
        .worker_progress = wire_worker_progress,
        .worker_fd = wire_worker_fd,
        .worker_arm = wire_worker_arm,
        .ep_open = wire_ep_open,
        .ep_address = wire_ep_address,
        .ep_connect = wire_ep_connect,
        .ep_close = wire_ep_close,
        .send = wire_send,
    };

    return (r2_tp_t){&ops, net};
}
