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
#include "link/tx.h"

#include <stdio.h>
#include <string.h>

#include "r2/fds.h"

/*
 * CLOSE asks for the end of a lane that carries nothing. Who has nothing for it either says CLOSED;
 * who has, goes on sending, and the question is off. Who hears CLOSED says it, too, and closes; who
 * said it first closes when it hears it, or when the connection is gone: the last word may be lost
 * with it. A process that says nothing is stopped: then the lane is over after a timeout, and
 * closed after one more. Nothing of the user's can be lost: what was not acknowledged goes to the
 * front of the queue, as when a lane fails.
 */

/* Receives wait for so many times failure_timeout_ms: their sender, which opens the lane, may not
 * be there any more. */
#define R2_CLOSE_TIMES 20u
/* A peer that has not said by then why a lane ended has given it up, or cannot be reached. */
#define R2_JUDGED_TIMES 4u

bool r2_idle_has_way(const r2_lane_t *lane)
{
    return r2_link_direct_grade(lane->link, lane) >= R2_GRADE_OPENING;
}

/*
 * True if there is something that could be sent. What waits for credit of the peer is not: it has
 * heard of it, and opens a lane to give it. Or links that wait for receives that wait for other
 * links would keep all lanes.
 */
static bool r2_idle_sends(const r2_link_t *link)
{
    return NULL != link->tx.queue || NULL != link->tx.control || NULL != link->tx.retransmit ||
           NULL != link->tx.relayed || link->tx.in_flight_packets > 0 || r2_grant_owes(link) ||
           ((link->tx.mute > 0 || link->tx.asks > 0) && link->tx.requests < R2_REQUESTS_MAX) ||
           link->path.inquired || link->path.owed || (link->path.leaving && r2_link_owes(link));
}

/* When a lane that rests is to be opened; R2_NEVER_NS: nothing asks for it. */
static uint64_t r2_idle_wake_ns(const r2_lane_t *lane)
{
    const r2_link_t *link = lane->link;

    if (r2_idle_has_way(lane)) {
        return NULL != link->tx.queue ? lane->connect.retry_ns : R2_NEVER_NS;
    }
    if (r2_idle_sends(link)) {
        return lane->connect.retry_ns;
    }
    return r2_link_wanted(link)
               ? r2_max(lane->connect.retry_ns,
                        lane->state_ns + r2_scaled_timeout_ns(link->net, R2_CLOSE_TIMES))
               : R2_NEVER_NS;
}

uint64_t r2_idle_deadline_ns(const r2_lane_t *lane)
{
    if (R2_LANE_RESTING == lane->state) {
        return r2_idle_wake_ns(lane);
    }
    return 0 == lane->connect.closing_ns
               ? R2_NEVER_NS
               : lane->connect.closing_ns + r2_scaled_timeout_ns(lane->link->net, 1);
}

void r2_idle_rest(r2_lane_t *lane, uint64_t pause_ns)
{
    r2_lane_enter(lane, R2_LANE_RESTING);
    lane->connect.retry_ns = lane->link->net->now_ns + pause_ns;
}

void r2_idle_wake(r2_lane_t *lane)
{
    if (R2_LANE_RESTING == lane->state) {
        r2_lane_enter(lane, R2_LANE_DOWN);
    }
}

uint64_t r2_idle_turn_ns(const r2_net_t *net)
{
    const uint64_t pause_ns = net->params->heal_max_ms * R2_NS_PER_MS;

    return pause_ns + r2_random_u64(net->clock) % (pause_ns / 4 + 1);
}

bool r2_idle_may_open(r2_lane_t *lane)
{
    r2_net_t *net = lane->link->net;

    if (net->tight && R2_LANE_DOWN == lane->state && r2_idle_has_way(lane)) {
        r2_idle_rest(lane, r2_idle_turn_ns(net)); /* one lane for each link first */
    }
    return net->now_ns >=
           (R2_LANE_RESTING == lane->state ? r2_idle_wake_ns(lane) : lane->connect.retry_ns);
}

bool r2_idle_holds(const r2_link_t *link)
{
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (!r2_lane_is_relay(&link->lanes[i]) && !r2_lane_is_down(&link->lanes[i])) {
            return false;
        }
    }
    return link->path.rests && !r2_idle_sends(link);
}

bool r2_idle_is_resting(const r2_link_t *link)
{
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (R2_LANE_RESTING == link->lanes[i].state) {
            return true;
        }
    }
    return false;
}

bool r2_link_may_ask(const r2_link_t *link, uint64_t pause_ns)
{
    const uint64_t now_ns = link->net->now_ns, asked_ns = link->path.inquired_ns;

    if (r2_idle_is_resting(link)) {
        const uint64_t heard_ns = r2_max(link->path.last_rx_ns, link->path.spoke_ns);

        return now_ns >= r2_max(heard_ns, asked_ns) + r2_max(pause_ns, R2_ASK_RESTING_NS);
    }
    return 0 == asked_ns || now_ns >= asked_ns + pause_ns;
}

bool r2_idle_is_short(const r2_link_t *link)
{
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (r2_lane_is_short(&link->lanes[i])) {
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

bool r2_idle_spares(const r2_lane_t *lane)
{
    const r2_link_t *link = lane->link;

    if (NULL != lane->tx.in_flight || R2_HELLO_ACK_DUE == lane->connect.hello_ack) {
        return false;
    }
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        const r2_lane_t *other = &link->lanes[i];

        if (other != lane && r2_lane_is_sound(other) && !r2_lane_is_relay(other)) {
            return true;
        }
    }
    return !r2_idle_sends(link);
}

void r2_idle_end(r2_lane_t *lane)
{
    if (R2_OK == r2_tx_unsequenced(lane, R2_WIRE_CLOSED)) {
        lane->connect.closing =
            lane->connect.closing >= R2_CLOSING_HEARD ? R2_CLOSING_BOTH : R2_CLOSING_AGREED;
        lane->connect.closing_ns = lane->link->net->now_ns;
        r2_link_activate(lane->link);
    }
}

/*
 * Where a relay lane serves its link, direct lanes that did not come up the last time take only
 * what is free: those that carry the relayed packets are of more use. Not where the peer has
 * called: its call got through, and what it relays for others needs a direct lane.
 */
bool r2_idle_needs(const r2_lane_t *lane)
{
    const r2_link_t *link = lane->link;
    const bool vain = lane->connect.failures > 0 && !link->path.owed;

    if (r2_idle_has_way(lane)) {
        return false;
    }
    for (uint32_t i = 0; vain && i < link->lane_count; ++i) {
        if (r2_lane_is_relay(&link->lanes[i]) && r2_lane_is_up(&link->lanes[i])) {
            return false;
        }
    }
    return true;
}

void r2_idle_expedite(r2_net_t *net)
{
    for (uint32_t rank = 0; net->tight && rank < net->size; ++rank) {
        r2_link_t *link = net->links[rank];

        for (uint32_t i = 0; NULL != link && i < link->lane_count; ++i) {
            r2_lane_t *lane = &link->lanes[i];

            if (r2_lane_is_short(lane) && r2_idle_needs(lane)) {
                lane->connect.retry_ns = r2_min(lane->connect.retry_ns, net->now_ns);
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
    lane->connect.past = R2_PAST_RESTED;
    lane->link->path.rests = !r2_idle_has_way(lane);
    net->short_until_ns = 0;
    r2_idle_expedite(net);
}

void r2_idle_heard(r2_lane_t *lane, uint8_t kind)
{
    const bool agreed =
        R2_CLOSING_AGREED == lane->connect.closing || R2_CLOSING_BOTH == lane->connect.closing;

    if (R2_WIRE_CLOSE == kind) {
        lane->connect.closing = r2_max(lane->connect.closing, R2_CLOSING_REQUESTED);
    } else if (R2_WIRE_CLOSED == kind) {
        lane->connect.closing = agreed ? R2_CLOSING_BOTH : R2_CLOSING_HEARD;
    } else if (r2_wire_sequenced(kind)) {
        lane->connect.closing_ns =
            agreed ? lane->connect.closing_ns : 0; /* the peer has use for it */
    } else {
        return;
    }
    r2_link_activate(lane->link);
}

bool r2_idle_replaced(r2_lane_t *lane, bool rested)
{
    if (lane->state < R2_LANE_UP || (!rested && 0 == lane->connect.closing_ns)) {
        return false;
    }
    r2_idle_close(lane);
    return true;
}

/* The call that asks may have to wait. */
static void r2_idle_await(r2_lane_t *lane)
{
    const r2_net_t *net = lane->link->net;

    if (!r2_lane_is_relay(lane)) {
        lane->connect.judged_ns = r2_max(net->now_ns, lane->connect.retry_ns) +
                                  r2_scaled_timeout_ns(net, R2_JUDGED_TIMES);
        lane->connect.in_vain = false;
    }
}

/*
 * The peer hears in the call that nothing failed. If no call gets through, something did, or if no
 * connection does that was made by calls: over RDMA they have different ways.
 */
void r2_idle_renewed(r2_lane_t *lane)
{
    r2_lane_reopen(lane);
    lane->connect.past = R2_PAST_RESTED;
    r2_idle_await(lane);
    lane->connect.renewed = 0 != lane->connect.judged_ns;
}

void r2_idle_renew(r2_lane_t *lane)
{
    const uint64_t connection = lane->connect.rx_connection;

    r2_idle_renewed(lane);
    r2_lane_tell_peer(lane->link, connection, true); /* the call may not get through */
}

/*
 * The last word before the end of a connection may be lost with it. Who was stopped meanwhile
 * cannot tell whether the lane was closed or given up, and its peer can: the next connect request
 * says which. A lane on which nothing was acknowledged may never have been up there.
 */
void r2_idle_ended(r2_lane_t *lane)
{
    const bool proved = !r2_lane_is_unproved(lane);

    r2_lane_reopen(lane);
    r2_idle_settle(lane); /* another question from here on */
    if (proved) {
        r2_idle_await(lane);
    }
}

static void r2_idle_condemn(r2_lane_t *lane)
{
    r2_lane_report(lane, R2_ERR_LANE_DOWN);
    lane->connect.past = R2_PAST_UP;
    r2_idle_settle(lane);
}

/* What was closed here was well if what is opened instead carries something, whatever the peer
 * thinks. */
void r2_idle_judge(r2_lane_t *lane, bool rested)
{
    if (0 == lane->connect.judged_ns) {
        return;
    }
    if (lane->connect.renewed && lane->connect.unproved < R2_UNPROVED_MAX) {
        r2_idle_await(lane);
    }
    if (lane->connect.renewed) {
        return;
    }
    if (!rested) {
        r2_idle_condemn(lane);
    }
    lane->connect.judged_ns = 0;
}

/* A device that was away for a moment is not dead: the next attempt tells. */
void r2_idle_nothing_opens(r2_lane_t *lane)
{
    if (lane->connect.renewed) {
        lane->connect.unproved = (uint8_t) r2_min(lane->connect.unproved + 1u, R2_UNPROVED_MAX);
    }
    if (lane->connect.renewed && lane->connect.unproved < R2_UNPROVED_MAX) {
        r2_idle_await(lane);
    } else {
        lane->connect.in_vain = true;
    }
}

/* The peer has taken the call that asks, and may be slow to answer. */
static bool r2_idle_is_answered(const r2_lane_t *lane)
{
    const r2_net_t *net = lane->link->net;

    return 0 != lane->connect.connect_id && !r2_lane_is_relay(lane) &&
           net->hello.ops->connected(net->hello.instance, lane->connect.connect_id);
}

/* Closed here and not to be opened again: that is all, where the peer's host refuses. */
static bool r2_idle_is_refused(const r2_lane_t *lane)
{
    return lane->connect.renewed && 0 != lane->connect.refused_streak;
}

void r2_idle_judge_late(r2_lane_t *lane)
{
    const r2_net_t *net = lane->link->net;
    const bool unproved = lane->connect.unproved >= R2_UNPROVED_MAX;

    if (!unproved && (r2_idle_is_answered(lane) || !lane->connect.in_vain)) {
        lane->connect.judged_ns = net->now_ns + r2_scaled_timeout_ns(net, 1);
    } else if (r2_idle_is_refused(lane)) {
        r2_idle_settle(lane);
    } else {
        r2_idle_condemn(lane);
    }
}

void r2_idle_scan(r2_lane_t *lane)
{
    uint64_t now_ns = lane->link->net->now_ns;

    if (lane->state < R2_LANE_UP) {
        return;
    }
    if (0 != lane->connect.closing_ns && now_ns >= r2_idle_deadline_ns(lane)) {
        lane->connect.closing = R2_CLOSING_AGREED == lane->connect.closing
                                    ? R2_CLOSING_BOTH
                                    : r2_max(lane->connect.closing, R2_CLOSING_REQUESTED);
    }
    if (lane->connect.closing >= R2_CLOSING_HEARD ||
        (lane->failed && 0 != lane->connect.closing_ns)) {
        if (R2_CLOSING_HEARD == lane->connect.closing && !lane->failed) {
            (void) r2_tx_unsequenced(lane, R2_WIRE_CLOSED);
        }
        r2_idle_close(lane);
        return;
    }
    if (R2_CLOSING_REQUESTED == lane->connect.closing) {
        const bool agrees =
            r2_idle_spares(lane) && R2_OK == r2_tx_unsequenced(lane, R2_WIRE_CLOSED);

        lane->connect.closing = agrees ? R2_CLOSING_AGREED : R2_CLOSING_NO;
        lane->connect.closing_ns = agrees ? now_ns : 0;
    }
}
