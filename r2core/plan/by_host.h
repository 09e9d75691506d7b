/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Ranks by host, and which rank of a host handles what.
 */
#ifndef R2_PLAN_BY_HOST_H
#define R2_PLAN_BY_HOST_H

#include "r2/topology.h"

/** The ranks of each host, in order. The same on all ranks. */
typedef struct r2_by_host {
    int32_t *ranks;  /* owned: by host, then rank */
    uint32_t *first; /* owned: [host + 1], into ranks */
    uint32_t most;   /* ranks on one host */
} r2_by_host_t;

/** @return R2_OK or R2_ERR_NO_MEMORY; r2_by_host_fini() in both cases. */
r2_status_t r2_by_host_init(r2_by_host_t *by, const r2_topology_t *topology);
void r2_by_host_fini(r2_by_host_t *by);

/** Ranks on a host. */
static inline uint32_t r2_by_host_count(const r2_by_host_t *by, uint32_t host)
{
    return by->first[host + 1] - by->first[host];
}

/** The rank of a host that handles one of so many pieces. They are spread evenly. */
static inline int32_t r2_by_host_handler(const r2_by_host_t *by, uint32_t host, uint32_t piece,
                                         uint32_t pieces)
{
    return by->ranks[by->first[host] +
                     (uint32_t) ((uint64_t) piece * r2_by_host_count(by, host) / pieces)];
}

#endif
