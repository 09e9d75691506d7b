/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Healing: dead rails of our host and broken paths from it are probed until they answer again.
 */
/*
 * dead --(quarantine over, heal_probes answers in a row)--> proving: lanes may try again
 * proving --(a lane is up, or none was tried in time)--> healed: the writer raises the entry
 * proving --(lanes were tried, none came up)--> dead
 */
#include "r2_config.h"

#include "health/state.h"

#include <string.h>

/* The place for a rail of ours, or for the path to a host. @param make take a free one. */
static r2_heal_t *r2_heal_find(r2_health_t *health, uint32_t host, uint32_t rail, bool path, bool make)
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

static bool r2_heal_is_path(const r2_health_t *health, const r2_heal_t *heal)
{
    return heal->host != health->own_host;
}

static uint64_t r2_heal_jittered(r2_health_t *health, uint64_t pause_ns)
{
    return pause_ns + r2_prng_below(&health->prng,
                                    pause_ns * health->params.heal_jitter_percent / 100 + 1);
}

/* A probe is a packet or two of one process, a call one of each process to each peer: it may be made more often. */
#define R2_HEAL_OFTEN 4

static uint64_t r2_heal_longest_ns(const r2_health_t *health)
{
    return r2_health_ms(r2_max(health->params.heal_min_ms, health->params.heal_max_ms / R2_HEAL_OFTEN));
}

/* The first pause: long outages are probed seldom. Ranks behind the writer only stand in for it. */
static uint64_t r2_heal_first_pause(const r2_health_t *health, const r2_heal_t *heal)
{
    uint64_t pause_ns = r2_clamp_u64(heal->outage_ns / 16, r2_health_ms(health->params.heal_min_ms),
                                     r2_heal_longest_ns(health));

    return pause_ns * (1 + r2_members_position(health));
}

/** A rail of ours (host: own) or a path to a host is dead from now on. @return end of its quarantine. */
uint64_t r2_heal_start(r2_health_t *health, uint32_t host, uint32_t rail, bool path, uint64_t now_ns)
{
    r2_heal_t *heal = r2_heal_find(health, host, rail, path, true);
    uint64_t quarantine_ns = r2_health_ms(health->params.heal_min_ms);

    if (NULL == heal || heal->active) {
        return NULL == heal ? now_ns : heal->quarantine_ns;
    }
    if (0 != heal->healed_ns && now_ns < heal->healed_ns + r2_health_ms(health->params.flap_period_ms)) {
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
    heal->pause_ns = r2_heal_first_pause(health, heal);
    heal->next_ns = now_ns + r2_heal_jittered(health, heal->pause_ns);
    if (!path && !r2_health_has_carrier(health, rail)) {
        heal->next_ns = R2_NEVER_NS;
    }
    return heal->quarantine_ns;
}

/** The map says that it is well again. */
void r2_heal_end(r2_health_t *health, uint32_t host, uint32_t rail, bool path, uint64_t now_ns)
{
    r2_heal_t *heal = r2_heal_find(health, host, rail, path, false);

    if (NULL == heal || !heal->active) {
        return;
    }
    heal->active = false;
    --health->heal_count;
    heal->healed_ns = now_ns;
    heal->outage_ns = (heal->outage_ns + now_ns - heal->since_ns) / 2;
}

void r2_heal_carrier(r2_health_t *health, uint32_t rail, bool carrier, uint64_t now_ns)
{
    r2_heal_t *heal = &health->heals[rail];

    if (!heal->active) {
        return;
    }
    heal->good = 0;
    heal->proving = false;
    heal->pause_ns = r2_heal_first_pause(health, heal);
    heal->next_ns = carrier ? now_ns : R2_NEVER_NS;
    if (carrier && heal->flaps > 0 && now_ns < heal->quarantine_ns) {
        /* lanes would open as soon as there is a carrier: not over a rail that flaps */
        health->ports.rail_state(health->ports.arg, health->own_host, rail, true, heal->quarantine_ns);
    }
}

static void r2_heal_done(r2_health_t *health, const r2_heal_t *heal, const char *evidence,
                         uint64_t now_ns)
{
    const r2_health_entry_t *entry = r2_health_map_entry(&health->map, health->own_host, heal->rail);
    const r2_health_entry_t full = {.version = entry->version, .capacity = R2_CAPACITY_FULL};
    const r2_health_news_t news = {.time_ns = now_ns, .verdict = R2_VERDICT_HEALTHY,
                                   .rank = R2_NOBODY, .own = true, .since_ns = heal->since_ns,
                                   .evidence = evidence};

    if (r2_heal_is_path(health, heal)) {
        r2_spread_path(health, heal->host, heal->rail, false, R2_NOBODY, &news, now_ns);
    } else {
        r2_writer_claim(health, health->own_host, heal->rail, &full, &news, now_ns);
    }
}

/* A lane over the rail came up, or could not be opened. */
static void r2_heal_tried(r2_health_t *health, r2_heal_t *heal, bool up, uint64_t now_ns)
{
    if (NULL == heal || !heal->active) {
        return;
    }
    if (!up) {
        heal->unopened = heal->unopened || heal->proving;
    } else if (now_ns >= heal->quarantine_ns) {
        r2_heal_done(health, heal, "a lane is up", now_ns);
    }
}

void r2_heal_lane(r2_health_t *health, uint32_t host, uint32_t rail, bool up, uint64_t now_ns)
{
    r2_heal_tried(health, &health->heals[rail], up, now_ns);
    r2_heal_tried(health, r2_heal_find(health, host, rail, true, false), up, now_ns);
}

/* A path that answers probes and refuses lanes is of no use. Of a rail that says nothing. */
void r2_heal_refused(r2_health_t *health, uint32_t host, uint32_t rail, uint64_t now_ns)
{
    r2_heal_tried(health, r2_heal_find(health, host, rail, true, false), false, now_ns);
}

/* A host to probe from our rail: one that should answer, else any. */
static uint32_t r2_heal_target(const r2_health_t *health, r2_heal_t *heal)
{
    uint32_t tries, count = health->hosts->host_count, any = R2_NOBODY;

    if (r2_heal_is_path(health, heal)) {
        return heal->host;
    }
    for (tries = 0; tries < count; ++tries) {
        uint32_t host = heal->rotation++ % count;

        if (host == health->own_host || heal->rail >= r2_rails_of(health, host)) {
            continue;
        }
        any = host;
        if (r2_health_map_entry(&health->map, host, heal->rail)->capacity > 0 &&
            !r2_health_map_is_cut(&health->map, health->own_host, host, heal->rail)) {
            return host;
        }
    }
    return any;
}

static void r2_heal_failed(r2_health_t *health, r2_heal_t *heal, uint64_t now_ns)
{
    uint64_t longest_ns = r2_heal_longest_ns(health);

    heal->good = 0;
    heal->proving = heal->unopened = false;
    heal->pause_ns = r2_min(2 * heal->pause_ns,
                            r2_max(longest_ns, longest_ns * (1 + r2_members_position(health)) / 2));
    heal->next_ns = now_ns + r2_heal_jittered(health, heal->pause_ns);
}

/* Enough probes were answered: lanes may try. */
static void r2_heal_prove(r2_health_t *health, r2_heal_t *heal, uint64_t now_ns)
{
    heal->proving = true;
    heal->unopened = false;
    heal->prove_ns = now_ns + r2_health_ms(health->params.heal_min_ms) * (5 + r2_members_position(health));
    heal->next_ns = heal->prove_ns;
    if (r2_heal_is_path(health, heal)) {
        health->ports.path_state(health->ports.arg, heal->host, heal->rail, false, 0);
    } else {
        health->ports.rail_state(health->ports.arg, health->own_host, heal->rail, false, 0);
    }
}

void r2_heal_probed(r2_health_t *health, const r2_pending_t *probe, r2_answer_t answer, uint64_t now_ns)
{
    r2_heal_t *heal = &health->heals[probe->what];

    if (!heal->active || !heal->probing || heal->since_ns != probe->asked_id) {
        return;
    }
    heal->probing = false;
    if (R2_ANSWER_YES != answer) {
        r2_heal_failed(health, heal, now_ns);
    } else if (++heal->good >= health->params.heal_probes && now_ns >= heal->quarantine_ns) {
        r2_heal_prove(health, heal, now_ns);
    } else if (heal->good >= health->params.heal_probes) {
        heal->next_ns = heal->quarantine_ns; /* one more then, so that it is fresh */
    } else {
        heal->next_ns = now_ns + r2_health_ms(health->params.heal_min_ms) / 4;
    }
}

static void r2_heal_probe(r2_health_t *health, r2_heal_t *heal, uint64_t now_ns)
{
    const r2_pending_t what = {.purpose = R2_PURPOSE_HEAL, .asked_id = heal->since_ns,
                               .what = (uint32_t) (heal - health->heals)};
    uint32_t host = r2_heal_target(health, heal);

    if (R2_NOBODY == host) { /* no other host has this rail: that it has carrier is all there is to know */
        r2_heal_done(health, heal, "carrier is back; nobody to ask", now_ns);
        heal->next_ns = now_ns + r2_health_ms(health->params.heal_max_ms);
        return;
    }
    heal->probing = true;
    heal->next_ns = now_ns + 4 * r2_health_ms(health->params.failure_timeout_ms);
    if (!r2_probes_start(health, host, heal->rail,
                         r2_health_ms(health->params.failure_timeout_ms), &what)) {
        heal->probing = false;
        r2_heal_failed(health, heal, now_ns);
    }
}

void r2_heal_tick(r2_health_t *health, uint64_t now_ns)
{
    uint32_t idx;

    for (idx = 0; idx < R2_HEALS_MAX; ++idx) {
        r2_heal_t *heal = &health->heals[idx];

        if (!heal->active || now_ns < heal->next_ns) {
            continue;
        }
        if (!heal->proving) {
            r2_heal_probe(health, heal, now_ns);
        } else if (heal->unopened) {
            r2_heal_failed(health, heal, now_ns);
        } else {
            heal->next_ns = now_ns + r2_health_ms(health->params.heal_max_ms);
            r2_heal_done(health, heal, "probes are answered; no lane was tried", now_ns);
        }
    }
}

uint64_t r2_heal_deadline_ns(const r2_health_t *health)
{
    uint64_t deadline_ns = R2_NEVER_NS;
    uint32_t idx, left = health->heal_count;

    for (idx = 0; left > 0 && idx < R2_HEALS_MAX; ++idx) {
        if (health->heals[idx].active) {
            --left;
            deadline_ns = r2_min(deadline_ns, health->heals[idx].next_ns);
        }
    }
    return deadline_ns;
}
