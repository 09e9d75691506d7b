/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Health map: capacity and version of every (host, rail), and the pairs of hosts that a rail does
 * not connect. Plain value: no clock, no I/O.
 */
#ifndef R2_MODEL_HEALTH_MAP_H
#define R2_MODEL_HEALTH_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "r2/status.h"
#include "r2/topology.h"
#include "r2/verdict.h"

/* Broken paths that are remembered one by one. */
#define R2_HEALTH_EXCEPTIONS_MAX R2_TOPOLOGY_CUTS_MAX
#define R2_HEALTH_VERSION_MAX    0x7fffffffu /* changes beyond it are refused */

/** What is known of one rail of one host. */
typedef struct r2_health_entry {
    uint32_t version;  /* raised by the host's owner with every change; 0: as at the start */
    uint8_t capacity;  /* 0 (dead) .. R2_CAPACITY_FULL */
    uint8_t verdict;   /* r2_verdict_t: why it is not full */
    uint8_t direction; /* r2_direction_t: which way does not pass, seen from the host */
    uint8_t reserved;  /* 0 */
} r2_health_entry_t;

/** A rail that works at two hosts but not between them. host_a < host_b. */
typedef struct r2_health_exception {
    uint32_t host_a, host_b, rail; /* indices in the map */
    uint32_t version;              /* even: healed, odd: broken; merging takes the higher */
} r2_health_exception_t;

/** One change, as it travels. */
typedef struct r2_health_change {
    bool is_path; /* exception: host_a, host_b, rail, version; else entry of (host_a, rail) */
    uint32_t host_a, host_b, rail;
    r2_health_entry_t entry; /* is_path: only its version counts */
} r2_health_change_t;

/** The map. Sizes are fixed at creation. */
typedef struct r2_health_map {
    uint32_t host_count, rail_count;
    r2_health_entry_t *entries; /* owned: [host * rail_count + rail] */
    /* sorted by (host_a, host_b, rail) */
    r2_health_exception_t exceptions[R2_HEALTH_EXCEPTIONS_MAX];
    uint32_t exception_count;
} r2_health_map_t;

/** All rails full. @return R2_OK, R2_ERR_PARAM (a size is 0 or beyond R2_RAILS_MAX),
 * R2_ERR_NO_MEMORY. */
r2_status_t r2_health_map_init(r2_health_map_t *map, uint32_t host_count, uint32_t rail_count);
void r2_health_map_fini(r2_health_map_t *map);
/** All rails full again. */
void r2_health_map_reset(r2_health_map_t *map);
/** Same sizes required. */
void r2_health_map_copy(r2_health_map_t *to, const r2_health_map_t *from);

const r2_health_entry_t *r2_health_map_entry(const r2_health_map_t *map, uint32_t host,
                                             uint32_t rail);
/** True if a broken path between the two hosts on this rail is known. Any order of hosts. */
bool r2_health_map_is_cut(const r2_health_map_t *map, uint32_t host_a, uint32_t host_b,
                          uint32_t rail);
/** Capacity of the way between two hosts on one rail: the lower end's, 0 when cut. */
uint32_t r2_health_map_between(const r2_health_map_t *map, uint32_t host_a, uint32_t host_b,
                               uint32_t rail);

/**
 * Merges one change: the highest version wins, ties go to the lower capacity. Commutative,
 * associative and idempotent, so that order and duplicates do not matter, also when there are more
 * exceptions than places: those with the highest (version, host_a, host_b, rail) stay. Versions of
 * new exceptions come from r2_health_map_path_version(), so that what changed longest ago goes
 * first (the map then is more hopeful than the network, which costs speed and nothing else).
 * @return true if the map changed; false also for a change with indices outside of the map.
 */
bool r2_health_map_merge(r2_health_map_t *map, const r2_health_change_t *change);

/** Merges all that another map of the same sizes says. @return true if the map changed. */
bool r2_health_map_join(r2_health_map_t *map, const r2_health_map_t *other);

/** True if they say the same, versions included. */
bool r2_health_map_equal(const r2_health_map_t *a, const r2_health_map_t *b);

/**
 * Version for a path that broke or healed: above that of every known exception, odd if broken.
 * @return R2_HEALTH_VERSION_MAX when versions are used up: that change then is lost.
 */
uint32_t r2_health_map_path_version(const r2_health_map_t *map, bool broken);

/**
 * Gives a topology the capacities and cuts of its hosts.
 * @param map_host per host of the topology, its index in the map.
 * @return false: more cuts than places (the topology then is too hopeful), or rails differ in
 * number.
 */
bool r2_health_map_apply(const r2_health_map_t *map, const uint32_t *map_host,
                         r2_topology_t *topology);

/** 64-bit digest of all that plans depend on: capacities and cuts, not versions or verdicts. */
uint64_t r2_health_map_digest(const r2_health_map_t *map);
/** 64-bit digest of everything: equal maps have equal ones. */
uint64_t r2_health_map_digest_all(const r2_health_map_t *map);

#endif
