/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Timers of a link: silent lanes, late acknowledgements, attempts to come back, no path.
 */
#include "r2_config.h"

#include "link/state.h"

#include <utlist.h>

/* A lane that stays suspect this long is given up and opened anew. */
#define R2_SUSPECT_NS (1 * R2_NS_PER_S)
/* HELLO packets that have not crossed by then will not. */
#define R2_WIRING_NS (2 * R2_NS_PER_S)
/* A link on which nothing answers is checked by hello calls at this interval. */
#define R2_SILENT_NS (1 * R2_NS_PER_S)
/* Talk without acknowledgement for so long means that the lane has lost what it was given. */
#define R2_DEAF_NS (2 * R2_NS_PER_S)
/*
 * Hello calls refused in a row, on any lanes, for so long: the peer process is gone. A device that is made
 * anew refuses, too, until its process listens there again.
 */
#define R2_REFUSED_MAX 3u
#define R2_REFUSED_NS  (250 * R2_NS_PER_MS)

/*
 * How long acknowledgements may be missing: the floor, the round trip with its variation (RFC 6298),
 * twice the longest round trip of late to this peer (hosts with more ranks than cores pause now and
 * then), or twice what the lane needs at its measured rate for what is in flight.
 */
uint64_t r2_lane_timeout_ns(const r2_lane_t *lane)
{
    const r2_params_t *params = lane->link->net->params;
    uint64_t timeout_ns = params->failure_timeout_ms * R2_NS_PER_MS;

    /* bounded: lost acknowledgements make long round trips, which must not breed longer timeouts */
    timeout_ns = r2_max(timeout_ns, r2_min(r2_max(lane->srtt_ns + 4 * lane->rttvar_ns,
                                                  2 * lane->link->peak_rtt_ns),
                                           10 * timeout_ns));
    if (lane->rate_bytes_per_s > 0) {
        uint64_t drain_ns = 2 * lane->in_flight_bytes * R2_NS_PER_S / lane->rate_bytes_per_s;

        timeout_ns = r2_max(timeout_ns, r2_min(drain_ns, 10 * timeout_ns));
    }
    return timeout_ns;
}

static uint64_t r2_lane_expiry_ns(const r2_lane_t *lane)
{
    if (NULL == lane->in_flight) {
        return R2_NEVER_NS;
    }
    return r2_max(lane->in_flight->sent_ns, lane->timer_base_ns) + r2_lane_timeout_ns(lane);
}

/*
 * Another lane heard from the peer well after this one should have: the peer lives, the lane does
 * not. "Well after", because a peer may be interrupted between reading one rail and the next. Or it
 * heard the answer to what this lane gave away when it came in doubt, a whole timeout ago: the first
 * answer after a silence restarts all timers.
 */
static bool r2_lane_others_alive(const r2_lane_t *lane)
{
    const r2_link_t *link = lane->link;
    uint64_t base_ns = r2_max(lane->in_flight->sent_ns, lane->timer_base_ns) +
                       r2_lane_timeout_ns(lane) / 2;

    if (lane->hedged) {
        base_ns = r2_min(base_ns, lane->doubt_ns);
    }

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (&link->lanes[i] != lane && link->lanes[i].last_rx_ns > base_ns) {
            return true;
        }
    }
    return false;
}

static void r2_lane_suspect(r2_lane_t *lane)
{
    r2_link_t *link = lane->link;
    r2_net_t *net = link->net;

    ++net->counters->ack_timeouts;
    r2_info(net->log, "rail %s to rank %u on %s: no acknowledgement for %llu ms while other rails answer",
            lane->rail->nic.name, link->rank, link->info.host_name,
            (unsigned long long) ((net->now_ns - lane->in_flight->sent_ns) / R2_NS_PER_MS));
    r2_lane_enter(lane, R2_LANE_SUSPECT);
    r2_tx_hedge(lane);
}

/*
 * Nothing at all answers: another lane may show whether it is the lane or the peer. Called again while
 * the doubt lasts, for what has been given to this lane since.
 */
static void r2_lane_doubt(r2_lane_t *lane)
{
    bool first = !lane->hedged;

    r2_tx_hedge(lane);
    if (!first) {
        return;
    }
    lane->doubt_ns = lane->link->net->now_ns;
    if (!r2_tx_has_sound_lane(lane->link)) {
        /* nobody to give to: if this lane has lost packets, the answer will show the gap */
        r2_tx_control(lane->link, R2_WIRE_PING, NULL, 0);
    }
}

/* A packet was passed over by later ones for a whole timeout. */
static bool r2_lane_has_gap(const r2_lane_t *lane)
{
    return 0 != lane->gap_ns
           && lane->link->net->now_ns >= lane->gap_ns + r2_lane_timeout_ns(lane);
}

/* True if the transport still reads memory of a message that is delivered by other lanes. */
static bool r2_lane_blocks(const r2_lane_t *lane)
{
    r2_packet_t *packet;

    DL_FOREACH(lane->in_flight, packet)
    {
        if (!packet->transport_done && packet->item->acked) {
            return true;
        }
    }
    return false;
}

/*
 * Every packet acknowledges, so what the peer says on this lane long after it should have had our oldest
 * packet means that this packet is lost, and with it the lane's way out. Needed where there is no other
 * lane to tell: the peer's own questions keep such a link from looking silent.
 */
static bool r2_lane_is_deaf(const r2_lane_t *lane)
{
    uint64_t patience_ns = r2_max(R2_DEAF_NS, 4 * r2_lane_timeout_ns(lane));

    return lane->last_rx_ns > lane->in_flight->sent_ns + patience_ns;
}

static void r2_timer_up(r2_lane_t *lane)
{
    uint64_t now_ns = lane->link->net->now_ns;

    if (r2_lane_has_gap(lane)) {
        r2_lane_fence(lane, R2_ERR_TIMEOUT, true);
        return;
    }
    if (now_ns < r2_lane_expiry_ns(lane)) {
        return;
    }
    if (r2_lane_others_alive(lane)) {
        r2_lane_suspect(lane);
        return;
    }
    if (r2_lane_is_deaf(lane)) {
        r2_lane_fence(lane, R2_ERR_TIMEOUT, true);
        return;
    }
    r2_lane_doubt(lane);
    if (now_ns >= lane->in_flight->sent_ns + R2_SILENT_NS && now_ns >= lane->retry_ns) {
        r2_lane_open(lane); /* answered: the process lives and this lane is stale */
    }
}

static void r2_timer_suspect(r2_lane_t *lane)
{
    uint64_t now_ns = lane->link->net->now_ns;

    bool blocks = now_ns >= lane->state_ns + r2_lane_timeout_ns(lane) && r2_lane_blocks(lane);

    if (now_ns >= lane->state_ns + R2_SUSPECT_NS || blocks || NULL == lane->in_flight) {
        r2_lane_fence(lane, R2_ERR_TIMEOUT, true);
    }
}

static void r2_lane_timer(r2_lane_t *lane)
{
    uint64_t now_ns = lane->link->net->now_ns;

    switch (lane->state) {
    case R2_LANE_DOWN:
        if (now_ns >= lane->retry_ns && !lane->link->net->ending) {
            r2_lane_open(lane);
        }
        break;
    case R2_LANE_CALLING:
        break; /* the hello driver has its own timeout */
    case R2_LANE_WIRING:
        if (now_ns >= lane->state_ns + R2_WIRING_NS) {
            r2_lane_fence(lane, R2_ERR_TIMEOUT, false);
        }
        break;
    case R2_LANE_UP:
        r2_timer_up(lane);
        break;
    case R2_LANE_SUSPECT:
        r2_timer_suspect(lane);
        break;
    }
}

bool r2_link_has_lane(const r2_link_t *link)
{
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        if (link->lanes[i].state >= R2_LANE_UP && !link->lanes[i].unreachable) {
            return true;
        }
    }
    return false;
}

void r2_link_hurry(r2_link_t *link, uint64_t pause_ns)
{
    uint64_t soon_ns = link->net->now_ns + pause_ns;

    if (r2_link_has_lane(link)) {
        return;
    }
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        link->lanes[i].retry_ns = r2_min(link->lanes[i].retry_ns, soon_ns);
    }
}

static bool r2_link_wanted(const r2_link_t *link)
{
    return NULL != link->messages || r2_link_posted(link) > 0;
}

/*
 * Who only waits for data has nothing in flight whose acknowledgement could fail to come: after a
 * silence it asks, so that a path that is gone is noticed at both ends.
 */
static void r2_link_ask(r2_link_t *link)
{
    uint64_t now_ns = link->net->now_ns;

    if (R2_OK != link->broken || 0 == r2_link_posted(link) || link->in_flight_packets > 0
        || NULL != link->control || !r2_link_has_lane(link)) {
        link->await_ns = 0;
        return;
    }
    if (0 == link->await_ns) {
        link->await_ns = now_ns;
    }
    if (now_ns >= r2_max(link->await_ns, link->last_rx_ns) + R2_SILENT_NS) {
        r2_tx_control(link, R2_WIRE_PING, NULL, 0);
    }
}

/* Counts how long somebody has been waiting for a link that has no lane. */
static void r2_link_path_timer(r2_link_t *link)
{
    r2_net_t *net = link->net;

    if (R2_OK != link->broken || r2_link_has_lane(link) || !r2_link_wanted(link)) {
        link->no_path_ns = 0;
        return;
    }
    if (0 == link->no_path_ns) {
        link->no_path_ns = net->now_ns;
    }
    if (link->refused >= R2_REFUSED_MAX && net->now_ns - link->refused_ns >= R2_REFUSED_NS) {
        r2_link_break(link, R2_ERR_PEER_GONE);
    } else if (net->now_ns - link->no_path_ns > net->params->no_path_timeout_ms * R2_NS_PER_MS) {
        r2_link_break(link, R2_ERR_NO_PATH);
    }
}

void r2_link_timers(r2_link_t *link)
{
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        r2_lane_timer(&link->lanes[i]);
    }
    r2_link_path_timer(link);
    r2_link_ask(link);
}

static uint64_t r2_lane_deadline_ns(const r2_lane_t *lane)
{
    uint64_t deadline_ns = R2_NEVER_NS;

    switch (lane->state) {
    case R2_LANE_DOWN:
        deadline_ns = lane->retry_ns;
        break;
    case R2_LANE_CALLING:
        break;
    case R2_LANE_WIRING:
        deadline_ns = lane->state_ns + R2_WIRING_NS;
        break;
    case R2_LANE_UP:
        deadline_ns = r2_lane_expiry_ns(lane);
        if (deadline_ns <= lane->link->net->now_ns) {
            /* expired, in doubt: next look when the silence is long enough for a check */
            deadline_ns = lane->link->net->now_ns + r2_lane_timeout_ns(lane) / 2;
        }
        if (0 != lane->gap_ns) {
            deadline_ns = r2_min(deadline_ns, lane->gap_ns + r2_lane_timeout_ns(lane));
        }
        break;
    case R2_LANE_SUSPECT:
        deadline_ns = lane->link->net->now_ns + r2_lane_timeout_ns(lane) / 2;
        break;
    }
    if (lane->ack_pending && lane->state >= R2_LANE_UP) {
        deadline_ns = r2_min(deadline_ns, lane->ack_due_ns);
    }
    return deadline_ns;
}

uint64_t r2_link_deadline_ns(const r2_link_t *link)
{
    uint64_t deadline_ns = R2_NEVER_NS;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        deadline_ns = r2_min(deadline_ns, r2_lane_deadline_ns(&link->lanes[i]));
    }
    if (0 != link->await_ns) {
        deadline_ns = r2_min(deadline_ns, r2_max(link->await_ns, link->last_rx_ns) + R2_SILENT_NS);
    }
    if (0 != link->no_path_ns) {
        deadline_ns =
            r2_min(deadline_ns, link->no_path_ns +
                                    link->net->params->no_path_timeout_ms * R2_NS_PER_MS + 1);
    }
    return deadline_ns;
}
