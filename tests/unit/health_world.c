/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A fake world for health machines.
 */
#include "r2_config.h"

#include "health_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define SLACK_NS (500 * R2_NS_PER_MS) /* evidence may be that old */

static bool fault_on(const world_t *world, const fault_t *fault, uint64_t slack_ns)
{
    return world->now_ns >= fault->from_ns &&
           (R2_NEVER_NS == fault->to_ns || world->now_ns < fault->to_ns + slack_ns);
}

static bool fault_stops(const fault_t *fault, uint32_t from, uint32_t to, uint32_t rail)
{
    if (fault->kind >= FAULT_STOP || fault->rail != rail) {
        return false;
    }
    if (FAULT_PLANE == fault->kind) {
        return true;
    }
    if (FAULT_PATH == fault->kind) {
        return (fault->host == from && fault->host_b == to) ||
               (fault->host == to && fault->host_b == from);
    }
    return (fault->host == from && R2_DIRECTION_IN != fault->direction) ||
           (fault->host == to && R2_DIRECTION_OUT != fault->direction);
}

bool world_passes(const world_t *world, uint32_t from, uint32_t to, uint32_t rail,
                  uint64_t slack_ns)
{
    for (uint32_t idx = 0; idx < world->fault_count; ++idx) {
        if (fault_on(world, &world->faults[idx], slack_ns) &&
            fault_stops(&world->faults[idx], from, to, rail)) {
            return false;
        }
    }
    return true;
}

bool world_answers(const world_t *world, uint32_t a, uint32_t b, uint32_t rail)
{
    return world_passes(world, a, b, rail, 0) && world_passes(world, b, a, rail, 0);
}

static bool process_fault(const world_t *world, uint32_t rank, fault_kind_t kind, uint64_t slack_ns)
{
    uint32_t idx;

    for (idx = 0; idx < world->fault_count; ++idx) {
        const fault_t *fault = &world->faults[idx];

        if (kind == fault->kind && rank == fault->rank && fault_on(world, fault, slack_ns)) {
            return true;
        }
    }
    return false;
}

bool world_exists(const world_t *world, uint32_t rank)
{
    return !process_fault(world, rank, FAULT_KILL, 0);
}

bool world_runs(const world_t *world, uint32_t rank)
{
    return world_exists(world, rank) && !process_fault(world, rank, FAULT_STOP, 0);
}

/* ---- ports ---- */

static void post(world_t *world, const event_t *event)
{
    if (world->event_count == WORLD_EVENTS) {
        fprintf(stderr, "too many events\n");
        abort();
    }
    world->events[world->event_count++] = *event;
}

static void port_notify(void *arg, uint32_t rank, const void *data, size_t bytes)
{
    machine_t *machine = arg;
    world_t *world = machine->world;
    uint32_t copies = 1 + r2_prng_chance(&world->prng, world->double_ppm);
    event_t event = {.kind = EVENT_NOTICE, .to = rank, .from = machine->rank, .bytes = bytes};

    ++world->notices;
    memcpy(event.data, data, bytes);
    while (copies-- > 0) {
        if (!r2_prng_chance(&world->prng, world->loss_ppm)) {
            event.due_ns = world->now_ns + r2_prng_between(&world->prng, 100000, world->delay_ns);
            post(world, &event);
        }
    }
}

static bool port_carrier(void *arg, uint32_t rail)
{
    const machine_t *machine = arg;

    return machine->carrier[rail];
}

static void port_probe(void *arg, uint32_t rank, uint32_t rail, uint64_t timeout_ns, uint64_t id)
{
    machine_t *machine = arg;
    world_t *world = machine->world;
    uint32_t own = world->host_of[machine->rank];
    event_t event = {.kind = EVENT_PROBED, .to = machine->rank, .id = id};

    ++world->probes;
    event.alive = world_answers(world, own, world->host_of[rank], rail);
    event.alive = event.alive && machine->probes++ >= world->lost_probes;
    event.unable = !machine->carrier[rail] || (world->bare && !event.alive);
    event.due_ns = world->now_ns + (event.alive || event.unable ? R2_NS_PER_MS : timeout_ns);
    post(world, &event);
}

static void port_beacon(void *arg, uint32_t rank, uint32_t rail, uint64_t id)
{
    machine_t *machine = arg;
    world_t *world = machine->world;
    event_t event = {
        .kind = EVENT_BEACON, .to = rank, .from = machine->rank, .rail = rail, .id = id};

    ++world->beacons;
    event.due_ns = world->now_ns + R2_NS_PER_MS;
    if (world_passes(world, world->host_of[machine->rank], world->host_of[rank], rail, 0)) {
        post(world, &event);
    }
}

static void port_lanes(void *arg, uint32_t host, uint32_t rail, bool dead, uint64_t retry_ns)
{
    machine_t *machine = arg;
    world_t *world = machine->world;
    uint32_t rank;

    machine->dead_calls += dead;
    for (rank = 0; rank < world->rank_count; ++rank) {
        if (host == world->host_of[rank] || host == world->host_of[machine->rank]) {
            lane_t *lane = &machine->lanes[rank][rail];

            lane->down = lane->down || dead;
            lane->retry_ns = dead ? retry_ns : world->now_ns;
        }
    }
}

static uint64_t port_delivered_ns(void *arg, uint32_t host, uint32_t rail)
{
    (void) host;
    (void) rail;
    return ((machine_t *) arg)->delivered_ns;
}

static bool port_reads_on(void *arg)
{
    const machine_t *machine = arg;
    const world_t *world = machine->world;

    return !world->reads_unknown && 0 != world->reads_max && machine->reads >= world->reads_max;
}

static bool port_unprobed(void *arg, uint32_t rail)
{
    (void) rail;
    return ((machine_t *) arg)->world->bare;
}

static bool port_own_mute(void *arg, uint32_t rail)
{
    const machine_t *machine = arg;
    bool mute = false;

    for (uint32_t rank = 0; rank < machine->world->rank_count; ++rank) {
        mute = mute || machine->lanes[rank][rail].down;
    }
    return mute;
}

static bool port_mute(void *arg, uint32_t host, uint32_t rail)
{
    const machine_t *machine = arg;
    const world_t *world = machine->world;
    const uint32_t own = (rail + world->rail_count - world->skew) % world->rail_count;
    bool mute = false;

    for (uint32_t rank = 0; rank < world->rank_count; ++rank) {
        mute =
            mute || (world->bare && host == world->host_of[rank] && machine->lanes[rank][own].down);
    }
    return mute;
}

static void port_gone(void *arg, uint32_t rank)
{
    ((machine_t *) arg)->told_gone[rank] = true;
}

static void port_changed(void *arg)
{
    (void) arg;
}

/* Broken now or a little ago: what the evidence could be about. */
static bool was_broken(const world_t *world, uint32_t host, uint32_t rail)
{
    uint32_t other, cut = 0;

    for (other = 0; other < world->host_count; ++other) {
        cut += other != host && (!world_passes(world, host, other, rail, SLACK_NS) ||
                                 !world_passes(world, other, host, rail, SLACK_NS));
    }
    return cut + 1 == world->host_count;
}

static bool pair_broken(const world_t *world, uint32_t a, uint32_t b, uint32_t rail)
{
    return !world_passes(world, a, b, rail, SLACK_NS) || !world_passes(world, b, a, rail, SLACK_NS);
}

static bool is_fair(const world_t *world, const machine_t *machine, const r2_verdict_event_t *event)
{
    uint32_t own = world->host_of[machine->rank], rail;

    switch (event->verdict) {
    case R2_VERDICT_NIC:
    case R2_VERDICT_PLANE:
        return was_broken(world, event->host, event->rail);
    case R2_VERDICT_PATH:
    case R2_VERDICT_AMBIGUOUS:
        return pair_broken(world, event->host, event->host_b, event->rail);
    case R2_VERDICT_PEER_SILENT:
        for (rail = 0; rail < world->rail_count; ++rail) {
            if (!pair_broken(world, own, event->host, rail)) {
                return false;
            }
        }
        return true;
    case R2_VERDICT_PEER_BUSY:
        return world->loss_ppm > 0 || !world_exists(world, event->rank) ||
               process_fault(world, event->rank, FAULT_STOP, SLACK_NS);
    case R2_VERDICT_HEALTHY:
    case R2_VERDICT_SLOW:
    case R2_VERDICT_PEER_GONE:
    case R2_VERDICT_COUNT:
        break;
    }
    return true;
}

static void port_event(void *arg, const r2_verdict_event_t *event)
{
    machine_t *machine = arg;
    world_t *world = machine->world;
    bool fair = !event->own || is_fair(world, machine, event);

    if (world->verbose || !fair) {
        printf("%6llu ms rank %u: %s%s %s host %u,%u rail %u capacity %u version %u: %s\n",
               (unsigned long long) (world->now_ns / R2_NS_PER_MS), machine->rank,
               fair ? "" : "UNFAIR ", r2_verdict_name(event->verdict), event->own ? "own" : "heard",
               event->host, event->host_b, event->rail, event->capacity, event->version,
               event->evidence);
    }
    world->unfair += !fair;
    if (event->own) {
        ++machine->own_events[event->verdict];
        machine->last = *event;
    }
}

/* ---- time ---- */

static void deliver(world_t *world, const event_t *event)
{
    r2_health_t *health = world->machines[event->to].health;

    switch (event->kind) {
    case EVENT_NOTICE:
        (void) r2_health_noticed(health, event->from, event->data, event->bytes, world->now_ns);
        break;
    case EVENT_PROBED:
        r2_health_probed(health, event->id, event->alive, event->unable, world->now_ns);
        break;
    case EVENT_BEACON:
        r2_health_heard(health, event->from, event->rail, event->id, world->now_ns);
        break;
    }
}

/* It is there, and its process reads, if there is one. */
static bool is_taken(world_t *world, const event_t *event)
{
    machine_t *machine = &world->machines[event->to];

    if (event->due_ns > world->now_ns || !world_exists(world, event->to)) {
        return event->due_ns <= world->now_ns;
    }
    return world_runs(world, event->to) &&
           (0 == world->reads_max || machine->reads++ < world->reads_max);
}

static void deliver_due(world_t *world)
{
    uint32_t idx = 0;

    for (uint32_t rank = 0; rank < world->rank_count; ++rank) {
        world->machines[rank].reads = 0;
    }
    while (idx < world->event_count) {
        event_t event = world->events[idx];

        if (!is_taken(world, &event)) {
            ++idx;
            continue;
        }
        world->events[idx] = world->events[--world->event_count]; /* reorders, too */
        if (world_exists(world, event.to)) {
            deliver(world, &event);
        }
    }
}

/* What the link layer would tell. */
static void look_at_lane(world_t *world, machine_t *machine, uint32_t peer, uint32_t rail)
{
    lane_t *lane = &machine->lanes[peer][rail];
    bool passes = world_answers(world, world->host_of[machine->rank], world->host_of[peer], rail);
    r2_lane_event_t event;

    passes = passes && machine->carrier[rail];
    if (lane->down && world->now_ns >= lane->retry_ns && world_runs(world, peer)) {
        event = passes ? R2_LANE_EVENT_UP : R2_LANE_EVENT_UNOPENED;
        lane->down = !passes;
        lane->silent_ns = 0;
        lane->retry_ns = world->now_ns + 400 * R2_NS_PER_MS;
        if (passes || !world->bare) {
            r2_health_lane(machine->health, peer, rail, rail, event,
                           passes ? R2_OK : R2_ERR_TIMEOUT, world->now_ns);
        }
    } else if (!lane->down && (!passes || !world_runs(world, peer))) {
        lane->silent_ns = 0 == lane->silent_ns ? world->now_ns : lane->silent_ns;
        if (world->now_ns >= lane->silent_ns + 50 * R2_NS_PER_MS) {
            lane->down = !passes;
            lane->retry_ns = world->now_ns + 200 * R2_NS_PER_MS;
            r2_health_lane(machine->health, peer, rail, rail,
                           passes ? R2_LANE_EVENT_SUSPECT : R2_LANE_EVENT_FAILED, R2_ERR_LANE_DOWN,
                           world->now_ns);
        }
    } else {
        lane->silent_ns = 0;
    }
}

static void look_at_carrier(world_t *world, machine_t *machine)
{
    uint32_t idx, rail;
    bool carrier[WORLD_RAILS];

    memset(carrier, 1, sizeof(carrier));
    for (idx = 0; idx < world->fault_count; ++idx) {
        const fault_t *fault = &world->faults[idx];

        if (FAULT_NIC == fault->kind && fault->carrier_lost && fault_on(world, fault, 0) &&
            fault->host == world->host_of[machine->rank]) {
            carrier[fault->rail] = false;
        }
    }
    for (rail = 0; rail < world->rail_count; ++rail) {
        if (carrier[rail] != machine->carrier[rail]) {
            machine->carrier[rail] = carrier[rail];
            r2_health_carrier(machine->health, rail, carrier[rail], "no carrier", world->now_ns);
        }
    }
}

static void look(world_t *world, machine_t *machine)
{
    uint32_t peer, rail;

    look_at_carrier(world, machine);
    for (peer = 0; peer < world->rank_count; ++peer) {
        if (world->host_of[peer] == world->host_of[machine->rank]) {
            if (!world_exists(world, peer)) { /* members of a host see it */
                r2_health_peer(machine->health, peer, true, true, world->now_ns);
            }
            continue;
        }
        for (rail = 0; rail < world->rail_count; ++rail) {
            if (!machine->told_gone[peer]) {
                look_at_lane(world, machine, peer, rail);
            }
        }
    }
}

void world_run(world_t *world, uint64_t for_ms)
{
    uint64_t end_ns = world->now_ns + for_ms * R2_NS_PER_MS;
    uint32_t rank;

    for (; world->now_ns < end_ns; world->now_ns += WORLD_STEP) {
        deliver_due(world);
        for (rank = 0; rank < world->rank_count; ++rank) {
            machine_t *machine = &world->machines[rank];

            if (!world_runs(world, rank)) {
                continue;
            }
            if (0 == (world->now_ns / WORLD_STEP + rank) % 8) {
                look(world, machine);
            }
            if (world->now_ns >= r2_health_deadline_ns(machine->health)) {
                r2_health_tick(machine->health, world->now_ns);
            }
        }
    }
}

void world_init(world_t *world, uint32_t hosts, uint32_t per_host, uint32_t rails, uint64_t seed)
{
    static const char *const names[] = {"h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7"};
    uint32_t rank;

    memset(world, 0, sizeof(*world));
    world->host_count = hosts;
    world->per_host = per_host;
    world->rail_count = rails;
    world->rank_count = hosts * per_host;
    world->delay_ns = R2_NS_PER_MS;
    world->now_ns = R2_NS_PER_S;
    world->events = calloc(WORLD_EVENTS, sizeof(world->events[0]));
    r2_prng_seed(&world->prng, seed);
    r2_params_init(&world->params);
    for (rank = 0; rank < hosts; ++rank) {
        world->host[rank] = (r2_host_t){.name = names[rank], .rail_count = rails};
    }
    for (rank = 0; rank < world->rank_count; ++rank) {
        world->host_of[rank] = rank / per_host;
    }
    world->hosts = (r2_hosts_t){.rank_count = world->rank_count,
                                .host_count = hosts,
                                .host_of = world->host_of,
                                .hosts = world->host};
    for (rank = 0; rank < world->rank_count; ++rank) {
        machine_t *machine = &world->machines[rank];
        const r2_health_ports_t ports = {.notify = port_notify,
                                         .probe = port_probe,
                                         .beacon = port_beacon,
                                         .rail_state = port_lanes,
                                         .path_state = port_lanes,
                                         .peer_gone = port_gone,
                                         .event = port_event,
                                         .changed = port_changed,
                                         .delivered_ns = port_delivered_ns,
                                         .mute = port_mute,
                                         .own_mute = port_own_mute,
                                         .reads_on = port_reads_on,
                                         .unprobed = port_unprobed,
                                         .carrier = port_carrier,
                                         .arg = machine};

        machine->world = world;
        machine->rank = rank;
        memset(machine->carrier, 1, sizeof(machine->carrier));
        if (R2_OK != r2_health_create(&world->hosts, &(r2_health_self_t){.rank = rank},
                                      &world->params, &ports, world->now_ns, &machine->health)) {
            abort();
        }
    }
}

void world_fini(world_t *world)
{
    for (uint32_t rank = 0; rank < world->rank_count; ++rank) {
        r2_health_destroy(world->machines[rank].health);
    }
    free(world->events);
}
