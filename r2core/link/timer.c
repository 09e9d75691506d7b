/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Timers of a link: what is due, and when something will be.
 */
#include "r2_config.h"

#include "link/direct.h"
#include "link/place.h"
#include "link/relay.h"
#include "link/rx.h"

/* When a link that only waits will ask. */
static uint64_t r2_link_ping_ns(const r2_link_t *link)
{
    return r2_max(link->path.await_ns, link->path.last_rx_ns) +
           r2_scaled_timeout_ns(link->net, R2_SILENT_TIMES);
}

/*
 * Who only waits for data, or for credit, has nothing in flight whose acknowledgement could fail to
 * come: after a silence it asks, so that a path that is gone is noticed at both ends.
 */
static void r2_link_ping(r2_link_t *link)
{
    uint64_t now_ns = link->net->now_ns;

    if (R2_OK != link->broken || !r2_link_awaits(link) || link->tx.in_flight_packets > 0 ||
        NULL != link->tx.control || !r2_link_has_lane(link)) {
        link->path.await_ns = 0;
        return;
    }
    if (0 == link->path.await_ns) {
        link->path.await_ns = now_ns;
    }
    if (now_ns >= r2_link_ping_ns(link)) {
        (void) r2_tx_control(link, R2_WIRE_PING, NULL, 0);
    }
}

void r2_link_timers(r2_link_t *link)
{
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        r2_lane_timer(&link->lanes[i]);
    }
    r2_relay_timer(link);
    r2_link_presence_timer(link);
    r2_link_ping(link);
    r2_mismatch_timer(link);
    r2_tx_short_timer(link);
}

uint64_t r2_link_deadline_ns(const r2_link_t *link)
{
    uint64_t deadline_ns = R2_NEVER_NS;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        deadline_ns = r2_min(deadline_ns, r2_lane_deadline_ns(&link->lanes[i]));
        deadline_ns = r2_min(deadline_ns, r2_place_due_ns(&link->lanes[i]));
    }
    deadline_ns = r2_min(deadline_ns, r2_relay_deadline_ns(link));
    deadline_ns = r2_min(deadline_ns, r2_mismatch_deadline_ns(link));
    deadline_ns = r2_min(deadline_ns, r2_tx_short_deadline_ns(link));
    deadline_ns = r2_min(deadline_ns, r2_direct_deadline_ns(link));
    deadline_ns = r2_min(deadline_ns, r2_credit_mute_deadline_ns(link));
    deadline_ns = r2_min(deadline_ns, r2_tx_room_deadline_ns(link));
    deadline_ns = r2_min(deadline_ns, r2_tx_tail_deadline_ns(link));
    if (0 != link->path.await_ns) {
        deadline_ns = r2_min(deadline_ns, r2_link_ping_ns(link));
    }
    return r2_min(deadline_ns, r2_link_presence_deadline_ns(link));
}
