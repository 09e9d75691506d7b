/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Service thread: sources, and the engine while the application is away.
 */
#include "r2_config.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/thread.h"
#include "ctx/state.h"
#include "local/team.h"

/*
 * The thread sleeps without timeout. It is woken by sources (ctx/source.h), and by a timer that the
 * application pushes ahead of itself while it drives the engine (one system call per half takeover
 * time). When the timer does fire, the application is away: the thread then watches the rails
 * itself until the application comes back. It drives as everybody does (ctx/drive.h).
 */

/* However much the rails bring, sources are looked at and files written this often. */
#define R2_SERVICE_TURN_NS R2_NS_PER_MS

/** What wakes the thread: sources by their index in the table, then its own. */
typedef enum r2_service_wake {
    R2_SERVICE_STOP = R2_SOURCES_MAX,
    R2_SERVICE_TIMER,
    R2_SERVICE_RAILS,
    R2_SERVICE_WAKES
} r2_service_wake_t;

/** The service thread. Fields below `engine lock` belong to it. */
typedef struct r2_service {
    r2_ctx_t *ctx; /* borrowed: outlives the thread */
    pthread_t thread;
    int epoll_fd, stop_fd, timer_fd;
    bool busy; /* it took over, and the rails have more: it does not sleep */
    /* engine lock */
    uint64_t app_ns;        /* when the application last drove */
    uint64_t timer_ns;      /* when the timer fires; R2_NEVER_NS: off */
    bool watching;          /* the rails' descriptors wake this thread */
    r2_observer_t observer; /* in core.observers */
} r2_service_t;

static void r2_service_set_timer(r2_service_t *service, uint64_t at_ns)
{
    struct itimerspec spec = {{0, 0}, {0, 0}};

    service->timer_ns = at_ns;
    if (R2_NEVER_NS != at_ns) {
        spec.it_value.tv_sec = (time_t) (at_ns / R2_NS_PER_S);
        spec.it_value.tv_nsec = (long) (at_ns % R2_NS_PER_S);
    }
    timerfd_settime(service->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

static void r2_service_watch_rails(r2_service_t *service, bool on)
{
    struct epoll_event event = {.events = on ? EPOLLIN | EPOLLONESHOT : EPOLLONESHOT,
                                .data.u32 = R2_SERVICE_RAILS};

    service->watching = on;
    epoll_ctl(service->epoll_fd, EPOLL_CTL_MOD, service->ctx->epoll_fd, &event);
}

void r2_service_watch(r2_service_t *service)
{
    if (!service->watching) {
        r2_service_watch_rails(service, true);
    }
}

/*
 * The application may be away from now on, or not come back: the timer fires within the takeover
 * time, whatever it was set for while the application was away before. @param least_ns not before.
 */
static void r2_service_await_app(r2_service_t *service, uint64_t now_ns, uint64_t least_ns)
{
    const r2_ctx_t *ctx = service->ctx;
    const uint64_t latest_ns = now_ns + ctx->core.params.takeover_us * R2_NS_PER_US;

    if (NULL == ctx->comms.names && NULL == ctx->p2p && !r2_net_outstanding(&ctx->core.net)) {
        return; /* no user yet: nobody talks to us but through hello */
    }
    if (service->timer_ns < least_ns || service->timer_ns > latest_ns) {
        r2_service_set_timer(service, latest_ns);
    }
}

static void r2_service_app_drove(void *arg, uint64_t now_ns)
{
    r2_service_t *service = arg;

    service->app_ns = now_ns;
    if (service->watching) {
        r2_service_watch_rails(service, false);
    }
    r2_service_await_app(service, now_ns,
                         now_ns + service->ctx->core.params.takeover_us * R2_NS_PER_US / 2);
}

/* Who only starts things reads nothing: we take over when it has not driven for the takeover
 * time. */
static void r2_service_app_started(void *arg, uint64_t now_ns)
{
    r2_service_await_app(arg, now_ns, 0);
}

/* The application has been away for the takeover time, and no thread of it sleeps on the rails. */
static bool r2_service_app_away(const r2_service_t *service)
{
    uint64_t takeover_ns = service->ctx->core.params.takeover_us * R2_NS_PER_US;

    return 0 == atomic_load(&service->ctx->waiting) &&
           0 == atomic_load(&service->ctx->core.app_blocked) &&
           r2_now_ns(service->ctx->core.clock) - service->app_ns >= takeover_ns;
}

/*
 * Engine lock. Runs the engine for the absent application and decides what wakes us next. To one
 * that wants the lock it leaves the rails for a while: both may share a processor, and what comes
 * would wake this thread before the other one has run.
 */
static void r2_service_take_over(r2_service_t *service)
{
    r2_ctx_t *ctx = service->ctx;
    r2_net_t *net = &ctx->core.net;
    const uint64_t turn_ends_ns = r2_now_ns(net->clock) + R2_SERVICE_TURN_NS;
    uint64_t deadline_ns;
    bool more, idle, wanted;

    ++ctx->core.counters.service_takeovers;
    atomic_store(&ctx->app_wants, 0);
    do {
        more = r2_ctx_drive_locked(ctx, R2_DRIVE_SERVICE) > 0 && ctx->core.params.async_progress;
        idle = !more && r2_net_arm(net); /* nothing tells of memory that is left to be read */
        wanted = 0 != atomic_load(&ctx->app_wants) || 0 != atomic_load(&ctx->core.app_blocked);
    } while (!idle && !wanted && net->now_ns < turn_ends_ns);
    service->busy = !idle && !wanted;
    if (service->busy) {
        return;
    }
    deadline_ns = idle && !wanted ? r2_ctx_deadline_ns(ctx) : net->now_ns;
    if (R2_NEVER_NS != deadline_ns) {
        deadline_ns = r2_max(deadline_ns, net->now_ns + R2_NS_PER_MS);
    }
    r2_service_set_timer(service, deadline_ns);
    r2_service_watch_rails(service, !wanted);
}

/* Engine lock. @return a source is ready. */
static bool r2_service_note(r2_service_t *service, const struct epoll_event *events, int count)
{
    r2_sources_t *sources = &service->ctx->sources;
    bool ready = false;
    uint64_t drained;

    for (int i = 0; i < count; ++i) {
        const uint32_t wake = events[i].data.u32;

        if (wake < sources->count) {
            sources->at[wake].ready = NULL != sources->at[wake].poll;
            ready = ready || sources->at[wake].ready;
        } else if (R2_SERVICE_TIMER == wake) {
            (void) !read(service->timer_fd, &drained, sizeof(drained));
            service->timer_ns = R2_NEVER_NS;
        } else if (R2_SERVICE_RAILS == wake) {
            service->watching = false;
            if (NULL != service->ctx->sleeps_on) {
                r2_team_ring(service->ctx->sleeps_on);
            }
        }
    }
    return ready;
}

/* Engine lock. Drives if the application does not, else works off what sources brought. */
static void r2_service_drive(r2_service_t *service, bool ready)
{
    service->busy = false;
    if (r2_service_app_away(service)) {
        r2_service_take_over(service);
        return;
    }
    if (ready) {
        (void) r2_ctx_drive_locked(service->ctx, R2_DRIVE_WOKEN);
    }
    r2_service_await_app(service, r2_now_ns(service->ctx->core.clock), 0);
}

static void *r2_service_main(void *arg)
{
    r2_service_t *service = arg;
    r2_ctx_t *ctx = service->ctx;
    struct epoll_event events[R2_SERVICE_WAKES];

    for (;;) {
        int count = epoll_wait(service->epoll_fd, events, R2_SERVICE_WAKES, service->busy ? 0 : -1);

        if (count < 0 && EINTR != errno) {
            return NULL;
        }
        atomic_store(&ctx->service_wants, 1);
        pthread_mutex_lock(&ctx->core.lock);
        atomic_store(&ctx->service_wants, 0);
        ++ctx->core.counters.service_wakeups;
        for (int i = 0; i < count; ++i) {
            if (R2_SERVICE_STOP == events[i].data.u32) {
                pthread_mutex_unlock(&ctx->core.lock);
                return NULL;
            }
        }
        r2_service_drive(service, r2_service_note(service, events, count));
        pthread_mutex_unlock(&ctx->core.lock);
        r2_sources_flush(&ctx->sources);
    }
}

static bool r2_service_add(r2_service_t *service, int fd, uint32_t wake, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.u32 = wake};

    return fd >= 0 && 0 == epoll_ctl(service->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static bool r2_service_add_all(r2_service_t *service)
{
    const r2_sources_t *sources = &service->ctx->sources;
    bool added = r2_service_add(service, service->stop_fd, R2_SERVICE_STOP, EPOLLIN) &&
                 r2_service_add(service, service->timer_fd, R2_SERVICE_TIMER, EPOLLIN) &&
                 r2_service_add(service, service->ctx->epoll_fd, R2_SERVICE_RAILS, EPOLLONESHOT);

    for (uint32_t i = 0; added && i < sources->count; ++i) {
        added = sources->at[i].fd < 0 || r2_service_add(service, sources->at[i].fd, i, EPOLLIN);
    }
    return added;
}

static void r2_service_close(r2_service_t *service)
{
    if (service->epoll_fd >= 0) {
        r2_fd_close(service->epoll_fd);
    }
    if (service->stop_fd >= 0) {
        r2_fd_close(service->stop_fd);
    }
    if (service->timer_fd >= 0) {
        r2_fd_close(service->timer_fd);
    }
    free(service);
}

r2_status_t r2_service_create(r2_ctx_t *ctx, r2_service_t **service_p)
{
    r2_service_t *service = calloc(1, sizeof(*service));

    if (NULL == service) {
        return R2_ERR_NO_MEMORY;
    }
    service->ctx = ctx;
    service->timer_ns = R2_NEVER_NS;
    service->epoll_fd = r2_fd_keep(epoll_create1(EPOLL_CLOEXEC));
    service->stop_fd = r2_fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    service->timer_fd = r2_fd_keep(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (!r2_service_add_all(service) ||
        R2_OK != r2_thread_start(&service->thread, r2_service_main, service)) {
        r2_service_close(service);
        return R2_ERR_SYSTEM;
    }
    service->observer = (r2_observer_t){.app_drove = r2_service_app_drove,
                                        .app_started = r2_service_app_started,
                                        .arg = service};
    r2_core_enter(&ctx->core);
    r2_core_watch(&ctx->core, &service->observer);
    r2_core_leave(&ctx->core);
    *service_p = service;
    return R2_OK;
}

void r2_service_destroy(r2_service_t *service)
{
    uint64_t one = 1;

    (void) !write(service->stop_fd, &one, sizeof(one));
    pthread_join(service->thread, NULL);
    r2_core_enter(&service->ctx->core);
    r2_core_unwatch(&service->ctx->core, &service->observer);
    r2_core_leave(&service->ctx->core);
    r2_service_close(service);
}
