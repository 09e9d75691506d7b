/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Healing: dead rails of our host and broken paths from it are probed until they answer again.
 */
/*
 * dead --(quarantine over, heal_probes answers in a row)--> proving: lanes may try again
 * proving --(a lane is up, or none was tried in time)--> healed: the owner raises the entry
 * proving --(lanes were tried, none came up)--> dead
 */
#include "r2_config.h"

#include "health/machine.h"

static void r2_heal_done(r2_health_t *health, const r2_heal_t *heal, const char *evidence,
                         uint64_t now_ns)
{
    const r2_health_entry_t *entry =
        r2_health_map_entry(&health->map, health->own_host, heal->rail);
    const r2_health_entry_t full = {.version = entry->version, .capacity = R2_CAPACITY_FULL};
    const r2_verdict_event_t event = {.time_ns = now_ns,
                                      .verdict = R2_VERDICT_HEALTHY,
                                      .rank = R2_NOBODY,
                                      .own = true,
                                      .since_ns = heal->since_ns,
                                      .evidence = evidence};

    if (r2_outage_is_path(health, heal)) {
        r2_disseminate_path(health, heal->host, heal->rail, false, R2_NOBODY, &event, now_ns);
    } else {
        r2_owner_claim(health, health->own_host, heal->rail, &full, &event, now_ns);
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
    r2_heal_tried(health, r2_outage_find(health, host, rail, true, false), up, now_ns);
}

/* A path that answers probes and refuses lanes is of no use. Of a rail that says nothing. */
void r2_heal_refused(r2_health_t *health, uint32_t host, uint32_t rail, uint64_t now_ns)
{
    r2_heal_tried(health, r2_outage_find(health, host, rail, true, false), false, now_ns);
}

/* A host to probe from our rail: one that should answer, else any. */
static uint32_t r2_heal_target(const r2_health_t *health, r2_heal_t *heal)
{
    uint32_t tries, count = health->hosts->host_count, any = R2_NOBODY;

    if (r2_outage_is_path(health, heal)) {
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
    uint64_t longest_ns = r2_outage_longest_ns(health);

    heal->good = 0;
    heal->proving = heal->unopened = false;
    heal->pause_ns = r2_min(2 * heal->pause_ns,
                            r2_max(longest_ns, longest_ns * (1 + r2_members_position(health)) / 2));
    heal->next_ns = now_ns + r2_outage_jittered(health, heal->pause_ns);
}

/* Enough probes were answered: lanes may try. */
static void r2_heal_prove(r2_health_t *health, r2_heal_t *heal, uint64_t now_ns)
{
    heal->proving = true;
    heal->unopened = false;
    heal->prove_ns =
        now_ns + r2_health_ms(health->params.heal_min_ms) * (5 + r2_members_position(health));
    heal->next_ns = heal->prove_ns;
    if (r2_outage_is_path(health, heal)) {
        health->ports.path_state(health->ports.arg, heal->host, heal->rail, false, 0);
    } else {
        health->ports.rail_state(health->ports.arg, health->own_host, heal->rail, false, 0);
    }
}

static bool r2_heal_is_unprobed(const r2_health_t *health, const r2_heal_t *heal)
{
    return NULL != health->ports.unprobed && health->ports.unprobed(health->ports.arg, heal->rail);
}

void r2_heal_probed(r2_health_t *health, const r2_pending_t *probe, r2_answer_t answer,
                    uint64_t now_ns)
{
    r2_heal_t *heal = &health->heals[probe->what];

    if (!heal->active || !heal->probing || heal->since_ns != probe->query_id) {
        return;
    }
    heal->probing = false;
    if (R2_ANSWER_UNKNOWN == answer && r2_heal_is_unprobed(health, heal)) {
        heal->good = r2_max(heal->good, health->params.heal_probes); /* lanes prove it */
        answer = R2_ANSWER_YES;
    }
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
    const r2_pending_t what = {.purpose = R2_PURPOSE_HEAL,
                               .query_id = heal->since_ns,
                               .what = (uint32_t) (heal - health->heals)};
    uint32_t host = r2_heal_target(health, heal);

    /* no other host has this rail: that it has carrier is all there is to know */
    if (R2_NOBODY == host) {
        r2_heal_done(health, heal, "carrier is back; nobody to ask", now_ns);
        heal->next_ns = now_ns + r2_health_ms(health->params.heal_max_ms);
        return;
    }
    heal->probing = true;
    heal->next_ns = now_ns + 4 * r2_health_ms(health->params.failure_timeout_ms);
    if (!r2_probes_start(health, host, heal->rail, r2_health_ms(health->params.failure_timeout_ms),
                         &what)) {
        heal->probing = false;
        r2_heal_failed(health, heal, now_ns);
    }
}

/* Probes say nothing of this lane, or of any of the rail, and one is up soon, or never. */
static bool r2_heal_is_tried(const r2_health_t *health, const r2_heal_t *heal)
{
    const r2_health_ports_t *ports = &health->ports;

    if (NULL == ports->mute) {
        return false;
    }
    if (r2_outage_is_path(health, heal)) {
        return ports->mute(ports->arg, heal->host, heal->rail);
    }
    return r2_heal_is_unprobed(health, heal) && ports->own_mute(ports->arg, heal->rail);
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
        } else if (r2_heal_is_tried(health, heal)) {
            heal->next_ns = now_ns + r2_health_ms(health->params.heal_min_ms);
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
