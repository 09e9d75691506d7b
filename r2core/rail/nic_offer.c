/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * By which transport a rail may go: what coll_r2_tls says, and what UCX can do on its RDMA device.
 */
#include "r2_config.h"

#include "rail/nic_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "r2/transport.h"

/* UCX's transport of queue pairs. */
#define R2_TLS_RC "rc_verbs"

static const struct {
    const char *word; /* of coll_r2_tls */
    const char *tls;  /* for rails on RDMA devices */
} r2_offers[] = {{"auto", R2_TLS_RC}, {"rc", R2_TLS_RC}, {"tcp", ""}};

const char *r2_rdma_tls(const char *word)
{
    for (size_t i = 0; i < r2_array_count(r2_offers); ++i) {
        if (0 == strcmp(word, r2_offers[i].word)) {
            return r2_offers[i].tls;
        }
    }
    return "";
}

void r2_nics_offer(const char *tls, r2_nic_t *nics, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        char device[R2_RDMA_DEVICE_MAX];

        nics[i].tls[0] = '\0';
        if ('\0' == tls[0] || '\0' == nics[i].rdma[0] || !nics[i].port.openable) {
            continue;
        }
        snprintf(device, sizeof(device), "%.*s", (int) strcspn(nics[i].rdma, ":"), nics[i].rdma);
        if (r2_tp_ucx_sees(device)) {
            snprintf(nics[i].tls, sizeof(nics[i].tls), "%s", tls);
        }
    }
}
