/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Detector of this process: evidence from links, rails and probes, noted in callbacks, given afterwards.
 */
#include "r2_config.h"

#include "ctx/health.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctx/state.h"

/*
 * Evidence that waits for the end of a sweep. What comes again by itself, or is about an interval, is dropped
 * beyond this; what happens once (a lane fails, a process is gone, a probe is answered) is kept however much
 * it is: a switch that dies takes a lane of every link with it, in one sweep.
 */
#define R2_NOTE_MAX 256u

static bool r2_note_comes_again(r2_note_kind_t kind)
{
    return R2_NOTE_RATE == kind || R2_NOTE_HEARD == kind || R2_NOTE_NOTICE == kind;
}

/* @return false: no memory. */
static bool r2_note_room(r2_ctx_health_t *health)
{
    r2_note_t *more;

    if (health->queued < health->room) {
        return true;
    }
    more = realloc(health->queue, 2 * health->room * sizeof(*more));
    if (NULL == more) {
        return false;
    }
    health->queue = more;
    health->room *= 2;
    return true;
}

static r2_note_t *r2_note_new(void *arg, r2_note_kind_t kind, uint32_t rank)
{
    r2_ctx_t *ctx = arg;
    r2_note_t *note;

    if (NULL == ctx->health) {
        return NULL;
    }
    if (r2_note_comes_again(kind) && ctx->health->queued >= R2_NOTE_MAX) {
        ++ctx->core.counters.evidence_dropped;
        return NULL;
    }
    if (!r2_note_room(ctx->health)) {
        ctx->health->missed = r2_min(ctx->health->missed, rank);
        return NULL;
    }
    note = &ctx->health->queue[ctx->health->queued++];
    memset(note, 0, offsetof(r2_note_t, data));
    note->kind = kind;
    note->rank = rank;
    return note;
}

/* ---- what is noted ---- */

static void r2_note_lane(void *arg, uint32_t rank, uint32_t rail, uint32_t peer_rail,
                             r2_lane_event_t event, r2_status_t why)
{
    r2_note_t *note = r2_note_new(arg, R2_NOTE_LANE, rank);

    r2_record_lane(arg, rank, rail, event, why);
    if (NULL != note) {
        note->rail = rail;
        note->peer_rail = peer_rail;
        note->event = event;
        note->why = why;
    }
}

static void r2_note_peer(void *arg, uint32_t rank, bool silent)
{
    r2_note_t *note = r2_note_new(arg, R2_NOTE_PEER, rank);

    if (silent) {
        r2_record_peer(arg, rank, false);
    }
    if (NULL != note) {
        note->flag = silent;
    }
}

static void r2_note_notice(void *arg, uint32_t rank, const void *data, size_t bytes)
{
    r2_note_t *note;

    if (bytes > R2_NOTICE_BYTES_MAX) {
        return;
    }
    note = r2_note_new(arg, R2_NOTE_NOTICE, rank);
    if (NULL != note) {
        memcpy(note->data, data, bytes);
        note->data_bytes = (uint32_t) bytes;
    }
}

static void r2_note_rate(void *arg, uint32_t rank, uint32_t rail, bool outbound, uint64_t bytes,
                             uint64_t interval_ns)
{
    r2_note_t *note = r2_note_new(arg, R2_NOTE_RATE, rank);

    if (outbound) {
        r2_gauge_loaded(arg, rail);
    }
    if (NULL != note) {
        note->rail = rail;
        note->flag = outbound;
        note->bytes = bytes;
        note->interval_ns = interval_ns;
    }
}

void r2_note_probed(void *arg, uint64_t id, r2_probe_answer_t answer, uint64_t rtt_ns)
{
    r2_ctx_t *ctx = arg;
    r2_note_t *note;

    (void) rtt_ns;
    if (0 != (id & R2_NET_QUESTION)) {
        r2_net_probed(&ctx->core.net, id, answer);
        return;
    }
    note = r2_note_new(arg, R2_NOTE_PROBED, 0);
    if (NULL != note) {
        note->id = id;
        note->flag = R2_PROBE_ALIVE == answer;
        note->unable = R2_PROBE_UNABLE == answer;
    }
}

static void r2_note_heard(void *arg, uint32_t rank, uint32_t rail, uint64_t id)
{
    r2_note_t *note = r2_note_new(arg, R2_NOTE_HEARD, rank);

    if (NULL != note) {
        note->rail = rail;
        note->id = id;
    }
}

void r2_ctx_health_gone(r2_ctx_t *ctx, uint32_t rank)
{
    r2_record_peer(ctx, rank, true);
    (void) r2_note_new(ctx, R2_NOTE_GONE, rank);
}

static void r2_note_message(void *arg, uint32_t rank, const void *data, size_t bytes)
{
    r2_ctx_t *ctx = arg;

    r2_net_heard(&ctx->core.net, rank);
    r2_note_notice(arg, rank, data, bytes);
}

static uint64_t r2_ctx_health_refused_ns(void *arg, uint32_t rank)
{
    const r2_ctx_t *ctx = arg;
    const r2_post_t *post = &ctx->parts.post;

    return NULL == post->ops || NULL == post->ops->refused_ns
               ? 0
               : post->ops->refused_ns(post->instance, rank);
}

static bool r2_ctx_health_says_gone(void *arg, uint32_t rank)
{
    const r2_ctx_t *ctx = arg;

    return NULL != ctx->health && r2_health_gone(ctx->health->machine, rank);
}

void r2_ctx_health_bind(r2_ctx_t *ctx)
{
    r2_post_upcalls_t post = {r2_note_message, ctx};
    r2_probe_upcalls_t probe = {r2_note_probed, r2_note_heard, ctx};
    r2_net_upcalls_t *net = &ctx->core.net.upcalls;

    net->lane = r2_note_lane;
    net->peer = r2_note_peer;
    net->notice = r2_note_notice;
    net->rate = r2_note_rate;
    net->gone = r2_ctx_health_says_gone;
    net->refused_ns = r2_ctx_health_refused_ns;
    net->describe = r2_ctx_health_describe;
    if (NULL != ctx->parts.post.ops) {
        ctx->parts.post.ops->bind(ctx->parts.post.instance, &post);
    }
    if (NULL != ctx->core.net.probe.ops) {
        ctx->core.net.probe.ops->bind(ctx->core.net.probe.instance, &probe);
    }
}

/* ---- life ---- */

static void r2_ctx_health_free(r2_ctx_health_t *health)
{
    if (NULL != health->rails) {
        r2_rail_log_destroy(health->rails, health->ctx->core.net.now_ns);
    }
    if (NULL != health->machine) {
        r2_health_destroy(health->machine);
    }
    if (NULL != health->hosts) {
        r2_hosts_destroy(health->hosts);
    }
    free(health->rail_count);
    free(health->host_name);
    free(health->unanswered);
    free(health->queue);
    free(health);
}

/* What the clock lacks to the time of day. */
static int64_t r2_ctx_health_wall_ns(const r2_ctx_t *ctx)
{
    struct timespec wall;

    clock_gettime(CLOCK_REALTIME, &wall);
    return (int64_t) ((uint64_t) wall.tv_sec * R2_NS_PER_S + (uint64_t) wall.tv_nsec -
                      r2_now_ns(ctx->core.clock));
}

static r2_status_t r2_ctx_health_tables(r2_ctx_health_t *health)
{
    r2_status_t status = r2_hosts_create(&health->ctx->core.net, &health->hosts);
    uint32_t hosts = R2_OK == status ? health->hosts->host_count : 0;

    if (R2_OK != status) {
        return status;
    }
    health->rail_count = calloc(hosts, sizeof(*health->rail_count));
    health->host_name = calloc(hosts, sizeof(*health->host_name));
    health->unanswered = calloc(health->hosts->rank_count, sizeof(*health->unanswered));
    health->queue = calloc(health->room, sizeof(*health->queue));
    health->rails = r2_rail_log_create(&health->ctx->core.log, r2_ctx_health_wall_ns(health->ctx));
    if (NULL == health->rails || NULL == health->rail_count || NULL == health->host_name || NULL == health->unanswered
        || NULL == health->queue) {
        return R2_ERR_NO_MEMORY;
    }
    for (uint32_t i = 0; i < hosts; ++i) {
        health->rail_count[i] = health->hosts->hosts[i].rail_count;
        health->host_name[i] = health->hosts->hosts[i].name;
    }
    return R2_OK;
}

/* Probes of all processes of a host leave by the same NICs. */
static void r2_ctx_health_share(const r2_ctx_health_t *health)
{
    const r2_hosts_t *hosts = health->hosts;
    const r2_net_t *net = &health->ctx->core.net;
    uint32_t processes = 0;

    for (uint32_t rank = 0; rank < hosts->rank_count; ++rank) {
        processes += hosts->host_of[rank] == hosts->host_of[net->rank];
    }
    if (NULL != net->probe.ops) {
        net->probe.ops->share(net->probe.instance, processes);
    }
}

r2_status_t r2_ctx_health_create(r2_ctx_t *ctx)
{
    r2_ctx_health_t *health = calloc(1, sizeof(*health));
    r2_health_ports_t ports;
    r2_health_topology_t topology = {.own_rank = ctx->core.net.rank};
    r2_status_t status;

    if (NULL == health) {
        return R2_ERR_NO_MEMORY;
    }
    health->ctx = ctx;
    health->room = R2_NOTE_MAX;
    health->missed = UINT32_MAX;
    r2_ctx_health_ports(health, &ports);
    status = r2_ctx_health_tables(health);
    if (R2_OK == status) {
        topology.rank_count = health->hosts->rank_count;
        topology.host_count = health->hosts->host_count;
        topology.host_of = health->hosts->host_of;
        topology.rail_count = health->rail_count;
        topology.host_name = health->host_name;
        for (uint32_t i = 0; i < ctx->core.net.rail_count; ++i) {
            topology.rail_speed[i] = ctx->core.net.rails[i].nic.speed_bytes_per_s;
        }
        status = r2_health_create(&topology, &ctx->core.params, &ports, r2_now_ns(ctx->core.clock),
                                  &health->machine);
    }
    if (R2_OK != status) {
        r2_ctx_health_free(health);
        return status;
    }
    ctx->health = health;
    r2_ctx_health_share(health);
    for (uint32_t i = 0; i < ctx->core.net.rail_count; ++i) {
        if (!ctx->core.net.rails[i].nic.carrier) {
            r2_ctx_health_carrier(ctx, i, false);
        }
    }
    return R2_OK;
}

void r2_ctx_health_destroy(r2_ctx_t *ctx)
{
    if (NULL != ctx->health) {
        r2_ctx_health_free(ctx->health);
        ctx->health = NULL;
    }
}

void r2_ctx_health_carrier(r2_ctx_t *ctx, uint32_t rail, bool carrier)
{
    if (NULL != ctx->health) {
        r2_health_carrier(ctx->health->machine, rail, carrier, ctx->core.net.now_ns);
    }
}

/* ---- running ---- */

static void r2_note_give(r2_ctx_health_t *health, const r2_note_t *what, uint64_t now_ns)
{
    r2_health_t *machine = health->machine;

    switch (what->kind) {
    case R2_NOTE_LANE:
        r2_health_lane(machine, what->rank, what->rail, what->peer_rail, what->event, what->why,
                       now_ns);
        break;
    case R2_NOTE_PEER:
        r2_health_peer(machine, what->rank, what->flag, false, now_ns);
        break;
    case R2_NOTE_GONE:
        r2_health_peer(machine, what->rank, true, true, now_ns);
        break;
    case R2_NOTE_NOTICE:
        health->unanswered[what->rank] = 0;
        ++health->ctx->core.counters.notices_received;
        if (R2_OK != r2_health_noticed(machine, what->rank, what->data, what->data_bytes, now_ns)) {
            ++health->ctx->core.counters.rx_malformed;
        }
        break;
    case R2_NOTE_RATE:
        r2_health_rate(machine, what->rank, what->rail, what->flag, what->bytes, what->interval_ns,
                       now_ns);
        break;
    case R2_NOTE_PROBED:
        r2_health_probed(machine, what->id, what->flag, what->unable, now_ns);
        break;
    case R2_NOTE_HEARD:
        r2_health_heard(machine, what->rank, what->rail, what->id, now_ns);
        break;
    }
}

void r2_ctx_health_run(r2_ctx_t *ctx)
{
    r2_ctx_health_t *health = ctx->health;
    uint64_t now_ns;

    if (NULL == health || ctx->core.net.ending) {
        return;
    }
    now_ns = ctx->core.net.now_ns;
    /* what is added meanwhile (a probe that cannot be sent) is handed over, too */
    for (uint32_t i = 0; i < health->queued; ++i) {
        r2_note_t note = health->queue[i];

        r2_note_give(health, &note, now_ns);
    }
    health->queued = 0;
    if (UINT32_MAX != health->missed) {
        uint32_t from = health->missed;
        r2_links_t links = r2_core_links(&ctx->core, from);
        const r2_link_t *link;

        health->missed = UINT32_MAX;
        r2_net_tell_states(&ctx->core.net, from);
        while (NULL != (link = r2_links_next(&links))) {
            if (R2_ERR_PEER_GONE == r2_link_broken(link)) {
                (void) r2_note_new(ctx, R2_NOTE_GONE, r2_link_peer(link)); /* once more, or at last */
            }
        }
    }
    if (now_ns >= r2_health_deadline_ns(health->machine)) {
        r2_health_tick(health->machine, now_ns);
    }
    if (now_ns >= r2_rail_log_deadline_ns(health->rails)) {
        r2_rail_log_tick(health->rails, now_ns);
    }
}

void r2_ctx_health_poll(r2_ctx_t *ctx)
{
    const r2_post_t *post = &ctx->parts.post;
    const r2_probe_t *probe = &ctx->core.net.probe;
    uint64_t now_ns = ctx->core.net.now_ns;

    if (NULL != post->ops && (post->ops->fd(post->instance) < 0
                              || now_ns >= post->ops->deadline_ns(post->instance))) {
        post->ops->poll(post->instance);
    }
    if (NULL != probe->ops && (probe->ops->fd(probe->instance) < 0
                               || now_ns >= probe->ops->deadline_ns(probe->instance))) {
        probe->ops->poll(probe->instance);
    }
}

uint64_t r2_ctx_health_deadline_ns(const r2_ctx_t *ctx)
{
    const r2_post_t *post = &ctx->parts.post;
    const r2_probe_t *probe = &ctx->core.net.probe;
    uint64_t deadline_ns = R2_NEVER_NS;

    if (NULL != ctx->health) {
        deadline_ns = 0 < ctx->health->queued ? ctx->core.net.now_ns
                                              : r2_health_deadline_ns(ctx->health->machine);
        deadline_ns = r2_min(deadline_ns, r2_rail_log_deadline_ns(ctx->health->rails));
    }
    if (NULL != post->ops) {
        deadline_ns = r2_min(deadline_ns, post->ops->deadline_ns(post->instance));
    }
    if (NULL != probe->ops) {
        deadline_ns = r2_min(deadline_ns, probe->ops->deadline_ns(probe->instance));
    }
    return deadline_ns;
}

const r2_health_map_t *r2_ctx_health_map(const r2_ctx_t *ctx)
{
    return NULL == ctx->health ? NULL : r2_health_map(ctx->health->machine);
}
