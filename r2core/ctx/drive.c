/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Driving: sources, rails, timers, detector and rows, once; and how an application does it.
 */
#include "r2_config.h"

#include "ctx/drive.h"

#include <sched.h>

#include "ctx/p2p_state.h"
#include "ctx/state.h"

/* How soon copies to and from GPUs are looked at again by who sleeps otherwise. */
#define R2_DRIVE_COPIES_NS (1000 * R2_NS_PER_US)

/*
 * What others progress in the same loop, as btl/vader does, waits for each pass. After so many with
 * nothing to do, and nothing under way, the next one begins a part of the time that this has lasted
 * after the one before: what comes then is late by little more than it was waited for. Who was away
 * for so long, or has started something, begins anew.
 */
#define R2_IDLE_PASSES   64u
#define R2_IDLE_PART     64u
#define R2_IDLE_NS_LEAST (1 * R2_NS_PER_US)
#define R2_IDLE_NS_MOST  (50 * R2_NS_PER_US)
#define R2_IDLE_NS_AWAY  (2 * R2_IDLE_NS_MOST)

static void r2_ctx_note_gap(r2_ctx_t *ctx, uint64_t delivered_before)
{
    uint64_t now_ns = ctx->core.net.now_ns;

    if (ctx->core.counters.rx_bytes != delivered_before) {
        if (0 != ctx->last_delivery_ns && 0 == ctx->core.net.unwired_links) {
            ctx->core.counters.longest_gap_ns =
                r2_max(ctx->core.counters.longest_gap_ns, now_ns - ctx->last_delivery_ns);
        }
        ctx->last_delivery_ns = now_ns;
    }
    if (0 == ctx->core.net.awaited_recvs) {
        ctx->last_delivery_ns = 0; /* nobody waits for data: this pause is not a gap */
    }
}

/*
 * A thread that waits for a call is inside of it, though it may get no processor: what comes may go
 * where it belongs, whoever reads it. Receives of other threads' calls are r2's until they are
 * over, too.
 */
static bool r2_drive_may_write(const r2_ctx_t *ctx, r2_drive_t who)
{
    return 0 != (who & R2_DRIVE_RAILS) &&
           0 != atomic_load_explicit(&ctx->inside, memory_order_relaxed);
}

/* Inline, so that an application pays for no flag: its `who` is constant. */
static inline __attribute__((always_inline)) unsigned r2_drive_once(r2_ctx_t *ctx, r2_drive_t who)
{
    const bool user = 0 != (who & R2_DRIVE_USER);
    const bool memory = 0 != (who & R2_DRIVE_MEMORY) ||
                        (0 != (who & R2_DRIVE_ASYNC) && ctx->core.params.async_progress);
    const bool glance = 0 != (who & R2_DRIVE_GLANCE);
    const uint64_t delivered = ctx->core.counters.rx_bytes;
    r2_net_t *net = &ctx->core.net;
    unsigned events = 0;
    bool brief;

    net->app_drives = user;
    net->may_deliver = memory || r2_drive_may_write(ctx, who);
    if (glance) {
        events = r2_net_read(net, true);
        if (0 == events) {
            net->was_brief = true; /* nobody sleeps after it, though it may have read all rails */
            return 0;
        }
    } else {
        net->now_ns = r2_now_ns(net->clock);
    }
    brief = r2_net_is_brief(net);
    if (!brief) {
        r2_sources_poll(&ctx->sources, net->now_ns);
    }
    if (!glance && 0 != (who & R2_DRIVE_RAILS)) {
        events = r2_net_read(net, false);
    }
    if (0 != (who & R2_DRIVE_RAILS)) {
        r2_net_progress_rest(net, events, brief);
    } else {
        r2_net_progress_links(net);
    }
    if (!brief) {
        r2_ctx_health_run(ctx->health);
    }
    if (0 != (who & R2_DRIVE_SEND)) {
        r2_net_progress_links(net);
    }
    if (memory) {
        events += r2_engine_run(&ctx->core.engine, user);
    }
    if (user && NULL != ctx->p2p) {
        events += r2_p2p_collect(ctx->p2p);
    }
    r2_coll_collect(&ctx->comms);
    if (user) {
        r2_agree_run(&ctx->comms.agree);
    }
    r2_ctx_note_gap(ctx, delivered);
    r2_observe_swept(ctx->core.observers, ctx->core.counters.rx_bytes != delivered);
    return events;
}

unsigned r2_ctx_drive_locked(r2_ctx_t *ctx, r2_drive_t who)
{
    return r2_drive_once(ctx, who);
}

/* Engine lock. @param completions_p what point-to-point has to tell after it. */
static unsigned r2_ctx_drive_app(r2_ctx_t *ctx, bool glance, r2_p2p_completions_t *completions_p)
{
    unsigned events =
        glance ? r2_drive_once(ctx, R2_DRIVE_APP_GLANCE) : r2_drive_once(ctx, R2_DRIVE_APP);

    if (NULL != ctx->p2p) {
        r2_p2p_take_completions(ctx->p2p, completions_p);
    }
    return events;
}

/* No lock. Tells the application what is complete. */
static void r2_ctx_deliver(r2_ctx_t *ctx, const r2_p2p_completions_t *completions)
{
    r2_coll_deliver(&ctx->comms);
    r2_p2p_tell(completions);
}

unsigned r2_ctx_drive(r2_ctx_t *ctx, r2_drive_t who)
{
    r2_p2p_completions_t completions = {.p2p = NULL};
    unsigned events;

    r2_core_enter(&ctx->core);
    if (R2_DRIVE_APP != who) {
        events = r2_ctx_drive_locked(ctx, who);
        r2_core_leave(&ctx->core);
        return events;
    }
    events = r2_ctx_drive_app(ctx, false, &completions);
    r2_core_leave_drove(&ctx->core);
    r2_ctx_deliver(ctx, &completions);
    return events;
}

/* Engine lock. A caller whose call is complete does not come back: what it held goes now. */
static void r2_ctx_stop_staying(r2_ctx_t *ctx, const r2_coll_t *waits_for)
{
    ctx->core.net.staying = false;
    if (ctx->core.net.acks_held && R2_IN_PROGRESS != r2_coll_test(waits_for)) {
        r2_net_progress_traffic(&ctx->core.net, true); /* they say for how long they were held */
    }
}

/* Engine lock. */
static void r2_ctx_note_idle(r2_ctx_t *ctx, unsigned events)
{
    const r2_net_t *net = &ctx->core.net;
    const bool is_idle =
        0 == events && NULL == net->active && !r2_staging_is_busy(&ctx->core.engine.staging);
    r2_idle_t *idle = &ctx->core.idle;
    uint64_t until_ns = 0;

    if (0 == idle->passes || net->now_ns - idle->last_ns > R2_IDLE_NS_AWAY) {
        idle->passes = 0; /* it was away, so it has not waited */
        idle->since_ns = net->now_ns;
    }
    idle->last_ns = net->now_ns;
    idle->passes = is_idle ? r2_min(idle->passes + 1, R2_IDLE_PASSES) : 0;
    if (R2_IDLE_PASSES == idle->passes) {
        const uint64_t part_ns = (net->now_ns - idle->since_ns) / R2_IDLE_PART;

        until_ns = net->now_ns + r2_min(r2_max(part_ns, R2_IDLE_NS_LEAST), R2_IDLE_NS_MOST);
    }
    atomic_store_explicit(&idle->until_ns, until_ns, memory_order_relaxed);
}

/* True for a call so soon after the one before that it need not look. Who gave way between both,
 * or computed, comes later. */
static bool r2_ctx_is_idle(const r2_ctx_t *ctx)
{
    const uint64_t until_ns = atomic_load_explicit(&ctx->core.idle.until_ns, memory_order_relaxed);

    return 0 != until_ns && r2_now_ns(ctx->core.clock) < until_ns;
}

unsigned r2_ctx_progress_until(r2_ctx_t *ctx, const r2_coll_t *waits_for, bool glance)
{
    r2_p2p_completions_t completions = {.p2p = NULL};
    unsigned events;

    if (r2_is_forked()) {
        return 0;
    }
    if (0 != atomic_load_explicit(&ctx->service_wants, memory_order_relaxed)) {
        sched_yield();
    }
    if (0 != pthread_mutex_trylock(&ctx->core.lock)) {
        atomic_store_explicit(&ctx->app_wants, 1, memory_order_relaxed);
        sched_yield(); /* who holds it may wait for this processor */
        return 0;
    }
    ctx->core.net.staying = NULL != waits_for;
    ctx->core.net.spins = true;
    events = r2_ctx_drive_app(ctx, NULL != waits_for ? glance : r2_net_glances(&ctx->core.net),
                              &completions);
    ctx->core.net.spins = false;
    if (NULL != waits_for) {
        r2_ctx_stop_staying(ctx, waits_for);
    }
    r2_ctx_note_idle(ctx, events);
    r2_core_leave_drove(&ctx->core);
    r2_ctx_deliver(ctx, &completions);
    return events;
}

unsigned r2_ctx_progress(r2_ctx_t *ctx)
{
    return r2_ctx_progress_until(ctx, NULL, false);
}

unsigned r2_ctx_progress_as(r2_ctx_t *ctx, const void *driver)
{
    const void *other = atomic_load_explicit(&ctx->driver, memory_order_relaxed);

    if (NULL == other && atomic_compare_exchange_strong(&ctx->driver, &other, driver)) {
        other = driver;
    }
    return other == driver && !r2_ctx_is_idle(ctx) ? r2_ctx_progress(ctx) : 0;
}

void r2_ctx_progress_end(r2_ctx_t *ctx, const void *driver)
{
    const void *expected = driver;

    atomic_compare_exchange_strong(&ctx->driver, &expected, NULL);
}

uint64_t r2_ctx_deadline_ns(const r2_ctx_t *ctx)
{
    const uint64_t engine_ns =
        r2_min(r2_net_deadline_ns(&ctx->core.net), r2_ctx_health_deadline_ns(ctx->health));

    const uint64_t copies_ns =
        ctx->core.params.async_progress && r2_staging_is_busy(&ctx->core.engine.staging)
            ? ctx->core.net.now_ns + R2_DRIVE_COPIES_NS
            : UINT64_MAX;

    return r2_min(r2_min(r2_min(engine_ns, copies_ns), r2_sources_deadline_ns(&ctx->sources)),
                  r2_gap_deadline_ns(&ctx->record.gap));
}
