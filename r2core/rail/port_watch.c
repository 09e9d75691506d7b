/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Follows one RDMA port: netlink says nothing of InfiniBand's, nor of a device that died.
 */
#include "r2_config.h"

#include "rail/port_watch.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/util.h"

#define R2_PORT_EVENTS_MAX   64 /* of one poll: a storm of news does not stop the engine */
#define R2_PORT_PAUSE_NS     (100 * R2_NS_PER_MS) /* opening takes milliseconds */
#define R2_PORT_PAUSE_MAX_NS (2 * R2_NS_PER_S)    /* after five attempts, within 3.1 s */
/* Who dies so soon after it was back is given up at once. */
#define R2_PORT_TRUSTED_NS (10 * R2_NS_PER_S)

static r2_status_t r2_port_watch_open(r2_port_watch_t *watch)
{
    struct epoll_event event = {.events = EPOLLIN};
    const r2_status_t status = r2_port_verbs_open(watch->rdma, &watch->verbs);

    if (R2_OK != status) {
        watch->verbs = NULL;
        return status;
    }
    if (0 != epoll_ctl(watch->epoll_fd, EPOLL_CTL_ADD, r2_port_verbs_fd(watch->verbs), &event)) {
        r2_port_verbs_close(watch->verbs);
        watch->verbs = NULL;
        return R2_ERR_NO_DEVICE;
    }
    watch->state = r2_port_verbs_state(watch->verbs);
    return R2_OK;
}

static void r2_port_watch_close(r2_port_watch_t *watch)
{
    if (NULL != watch->verbs) {
        /* first: a child of fork() may hold it */
        epoll_ctl(watch->epoll_fd, EPOLL_CTL_DEL, r2_port_verbs_fd(watch->verbs), NULL);
        r2_port_verbs_close(watch->verbs);
        watch->verbs = NULL;
    }
}

r2_status_t r2_port_watch_start(r2_port_watch_t *watch, const char *rdma, int epoll_fd)
{
    r2_status_t status;

    memset(watch, 0, sizeof(*watch));
    snprintf(watch->rdma, sizeof(watch->rdma), "%s", rdma);
    watch->epoll_fd = epoll_fd;
    status = r2_port_watch_open(watch);
    if (R2_OK != status) {
        watch->rdma[0] = '\0';
    }
    return status;
}

void r2_port_watch_stop(r2_port_watch_t *watch)
{
    r2_port_watch_close(watch);
    watch->rdma[0] = '\0';
}

/* What is open of a dead device stays dead, though the device may be back. */
static void r2_port_watch_dies(r2_port_watch_t *watch, uint64_t now_ns)
{
    r2_port_watch_close(watch);
    watch->is_lost =
        watch->is_lost || (0 != watch->back_ns && now_ns - watch->back_ns < R2_PORT_TRUSTED_NS);
    watch->pause_ns = watch->is_lost ? R2_PORT_PAUSE_MAX_NS : R2_PORT_PAUSE_NS;
    watch->retry_ns = now_ns + watch->pause_ns;
}

/* A port that does not work is no reason to leave TCP. */
static void r2_port_watch_comes_back(r2_port_watch_t *watch, uint64_t now_ns)
{
    if (watch->is_lost && R2_NIC_WORKS == r2_port_watch_outage(watch)) {
        watch->is_lost = false;
        watch->back_ns = now_ns;
    }
}

static bool r2_port_watch_retry(r2_port_watch_t *watch, uint64_t now_ns)
{
    if (now_ns < watch->retry_ns) {
        return false;
    }
    if (R2_OK == r2_port_watch_open(watch)) {
        r2_port_watch_comes_back(watch, now_ns);
        return true;
    }
    watch->pause_ns = r2_min(2 * watch->pause_ns, (uint64_t) R2_PORT_PAUSE_MAX_NS);
    watch->retry_ns = now_ns + watch->pause_ns;
    if (watch->is_lost || watch->pause_ns < R2_PORT_PAUSE_MAX_NS) {
        return false;
    }
    watch->is_lost = true;
    return true;
}

bool r2_port_watch_poll(r2_port_watch_t *watch, uint64_t now_ns)
{
    bool asks = false, gids = false;

    if ('\0' == watch->rdma[0]) {
        return false;
    }
    if (NULL == watch->verbs) {
        return r2_port_watch_retry(watch, now_ns);
    }
    for (int i = 0; i < R2_PORT_EVENTS_MAX; ++i) {
        const r2_port_news_t news = r2_port_verbs_next(watch->verbs);

        if (R2_PORT_NEWS_DEAD == news) {
            r2_port_watch_dies(watch, now_ns);
            return true;
        }
        if (R2_PORT_NEWS_NONE == news) {
            break;
        }
        asks = asks || R2_PORT_NEWS_STATE == news;
        gids = gids || R2_PORT_NEWS_GIDS == news;
    }
    if (asks || gids) { /* some drivers say nothing else of a port that works again */
        watch->state = r2_port_verbs_state(watch->verbs);
        r2_port_watch_comes_back(watch, now_ns);
    }
    return asks || gids;
}

void r2_port_watch_ask(r2_port_watch_t *watch)
{
    if (NULL != watch->verbs && R2_NIC_PORT_DOWN == r2_port_watch_outage(watch)) {
        watch->state = r2_port_verbs_state(watch->verbs);
        watch->is_lost = watch->is_lost && R2_NIC_WORKS != r2_port_watch_outage(watch);
    }
}

uint64_t r2_port_watch_deadline_ns(const r2_port_watch_t *watch)
{
    return '\0' != watch->rdma[0] && NULL == watch->verbs ? watch->retry_ns : R2_NEVER_NS;
}

bool r2_port_watch_is_lost(const r2_port_watch_t *watch)
{
    return watch->is_lost;
}

r2_nic_outage_t r2_port_watch_outage(const r2_port_watch_t *watch)
{
    const r2_port_state_t state = watch->state;

    if ('\0' == watch->rdma[0]) {
        return R2_NIC_WORKS;
    }
    if (NULL == watch->verbs) {
        return R2_NIC_DEVICE_DEAD;
    }
    return R2_PORT_DOWN == state || R2_PORT_INIT == state || R2_PORT_ARMED == state
               ? R2_NIC_PORT_DOWN
               : R2_NIC_WORKS;
}
