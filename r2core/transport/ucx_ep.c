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
    worker->stream.number++;
    ep->stream = worker->stream;
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
    r2_ucx_send_withdraw(ep);
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
