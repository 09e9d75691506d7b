/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Relay lanes of a link: when one is opened, and when it goes.
 */
#include "r2_config.h"

#include "link/relay.h"

/* In multiples of failure_timeout_ms, as r2_scaled_timeout_ns() takes them. */
#define R2_RELAY_RETRY_TIMES 2u  /* no process was there that may relay */
#define R2_RELAY_FIRST_TIMES 10u /* no lane has been up yet, and they are being opened */
#define R2_RELAY_CALL_TIMES  20u /* a connect request through a third host, then HELLO packets */

/* Who is left of this round is tried at once; then a new round begins, after a pause. */
static void r2_relay_next(r2_lane_t *lane)
{
    if (r2_lane_is_down(lane) && r2_relay_seek(lane)) {
        lane->connect.retry_ns = lane->link->net->now_ns;
    }
    r2_link_activate(lane->link);
}

/* No answer: the peer is stopped, or who relays, which would have said that it cannot. */
static void r2_relay_call_unanswered(r2_lane_t *lane)
{
    lane->link->path.relay->busy_ns = lane->link->net->now_ns;
    r2_hello_result(lane->link->net, lane->connect.connect_id, R2_ERR_UNRESPONSIVE, NULL, 0);
}

void r2_relay_call_failed(r2_lane_t *lane, r2_status_t status)
{
    r2_hello_result(lane->link->net, lane->connect.connect_id, status, NULL, 0);
    r2_relay_next(lane);
}

void r2_relay_call_busy(r2_lane_t *lane)
{
    r2_relay_call_unanswered(lane); /* others would say the same: they are asked after a pause */
}

void r2_relay_lane_failed(r2_lane_t *lane)
{
    r2_lane_fence(lane, R2_ERR_NO_PATH, false);
    r2_relay_next(lane);
}

/* ---- life ---- */

/*
 * HELLO packets that have not crossed by then will not. A call that was given up may have got
 * through when the peer went on, so that the two ends have wired different connections.
 */
static uint64_t r2_relay_wiring_end_ns(const r2_lane_t *lane)
{
    return R2_LANE_WIRING != lane->state
               ? R2_NEVER_NS
               : r2_max(lane->state_ns, lane->timing.base_ns) +
                     r2_scaled_timeout_ns(lane->link->net, R2_RELAY_CALL_TIMES);
}

static uint64_t r2_relay_call_end_ns(const r2_link_t *link)
{
    return link->path.relay->connect_ns + r2_scaled_timeout_ns(link->net, R2_RELAY_CALL_TIMES);
}

/*
 * How long direct lanes are waited for: not long if there is no hope, longer where there may be.
 * Lanes that are up and silent are no reason, most likely the process is stopped: the detector, or
 * a connect request that is not answered either, finds out.
 */
static uint64_t r2_relay_timeout_ns(const r2_link_t *link)
{
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (!r2_lane_is_relay(&link->lanes[i]) && r2_lane_is_connected(&link->lanes[i])) {
            return R2_NEVER_NS / 2;
        }
    }
    return r2_scaled_timeout_ns(link->net, r2_relay_reaches(link) ? R2_RELAY_FIRST_TIMES : 1);
}

static bool r2_relay_wanted(const r2_link_t *link)
{
    return link->net->size > 2 && !link->same_host && !r2_link_is_over(link) &&
           R2_OK == link->broken && r2_link_wanted(link) && !r2_relay_needless(link);
}

/* Nothing tells that the process at the other end is no more, where it has said that it ends. */
static bool r2_relay_is_over(const r2_link_t *link)
{
    return link->path.parted && !r2_link_owes_acks(link);
}

/* A direct lane is back, or the peer has left: the relay lane goes when it is empty. */
static void r2_relay_close(r2_lane_t *lane)
{
    struct r2_relay_way *way = lane->link->path.relay;

    if (R2_LANE_CONNECTING == lane->state) {
        r2_lane_cancel_connect(lane);
        r2_lane_enter(lane, R2_LANE_DOWN);
    } else if (r2_lane_is_up(lane) && NULL == lane->tx.in_flight) {
        r2_lane_fence(lane, R2_ERR_CANCELED, true);
    } else {
        return;
    }
    lane->connect.past = R2_PAST_UP == lane->connect.past ? R2_PAST_NONE : lane->connect.past;
    lane->connect.failures = 0;
    lane->connect.retry_ns = 0;
    way->left = 0;
}

static void r2_relay_watch(r2_lane_t *lane)
{
    r2_net_t *net = lane->link->net;
    struct r2_relay_way *way = lane->link->path.relay;

    if (0 != lane->connect.connect_id && net->now_ns >= r2_relay_call_end_ns(lane->link)) {
        r2_relay_call_unanswered(lane);
        r2_relay_next(lane);
    }
    if (0 != lane->connect.connect_id && !r2_relay_reaches(net->links[way->connect_via])) {
        r2_relay_call_failed(lane, R2_ERR_NO_PATH);
    }
    if (NULL != lane->conn &&
        (!r2_relay_reaches(net->links[way->via]) || net->now_ns >= r2_relay_wiring_end_ns(lane))) {
        r2_relay_lane_failed(lane);
    }
    if (!r2_lane_is_down(lane) && (r2_relay_needless(lane->link) || r2_relay_is_over(lane->link))) {
        r2_relay_close(lane);
    }
}

void r2_relay_timer(r2_link_t *link)
{
    uint64_t now_ns = link->net->now_ns;
    r2_lane_t *lane = r2_relay_lane_of(link);

    r2_relay_give_up(link);
    if (NULL != lane) {
        r2_relay_watch(lane);
    }
    if (!r2_relay_wanted(link)) {
        link->path.relay_wanted_ns = 0;
        return;
    }
    if (0 == link->path.relay_wanted_ns) {
        link->path.relay_wanted_ns = now_ns;
    }
    if (now_ns < r2_relay_deadline_ns(link)) {
        return;
    }
    lane = r2_relay_lane(link);
    if (NULL == lane || !r2_lane_is_down(lane)) {
        return;
    }
    r2_lane_open(lane);
    if (r2_lane_is_down(lane)) { /* nobody to ask just now: to look again costs next to nothing */
        lane->connect.retry_ns = now_ns + r2_scaled_timeout_ns(link->net, R2_RELAY_RETRY_TIMES);
    }
}

uint64_t r2_relay_deadline_ns(const r2_link_t *link)
{
    const r2_lane_t *lane =
        NULL == link->path.relay ? NULL : &link->lanes[link->path.relay->lane_idx];

    if (NULL != lane && 0 != lane->connect.connect_id) {
        return r2_relay_call_end_ns(link);
    }
    if (NULL != lane && !r2_lane_is_down(lane)) {
        return r2_relay_wiring_end_ns(lane);
    }
    if (0 == link->path.relay_wanted_ns) {
        return R2_NEVER_NS;
    }
    return r2_max(link->path.relay_wanted_ns + r2_relay_timeout_ns(link),
                  NULL == lane ? 0 : lane->connect.retry_ns);
}
