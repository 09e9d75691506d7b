/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Round trip and window of a lane.
 */
#include "r2_config.h"

#include "link/tx.h"

#define R2_MIN_RTT_LIFE_NS (10 * R2_NS_PER_S) /* and at most twice as long */
#define R2_CALM_SAMPLES    16u                /* until the first ones count for little */
#define R2_PEAK_LIFE_NS    (5 * R2_NS_PER_S)
#define R2_PAUSE_LEAST_NS  R2_NS_PER_MS /* shorter silences are none */

/* Smoothed round trip and its variation. Source: RFC 6298, section 2. */
static void r2_rtt_smooth(r2_lane_t *lane, uint64_t sample_ns)
{
    if (0 == lane->timing.srtt_ns) {
        lane->timing.srtt_ns = sample_ns;
        lane->timing.rttvar_ns = sample_ns / 2;
        return;
    }
    lane->timing.rttvar_ns =
        (3 * lane->timing.rttvar_ns + (sample_ns > lane->timing.srtt_ns
                                           ? sample_ns - lane->timing.srtt_ns
                                           : lane->timing.srtt_ns - sample_ns)) /
        4;
    lane->timing.srtt_ns = (7 * lane->timing.srtt_ns + sample_ns) / 8;
}

/*
 * What a short packet takes on an idle lane. Not the least sample: clocks are read once per
 * progress pass, and with the time that acknowledgements were held taken off, some samples are next
 * to nothing.
 */
static void r2_rtt_calm(r2_lane_t *lane)
{
    if (lane->timing.rtt_samples < R2_CALM_SAMPLES) {
        ++lane->timing.rtt_samples;
    } else if (0 == lane->timing.calm_rtt_ns || lane->timing.srtt_ns < lane->timing.calm_rtt_ns) {
        lane->timing.calm_rtt_ns = lane->timing.srtt_ns;
    }
}

/*
 * Since when the peer owes an answer. A suspect lane keeps what it has in flight until it is
 * fenced: its oldest packet would make pauses of all the time in which nothing else was sent.
 */
static uint64_t r2_rtt_owed_ns(const r2_link_t *link)
{
    uint64_t all_ns = link->net->now_ns, owed_ns = all_ns;
    bool any = false;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        const r2_lane_t *lane = &link->lanes[i];
        const uint64_t sent_ns =
            NULL == lane->tx.in_flight ? link->net->now_ns : lane->tx.in_flight->sent_ns;

        all_ns = r2_min(all_ns, sent_ns);
        owed_ns = r2_lane_may_send(lane) ? r2_min(owed_ns, sent_ns) : owed_ns;
        any = any || r2_lane_may_send(lane);
    }
    return any ? owed_ns : all_ns;
}

void r2_rtt_heard(r2_link_t *link)
{
    const uint64_t now_ns = link->net->now_ns;
    uint64_t pause_ns;

    if (now_ns - link->path.last_rx_ns < R2_PAUSE_LEAST_NS) {
        return;
    }
    pause_ns = now_ns - r2_max(r2_rtt_owed_ns(link), link->path.last_rx_ns);
    if (2 * pause_ns >= link->path.peak_delay_ns) {
        link->path.slept = r2_pause_stamp(now_ns);
    }
    if (pause_ns > link->path.pause_ns || now_ns - link->path.pause_at_ns > R2_PEAK_LIFE_NS) {
        link->path.pause_ns = pause_ns;
        link->path.pause_at_ns = now_ns;
    }
}

/*
 * A pause of the peer delays all lanes; what is usual on a slow lane says nothing about the others.
 * Nor does a delay of one lane while others were heard: its NIC sent something again, or a rail was
 * just repaired. So no more of it counts than the link was silent.
 */
static void r2_peak_update(const r2_lane_t *lane, uint64_t sample_ns)
{
    r2_link_t *link = lane->link;
    uint64_t delay_ns = sample_ns - r2_min(sample_ns, lane->timing.srtt_ns);

    delay_ns = r2_min(delay_ns, r2_max(link->path.pause_ns, R2_PAUSE_LEAST_NS));
    if (delay_ns > link->path.peak_delay_ns ||
        link->net->now_ns - link->path.peak_delay_at_ns > R2_PEAK_LIFE_NS) {
        link->path.peak_delay_ns = delay_ns;
        link->path.peak_delay_at_ns = link->net->now_ns;
    }
}

/*
 * Smallest window. A lane of less than a quarter of the best one's rate gets a smaller one, in the
 * end a packet at a time: what lies in it is what every call waits for at its end.
 */
static uint64_t r2_window_floor(const r2_lane_t *lane)
{
    const r2_link_t *link = lane->link;
    uint64_t least = link->net->params->window_min_bytes, best = 0;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        best =
            r2_max(best, r2_lane_is_up(&link->lanes[i]) ? link->lanes[i].tx.load.bytes_per_s : 0);
    }
    if (0 == lane->tx.load.bytes_per_s || 4 * lane->tx.load.bytes_per_s >= best) {
        return least;
    }
    return least * 4 * lane->tx.load.bytes_per_s / best;
}

/*
 * What keeps a lane busy: as much as it delivers in one and a half times the delay that is aimed
 * at, and in twice the way there and back. The way of an acknowledgement is longer where it waits
 * behind the peer's own data, or for more of it. On lanes that deliver more than R2_BUSY_BYTES in
 * that time, nothing waits for long, and the window finds what it needs by itself.
 */
#define R2_BUSY_BYTES       (UINT64_C(256) << 10)
#define R2_BUSY_ROUNDS      2u
#define R2_BUSY_ROUNDS_MOST 8u /* so that it grows where the way is long */
/* So many times the target, and the rates may be of yesterday. */
#define R2_BUSY_TARGETS 10u
/* Another lane's rate is no news of one that is known to be so much slower. */
#define R2_BUSY_TIMES 4u

/*
 * Bytes per second: of the link's best lane, for all. What a lane with a short window delivers is
 * what that window lets through, so with its own rate it would stay short, and the others would
 * take over what it leaves, and end later. 0: not known.
 */
static uint64_t r2_window_rate(const r2_lane_t *lane)
{
    const r2_link_t *link = lane->link;
    const uint64_t own = r2_lane_rate(lane);
    uint64_t best = 0;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        const r2_lane_t *at = &link->lanes[i];

        if (r2_lane_is_up(at) && !r2_lane_is_relay(at)) {
            best = r2_max(best, at->tx.delivery.bytes_per_s);
        }
    }
    return 0 == own ? best : r2_min(best, R2_BUSY_TIMES * own);
}

static uint64_t r2_window_busy(const r2_lane_t *lane, uint64_t rounds)
{
    const uint64_t target_ns = lane->link->net->params->queue_delay_us * R2_NS_PER_US;

    return r2_window_rate(lane) / R2_NS_PER_MS *
           (target_ns + target_ns / 2 + rounds * lane->timing.min_rtt_ns) / 1000;
}

/* Least and most of a window, in bytes. */
static void r2_window_bounds(const r2_lane_t *lane, uint64_t delay_ns, uint64_t *least_p,
                             uint64_t *most_p)
{
    const r2_params_t *params = lane->link->net->params;
    const uint64_t busy_bytes = r2_window_busy(lane, R2_BUSY_ROUNDS);

    *least_p = r2_window_floor(lane);
    *most_p = params->window_max_bytes;
    if (0 == busy_bytes || *least_p < params->window_min_bytes ||
        delay_ns > R2_BUSY_TARGETS * params->queue_delay_us * R2_NS_PER_US) {
        return;
    }
    *least_p = r2_clamp_u64(busy_bytes, *least_p, r2_max(*least_p, R2_BUSY_BYTES));
    *least_p = r2_min(*least_p, *most_p);
    *most_p = r2_clamp_u64(r2_window_busy(lane, R2_BUSY_ROUNDS_MOST), *least_p, *most_p);
}

/*
 * The window follows the queueing delay (in the manner of TCP Vegas and LEDBAT, RFC 6817): it grows
 * by what was acknowledged while the delay is under the target and the window was in the way, and
 * shrinks by an eighth, once per round trip, when the delay is over twice the target. Between what
 * keeps the lane busy, since a chunk that takes as long as the target is no queue, and what a lane
 * may take that let a burst through at once.
 */
static void r2_window_adapt(r2_lane_t *lane, uint64_t sample_ns, uint64_t acked_bytes)
{
    r2_net_t *net = lane->link->net;
    const uint64_t target_ns = net->params->queue_delay_us * R2_NS_PER_US;
    const uint64_t delay_ns = sample_ns - lane->timing.min_rtt_ns;
    uint64_t window_bytes = lane->tx.window_bytes, least_bytes, most_bytes;

    r2_window_bounds(lane, delay_ns, &least_bytes, &most_bytes);
    if (least_bytes > net->params->window_min_bytes) {
        window_bytes = r2_max(window_bytes, least_bytes);
    }
    if (delay_ns < target_ns && lane->tx.limited) {
        window_bytes = r2_max(window_bytes, r2_min(window_bytes + acked_bytes, most_bytes));
        lane->tx.limited = acked_bytes <= R2_SHORT_PACKET_BYTES;
    } else if (delay_ns > 2 * target_ns &&
               net->now_ns - lane->tx.shrunk_ns > lane->timing.srtt_ns) {
        window_bytes = least_bytes < net->params->window_min_bytes
                           ? least_bytes
                           : r2_max(window_bytes - window_bytes / 8, least_bytes);
        lane->tx.shrunk_ns = net->now_ns;
    }
    lane->tx.window_bytes = window_bytes;
}

/*
 * What the way takes without a queue: the least of all samples of some time. In its place comes the
 * least one since, not the newest: that of a lane that is busy has the queue in it, its own and the
 * peer's, which acknowledgements wait in.
 */
static void r2_rtt_least(r2_lane_t *lane, uint64_t sample_ns)
{
    const uint64_t now_ns = lane->link->net->now_ns;
    const uint32_t sample_us = (uint32_t) r2_min(sample_ns / R2_NS_PER_US + 1, UINT32_MAX);
    uint32_t *since_us = &lane->timing.min_rtt_since_us;

    if (0 == lane->timing.min_rtt_ns || sample_ns < lane->timing.min_rtt_ns) {
        lane->timing.min_rtt_ns = sample_ns;
    } else {
        *since_us = 0 == *since_us ? sample_us : r2_min(*since_us, sample_us);
        if (now_ns - lane->timing.min_rtt_at_ns <= R2_MIN_RTT_LIFE_NS) {
            return;
        }
        lane->timing.min_rtt_ns = r2_min(*since_us * R2_NS_PER_US, sample_ns);
    }
    lane->timing.min_rtt_at_ns = now_ns;
    *since_us = 0;
}

void r2_rtt_wired(r2_lane_t *lane)
{
    const uint64_t sample_ns = lane->link->net->now_ns - lane->state_ns;

    if (sample_ns > 0 && !r2_lane_is_relay(lane)) {
        r2_rtt_least(lane, sample_ns);
    }
}

void r2_rtt_sample(r2_lane_t *lane, uint64_t sample_ns, uint64_t acked_bytes)
{
    r2_rtt_least(lane, sample_ns);
    r2_peak_update(lane, sample_ns);
    r2_rtt_smooth(lane, sample_ns);
    r2_rtt_calm(lane);
    if (!r2_lane_is_relay(lane)) {
        /* else memory of a third process bounds it */
        r2_window_adapt(lane, sample_ns, acked_bytes);
    }
}
