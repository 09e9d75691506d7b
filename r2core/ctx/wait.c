/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Waiting for a collective, or at the end for peers: poll, then sleep until a rail has news.
 */
#include "r2_config.h"

#include <sys/epoll.h>
#include <unistd.h>

#include "ctx/state.h"

/* Longest sleep: what is not r2's is progressed at least this often. */
#define R2_WAIT_SLEEP_MS 1

/*
 * A pass that looks at timers and queues costs several looks at what is waited for. Once one has
 * found nothing to do, nothing is due for some microseconds.
 */
#define R2_WAIT_GLANCES 7u

/* Who makes one call after the other gives way so often to what is not r2's. */
#define R2_WAIT_GIVE_WAY_NS (100 * R2_NS_PER_US)

/* Passes that find something, after which who waits looks whether it is time to. */
#define R2_WAIT_BUSY_PASSES 16u

/* Nothing tells that a copy has ended: who waits for one looks again soon. */
#define R2_WAIT_COPY_US 20u

/* @return false: there is work, do not sleep. */
static bool r2_wait_prepare(r2_ctx_t *ctx)
{
    bool ready;

    if (0 != pthread_mutex_trylock(&ctx->core.lock)) {
        return false;
    }
    ready = r2_net_arm(&ctx->core.net);
    pthread_mutex_unlock(&ctx->core.lock);
    return ready;
}

static void r2_wait_sleep(r2_ctx_t *ctx)
{
    struct epoll_event event;

    if (r2_staging_is_busy(&ctx->core.engine.staging)) {
        usleep(R2_WAIT_COPY_US);
        return;
    }
    if (ctx->epoll_fd < 0 || !r2_wait_prepare(ctx)) {
        return;
    }
    atomic_fetch_add(&ctx->waiting, 1);
    (void) epoll_wait(ctx->epoll_fd, &event, 1, R2_WAIT_SLEEP_MS);
    atomic_fetch_sub(&ctx->waiting, 1);
}

/* True while it is too soon to sleep. */
static bool r2_wait_is_young(const r2_ctx_t *ctx, r2_wait_t *wait)
{
    const uint64_t now_ns = r2_now_ns(ctx->core.clock);

    wait->idle_ns = 0 == wait->idle_ns ? now_ns : wait->idle_ns;
    return now_ns - wait->idle_ns < ctx->core.params.spin_us * R2_NS_PER_US;
}

r2_wait_next_t r2_wait_pass(r2_ctx_t *ctx, r2_wait_t *wait)
{
    const bool glance = wait->glances > 0;

    wait->glances -= glance ? 1 : 0;
    if (r2_ctx_progress_until(ctx, wait->coll, glance) > 0) {
        wait->idle_ns = 0;
        wait->glances = 0;
        return R2_WAIT_AGAIN;
    }
    if (glance) {
        return R2_WAIT_POLL;
    }
    if (r2_wait_is_young(ctx, wait)) {
        wait->glances = R2_WAIT_GLANCES;
        return R2_WAIT_POLL;
    }
    return R2_WAIT_SLEEP;
}

void r2_wait_idle(const r2_ctx_t *ctx)
{
    if (NULL != ctx->config.idle) {
        ctx->config.idle(ctx->config.idle_arg);
    }
}

bool r2_wait_gives_way(r2_ctx_t *ctx)
{
    const uint64_t now_ns = r2_now_ns(ctx->core.clock);
    const uint64_t gave_way_ns = atomic_load_explicit(&ctx->gave_way_ns, memory_order_relaxed);

    if ((int64_t) (now_ns - gave_way_ns) < (int64_t) R2_WAIT_GIVE_WAY_NS) {
        return false; /* or another thread has, since this one looked */
    }
    atomic_store_explicit(&ctx->gave_way_ns, now_ns, memory_order_relaxed);
    return true;
}

/* What is not r2's does not wait until r2's rails have nothing any more. */
static void r2_wait_busy(r2_ctx_t *ctx, uint32_t *passes_p)
{
    if (0 == ++*passes_p % R2_WAIT_BUSY_PASSES && r2_wait_gives_way(ctx)) {
        r2_wait_idle(ctx);
    }
}

/* @return how it ended. */
static r2_status_t r2_wait_until_over(r2_ctx_t *ctx, r2_coll_t *coll)
{
    r2_wait_t wait = r2_wait_for(coll);
    r2_status_t status = R2_IN_PROGRESS;
    uint32_t busy_passes = 0;

    for (; R2_IN_PROGRESS == status; status = r2_coll_test(coll)) {
        switch (r2_wait_pass(ctx, &wait)) {
        case R2_WAIT_AGAIN:
            r2_wait_busy(ctx, &busy_passes);
            break;
        case R2_WAIT_POLL:
            r2_wait_poll(ctx);
            break;
        case R2_WAIT_SLEEP:
            r2_wait_idle(ctx);
            if (R2_IN_PROGRESS == r2_coll_test(coll)) {
                r2_wait_sleep(ctx); /* straight after a pass that found nothing */
            }
            break;
        }
    }
    return status;
}

r2_status_t r2_coll_wait(r2_coll_t *coll)
{
    r2_ctx_t *ctx = r2_ctx_of(coll->comm->comms->core);
    r2_status_t status;

    if (r2_is_forked()) {
        return R2_ERR_FORKED;
    }
    status = r2_coll_test(coll);
    if (R2_IN_PROGRESS != status && coll->drive_due) {
        (void) r2_ctx_progress(ctx); /* who only sends has to read acknowledgements, too */
    }
    if (R2_IN_PROGRESS == status) {
        atomic_fetch_add_explicit(&ctx->inside, 1, memory_order_relaxed);
        status = r2_wait_until_over(ctx, coll);
        atomic_fetch_sub_explicit(&ctx->inside, 1, memory_order_relaxed);
    }
    if (r2_wait_gives_way(ctx)) {
        r2_wait_idle(ctx);
    }
    return status;
}

void r2_ctx_linger(r2_ctx_t *ctx)
{
    bool done = r2_is_forked();

    while (!done) {
        (void) r2_ctx_drive(ctx, R2_DRIVE_SERVICE); /* the application takes nothing any more */
        r2_core_enter(&ctx->core);
        done = r2_net_leave(&ctx->core.net);
        r2_core_leave_drove(&ctx->core);
        if (!done) {
            r2_wait_sleep(ctx);
        }
    }
}
