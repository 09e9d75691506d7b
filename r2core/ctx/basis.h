/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What plans of a communicator are made from: its hosts and rails with the map that is agreed.
 */
#ifndef R2_CTX_BASIS_H
#define R2_CTX_BASIS_H

#include "ctx/hosts.h"
#include "model/health_map.h"
#include "model/topology.h"

/** What plans are made from: equal on all ranks for one call. */
typedef struct r2_basis {
    r2_topology_t topology;    /* of the communicator, with what is agreed */
    r2_cost_params_t cost;     /* what predictions are made from */
    uint32_t cost_version;     /* 0: as published at start (ctx/gauge.h) */
    uint64_t map_digest;       /* of topology and cost: plans that were worked out are found by it */
    bool even;                 /* nothing is broken or slow, and all hosts have equal rails */
} r2_basis_t;

/**
 * The communicator of some ranks of the job, as if all was well.
 * @param ranks      [size], ranks of the job.
 * @param map_host_p room for `size` indices: per host of the topology, its index among all hosts.
 * @return R2_OK, R2_ERR_NO_MEMORY.
 */
r2_status_t r2_basis_init(const r2_hosts_t *hosts, const uint32_t *ranks, int32_t size,
                          uint32_t rail_count, uint32_t *map_host_p, r2_basis_t *basis_p);

/** Takes in the map of all hosts that is agreed. @param map_host of r2_basis_init(). */
void r2_basis_apply(r2_basis_t *basis, const r2_health_map_t *map, const uint32_t *map_host);

/**
 * A copy, for a series of parts: another map may be agreed between two of its parts, at one rank before
 * and at another after a part begins. @return R2_OK, R2_ERR_NO_MEMORY.
 */
r2_status_t r2_basis_copy(const r2_basis_t *basis, r2_basis_t **copy_p);

/** @param copy of r2_basis_copy(), or NULL. */
void r2_basis_free(r2_basis_t *copy);

#endif
