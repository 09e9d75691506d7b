/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What the detector has done: notices both ways, probes, lanes failed and tried, verdicts to the
 * log.
 */
#include "r2_config.h"

#include "ctx/detector.h"

#include <stdio.h>

/* Notices to a process that were not answered by anything: then a link to it is made for them. */
#define R2_UNANSWERED_MAX 3u

static void r2_health_notify(void *arg, uint32_t rank, const void *data, size_t bytes)
{
    r2_ctx_health_t *health = arg;
    r2_core_t *core = health->core;
    const r2_post_t *post = health->post;
    bool create = NULL == post->ops || health->unanswered[rank] >= R2_UNANSWERED_MAX;

    ++core->counters.notices_sent;
    health->unanswered[rank] += health->unanswered[rank] < R2_UNANSWERED_MAX ? 1 : 0;
    (void) r2_net_notice(&core->net, rank, data, bytes, create);
    if (NULL != post->ops) {
        (void) post->ops->send(post->instance, rank, data, bytes);
    }
}

/* Any lane to a process of that host tells of its NIC. */
static bool r2_health_ask(r2_ctx_health_t *health, uint32_t rank, uint32_t rail,
                          uint64_t timeout_ns, uint64_t id)
{
    const uint32_t host = health->hosts->host_of[rank];

    for (uint32_t other = 0; other < health->hosts->rank_count; ++other) {
        const uint32_t at = (rank + other) % health->hosts->rank_count;

        if (host == health->hosts->host_of[at] &&
            r2_lane_asks_start(&health->asks, &health->core->net, at, rail, timeout_ns, id)) {
            return true;
        }
    }
    return false;
}

static void r2_health_probe(void *arg, uint32_t rank, uint32_t rail, uint64_t timeout_ns,
                            uint64_t id)
{
    r2_ctx_health_t *health = arg;
    r2_net_t *net = &health->core->net;
    r2_peer_info_t info;
    uint32_t own_rail;
    r2_status_t status = R2_ERR_UNSUPPORTED;

    if (NULL != net->probe.ops && R2_OK == r2_net_way(net, rank, rail, &info, &own_rail)) {
        const r2_peer_rail_t *remote = &info.rails[rail];

        ++health->core->counters.probes_sent;
        if (!r2_nic_is_bare(&net->rails[own_rail].nic)) {
            status = net->probe.ops->probe(net->probe.instance, own_rail, remote->address,
                                           remote->address_bytes, remote->probe,
                                           remote->probe_bytes, timeout_ns, id);
        } else if (r2_health_ask(health, rank, rail, timeout_ns, id)) {
            status = R2_OK;
        }
        r2_peer_info_put(&info);
    }
    if (R2_OK != status) {
        r2_note_probed(health, id, R2_PROBE_UNABLE);
    }
}

static void r2_health_beacon(void *arg, uint32_t rank, uint32_t rail, uint64_t id)
{
    r2_ctx_health_t *health = arg;
    r2_net_t *net = &health->core->net;
    r2_peer_info_t info;
    uint32_t own_rail;

    if (NULL != net->probe.ops && R2_OK == r2_net_way(net, rank, rail, &info, &own_rail)) {
        const r2_peer_rail_t *remote = &info.rails[rail];

        net->probe.ops->beacon(net->probe.instance, own_rail, remote->address,
                               remote->address_bytes, remote->probe, remote->probe_bytes, net->rank,
                               id);
        r2_peer_info_put(&info);
    }
}

static void r2_health_path_state(void *arg, uint32_t host, uint32_t rail, bool dead,
                                 uint64_t retry_ns)
{
    r2_ctx_health_t *health = arg;

    for (uint32_t rank = 0; rank < health->hosts->rank_count; ++rank) {
        if (health->hosts->host_of[rank] == host) {
            r2_net_peer_rail(&health->core->net, rank, rail, dead, retry_ns);
        }
    }
}

static void r2_health_rail_state(void *arg, uint32_t host, uint32_t rail, bool dead,
                                 uint64_t retry_ns)
{
    r2_ctx_health_t *health = arg;
    r2_net_t *net = &health->core->net;

    if (host == health->hosts->host_of[net->rank]) {
        r2_net_own_rail(net, rail, dead, retry_ns);
    } else {
        if (!dead) {
            r2_rail_log_release(health->rails, host, rail);
        }
        r2_health_path_state(arg, host, rail, dead, retry_ns);
    }
}

static bool r2_health_mute(void *arg, uint32_t host, uint32_t rail)
{
    const r2_ctx_health_t *health = arg;
    bool mute = false;

    for (uint32_t rank = 0; !mute && rank < health->hosts->rank_count; ++rank) {
        mute =
            health->hosts->host_of[rank] == host && r2_net_is_mute(&health->core->net, rank, rail);
    }
    return mute;
}

static bool r2_health_own_mute(void *arg, uint32_t rail)
{
    const r2_ctx_health_t *health = arg;

    return r2_net_is_own_mute(&health->core->net, rail);
}

static uint64_t r2_health_delivered_ns(void *arg, uint32_t host, uint32_t rail)
{
    const r2_ctx_health_t *health = arg;
    uint64_t newest_ns = 0;

    for (uint32_t rank = 0; rank < health->hosts->rank_count; ++rank) {
        if (health->hosts->host_of[rank] == host) {
            newest_ns = r2_max(newest_ns, r2_net_delivered_ns(&health->core->net, rank, rail));
        }
    }
    return newest_ns;
}

static bool r2_health_carries(void *arg, uint32_t rail)
{
    const r2_ctx_health_t *health = arg;

    return health->core->net.rails[rail].nic.carrier;
}

static bool r2_health_reads_on(void *arg)
{
    const r2_ctx_health_t *health = arg;

    return r2_net_catches_up(&health->core->net);
}

static bool r2_health_unprobed(void *arg, uint32_t rail)
{
    const r2_ctx_health_t *health = arg;

    return r2_nic_is_bare(&health->core->net.rails[rail].nic);
}

/* Another's word that a process is gone is no proof: its lanes are asked without delay. */
static void r2_health_peer_gone(void *arg, uint32_t rank)
{
    r2_ctx_health_t *health = arg;

    atomic_fetch_add(&health->core->gone, 1);
    r2_net_check_peer(&health->core->net, rank);
}

/* Rails of a host, or between two, that work now. */
static uint32_t r2_health_left(const r2_ctx_health_t *health, uint32_t host, uint32_t other,
                               uint32_t *all_p)
{
    const r2_health_map_t *map = r2_health_map(health->machine);
    const uint32_t count = health->hosts->hosts[host].rail_count;
    uint32_t left = 0;

    *all_p = UINT32_MAX == other ? count : r2_min(count, health->hosts->hosts[other].rail_count);
    for (uint32_t rail = 0; rail < *all_p; ++rail) {
        left += 0 != (UINT32_MAX == other ? r2_health_map_entry(map, host, rail)->capacity
                                          : r2_health_map_between(map, host, other, rail));
    }
    return left;
}

static void r2_health_change(const r2_ctx_health_t *health, const r2_verdict_event_t *event,
                             r2_rail_change_t *change_p)
{
    const r2_host_t *host = &health->hosts->hosts[event->host];
    const bool way = UINT32_MAX != event->host_b;

    *change_p =
        (r2_rail_change_t){.host = event->host,
                           .other = event->host_b,
                           .rail = event->rail,
                           .nic = host->rails[event->rail].name,
                           .port = host->rails[event->rail].port,
                           .host_name = host->name,
                           .other_name = way ? health->hosts->hosts[event->host_b].name : NULL,
                           .verdict = event->verdict,
                           .capacity = event->capacity,
                           .since_ns = event->since_ns};
    change_p->left = r2_health_left(health, event->host, event->host_b, &change_p->all);
}

/*
 * Many processes know of a change, one speaks: who put it into the map, which is the first process
 * of the rail's host or who acts for it; of a way between two hosts the first process of the lower
 * one.
 */
static void r2_health_speak(r2_ctx_health_t *health, const r2_verdict_event_t *event)
{
    const uint32_t own_host = health->hosts->host_of[health->core->net.rank];
    const bool first = r2_health_is_first(health->machine);
    r2_rail_change_t change;

    if (R2_VERDICT_PEER_BUSY == event->verdict || R2_VERDICT_PEER_GONE == event->verdict ||
        R2_VERDICT_PEER_SILENT == event->verdict) {
        r2_log_at(&health->core->log,
                  first && R2_VERDICT_PEER_BUSY != event->verdict ? R2_LOG_WARN : R2_LOG_INFO,
                  "rank %u on %s: %s, seen from %s", event->rank,
                  health->hosts->hosts[event->host].name, r2_verdict_name(event->verdict),
                  health->hosts->hosts[own_host].name);
        return;
    }
    if (event->rail >= health->hosts->hosts[event->host].rail_count ||
        (R2_VERDICT_HEALTHY == event->verdict && 0 == event->version)) { /* suspected in vain */
        return;
    }
    r2_health_change(health, event, &change);
    if (UINT32_MAX != event->host_b) {
        if (first && 0 != event->version && own_host == event->host) {
            r2_rail_log_change(health->rails, &change, event->time_ns);
        }
    } else if (0 == event->version) {
        if (first && own_host != event->host && 0 == event->capacity) {
            change.from = health->hosts->hosts[own_host].name;
            r2_rail_log_hold(health->rails, &change, event->time_ns);
        }
    } else if (event->written) {
        r2_rail_log_change(health->rails, &change, event->time_ns);
    } else if (own_host != event->host) {
        r2_rail_log_release(health->rails, event->host, event->rail);
    }
}

static void r2_verdict_event(void *arg, const r2_verdict_event_t *event)
{
    r2_ctx_health_t *health = arg;
    r2_core_t *core = health->core;
    char rail[128], other[128] = "";

    ++core->counters.verdicts;
    r2_observe_verdict(core->observers, event);
    r2_health_speak(health, event);
    if (core->log.level < R2_LOG_DEBUG) {
        return;
    }
    r2_hosts_rail_text(health->hosts, event->host, event->rail, rail, sizeof(rail));
    if (R2_VERDICT_PATH == event->verdict || R2_VERDICT_AMBIGUOUS == event->verdict) {
        char text[112];

        r2_hosts_rail_text(health->hosts, event->host_b, event->rail, text, sizeof(text));
        snprintf(other, sizeof(other), " - %s", text);
    }
    r2_debug(&core->log, "%s%s: %s (%s), capacity %u/%u, map version %u: %s; since %llu ms", rail,
             other, r2_verdict_name(event->verdict), r2_direction_name(event->direction),
             event->capacity, R2_CAPACITY_FULL, event->version,
             NULL == event->evidence ? "told by others" : event->evidence,
             (unsigned long long) ((event->time_ns - r2_min(event->since_ns, event->time_ns)) /
                                   R2_NS_PER_MS));
}

static void r2_health_changed(void *arg)
{
    r2_ctx_health_t *health = arg;

    ++health->core->counters.map_changes;
}

static void r2_health_name(void *arg, uint32_t host, uint32_t rail, char *text_p, size_t text_bytes)
{
    const r2_ctx_health_t *health = arg;

    r2_hosts_rail_text(health->hosts, host, rail, text_p, text_bytes);
}

void r2_ctx_health_describe(const r2_ctx_health_t *health, uint32_t rank, char *text_p,
                            size_t text_bytes)
{
    uint64_t now_ns;

    text_p[0] = '\0';
    if (NULL == health) {
        return;
    }
    now_ns = health->core->net.now_ns;
    if (rank < health->hosts->rank_count) {
        r2_health_describe(health->machine, health->hosts->host_of[health->core->net.rank],
                           health->hosts->host_of[rank], now_ns, text_p, text_bytes);
    } else {
        r2_health_describe_broken(health->machine, now_ns, text_p, text_bytes);
    }
}

void r2_ctx_health_ports(r2_ctx_health_t *health, r2_health_ports_t *ports_p)
{
    *ports_p = (r2_health_ports_t){
        .notify = r2_health_notify,
        .probe = r2_health_probe,
        .beacon = r2_health_beacon,
        .rail_state = r2_health_rail_state,
        .path_state = r2_health_path_state,
        .delivered_ns = r2_health_delivered_ns,
        .mute = r2_health_mute,
        .own_mute = r2_health_own_mute,
        .reads_on = r2_health_reads_on,
        .unprobed = r2_health_unprobed,
        .carrier = r2_health_carries,
        .peer_gone = r2_health_peer_gone,
        .name = r2_health_name,
        .event = r2_verdict_event,
        .changed = r2_health_changed,
        .arg = health,
    };
}
