/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Events of this process: from what links, rails and the detector tell to lines of the event file.
 */
#include "r2_config.h"

#include "ctx/record.h"

#include "ctx/plan_text.h"
#include "health/health.h"

static const char *r2_record_nic(const r2_record_t *record, uint32_t rail)
{
    return rail < record->core->net.rail_count ? record->core->net.rails[rail].nic.name : NULL;
}

static const char *r2_record_host(const r2_record_t *record, uint32_t rank)
{
    const r2_link_t *link = r2_core_link(record->core, rank);

    return NULL == link ? NULL : r2_link_host(link);
}

void r2_record_start(r2_record_t *record)
{
    r2_event_t event = r2_event(R2_EVENT_START, r2_now_ns(record->core->clock));
    r2_nic_t rails[R2_RAILS_MAX];

    for (uint32_t i = 0; i < record->core->net.rail_count; ++i) {
        rails[i] = record->core->net.rails[i].nic;
    }
    event.version = R2_VERSION;
    event.ranks = record->core->net.size;
    event.rails = rails;
    event.rail_count = record->core->net.rail_count;
    r2_events_add(record->events, &event);
}

char *r2_record_plan_text(const r2_record_t *record)
{
    const r2_plan_text_t what = {
        .rank = record->core->net.rank,
        .host_name = record->host_name,
        .hosts = record->hosts,
        .env = record->env,
        .cost = NULL == record->env ? NULL : r2_estimator_cost(record->estimator, record->env),
    };

    return NULL == record->env ? NULL : r2_plan_text(&what);
}

static void r2_record_plan(void *arg, const r2_plan_env_t *env, int32_t rank)
{
    r2_record_t *record = arg;

    (void) rank;
    record->env = env;
    if (NULL != record->plan_file && NULL != env) {
        r2_snapshot_put(record->plan_file, r2_record_plan_text(record));
    }
}

/* The fault came before what shows it: with the begin of the pause, if there is one. */
static void r2_record_fault(r2_record_t *record, uint32_t rail)
{
    uint64_t now_ns = record->core->net.now_ns;

    r2_gap_fault(&record->gap, rail, 0 == record->gap.last_ns ? now_ns : record->gap.last_ns,
                 now_ns);
}

static void r2_record_lane(void *arg, uint32_t rank, uint32_t rail, r2_lane_event_t what,
                           r2_status_t why)
{
    r2_record_t *record = arg;
    static const r2_event_type_t types[] = {
        [R2_LANE_EVENT_SUSPECT] = R2_EVENT_SUSPECT,
        [R2_LANE_EVENT_FAILED] = R2_EVENT_LANE_DOWN,
        [R2_LANE_EVENT_UP] = R2_EVENT_LANE_UP,
        [R2_LANE_EVENT_UNOPENED] = R2_EVENT_COUNT, /* every attempt: too many for a file */
        [R2_LANE_EVENT_DOUBT] = R2_EVENT_COUNT,    /* most likely the process pauses */
        [R2_LANE_EVENT_REFUSED] = R2_EVENT_COUNT,  /* the verdict tells */
        [R2_LANE_EVENT_MUTE] = R2_EVENT_COUNT,     /* the same */
    };
    r2_event_t event = r2_event(types[what], record->core->net.now_ns);

    if (R2_LANE_EVENT_SUSPECT == what || R2_LANE_EVENT_FAILED == what) {
        r2_record_fault(record, rail);
    }
    if (R2_EVENT_COUNT == types[what]) {
        return;
    }
    event.rail = rail;
    event.nic = r2_record_nic(record, rail);
    event.peer = rank;
    event.peer_host = r2_record_host(record, rank);
    event.why = r2_status_string(why);
    r2_events_add(record->events, &event);
}

static void r2_record_carrier(void *arg, uint32_t rail, bool carrier)
{
    r2_record_t *record = arg;
    r2_event_t event = r2_event(R2_EVENT_CARRIER, record->core->net.now_ns);

    if (!carrier) {
        r2_record_fault(record, rail);
    }
    event.rail = rail;
    event.nic = r2_record_nic(record, rail);
    event.carrier = carrier;
    r2_events_add(record->events, &event);
}

static void r2_record_peer(void *arg, uint32_t rank, bool gone)
{
    r2_record_t *record = arg;
    r2_event_t event =
        r2_event(gone ? R2_EVENT_PEER_GONE : R2_EVENT_NO_PATH, record->core->net.now_ns);

    event.peer = rank;
    event.peer_host = r2_record_host(record, rank);
    event.why =
        gone ? "its host refuses connections to it, or its death was seen" : "no lane to it is up";
    r2_events_add(record->events, &event);
}

static void r2_record_verdict(void *arg, const r2_verdict_event_t *verdict)
{
    r2_record_t *record = arg;
    const r2_hosts_t *hosts = record->hosts;
    const r2_host_t *host = &hosts->hosts[verdict->host];
    r2_event_t event = r2_event(R2_EVENT_VERDICT, verdict->time_ns);

    event.verdict = r2_verdict_name(verdict->verdict);
    event.blamed = host->name;
    event.rail = verdict->rail;
    event.nic = verdict->rail < host->rail_count ? host->rails[verdict->rail].name : NULL;
    event.direction = r2_direction_name(verdict->direction);
    if (R2_VERDICT_PATH == verdict->verdict || R2_VERDICT_AMBIGUOUS == verdict->verdict) {
        event.other = hosts->hosts[verdict->host_b].name;
    }
    event.peer = verdict->rank;
    event.capacity = verdict->capacity;
    event.map_version = verdict->version;
    event.own = verdict->own;
    event.since_ns = verdict->since_ns;
    event.evidence = verdict->evidence;
    r2_events_add(record->events, &event);
}

static void r2_record_gaps(r2_record_t *record)
{
    uint64_t now_ns = record->core->net.now_ns;
    r2_gap_fault_t fault;

    while (now_ns >= r2_gap_deadline_ns(&record->gap) &&
           r2_gap_take(&record->gap, now_ns, &fault)) {
        r2_event_t event = r2_event(R2_EVENT_RECOVERED, now_ns);

        record->core->counters.fault_gap_ns =
            r2_max(record->core->counters.fault_gap_ns, fault.longest_ns);
        event.rail = fault.rail;
        event.nic = r2_record_nic(record, fault.rail);
        event.since_ns = fault.since_ns;
        event.gap_ns = fault.longest_ns;
        r2_events_add(record->events, &event);
    }
}

static void r2_record_sample(r2_record_t *record)
{
    uint64_t tx_bytes[R2_RAILS_MAX], rx_bytes[R2_RAILS_MAX];

    for (uint32_t i = 0; i < record->core->net.rail_count; ++i) {
        tx_bytes[i] = record->core->net.rails[i].tx_bytes;
        rx_bytes[i] = record->core->net.rails[i].rx_bytes;
    }
    r2_events_sample(record->events, tx_bytes, rx_bytes, record->core->net.rail_count,
                     record->core->net.now_ns);
}

static void r2_record_swept(void *arg, bool delivered)
{
    r2_record_t *record = arg;

    r2_gap_swept(&record->gap, delivered,
                 record->core->net.awaited_recvs > 0 && 0 == record->core->net.unwired_links,
                 record->core->net.now_ns);
    r2_record_gaps(record);
    if (r2_events_sample_due(record->events, record->core->net.now_ns)) {
        r2_record_sample(record);
    }
}

void r2_record_init(r2_record_t *record, r2_core_t *core, const r2_estimator_t *estimator,
                    const char *host_name)
{
    *record = (r2_record_t){.core = core,
                            .estimator = estimator,
                            .host_name = host_name,
                            .observer = {.swept = r2_record_swept,
                                         .lane = r2_record_lane,
                                         .carrier = r2_record_carrier,
                                         .peer = r2_record_peer,
                                         .verdict = r2_record_verdict,
                                         .plan = r2_record_plan,
                                         .arg = record}};
    r2_gap_init(&record->gap);
    r2_core_watch(core, &record->observer);
}

static void r2_record_flush_events(void *instance)
{
    r2_events_flush(instance);
}

static void r2_record_flush_plan(void *instance)
{
    r2_snapshot_flush(instance);
}

void r2_record_sources(const r2_record_t *record, r2_sources_t *sources)
{
    if (NULL != record->events) {
        r2_sources_add(sources, &(r2_source_t){.name = "event file",
                                               .fd = r2_events_fd(record->events),
                                               .flush = r2_record_flush_events,
                                               .instance = record->events});
    }
    if (NULL != record->plan_file) {
        r2_sources_add(sources, &(r2_source_t){.name = "plan file",
                                               .fd = r2_snapshot_fd(record->plan_file),
                                               .flush = r2_record_flush_plan,
                                               .instance = record->plan_file});
    }
}

void r2_record_fini(r2_record_t *record)
{
    r2_core_unwatch(record->core, &record->observer);
    r2_events_destroy(record->events);
    r2_snapshot_destroy(record->plan_file);
}
