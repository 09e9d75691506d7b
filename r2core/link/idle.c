/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Lanes and file descriptors: where these are short, idle lanes are closed, by agreement, and
 * opened again when they are needed. That is no fault: nobody is told, nothing is counted as
 * failed.
 */
#include "r2_config.h"

#include "link/idle.h"

#include <stdio.h>
#include <string.h>

#include "base/fds.h"

/*
 * CLOSE asks for the end of a lane that carries nothing. Who has nothing for it either says CLOSED;
 * who has, goes on sending, and the question is off. Who hears CLOSED says it, too, and closes; who
 * said it first closes when it hears it, or when the connection is gone: the last word may be lost
 * with it. A process that says nothing is stopped: then the lane is over after a timeout, and
 * closed after one more. Nothing of the user's can be lost: what was not acknowledged goes to the
 * front of the queue, as when a lane fails.
 */

/* A lane that was heard so lately is not idle: it may be in the middle of a call. */
#define R2_IDLE_NS (10 * R2_NS_PER_MS)
/* When a link without a lane looks for room again, at least; with as much jitter. */
#define R2_AGAIN_NS (10 * R2_NS_PER_MS)
/* To look for room costs more the more peers there are: not for each lane. */
#define R2_LOOK_NS R2_NS_PER_MS
/* When it asks a peer again that has no room, at most so many times doubled: the peer calls when it
 * has. */
#define R2_PUT_OFFS_MAX 4u
/* Rows wait for so many times failure_timeout_ms: their sender, which opens the lane, may not be
 * there any more. */
#define R2_ASK_TIMES 20u

/* Another lane of the link is there or being opened. */
static bool r2_idle_has_way(const r2_lane_t *lane)
{
    const r2_link_t *link = lane->link;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        const r2_lane_t *other = &link->lanes[i];

        if (other != lane && R2_LANE_DOWN != other->state && !other->failed &&
            !r2_lane_is_relay(other)) {
            return true;
        }
    }
    return false;
}

static bool r2_idle_sends(const r2_link_t *link)
{
    return NULL != link->messages || NULL != link->control || NULL != link->again ||
           NULL != link->relayed || link->grants.news_count > 0 || link->asked_for || link->owed;
}

/* When a lane that rests is to be opened; R2_NEVER_NS: nothing asks for it. */
static uint64_t r2_idle_wake_ns(const r2_lane_t *lane)
{
    const r2_link_t *link = lane->link;

    if (r2_idle_has_way(lane)) {
        return NULL != link->queue ? lane->retry_ns : R2_NEVER_NS;
    }
    if (r2_idle_sends(link)) {
        return lane->retry_ns;
    }
    return 0 == r2_link_posted(link)
               ? R2_NEVER_NS
               : r2_max(lane->retry_ns,
                        lane->state_ns + r2_net_patience_ns(link->net, R2_ASK_TIMES));
}

uint64_t r2_idle_deadline_ns(const r2_lane_t *lane)
{
    if (r2_lane_rests(lane)) {
        return r2_idle_wake_ns(lane);
    }
    return 0 == lane->closing_ns ? R2_NEVER_NS
                                 : lane->closing_ns + r2_net_patience_ns(lane->link->net, 1);
}

static void r2_idle_rest(r2_lane_t *lane, uint64_t pause_ns)
{
    lane->resting = true;
    lane->retry_ns = lane->link->net->now_ns + pause_ns;
}

bool r2_idle_may_open(r2_lane_t *lane)
{
    r2_net_t *net = lane->link->net;

    if (net->tight && !lane->resting && r2_idle_has_way(lane)) {
        r2_idle_rest(lane,
                     net->params->heal_max_ms * R2_NS_PER_MS); /* one lane for each link first */
    }
    return net->now_ns >= (lane->resting ? r2_idle_wake_ns(lane) : lane->retry_ns);
}

bool r2_idle_holds(const r2_link_t *link)
{
    bool rests = false;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (!r2_lane_is_relay(&link->lanes[i])) {
            rests = rests || r2_lane_rests(&link->lanes[i]);
            if (R2_LANE_DOWN != link->lanes[i].state) {
                return false;
            }
        }
    }
    return rests;
}

bool r2_idle_is_short(const r2_link_t *link)
{
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (R2_LANE_DOWN == link->lanes[i].state && R2_ERR_NO_DESCRIPTORS == link->lanes[i].why) {
            return true;
        }
    }
    return false;
}

size_t r2_idle_explain(const r2_link_t *link, char *text_p, size_t text_bytes)
{
    const r2_net_t *net = link->net;

    if (r2_idle_is_short(link)) {
        snprintf(
            text_p, text_bytes,
            "  of the %zu files that a process may open (ulimit -n) too few are free, here or at "
            "the peer:\n  raise the limit, hard and soft; r2 needs %zu for all lanes of this job\n",
            r2_fds_limit(), r2_fds_of_job(net->size, net->rail_count));
    }
    return strlen(text_p);
}

/* ---- closing ---- */

/* True if this side has nothing for a lane, or another lane for it. */
static bool r2_idle_spares(const r2_lane_t *lane)
{
    const r2_link_t *link = lane->link;

    if (NULL != lane->in_flight || lane->hello_answer) {
        return false;
    }
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        const r2_lane_t *other = &link->lanes[i];

        if (other != lane && R2_LANE_UP == other->state && !other->failed && !other->hedged &&
            0 == other->closing_ns && !r2_lane_is_relay(other)) {
            return true;
        }
    }
    return !r2_idle_sends(link);
}

static bool r2_idle_is_victim(const r2_lane_t *lane)
{
    return R2_LANE_UP == lane->state && !lane->failed && !lane->hedged && 0 == lane->call_id &&
           !r2_lane_is_relay(lane) && lane->link->net->now_ns - lane->last_rx_ns >= R2_IDLE_NS &&
           lane->link->net->now_ns - lane->state_ns >= R2_IDLE_NS && r2_idle_spares(lane);
}

/* The less is lost the lower: a lane beside others, one that nothing is awaited on; worst where
 * others share its worker. */
static uint32_t r2_idle_price(const r2_lane_t *lane)
{
    return (lane->conn->worker->users > 1 ? 4u : 0u) + (r2_idle_has_way(lane) ? 0u : 1u) +
           (r2_link_posted(lane->link) > 0 ? 1u : 0u);
}

static bool r2_idle_is_better(const r2_lane_t *lane, const r2_lane_t *best)
{
    uint32_t price = r2_idle_price(lane), best_price;

    if (NULL == best) {
        return true;
    }
    best_price = r2_idle_price(best);
    return price < best_price || (price == best_price && lane->last_rx_ns < best->last_rx_ns);
}

/* Asks for the end of the lane that costs least. One at a time: what it gives back comes soon. */
static void r2_idle_make_room(r2_link_t *wants)
{
    r2_net_t *net = wants->net;
    r2_lane_t *best = NULL;

    for (uint32_t rank = 0; rank < net->size; ++rank) {
        r2_link_t *link = net->links[rank];

        for (uint32_t i = 0;
             NULL != link && link != wants && !link->same_host && i < link->lane_count; ++i) {
            r2_lane_t *lane = &link->lanes[i];

            if (0 != lane->closing_ns) {
                return;
            }
            if (r2_idle_is_victim(lane) && r2_idle_is_better(lane, best)) {
                best = lane;
            }
        }
    }
    if (NULL != best && R2_OK == r2_tx_bare(best, R2_WIRE_CLOSE)) {
        best->closing_ns = net->now_ns;
        r2_link_activate(best->link);
    }
}

/* What was given back is for those that have none. */
static void r2_idle_hurry(r2_net_t *net)
{
    for (uint32_t rank = 0; rank < net->size; ++rank) {
        r2_link_t *link = net->links[rank];

        for (uint32_t i = 0; NULL != link && i < link->lane_count; ++i) {
            r2_lane_t *lane = &link->lanes[i];

            if (R2_LANE_DOWN == lane->state && R2_ERR_NO_DESCRIPTORS == lane->why &&
                !r2_idle_has_way(lane)) {
                lane->retry_ns = r2_min(lane->retry_ns, net->now_ns);
            }
        }
    }
}

static void r2_idle_close(r2_lane_t *lane)
{
    r2_net_t *net = lane->link->net;

    r2_lane_close(lane);
    ++net->counters->lanes_rested;
    r2_debug(net->log, "rail %s to rank %u on %s: closed until it is needed", lane->rail->nic.name,
             lane->link->rank, lane->link->info.host_name);
    r2_idle_rest(lane, 0);
    lane->rested = true;
    net->short_until_ns = 0;
    if (net->tight) {
        r2_idle_hurry(net);
    }
}

void r2_idle_heard(r2_lane_t *lane, uint8_t kind)
{
    if (R2_WIRE_CLOSE == kind) {
        lane->close_asked = true;
    } else if (R2_WIRE_CLOSED == kind) {
        lane->closed = true;
    } else if (r2_wire_sequenced(kind)) {
        lane->closing_ns = lane->agreed ? lane->closing_ns : 0; /* the peer has use for it */
    } else {
        return;
    }
    r2_link_activate(lane->link);
}

bool r2_idle_replaced(r2_lane_t *lane, bool rested)
{
    if (R2_LANE_UP != lane->state || (!rested && 0 == lane->closing_ns)) {
        return false;
    }
    r2_idle_close(lane);
    return true;
}

void r2_idle_tend(r2_lane_t *lane)
{
    uint64_t now_ns = lane->link->net->now_ns;

    if (lane->state < R2_LANE_UP) {
        return;
    }
    if (0 != lane->closing_ns && now_ns >= r2_idle_deadline_ns(lane)) {
        lane->closed = lane->agreed;
        lane->close_asked = true;
    }
    if (lane->closed || (lane->failed && 0 != lane->closing_ns)) {
        if (!lane->agreed && !lane->failed) {
            (void) r2_tx_bare(lane, R2_WIRE_CLOSED);
        }
        r2_idle_close(lane);
        return;
    }
    if (lane->close_asked && !lane->agreed) {
        lane->agreed = r2_idle_spares(lane) && R2_OK == r2_tx_bare(lane, R2_WIRE_CLOSED);
        lane->closing_ns = lane->agreed ? now_ns : 0;
    }
    lane->close_asked = false;
}

/* ---- shortage ---- */

/* From now on each lane has a worker of its own: descriptors come back with the worker only. */
static void r2_idle_tighten(r2_net_t *net)
{
    net->local.alone = true;
    for (uint32_t i = 0; i < net->rail_count; ++i) {
        net->rails[i].alone = true;
    }
    net->tight = true;
}

void r2_net_tighten(r2_net_t *net)
{
    if (!net->tight) {
        r2_info(net->log, "file descriptors are short: lanes that are idle are closed, and opened "
                          "again when needed");
        r2_idle_tighten(net);
    }
}

void r2_idle_put_off(r2_lane_t *lane)
{
    r2_net_t *net = lane->link->net;
    bool has_way = r2_idle_has_way(lane);
    uint64_t pause_ns = has_way ? net->params->heal_max_ms * R2_NS_PER_MS
                                : (R2_AGAIN_NS + r2_random_u64(net->clock) % R2_AGAIN_NS)
                                      << lane->put_offs;

    lane->put_offs += lane->put_offs < R2_PUT_OFFS_MAX;
    if (lane->state >= R2_LANE_UP) {
        lane->retry_ns = net->now_ns + pause_ns; /* a check of a silent lane */
        return;
    }
    if (R2_LANE_WIRING == lane->state) { /* cannot be asked after: it gives back what it has */
        r2_lane_fence(lane, R2_ERR_NO_DESCRIPTORS, false);
    }
    if (R2_LANE_DOWN != lane->state) {
        r2_lane_enter(lane, R2_LANE_DOWN);
    }
    lane->why = R2_ERR_NO_DESCRIPTORS;
    r2_idle_rest(lane, pause_ns);
    lane->resting = has_way || !r2_link_wanted(lane->link);
}

static void r2_idle_short(r2_lane_t *lane)
{
    r2_net_t *net = lane->link->net;

    ++net->counters->shortages;
    r2_net_tighten(net);
    lane->put_offs = 0;
    r2_idle_put_off(lane);
    lane->put_offs = 0;
    if (r2_idle_may_look(net) && !r2_idle_has_way(lane)) {
        net->short_until_ns = net->now_ns + R2_LOOK_NS;
        r2_idle_make_room(lane->link);
    }
}

r2_status_t r2_idle_worker(r2_lane_t *lane, r2_rail_worker_t **worker_p)
{
    r2_net_t *net = lane->link->net;
    r2_status_t status =
        r2_idle_may_look(net)
            ? r2_rail_get(lane->rail, lane->link->rank, net->pending_lanes, worker_p)
            : R2_ERR_NO_DESCRIPTORS;

    if (R2_ERR_NO_DESCRIPTORS == status) {
        r2_idle_short(lane);
    } else {
        lane->resting = false;
    }
    return status;
}

void r2_idle_owes(r2_lane_t *lane)
{
    if (R2_ERR_NO_DESCRIPTORS != lane->why) {
        r2_idle_short(lane);
    }
    lane->resting = r2_idle_has_way(lane);
    lane->link->owed = lane->link->owed || !lane->resting; /* ends when a lane comes up */
    r2_link_activate(lane->link);
}
