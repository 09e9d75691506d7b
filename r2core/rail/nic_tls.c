/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What the words of coll_r2_tls stand for.
 */
#include "r2_config.h"

#include <string.h>

#include "base/util.h"
#include "r2/params.h"
#include "rail/nic_parts.h"

/* UCX's transports: a queue pair for each lane, and one for all of them. */
#define R2_TLS_RC "rc_verbs"
#define R2_TLS_UD "ud_verbs"

static const struct {
    const char *word; /* of coll_r2_tls */
    const char *tls;  /* for rails on RDMA devices */
} r2_offers[] = {{"auto", R2_TLS_RC}, {"rc", R2_TLS_RC}, {"ud", R2_TLS_UD}, {"tcp", ""}};

const char *r2_rdma_tls(const char *word, uint32_t ranks)
{
    if (0 == strcmp("auto", word) && ranks > R2_RC_RANKS_MAX) {
        return R2_TLS_UD;
    }
    for (size_t i = 0; i < r2_array_count(r2_offers); ++i) {
        if (0 == strcmp(word, r2_offers[i].word)) {
            return r2_offers[i].tls;
        }
    }
    return "";
}
