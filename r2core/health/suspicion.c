/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Suspicions: what is to be investigated, and what needs no investigation (any more).
 */
#include "r2_config.h"

#include "health/machine.h"

#include <string.h>

#define R2_SUSPICION_TURN 4 /* failure timeouts: an investigation and its notices */

/** True if what is known tells already why (host, rail) does not answer us. */
bool r2_suspicion_explained(const r2_health_t *health, uint32_t host, uint32_t rail)
{
    return 0 == r2_health_map_between(&health->map, health->own_host, host, rail) ||
           0 != health->accused_ns[r2_health_at(health, host, rail)] ||
           0 != health->accused_ns[r2_health_at(health, health->own_host, rail)];
}

static r2_investigation_t *r2_suspicion_find(r2_health_t *health, uint32_t host, uint32_t rail)
{
    uint32_t idx;

    for (idx = 0; idx < R2_INVESTIGATIONS_MAX; ++idx) {
        r2_investigation_t *at = &health->investigations[idx];

        if (at->active && at->host == host && at->rail == rail) {
            return at;
        }
    }
    return NULL;
}

/** Ends an investigation. */
void r2_suspicion_close(r2_health_t *health, r2_investigation_t *at)
{
    health->investigation_count -= at->active;
    at->active = false;
}

/** Ends what goes on about (host, rail), or about a rail of ours, without a verdict. */
void r2_suspicion_drop(r2_health_t *health, uint32_t host, uint32_t rail)
{
    uint32_t idx;

    for (idx = 0; idx < R2_INVESTIGATIONS_MAX; ++idx) {
        r2_investigation_t *at = &health->investigations[idx];

        if (at->rail == rail && (at->host == host || host == health->own_host)) {
            r2_suspicion_close(health, at);
        }
    }
}

/* Accusations that no owner ever answered do not count for ever. */
static void r2_suspicion_forget(r2_health_t *health, uint32_t host, uint32_t rail, uint64_t now_ns)
{
    const uint32_t hosts[] = {host, health->own_host};
    uint32_t idx;

    for (idx = 0; idx < r2_array_count(hosts); ++idx) {
        if (hosts[idx] < health->map.host_count && rail < health->rail_count) {
            uint64_t *accused_ns = &health->accused_ns[r2_health_at(health, hosts[idx], rail)];

            if (now_ns > *accused_ns + 2 * r2_health_ms(health->params.heal_max_ms)) {
                *accused_ns = 0;
            }
        }
    }
}

/*
 * The processes of a host see the same rails: two look at once, so that one that is stopped holds
 * nobody up. Four more follow when those should have had a verdict and told it, which ends what
 * waits here, then all others: probes do not grow with the processes of a host, and a verdict takes
 * no process in particular.
 */
static uint64_t r2_suspicion_turn_ns(const r2_health_t *health)
{
    static const uint32_t last_of_turn[] = {2, 6};
    const uint64_t turn_ns = r2_health_ms(health->params.failure_timeout_ms) * R2_SUSPICION_TURN;
    const uint32_t position = r2_members_position(health);
    uint32_t turn = 0;

    while (turn < r2_array_count(last_of_turn) && position >= last_of_turn[turn]) {
        ++turn;
    }
    return turn * turn_ns;
}

/** Starts to find out why the rail of a process's host does not answer, if that is to be found
 * out. */
void r2_investigate(r2_health_t *health, uint32_t rank, uint32_t rail, uint64_t now_ns)
{
    uint32_t idx, host = R2_NOBODY == rank ? R2_NOBODY : health->hosts->host_of[rank];
    r2_investigation_t *at = NULL;

    r2_suspicion_forget(health, host, rail, now_ns);
    if (R2_NOBODY == host || host == health->own_host ||
        rail >= r2_rails_of(health, health->own_host) || rail >= r2_rails_of(health, host) ||
        !r2_health_has_carrier(health, rail) || health->gone[rank] ||
        now_ns < health->quiet_ns[r2_health_at(health, host, rail)] ||
        r2_suspicion_explained(health, host, rail) ||
        NULL != r2_suspicion_find(health, host, rail)) {
        return;
    }
    for (idx = 0; idx < R2_INVESTIGATIONS_MAX && NULL == at; ++idx) {
        at = health->investigations[idx].active ? NULL : &health->investigations[idx];
    }
    if (NULL == at) {
        return; /* asked again when the lane fails again */
    }
    memset(at, 0, sizeof(*at));
    at->active = true;
    ++health->investigation_count;
    at->host = host;
    at->rail = rail;
    at->rank = rank;
    at->id = health->next_id;
    health->next_id += R2_IDS_PER_INVESTIGATION;
    at->since_ns = now_ns;
    at->next_ns = now_ns + r2_suspicion_turn_ns(health);
}
