/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Preloaded: UCX says that it knows CUDA memory.
 */
#include <dlfcn.h>
#include <string.h>
#include <ucp/api/ucp.h>

__attribute__((visibility("default"))) ucs_status_t ucp_context_query(ucp_context_h context,
                                                                      ucp_context_attr_t *attr)
{
    ucs_status_t (*real)(ucp_context_h, ucp_context_attr_t *);
    void *symbol = dlsym(RTLD_NEXT, "ucp_context_query");
    ucs_status_t rc;

    memcpy(&real, &symbol, sizeof(real));
    rc = real(context, attr);
    if (UCS_OK == rc && 0 != (attr->field_mask & UCP_ATTR_FIELD_MEMORY_TYPES)) {
        attr->memory_types |= UCS_BIT(UCS_MEMORY_TYPE_CUDA);
    }
    return rc;
}
