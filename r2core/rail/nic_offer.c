/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Whether a rail goes by RDMA: what UCX can do on its device, and the memory that may be locked.
 */
#include "r2_config.h"

#include "rail/nic_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "r2/params.h"
#include "r2/transport.h"

/* What a rail locks before the application's memory: buffers to receive into and to copy into, and
 * queues. */
#define R2_RDMA_LEAST_BYTES (20ull << 20)

r2_rdma_lack_t r2_rdma_lack_seen(const r2_nic_t *nic, uint64_t memlock_bytes)
{
    char device[R2_RDMA_DEVICE_MAX];

    if (!nic->port.openable) {
        return R2_RDMA_LACKS_FILE;
    }
    snprintf(device, sizeof(device), "%.*s", (int) strcspn(nic->rdma, ":"), nic->rdma);
    if (!r2_tp_ucx_sees(device)) {
        return R2_RDMA_LACKS_MODULE;
    }
    return memlock_bytes < R2_RDMA_LEAST_BYTES ? R2_RDMA_LACKS_MEMORY : R2_RDMA_LACKS_NOTHING;
}

static r2_rdma_lack_t r2_rdma_lack(const r2_nic_t *nic, const char *tls, uint64_t memlock_bytes)
{
    const r2_rdma_lack_t lack = r2_rdma_lack_seen(nic, memlock_bytes);

    /* UCX hides ports without a link: those are believed. */
    return R2_RDMA_LACKS_NOTHING == lack && R2_PORT_ACTIVE == nic->port.state &&
                   !r2_tp_ucx_opens(nic->rdma, tls)
               ? R2_RDMA_LACKS_DEVICE
               : lack;
}

void r2_nics_offer(const r2_rdma_setting_t *setting, r2_nic_t *nics, size_t count)
{
    uint64_t memlock_bytes = setting->memlock_bytes;

    for (size_t i = 0; i < count; ++i) {
        r2_nic_t *nic = &nics[i];

        nic->tls[0] = '\0';
        nic->lack = R2_RDMA_LACKS_NOTHING;
        if ('\0' == setting->tls[0] || '\0' == nic->rdma[0]) {
            continue;
        }
        nic->lack = r2_rdma_lack(nic, setting->tls, memlock_bytes);
        if (R2_RDMA_LACKS_NOTHING == nic->lack) {
            snprintf(nic->tls, sizeof(nic->tls), "%s", setting->tls);
            memlock_bytes -= UINT64_MAX == memlock_bytes ? 0 : R2_RDMA_LEAST_BYTES;
        }
    }
}

void r2_rdma_setting_read(const char *word, uint32_t ranks, r2_rdma_setting_t *setting_p)
{
    *setting_p = (r2_rdma_setting_t){.tls = r2_rdma_tls(word, ranks),
                                     .memlock_bytes = r2_memlock_bytes(),
                                     .ucx_tls = r2_params_ucx("TLS"),
                                     .ucx_net_devices = r2_params_ucx("NET_DEVICES"),
                                     .ucx_gid_index = r2_params_ucx("IB_GID_INDEX")};
}
