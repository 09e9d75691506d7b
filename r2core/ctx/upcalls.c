/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Upcalls of the net, the probes, the out-of-band path and the watch of NICs: each goes to those
 * whom it concerns.
 */
#include "r2_config.h"

#include "ctx/p2p_state.h"
#include "ctx/state.h"

/* ---- messages and who wants them ---- */

static bool r2_upcall_over(void *arg, const r2_tag_t *tag)
{
    r2_ctx_t *ctx = arg;

    if (R2_P2P_DATA_KEY == tag->comm_key) {
        return NULL == ctx->p2p || !r2_p2p_awaits(ctx->p2p, tag);
    }
    return r2_comm_over(&ctx->comms, tag);
}

static bool r2_upcall_sends(void *arg, uint32_t rank, const r2_tag_t *tag, uint32_t digest)
{
    r2_ctx_t *ctx = arg;

    return r2_comm_sends(&ctx->comms, rank, tag, digest);
}

static bool r2_upcall_receives(void *arg, uint32_t rank, const r2_tag_t *tag, uint32_t digest)
{
    r2_ctx_t *ctx = arg;

    return r2_comm_receives(&ctx->comms, rank, tag, digest);
}

static void r2_upcall_stray(void *arg, uint32_t rank, uint64_t comm_key)
{
    r2_ctx_t *ctx = arg;

    r2_comm_stray(&ctx->comms, rank, comm_key);
}

static void r2_upcall_aborted(void *arg, uint32_t rank, uint64_t comm_key, r2_status_t status)
{
    r2_ctx_t *ctx = arg;

    r2_comm_aborted(&ctx->comms, rank, comm_key, status);
}

static bool r2_upcall_unexpected(void *arg, uint32_t rank, const r2_tag_t *tag, const void *data,
                                 uint64_t bytes)
{
    r2_ctx_t *ctx = arg;

    return NULL != ctx->p2p && r2_p2p_take_whole(ctx->p2p, rank, tag, data, bytes);
}

static void r2_upcall_lost(void *arg, uint32_t rank, r2_status_t status)
{
    r2_ctx_t *ctx = arg;

    r2_comm_lost(&ctx->comms, rank, status);
    if (NULL != ctx->p2p) {
        r2_p2p_lost(ctx->p2p, rank, status);
    }
    if (R2_ERR_PEER_GONE == status) {
        r2_observe_peer(ctx->core.observers, rank, true);
        r2_note_gone(ctx->health, rank);
    }
}

/* ---- evidence ---- */

static void r2_upcall_lane(void *arg, uint32_t rank, uint32_t rail, uint32_t peer_rail,
                           r2_lane_event_t event, r2_status_t why)
{
    r2_ctx_t *ctx = arg;

    r2_note_lane(ctx->health, rank, rail, peer_rail, event, why);
    r2_observe_lane(ctx->core.observers, rank, rail, event, why);
}

static void r2_upcall_peer(void *arg, uint32_t rank, bool silent)
{
    r2_ctx_t *ctx = arg;

    r2_note_peer(ctx->health, rank, silent);
    if (silent) {
        r2_observe_peer(ctx->core.observers, rank, false);
    }
}

static void r2_upcall_notice(void *arg, uint32_t rank, const void *data, size_t bytes)
{
    r2_ctx_t *ctx = arg;

    r2_note_notice(ctx->health, rank, data, bytes);
}

static void r2_upcall_rate(void *arg, uint32_t rank, uint32_t rail, bool outbound, uint64_t bytes,
                           uint64_t interval_ns)
{
    r2_ctx_t *ctx = arg;

    if (outbound) {
        r2_observe_loaded(ctx->core.observers, rail);
    }
    r2_note_rate(ctx->health, rank, rail, outbound, bytes, interval_ns);
}

static void r2_upcall_message(void *arg, uint32_t rank, const void *data, size_t bytes)
{
    r2_ctx_t *ctx = arg;

    r2_net_heard(&ctx->core.net, rank);
    r2_note_notice(ctx->health, rank, data, bytes);
}

/* The launcher's word counts as that of others: whoever has a link to the process asks it. */
static void r2_upcall_died(void *arg, uint32_t rank)
{
    r2_ctx_t *ctx = arg;

    r2_note_gone(ctx->health, rank);
}

static void r2_upcall_probed(void *arg, uint64_t id, r2_probe_answer_t answer, uint64_t rtt_ns)
{
    r2_ctx_t *ctx = arg;

    (void) rtt_ns;
    if (0 != (id & R2_NET_PROBE)) {
        r2_net_probed(&ctx->core.net, id, answer);
        return;
    }
    r2_note_probed(ctx->health, id, answer);
}

static void r2_upcall_heard(void *arg, uint32_t rank, uint32_t rail, uint64_t id)
{
    r2_ctx_t *ctx = arg;

    r2_note_heard(ctx->health, rank, rail, id);
}

/* ---- carrier: rails[].nic is the only place that keeps it ---- */

/* Listeners follow their NIC: its address may be another, the device may have been made anew. */
static void r2_upcall_nic_here(r2_ctx_t *ctx, r2_rail_t *rail, const r2_nic_t *now)
{
    const r2_hello_t *hello = &ctx->core.net.hello;
    const r2_probe_t *probe = &ctx->core.net.probe;
    const r2_post_t *post = &ctx->parts.post;
    uint8_t address[R2_HELLO_ADDRESS_MAX], probed[R2_PROBE_ADDRESS_MAX];
    size_t bytes;

    rail->nic.ipv4 = now->ipv4;
    rail->nic.ifindex = now->ifindex;
    (void) hello->ops->listen(hello->instance, rail->idx, now, address, &bytes);
    if (NULL != probe->ops && !r2_nic_is_bare(now)) {
        (void) probe->ops->listen(probe->instance, rail->idx, now, probed, &bytes);
    }
    if (NULL != post->ops && NULL != post->ops->nic) {
        post->ops->nic(post->instance, now);
    }
}

/* Its RDMA port may have the address at another place of its table now. */
static void r2_upcall_port(r2_ctx_t *ctx, size_t idx, const r2_nic_t *now)
{
    r2_nic_t *nic = &ctx->core.net.rails[idx].nic;

    if (nic->port.gid_idx != now->port.gid_idx) {
        r2_debug(&ctx->core.log, "rail %zu (%s, %s): its address is at index %u of %s now", idx,
                 nic->name, ctx->parts.host_name, now->port.gid_idx, nic->rdma);
        nic->port.gid_idx = now->port.gid_idx;
        r2_net_rail_moved(&ctx->core.net, idx);
    }
}

/* Its lanes go by TCP from now on, since its RDMA device stays dead, or by RDMA again. */
static void r2_upcall_transport(r2_ctx_t *ctx, size_t idx, const r2_nic_t *now)
{
    r2_nic_t *nic = &ctx->core.net.rails[idx].nic;

    if (nic->rdma_lost != now->rdma_lost) {
        r2_log_at(&ctx->core.log, r2_params_first_of_host() ? R2_LOG_WARN : R2_LOG_DEBUG,
                  now->rdma_lost
                      ? "rail %zu (%s, %s): RDMA device of %s stays dead, TCP until it is back"
                      : "rail %zu (%s, %s): %s is back: RDMA again",
                  idx, nic->name, ctx->parts.host_name, nic->rdma);
        nic->rdma_lost = now->rdma_lost;
        r2_net_rail_changes(&ctx->core.net, idx);
    }
}

/* The one door for what happens to NICs of this host. */
static void r2_upcall_nic(void *arg, size_t idx, const r2_nic_t *now)
{
    r2_ctx_t *ctx = arg;
    r2_rail_t *rail = &ctx->core.net.rails[idx];
    const bool changed = rail->nic.carrier != now->carrier;
    char outage[R2_NIC_OUTAGE_TEXT_MAX];

    rail->nic.outage = now->outage;
    r2_upcall_port(ctx, idx, now);
    r2_upcall_transport(ctx, idx, now);
    if (!changed && (!now->carrier || rail->nic.ipv4 == now->ipv4)) {
        return;
    }
    if (changed && !ctx->core.net.ending) {
        r2_nic_outage_text(now, outage, sizeof(outage));
        /* all processes of the host see it; with a detector one of them says what it means */
        r2_log_at(&ctx->core.log, NULL == ctx->health ? R2_LOG_WARN : R2_LOG_DEBUG,
                  "rail %u (%s, %s): %s", rail->idx, rail->nic.name, ctx->parts.host_name,
                  now->carrier ? "works again" : outage);
    }
    if (now->carrier) {
        r2_upcall_nic_here(ctx, rail, now);
    }
    if (changed) {
        r2_net_rail_event(&ctx->core.net, idx, now->carrier);
        r2_observe_carrier(ctx->core.observers, (uint32_t) idx, now->carrier);
        r2_ctx_health_carrier(ctx->health, (uint32_t) idx, now->carrier);
    }
}

/* ---- what the net asks ---- */

static bool r2_upcall_gone(void *arg, uint32_t rank)
{
    const r2_ctx_t *ctx = arg;

    return r2_ctx_health_says_gone(ctx->health, rank);
}

static uint64_t r2_upcall_refused_ns(void *arg, uint32_t rank)
{
    const r2_ctx_t *ctx = arg;
    const r2_post_t *post = &ctx->parts.post;

    return NULL == post->ops || NULL == post->ops->refused_ns
               ? 0
               : post->ops->refused_ns(post->instance, rank);
}

static void r2_upcall_describe(void *arg, uint32_t rank, char *text_p, size_t text_bytes)
{
    const r2_ctx_t *ctx = arg;

    r2_ctx_health_describe(ctx->health, rank, text_p, text_bytes);
}

/* ---- who is bound, and looked at ---- */

static void r2_upcalls_bind_beside(r2_ctx_t *ctx)
{
    const r2_post_upcalls_t post = {r2_upcall_message, r2_upcall_died, ctx};
    const r2_probe_upcalls_t probe = {r2_upcall_probed, r2_upcall_heard, ctx};
    const r2_nic_upcalls_t nic = {r2_upcall_nic, ctx};
    const r2_hello_t *h = &ctx->core.net.hello;
    const r2_post_t *p = &ctx->parts.post;
    const r2_probe_t *q = &ctx->core.net.probe;
    const r2_nic_watch_t *w = &ctx->parts.watch;

    r2_sources_add(&ctx->sources, &(r2_source_t){.name = "hello",
                                                 .fd = h->ops->fd(h->instance),
                                                 .poll = h->ops->poll,
                                                 .deadline_ns = h->ops->deadline_ns,
                                                 .instance = h->instance});
    if (NULL != p->ops) {
        p->ops->bind(p->instance, &post);
        r2_sources_add(&ctx->sources, &(r2_source_t){.name = "messages",
                                                     .fd = p->ops->fd(p->instance),
                                                     .poll = p->ops->poll,
                                                     .deadline_ns = p->ops->deadline_ns,
                                                     .instance = p->instance});
    }
    if (NULL != q->ops) {
        q->ops->bind(q->instance, &probe);
        r2_sources_add(&ctx->sources, &(r2_source_t){.name = "probes",
                                                     .fd = q->ops->fd(q->instance),
                                                     .poll = q->ops->poll,
                                                     .deadline_ns = q->ops->deadline_ns,
                                                     .instance = q->instance});
    }
    if (NULL != w->ops) {
        w->ops->bind(w->instance, &nic);
        r2_sources_add(&ctx->sources, &(r2_source_t){.name = "NICs",
                                                     .fd = w->ops->fd(w->instance),
                                                     .poll = w->ops->poll,
                                                     .deadline_ns = w->ops->deadline_ns,
                                                     .instance = w->instance});
    }
}

void r2_upcalls_bind(r2_ctx_t *ctx)
{
    ctx->core.net.upcalls = (r2_net_upcalls_t){
        .over = r2_upcall_over,
        .sends = r2_upcall_sends,
        .receives = r2_upcall_receives,
        .stray = r2_upcall_stray,
        .unexpected = r2_upcall_unexpected,
        .aborted = r2_upcall_aborted,
        .lost = r2_upcall_lost,
        .lane = r2_upcall_lane,
        .peer = r2_upcall_peer,
        .notice = r2_upcall_notice,
        .rate = r2_upcall_rate,
        .gone = r2_upcall_gone,
        .refused_ns = r2_upcall_refused_ns,
        .describe = r2_upcall_describe,
        .arg = ctx,
    };
    r2_upcalls_bind_beside(ctx);
}
