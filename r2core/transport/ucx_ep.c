/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Endpoints of the UCX transport: open, send, close by force.
 */
#include "r2_config.h"

#include "transport/ucx.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/** Called by UCX: notes, and nothing else. */
static void on_error(void *arg, ucp_ep_h ucp_ep, ucs_status_t rc)
{
    r2_tp_ep_t *ep = arg;

    (void) ucp_ep;
    r2_ucx_ep_fail(ep, r2_ucx_status(rc));
}

r2_status_t r2_ucx_ep_create(r2_tp_worker_t *worker, const void *address, size_t address_bytes,
                             void *ep_arg, r2_tp_ep_t **ep_p)
{
    /* UCX is not told the length and trusts the counts inside: the zeros end what it reads. */
    char padded[2 * R2_TP_ADDRESS_MAX] = {0};
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLER,
                              .address = (const ucp_address_t *) (const void *) padded,
                              .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                              .err_handler = {.cb = on_error}};
    r2_tp_ep_t *ep;
    ucs_status_t rc;

    if (0 == address_bytes || address_bytes > R2_TP_ADDRESS_MAX) {
        return R2_ERR_NO_PATH;
    }
    ep = calloc(1, sizeof(*ep));
    if (NULL == ep) {
        return R2_ERR_NO_MEMORY;
    }
    memcpy(padded, address, address_bytes);
    params.err_handler.arg = ep;
    ep->worker = worker;
    ep->arg = ep_arg;
    r2_ucx_enter();
    rc = ucp_ep_create(worker->ucp_worker, &params, &ep->ucp_ep);
    r2_ucx_leave();
    if (UCS_OK != rc) {
        free(ep);
        return UCS_ERR_NO_MEMORY == rc || UCS_ERR_NO_DEVICE == rc ? r2_ucx_status(rc)
                                                                  : R2_ERR_NO_PATH;
    }
    DL_APPEND(worker->eps, ep);
    *ep_p = ep;
    return R2_OK;
}

static void close_by_force(ucp_ep_h ucp_ep)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                 .flags = UCP_EP_CLOSE_FLAG_FORCE};
    void *request = ucp_ep_close_nbx(ucp_ep, &param);

    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
}

void r2_ucx_ep_close(r2_tp_ep_t *ep)
{
    r2_tp_worker_t *worker = ep->worker;
    r2_ucx_record_t *record, *next;

    r2_assert(!worker->in_progress);
    DL_DELETE(worker->eps, ep);
    r2_ucx_enter();
    close_by_force(ep->ucp_ep);
    r2_ucx_leave();
    if (worker->device->immediate && NULL != ep->sends) {
        DL_DELETE2(worker->waiting, ep, waiting_prev, waiting_next);
        DL_CONCAT(worker->completed, ep->sends);
        ep->sends = NULL;
    }
    DL_FOREACH_SAFE(worker->completed, record, next) {
        if (record->ep == ep) {
            DL_DELETE(worker->completed, record);
            r2_ucx_record_tell(record, R2_ERR_CANCELED);
        }
    }
    /* A packet is copied into UCX's buffers when it starts to travel, and the rest was dropped:
     * what UCX still holds of this endpoint does not refer to the caller's memory. */
    while (NULL != (record = ep->sends)) {
        r2_tp_send_t *op = record->op;

        DL_DELETE(ep->sends, record);
        record->ep = NULL;
        record->op = NULL;
        DL_APPEND(worker->orphans, record);
        op->transport_private = NULL;
        op->sent(op, R2_ERR_CANCELED);
    }
    free(ep);
}

/** UCX is done with a send. Called by UCX, also from inside ucp_ep_close_nbx(). */
static void on_sent(void *request, ucs_status_t rc, void *arg)
{
    r2_ucx_record_t *record = arg;
    r2_tp_worker_t *worker = record->worker;

    ucp_request_free(request);
    if (NULL == record->ep) {
        DL_DELETE(worker->orphans, record);
        r2_ucx_record_put(record);
        return;
    }
    DL_DELETE(record->ep->sends, record);
    record->status = r2_ucx_status(rc);
    DL_APPEND(worker->completed, record);
}

/** A record of a send that is not done yet. */
static r2_ucx_record_t *record_of(r2_tp_ep_t *ep, r2_tp_send_t *op)
{
    r2_ucx_record_t *record = r2_ucx_record_get(ep->worker);

    if (NULL != record) {
        record->ep = ep;
        record->op = op;
        op->transport_private = record;
    }
    return record;
}

/** @return R2_OK: sent; R2_ERR_AGAIN: no room now; else the lane is broken. */
static r2_status_t send_at_once(r2_tp_ep_t *ep, const r2_tp_send_t *op)
{
    ucp_request_param_t param = {.op_attr_mask =
                                     UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL | UCP_OP_ATTR_FIELD_FLAGS,
                                 .flags = UCP_AM_SEND_FLAG_EAGER};
    void *request = ucp_am_send_nbx(ep->ucp_ep, R2_UCX_AM_ID, op->header, op->header_bytes,
                                    op->data, op->data_bytes, &param);

    r2_assert(!UCS_PTR_IS_PTR(request));
    return UCS_ERR_NO_RESOURCE == UCS_PTR_STATUS(request) ? R2_ERR_AGAIN
                                                          : r2_ucx_status(UCS_PTR_STATUS(request));
}

void r2_ucx_ep_send_waiting(r2_tp_ep_t *ep)
{
    r2_ucx_record_t *record;
    r2_status_t status = R2_OK;

    while (R2_OK == ep->failure && NULL != (record = ep->sends)) {
        status = send_at_once(ep, record->op);
        if (R2_OK != status) {
            break;
        }
        DL_DELETE(ep->sends, record);
        record->status = R2_OK;
        DL_APPEND(ep->worker->completed, record);
    }
    if (R2_OK != status && R2_ERR_AGAIN != status) {
        r2_ucx_ep_fail(ep, status);
    }
    if (NULL == ep->sends) {
        DL_DELETE2(ep->worker->waiting, ep, waiting_prev, waiting_next);
    }
}

static r2_status_t send_immediate(r2_tp_ep_t *ep, r2_tp_send_t *op)
{
    r2_ucx_record_t *record;

    if (NULL == ep->sends) {
        r2_status_t status = send_at_once(ep, op);

        if (R2_ERR_AGAIN != status) {
            return status;
        }
    }
    record = record_of(ep, op);
    if (NULL == record) {
        return R2_ERR_NO_MEMORY;
    }
    if (NULL == ep->sends) {
        DL_APPEND2(ep->worker->waiting, ep, waiting_prev, waiting_next);
    }
    DL_APPEND(ep->sends, record);
    return R2_IN_PROGRESS;
}

/** Through UCX's own queue. */
static r2_status_t send_queued(r2_tp_ep_t *ep, r2_tp_send_t *op)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                 UCP_OP_ATTR_FIELD_USER_DATA |
                                                 UCP_OP_ATTR_FIELD_FLAGS,
                                 .flags = UCP_AM_SEND_FLAG_EAGER,
                                 .cb = {.send = on_sent}};
    r2_ucx_record_t *record = record_of(ep, op);
    void *request;

    if (NULL == record) {
        return R2_ERR_NO_MEMORY;
    }
    param.user_data = record;
    request = ucp_am_send_nbx(ep->ucp_ep, R2_UCX_AM_ID, op->header, op->header_bytes, op->data,
                              op->data_bytes, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        op->transport_private = NULL;
        r2_ucx_record_put(record);
        return r2_ucx_status(UCS_PTR_STATUS(request));
    }
    DL_APPEND(ep->sends, record);
    return R2_IN_PROGRESS;
}

r2_status_t r2_ucx_ep_send(r2_tp_ep_t *ep, r2_tp_send_t *op)
{
    r2_status_t status;

    if (R2_OK != ep->failure) {
        return R2_ERR_LANE_DOWN;
    }
    r2_ucx_enter();
    status = ep->worker->device->immediate ? send_immediate(ep, op) : send_queued(ep, op);
    r2_ucx_leave();
    return status;
}
