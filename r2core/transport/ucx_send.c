/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Sending over UCX: at once or from our queue (tcp, shared memory), else through UCX's queue.
 */
#include "r2_config.h"

#include "transport/ucx.h"

#include <string.h>
#include <utlist.h>

/** Hands a packet or piece to UCX. @return R2_OK: gone; R2_ERR_AGAIN: no room now; else broken. */
static r2_status_t send_now(r2_tp_ep_t *ep, unsigned id, const void *header, size_t header_bytes,
                            const void *data, size_t data_bytes)
{
    ucp_request_param_t param = {.op_attr_mask =
                                     UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL | UCP_OP_ATTR_FIELD_FLAGS,
                                 .flags = UCP_AM_SEND_FLAG_EAGER};
    /* UCS_PTR_STATUS evaluates its argument more than once. */
    void *request = ucp_am_send_nbx(ep->ucp_ep, id, header, header_bytes, data, data_bytes, &param);

    return UCS_ERR_NO_RESOURCE == UCS_PTR_STATUS(request) ? R2_ERR_AGAIN
                                                          : r2_ucx_status(UCS_PTR_STATUS(request));
}

/** Does the packet fit what UCX takes at once? */
static bool fits(const r2_tp_ep_t *ep, const r2_tp_send_t *op)
{
    return op->header_bytes + op->data_bytes <= ep->worker->device->immediate_bytes;
}

/** Sends the pieces that are left of a packet. @return as send_now(). */
static r2_status_t send_pieces(r2_tp_ep_t *ep, r2_ucx_record_t *record)
{
    const r2_tp_send_t *op = record->op;
    r2_status_t status = R2_OK;

    while (R2_OK == status && record->sent_bytes < op->data_bytes) {
        r2_ucx_piece_t piece = {.stream = ep->stream,
                                .data_bytes = op->data_bytes,
                                .offset = record->sent_bytes,
                                .header_bytes = op->header_bytes};
        size_t head_bytes = offsetof(r2_ucx_piece_t, header) + op->header_bytes;
        size_t bytes = r2_min(ep->worker->device->immediate_bytes - head_bytes,
                              op->data_bytes - record->sent_bytes);

        memcpy(piece.header, op->header, op->header_bytes);
        status = send_now(ep, R2_UCX_AM_PIECE, &piece, head_bytes,
                          (const char *) op->data + record->sent_bytes, bytes);
        if (R2_OK == status) {
            record->sent_bytes += bytes;
        }
    }
    return status;
}

void r2_ucx_send_waiting(r2_tp_ep_t *ep)
{
    r2_ucx_record_t *record;
    r2_status_t status = R2_OK;

    while (R2_OK == ep->failure && NULL != (record = ep->sends)) {
        const r2_tp_send_t *op = record->op;

        status = fits(ep, op) ? send_now(ep, R2_UCX_AM_PACKET, op->header, op->header_bytes,
                                         op->data, op->data_bytes)
                              : send_pieces(ep, record);
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

void r2_ucx_send_withdraw(r2_tp_ep_t *ep)
{
    r2_tp_worker_t *worker = ep->worker;

    if (NULL != ep->sends) {
        DL_DELETE2(worker->waiting, ep, waiting_prev, waiting_next);
        DL_CONCAT(worker->completed, ep->sends);
        ep->sends = NULL;
    }
}

/** A record of a send that is not done yet. */
static r2_ucx_record_t *record_of(r2_tp_ep_t *ep, r2_tp_send_t *op)
{
    r2_ucx_record_t *record = r2_ucx_record_get(ep->worker);

    if (NULL != record) {
        record->ep = ep;
        record->op = op;
        record->sent_bytes = 0;
        op->transport_private = record;
    }
    return record;
}

/** At once, or into our queue. */
static r2_status_t send_immediate(r2_tp_ep_t *ep, r2_tp_send_t *op)
{
    bool whole = fits(ep, op);
    bool first = NULL == ep->sends;
    r2_ucx_record_t *record;

    if (whole && first) {
        r2_status_t status =
            send_now(ep, R2_UCX_AM_PACKET, op->header, op->header_bytes, op->data, op->data_bytes);

        if (R2_ERR_AGAIN != status) {
            return status;
        }
    }
    record = record_of(ep, op);
    if (NULL == record) {
        return R2_ERR_NO_MEMORY;
    }
    if (first) {
        DL_APPEND2(ep->worker->waiting, ep, waiting_prev, waiting_next);
    }
    DL_APPEND(ep->sends, record);
    if (first && !whole) {
        r2_ucx_send_waiting(ep);
    }
    return R2_IN_PROGRESS;
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
    request = ucp_am_send_nbx(ep->ucp_ep, R2_UCX_AM_PACKET, op->header, op->header_bytes, op->data,
                              op->data_bytes, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        op->transport_private = NULL;
        r2_ucx_record_put(record);
        return r2_ucx_status(UCS_PTR_STATUS(request));
    }
    DL_APPEND(ep->sends, record);
    return R2_IN_PROGRESS;
}

r2_status_t r2_ucx_send(r2_tp_ep_t *ep, r2_tp_send_t *op)
{
    r2_status_t status;

    r2_assert(op->header_bytes <= R2_TP_HEADER_MAX);
    if (R2_OK != ep->failure) {
        return R2_ERR_LANE_DOWN;
    }
    r2_ucx_enter();
    status =
        0 != ep->worker->device->immediate_bytes ? send_immediate(ep, op) : send_queued(ep, op);
    r2_ucx_leave();
    return status;
}
