/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Events of this process: from what links, rails and the detector tell to lines of the event file.
 */
#include "r2_config.h"

#include "ctx/record.h"

#include "ctx/state.h"
#include "link/link.h"

static const char *r2_record_nic(const r2_ctx_t *ctx, uint32_t rail)
{
    return rail < ctx->core.net.rail_count ? ctx->core.net.rails[rail].nic.name : NULL;
}

static const char *r2_record_host(const r2_ctx_t *ctx, uint32_t rank)
{
    const r2_link_t *link = r2_core_link(&ctx->core, rank);

    return NULL == link ? NULL : r2_link_host(link);
}

void r2_record_start(r2_ctx_t *ctx)
{
    r2_event_t event = r2_event(R2_EVENT_START, r2_now_ns(ctx->core.clock));
    r2_nic_t rails[R2_RAILS_MAX];

    for (uint32_t i = 0; i < ctx->core.net.rail_count; ++i) {
        rails[i] = ctx->core.net.rails[i].nic;
    }
    event.version = R2_VERSION;
    event.ranks = ctx->core.net.size;
    event.rails = rails;
    event.rail_count = ctx->core.net.rail_count;
    r2_events_add(ctx->events, &event);
}

void r2_record_plan(r2_ctx_t *ctx)
{
    if (NULL != ctx->plan_file && NULL != ctx->job) {
        r2_snapshot_put(ctx->plan_file, r2_plan_text(ctx));
    }
}

/* The fault came before what shows it: with the begin of the pause, if there is one. */
static void r2_record_fault(r2_ctx_t *ctx, uint32_t rail)
{
    uint64_t now_ns = ctx->core.net.now_ns;

    r2_gap_fault(&ctx->gap, rail, 0 == ctx->gap.last_ns ? now_ns : ctx->gap.last_ns, now_ns);
}

void r2_record_lane(r2_ctx_t *ctx, uint32_t rank, uint32_t rail, r2_lane_event_t what, r2_status_t why)
{
    static const r2_event_type_t types[] = {
        [R2_LANE_EVENT_SUSPECT] = R2_EVENT_SUSPECT,
        [R2_LANE_EVENT_FAILED] = R2_EVENT_LANE_DOWN,
        [R2_LANE_EVENT_UP] = R2_EVENT_LANE_UP,
        [R2_LANE_EVENT_UNOPENED] = R2_EVENT_COUNT, /* every attempt: too many for a file */
        [R2_LANE_EVENT_DOUBT] = R2_EVENT_COUNT,    /* most likely the process pauses */
        [R2_LANE_EVENT_REFUSED] = R2_EVENT_COUNT,  /* the verdict tells */
    };
    r2_event_t event = r2_event(types[what], ctx->core.net.now_ns);

    if (R2_LANE_EVENT_SUSPECT == what || R2_LANE_EVENT_FAILED == what) {
        r2_record_fault(ctx, rail);
    }
    if (R2_EVENT_COUNT == types[what]) {
        return;
    }
    event.rail = rail;
    event.nic = r2_record_nic(ctx, rail);
    event.peer = rank;
    event.peer_host = r2_record_host(ctx, rank);
    event.why = r2_status_string(why);
    r2_events_add(ctx->events, &event);
}

void r2_record_carrier(r2_ctx_t *ctx, uint32_t rail, bool carrier)
{
    r2_event_t event = r2_event(R2_EVENT_CARRIER, ctx->core.net.now_ns);

    if (!carrier) {
        r2_record_fault(ctx, rail);
    }
    event.rail = rail;
    event.nic = r2_record_nic(ctx, rail);
    event.carrier = carrier;
    r2_events_add(ctx->events, &event);
}

void r2_record_peer(r2_ctx_t *ctx, uint32_t rank, bool gone)
{
    r2_event_t event = r2_event(gone ? R2_EVENT_PEER_GONE : R2_EVENT_NO_PATH, ctx->core.net.now_ns);

    event.peer = rank;
    event.peer_host = r2_record_host(ctx, rank);
    event.why = gone ? "its host refuses connections to it, or its death was seen"
                     : "no lane to it is up";
    r2_events_add(ctx->events, &event);
}

void r2_record_verdict(r2_ctx_t *ctx, const r2_health_news_t *news)
{
    const r2_hosts_t *hosts = ctx->health->hosts;
    const r2_host_t *host = &hosts->hosts[news->host];
    r2_event_t event = r2_event(R2_EVENT_VERDICT, news->time_ns);

    event.verdict = r2_verdict_name(news->verdict);
    event.blamed = host->name;
    event.rail = news->rail;
    event.nic = news->rail < host->rail_count ? host->rails[news->rail].name : NULL;
    event.direction = r2_direction_name(news->direction);
    if (R2_VERDICT_PATH == news->verdict || R2_VERDICT_AMBIGUOUS == news->verdict) {
        event.other = hosts->hosts[news->host_b].name;
    }
    event.peer = news->rank;
    event.capacity = news->capacity;
    event.map_version = news->version;
    event.own = news->own;
    event.since_ns = news->since_ns;
    event.evidence = news->evidence;
    r2_events_add(ctx->events, &event);
}

static void r2_record_gaps(r2_ctx_t *ctx)
{
    uint64_t now_ns = ctx->core.net.now_ns;
    r2_gap_fault_t fault;

    while (now_ns >= r2_gap_deadline_ns(&ctx->gap) && r2_gap_take(&ctx->gap, now_ns, &fault)) {
        r2_event_t event = r2_event(R2_EVENT_RECOVERED, now_ns);

        ctx->core.counters.fault_gap_ns = r2_max(ctx->core.counters.fault_gap_ns, fault.longest_ns);
        event.rail = fault.rail;
        event.nic = r2_record_nic(ctx, fault.rail);
        event.since_ns = fault.since_ns;
        event.gap_ns = fault.longest_ns;
        r2_events_add(ctx->events, &event);
    }
}

static void r2_record_sample(r2_ctx_t *ctx)
{
    uint64_t tx_bytes[R2_RAILS_MAX], rx_bytes[R2_RAILS_MAX];

    for (uint32_t i = 0; i < ctx->core.net.rail_count; ++i) {
        tx_bytes[i] = ctx->core.net.rails[i].tx_bytes;
        rx_bytes[i] = ctx->core.net.rails[i].rx_bytes;
    }
    r2_events_sample(ctx->events, tx_bytes, rx_bytes, ctx->core.net.rail_count, ctx->core.net.now_ns);
}

void r2_record_swept(r2_ctx_t *ctx, bool delivered)
{
    r2_gap_swept(&ctx->gap, delivered, ctx->core.net.awaited_rows > 0 && 0 == ctx->core.net.unwired_links,
                 ctx->core.net.now_ns);
    r2_record_gaps(ctx);
    if (r2_events_sample_due(ctx->events, ctx->core.net.now_ns)) {
        r2_record_sample(ctx);
    }
}
