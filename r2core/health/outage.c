/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Outages: rails of our host and paths from it that are dead, since when, and when they may be
 * tried.
 */
#include "r2_config.h"

#include "health/machine.h"

#include <string.h>

/** The place for a rail of ours, or for the path to a host. @param make take a free one. */
r2_heal_t *r2_outage_find(r2_health_t *health, uint32_t host, uint32_t rail, bool path, bool make)
{
    r2_heal_t *oldest = NULL;
    uint32_t idx;

    if (!path) {
        return &health->heals[rail];
    }
    for (idx = R2_RAILS_MAX; idx < R2_HEALS_MAX; ++idx) {
        r2_heal_t *heal = &health->heals[idx];

        if (0 != heal->since_ns && heal->host == host && heal->rail == rail) {
            return heal;
        }
        if (!heal->active && (NULL == oldest || heal->healed_ns < oldest->healed_ns)) {
            oldest = heal;
        }
    }
    if (!make || NULL == oldest) {
        return NULL;
    }
    memset(oldest, 0, sizeof(*oldest));
    return oldest;
}

bool r2_outage_is_path(const r2_health_t *health, const r2_heal_t *heal)
{
    return heal->host != health->own_host;
}

/** A pause with jitter. */
uint64_t r2_outage_jittered(r2_health_t *health, uint64_t pause_ns)
{
    return pause_ns +
           r2_prng_below(&health->prng, pause_ns * health->params.heal_jitter_percent / 100 + 1);
}

/* A probe is a packet or two of one process, a call one of each process to each peer: it may be
 * made more often. */
#define R2_OUTAGE_OFTEN 4

/** The longest pause between probes of the owner. */
uint64_t r2_outage_longest_ns(const r2_health_t *health)
{
    return r2_health_ms(
        r2_max(health->params.heal_min_ms, health->params.heal_max_ms / R2_OUTAGE_OFTEN));
}

/* The first pause: long outages are probed seldom. Ranks behind the owner only stand in for it. */
static uint64_t r2_outage_first_pause(const r2_health_t *health, const r2_heal_t *heal)
{
    uint64_t pause_ns = r2_clamp_u64(heal->outage_ns / 16, r2_health_ms(health->params.heal_min_ms),
                                     r2_outage_longest_ns(health));

    return pause_ns * (1 + r2_members_position(health));
}

/** A rail of ours (host: own) or a path to a host is dead from now on. @return end of its
 * quarantine. */
uint64_t r2_outage_start(r2_health_t *health, uint32_t host, uint32_t rail, bool path,
                         uint64_t now_ns)
{
    r2_heal_t *heal = r2_outage_find(health, host, rail, path, true);
    uint64_t quarantine_ns = r2_health_ms(health->params.heal_min_ms);

    if (NULL == heal || heal->active) {
        return NULL == heal ? now_ns : heal->quarantine_ns;
    }
    if (0 != heal->healed_ns &&
        now_ns < heal->healed_ns + r2_health_ms(health->params.flap_period_ms)) {
        heal->flaps = r2_min(heal->flaps + 1, 30u);
    } else {
        heal->flaps = 0;
    }
    quarantine_ns = r2_min(quarantine_ns << heal->flaps, r2_health_ms(health->params.flap_max_ms));
    heal->active = true;
    ++health->heal_count;
    heal->probing = heal->proving = heal->unopened = false;
    heal->host = host;
    heal->rail = rail;
    heal->good = 0;
    heal->since_ns = r2_max(now_ns, 1ull);
    heal->quarantine_ns = now_ns + quarantine_ns;
    heal->pause_ns = r2_outage_first_pause(health, heal);
    heal->next_ns = now_ns + r2_outage_jittered(health, heal->pause_ns);
    if (!path && !r2_health_has_carrier(health, rail)) {
        heal->next_ns = R2_NEVER_NS;
    }
    return heal->quarantine_ns;
}

/** The map says that it is well again. */
void r2_outage_end(r2_health_t *health, uint32_t host, uint32_t rail, bool path, uint64_t now_ns)
{
    r2_heal_t *heal = r2_outage_find(health, host, rail, path, false);

    if (NULL == heal || !heal->active) {
        return;
    }
    heal->active = false;
    --health->heal_count;
    heal->healed_ns = now_ns;
    heal->outage_ns = (heal->outage_ns + now_ns - heal->since_ns) / 2;
}

void r2_outage_carrier(r2_health_t *health, uint32_t rail, bool carrier, uint64_t now_ns)
{
    r2_heal_t *heal = &health->heals[rail];

    if (!heal->active) {
        return;
    }
    heal->good = 0;
    heal->proving = false;
    heal->pause_ns = r2_outage_first_pause(health, heal);
    heal->next_ns = carrier ? now_ns : R2_NEVER_NS;
    if (carrier && heal->flaps > 0 && now_ns < heal->quarantine_ns) {
        /* lanes would open as soon as there is a carrier: not over a rail that flaps */
        health->ports.rail_state(health->ports.arg, health->own_host, rail, true,
                                 heal->quarantine_ns);
    }
}
