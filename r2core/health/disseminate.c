/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Spreading of changes: between the owners of hosts, then to the processes of each host.
 */
/*
 * Host h tells the hosts h +- 1, 2, 4, ...; who hears something new does the same. After s steps
 * every host within 2^s of the first has it. Example, 7 hosts, change at host 0 ("." not yet): step
 * 0   0 . . . . . . step 1   0 1 2 . 4 5 6     -> 1, 2, 4 and 6, 5, 3 (modulo 7: 0 - 4 = 3) step 2
 * 0 1 2 3 4 5 6
 */
#include "r2_config.h"

#include "health/machine.h"

/* What is known of one thing, as a notice. */
r2_notice_t r2_disseminate_change(const r2_health_t *health, uint32_t host, uint32_t rail)
{
    const r2_health_entry_t *entry = r2_health_map_entry(&health->map, host, rail);

    return (r2_notice_t){.kind = R2_NOTICE_CHANGE,
                         .host_a = health->lowest[host],
                         .rail = rail,
                         .entry_version = entry->version,
                         .capacity = entry->capacity,
                         .verdict = entry->verdict,
                         .direction = entry->direction};
}

static r2_notice_t r2_disseminate_exception(const r2_health_t *health,
                                            const r2_health_exception_t *path)
{
    return (r2_notice_t){.kind = R2_NOTICE_PATH,
                         .host_a = health->lowest[path->host_a],
                         .host_b = health->lowest[path->host_b],
                         .rail = path->rail,
                         .entry_version = path->version};
}

/* To the hosts at distances of powers of two, both ways round; not back to where it came from. */
static void r2_disseminate_hosts(r2_health_t *health, const r2_notice_t *notice, uint32_t except,
                                 uint64_t now_ns)
{
    uint32_t count = health->hosts->host_count, own = health->own_host, step;

    for (step = 1; step < count; step *= 2) {
        uint32_t up = (own + step) % count, down = (own + count - step) % count;

        if (up != except) {
            r2_outbox_host(health, up, notice, now_ns);
        }
        if (down != except && down != up) {
            r2_outbox_host(health, down, notice, now_ns);
        }
    }
}

static void r2_disseminate_members(r2_health_t *health, const r2_notice_t *notice, uint32_t except,
                                   uint64_t now_ns)
{
    r2_notice_t fanout = *notice;
    uint32_t rank;

    fanout.flags = R2_NOTICE_FANOUT;
    for (rank = health->lowest[health->own_host]; R2_NOBODY != rank;
         rank = health->next_member[rank]) {
        if (rank != except) {
            r2_outbox_rank(health, rank, &fanout, now_ns);
        }
    }
}

/* Passes on what was new to us. acting: as the owner of our host. */
static void r2_disseminate_on(r2_health_t *health, const r2_notice_t *notice, uint32_t from,
                              bool acting, uint64_t now_ns)
{
    uint32_t except = R2_NOBODY == from ? R2_NOBODY : health->hosts->host_of[from];

    if (acting || r2_members_is_owner(health)) {
        r2_disseminate_hosts(health, notice, except, now_ns);
        r2_disseminate_members(health, notice, from, now_ns);
    } else {
        r2_outbox_host(health, health->own_host, notice, now_ns);
    }
}

static void r2_disseminate_one(r2_health_t *health, uint32_t to_host, const r2_notice_t *notice,
                               uint64_t now_ns)
{
    if (to_host == health->own_host) {
        r2_disseminate_on(health, notice, R2_NOBODY, true, now_ns);
    } else {
        r2_outbox_host(health, to_host, notice, now_ns);
    }
}

/*
 * What is known, as numbered facts: an entry of each rail of each host, exceptions, processes that
 * are gone, and what was concluded here and its owner has not put into the map.
 */
static uint32_t r2_disseminate_facts(const r2_health_t *health)
{
    return 2 * health->hosts->host_count * health->rail_count + R2_HEALTH_EXCEPTIONS_MAX +
           health->hosts->rank_count;
}

/* @return false: there is nothing to be told of this number. */
static bool r2_disseminate_fact(const r2_health_t *health, uint32_t at, r2_notice_t *notice_p)
{
    const uint32_t entries = health->hosts->host_count * health->rail_count;
    const uint32_t host = at % entries / health->rail_count,
                   rail = at % entries % health->rail_count;

    if (at < entries) {
        *notice_p = r2_disseminate_change(health, host, rail);
        return notice_p->entry_version > 0;
    }
    if (at < 2 * entries) {
        *notice_p = (r2_notice_t){
            .kind = R2_NOTICE_CLAIM, .host_a = health->lowest[host], .rail = rail,
            .entry_version = r2_health_map_entry(&health->map, host, rail)->version,
            .verdict = R2_VERDICT_NIC};
        return 0 != health->accused_ns[r2_health_at(health, host, rail)];
    }
    at -= 2 * entries;
    if (at < R2_HEALTH_EXCEPTIONS_MAX) {
        *notice_p = at < health->map.exception_count
                        ? r2_disseminate_exception(health, &health->map.exceptions[at])
                        : (r2_notice_t){.kind = R2_NOTICE_PATH};
        return at < health->map.exception_count;
    }
    at -= R2_HEALTH_EXCEPTIONS_MAX;
    *notice_p = (r2_notice_t){.kind = R2_NOTICE_GONE, .host_a = at};
    return health->gone[at];
}

/* All that is known, for a host whose owner is gone and may have taken events with it. */
static void r2_disseminate_all(r2_health_t *health, uint32_t to_host, uint64_t now_ns)
{
    const uint32_t facts = r2_disseminate_facts(health);
    r2_notice_t notice;

    for (uint32_t at = 0; at < facts; ++at) {
        if (r2_disseminate_fact(health, at, &notice) && R2_NOTICE_CLAIM != notice.kind) {
            r2_disseminate_one(health, to_host, &notice, now_ns);
        }
    }
}

void r2_disseminate_rest(r2_health_t *health, uint64_t now_ns)
{
    const uint32_t facts = r2_disseminate_facts(health);
    r2_notice_t notice;

    for (uint32_t at = health->retell_at; at < facts; ++at) {
        if (!r2_disseminate_fact(health, at, &notice)) {
            continue;
        }
        if (R2_NOTICE_CLAIM == notice.kind) {
            r2_outbox_host(health, at / health->rail_count % health->hosts->host_count, &notice,
                           now_ns);
        } else {
            r2_disseminate_on(health, &notice, R2_NOBODY, false, now_ns);
        }
        if (R2_NEVER_NS != health->retell_ns) { /* full again: goes on with this one */
            health->retell_at = at;
            return;
        }
    }
    health->retell_at = 0;
}

static bool r2_disseminate_is_neighbor(const r2_health_t *health, uint32_t host)
{
    uint32_t count = health->hosts->host_count, step;

    for (step = 1; step < count; step *= 2) {
        if (host == (health->own_host + step) % count ||
            host == (health->own_host + count - step) % count) {
            return true;
        }
    }
    return false;
}

static bool r2_disseminate_learn_gone(r2_health_t *health, uint32_t rank, uint64_t now_ns)
{
    uint32_t host = health->hosts->host_of[rank];
    bool wrote;

    if (health->gone[rank] || rank == health->self.rank || host >= health->map.host_count) {
        return false;
    }
    wrote = rank == r2_members_nth(health, host, 0);
    health->gone[rank] = 1;
    r2_outbox_gone(health, rank);
    health->ports.peer_gone(health->ports.arg, rank);
    if (wrote && r2_members_is_owner(health) && R2_NOBODY != r2_members_nth(health, host, 0) &&
        (host == health->own_host || r2_disseminate_is_neighbor(health, host))) {
        r2_disseminate_all(health, host, now_ns);
    }
    return true;
}

/* The map's entry changed: what the rest of the machine and the lanes make of it. */
static void r2_disseminate_entry_changed(r2_health_t *health, uint32_t host, uint32_t rail,
                                         bool was_dead, uint64_t now_ns)
{
    const r2_health_entry_t *entry = r2_health_map_entry(&health->map, host, rail);
    bool dead = 0 == entry->capacity;
    uint64_t retry_ns = now_ns + r2_health_ms(health->params.heal_max_ms);

    if (was_dead && !dead) {
        health->settled_ns[r2_health_at(health, host, rail)] = retry_ns;
    }
    health->accused_ns[r2_health_at(health, host, rail)] = 0;
    if (dead) {
        r2_suspicion_drop(health, host, rail);
    } else {
        health->pause_ns[r2_health_at(health, host, rail)] = 0;
        health->quiet_ns[r2_health_at(health, host, rail)] = 0;
    }
    if (host == health->own_host && dead) {
        retry_ns = r2_max(retry_ns, r2_outage_start(health, host, rail, false, now_ns));
    } else if (host == health->own_host && was_dead) {
        r2_outage_end(health, host, rail, false, now_ns);
    }
    health->ports.rail_state(health->ports.arg, host, rail, dead, dead ? retry_ns : 0);
}

static void r2_disseminate_path_changed(r2_health_t *health, uint32_t host_a, uint32_t host_b,
                                        uint32_t rail, uint64_t now_ns)
{
    bool dead = r2_health_map_is_cut(&health->map, host_a, host_b, rail);
    uint32_t other = host_a == health->own_host ? host_b : host_a;
    uint64_t retry_ns = now_ns + r2_health_ms(health->params.heal_max_ms);

    if (host_a != health->own_host && host_b != health->own_host) {
        return;
    }
    r2_suspicion_drop(health, other, rail);
    health->quiet_ns[r2_health_at(health, other, rail)] = 0;
    if (dead) {
        retry_ns = r2_max(retry_ns, r2_outage_start(health, other, rail, true, now_ns));
    } else {
        health->settled_ns[r2_health_at(health, other, rail)] = retry_ns;
        r2_outage_end(health, other, rail, true, now_ns);
    }
    health->ports.path_state(health->ports.arg, other, rail, dead, dead ? retry_ns : 0);
}

static void r2_disseminate_event(r2_health_t *health, const r2_health_change_t *change, bool known,
                                 bool written, const r2_verdict_event_t *own, uint64_t since_ns,
                                 uint64_t now_ns)
{
    bool cut = change->is_path && 1 == change->entry.version % 2;
    r2_verdict_event_t event = {.time_ns = now_ns,
                                .since_ns = since_ns,
                                .rank = R2_NOBODY,
                                .evidence = known ? "concluded here before; now in the map"
                                                  : "heard from another process"};

    if (NULL != own) {
        event = *own;
    }
    event.written = written;
    event.host = change->host_a;
    event.host_b = change->is_path ? change->host_b : R2_NOBODY;
    event.rail = change->rail;
    event.version = change->entry.version;
    event.capacity = change->is_path ? (cut ? 0 : R2_CAPACITY_FULL) : change->entry.capacity;
    if (NULL == own) {
        event.verdict = change->is_path ? (cut ? R2_VERDICT_PATH : R2_VERDICT_HEALTHY)
                                        : (r2_verdict_t) change->entry.verdict;
        event.direction = (r2_direction_t) change->entry.direction;
    }
    health->ports.event(health->ports.arg, &event);
}

/*
 * Takes a change in. @param written it is made here. @param since_ns of the first evidence.
 * @return true if it was new.
 */
static bool r2_disseminate_learn(r2_health_t *health, const r2_health_change_t *change,
                                 bool written, const r2_verdict_event_t *own, uint64_t since_ns,
                                 uint64_t now_ns)
{
    bool was_dead = !change->is_path &&
                    0 == r2_health_map_entry(&health->map, change->host_a, change->rail)->capacity;
    uint64_t *accused_ns = &health->accused_ns[r2_health_at(health, change->host_a, change->rail)];
    bool known = !change->is_path && 0 != *accused_ns && 0 == change->entry.capacity;

    if (!r2_health_map_merge(&health->map, change)) {
        if (!change->is_path && 0 != *accused_ns) {
            *accused_ns = 0; /* its owner knows better */
            health->ports.rail_state(health->ports.arg, change->host_a, change->rail, was_dead, 0);
        }
        return false;
    }
    if (change->is_path) {
        r2_disseminate_path_changed(health, change->host_a, change->host_b, change->rail, now_ns);
    } else {
        health->since_ns[r2_health_at(health, change->host_a, change->rail)] =
            r2_max(since_ns, 1ull);
        r2_disseminate_entry_changed(health, change->host_a, change->rail, was_dead, now_ns);
    }
    r2_disseminate_event(health, change, known, written, own, since_ns, now_ns);
    health->ports.changed(health->ports.arg);
    return true;
}

/**
 * A change of an entry of our host, made here: the version is the next one.
 * @param event what led to it; NULL: another's claim.
 */
void r2_disseminate_entry(r2_health_t *health, uint32_t rail, const r2_health_entry_t *entry,
                          const r2_verdict_event_t *event, uint64_t since_ns, uint64_t now_ns)
{
    const r2_health_change_t change = {.host_a = health->own_host, .rail = rail, .entry = *entry};
    r2_notice_t notice;

    if (r2_disseminate_learn(health, &change, true, event, since_ns, now_ns)) {
        notice = r2_disseminate_change(health, health->own_host, rail);
        r2_disseminate_on(health, &notice, R2_NOBODY, true, now_ns);
    }
}

/** A path between our host and another broke or healed. @param tell a rank that has to know at
 * once. */
void r2_disseminate_path(r2_health_t *health, uint32_t host, uint32_t rail, bool broken,
                         uint32_t tell, const r2_verdict_event_t *event, uint64_t now_ns)
{
    const r2_health_change_t change = {.is_path = true,
                                       .host_a = r2_min(host, health->own_host),
                                       .host_b = r2_max(host, health->own_host),
                                       .rail = rail,
                                       .entry.version = r2_health_map_path_version(&health->map,
                                                                                   broken)};
    const r2_health_exception_t path = {change.host_a, change.host_b, rail, change.entry.version};
    r2_notice_t notice = r2_disseminate_exception(health, &path);

    if (r2_disseminate_learn(health, &change, true, event, event->since_ns, now_ns)) {
        if (R2_NOBODY != tell) {
            r2_outbox_rank(health, tell, &notice, now_ns);
        }
        r2_disseminate_on(health, &notice, R2_NOBODY, false, now_ns);
    }
}

void r2_disseminate_gone(r2_health_t *health, uint32_t rank, uint64_t now_ns)
{
    const r2_notice_t notice = {.kind = R2_NOTICE_GONE, .host_a = rank};

    if (r2_disseminate_learn_gone(health, rank, now_ns)) {
        r2_disseminate_on(health, &notice, R2_NOBODY, false, now_ns);
    }
}

/* A plane that others found dead concerns us, too: we look for ourselves. */
static void r2_disseminate_look(r2_health_t *health, const r2_notice_t *notice, uint32_t host,
                                uint64_t now_ns)
{
    if (R2_NOTICE_CHANGE == notice->kind && R2_VERDICT_PLANE == notice->verdict &&
        host != health->own_host && r2_members_is_owner(health) &&
        notice->rail < r2_rails_of(health, health->own_host)) {
        uint32_t other = (health->own_host + 1) % health->hosts->host_count;

        r2_investigate(health, r2_members_nth(health, other, 0), notice->rail, now_ns);
    }
}

/** News of somebody else, or of ours that nobody else of our host took. No claims. */
void r2_disseminate_notice(r2_health_t *health, uint32_t from, const r2_notice_t *notice,
                           uint64_t now_ns)
{
    r2_health_change_t change = {.is_path = R2_NOTICE_PATH == notice->kind,
                                 .rail = notice->rail,
                                 .entry = {.version = notice->entry_version,
                                           .capacity = notice->capacity,
                                           .verdict = notice->verdict,
                                           .direction = notice->direction}};
    bool own = from == health->self.rank, is_new;
    bool acting = own || 0 != (notice->flags & R2_NOTICE_ACT);
    uint64_t age_ns = r2_notice_age_ns(notice->age);

    if (R2_NOTICE_GONE == notice->kind) {
        is_new = r2_disseminate_learn_gone(health, notice->host_a, now_ns);
    } else if (!r2_members_host(health, notice->host_a, &change.host_a) ||
               (change.is_path && !r2_members_host(health, notice->host_b, &change.host_b)) ||
               change.rail >= health->rail_count) {
        return;
    } else {
        is_new = r2_disseminate_learn(health, &change, false, NULL, now_ns - r2_min(age_ns, now_ns),
                                      now_ns);
    }
    if ((is_new && 0 == (notice->flags & R2_NOTICE_FANOUT)) || own) {
        r2_disseminate_on(health, notice, own ? R2_NOBODY : from, acting, now_ns);
    }
    if (is_new) {
        r2_disseminate_look(health, notice, change.host_a, now_ns);
    }
}
