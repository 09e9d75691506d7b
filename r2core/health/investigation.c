/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Investigations: from a suspicion whose turn has come to a verdict.
 */
#include "r2_config.h"

#include "health/machine.h"

#include <stdio.h>
#include <string.h>

/* Deadline in halves of the failure timeout: attempts at 0, 1 and 2 halves; a witness that is asked
 * last needs two halves for its probe; the rest is for its notices. */
#define R2_INVESTIGATION_HALVES 7
#define R2_INVESTIGATION_LONG   8 /* times longer where the rail was soon back the last time */
/* Halves for which answers are awaited after the deadline, if they may lie unread. */
#define R2_INVESTIGATION_UNREAD 2

static r2_investigation_t *r2_investigation_by_id(r2_health_t *health, uint64_t id)
{
    uint32_t idx;

    for (idx = 0; idx < R2_INVESTIGATIONS_MAX; ++idx) {
        r2_investigation_t *at = &health->investigations[idx];

        if (at->active && id >= at->id && id < at->id + R2_IDS_PER_INVESTIGATION) {
            return at;
        }
    }
    return NULL;
}

/* The next host that could tell: it has the rail, and nothing but a plane is said against it. */
static uint32_t r2_investigation_witness(r2_health_t *health, uint32_t host, uint32_t rail,
                                         uint32_t except)
{
    uint32_t count = health->hosts->host_count, tries;

    for (tries = 0; tries < count; ++tries) {
        uint32_t other = health->rotation++ % count;
        const r2_health_entry_t *entry = r2_health_map_entry(&health->map, other, rail);

        if (other != health->own_host && other != host && other != except &&
            rail < r2_rails_of(health, other) &&
            (entry->capacity > 0 || R2_VERDICT_PLANE == entry->verdict) &&
            0 == health->accused_ns[r2_health_at(health, other, rail)] &&
            !r2_health_map_is_cut(&health->map, health->own_host, other, rail)) {
            return other;
        }
    }
    return R2_NOBODY;
}

/*
 * A rail that is back soon after its silence may only be so slow that probes and acknowledgements
 * come too late: until it has proved itself it is asked for longer, so that what lies in its queues
 * gets through.
 */
static bool r2_investigation_is_back(const r2_health_t *health, uint32_t host, uint32_t rail,
                                     uint64_t now_ns)
{
    const uint64_t settled_ns = health->settled_ns[r2_health_at(health, host, rail)];

    return 0 != settled_ns && now_ns + r2_health_ms(health->params.heal_max_ms) <
                                  settled_ns + r2_health_ms(health->params.flap_period_ms);
}

static uint64_t r2_investigation_half_ns(const r2_health_t *health, uint32_t host, uint32_t rail,
                                         uint64_t now_ns)
{
    const bool back = r2_investigation_is_back(health, host, rail, now_ns) ||
                      r2_investigation_is_back(health, health->own_host, rail, now_ns);

    return r2_health_ms(health->params.failure_timeout_ms) / 2 * (back ? R2_INVESTIGATION_LONG : 1);
}

/*
 * Its turn has come, perhaps long after the suspicion: what was heard and known then is no evidence
 * now.
 * @return false: nothing is left to find out.
 */
static bool r2_investigation_begin(r2_health_t *health, r2_investigation_t *at, uint64_t now_ns)
{
    const uint32_t host = at->host, rail = at->rail;

    if (health->gone[at->rank] || r2_suspicion_explained(health, host, rail)) {
        r2_suspicion_close(health, at);
        return false;
    }
    at->begun_ns = now_ns;
    at->half_ns = r2_investigation_half_ns(health, host, rail, now_ns);
    at->deadline_ns = now_ns + at->half_ns * R2_INVESTIGATION_HALVES;
    at->witness = r2_investigation_witness(health, host, rail, R2_NOBODY);
    at->second = R2_NOBODY == at->witness
                     ? R2_NOBODY
                     : r2_investigation_witness(health, host, rail, at->witness);
    at->own_version = r2_health_map_entry(&health->map, health->own_host, rail)->version;
    at->peer_version = r2_health_map_entry(&health->map, host, rail)->version;
    at->tally[R2_QUERY_PEER].open = at->tally[R2_QUERY_BEACON].open = true;
    at->tally[R2_QUERY_OTHERS].open =
        r2_rails_of(health, health->own_host) > 1 && r2_rails_of(health, host) > 1;
    at->tally[R2_QUERY_WITNESS].open = R2_NOBODY != at->witness;
    at->tally[R2_QUERY_WITNESS_PEER].open = R2_NOBODY != at->witness;
    at->tally[R2_QUERY_SECOND].open = R2_NOBODY != at->second;
    at->tally[R2_QUERY_SECOND_PEER].open = R2_NOBODY != at->second;
    at->tally[R2_QUERY_WITNESS_SECOND].open = R2_NOBODY != at->second;
    return true;
}

/* ---- verdict ---- */

static void r2_investigation_text(const r2_health_t *health, const r2_investigation_t *at,
                                  const r2_evidence_t *evidence, char *text_p, size_t bytes)
{
    static const char *const words[] = {"not known", "answers", "silent"};
    const r2_host_t *hosts = health->hosts->hosts;
    bool one = R2_NOBODY != at->witness, two = R2_NOBODY != at->second;

    (void) snprintf(text_p, bytes,
                    "peer %s, witness %s %s, from there %s, second witness %s %s, from there %s, "
                    "other rails %s, process %s",
                    words[evidence->self_peer], one ? hosts[at->witness].name : "none",
                    words[evidence->self_witness], words[evidence->witness_peer],
                    two ? hosts[at->second].name : "none", words[evidence->self_second],
                    words[evidence->second_peer], words[evidence->others],
                    words[evidence->process]);
}

/* Accuses the NIC of one host: lanes over it stop at once, its owner is told. */
static void r2_investigation_accuse(r2_health_t *health, uint32_t host, uint32_t rail,
                                    uint32_t version, const r2_verdict_event_t *event,
                                    uint64_t now_ns)
{
    const r2_health_entry_t entry = {.version = version,
                                     .verdict = (uint8_t) event->verdict,
                                     .direction = (uint8_t) event->direction};
    bool writes = host == health->own_host && r2_members_is_owner(health);
    r2_verdict_event_t told = *event;

    if (!writes) {
        told.host = host;
        told.capacity = 0; /* what is claimed; the version comes with the owner's answer */
        health->accused_ns[r2_health_at(health, host, rail)] = r2_max(event->since_ns, 1ull);
        health->ports.rail_state(health->ports.arg, host, rail, true,
                                 now_ns + r2_health_ms(health->params.heal_max_ms));
        health->ports.event(health->ports.arg, &told);
    }
    r2_owner_claim(health, host, rail, &entry, event, now_ns);
}

static void r2_investigation_act(r2_health_t *health, const r2_investigation_t *at,
                                 const r2_conclusion_t *conclusion, r2_verdict_event_t *event,
                                 uint64_t now_ns)
{
    bool plane = R2_VERDICT_PLANE == conclusion->verdict;

    switch (conclusion->verdict) {
    case R2_VERDICT_NIC:
    case R2_VERDICT_PLANE:
        if (plane || 0 != (conclusion->blame & R2_BLAME_SELF)) {
            r2_investigation_accuse(health, health->own_host, at->rail, at->own_version, event,
                                    now_ns);
        }
        if (plane || 0 != (conclusion->blame & R2_BLAME_PEER)) {
            r2_investigation_accuse(health, at->host, at->rail, at->peer_version, event, now_ns);
        }
        break;
    case R2_VERDICT_PATH:
    case R2_VERDICT_AMBIGUOUS:
        r2_disseminate_path(health, at->host, at->rail, true, at->rank, event, now_ns);
        break;
    case R2_VERDICT_PEER_BUSY:
    case R2_VERDICT_PEER_GONE:
    case R2_VERDICT_PEER_SILENT:
        event->rank = at->rank;
        event->rail = R2_VERDICT_PEER_SILENT == conclusion->verdict ? R2_NOBODY : at->rail;
        health->ports.event(health->ports.arg, event);
        break;
    case R2_VERDICT_HEALTHY:
        health->ports.event(health->ports.arg, event);
        break;
    case R2_VERDICT_SLOW:
    case R2_VERDICT_COUNT:
        break;
    }
}

static void r2_investigation_end(r2_health_t *health, r2_investigation_t *at,
                                 const r2_evidence_t *evidence, const r2_conclusion_t *conclusion,
                                 uint64_t now_ns)
{
    size_t where = r2_health_at(health, at->host, at->rail);
    r2_investigation_t ended = *at;
    char text[512];
    r2_verdict_event_t event = {.time_ns = now_ns,
                                .verdict = conclusion->verdict,
                                .direction = conclusion->direction,
                                .host = at->host,
                                .host_b = R2_NOBODY,
                                .rail = at->rail,
                                .rank = R2_NOBODY,
                                .capacity =
                                    r2_health_map_entry(&health->map, at->host, at->rail)->capacity,
                                .own = true,
                                .since_ns = at->since_ns,
                                .evidence = text};

    r2_suspicion_close(health, at);
    health->pause_ns[where] =
        r2_clamp_u64(2 * health->pause_ns[where], r2_health_ms(health->params.heal_min_ms),
                     r2_health_ms(health->params.heal_max_ms));
    health->quiet_ns[where] = now_ns + health->pause_ns[where];
    if (r2_suspicion_explained(health, ended.host, ended.rail)) {
        return;
    }
    r2_investigation_text(health, &ended, evidence, text, sizeof(text));
    r2_investigation_act(health, &ended, conclusion, &event, now_ns);
}

/* A direction takes the beacons' answers, which may come after the verdict is clear. */
static bool r2_investigation_waits(const r2_investigation_t *at, const r2_conclusion_t *conclusion)
{
    const r2_tally_t *beacon = &at->tally[R2_QUERY_BEACON];

    return (R2_VERDICT_NIC == conclusion->verdict || R2_VERDICT_PATH == conclusion->verdict) &&
           0 == beacon->yes + beacon->no;
}

/* A process that was stopped itself has asked too little and has answers from another time. */
static bool r2_investigation_overslept(r2_health_t *health, r2_investigation_t *at, uint64_t now_ns)
{
    if (now_ns > at->next_ns + r2_health_ms(health->params.failure_timeout_ms)) {
        r2_suspicion_close(health, at); /* a lane that is still broken will say so again */
    }
    return !at->active;
}

/*
 * @param late no answer is waited for any more. It is false for each of several answers that are
 * there at once, as after a pause: the first of them is not all that is known.
 */
static void r2_investigation_weigh(r2_health_t *health, r2_investigation_t *at, bool late,
                                   uint64_t now_ns)
{
    const bool final = late || r2_queries_settled(at);
    r2_conclusion_t conclusion;
    r2_evidence_t evidence;

    if (r2_investigation_overslept(health, at, now_ns)) {
        return;
    }
    r2_queries_evidence(health, at, final, &evidence);
    if (r2_verdict_conclude(&evidence, final, &conclusion) &&
        (final || !r2_investigation_waits(at, &conclusion))) {
        r2_investigation_end(health, at, &evidence, &conclusion, now_ns);
    }
}

/* ---- answers ---- */

static void r2_tally_add(r2_tally_t *tally, r2_answer_t answer)
{
    tally->yes += R2_ANSWER_YES == answer;
    tally->no += R2_ANSWER_NO == answer;
    tally->unable += R2_ANSWER_UNKNOWN == answer;
}

void r2_investigation_probed(r2_health_t *health, const r2_pending_t *probe, r2_answer_t answer,
                             uint64_t now_ns)
{
    r2_investigation_t *at = r2_investigation_by_id(health, probe->query_id);

    if (NULL != at) {
        r2_tally_add(&at->tally[probe->what], answer);
        r2_investigation_weigh(health, at, false, now_ns);
    }
}

/** A witness or the peer answered by notice; perhaps twice. */
void r2_investigation_answered(r2_health_t *health, uint64_t id, r2_answer_t answer,
                               uint64_t now_ns)
{
    r2_investigation_t *at = r2_investigation_by_id(health, id);
    uint32_t query, attempt;
    r2_tally_t *tally;

    if (NULL == at) {
        return;
    }
    query = (uint32_t) (id - at->id) % R2_QUERY_COUNT;
    attempt = (uint32_t) (id - at->id) / R2_QUERY_COUNT;
    tally = &at->tally[query];
    if (query <= R2_QUERY_OTHERS || attempt >= R2_ATTEMPTS || !tally->open) {
        return;
    }
    r2_tally_add(tally, answer);
    if (R2_ANSWER_NO == answer) {
        tally->no_attempts |= (uint8_t) (1u << attempt);
    }
    r2_investigation_weigh(health, at, false, now_ns);
}

/** The peer's beacon came in. */
void r2_investigation_heard(r2_health_t *health, uint64_t id)
{
    r2_investigation_t *at = r2_investigation_by_id(health, id);

    if (NULL != at) {
        at->beacon_in = true;
    }
}

/*
 * True if answers that came in time may lie in sockets of this process: it comes to the end later
 * than it wanted to, or was away just before. What is missing is no evidence then, for a while.
 */
static bool r2_investigation_reads_on(const r2_health_t *health, const r2_investigation_t *at,
                                      uint64_t now_ns)
{
    return now_ns < at->unread_ns &&
           (now_ns > at->next_ns + at->half_ns / 2 ||
            (NULL != health->ports.reads_on && health->ports.reads_on(health->ports.arg)));
}

/* What is due: the next attempt, another look at what came, or the end. */
static void r2_investigation_go_on(r2_health_t *health, r2_investigation_t *at, uint64_t now_ns)
{
    const bool due = now_ns >= at->deadline_ns;
    bool late;

    if (due && 0 == at->unread_ns) {
        at->unread_ns = now_ns + R2_INVESTIGATION_UNREAD * at->half_ns;
    }
    late = due && !r2_investigation_reads_on(health, at, now_ns);
    if (at->attempts < R2_ATTEMPTS) {
        r2_queries_put(health, at);
    }
    if (at->attempts < R2_ATTEMPTS) {
        at->next_ns = now_ns + at->half_ns;
    } else {
        at->next_ns = due ? now_ns + at->half_ns / 2 : at->deadline_ns;
    }
    r2_investigation_weigh(health, at, late, now_ns);
}

void r2_investigation_tick(r2_health_t *health, uint64_t now_ns)
{
    uint32_t idx;

    for (idx = 0; idx < R2_INVESTIGATIONS_MAX; ++idx) {
        r2_investigation_t *at = &health->investigations[idx];

        if (at->active && now_ns >= at->next_ns &&
            !r2_investigation_overslept(health, at, now_ns) &&
            (at->attempts > 0 || r2_investigation_begin(health, at, now_ns))) {
            r2_investigation_go_on(health, at, now_ns);
        }
    }
}

uint64_t r2_investigation_deadline_ns(const r2_health_t *health)
{
    uint64_t deadline_ns = R2_NEVER_NS;
    uint32_t idx, left = health->investigation_count;

    for (idx = 0; left > 0 && idx < R2_INVESTIGATIONS_MAX; ++idx) {
        if (health->investigations[idx].active) {
            --left;
            deadline_ns = r2_min(deadline_ns, health->investigations[idx].next_ns);
        }
    }
    return deadline_ns;
}
