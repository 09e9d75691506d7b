/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Reading: which workers and mailboxes a progress pass looks at.
 */
#include "r2_config.h"

#include <sys/epoll.h>
#include <utlist.h>

#include "link/local.h"
#include "link/rx.h"

/* All workers are looked at this often: UCX may hold what it read behind a connection request. */
#define R2_PROGRESS_ALL_NS (50 * R2_NS_PER_US)
/* With as many workers that are readable all are looked at. */
#define R2_PROGRESS_EVENTS_MAX 16

/*
 * Looking at a worker costs a system call, most workers have nothing most of the time, and one call
 * tells which have. @return false: look at all.
 */
static bool r2_net_hear(r2_net_t *net)
{
    struct epoll_event events[R2_PROGRESS_EVENTS_MAX];
    int count;

    if (net->epoll_fd < 0 || net->now_ns - net->progressed_all_ns >= R2_PROGRESS_ALL_NS) {
        return false;
    }
    count = epoll_wait(net->epoll_fd, events, R2_PROGRESS_EVENTS_MAX, 0);
    for (int i = 0; i < count; ++i) {
        ((r2_rail_worker_t *) events[i].data.ptr)->readable = true;
    }
    return count >= 0 && count < R2_PROGRESS_EVENTS_MAX;
}

/*
 * What a process waits for that waits for one peer comes by the lane whose turn it is if it is
 * short, or of the same host, and nothing is broken. @return that lane's worker; NULL: there is no
 * such.
 */
static r2_rail_worker_t *r2_net_awaited(const r2_net_t *net)
{
    const r2_link_t *only = NULL, *link;
    const r2_lane_t *lane;

    DL_FOREACH(net->active, link) {
        if (r2_link_posted(link) > 0) {
            if (NULL != only) {
                return NULL;
            }
            only = link;
        }
    }
    if (NULL == only || 0 == only->lane_count || (only->rx.striped > 0 && !only->same_host)) {
        return NULL;
    }
    lane = &only->lanes[only->turn.lane];
    return r2_lane_is_sound(lane) && !r2_lane_is_relay(lane) ? lane->conn->worker : NULL;
}

/* True if some receive waits, and each that does may get its message from a mailbox. */
static bool r2_net_awaits_mailboxes(const r2_net_t *net)
{
    const r2_link_t *link;
    bool awaits = false;

    DL_FOREACH(net->active, link) {
        if (r2_link_posted(link) > 0) {
            if (!r2_local_hears(link) || link->rx.striped > 0) {
                return false;
            }
            awaits = true;
        }
    }
    return awaits;
}

static bool r2_net_awaits(const r2_net_t *net)
{
    const r2_link_t *link;

    DL_FOREACH(net->active, link) {
        if (r2_link_posted(link) > 0) {
            return true;
        }
    }
    return false;
}

/*
 * @param events_p what mailboxes brought; gets what a worker brought, too.
 * @return true: that was all that is waited for, or all that a glance looks at.
 */
static bool r2_net_read_awaited(r2_net_t *net, bool glance, bool rare, unsigned *events_p)
{
    r2_rail_worker_t *worker;

    if (!net->staying || net->now_ns - net->progressed_all_ns >= R2_PROGRESS_ALL_NS) {
        return false;
    }
    if (0 == *events_p ? glance && r2_net_awaits_mailboxes(net) : !r2_net_awaits(net)) {
        return true;
    }
    worker = r2_net_awaited(net);
    if (NULL == worker) {
        return false;
    }
    net->in_callback = true;
    *events_p += r2_rail_worker_progress(worker, net->now_ns, rare);
    net->in_callback = false;
    return 0 == *events_p ? glance : NULL == r2_net_awaited(net);
}

static unsigned r2_net_read_mailboxes(r2_net_t *net)
{
    unsigned events = 0;

    if (net->may_deliver && NULL != net->inbox) { /* nothing is lost by what stays there */
        net->in_callback = true;
        events = r2_local_poll(net);
        net->in_callback = false;
    }
    return events;
}

unsigned r2_net_read_rails(r2_net_t *net, bool glance, bool rare)
{
    unsigned events = r2_net_read_mailboxes(net);
    bool all;

    if (r2_net_read_awaited(net, glance, rare, &events)) {
        net->progressed_all = false;
        return events;
    }
    all = net->progressed_all = !r2_net_hear(net);
    if (all) {
        net->progressed_all_ns = net->now_ns;
    }
    net->in_callback = true;
    events += r2_rail_progress(&net->local, all, net->now_ns, rare);
    for (uint32_t i = 0; i < net->rail_count; ++i) {
        events += r2_rail_progress(&net->rails[i], all, net->now_ns, rare);
    }
    net->in_callback = false;
    return events;
}
