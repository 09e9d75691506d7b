/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Memory of ours that peers write to and read by themselves, and writing to and reading theirs.
 */
#include "r2_config.h"

#include "transport/uct.h"

#include <string.h>

/*
 * A put is two work requests of one queue pair: a write and, behind it, the header as an active
 * message. The NIC of the peer carries them out in this order, and once each, so who gets the
 * header has the data. That the write is done is told when the peer's NIC has acknowledged it: from
 * then on nothing reads the data here. It says nothing of the peer's process.
 */

r2_status_t r2_uct_grant(r2_tp_worker_t *worker, void *data, size_t bytes,
                         const r2_tp_memory_t *memory, void *key_p, size_t *key_bytes_p,
                         void **grant_p)
{
    r2_tp_device_t *device = worker->device;
    r2_uct_region_t *region;
    ucs_status_t rc;

    if (0 == worker->limits.put || bytes > worker->limits.put) {
        return R2_ERR_UNSUPPORTED;
    }
    r2_ucx_enter();
    region = r2_uct_region_get(device->memory, data, bytes, memory);
    rc = NULL == region ? UCS_ERR_NO_MEMORY
                        : uct_md_mkey_pack(device->domain.md, r2_uct_region_handle(region), key_p);
    if (UCS_OK != rc && NULL != region) {
        r2_uct_region_put(device->memory, region);
    }
    r2_ucx_leave();
    if (UCS_OK != rc) {
        return R2_ERR_NO_MEMORY;
    }
    *key_bytes_p = device->domain.key_bytes;
    *grant_p = region;
    return R2_OK;
}

void r2_uct_ungrant(r2_tp_worker_t *worker, void *grant)
{
    r2_ucx_enter();
    r2_uct_region_put(worker->device->memory, grant);
    r2_ucx_leave();
}

void *r2_uct_pin_begin(r2_tp_worker_t *worker, void *data, size_t bytes)
{
    void *region;

    if (0 == worker->limits.put || bytes > worker->limits.put) {
        return NULL;
    }
    r2_ucx_enter(); /* looks at what is unmapped */
    region = r2_uct_region_begin(worker->device->memory, data, bytes);
    r2_ucx_leave();
    return region;
}

void r2_uct_pin(r2_tp_worker_t *worker, void *pin)
{
    r2_ucx_enter();
    r2_uct_region_pin(worker->device->memory, pin);
    r2_ucx_leave();
}

void r2_uct_pin_end(r2_tp_worker_t *worker, void *pin)
{
    r2_ucx_enter();
    r2_uct_region_end(worker->device->memory, pin);
    r2_ucx_leave();
}

/** Hands the write, or the read, to UCX. @return as uct_ep_put_zcopy(). */
static ucs_status_t r2_uct_put_post(r2_tp_ep_t *ep, r2_uct_record_t *record)
{
    uct_component_h component = ep->worker->device->domain.component;
    const r2_tp_send_t *op = record->op;
    union {
        const void *from;
        void *buffer;
    } data = {.from = op->data}; /* UCX's vectors have no const */
    const uct_iov_t iov = {.buffer = data.buffer,
                           .length = op->data_bytes,
                           .memh = r2_uct_region_handle(record->region),
                           .count = 1};
    uct_rkey_bundle_t key;
    ucs_status_t rc = uct_rkey_unpack(component, record->key, &key);

    if (UCS_OK != rc) {
        return rc;
    }
    record->done.count = 1;
    record->done.status = UCS_OK;
    record->status = R2_IN_PROGRESS;
    rc = record->reads
             ? uct_ep_get_zcopy(ep->uct_ep, &iov, 1, record->address, key.rkey, &record->done)
             : uct_ep_put_zcopy(ep->uct_ep, &iov, 1, record->address, key.rkey, &record->done);
    (void) uct_rkey_release(component, &key); /* the work request has a copy */
    return rc;
}

/** As record->send(). */
static r2_status_t r2_uct_put_send(r2_tp_ep_t *ep, r2_uct_record_t *record)
{
    r2_status_t status;

    if (!record->posted) {
        const ucs_status_t rc = r2_uct_put_post(ep, record);

        if (UCS_OK != rc && UCS_INPROGRESS != rc) {
            return UCS_ERR_NO_RESOURCE == rc ? R2_ERR_AGAIN : r2_uct_status(rc);
        }
        record->posted = true;
        record->status = UCS_OK == rc ? R2_OK : R2_IN_PROGRESS;
    }
    if (record->status < 0 || 0 == record->op->header_bytes) {
        return record->status; /* the write has failed while the header waited; or there is none */
    }
    status = r2_uct_send_header(ep, record->op);
    if (R2_OK == status || R2_ERR_AGAIN == status) {
        return R2_OK == status ? record->status : status;
    }
    r2_uct_ep_fail(ep, status); /* UCX has the write: it comes back with the end of the endpoint */
    return record->status;
}

/** @param most bytes that one such work request may move. */
static r2_status_t r2_uct_move(r2_tp_ep_t *ep, r2_tp_send_t *op, const r2_tp_target_t *target,
                               bool reads, size_t most)
{
    r2_tp_device_t *device = ep->worker->device;
    r2_uct_record_t *record;
    r2_status_t status;

    r2_assert(op->header_bytes <= R2_TP_HEADER_MAX && ep->connected);
    if (R2_OK != ep->failure) {
        return R2_ERR_LANE_DOWN;
    }
    if (0 == op->data_bytes || op->data_bytes > most ||
        target->key_bytes != device->domain.key_bytes) {
        return R2_ERR_UNSUPPORTED;
    }
    record = r2_uct_record_of(ep, op);
    if (NULL == record) {
        return R2_ERR_NO_MEMORY;
    }
    r2_ucx_enter();
    record->region = r2_uct_region_get(device->memory, op->data, op->data_bytes, op->memory);
    if (NULL == record->region) {
        op->transport_private = NULL;
        r2_uct_record_put(record);
        status = R2_ERR_UNSUPPORTED;
    } else {
        record->send = r2_uct_put_send;
        record->reads = reads;
        record->address = target->address;
        memcpy(record->key, target->key, target->key_bytes);
        status = r2_uct_record_begin(ep, record, NULL == ep->waiting);
    }
    r2_ucx_leave();
    return status;
}

r2_status_t r2_uct_put(r2_tp_ep_t *ep, r2_tp_send_t *op, const r2_tp_target_t *target)
{
    return r2_uct_move(ep, op, target, false, ep->worker->limits.put);
}

r2_status_t r2_uct_get(r2_tp_ep_t *ep, r2_tp_send_t *op, const r2_tp_target_t *target)
{
    r2_assert(0 == op->header_bytes);
    return op->data_bytes < ep->worker->limits.get_least
               ? R2_ERR_UNSUPPORTED
               : r2_uct_move(ep, op, target, true, ep->worker->limits.get);
}
