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

/* So often who stays or polls looks after everything, and not only at what packets ask for. */
#define R2_NET_BRIEF_NS (50 * R2_NS_PER_US)
/* All workers are looked at this often: UCX may hold what it read behind a connection request. */
#define R2_PROGRESS_ALL_NS (50 * R2_NS_PER_US)
/* But not in each pass of who gets a processor this seldom. */
#define R2_PROGRESS_ALL_PASSES 8u
#define R2_PROGRESS_ALL_MAX_NS R2_NS_PER_MS
/* With as many workers that are readable all are looked at. */
#define R2_PROGRESS_EVENTS_MAX 16
/* A rail that everything came by so many times is looked at before the others. */
#define R2_BUSY_TIMES 8u
/* Every so manyth pass of who spins looks at all. */
#define R2_BUSY_GLANCES 4u
/* After so many times the sockets of the others are not looked at without being asked to. */
#define R2_BUSY_COOLS 32u

static bool r2_net_all_due(const r2_net_t *net)
{
    const uint64_t since_ns = net->now_ns - net->progressed_all_ns;

    return since_ns >= R2_PROGRESS_ALL_MAX_NS ||
           (since_ns >= R2_PROGRESS_ALL_NS && net->partial_passes >= R2_PROGRESS_ALL_PASSES);
}

/*
 * Looking at a worker costs a system call, most workers have nothing most of the time, and one call
 * tells which have. @return false: look at all.
 */
static bool r2_net_hear(r2_net_t *net)
{
    struct epoll_event events[R2_PROGRESS_EVENTS_MAX];
    int count;

    if (net->epoll_fd < 0 || r2_net_all_due(net)) {
        return false;
    }
    count = epoll_wait(net->epoll_fd, events, R2_PROGRESS_EVENTS_MAX, 0);
    for (int i = 0; i < count; ++i) {
        ((r2_rail_worker_t *) events[i].data.ptr)->readable = true;
    }
    return count >= 0 && count < R2_PROGRESS_EVENTS_MAX;
}

/* Fewer connections are asked one by one; of so many the epoll set tells. */
#define R2_AWAITED_MAX 5u

/* What is awaited from a peer comes by the lane whose turn it is if it is short, or of the same
 * host, and nothing is broken. @return that lane's connection; NULL: there is no such. */
static const r2_lane_conn_t *r2_link_awaited(const r2_link_t *link)
{
    const r2_lane_t *lane;

    if (0 == link->lane_count || (link->rx.striped > 0 && !link->same_host)) {
        return NULL;
    }
    lane = &link->lanes[link->turn.lane];
    return r2_lane_is_sound(lane) && !r2_lane_is_relay(lane) ? lane->conn : NULL;
}

/*
 * @param conns R2_AWAITED_MAX: the connections by which all that is awaited comes. @return their
 * number; 0: there are none, or others, or more. Who asks sockets for longer messages holds up
 * those who bring them: of several the epoll set tells, then.
 */
static uint32_t r2_net_awaited(const r2_net_t *net, const r2_lane_conn_t **conns)
{
    const r2_link_t *link;
    uint32_t count = 0;
    bool longer = false;

    DL_FOREACH(net->active, link) {
        if (0 == r2_link_posted(link)) {
            continue;
        }
        longer = longer || r2_link_posted(link) > link->rx.shorts;
        conns[count] = R2_AWAITED_MAX - 1 == count ? NULL : r2_link_awaited(link);
        if (NULL == conns[count++] || (longer && count > 1)) {
            return 0;
        }
    }
    return count;
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
 * Something came by this rail. Who hears from one rail only asks the sockets of the others no more
 * one by one: the epoll set tells of them.
 */
static void r2_net_heard_from(r2_net_t *net, r2_rail_t *rail)
{
    if (rail != net->busy_rail) {
        net->busy_rail = rail;
        net->busy_times = 0;
    }
    ++net->busy_times;
    for (uint32_t i = 0; R2_BUSY_COOLS == net->busy_times && i < net->rail_count; ++i) {
        if (rail != &net->rails[i]) {
            r2_rail_cool(&net->rails[i]);
        }
    }
}

static bool r2_net_has_busy_rail(const r2_net_t *net)
{
    return net->busy_times >= R2_BUSY_TIMES &&
           net->now_ns - net->progressed_all_ns < R2_PROGRESS_ALL_NS &&
           r2_rail_is_hot(net->busy_rail);
}

bool r2_net_is_brief(const r2_net_t *net)
{
    return (net->staying || net->spins) && net->now_ns - net->whole_ns < R2_NET_BRIEF_NS;
}

bool r2_net_glances(r2_net_t *net)
{
    net->now_ns = r2_now_ns(net->clock); /* the newest pass may be long ago */
    return r2_net_is_brief(net) && r2_net_has_busy_rail(net) &&
           0 != ++net->glances % R2_BUSY_GLANCES;
}

/*
 * @param events_p what mailboxes brought; gets what a worker brought, too.
 * @return true: that was all that is waited for, or all that a glance looks at.
 */
static bool r2_net_read_awaited(r2_net_t *net, bool glance, bool rare, unsigned *events_p)
{
    const r2_lane_conn_t *conns[R2_AWAITED_MAX];
    uint32_t count;

    if (!net->staying || r2_net_all_due(net)) {
        return false;
    }
    if (0 == *events_p ? glance && r2_net_awaits_mailboxes(net) : !r2_net_awaits(net)) {
        return true;
    }
    count = r2_net_awaited(net, conns);
    net->in_callback = true;
    for (uint32_t i = 0; i < count; ++i) {
        *events_p += r2_rail_ep_progress(conns[i]->worker, conns[i]->ep, net->now_ns, rare);
    }
    net->in_callback = false;
    return count > 0 && (glance || (*events_p > 0 && !r2_net_awaits(net)));
}

/* Looks at the rail that everything came by of late. @return false: there is none. */
static bool r2_net_read_busy(r2_net_t *net, bool rare, unsigned *events_p)
{
    if (!r2_net_has_busy_rail(net)) {
        return false;
    }
    net->in_callback = true;
    *events_p += r2_rail_progress(net->busy_rail, false, net->now_ns, rare);
    net->in_callback = false;
    return true;
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

    ++net->partial_passes;
    if (r2_net_read_awaited(net, glance, rare, &events) ||
        (glance && !net->staying && r2_net_read_busy(net, rare, &events))) {
        net->progressed_all = false;
        return events;
    }
    all = net->progressed_all = !r2_net_hear(net);
    if (all) {
        net->progressed_all_ns = net->now_ns;
        net->partial_passes = 0;
    }
    net->in_callback = true;
    events += r2_rail_progress(&net->local, all, net->now_ns, rare);
    for (uint32_t i = 0; i < net->rail_count; ++i) {
        const unsigned found = r2_rail_progress(&net->rails[i], all, net->now_ns, rare);

        if (found > 0) {
            r2_net_heard_from(net, &net->rails[i]);
        }
        events += found;
    }
    net->in_callback = false;
    return events;
}
