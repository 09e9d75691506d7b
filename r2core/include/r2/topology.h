/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Topology of a communicator: hosts, ranks on them, rails and what of them is left. Plain value.
 * Of the planner's library (r2/planner.h): not installed.
 */
#ifndef R2_TOPOLOGY_H
#define R2_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "r2/status.h"

#define R2_CAPACITY_FULL     16u /* capacities are sixteenths of a rail's healthy rate */
#define R2_TOPOLOGY_CUTS_MAX 64u

/** A rail that works at two hosts but not between them. host_a < host_b. */
typedef struct r2_topology_cut {
    uint32_t host_a, host_b, rail;
} r2_topology_cut_t;

/** Equal on all ranks of the communicator. Every host has at least one rank. */
typedef struct r2_topology {
    uint32_t host_count, rail_count;
    int32_t rank_count;
    bool any_pairing;  /* NICs of different index reach each other; else rail r reaches rail r */
    uint32_t *host_of; /* owned: [rank] */
    uint32_t *
        rate_mbytes_per_s; /* owned: [host * rail_count + rail], of a healthy rail, one direction */
    uint8_t *capacity;     /* owned: as rate, sixteenths of it: 0 .. R2_CAPACITY_FULL */
    r2_topology_cut_t cuts[R2_TOPOLOGY_CUTS_MAX];
    uint32_t cut_count;
} r2_topology_t;

/**
 * All rails healthy and equally fast; ranks on hosts in blocks as equal as can be.
 * @return R2_OK, R2_ERR_PARAM (no host, no rail, or fewer ranks than hosts), R2_ERR_NO_MEMORY.
 */
r2_status_t r2_topology_init(r2_topology_t *topology, uint32_t host_count, uint32_t rail_count,
                             int32_t rank_count, uint32_t rate_mbytes_per_s);
/** @param to written only on success. @return R2_OK, R2_ERR_NO_MEMORY. */
r2_status_t r2_topology_copy(r2_topology_t *to, const r2_topology_t *from);
void r2_topology_fini(r2_topology_t *topology);
/** True if everything in them is equal; cuts in the order in which they were noted. */
bool r2_topology_equal(const r2_topology_t *a, const r2_topology_t *b);

/** @param capacity sixteenths; more than R2_CAPACITY_FULL counts as that. Outside indices:
 * ignored. */
void r2_topology_set_capacity(r2_topology_t *topology, uint32_t host, uint32_t rail,
                              uint32_t capacity);

/** Notes a broken path, hosts in any order. @return false: no place left, or no such path. */
bool r2_topology_cut(r2_topology_t *topology, uint32_t host_a, uint32_t host_b, uint32_t rail);

/* Rates below are in sixteenths of MB/s (10^6 bytes per second), so that no division rounds
 * them. */

/** One rail of a host. */
uint64_t r2_topology_rail_rate(const r2_topology_t *topology, uint32_t host, uint32_t rail);
/** All rails of a host together. */
uint64_t r2_topology_host_rate(const r2_topology_t *topology, uint32_t host);
/** Rails that join two hosts, each at the pace of its slower end; less what is cut. */
uint64_t r2_topology_pair_rate(const r2_topology_t *topology, uint32_t host_a, uint32_t host_b);

/** Ranks on hosts: the fewest and the most of any, and the most pairs of a rank there and one
 * elsewhere. */
typedef struct r2_topology_placement {
    uint32_t least, most;
    uint64_t pairs;
} r2_topology_placement_t;

/** @return R2_OK, R2_ERR_NO_MEMORY. */
r2_status_t r2_topology_placement(const r2_topology_t *topology,
                                  r2_topology_placement_t *placement_p);

/** True if nothing is broken or slow; hosts may still have unequal NICs. */
bool r2_topology_is_healthy(const r2_topology_t *topology);

/** True if healthy and all hosts have the same rates on the same rails. */
bool r2_topology_is_even(const r2_topology_t *topology);

/** Digest of everything above: equal topologies have equal digests. */
uint64_t r2_topology_digest(const r2_topology_t *topology);

#endif
