/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Which RDMA devices UCX knows, and whether it can open one; whether it knows CUDA.
 */
#include "r2_config.h"

#include "transport/uct.h"

#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

#define TRIAL_BYTES 131072 /* as long as packets are by default */

/* The component of all RDMA devices: its memory domains have their names. */
static bool r2_uct_component_has(uct_component_h component, const char *device)
{
    uct_component_attr_t attr = {.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME |
                                               UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT};
    bool found = false;

    if (UCS_OK != uct_component_query(component, &attr) || 0 != strcmp("ib", attr.name) ||
        0 == attr.md_resource_count) {
        return false;
    }
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = calloc(attr.md_resource_count, sizeof(*attr.md_resources));
    if (NULL != attr.md_resources && UCS_OK == uct_component_query(component, &attr)) {
        for (unsigned i = 0; i < attr.md_resource_count && !found; ++i) {
            found = 0 == strcmp(device, attr.md_resources[i].md_name);
        }
    }
    free(attr.md_resources);
    return found;
}

bool r2_tp_ucx_sees(const char *device)
{
    uct_component_h *components;
    unsigned count;
    bool found = false;

    r2_ucx_enter();
    if (UCS_OK == uct_query_components(&components, &count)) {
        for (unsigned i = 0; i < count && !found; ++i) {
            found = r2_uct_component_has(components[i], device);
        }
        uct_release_component_list(components);
    }
    r2_ucx_leave();
    return found;
}

/** Opens an endpoint and connects it to itself: not all that has verbs has queue pairs (iWARP). */
static r2_status_t r2_uct_trial_connect(const r2_tp_ops_t *ops, r2_tp_worker_t *worker)
{
    char address[R2_TP_ADDRESS_MAX];
    r2_tp_ep_t *ep;
    size_t bytes;
    r2_status_t status = ops->ep_open(worker, NULL, &ep);

    if (R2_OK != status) {
        return status;
    }
    status = ops->ep_address(ep, address, &bytes);
    if (R2_OK == status) {
        status = ops->ep_connect(ep, address, bytes);
    }
    ops->ep_close(ep);
    return status;
}

bool r2_tp_ucx_opens(const char *name, const char *tls)
{
    const r2_tp_device_config_t config = {
        .name = name, .tls = tls, .segment_bytes = TRIAL_BYTES, .gid_index = -1};
    const r2_tp_callbacks_t callbacks = {.received = NULL};
    r2_tp_device_t *device;
    r2_tp_worker_t *worker;
    r2_status_t status;
    r2_tp_t tp;

    if (R2_OK != r2_tp_ucx_create(&tp)) {
        return false;
    }
    status = tp.ops->device_open(tp.instance, &config, &device);
    if (R2_OK == status) {
        status = tp.ops->worker_create(device, &callbacks, NULL, &worker);
        if (R2_OK == status) {
            status = r2_uct_trial_connect(tp.ops, worker);
            tp.ops->worker_destroy(worker);
        }
        tp.ops->device_close(device);
    }
    r2_tp_ucx_destroy(&tp);
    return R2_OK == status;
}

/* Asked of a context as others of this process have it: UCX_TLS may leave out what there is. */
bool r2_tp_ucx_takes_cuda(void)
{
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                 .features = UCP_FEATURE_TAG};
    ucp_context_attr_t attr = {.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES};
    ucp_config_t *config;
    ucp_context_h context;
    ucs_status_t rc;

    r2_ucx_enter();
    rc = ucp_config_read(NULL, NULL, &config);
    if (UCS_OK == rc) {
        rc = ucp_init(&params, config, &context);
        ucp_config_release(config);
    }
    if (UCS_OK == rc) {
        rc = ucp_context_query(context, &attr);
        ucp_cleanup(context);
    }
    r2_ucx_leave();
    return UCS_OK == rc && 0 != (attr.memory_types & UCS_BIT(UCS_MEMORY_TYPE_CUDA));
}
