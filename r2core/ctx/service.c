/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Service thread: hello, carrier, and the engine while the application is away.
 */
#include "r2_config.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "ctx/state.h"

/*
 * The thread sleeps without timeout. It is woken by the hello listeners, by netlink, and by a timer
 * that the application pushes ahead of itself while it drives the engine (one system call per half
 * takeover time). When the timer does fire, the application is away: the thread then watches the rails
 * itself until the application comes back.
 */

typedef enum r2_service_source {
    R2_SERVICE_STOP,
    R2_SERVICE_HELLO,
    R2_SERVICE_NICS,
    R2_SERVICE_POST,
    R2_SERVICE_PROBE,
    R2_SERVICE_EVENTS,
    R2_SERVICE_PLAN_FILE,
    R2_SERVICE_TIMER,
    R2_SERVICE_RAILS,
    R2_SERVICE_SOURCES
} r2_service_source_t;

/** The service thread. Fields below `engine lock` belong to it. */
typedef struct r2_service {
    r2_ctx_t *ctx;           /* borrowed: outlives the thread */
    r2_nic_watch_t *watch;   /* owned; NULL: netlink is not available */
    pthread_t thread;
    int epoll_fd, stop_fd, timer_fd;
    /* engine lock */
    uint64_t app_ns;         /* when the application last drove */
    uint64_t timer_ns;       /* when the timer fires; R2_NEVER_NS: off */
    bool watching;           /* the rails' descriptors wake this thread */
    r2_observer_t observer;  /* in core.observers */
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

static void r2_service_app_drove(void *arg, uint64_t now_ns)
{
    r2_service_t *service = arg;
    uint64_t takeover_ns = service->ctx->core.params.takeover_us * R2_NS_PER_US;

    service->app_ns = now_ns;
    if (service->watching) {
        r2_service_watch_rails(service, false);
    }
    if (NULL == service->ctx->comms.names && NULL == service->ctx->p2p) {
        return; /* no user yet: nobody talks to us but through hello */
    }
    if (R2_NEVER_NS == service->timer_ns || service->timer_ns < now_ns + takeover_ns / 2) {
        r2_service_set_timer(service, now_ns + takeover_ns);
    }
}

/* The application has been away for the takeover time and none of its threads sleeps on the rails. */
static bool r2_service_app_away(const r2_service_t *service)
{
    uint64_t takeover_ns = service->ctx->core.params.takeover_us * R2_NS_PER_US;

    return 0 == atomic_load(&service->ctx->waiting) &&
           0 == atomic_load(&service->ctx->core.app_blocked) &&
           r2_now_ns(service->ctx->core.clock) - service->app_ns >= takeover_ns;
}

/* Engine lock. Runs the engine for the absent application and decides what wakes us next. */
static void r2_service_take_over(r2_service_t *service)
{
    r2_ctx_t *ctx = service->ctx;
    r2_net_t *net = &ctx->core.net;
    uint64_t deadline_ns;

    ++ctx->core.counters.service_takeovers;
    atomic_store(&ctx->app_wants, 0);
    net->may_deliver = ctx->core.params.async_progress;
    net->app_drives = false;
    do {
        net->now_ns = r2_now_ns(net->clock);
        r2_ctx_poll(ctx);
        r2_net_sweep(net);
        r2_ctx_health_run(ctx->health);
        if (net->may_deliver) {
            r2_engine_run(&ctx->core.engine, false);
        }
        r2_coll_collect(&ctx->comms);
    } while (!r2_net_arm(net) && 0 == atomic_load(&ctx->app_wants) &&
             0 == atomic_load(&ctx->core.app_blocked));
    deadline_ns = r2_ctx_deadline_ns(ctx);
    r2_service_set_timer(service,
                         R2_NEVER_NS == deadline_ns ? deadline_ns
                                                    : r2_max(deadline_ns, net->now_ns + R2_NS_PER_MS));
    r2_service_watch_rails(service, true);
}

/* News that did not come over the rails: the detector acts on it, and what it wants sent is sent. */
static void r2_service_tend(r2_ctx_t *ctx)
{
    r2_net_tend(&ctx->core.net);
    r2_ctx_health_run(ctx->health);
    r2_net_tend(&ctx->core.net);
}

static void r2_service_handle(r2_service_t *service, r2_service_source_t source)
{
    r2_net_t *net = &service->ctx->core.net;
    uint64_t drained;

    switch (source) {
    case R2_SERVICE_HELLO:
        net->hello.ops->poll(net->hello.instance);
        r2_service_tend(service->ctx);
        break;
    case R2_SERVICE_NICS:
        r2_nic_watch_poll(service->watch);
        r2_service_tend(service->ctx);
        break;
    case R2_SERVICE_POST:
        service->ctx->parts.post.ops->poll(service->ctx->parts.post.instance);
        r2_service_tend(service->ctx);
        break;
    case R2_SERVICE_PROBE:
        net->probe.ops->poll(net->probe.instance);
        r2_service_tend(service->ctx);
        break;
    case R2_SERVICE_TIMER:
        (void) !read(service->timer_fd, &drained, sizeof(drained));
        service->timer_ns = R2_NEVER_NS;
        break;
    case R2_SERVICE_RAILS:
        service->watching = false;
        break;
    case R2_SERVICE_EVENTS: /* written without the engine lock */
    case R2_SERVICE_PLAN_FILE:
    case R2_SERVICE_STOP:
    case R2_SERVICE_SOURCES:
        break;
    }
}

static void r2_service_after(r2_service_t *service)
{
    r2_net_t *net = &service->ctx->core.net;
    uint64_t takeover_ns = service->ctx->core.params.takeover_us * R2_NS_PER_US;

    if (r2_service_app_away(service)) {
        r2_service_take_over(service);
    } else if (R2_NEVER_NS == service->timer_ns &&
               (r2_net_outstanding(net) || NULL != service->ctx->comms.names ||
                NULL != service->ctx->p2p)) {
        r2_service_set_timer(service, r2_now_ns(net->clock) + takeover_ns);
    }
}

static void *r2_service_main(void *arg)
{
    r2_service_t *service = arg;
    r2_ctx_t *ctx = service->ctx;
    struct epoll_event events[R2_SERVICE_SOURCES];

    for (;;) {
        int count = epoll_wait(service->epoll_fd, events, R2_SERVICE_SOURCES, -1);

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
            r2_service_handle(service, (r2_service_source_t) events[i].data.u32);
        }
        r2_service_after(service);
        pthread_mutex_unlock(&ctx->core.lock);
        r2_events_flush(ctx->record.events);
        r2_snapshot_flush(ctx->record.plan_file);
    }
}

static bool r2_service_add(r2_service_t *service, int fd, r2_service_source_t source, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.u32 = source};

    return fd >= 0 && 0 == epoll_ctl(service->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static r2_status_t r2_service_spawn(r2_service_t *service)
{
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&service->thread, NULL, r2_service_main, service);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = rc;
    return 0 == rc ? R2_OK : R2_ERR_SYSTEM;
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

r2_status_t r2_service_create(r2_ctx_t *ctx, r2_nic_watch_t *watch, r2_service_t **service_p)
{
    r2_service_t *service = calloc(1, sizeof(*service));
    const r2_hello_t *hello = &ctx->core.net.hello;

    if (NULL == service) {
        return R2_ERR_NO_MEMORY;
    }
    service->ctx = ctx;
    service->watch = watch;
    service->timer_ns = R2_NEVER_NS;
    service->epoll_fd = r2_fd_keep(epoll_create1(EPOLL_CLOEXEC));
    service->stop_fd = r2_fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    service->timer_fd = r2_fd_keep(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (!r2_service_add(service, service->stop_fd, R2_SERVICE_STOP, EPOLLIN) ||
        !r2_service_add(service, service->timer_fd, R2_SERVICE_TIMER, EPOLLIN) ||
        !r2_service_add(service, hello->ops->fd(hello->instance), R2_SERVICE_HELLO, EPOLLIN) ||
        !r2_service_add(service, ctx->epoll_fd, R2_SERVICE_RAILS, EPOLLONESHOT) ||
        (NULL != ctx->parts.post.ops &&
         !r2_service_add(service, ctx->parts.post.ops->fd(ctx->parts.post.instance),
                         R2_SERVICE_POST, EPOLLIN)) ||
        (NULL != ctx->core.net.probe.ops &&
         !r2_service_add(service, ctx->core.net.probe.ops->fd(ctx->core.net.probe.instance),
                         R2_SERVICE_PROBE, EPOLLIN)) ||
        (NULL != ctx->record.events &&
         !r2_service_add(service, r2_events_fd(ctx->record.events), R2_SERVICE_EVENTS, EPOLLIN)) ||
        (NULL != ctx->record.plan_file &&
         !r2_service_add(service, r2_snapshot_fd(ctx->record.plan_file), R2_SERVICE_PLAN_FILE,
                         EPOLLIN)) ||
        (NULL != watch &&
         !r2_service_add(service, r2_nic_watch_fd(watch), R2_SERVICE_NICS, EPOLLIN)) ||
        R2_OK != r2_service_spawn(service)) {
        r2_service_close(service);
        return R2_ERR_SYSTEM;
    }
    service->observer = (r2_observer_t){.app_drove = r2_service_app_drove, .arg = service};
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
