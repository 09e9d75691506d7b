/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Puts of the UCX transport: of no bytes, one layer below UCP.
 */
#include "r2_config.h"

#include <stdlib.h>
#include <string.h>

#include <uct/api/uct.h>
#include <uct/api/version.h>

#include "transport/put.h"
#include "transport/ucx.h"

/*
 * Why UCT: ucp_put_nbx() calls a put of no bytes done without sending anything (1.13 to 1.22 at least), and UCP's
 * puts over tcp need its wire-up first, in which a process that goes on after it was stopped aborts when the asker
 * has left meanwhile (ucp_request.c:684). UCT sends puts of no bytes, which write nothing and need no key, connects
 * without the other's UCP, and forgets an endpoint when it is destroyed.
 *
 * Each asker has an interface of its own: two processes that ask each other have two connections, which UCX does
 * not try to join (it aborts when both ends connect and one does so twice, tcp_cm.c:519).
 */

#define PUT_EVENTS_MAX  64 /* of one progress(), so that others get their turn */
#define PUT_EVENT_KINDS (UCT_EVENT_SEND_COMP | UCT_EVENT_RECV)

/* Address: bytes of the device address u8 | that address | bytes of the interface address u8 | that address. */
#define PUT_PART_MAX ((R2_PUT_ADDRESS_MAX - 2) / 2)

/** A setting: value, and the name with and without the transport's prefix, as UCX 1.17 and earlier ones take it. */
typedef struct put_setting {
    const char *name, *bare_name, *value;
} put_setting_t;

struct r2_put_device {
    r2_ucx_t *ucx;              /* borrowed: outlives the device */
    uct_md_h md;                /* owned */
    uct_iface_config_t *config; /* owned */
    uct_tl_resource_desc_t resource;
};

typedef enum put_phase {
    PUT_TARGET,  /* writes nothing */
    PUT_WRITING, /* not taken by UCX yet: connects */
    PUT_BEHIND,  /* the flush behind it is not taken yet */
    PUT_WAITING  /* for the answer */
} put_phase_t;

struct r2_put_end {
    ucs_async_context_t *async; /* owned */
    uct_worker_h worker;        /* owned */
    uct_iface_h iface;          /* owned */
    uct_ep_h ep;                /* owned; asker */
    uct_iface_attr_t attr;
    put_phase_t phase;
    r2_status_t status; /* R2_IN_PROGRESS until it is known */
    uct_completion_t answered;
    int fd;             /* borrowed: UCX's */
};

/* ---- devices ---- */

/** Looks for a device of a memory domain. */
static bool resource_find(uct_md_h md, const char *name, const char *tls,
                          uct_tl_resource_desc_t *resource_p)
{
    uct_tl_resource_desc_t *resources;
    unsigned count;
    bool found = false;

    if (UCS_OK != uct_md_query_tl_resources(md, &resources, &count)) {
        return false;
    }
    for (unsigned i = 0; i < count && !found; i++) {
        found = 0 == strcmp(resources[i].tl_name, tls) && 0 == strcmp(resources[i].dev_name, name);
        if (found) {
            *resource_p = resources[i];
        }
    }
    uct_release_tl_resource_list(resources);
    return found;
}

/** Opens a memory domain of a component if it has the device. */
static bool domain_open(uct_component_h component, const char *md_name, const char *name,
                        const char *tls, r2_put_device_t *device)
{
    uct_md_config_t *config;
    ucs_status_t rc = uct_md_config_read(component, NULL, NULL, &config);

    if (UCS_OK != rc) {
        return false;
    }
    rc = uct_md_open(component, md_name, config, &device->md);
    uct_config_release(config);
    if (UCS_OK != rc) {
        return false;
    }
    if (resource_find(device->md, name, tls, &device->resource)) {
        return true;
    }
    uct_md_close(device->md);
    return false;
}

/**
 * Looks for the device in the memory domains of one component: "tcp", or "ib" for what RDMA has. Others are not
 * opened, which is not free of effects (GPUs).
 */
static bool component_open(uct_component_h component, const char *name, const char *tls,
                           r2_put_device_t *device)
{
    const char *wanted = 0 == strcmp(tls, "tcp") ? "tcp" : "ib";
    uct_component_attr_t attr = {.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME |
                                               UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT};
    bool found = false;

    if (UCS_OK != uct_component_query(component, &attr) || 0 == attr.md_resource_count ||
        0 != strcmp(attr.name, wanted)) {
        return false;
    }
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = calloc(attr.md_resource_count, sizeof(*attr.md_resources));
    if (NULL != attr.md_resources && UCS_OK == uct_component_query(component, &attr)) {
        for (unsigned i = 0; i < attr.md_resource_count && !found; i++) {
            found = domain_open(component, attr.md_resources[i].md_name, name, tls, device);
        }
    }
    free(attr.md_resources);
    return found;
}

static bool device_find(const char *name, const char *tls, r2_put_device_t *device)
{
    uct_component_h *components;
    unsigned count;
    bool found = false;

    if (UCS_OK != uct_query_components(&components, &count)) {
        return false;
    }
    for (unsigned i = 0; i < count && !found; i++) {
        found = component_open(components[i], name, tls, device);
    }
    uct_release_component_list(components);
    return found;
}

/** The settings that a device that does not answer takes (transport/ucx.h). */
static ucs_status_t device_configure(r2_put_device_t *device)
{
    static const put_setting_t settings[] = {
        {"TCP_CONN_NB", "CONN_NB", "y"},
        {"TCP_MAX_CONN_RETRIES", "MAX_CONN_RETRIES", "1"},
    };
    ucs_status_t rc = uct_md_iface_config_read(device->md, device->resource.tl_name, NULL, NULL,
                                               &device->config);

    if (UCS_OK != rc || 0 != strcmp(device->resource.tl_name, "tcp")) {
        return rc;
    }
    for (size_t i = 0; i < r2_array_count(settings) && UCS_OK == rc; i++) {
        rc = uct_config_modify(device->config, settings[i].bare_name, settings[i].value);
        if (UCS_OK != rc) {
            rc = uct_config_modify(device->config, settings[i].name, settings[i].value);
        }
    }
    if (UCS_OK != rc) {
        uct_config_release(device->config);
    }
    return rc;
}

static r2_status_t device_open(void *put, const char *name, const char *tls,
                               r2_put_device_t **device_p)
{
    r2_ucx_t *ucx = put;
    r2_put_device_t *device;
    bool found;

    /* UCT's inline functions know the tables of the library that they were compiled with. */
    if (UCT_VERNO_MAJOR != ucx->major || UCT_VERNO_MINOR != ucx->minor) {
        return R2_ERR_UNSUPPORTED;
    }
    device = calloc(1, sizeof(*device));
    if (NULL == device) {
        return R2_ERR_NO_MEMORY;
    }
    device->ucx = ucx;
    r2_ucx_enter();
    found = device_find(name, tls, device);
    if (found && UCS_OK != device_configure(device)) {
        uct_md_close(device->md);
        found = false;
    }
    r2_ucx_leave();
    if (!found) {
        free(device);
        return R2_ERR_NO_DEVICE;
    }
    *device_p = device;
    return R2_OK;
}

static void device_close(r2_put_device_t *device)
{
    r2_ucx_enter();
    uct_config_release(device->config);
    uct_md_close(device->md);
    r2_ucx_leave();
    free(device);
}

/* ---- ends ---- */

static void destroy(r2_put_end_t *end)
{
    r2_ucx_enter();
    if (NULL != end->ep) {
        uct_ep_destroy(end->ep);
    }
    if (NULL != end->iface) {
        uct_iface_close(end->iface);
    }
    if (NULL != end->worker) {
        uct_worker_destroy(end->worker);
    }
    if (NULL != end->async) {
        ucs_async_context_destroy(end->async);
    }
    r2_ucx_leave();
    free(end);
}

/** Called by UCX when a connection fails: notes, and nothing else. A target has nobody to miss. */
static ucs_status_t on_error(void *arg, uct_ep_h ep, ucs_status_t rc)
{
    r2_put_end_t *end = arg;

    if (NULL != end->ep && ep == end->ep && R2_IN_PROGRESS == end->status) {
        end->status = r2_ucx_status(rc);
    }
    return UCS_OK;
}

/** Opens the interface. */
static ucs_status_t iface_open(const r2_put_device_t *device, r2_put_end_t *end)
{
    const uct_iface_params_t params = {
        .field_mask = UCT_IFACE_PARAM_FIELD_CPU_MASK | UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                      UCT_IFACE_PARAM_FIELD_DEVICE | UCT_IFACE_PARAM_FIELD_STATS_ROOT |
                      UCT_IFACE_PARAM_FIELD_RX_HEADROOM | UCT_IFACE_PARAM_FIELD_ERR_HANDLER |
                      UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG |
                      UCT_IFACE_PARAM_FIELD_ERR_HANDLER_FLAGS,
        .open_mode = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device = {.tl_name = device->resource.tl_name, .dev_name = device->resource.dev_name},
        .err_handler = on_error,
        .err_handler_arg = end};
    ucs_status_t rc = uct_iface_open(device->md, end->worker, &params, device->config, &end->iface);

    if (UCS_OK != rc) {
        end->iface = NULL;
        return rc;
    }
    uct_iface_progress_enable(end->iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    rc = uct_iface_query(end->iface, &end->attr);
    if (UCS_OK == rc && (0 == (end->attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_IFACE) ||
                         0 == (end->attr.cap.event_flags & UCT_IFACE_FLAG_EVENT_FD))) {
        rc = UCS_ERR_UNSUPPORTED;
    }
    return UCS_OK == rc ? uct_iface_event_fd_get(end->iface, &end->fd) : rc;
}

static r2_status_t end_create(const r2_put_device_t *device, r2_put_end_t **end_p)
{
    r2_put_end_t *end;
    ucs_status_t rc;

    if (!r2_ucx_has_room(device->ucx, 1, 1, 1)) {
        return R2_ERR_NO_DESCRIPTORS;
    }
    end = calloc(1, sizeof(*end));
    if (NULL == end) {
        return R2_ERR_NO_MEMORY;
    }
    end->status = R2_IN_PROGRESS;
    end->answered.count = 1;
    r2_ucx_enter();
    rc = ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &end->async);
    if (UCS_OK == rc) {
        rc = uct_worker_create(end->async, UCS_THREAD_MODE_SERIALIZED, &end->worker);
    }
    if (UCS_OK == rc) {
        rc = iface_open(device, end);
    }
    r2_ucx_leave();
    if (UCS_OK != rc) {
        destroy(end);
        return UCS_ERR_NO_MEMORY == rc     ? R2_ERR_NO_MEMORY
               : UCS_ERR_UNSUPPORTED == rc ? R2_ERR_UNSUPPORTED
                                           : R2_ERR_NO_DEVICE;
    }
    *end_p = end;
    return R2_OK;
}

/** Writes the address of a target's interface. */
static r2_status_t target_address(r2_put_end_t *end, uint8_t *address_p, size_t *bytes_p)
{
    const size_t device_bytes = end->attr.device_addr_len, iface_bytes = end->attr.iface_addr_len;
    uint8_t *device = address_p + 1, *iface = device + device_bytes + 1;

    if (device_bytes > PUT_PART_MAX || iface_bytes > PUT_PART_MAX) {
        return R2_ERR_UNSUPPORTED;
    }
    memset(address_p, 0, device_bytes + iface_bytes + 2);
    device[-1] = (uint8_t) device_bytes;
    iface[-1] = (uint8_t) iface_bytes;
    if (UCS_OK != uct_iface_get_device_address(end->iface, (uct_device_addr_t *) device) ||
        UCS_OK != uct_iface_get_address(end->iface, (uct_iface_addr_t *) iface)) {
        return R2_ERR_NO_DEVICE;
    }
    *bytes_p = device_bytes + iface_bytes + 2;
    return R2_OK;
}

static r2_status_t target(r2_put_device_t *device, void *address_p, size_t *bytes_p,
                          r2_put_end_t **end_p)
{
    r2_put_end_t *end;
    r2_status_t status = end_create(device, &end);

    if (R2_OK != status) {
        return status;
    }
    r2_ucx_enter();
    status = target_address(end, address_p, bytes_p);
    r2_ucx_leave();
    if (R2_OK != status) {
        destroy(end);
        return status;
    }
    *end_p = end;
    return R2_OK;
}

/* ---- askers ---- */

/** Called by UCX: notes, and nothing else. */
static void on_answer(uct_completion_t *answered)
{
    r2_put_end_t *end = r2_container_of(answered, r2_put_end_t, answered);

    if (R2_IN_PROGRESS == end->status) {
        end->status = UCS_OK == answered->status ? R2_OK : r2_ucx_status(answered->status);
    }
}

static ucs_status_t put_nothing(const r2_put_end_t *end)
{
    return 0 != (end->attr.cap.flags & UCT_IFACE_FLAG_PUT_SHORT)
               ? uct_ep_put_short(end->ep, NULL, 0, 0, 0)
               : uct_ep_put_zcopy(end->ep, NULL, 0, 0, 0, NULL);
}

/** Goes on with what UCX could not take before. */
static void asker_advance(r2_put_end_t *end)
{
    ucs_status_t rc = UCS_OK;

    if (PUT_WRITING == end->phase) {
        rc = put_nothing(end);
        end->phase = UCS_OK == rc || UCS_INPROGRESS == rc ? PUT_BEHIND : PUT_WRITING;
    }
    if (PUT_BEHIND == end->phase) {
        rc = uct_ep_flush(end->ep, UCT_FLUSH_FLAG_LOCAL, &end->answered);
        end->phase = UCS_OK == rc || UCS_INPROGRESS == rc ? PUT_WAITING : PUT_BEHIND;
        end->status = UCS_OK == rc ? R2_OK : end->status;
    }
    if (R2_IN_PROGRESS == end->status && UCS_STATUS_IS_ERR(rc) && UCS_ERR_NO_RESOURCE != rc) {
        end->status = r2_ucx_status(rc);
    }
}

/** Takes an address apart. @param parts_p device and interface address, each with zeros behind it. */
static bool address_split(const r2_put_end_t *end, const uint8_t *from, size_t bytes,
                          uint8_t parts_p[2][R2_PUT_ADDRESS_MAX])
{
    const size_t device_bytes = end->attr.device_addr_len, iface_bytes = end->attr.iface_addr_len;

    if (bytes != device_bytes + iface_bytes + 2 || bytes > R2_PUT_ADDRESS_MAX ||
        from[0] != device_bytes || from[device_bytes + 1] != iface_bytes) {
        return false;
    }
    memcpy(parts_p[0], from + 1, device_bytes);
    memcpy(parts_p[1], from + device_bytes + 2, iface_bytes);
    return true;
}

static r2_status_t asker_connect(r2_put_end_t *end, const void *address, size_t bytes)
{
    _Alignas(8) uint8_t parts[2][R2_PUT_ADDRESS_MAX] = {{0}};
    const uct_device_addr_t *device = (const void *) parts[0];
    const uct_iface_addr_t *iface = (const void *) parts[1];
    const uct_ep_params_t params = {.field_mask = UCT_EP_PARAM_FIELD_IFACE |
                                                  UCT_EP_PARAM_FIELD_DEV_ADDR |
                                                  UCT_EP_PARAM_FIELD_IFACE_ADDR,
                                    .iface = end->iface,
                                    .dev_addr = device,
                                    .iface_addr = iface};

    if (!address_split(end, address, bytes, parts)) {
        return R2_ERR_PARAM;
    }
    if (!uct_iface_is_reachable(end->iface, device, iface)) {
        return R2_ERR_NO_PATH;
    }
    if (UCS_OK != uct_ep_create(&params, &end->ep)) {
        end->ep = NULL;
        return R2_ERR_NO_PATH;
    }
    end->phase = PUT_WRITING;
    return R2_OK;
}

static r2_status_t ask(r2_put_device_t *device, const void *address, size_t bytes,
                       r2_put_end_t **end_p)
{
    r2_put_end_t *end;
    r2_status_t status = end_create(device, &end);

    if (R2_OK != status) {
        return status;
    }
    end->answered.func = on_answer;
    end->answered.status = UCS_OK;
    r2_ucx_enter();
    status = asker_connect(end, address, bytes);
    r2_ucx_leave();
    if (R2_OK != status) {
        destroy(end);
        return status;
    }
    *end_p = end;
    return R2_OK;
}

/* ---- both ---- */

static r2_status_t progress(r2_put_end_t *end)
{
    r2_ucx_enter();
    for (unsigned i = 0; i < PUT_EVENTS_MAX && 0 != uct_worker_progress(end->worker); i++) {
        /* until there is nothing left */
    }
    if (PUT_TARGET != end->phase && R2_IN_PROGRESS == end->status) {
        asker_advance(end);
    }
    r2_ucx_leave();
    return end->status;
}

static int end_fd(const r2_put_end_t *end)
{
    return end->fd;
}

static r2_status_t arm(r2_put_end_t *end)
{
    ucs_status_t rc;

    r2_ucx_enter();
    rc = uct_iface_event_arm(end->iface, PUT_EVENT_KINDS);
    r2_ucx_leave();
    return UCS_OK == rc ? R2_OK : R2_ERR_AGAIN;
}

r2_put_t r2_put_ucx(const r2_tp_t *tp)
{
    static const r2_put_ops_t ops = {
        .device_open = device_open,
        .device_close = device_close,
        .target = target,
        .ask = ask,
        .progress = progress,
        .fd = end_fd,
        .arm = arm,
        .destroy = destroy,
    };

    return (r2_put_t){&ops, tp->instance};
}
