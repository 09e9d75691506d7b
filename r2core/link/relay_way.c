/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Relay lanes of a link: when one is needed, by which process it leads, and when it goes.
 */
#include "r2_config.h"

#include "link/relay.h"

#include <stdlib.h>

/* Multiples of failure_timeout_ms. */
#define R2_RELAY_AGAIN_TIMES 2  /* no process was there that may relay */
#define R2_RELAY_FIRST_TIMES 10 /* no lane has been up yet, and they are being opened */
#define R2_RELAY_CALL_TIMES  20 /* a hello call through a third host, and then HELLO packets */
#define R2_RELAY_BUSY_TIMES  40 /* "stopped" holds for so long, and for two pauses between calls */

/* Packets that fill a window, however short: no more wait in the memory of the process that relays. */
#define R2_RELAY_PACKETS 24

r2_lane_t *r2_relay_lane_of(r2_link_t *link)
{
    return NULL == link->relay ? NULL : &link->lanes[link->relay->lane_idx];
}

r2_lane_t *r2_relay_lane(r2_link_t *link)
{
    r2_net_t *net = link->net;
    r2_lane_t *lane = r2_relay_lane_of(link);

    if (NULL != lane || link->same_host) {
        return lane;
    }
    link->relay = calloc(1, sizeof(*link->relay));
    if (NULL == link->relay) {
        return NULL;
    }
    lane = &link->lanes[link->lane_count];
    link->relay->lane_idx = link->lane_count;
    link->relay->cursor = (link->rank + net->rank) % net->size;
    lane->link = link;
    lane->idx = link->lane_count;
    lane->rail = &net->relay->rail;
    lane->remote_idx = R2_RELAY_RAIL;
    ++link->lane_count;
    return lane;
}

bool r2_relay_reaches(const r2_link_t *link)
{
    if (link->left) {
        return false; /* no lane to it is opened any more */
    }
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        const r2_lane_t *lane = &link->lanes[i];

        if (!r2_lane_is_relay(lane) &&
            (r2_lane_grade(lane) >= R2_GRADE_DOUBT || r2_lane_has_hope(lane))) {
            return true;
        }
    }
    return false;
}

/*
 * True if a direct lane is sound. While there is a relay lane it must have been heard since that was
 * wired: the peer opened it because nothing came through to it, which this side need not have noticed.
 */
static bool r2_relay_needless(const r2_link_t *link)
{
    uint64_t wired_ns = NULL == link->relay ? 0 : link->relay->wired_ns;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        const r2_lane_t *lane = &link->lanes[i];

        if (!r2_lane_is_relay(lane) && R2_GRADE_SOUND == r2_lane_grade(lane) &&
            (0 == wired_ns || lane->last_rx_ns > wired_ns)) {
            return true;
        }
    }
    return false;
}

/*
 * Each hop has several lanes, so packets overtake each other. One so far ahead of the first missing
 * one that no acknowledgement can name it would never count as delivered.
 */
static bool r2_relay_is_ahead(const r2_lane_t *lane)
{
    return NULL != lane->in_flight && lane->tx_seq - lane->in_flight->lane_seq > R2_ACK_WINDOW;
}

bool r2_relay_bars(const r2_link_t *link, const r2_lane_t *lane, const r2_tx_item_t *item)
{
    if (!r2_lane_is_relay(lane)) {
        return false;
    }
    if (r2_relay_is_ahead(lane) ||
        lane->in_flight_bytes > lane->window_bytes + lane->window_bytes / 4) {
        return true; /* also control packets */
    }
    return (NULL != item && R2_WIRE_RELAY == item->kind) || r2_relay_needless(link);
}

uint32_t r2_relay_cost(const r2_lane_t *lane, uint32_t bytes)
{
    return r2_max(bytes, (uint32_t) (lane->window_bytes / R2_RELAY_PACKETS));
}

/* ---- choice of the process that relays ---- */

/* @return host id of a process; 0: not known. */
static uint64_t r2_relay_host(r2_net_t *net, uint32_t rank)
{
    r2_relay_t *relay = net->relay;
    r2_peer_info_t info;

    if (NULL != net->links[rank]) {
        return net->links[rank]->info.host_id;
    }
    if (NULL == relay->hosts) {
        relay->hosts = calloc(net->size, sizeof(relay->hosts[0]));
    }
    if (NULL == relay->hosts || 0 != relay->hosts[rank]) {
        return NULL == relay->hosts ? 0 : relay->hosts[rank];
    }
    if (R2_OK == r2_net_lookup(net, rank, &info)) {
        relay->hosts[rank] = info.host_id;
        r2_peer_info_put(&info);
    }
    return relay->hosts[rank];
}

/* A third host, which has other rails, and to which there is, or can be, a direct lane. */
static bool r2_relay_may(const r2_link_t *link, uint32_t rank)
{
    r2_net_t *net = link->net;
    const r2_net_upcalls_t *upcalls = &net->upcalls;
    r2_link_t *via;
    uint64_t host_id;

    if (rank == net->rank || rank == link->rank) {
        return false;
    }
    host_id = r2_relay_host(net, rank);
    if (0 == host_id || host_id == net->info.host_id || host_id == link->info.host_id ||
        (NULL != upcalls->reaches && !upcalls->reaches(upcalls->arg, rank, link->rank))) {
        return false;
    }
    if (R2_OK != r2_net_link(net, rank, &via) || R2_OK != via->broken) {
        return false;
    }
    if (!r2_relay_reaches(via)) {
        r2_link_asked_after(via);
        if (r2_link_is_busy(via)) {
            link->relay->busy_ns = net->now_ns; /* it may relay when it goes on */
        }
        return false;
    }
    return true;
}

/* True if the next in rotation may relay; a lane that is only doubted leads by another one already. */
static bool r2_relay_next_may(const r2_lane_t *lane)
{
    const struct r2_relay_way *way = lane->link->relay;

    return (NULL == lane->conn || way->cursor != way->via) && r2_relay_may(lane->link, way->cursor);
}

/* Moves on to the first of what is left of this round that may relay. @return false: none may. */
static bool r2_relay_seek(r2_lane_t *lane)
{
    struct r2_relay_way *way = lane->link->relay;

    while (way->left > 0 && !r2_relay_next_may(lane)) {
        way->cursor = (way->cursor + 1) % lane->link->net->size;
        --way->left;
    }
    return way->left > 0;
}

/* The next in rotation; a lane that is only doubted may be called the way it leads, too. */
static bool r2_relay_pick(r2_lane_t *lane, uint32_t *via_p)
{
    struct r2_relay_way *way = lane->link->relay;
    uint32_t size = lane->link->net->size;

    if (0 == way->left) {
        way->left = size;
    }
    if (r2_relay_seek(lane)) {
        *via_p = way->cursor;
        way->cursor = (way->cursor + 1) % size;
        --way->left;
        return true;
    }
    *via_p = way->via;
    return NULL != lane->conn && r2_relay_may(lane->link, way->via);
}

r2_status_t r2_relay_call(r2_lane_t *lane, const void *request, size_t bytes)
{
    r2_net_t *net = lane->link->net;
    struct r2_relay_way *way = lane->link->relay;
    r2_wire_relay_t frame = {.source = net->rank, .op = R2_RELAY_CALL, .id = lane->call_id};
    r2_tx_relay_t to = {.destination = lane->link->rank, .hello = true};
    r2_relay_parts_t parts = {request, NULL, bytes, 0};

    if (!r2_relay_pick(lane, &way->call_via)) {
        return R2_ERR_NO_PATH;
    }
    r2_debug(net->log, "calling rank %u by way of rank %u on %s", lane->link->rank, way->call_via,
             net->links[way->call_via]->info.host_name);
    way->call_ns = net->now_ns;
    return r2_relay_post(net, way->call_via, &to, &frame, &parts);
}

/* Who is left of this round is tried at once; then a new round begins, after a pause. */
static void r2_relay_next(r2_lane_t *lane)
{
    if (r2_lane_is_down(lane) && r2_relay_seek(lane)) {
        lane->retry_ns = lane->link->net->now_ns;
    }
    r2_link_activate(lane->link);
}

/* No answer: the peer is stopped, or who relays, which would have said that it cannot. */
static void r2_relay_call_unanswered(r2_lane_t *lane)
{
    lane->link->relay->busy_ns = lane->link->net->now_ns;
    r2_hello_result(lane->link->net, lane->call_id, R2_ERR_UNRESPONSIVE, NULL, 0);
}

void r2_relay_call_failed(r2_lane_t *lane, r2_status_t status)
{
    r2_hello_result(lane->link->net, lane->call_id, status, NULL, 0);
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

bool r2_relay_is_busy(const r2_link_t *link, uint64_t since_ns)
{
    const r2_net_t *net = link->net;
    const uint64_t hold_ns = r2_net_patience_ns(net, R2_RELAY_BUSY_TIMES) +
                             2 * net->params->heal_max_ms * R2_NS_PER_MS;

    return NULL != link->relay && link->relay->busy_ns > since_ns &&
           net->now_ns < link->relay->busy_ns + hold_ns;
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
               : r2_max(lane->state_ns, lane->timer_base_ns) +
                     r2_net_patience_ns(lane->link->net, R2_RELAY_CALL_TIMES);
}

static uint64_t r2_relay_call_end_ns(const r2_link_t *link)
{
    return link->relay->call_ns +
           R2_RELAY_CALL_TIMES * link->net->params->failure_timeout_ms * R2_NS_PER_MS;
}

/*
 * How long direct lanes are waited for: not long if there is no hope, longer where there may be. Lanes that
 * are up and silent are no reason, most likely the process is stopped: the detector, or a hello call that
 * is not answered either, finds out.
 */
static uint64_t r2_relay_patience_ns(const r2_link_t *link)
{
    uint64_t unit_ns = link->net->params->failure_timeout_ms * R2_NS_PER_MS;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (!r2_lane_is_relay(&link->lanes[i]) && r2_lane_is_connected(&link->lanes[i])) {
            return R2_NEVER_NS / 2;
        }
    }
    return r2_relay_reaches(link) ? R2_RELAY_FIRST_TIMES * unit_ns : unit_ns;
}

static bool r2_relay_wanted(const r2_link_t *link)
{
    return link->net->size > 2 && !link->same_host && !r2_link_is_over(link) && R2_OK == link->broken &&
           r2_link_wanted(link) && !r2_relay_needless(link);
}

/* A direct lane is back: the relay lane goes when it is empty. */
static void r2_relay_close(r2_lane_t *lane)
{
    struct r2_relay_way *way = lane->link->relay;

    if (R2_LANE_CALLING == lane->state) {
        r2_lane_cancel_call(lane);
        r2_lane_enter(lane, R2_LANE_DOWN);
    } else if (r2_lane_is_up(lane) && NULL == lane->in_flight) {
        r2_lane_fence(lane, R2_ERR_CANCELED, true);
    } else {
        return;
    }
    lane->past = R2_PAST_UP == lane->past ? R2_PAST_NONE : lane->past;
    lane->failures = 0;
    lane->retry_ns = 0;
    way->left = 0;
}

static void r2_relay_watch(r2_lane_t *lane)
{
    r2_net_t *net = lane->link->net;
    struct r2_relay_way *way = lane->link->relay;

    if (0 != lane->call_id && net->now_ns >= r2_relay_call_end_ns(lane->link)) {
        r2_relay_call_unanswered(lane);
        r2_relay_next(lane);
    }
    if (0 != lane->call_id && !r2_relay_reaches(net->links[way->call_via])) {
        r2_relay_call_failed(lane, R2_ERR_NO_PATH);
    }
    if (NULL != lane->conn && (!r2_relay_reaches(net->links[way->via]) ||
                               net->now_ns >= r2_relay_wiring_end_ns(lane))) {
        r2_relay_lane_failed(lane);
    }
    if (!r2_lane_is_down(lane) && r2_relay_needless(lane->link)) {
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
        link->relay_wanted_ns = 0;
        return;
    }
    if (0 == link->relay_wanted_ns) {
        link->relay_wanted_ns = now_ns;
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
        lane->retry_ns =
            now_ns + R2_RELAY_AGAIN_TIMES * link->net->params->failure_timeout_ms * R2_NS_PER_MS;
    }
}

uint64_t r2_relay_deadline_ns(const r2_link_t *link)
{
    const r2_lane_t *lane = NULL == link->relay ? NULL : &link->lanes[link->relay->lane_idx];

    if (NULL != lane && 0 != lane->call_id) {
        return r2_relay_call_end_ns(link);
    }
    if (NULL != lane && !r2_lane_is_down(lane)) {
        return r2_relay_wiring_end_ns(lane);
    }
    if (0 == link->relay_wanted_ns) {
        return R2_NEVER_NS;
    }
    return r2_max(link->relay_wanted_ns + r2_relay_patience_ns(link), NULL == lane ? 0 : lane->retry_ns);
}
