/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Workers of the UCX transport: generations of a device. Progress, arrivals, completions.
 */
#include "r2_config.h"

#include "transport/ucx.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"

#define RECORDS_GROW 64

/** Memory of records, freed with the worker. */
struct r2_ucx_slab {
    r2_ucx_slab_t *next; /* owned */
    r2_ucx_record_t records[RECORDS_GROW];
};

r2_ucx_record_t *r2_ucx_record_get(r2_tp_worker_t *worker)
{
    r2_ucx_record_t *record;

    if (NULL == worker->spare) {
        r2_ucx_slab_t *slab = calloc(1, sizeof(*slab));

        if (NULL == slab) {
            return NULL;
        }
        LL_PREPEND(worker->slabs, slab);
        for (size_t i = 0; i < r2_array_count(slab->records); i++) {
            slab->records[i].worker = worker;
            LL_PREPEND(worker->spare, &slab->records[i]);
        }
    }
    record = worker->spare;
    worker->spare = record->next;
    return record;
}

void r2_ucx_record_put(r2_ucx_record_t *record)
{
    LL_PREPEND(record->worker->spare, record);
}

void r2_ucx_record_tell(r2_ucx_record_t *record, r2_status_t status)
{
    r2_tp_send_t *op = record->op;

    r2_ucx_record_put(record);
    op->transport_private = NULL;
    op->sent(op, status);
}

/**
 * Is this a packet for us? No peer of ours asks for rendezvous and none sends more than a segment.
 * What arrives while no progress call of ours is under way belongs to a worker that is taken down.
 */
static bool is_ours(const r2_tp_worker_t *worker, size_t data_bytes,
                    const ucp_am_recv_param_t *param)
{
    return worker->in_progress && 0 == (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) &&
           data_bytes <= worker->device->segment_bytes;
}

static ucs_status_t on_packet(void *arg, const void *header, size_t header_bytes, void *data,
                              size_t data_bytes, const ucp_am_recv_param_t *param)
{
    r2_tp_worker_t *worker = arg;

    if (is_ours(worker, data_bytes, param) && header_bytes <= R2_TP_HEADER_MAX) {
        worker->callbacks.received(worker->arg, header, header_bytes, data, data_bytes);
    }
    return UCS_OK;
}

static ucs_status_t on_piece(void *arg, const void *head, size_t head_bytes, void *data,
                             size_t bytes, const ucp_am_recv_param_t *param)
{
    r2_tp_worker_t *worker = arg;

    if (is_ours(worker, bytes, param) && head_bytes <= sizeof(r2_ucx_piece_t)) {
        r2_ucx_piece_arrived(worker, head, head_bytes, data, bytes);
    }
    return UCS_OK;
}

static ucs_status_t handle(r2_tp_worker_t *worker, unsigned id, ucp_am_recv_callback_t function)
{
    ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                      UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = id,
        .flags = UCP_AM_FLAG_WHOLE_MSG,
        .cb = function,
        .arg = worker};

    return ucp_worker_set_am_recv_handler(worker->ucp_worker, &handler);
}

/** Prepares a new UCX worker for packets and for sleeping. */
static ucs_status_t worker_prepare(r2_tp_worker_t *worker)
{
    ucs_status_t rc = handle(worker, R2_UCX_AM_PACKET, on_packet);

    if (UCS_OK == rc) {
        rc = handle(worker, R2_UCX_AM_PIECE, on_piece);
    }
    return UCS_OK == rc ? ucp_worker_get_efd(worker->ucp_worker, &worker->fd) : rc;
}

r2_status_t r2_ucx_worker_create(r2_tp_device_t *device, const r2_tp_callbacks_t *callbacks,
                                 void *arg, r2_tp_worker_t **worker_p)
{
    ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    r2_tp_worker_t *worker = calloc(1, sizeof(*worker));
    ucs_status_t rc;
    bool lacked;

    if (NULL == worker) {
        return R2_ERR_NO_MEMORY;
    }
    worker->device = device;
    worker->callbacks = *callbacks;
    worker->arg = arg;
    worker->stream.worker = r2_random_u64(r2_clock_system());
    r2_ucx_fds_enter(device->ucx);
    rc = ucp_worker_create(device->context, &params, &worker->ucp_worker);
    if (UCS_OK == rc) {
        rc = worker_prepare(worker);
        if (UCS_OK != rc) {
            ucp_worker_destroy(worker->ucp_worker);
        }
    }
    lacked = UCS_OK != rc && !r2_ucx_has_room(device->ucx, 0, 1, 0);
    r2_ucx_fds_leave(device->ucx);
    if (UCS_OK != rc) {
        free(worker);
        return lacked                    ? R2_ERR_NO_DESCRIPTORS
               : UCS_ERR_NO_MEMORY == rc ? R2_ERR_NO_MEMORY
                                         : R2_ERR_NO_DEVICE;
    }
    *worker_p = worker;
    return R2_OK;
}

void r2_ucx_worker_destroy(r2_tp_worker_t *worker)
{
    r2_ucx_slab_t *slab, *next;
    r2_tp_ep_t *ep;

    r2_assert(!worker->in_progress);
    while (NULL != worker->eps) {
        r2_ucx_ep_close(worker->eps);
    }
    r2_ucx_fds_enter(worker->device->ucx);
    while (NULL != (ep = worker->left_eps)) {
        DL_DELETE(worker->left_eps, ep);
        r2_ucx_ep_force(ep);
        free(ep);
    }
    ucp_worker_destroy(worker->ucp_worker);
    r2_ucx_fds_leave(worker->device->ucx);
    r2_ucx_pieces_free(worker);
    LL_FOREACH_SAFE(worker->slabs, slab, next) {
        free(slab);
    }
    free(worker);
}

static unsigned tell_sent(r2_tp_worker_t *worker)
{
    r2_ucx_record_t *record;
    unsigned count = 0;

    while (NULL != (record = worker->completed)) {
        DL_DELETE(worker->completed, record);
        r2_ucx_record_tell(record, record->status);
        count++;
    }
    return count;
}

void r2_ucx_ep_fail(r2_tp_ep_t *ep, r2_status_t status)
{
    if (R2_OK == ep->failure) {
        ep->failure = status;
        ep->worker->failures = true;
    }
}

static unsigned tell_failed(r2_tp_worker_t *worker)
{
    r2_tp_ep_t *ep;
    unsigned count = 0;

    if (!worker->failures) {
        return 0;
    }
    worker->failures = false;
    DL_FOREACH(worker->eps, ep) {
        if (R2_OK != ep->failure && !ep->failure_told) {
            ep->failure_told = true;
            worker->callbacks.failed(worker->arg, ep->arg, ep->failure);
            count++;
        }
    }
    return count;
}

static void send_waiting(r2_tp_worker_t *worker)
{
    r2_tp_ep_t *ep, *next;

    DL_FOREACH_SAFE2(worker->waiting, ep, next, waiting_next)
    {
        r2_ucx_send_waiting(ep);
    }
}

unsigned r2_ucx_worker_progress(r2_tp_worker_t *worker)
{
    r2_ucx_t *ucx = worker->device->ucx;
    unsigned count;

    r2_assert(!worker->in_progress);
    worker->in_progress = true;
    if (r2_ucx_fds_gone(ucx)) {
        r2_ucx_fds_enter(ucx);
        count = ucp_worker_progress(worker->ucp_worker);
        r2_ucx_fds_leave(ucx);
    } else {
        r2_ucx_enter();
        count = ucp_worker_progress(worker->ucp_worker);
        r2_ucx_leave();
    }
    r2_ucx_enter();
    send_waiting(worker);
    r2_ucx_leave();
    count += tell_sent(worker);
    count += tell_failed(worker);
    worker->in_progress = false;
    return count;
}

int r2_ucx_worker_fd(r2_tp_worker_t *worker)
{
    return worker->fd;
}

r2_status_t r2_ucx_worker_arm(r2_tp_worker_t *worker)
{
    ucs_status_t rc;

    if (NULL != worker->completed || worker->failures) {
        return R2_ERR_AGAIN;
    }
    r2_ucx_enter();
    rc = ucp_worker_arm(worker->ucp_worker);
    r2_ucx_leave();
    return UCS_OK == rc ? R2_OK : R2_ERR_AGAIN;
}

bool r2_ucx_worker_signals(const r2_tp_worker_t *worker)
{
    return worker->device->signals && NULL == worker->waiting && NULL == worker->completed &&
           !worker->failures;
}
