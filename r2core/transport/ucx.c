/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The UCX transport: one UCX context per device, active messages, endpoints closed by force.
 */
#include "r2_config.h"

#include "transport/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>
#include <utlist.h>

#include "base/util.h"

#define R2_UCX_AM_ID       1
#define R2_UCX_RECORDS_GROW 64  /* send records allocated at a time */
#define R2_UCX_SEG_SLACK   512  /* room for UCX's own headers in one segment, bytes */
#define R2_UCX_PAGE        4096
#define R2_UCX_DRAIN_COUNT 64   /* progress calls before a worker is destroyed */

/*
 * What was found by crashes (UCX 1.13.1, tcp) and must stay as it is:
 * - closing by force a live endpoint drops its queue and keeps the socket: a packet half written
 *   straight from the caller's memory puts the byte stream out of step. Hence ZCOPY_THRESH=inf and
 *   RNDV_THRESH=inf, eager sends only, and segments that take a whole packet.
 * - RX_SEG_SIZE must be equal on all peers: the hello compares segment sizes.
 * - without CONN_NB=y creating an endpoint on a dead rail blocks the process for seconds.
 * - an endpoint is closed by force and never from inside a UCX callback.
 * TCP_SYN_CNT must not be set: worker creation fails.
 */

typedef struct r2_ucx {
    unsigned major, minor; /* of the library in use */
} r2_ucx_t;

struct r2_tp_device {
    ucp_context_h context; /* owned */
    size_t segment_bytes;
};

/**
 * A send that UCX works on. UCX and the caller each know only this record: after the endpoint is
 * closed `op` is NULL, and a late completion touches nothing of the caller.
 */
typedef struct r2_ucx_record {
    struct r2_ucx_record *prev, *next; /* in ep->sends, worker->orphans or worker->completed */
    r2_tp_worker_t *worker;            /* borrowed: outlives the record */
    r2_tp_ep_t *ep;                    /* borrowed; NULL: the endpoint is closed */
    r2_tp_send_t *op;                  /* borrowed until `sent`; NULL: given back */
    r2_status_t status;                /* of a completed send */
} r2_ucx_record_t;

/** Memory of records, freed with the worker. */
typedef struct r2_ucx_slab {
    struct r2_ucx_slab *next; /* owned */
    r2_ucx_record_t records[R2_UCX_RECORDS_GROW];
} r2_ucx_slab_t;

struct r2_tp_ep {
    r2_tp_ep_t *prev, *next;  /* in worker->eps */
    r2_tp_worker_t *worker;   /* borrowed: outlives the endpoint */
    ucp_ep_h ucp_ep;          /* owned */
    void *arg;                /* borrowed: for failed() */
    r2_ucx_record_t *sends;   /* owned by the worker's slabs; in flight */
    r2_status_t failure;      /* R2_OK, or why it failed */
    bool failure_told;
};

/* All fields belong to the holder of the engine lock. */
struct r2_tp_worker {
    ucp_worker_h ucp_worker;      /* owned */
    bool in_progress;             /* inside ucp_worker_progress(): packets may be handed up */
    bool failures;                /* an endpoint failed and its owner does not know yet */
    r2_ucx_record_t *completed;   /* done, `sent` not yet called */
    r2_ucx_record_t *free;        /* singly linked by next */
    r2_ucx_record_t *orphans;     /* of closed endpoints, UCX not done with them */
    r2_tp_ep_t *eps;              /* owned */
    r2_ucx_slab_t *slabs;         /* owned */
    r2_tp_callbacks_t callbacks;
    void *arg;                    /* borrowed: outlives the worker */
    r2_tp_device_t *device;       /* borrowed: outlives the worker */
    int fd;                       /* borrowed from UCX */
};

/* ---- status ---- */

static r2_status_t ucx_status(ucs_status_t rc)
{
    /* The rest of the codes break the lane. */
    switch ((int) rc) {
    case UCS_OK:
        return R2_OK;
    case UCS_ERR_NO_MEMORY:
        return R2_ERR_NO_MEMORY;
    case UCS_ERR_NO_DEVICE:
        return R2_ERR_NO_DEVICE;
    case UCS_ERR_UNREACHABLE:
        return R2_ERR_NO_PATH;
    case UCS_ERR_CANCELED:
        return R2_ERR_CANCELED;
    case UCS_ERR_REJECTED:
        return R2_ERR_REFUSED;
    case UCS_ERR_ENDPOINT_TIMEOUT:
    case UCS_ERR_TIMED_OUT:
        return R2_ERR_TIMEOUT;
    default:
        return R2_ERR_LANE_DOWN;
    }
}

/* ---- device ---- */

/** Does the comma separated list `tls` contain `word`? */
static bool tls_has(const char *tls, const char *word)
{
    size_t length = strlen(word);

    for (const char *p = tls; NULL != p; p = strchr(p, ',')) {
        p += (',' == *p);
        if (0 == strncmp(p, word, length) && (',' == p[length] || '\0' == p[length])) {
            return true;
        }
    }
    return false;
}

/** UCX 1.17 and later want transport settings with the transport's prefix, older ones without. */
static bool ucx_wants_prefix(const r2_ucx_t *ucx)
{
    return ucx->major > 1 || ucx->minor >= 17;
}

static ucs_status_t config_set(ucp_config_t *config, const char *prefix, const char *name,
                               const char *value)
{
    char key[64];

    snprintf(key, sizeof(key), "%s%s", prefix, name);
    return ucp_config_modify(config, key, value);
}

static ucs_status_t config_set_size(ucp_config_t *config, const char *prefix, const char *name,
                                    size_t value)
{
    char text[32];

    snprintf(text, sizeof(text), "%zu", value);
    return config_set(config, prefix, name, text);
}

static ucs_status_t configure_tcp(const r2_ucx_t *ucx, ucp_config_t *config, size_t segment_bytes)
{
    const char *prefix = ucx_wants_prefix(ucx) ? "TCP_" : "";
    size_t segment = r2_round_up(segment_bytes + R2_UCX_SEG_SLACK, R2_UCX_PAGE);
    ucs_status_t rc = config_set_size(config, prefix, "TX_SEG_SIZE", segment);

    if (UCS_OK == rc) {
        rc = config_set_size(config, prefix, "RX_SEG_SIZE", segment);
    }
    if (UCS_OK == rc) {
        rc = config_set(config, prefix, "CONN_NB", "y");
    }
    return rc;
}

static ucs_status_t configure(const r2_ucx_t *ucx, const r2_tp_device_config_t *device,
                              ucp_config_t *config)
{
    const char *tls = device->tls;
    ucs_status_t rc;

    if (NULL == tls) {
        tls = NULL == device->name ? "posix,self" : "tcp";
    }
    rc = ucp_config_modify(config, "TLS", tls);
    if (UCS_OK == rc && NULL != device->name) {
        rc = ucp_config_modify(config, "NET_DEVICES", device->name);
    }
    if (UCS_OK == rc) {
        rc = ucp_config_modify(config, "ZCOPY_THRESH", "inf");
    }
    if (UCS_OK == rc) {
        rc = ucp_config_modify(config, "RNDV_THRESH", "inf");
    }
    if (UCS_OK == rc && tls_has(tls, "tcp")) {
        rc = configure_tcp(ucx, config, device->segment_bytes);
    }
    return rc;
}

static r2_status_t device_open(void *tp, const r2_tp_device_config_t *config,
                               r2_tp_device_t **device_p)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                           .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP};
    r2_tp_device_t *device = calloc(1, sizeof(*device));
    ucp_config_t *ucp_config = NULL;
    ucs_status_t rc;

    if (NULL == device) {
        return R2_ERR_NO_MEMORY;
    }
    device->segment_bytes = config->segment_bytes;
    rc = ucp_config_read(NULL, NULL, &ucp_config);
    if (UCS_OK == rc) {
        rc = configure(tp, config, ucp_config);
        if (UCS_OK == rc) {
            rc = ucp_init(&params, ucp_config, &device->context);
        }
        ucp_config_release(ucp_config);
    }
    if (UCS_OK != rc) {
        free(device);
        return UCS_ERR_NO_DEVICE == rc || UCS_ERR_NO_MEMORY == rc ? ucx_status(rc)
                                                                  : R2_ERR_UNSUPPORTED;
    }
    *device_p = device;
    return R2_OK;
}

static void device_close(r2_tp_device_t *device)
{
    ucp_cleanup(device->context);
    free(device);
}

/* ---- send records ---- */

static r2_ucx_record_t *record_get(r2_tp_worker_t *worker)
{
    r2_ucx_record_t *record = worker->free;

    if (NULL == record) {
        r2_ucx_slab_t *slab = calloc(1, sizeof(*slab));

        if (NULL == slab) {
            return NULL;
        }
        LL_PREPEND(worker->slabs, slab);
        for (size_t i = 0; i < r2_array_count(slab->records); i++) {
            slab->records[i].worker = worker;
            LL_PREPEND(worker->free, &slab->records[i]);
        }
        record = worker->free;
    }
    LL_DELETE(worker->free, record);
    return record;
}

static void record_put(r2_ucx_record_t *record)
{
    LL_PREPEND(record->worker->free, record);
}

/** UCX is done with a send. Called by UCX, also from inside ucp_ep_close_nbx(). */
static void on_sent(void *request, ucs_status_t rc, void *arg)
{
    r2_ucx_record_t *record = arg;
    r2_tp_worker_t *worker = record->worker;

    ucp_request_free(request);
    if (NULL == record->ep) {
        DL_DELETE(worker->orphans, record);
        record_put(record);
        return;
    }
    DL_DELETE(record->ep->sends, record);
    record->status = ucx_status(rc);
    DL_APPEND(worker->completed, record);
}

/** Gives the operation back to the caller. The record is in no list and UCX is done with it. */
static void tell_sent(r2_ucx_record_t *record, r2_status_t status)
{
    r2_tp_send_t *op = record->op;

    record_put(record);
    op->transport_private = NULL;
    op->sent(op, status);
}

/** Tells the owners what UCX told since the last call. Outside of UCX. @return number of calls. */
static unsigned tell_all_sent(r2_tp_worker_t *worker)
{
    r2_ucx_record_t *record;
    unsigned count = 0;

    while (NULL != (record = worker->completed)) {
        DL_DELETE(worker->completed, record);
        tell_sent(record, record->status);
        count++;
    }
    return count;
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

/* ---- worker ---- */

/** A packet arrived. */
static ucs_status_t on_packet(void *arg, const void *header, size_t header_bytes, void *data,
                              size_t data_bytes, const ucp_am_recv_param_t *param)
{
    r2_tp_worker_t *worker = arg;

    /*
     * No peer of ours asks for rendezvous and none sends more than a segment: such a packet is not
     * ours, UCX drops it on return. So is what arrives while a worker is taken down.
     */
    if (!worker->in_progress || 0 != (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)
        || header_bytes > R2_TP_HEADER_MAX
        || header_bytes + data_bytes > worker->device->segment_bytes) {
        return UCS_OK;
    }
    worker->callbacks.received(worker->arg, header, header_bytes, data, data_bytes);
    return UCS_OK;
}

static void worker_free(r2_tp_worker_t *worker)
{
    r2_ucx_slab_t *slab, *next;

    LL_FOREACH_SAFE(worker->slabs, slab, next) {
        free(slab);
    }
    free(worker);
}

static r2_status_t worker_create(r2_tp_device_t *device, const r2_tp_callbacks_t *callbacks,
                                 void *arg, r2_tp_worker_t **worker_p)
{
    ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS
                      | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = R2_UCX_AM_ID,
        .flags = UCP_AM_FLAG_WHOLE_MSG,
        .cb = on_packet};
    r2_tp_worker_t *worker = calloc(1, sizeof(*worker));
    ucs_status_t rc;

    if (NULL == worker) {
        return R2_ERR_NO_MEMORY;
    }
    worker->device = device;
    worker->callbacks = *callbacks;
    worker->arg = arg;
    rc = ucp_worker_create(device->context, &params, &worker->ucp_worker);
    if (UCS_OK != rc) {
        goto err_free;
    }
    handler.arg = worker;
    rc = ucp_worker_set_am_recv_handler(worker->ucp_worker, &handler);
    if (UCS_OK != rc) {
        goto err_destroy;
    }
    rc = ucp_worker_get_efd(worker->ucp_worker, &worker->fd);
    if (UCS_OK != rc) {
        goto err_destroy;
    }
    *worker_p = worker;
    return R2_OK;

err_destroy:
    ucp_worker_destroy(worker->ucp_worker);
err_free:
    free(worker);
    return UCS_ERR_NO_MEMORY == rc ? R2_ERR_NO_MEMORY : R2_ERR_NO_DEVICE;
}

static void ep_close(r2_tp_ep_t *ep);

static void worker_destroy(r2_tp_worker_t *worker)
{
    r2_assert(!worker->in_progress);
    while (NULL != worker->eps) {
        ep_close(worker->eps);
    }
    for (int i = 0; i < R2_UCX_DRAIN_COUNT && 0 != ucp_worker_progress(worker->ucp_worker); i++) {
    }
    ucp_worker_destroy(worker->ucp_worker);
    worker_free(worker);
}

static r2_status_t worker_address(r2_tp_worker_t *worker, void *address_p, size_t *bytes_p)
{
    ucp_address_t *address;
    size_t bytes;
    ucs_status_t rc = ucp_worker_get_address(worker->ucp_worker, &address, &bytes);
    r2_status_t status = R2_OK;

    if (UCS_OK != rc) {
        return R2_ERR_NO_MEMORY;
    }
    if (bytes > R2_TP_ADDRESS_MAX) {
        status = R2_ERR_INTERNAL;
    } else {
        memcpy(address_p, address, bytes);
        *bytes_p = bytes;
    }
    ucp_worker_release_address(worker->ucp_worker, address);
    return status;
}

static unsigned worker_progress(r2_tp_worker_t *worker)
{
    unsigned count;

    worker->in_progress = true;
    count = ucp_worker_progress(worker->ucp_worker);
    count += tell_all_sent(worker);
    count += tell_failed(worker);
    worker->in_progress = false;
    return count;
}

static int worker_fd(r2_tp_worker_t *worker)
{
    return worker->fd;
}

static r2_status_t worker_arm(r2_tp_worker_t *worker)
{
    ucs_status_t rc;

    if (NULL != worker->completed || worker->failures) {
        return R2_ERR_AGAIN;
    }
    rc = ucp_worker_arm(worker->ucp_worker);
    return UCS_OK == rc ? R2_OK : R2_ERR_AGAIN;
}

/* ---- endpoint ---- */

/** Called by UCX, at times from inside ucp_worker_progress() only; notes, nothing else. */
static void on_error(void *arg, ucp_ep_h ucp_ep, ucs_status_t rc)
{
    r2_tp_ep_t *ep = arg;

    (void) ucp_ep;
    ep->failure = ucx_status(rc);
    ep->worker->failures = true;
}

static r2_status_t ep_create(r2_tp_worker_t *worker, const void *address, size_t address_bytes,
                             void *ep_arg, r2_tp_ep_t **ep_p)
{
    /* UCX is not told the length and trusts the counts inside: what it may read has an end. */
    char padded[2 * R2_TP_ADDRESS_MAX] = {0};
    ucp_ep_params_t params = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE
                      | UCP_EP_PARAM_FIELD_ERR_HANDLER,
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
    rc = ucp_ep_create(worker->ucp_worker, &params, &ep->ucp_ep);
    if (UCS_OK != rc) {
        free(ep);
        return UCS_ERR_NO_MEMORY == rc || UCS_ERR_NO_DEVICE == rc ? ucx_status(rc)
                                                                  : R2_ERR_NO_PATH;
    }
    DL_APPEND(worker->eps, ep);
    *ep_p = ep;
    return R2_OK;
}

static void ep_close(r2_tp_ep_t *ep)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                 .flags = UCP_EP_CLOSE_FLAG_FORCE};
    r2_tp_worker_t *worker = ep->worker;
    r2_ucx_record_t *record, *next;
    void *request;

    r2_assert(!worker->in_progress);
    DL_DELETE(worker->eps, ep);
    request = ucp_ep_close_nbx(ep->ucp_ep, &param);
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
    DL_FOREACH_SAFE(worker->completed, record, next) {
        if (record->ep == ep) {
            DL_DELETE(worker->completed, record);
            tell_sent(record, R2_ERR_CANCELED);
        }
    }
    /* A packet is copied into UCX's buffers when it starts to travel, and the rest was dropped: what
     * UCX still holds of this endpoint no longer refers to the caller's memory. */
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

static r2_status_t ep_send(r2_tp_ep_t *ep, r2_tp_send_t *op)
{
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK
                                                 | UCP_OP_ATTR_FIELD_USER_DATA
                                                 | UCP_OP_ATTR_FIELD_FLAGS,
                                 .flags = UCP_AM_SEND_FLAG_EAGER,
                                 .cb = {.send = on_sent}};
    r2_ucx_record_t *record;
    void *request;

    if (R2_OK != ep->failure) {
        return R2_ERR_LANE_DOWN;
    }
    record = record_get(ep->worker);
    if (NULL == record) {
        return R2_ERR_NO_MEMORY;
    }
    record->ep = ep;
    record->op = op;
    param.user_data = record;
    request = ucp_am_send_nbx(ep->ucp_ep, R2_UCX_AM_ID, op->header, op->header_bytes, op->data,
                              op->data_bytes, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        record_put(record);
        return ucx_status(UCS_PTR_STATUS(request));
    }
    op->transport_private = record;
    DL_APPEND(ep->sends, record);
    return R2_IN_PROGRESS;
}

/* ---- table ---- */

static const r2_tp_ops_t ucx_ops = {
    .name = "ucx",
    .device_open = device_open,
    .device_close = device_close,
    .worker_create = worker_create,
    .worker_destroy = worker_destroy,
    .worker_address = worker_address,
    .worker_progress = worker_progress,
    .worker_fd = worker_fd,
    .worker_arm = worker_arm,
    .ep_create = ep_create,
    .ep_close = ep_close,
    .send = ep_send,
};

r2_status_t r2_tp_ucx_create(r2_tp_t *tp_p)
{
    r2_ucx_t *ucx = calloc(1, sizeof(*ucx));
    unsigned release;

    if (NULL == ucx) {
        return R2_ERR_NO_MEMORY;
    }
    ucp_get_version(&ucx->major, &ucx->minor, &release);
    tp_p->ops = &ucx_ops;
    tp_p->instance = ucx;
    return R2_OK;
}

void r2_tp_ucx_destroy(r2_tp_t *tp)
{
    free(tp->instance);
    tp->instance = NULL;
}

const char *r2_tp_ucx_version(void)
{
    return ucp_get_version_string();
}
