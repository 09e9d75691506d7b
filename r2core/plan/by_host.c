/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Ranks by host, and which rank of a host handles what.
 */
#include "r2_config.h"

#include "plan/by_host.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

r2_status_t r2_by_host_init(r2_by_host_t *by, const r2_topology_t *topology)
{
    *by = (r2_by_host_t){
        .ranks = malloc((size_t) topology->rank_count * sizeof(*by->ranks)),
        .first = malloc(((size_t) topology->host_count + 1) * sizeof(*by->first))};
    if (NULL == by->ranks || NULL == by->first) {
        return R2_ERR_NO_MEMORY;
    }
    memset(by->first, 0, ((size_t) topology->host_count + 1) * sizeof(*by->first));
    for (int32_t r = 0; r < topology->rank_count; ++r) {
        ++by->first[topology->host_of[r] + 1];
    }
    for (uint32_t h = 0; h < topology->host_count; ++h) {
        by->most = r2_max(by->most, by->first[h + 1]);
        by->first[h + 1] += by->first[h];
    }
    for (int32_t r = 0; r < topology->rank_count; ++r) { /* the begins move to the ends */
        by->ranks[by->first[topology->host_of[r]]++] = r;
    }
    memmove(by->first + 1, by->first, topology->host_count * sizeof(*by->first));
    by->first[0] = 0;
    return R2_OK;
}

void r2_by_host_fini(r2_by_host_t *by)
{
    free(by->ranks);
    free(by->first);
    by->ranks = NULL;
    by->first = NULL;
}
