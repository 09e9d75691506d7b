/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The health machine: creation, evidence to its files, timers.
 */
#include "r2_config.h"

#include "health/machine.h"

#include <stdlib.h>
#include <string.h>

/* Names and members of hosts. */
static void r2_health_place(r2_health_t *health)
{
    uint32_t rank, host;

    for (host = 0; host < health->hosts->host_count; ++host) {
        health->lowest[host] = R2_NOBODY;
    }
    for (rank = health->hosts->rank_count; rank-- > 0;) {
        host = health->hosts->host_of[rank];
        health->next_member[rank] = R2_NOBODY;
        if (host < health->hosts->host_count) {
            health->next_member[rank] = health->lowest[host];
            health->lowest[host] = rank;
        }
    }
}

/** Most rails of any host. */
static uint32_t r2_health_rails(const r2_hosts_t *hosts)
{
    uint32_t rails = 0;

    for (uint32_t host = 0; host < hosts->host_count; ++host) {
        rails = r2_max(rails, hosts->hosts[host].rail_count);
    }
    return rails;
}

static r2_status_t r2_health_check(const r2_hosts_t *hosts, uint32_t rank)
{
    const uint32_t rails = r2_health_rails(hosts);

    return rank < hosts->rank_count && hosts->host_of[rank] < hosts->host_count && rails > 0 &&
                   rails <= R2_RAILS_MAX
               ? R2_OK
               : R2_ERR_PARAM;
}

static r2_status_t r2_health_allocate(r2_health_t *health)
{
    const r2_hosts_t *hosts = health->hosts;
    size_t entries = (size_t) hosts->host_count * health->rail_count;

    health->lowest = calloc(hosts->host_count, sizeof(health->lowest[0]));
    health->next_member = calloc(hosts->rank_count, sizeof(health->next_member[0]));
    health->gone = calloc(hosts->rank_count, sizeof(health->gone[0]));
    health->quiet_ns = calloc(entries, sizeof(health->quiet_ns[0]));
    health->pause_ns = calloc(entries, sizeof(health->pause_ns[0]));
    health->accused_ns = calloc(entries, sizeof(health->accused_ns[0]));
    health->since_ns = calloc(entries, sizeof(health->since_ns[0]));
    health->settled_ns = calloc(entries, sizeof(health->settled_ns[0]));
    if (NULL == health->lowest || NULL == health->next_member || NULL == health->gone ||
        NULL == health->quiet_ns || NULL == health->pause_ns || NULL == health->accused_ns ||
        NULL == health->since_ns || NULL == health->settled_ns) {
        return R2_ERR_NO_MEMORY;
    }
    return r2_health_map_init(&health->map, hosts->host_count, health->rail_count);
}

r2_status_t r2_health_create(const r2_hosts_t *hosts, const r2_health_self_t *self,
                             const r2_params_t *params, const r2_health_ports_t *ports,
                             uint64_t now_ns, r2_health_t **health_p)
{
    r2_status_t status = r2_health_check(hosts, self->rank);
    r2_health_t *health;

    if (R2_OK != status) {
        return status;
    }
    health = calloc(1, sizeof(*health));
    if (NULL == health) {
        return R2_ERR_NO_MEMORY;
    }
    health->hosts = hosts;
    health->self = *self;
    health->params = *params;
    health->ports = *ports;
    health->own_host = hosts->host_of[self->rank];
    health->outbox_max = R2_OUTBOX_MAX;
    health->retell_ns = R2_NEVER_NS;
    health->rail_count = r2_health_rails(hosts);
    status = r2_health_allocate(health);
    if (R2_OK != status) {
        r2_health_destroy(health);
        return status;
    }
    r2_health_place(health);
    r2_prng_seed(&health->prng, now_ns ^ (uint64_t) self->rank << 40);
    /* Ids of different processes differ, so that a late answer finds nothing. */
    health->next_id = (uint64_t) self->rank << 40 | 1;
    health->outbox_ns = R2_NEVER_NS;
    r2_capacity_init(health);
    health->rotation = health->own_host + 1;
    *health_p = health;
    return R2_OK;
}

void r2_health_destroy(r2_health_t *health)
{
    if (NULL == health) {
        return;
    }
    r2_outbox_fini(health);
    r2_health_map_fini(&health->map);
    free(health->lowest);
    free(health->next_member);
    free(health->gone);
    free(health->quiet_ns);
    free(health->pause_ns);
    free(health->accused_ns);
    free(health->since_ns);
    free(health->settled_ns);
    free(health);
}

/* ---- evidence ---- */

static bool r2_health_concerns(const r2_health_t *health, uint32_t rank, uint32_t rail)
{
    return rank < health->hosts->rank_count &&
           health->hosts->host_of[rank] < health->hosts->host_count &&
           health->hosts->host_of[rank] != health->own_host &&
           rail < r2_rails_of(health, health->own_host);
}

/*
 * A lane could not be opened. Soon after a repair that says nothing: the call may be from before
 * it, and hosts ask for each other's hardware address once a second only. It is tried again.
 */
static void r2_health_unopened(r2_health_t *health, uint32_t rank, uint32_t rail, r2_status_t why,
                               uint64_t now_ns)
{
    uint32_t host = health->hosts->host_of[rank];

    if (R2_ERR_REFUSED != why && R2_ERR_UNRESPONSIVE != why) { /* those are answers */
        r2_heal_lane(health, host, rail, false, now_ns);
    } else if (R2_ERR_REFUSED == why && !health->gone[rank]) {
        r2_heal_refused(health, host, rail, now_ns);
    }
    if (now_ns >= health->settled_ns[r2_health_at(health, host, rail)] &&
        now_ns >= health->settled_ns[r2_health_at(health, health->own_host, rail)]) {
        r2_investigate(health, rank, rail, now_ns);
    }
}

/*
 * The process is heard, and lanes to it are refused over this rail, or carry nothing: probes cannot
 * tell, since a refusal is all they ask for, and over RDMA they go another way.
 */
static void r2_health_unusable(r2_health_t *health, uint32_t host, uint32_t rail,
                               const char *evidence, uint64_t now_ns)
{
    const r2_verdict_event_t event = {.time_ns = now_ns,
                                      .verdict = R2_VERDICT_PATH,
                                      .host = health->own_host,
                                      .host_b = host,
                                      .rail = rail,
                                      .rank = R2_NOBODY,
                                      .own = true,
                                      .since_ns = now_ns,
                                      .evidence = evidence};

    if (!r2_suspicion_explained(health, host, rail)) {
        r2_disseminate_path(health, host, rail, true, R2_NOBODY, &event, now_ns);
    }
}

void r2_health_lane(r2_health_t *health, uint32_t rank, uint32_t rail, uint32_t peer_rail,
                    r2_lane_event_t event, r2_status_t why, uint64_t now_ns)
{
    uint32_t host;

    if (!r2_health_concerns(health, rank, rail) || rail != peer_rail) {
        return;
    }
    host = health->hosts->host_of[rank];
    switch (event) {
    case R2_LANE_EVENT_UP:
        r2_suspicion_drop(health, host, rail);
        health->pause_ns[r2_health_at(health, host, rail)] = 0;
        r2_heal_lane(health, host, rail, true, now_ns);
        break;
    case R2_LANE_EVENT_UNOPENED:
        r2_health_unopened(health, rank, rail, why, now_ns);
        break;
    case R2_LANE_EVENT_REFUSED:
        r2_health_unusable(health, host, rail,
                           "connections are refused here while the process answers elsewhere: "
                           "look for a firewall, or a device that was made anew",
                           now_ns);
        break;
    case R2_LANE_EVENT_MUTE:
        r2_health_unusable(health, host, rail,
                           "RDMA connections are made here and carry nothing, while the process "
                           "answers elsewhere: look for a port that is down, or a firewall or "
                           "switch that drops RoCE (UDP port 4791)",
                           now_ns);
        r2_heal_refused(health, host, rail, now_ns);
        break;
    case R2_LANE_EVENT_DOUBT:
    case R2_LANE_EVENT_SUSPECT:
    case R2_LANE_EVENT_FAILED:
        r2_investigate(health, rank, rail, now_ns);
        break;
    }
}

void r2_health_carrier(r2_health_t *health, uint32_t rail, bool carrier, const char *evidence,
                       uint64_t now_ns)
{
    const r2_health_entry_t *entry;
    r2_health_entry_t dead = {.verdict = R2_VERDICT_NIC};
    const r2_verdict_event_t event = {.time_ns = now_ns,
                                      .since_ns = now_ns,
                                      .own = true,
                                      .verdict = R2_VERDICT_NIC,
                                      .host = health->own_host,
                                      .host_b = R2_NOBODY,
                                      .rail = rail,
                                      .rank = R2_NOBODY,
                                      .evidence = evidence};

    if (rail >= r2_rails_of(health, health->own_host)) {
        return;
    }
    r2_outage_carrier(health, rail, carrier, now_ns);
    if (carrier) {
        return;
    }
    r2_suspicion_drop(health, health->own_host, rail);
    health->ports.rail_state(health->ports.arg, health->own_host, rail, true,
                             now_ns + r2_health_ms(health->params.heal_min_ms));
    entry = r2_health_map_entry(&health->map, health->own_host, rail);
    dead.version = entry->version;
    if (0 != entry->capacity) {
        if (!r2_members_is_owner(health)) {
            health->accused_ns[r2_health_at(health, health->own_host, rail)] = now_ns;
            health->ports.event(health->ports.arg, &event);
        }
        r2_owner_claim(health, health->own_host, rail, &dead, &event, now_ns);
    }
}

void r2_health_rate(r2_health_t *health, uint32_t rank, uint32_t rail, bool outbound,
                    uint64_t bytes, uint64_t interval_ns, uint64_t now_ns)
{
    if (r2_health_concerns(health, rank, rail) && interval_ns > 0) {
        r2_capacity_rate(health, rank, rail, outbound, bytes, now_ns);
    }
}

void r2_health_peer(r2_health_t *health, uint32_t rank, bool silent, bool gone, uint64_t now_ns)
{
    uint32_t rail, host;

    if (rank >= health->hosts->rank_count ||
        health->hosts->host_of[rank] >= health->hosts->host_count) {
        return;
    }
    host = health->hosts->host_of[rank];
    if (gone) {
        r2_disseminate_gone(health, rank, now_ns);
        return;
    }
    for (rail = 0; silent && host != health->own_host && rail < health->rail_count; ++rail) {
        if (r2_health_concerns(health, rank, rail) && !r2_suspicion_explained(health, host, rail)) {
            r2_investigate(health, rank, rail, now_ns); /* the others come as a query of it */
            return;
        }
    }
}

void r2_health_heard(r2_health_t *health, uint32_t rank, uint32_t rail, uint64_t id,
                     uint64_t now_ns)
{
    (void) now_ns;
    health->beacons[health->beacon_next++ % R2_BEACONS_MAX] =
        (r2_beacon_t){.id = id, .rank = rank, .rail = rail};
    r2_investigation_heard(health, id);
}

void r2_health_probed(r2_health_t *health, uint64_t id, bool alive, bool unable, uint64_t now_ns)
{
    const r2_answer_t answer = unable ? R2_ANSWER_UNKNOWN : alive ? R2_ANSWER_YES : R2_ANSWER_NO;
    const r2_pending_t probe = r2_probes_take(health, id);

    switch (probe.purpose) {
    case R2_PURPOSE_QUERY:
        r2_investigation_probed(health, &probe, answer, now_ns);
        break;
    case R2_PURPOSE_SERVE:
        r2_probes_served(health, &probe, answer);
        break;
    case R2_PURPOSE_HEAL:
        r2_heal_probed(health, &probe, answer, now_ns);
        break;
    case R2_PURPOSE_NONE:
        break;
    }
}

/* A notice that is acknowledged came in, or nobody else of our host took it. */
static void r2_health_told(r2_health_t *health, uint32_t from, const r2_notice_t *notice,
                           uint64_t now_ns)
{
    if (R2_NOTICE_CLAIM == notice->kind) {
        r2_owner_claimed(health, from, notice, now_ns);
    } else {
        r2_disseminate_notice(health, from, notice, now_ns);
    }
}

r2_status_t r2_health_noticed(r2_health_t *health, uint32_t rank, const void *data, size_t bytes,
                              uint64_t now_ns)
{
    r2_notice_t notice, ack = {.kind = R2_NOTICE_ACK};

    if (R2_OK != r2_notice_parse(data, bytes, &notice) || rank >= health->hosts->rank_count ||
        health->hosts->host_of[rank] >= health->hosts->host_count || rank == health->self.rank ||
        (R2_NOTICE_GONE == notice.kind && notice.host_a >= health->hosts->rank_count)) {
        return R2_ERR_WIRE;
    }
    switch ((r2_notice_kind_t) notice.kind) {
    case R2_NOTICE_ACK:
        r2_outbox_acknowledged(health, rank, notice.id);
        break;
    case R2_NOTICE_WANT_PROBE:
        r2_probes_serve(health, rank, &notice, now_ns);
        break;
    case R2_NOTICE_WANT_BEACON:
        r2_probes_beacon(health, rank, &notice);
        break;
    case R2_NOTICE_ANSWER_PROBE:
    case R2_NOTICE_ANSWER_BEACON:
        r2_investigation_answered(health, notice.id, (r2_answer_t) notice.answer, now_ns);
        break;
    case R2_NOTICE_CHANGE:
    case R2_NOTICE_PATH:
    case R2_NOTICE_GONE:
    case R2_NOTICE_CLAIM:
        ack.id = notice.id;
        r2_health_send(health, rank, &ack);
        r2_health_told(health, rank, &notice, now_ns);
        break;
    case R2_NOTICE_KIND_END:
        break;
    }
    return R2_OK;
}

/* ---- timers ---- */

static void r2_health_outbox_tick(r2_health_t *health, uint64_t now_ns)
{
    r2_notice_t own[R2_OUTBOX_OWN_MAX];
    uint32_t own_count;

    if (r2_outbox_has_room(health, now_ns)) {
        r2_disseminate_rest(health, now_ns);
    }
    own_count = r2_outbox_tick(health, own, now_ns);
    for (uint32_t idx = 0; idx < own_count; ++idx) {
        r2_health_told(health, health->self.rank, &own[idx], now_ns);
    }
}

void r2_health_tick(r2_health_t *health, uint64_t now_ns)
{
    r2_investigation_tick(health, now_ns);
    r2_heal_tick(health, now_ns);
    r2_health_outbox_tick(health, now_ns);
}

uint64_t r2_health_deadline_ns(const r2_health_t *health)
{
    return r2_min(r2_min(health->outbox_ns, health->retell_ns),
                  r2_min(r2_investigation_deadline_ns(health), r2_heal_deadline_ns(health)));
}

/* ---- answers ---- */

const r2_health_map_t *r2_health_map(const r2_health_t *health)
{
    return &health->map;
}

bool r2_health_gone(const r2_health_t *health, uint32_t rank)
{
    return rank < health->hosts->rank_count && health->gone[rank];
}
