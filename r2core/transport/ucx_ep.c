/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Endpoints of the UCX transport: open, close by force.
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
    if (!ep->left) {
        r2_ucx_ep_fail(ep, r2_ucx_status(rc));
    }
}

r2_status_t r2_ucx_ep_open(r2_tp_worker_t *worker, void *ep_arg, r2_tp_ep_t **ep_p)
{
    r2_tp_ep_t *ep = calloc(1, sizeof(*ep));

    if (NULL == ep) {
        return R2_ERR_NO_MEMORY;
    }
    ep->worker = worker;
    ep->arg = ep_arg;
    worker->stream.number++;
    ep->stream = worker->stream;
    DL_APPEND(worker->eps, ep);
    *ep_p = ep;
    return R2_OK;
}

r2_status_t r2_ucx_ep_address(r2_tp_ep_t *ep, void *address_p, size_t *bytes_p)
{
    ucp_worker_h worker = ep->worker->ucp_worker;
    ucp_address_t *address;
    size_t bytes;
    r2_status_t status = R2_OK;

    if (UCS_OK != ucp_worker_get_address(worker, &address, &bytes)) {
        return R2_ERR_NO_MEMORY;
    }
    if (bytes <= R2_TP_ADDRESS_MAX) {
        memcpy(address_p, address, bytes);
        *bytes_p = bytes;
    } else {
        status = R2_ERR_UNSUPPORTED;
    }
    ucp_worker_release_address(worker, address);
    return status;
}

r2_status_t r2_ucx_ep_connect(r2_tp_ep_t *ep, const void *address, size_t address_bytes)
{
    /* UCX is not told the length and trusts the counts inside: the zeros end what it reads. */
    char padded[2 * R2_TP_ADDRESS_MAX] = {0};
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLER,
                              .address = (const ucp_address_t *) (const void *) padded,
                              .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                              .err_handler = {.cb = on_error, .arg = ep}};
    r2_ucx_t *ucx = ep->worker->device->ucx;
    ucs_status_t rc;

    if (0 == address_bytes || address_bytes > R2_TP_ADDRESS_MAX) {
        return R2_ERR_NO_PATH;
    }
    memcpy(padded, address, address_bytes);
    r2_ucx_fds_enter(ucx);
    rc = r2_ucx_fds_allow(ucx, 0) ? ucp_ep_create(ep->worker->ucp_worker, &params, &ep->ucp_ep)
                                  : UCS_ERR_EXCEEDS_LIMIT;
    r2_ucx_fds_leave(ucx);
    if (UCS_OK == rc) {
        return R2_OK;
    }
    ep->ucp_ep = NULL;
    return UCS_ERR_NO_MEMORY == rc || UCS_ERR_NO_DEVICE == rc || UCS_ERR_EXCEEDS_LIMIT == rc
               ? r2_ucx_status(rc)
               : R2_ERR_NO_PATH;
}

void r2_ucx_ep_force(r2_tp_ep_t *ep)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                 .flags = UCP_EP_CLOSE_FLAG_FORCE};
    void *request = ucp_ep_close_nbx(ep->ucp_ep, &param);

    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
}

/**
 * Gives back what UCX did not complete. Through UCX's queue a packet is copied when it starts to
 * travel, and the rest was dropped: UCX refers to the record, not to the caller's memory.
 */
static void disown_sends(r2_tp_ep_t *ep)
{
    r2_ucx_record_t *record;

    while (NULL != (record = ep->sends)) {
        r2_tp_send_t *op = record->op;

        DL_DELETE(ep->sends, record);
        record->ep = NULL;
        record->op = NULL;
        DL_APPEND(ep->worker->orphans, record);
        op->transport_private = NULL;
        op->sent(op, R2_ERR_CANCELED);
    }
}

static void tell_canceled(r2_tp_ep_t *ep)
{
    r2_tp_worker_t *worker = ep->worker;
    r2_ucx_record_t *record, *next;

    DL_FOREACH_SAFE(worker->completed, record, next) {
        if (record->ep == ep) {
            DL_DELETE(worker->completed, record);
            r2_ucx_record_tell(record, R2_ERR_CANCELED);
        }
    }
}

void r2_ucx_ep_close(r2_tp_ep_t *ep)
{
    r2_tp_worker_t *worker = ep->worker;

    r2_assert(!worker->in_progress);
    DL_DELETE(worker->eps, ep);
    if (NULL == ep->ucp_ep) {
        free(ep);
        return;
    }
    if (0 != worker->device->immediate_bytes) {
        ep->left = true;
        DL_APPEND(worker->left_eps, ep);
        r2_ucx_send_withdraw(ep);
        tell_canceled(ep);
        return;
    }
    r2_ucx_fds_enter(worker->device->ucx);
    r2_ucx_ep_force(ep);
    r2_ucx_fds_leave(worker->device->ucx);
    tell_canceled(ep);
    disown_sends(ep);
    free(ep);
}
