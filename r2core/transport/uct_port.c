/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * UCX's memory domains and interfaces, for lanes and for probes; what UCX's errors break.
 */
#include "r2_config.h"

#include "transport/uct.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fork.h"
#include "r2/fds.h"

#define R2_UCT_RDMA "ib" /* UCX's component */

r2_status_t r2_uct_status(ucs_status_t rc)
{
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
    case UCS_ERR_TIMED_OUT:
        return R2_ERR_TIMEOUT;
    default: /* UCS_ERR_ENDPOINT_TIMEOUT too: whatever happened, to tcp */
        return R2_ERR_LANE_DOWN;
    }
}

/* ---- domains ---- */

/**
 * The component that has a transport: of its name, or "ib" for what RDMA has. Others are not
 * opened, which is not free of effects (GPUs).
 */
static const char *component_of(const char *tls)
{
    return 0 == strcmp(tls, "tcp") || 0 == strcmp(tls, "sysv") ? tls : R2_UCT_RDMA;
}

/** Looks for a device of a memory domain. */
static bool r2_uct_resource_find(uct_md_h md, const char *tls, const char *name,
                                 uct_tl_resource_desc_t *resource_p)
{
    uct_tl_resource_desc_t *resources;
    unsigned count;
    bool found = false;

    if (UCS_OK != uct_md_query_tl_resources(md, &resources, &count)) {
        return false;
    }
    for (unsigned i = 0; i < count && !found; ++i) {
        found = 0 == strcmp(resources[i].tl_name, tls) && 0 == strcmp(resources[i].dev_name, name);
        if (found) {
            *resource_p = resources[i];
        }
    }
    uct_release_tl_resource_list(resources);
    return found;
}

/** UCX's memory domains for RDMA are called as their devices: those of others are not opened. */
static bool r2_uct_md_may_have(const char *md_name, const char *tls, const char *name)
{
    const size_t bytes = strlen(md_name);

    return 0 != strcmp(component_of(tls), R2_UCT_RDMA) ||
           (0 == strncmp(md_name, name, bytes) && ':' == name[bytes]);
}

/** Opens a memory domain of a component if it has the device. */
static bool r2_uct_md_open(uct_component_h component, const char *md_name, const char *tls,
                           const char *name, r2_uct_domain_t *domain)
{
    uct_md_config_t *config;
    ucs_status_t rc = UCS_ERR_NO_DEVICE;
    char index[16];

    if (r2_uct_md_may_have(md_name, tls, name)) {
        rc = uct_md_config_read(component, NULL, NULL, &config);
    }
    if (UCS_OK != rc) {
        return false;
    }
    /* Registrations are kept by us (uct_memory.c). Unknown to tcp, and since 1.16 to all. */
    (void) uct_config_modify(config, "REG_METHODS", "direct");
    if (domain->gid_index >= 0) {
        snprintf(index, sizeof(index), "%d", domain->gid_index);
        (void) uct_config_modify(config, "GID_INDEX", index);
    }
    rc = uct_md_open(component, md_name, config, &domain->md);
    uct_config_release(config);
    if (UCS_OK != rc) {
        return false;
    }
    if (r2_uct_resource_find(domain->md, tls, name, &domain->resource)) {
        return true;
    }
    uct_md_close(domain->md);
    return false;
}

static bool r2_uct_component_open(uct_component_h component, const char *tls, const char *name,
                                  r2_uct_domain_t *domain)
{
    uct_component_attr_t attr = {.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME |
                                               UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT};
    bool found = false;

    if (UCS_OK != uct_component_query(component, &attr) || 0 == attr.md_resource_count ||
        0 != strcmp(attr.name, component_of(tls))) {
        return false;
    }
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = calloc(attr.md_resource_count, sizeof(*attr.md_resources));
    if (NULL != attr.md_resources && UCS_OK == uct_component_query(component, &attr)) {
        for (unsigned i = 0; i < attr.md_resource_count && !found; ++i) {
            found = r2_uct_md_open(component, attr.md_resources[i].md_name, tls, name, domain);
        }
    }
    domain->component = component;
    free(attr.md_resources);
    return found;
}

static bool r2_uct_domain_find(const char *tls, const char *name, r2_uct_domain_t *domain)
{
    uct_component_h *components;
    unsigned count;
    bool found = false;

    if (UCS_OK != uct_query_components(&components, &count)) {
        return false;
    }
    for (unsigned i = 0; i < count && !found; ++i) {
        found = r2_uct_component_open(components[i], tls, name, domain);
    }
    uct_release_component_list(components);
    return found;
}

/** Sets one setting: by its name with the transport's prefix from 1.17 on, without it before. */
static ucs_status_t r2_uct_setting_apply(uct_iface_config_t *config, const char *tls,
                                         const r2_uct_setting_t *setting)
{
    char name[64];
    ucs_status_t rc = uct_config_modify(config, setting->name, setting->value);

    if (UCS_OK != rc) {
        snprintf(name, sizeof(name), "%s_%s", tls, setting->name);
        for (char *c = name; c < name + strlen(tls); ++c) {
            *c = (char) toupper((unsigned char) *c);
        }
        rc = uct_config_modify(config, name, setting->value);
    }
    return rc;
}

static ucs_status_t r2_uct_domain_configure(r2_uct_domain_t *domain,
                                            const r2_uct_setting_t *settings, size_t count)
{
    /* UCX writes as much as its version knows: later ones more than this one. */
    struct {
        uct_md_attr_t attr;
        char more[256];
    } md;
    const char *tls = domain->resource.tl_name;
    ucs_status_t rc = uct_md_query(domain->md, &md.attr);

    if (UCS_OK == rc) {
        domain->needs_handles = 0 != (md.attr.cap.flags & UCT_MD_FLAG_NEED_MEMH);
        domain->takes_gpus = 0 != (md.attr.cap.reg_mem_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA));
        domain->key_bytes = md.attr.rkey_packed_size;
        rc = uct_md_iface_config_read(domain->md, tls, NULL, NULL, &domain->config);
    }
    if (UCS_OK != rc) {
        return rc;
    }
    for (size_t i = 0; i < count && UCS_OK == rc; ++i) {
        rc = r2_uct_setting_apply(domain->config, tls, &settings[i]);
    }
    if (UCS_OK != rc) {
        uct_config_release(domain->config);
    }
    return rc;
}

r2_status_t r2_uct_domain_open(const char *tls, const char *name, const r2_uct_setting_t *settings,
                               size_t count, r2_uct_domain_t *domain_p)
{
    r2_status_t status = R2_OK;

    r2_ucx_enter();
    if (!r2_uct_domain_find(tls, name, domain_p)) {
        status = R2_ERR_NO_DEVICE;
    } else if (UCS_OK != r2_uct_domain_configure(domain_p, settings, count)) {
        uct_md_close(domain_p->md);
        status = R2_ERR_UNSUPPORTED;
    }
    r2_ucx_leave();
    return status;
}

void r2_uct_domain_close(r2_uct_domain_t *domain)
{
    r2_ucx_enter();
    uct_config_release(domain->config);
    uct_md_close(domain->md);
    r2_ucx_leave();
}

/* ---- interfaces ---- */

bool r2_uct_has_room(void *tp, uint32_t devices, uint32_t workers, uint32_t eps)
{
    const r2_uct_t *uct = tp;
    uint32_t thread = 0 == uct->ports && devices + workers > 0 ? R2_FDS_THREAD : 0;
    uint32_t needed = thread + R2_FDS_DEVICE * devices + R2_FDS_WORKER_LOCAL * workers +
                      R2_FDS_OPENING * eps + R2_FDS_SLACK;

    return r2_fds_free(needed) == needed;
}

/** UCX has something to tell. Called in its thread, or in progress, until the interface is
 * closed. */
static void r2_uct_on_event(void *arg, unsigned flags)
{
    const r2_uct_port_t *port = arg;
    const uint64_t one = 1;

    (void) flags;
    (void) !write(port->event_fd, &one, sizeof(one)); /* it is readable if that fails */
}

/** Datagrams: UCX keeps its descriptor to itself, and calls back. */
static bool r2_uct_calls_back(const r2_uct_domain_t *domain)
{
    return 0 == strncmp(domain->resource.tl_name, "ud_", strlen("ud_"));
}

static ucs_status_t r2_uct_iface_open(const r2_uct_domain_t *domain, uct_error_handler_t on_error,
                                      void *arg, r2_uct_port_t *port)
{
    const uint64_t events = port->event_fd >= 0 ? UCT_IFACE_PARAM_FIELD_ASYNC_EVENT_CB |
                                                      UCT_IFACE_PARAM_FIELD_ASYNC_EVENT_ARG
                                                : 0;
    const uct_iface_params_t params = {
        .field_mask = events | UCT_IFACE_PARAM_FIELD_CPU_MASK | UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                      UCT_IFACE_PARAM_FIELD_DEVICE | UCT_IFACE_PARAM_FIELD_STATS_ROOT |
                      UCT_IFACE_PARAM_FIELD_RX_HEADROOM | UCT_IFACE_PARAM_FIELD_ERR_HANDLER |
                      UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG |
                      UCT_IFACE_PARAM_FIELD_ERR_HANDLER_FLAGS,
        .open_mode = UCT_IFACE_OPEN_MODE_DEVICE,
        .mode.device = {.tl_name = domain->resource.tl_name,
                        .dev_name = domain->resource.dev_name},
        .err_handler = on_error,
        .err_handler_arg = arg,
        .async_event_cb = r2_uct_on_event,
        .async_event_arg = port};
    struct {
        uct_iface_attr_t attr;
        char more[512]; /* of later versions */
    } iface;
    ucs_status_t rc =
        uct_iface_open(domain->md, port->worker, &params, domain->config, &port->iface);

    if (UCS_OK != rc) {
        port->iface = NULL;
        return rc;
    }
    uct_iface_progress_enable(port->iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    rc = uct_iface_query(port->iface, &iface.attr);
    if (UCS_OK != rc) {
        return rc;
    }
    port->attr = iface.attr;
    if (port->event_fd >= 0) {
        port->fd = port->event_fd;
        return 0 != (port->attr.cap.event_flags & UCT_IFACE_FLAG_EVENT_ASYNC_CB)
                   ? UCS_OK
                   : UCS_ERR_UNSUPPORTED;
    }
    return 0 != (port->attr.cap.event_flags & UCT_IFACE_FLAG_EVENT_FD)
               ? uct_iface_event_fd_get(port->iface, &port->fd)
               : UCS_ERR_UNSUPPORTED;
}

static void r2_uct_port_release(r2_uct_port_t *port)
{
    if (NULL != port->iface) {
        uct_iface_close(port->iface);
    }
    if (NULL != port->worker) {
        uct_worker_destroy(port->worker);
    }
    if (NULL != port->async) {
        ucs_async_context_destroy(port->async);
    }
    if (port->event_fd >= 0) {
        r2_fd_close(port->event_fd);
    }
}

r2_status_t r2_uct_port_open(r2_uct_t *uct, const r2_uct_domain_t *domain,
                             uct_error_handler_t on_error, void *arg, r2_uct_port_t *port_p)
{
    ucs_status_t rc;

    *port_p = (r2_uct_port_t){
        .is_tcp = 0 == strcmp(domain->resource.tl_name, "tcp"), .fd = -1, .event_fd = -1};
    /* Without descriptors UCX ends the process when it starts its thread (thread.c, assertion). */
    if (!r2_uct_has_room(uct, 0, 1, 0)) {
        return R2_ERR_NO_DESCRIPTORS;
    }
    if (r2_uct_calls_back(domain)) {
        port_p->event_fd = r2_fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        if (port_p->event_fd < 0) {
            return R2_ERR_NO_DESCRIPTORS;
        }
    }
    r2_ucx_enter();
    rc = ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &port_p->async);
    if (UCS_OK == rc) {
        rc = uct_worker_create(port_p->async, UCS_THREAD_MODE_SERIALIZED, &port_p->worker);
    }
    if (UCS_OK == rc) {
        rc = r2_uct_iface_open(domain, on_error, arg, port_p);
    }
    if (UCS_OK != rc) {
        r2_uct_port_release(port_p);
    }
    r2_ucx_leave();
    if (UCS_OK != rc) {
        return UCS_ERR_NO_MEMORY == rc     ? R2_ERR_NO_MEMORY
               : UCS_ERR_UNSUPPORTED == rc ? R2_ERR_UNSUPPORTED
                                           : R2_ERR_NO_DEVICE;
    }
    port_p->uct = uct;
    ++uct->ports;
    return R2_OK;
}

void r2_uct_port_close(r2_uct_port_t *port)
{
    r2_ucx_enter();
    r2_uct_port_release(port);
    r2_ucx_leave();
    --port->uct->ports;
}

r2_status_t r2_uct_port_arm(const r2_uct_port_t *port, bool for_sends)
{
    uint64_t events;
    ucs_status_t rc;

    if (port->event_fd >= 0) {
        (void) !read(port->event_fd, &events,
                     sizeof(events)); /* before it is armed: none is lost */
    }
    r2_ucx_enter();
    rc = uct_iface_event_arm(port->iface, UCT_EVENT_RECV | (for_sends ? UCT_EVENT_SEND_COMP : 0));
    r2_ucx_leave();
    return UCS_OK == rc ? R2_OK : R2_ERR_AGAIN;
}
