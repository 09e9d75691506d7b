/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Delivered rates: how fast the lanes of a link are while it has more to send than they take.
 */
/*
 * Lanes pull, so while chunks wait every lane works as fast as it can, or as one like it that has
 * less under way (tx.c), and what each delivers can be compared. A lane is *loaded* from a time at
 * which chunks wait until it has next to nothing in flight; its rate is what was acknowledged over
 * the loaded time, from acknowledgement to acknowledgement: a slow lane carries one chunk for
 * longer than all others need for the rest, so its time goes on when the queue is empty, and over
 * the end of an interval. Nothing is measured while chunks do not wait: a process that computes, or
 * is stopped, has idle lanes and no slow ones.
 */
#include "r2_config.h"

#include "link/tx.h"

/* Chunks must have waited for so long in all; slow_window_ms of the detector holds a few of
 * these. */
#define R2_RATES_WAITED_NS (40 * R2_NS_PER_MS)
/* An interval in which they did not, in so many times that length, says nothing. */
#define R2_RATES_SPAN 10u
/* Fewer packets on the busiest lane are no measurement. */
#define R2_RATES_PACKETS_MIN 4u
/*
 * A process that looks more rarely in an interval finds what came by then on all lanes at once:
 * that tells its own delivery rate and how many packets each lane may have under way.
 */
#define R2_RATES_LOOKS_MIN 8u
/* What does not load a lane: control packets, and the last bytes of a message. */
#define R2_RATES_IDLE_BYTES 4096u

static void r2_rates_begin(r2_link_t *link)
{
    link->tx.rates.from_ns = link->net->now_ns;
    link->tx.rates.waited_ns = 0;
    link->tx.rates.looks = 0;
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        r2_lane_load_t *load = &link->lanes[i].tx.load;

        load->ns = load->bytes = 0;
        load->packets = load->kept = 0;
    }
}

/* Bytes per second; 0: not known. Without an acknowledgement what is under way bounds it from
 * above. */
static uint64_t r2_rates_of(r2_lane_t *lane)
{
    r2_lane_load_t *load = &lane->tx.load;
    uint64_t pending_ns = 0 == load->mark_ns ? 0 : lane->link->net->now_ns - load->mark_ns;

    if (load->ns > 0) {
        load->bytes_per_s = load->bytes * R2_NS_PER_S / load->ns;
    } else if (pending_ns > 0) {
        return r2_min(load->bytes_per_s, lane->tx.in_flight_bytes * R2_NS_PER_S / pending_ns);
    }
    return load->ns > 0 ? load->bytes_per_s : 0;
}

/*
 * What held a lane up. One that had delivered all that was given to it whenever acknowledgements
 * were found, would have taken more: its rate is that of its window and of how often this process
 * or its peer looks, which is not much on a busy host.
 */
static bool r2_rates_is_bound(const r2_lane_t *lane)
{
    return 2 * lane->tx.load.kept >= lane->link->tx.rates.looks;
}

/* A lane that came up or came back in this interval has not found its delivery rate yet. */
static bool r2_rates_counts(const r2_lane_t *lane)
{
    return R2_GRADE_SOUND == r2_lane_grade(lane) && !r2_lane_is_relay(lane) &&
           lane->state_ns < lane->link->tx.rates.from_ns;
}

/* The lane in the middle, of two the better one. @param rates 0: not known. */
static uint64_t r2_rates_usual(const uint64_t *rates, uint32_t count)
{
    uint32_t known = 0;
    uint64_t usual = 0;

    for (uint32_t i = 0; i < count; ++i) {
        known += rates[i] > 0 ? 1 : 0;
    }
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t above = 0;

        for (uint32_t j = 0; j < count; ++j) {
            above += rates[j] > rates[i] ? 1 : 0;
        }
        if (rates[i] > 0 && 2 * above < known && (0 == usual || rates[i] < usual)) {
            usual = rates[i];
        }
    }
    return usual;
}

static void r2_rates_report(r2_link_t *link)
{
    r2_net_t *net = link->net;
    uint64_t rates[R2_RAILS_MAX + 1], usual; /* a relay lane, too */

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        rates[i] = r2_rates_counts(&link->lanes[i]) ? r2_rates_of(&link->lanes[i]) : 0;
    }
    usual = r2_rates_usual(rates, link->lane_count);
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        const r2_lane_t *lane = &link->lanes[i];
        const uint64_t bytes_per_s =
            0 == rates[i] || r2_rates_is_bound(lane) ? rates[i] : r2_max(rates[i], usual);

        if (bytes_per_s > 0 && NULL != net->upcalls.rate) {
            net->upcalls.rate(net->upcalls.arg, link->rank, lane->rail->idx, true,
                              bytes_per_s * R2_RATES_WAITED_NS / R2_NS_PER_S, R2_RATES_WAITED_NS);
        }
    }
}

static void r2_rates_end(r2_link_t *link)
{
    uint64_t span_ns = link->net->now_ns - link->tx.rates.from_ns;
    uint32_t packets = 0;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        packets = r2_max(packets, link->lanes[i].tx.load.packets);
    }
    if (span_ns > R2_RATES_SPAN * R2_RATES_WAITED_NS) {
        r2_rates_begin(link);
    } else if (link->tx.rates.waited_ns >= R2_RATES_WAITED_NS && packets >= R2_RATES_PACKETS_MIN) {
        if (link->tx.rates.looks >= R2_RATES_LOOKS_MIN) {
            r2_rates_report(link);
        }
        r2_rates_begin(link);
    }
}

void r2_rates_waiting(r2_link_t *link, bool waiting)
{
    uint64_t now_ns = link->net->now_ns;

    if (link->same_host || (!waiting && 0 == link->tx.rates.since_ns)) {
        return;
    }
    if (0 != link->tx.rates.since_ns) {
        link->tx.rates.waited_ns += now_ns - link->tx.rates.since_ns;
        r2_rates_end(link);
    }
    link->tx.rates.since_ns = waiting ? now_ns : 0;
    for (uint32_t i = 0; waiting && i < link->lane_count; ++i) {
        r2_lane_load_t *load = &link->lanes[i].tx.load;

        if (0 == load->mark_ns && NULL != link->lanes[i].tx.in_flight) {
            load->mark_ns = now_ns;
        }
    }
}

/* Control packets say nothing; a measurement takes its place when chunks wait. */
void r2_rates_late(r2_lane_t *lane, uint64_t bytes, uint64_t sent_ns)
{
    uint64_t took_ns = lane->link->net->now_ns - sent_ns;

    if (bytes > R2_RATES_IDLE_BYTES && took_ns > 0) {
        lane->tx.load.bytes_per_s = r2_max(bytes * R2_NS_PER_S / took_ns, 1ull);
    }
}

/* Acknowledgements are found: which lanes still had something in flight after those of last time?
 * @param lane it has some of them, the oldest of a packet of that time. */
static void r2_rates_look(const r2_lane_t *lane, uint64_t oldest_ns)
{
    r2_link_t *link = lane->link;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        r2_lane_t *at = &link->lanes[i];
        const uint64_t sent_ns =
            at == lane ? oldest_ns
                       : (NULL == at->tx.in_flight ? R2_NEVER_NS : at->tx.in_flight->sent_ns);

        at->tx.load.kept += sent_ns < link->tx.rates.look_ns ? 1 : 0;
    }
    link->tx.rates.look_ns = link->net->now_ns;
    ++link->tx.rates.looks;
}

void r2_rates_acked(r2_lane_t *lane, uint64_t bytes, uint64_t oldest_ns)
{
    r2_lane_load_t *load = &lane->tx.load;
    uint64_t now_ns = lane->link->net->now_ns;

    if (0 == load->mark_ns) {
        return;
    }
    if (now_ns != lane->link->tx.rates.look_ns) {
        r2_rates_look(lane, oldest_ns);
    }
    load->ns += now_ns - load->mark_ns;
    load->bytes += bytes;
    ++load->packets;
    load->mark_ns = now_ns;
    if (0 == lane->link->tx.rates.since_ns && lane->tx.in_flight_bytes <= R2_RATES_IDLE_BYTES) {
        load->mark_ns = 0;
    }
}
