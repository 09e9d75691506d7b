/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A fake world for health machines: hosts, rails, faults, lanes and lossy notices in virtual time.
 */
#ifndef R2_TESTS_HEALTH_WORLD_H
#define R2_TESTS_HEALTH_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/util.h"
#include "health/health.h"
#include "r2/prng.h"

#define WORLD_HOSTS  8
#define WORLD_RANKS  96
#define WORLD_RAILS  3
#define WORLD_FAULTS 16
#define WORLD_EVENTS 65536
#define WORLD_STEP   (2 * R2_NS_PER_MS)

typedef enum fault_kind { FAULT_NIC, FAULT_PATH, FAULT_PLANE, FAULT_STOP, FAULT_KILL } fault_kind_t;

typedef struct fault {
    fault_kind_t kind;
    uint32_t host, host_b, rail, rank;
    r2_direction_t direction;
    bool carrier_lost;       /* NIC: the host sees it at once */
    uint64_t from_ns, to_ns; /* R2_NEVER_NS: for ever */
} fault_t;

typedef enum event_kind { EVENT_NOTICE, EVENT_PROBED, EVENT_BEACON } event_kind_t;

typedef struct event {
    uint64_t due_ns;
    event_kind_t kind;
    uint32_t to, from, rail;
    uint64_t id;
    bool alive, unable;
    uint8_t data[64];
    size_t bytes;
} event_t;

typedef struct lane {
    bool down;
    uint64_t retry_ns, silent_ns;
} lane_t;

struct world;

typedef struct machine {
    struct world *world;
    uint32_t rank;
    r2_health_t *health;
    lane_t lanes[WORLD_RANKS][WORLD_RAILS];
    bool carrier[WORLD_RAILS];
    uint64_t delivered_ns; /* newest acknowledgement, of whatever host and rail; 0: none */
    bool told_gone[WORLD_RANKS];
    uint32_t own_events[R2_VERDICT_COUNT];
    r2_verdict_event_t last; /* own */
    uint32_t dead_calls, probes;
    uint32_t reads; /* events taken in this step */
} machine_t;

typedef struct world {
    uint32_t host_count, per_host, rail_count, rank_count;
    uint32_t host_of[WORLD_RANKS];
    r2_host_t host[WORLD_HOSTS];
    r2_hosts_t hosts;
    machine_t machines[WORLD_RANKS];
    fault_t faults[WORLD_FAULTS];
    uint32_t fault_count;
    uint32_t loss_ppm, double_ppm;
    uint32_t lost_probes; /* so many first probes of each machine get no answer */
    uint32_t reads_max;   /* so many events a machine takes in a step; 0: all that are there */
    bool reads_unknown;   /* machines are not told that there may be more */
    uint64_t delay_ns, now_ns;
    uint64_t notices, probes, beacons;
    uint32_t unfair; /* healthy parts blamed */
    /* nothing but lanes reaches a rail, and one that does not come up says nothing */
    bool bare;
    uint32_t skew; /* rails have so much higher an index at peers, for who asks after lanes */
    bool verbose;
    event_t *events;
    uint32_t event_count;
    r2_prng_t prng;
    r2_params_t params;
} world_t;

void world_init(world_t *world, uint32_t hosts, uint32_t per_host, uint32_t rails, uint64_t seed);
void world_fini(world_t *world);
void world_run(world_t *world, uint64_t for_ms);
/** @return NULL, or what is wrong with the maps. */
const char *world_wrong(world_t *world);
bool world_passes(const world_t *world, uint32_t from, uint32_t to, uint32_t rail,
                  uint64_t slack_ns);
bool world_answers(const world_t *world, uint32_t a, uint32_t b, uint32_t rail);
bool world_runs(const world_t *world, uint32_t rank);
bool world_exists(const world_t *world, uint32_t rank);

/** Adds a fault, from now on and for ever. @return it, to be changed. */
static inline fault_t *world_fault(world_t *world, fault_kind_t kind, uint32_t host, uint32_t rail)
{
    fault_t *fault = &world->faults[world->fault_count++];

    *fault = (fault_t){.kind = kind,
                       .host = host,
                       .rail = rail,
                       .from_ns = world->now_ns,
                       .to_ns = R2_NEVER_NS};
    return fault;
}

/** What a rank knows of a rail. */
static inline const r2_health_entry_t *world_entry(const world_t *world, uint32_t rank,
                                                   uint32_t host, uint32_t rail)
{
    return r2_health_map_entry(r2_health_map(world->machines[rank].health), host, rail);
}

#endif
