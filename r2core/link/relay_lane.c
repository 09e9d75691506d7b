/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Relay lanes as their link sees them: which it is, whether it is needed, what may go by it.
 */
#include "r2_config.h"

#include "link/relay.h"

#include <stdlib.h>

/* Times failure_timeout_ms: "stopped" holds for so long, and for two pauses between calls. */
#define R2_RELAY_BUSY_TIMES 40

/* Packets that fill a window, however short: no more wait in the memory of the process that
 * relays. */
#define R2_RELAY_PACKETS 24

r2_lane_t *r2_relay_lane_of(r2_link_t *link)
{
    return NULL == link->path.relay ? NULL : &link->lanes[link->path.relay->lane_idx];
}

r2_lane_t *r2_relay_lane(r2_link_t *link)
{
    r2_net_t *net = link->net;
    r2_lane_t *lane = r2_relay_lane_of(link);

    if (NULL != lane || link->same_host) {
        return lane;
    }
    link->path.relay = calloc(1, sizeof(*link->path.relay));
    if (NULL == link->path.relay) {
        return NULL;
    }
    lane = &link->lanes[link->lane_count];
    link->path.relay->lane_idx = link->lane_count;
    link->path.relay->cursor = (link->rank + net->rank) % net->size;
    lane->link = link;
    lane->idx = link->lane_count;
    lane->rail = &net->relay->rail;
    lane->remote_idx = R2_RELAY_RAIL;
    ++link->lane_count;
    return lane;
}

bool r2_relay_reaches(const r2_link_t *link)
{
    if (link->path.left) {
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
 * While there is a relay lane the direct one must have been heard since that was wired: the peer
 * opened it because nothing came through to it, which this side need not have noticed.
 */
bool r2_relay_needless(const r2_link_t *link)
{
    uint64_t wired_ns = NULL == link->path.relay ? 0 : link->path.relay->wired_ns;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        const r2_lane_t *lane = &link->lanes[i];

        if (!r2_lane_is_relay(lane) && R2_GRADE_SOUND == r2_lane_grade(lane) &&
            (0 == wired_ns || lane->rx.last_ns > wired_ns)) {
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
    return NULL != lane->tx.in_flight &&
           lane->tx.seq - lane->tx.in_flight->header.lane_seq > R2_ACK_WINDOW;
}

bool r2_relay_bars(const r2_link_t *link, const r2_lane_t *lane, const r2_tx_item_t *item)
{
    if (!r2_lane_is_relay(lane)) {
        return false;
    }
    if (r2_relay_is_ahead(lane) ||
        lane->tx.in_flight_bytes > lane->tx.window_bytes + lane->tx.window_bytes / 4) {
        return true; /* also control packets */
    }
    return (NULL != item && R2_WIRE_RELAY == item->kind) || r2_relay_needless(link);
}

uint32_t r2_relay_cost(const r2_lane_t *lane, uint32_t bytes)
{
    return r2_max(bytes, (uint32_t) (lane->tx.window_bytes / R2_RELAY_PACKETS));
}

bool r2_relay_is_busy(const r2_link_t *link, uint64_t since_ns)
{
    const r2_net_t *net = link->net;
    const uint64_t hold_ns = r2_scaled_timeout_ns(net, R2_RELAY_BUSY_TIMES) +
                             2 * net->params->heal_max_ms * R2_NS_PER_MS;

    return NULL != link->path.relay && link->path.relay->busy_ns > since_ns &&
           net->now_ns < link->path.relay->busy_ns + hold_ns;
}
