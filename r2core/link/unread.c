/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What lies unread: a process that runs rarely, or reads slowly, is no fault of its lanes.
 */
/*
 * Packets wait in the buffers of the kernel and of the transport until the process comes to them,
 * and in the sender's when those are full. The process knows that there are more as long as no look
 * at a rail has found nothing; and when it comes rarely and finds something, there may be more. It
 * says so in every packet, for each rail. Whoever misses an acknowledgement then has no proof
 * against the lane: its data goes over other lanes, but the lane is not given up. A process that
 * comes back at once until it has read a rail to its end does not say it, so a path that loses
 * packets is found as soon as ever. A word is as old as its packet: of two that came by different
 * lanes the one that was filled later counts.
 *
 * Where nobody else answers, or this goes on for long, a connect request asks. The answer is "wait"
 * while what was sent may lie here, which the next call finds out: by then the lane moved, or the
 * end of the rail was seen.
 */
#include "r2_config.h"

#include "link/state.h"

/* A doubt so long after an excuse has nothing to do with it; times failure_timeout_ms. */
#define R2_UNREAD_EXCUSE_TIMES 80u
/* Parts of failure_timeout_ms: what is long between two looks, and how long a rare look counts. */
#define R2_UNREAD_LONG  2u
#define R2_UNREAD_FRESH 8u
/* Units of 34 ms: words of the same 18 minutes have an order. Packets wait at the sender, too. */
#define R2_UNREAD_STAMP_SHIFT 25
#define R2_UNREAD_LATE_NS     ((uint64_t) INT16_MAX / 2 << R2_UNREAD_STAMP_SHIFT)

bool r2_unread_for_long(const r2_net_t *net, uint64_t since_ns)
{
    return since_ns < net->now_ns &&
           net->now_ns - since_ns >= r2_scaled_timeout_ns(net, 1) / R2_UNREAD_LONG;
}

static bool r2_unread_is_in(const r2_net_t *net, const r2_rail_worker_t *worker)
{
    return (0 != worker->unread_ns && r2_unread_for_long(net, worker->unread_ns)) ||
           (0 != worker->rare_ns &&
            net->now_ns - worker->rare_ns < r2_scaled_timeout_ns(net, 1) / R2_UNREAD_FRESH);
}

static bool r2_unread_is_on(const r2_net_t *net, const r2_rail_t *rail)
{
    const r2_rail_worker_t *worker = rail->workers;

    while (NULL != worker && !r2_unread_is_in(net, worker)) {
        worker = worker->next;
    }
    return NULL != worker;
}

void r2_unread_look(r2_net_t *net)
{
    static_assert(R2_RAILS_MAX <= 16, "a bit for each rail");
    net->unread = 0;
    for (uint32_t i = 0; i < net->rail_count; ++i) {
        net->unread |= (uint16_t) (r2_unread_is_on(net, &net->rails[i]) ? 1u << i : 0u);
    }
    net->unread_local = r2_unread_is_on(net, &net->local) ? UINT16_MAX : 0;
}

uint16_t r2_unread_stamp(uint64_t now_ns)
{
    return (uint16_t) (now_ns >> R2_UNREAD_STAMP_SHIFT);
}

static uint32_t r2_unread_units(uint64_t ns)
{
    return (uint32_t) (ns >> R2_UNREAD_STAMP_SHIFT);
}

/* Both clocks go on alike: what was not told meanwhile is counted by ours. */
uint32_t r2_unread_clock(const r2_link_t *link)
{
    const uint64_t since_ns =
        0 == link->path.unread_ns ? 0 : link->net->now_ns - link->path.unread_ns;

    return link->path.told + r2_unread_units(since_ns);
}

void r2_unread_heard(r2_lane_t *lane, uint16_t rails, uint16_t stamp)
{
    r2_link_t *link = lane->link;
    const uint64_t now_ns = link->net->now_ns;
    const bool late =
        0 == link->path.unread_ns || now_ns - link->path.unread_ns > R2_UNREAD_LATE_NS;
    const int16_t newer = (int16_t) (stamp - link->path.unread_at);

    if (newer >= 0 || late) {
        link->path.told = late ? r2_unread_clock(link) : link->path.told + (uint32_t) newer;
        link->path.unread = rails;
        link->path.unread_at = stamp;
        link->path.unread_ns = now_ns;
    }
    lane->rx.told = link->path.told + (uint32_t) (newer < 0 && !late ? newer : 0);
}

/* Words that came may be older than the one that is asked about. */
static uint64_t r2_unread_passed_ns(uint32_t since, uint32_t told)
{
    const int32_t passed = (int32_t) (told - since);

    return passed <= 0 ? 0 : (uint64_t) passed << R2_UNREAD_STAMP_SHIFT;
}

/*
 * What comes from a process that sends slowly was said long ago, and what it says on the lane that
 * is judged may lie behind that.
 */
uint64_t r2_unread_told_ns(const r2_lane_t *lane)
{
    return r2_unread_passed_ns(lane->told, lane->link->path.told);
}

uint64_t r2_unread_answered_ns(const r2_lane_t *lane)
{
    return r2_unread_passed_ns(lane->tx.in_flight->told, lane->rx.told);
}

void r2_lane_cut_off(r2_lane_t *lane, uint64_t asked_ns)
{
    const r2_link_t *link = lane->link;

    lane->unreachable = true;
    lane->timing.cut_told = r2_unread_clock(link) - r2_unread_units(link->net->now_ns - asked_ns);
}

/* Until all was read that came while we were away it may be older than what was found out since. */
void r2_lane_reached(r2_lane_t *lane)
{
    if (lane->unreachable && !(r2_net_reads_on(lane->link->net) &&
                               0 == r2_unread_passed_ns(lane->timing.cut_told, lane->rx.told))) {
        lane->unreachable = false;
    }
}

bool r2_unread_is_here(const r2_lane_t *lane)
{
    return NULL != lane->conn && r2_unread_is_in(lane->link->net, lane->conn->worker);
}

/* By its newest word. Where that is old, nobody answers, and a connect request asks. */
bool r2_unread_is_there(const r2_lane_t *lane)
{
    const uint32_t bit = lane->link->same_host ? 0 : lane->remote_idx;

    return !r2_lane_is_relay(lane) && 0 != (lane->link->path.unread >> bit & 1u);
}

bool r2_unread_excuses(const r2_lane_t *lane)
{
    return r2_unread_is_here(lane) || r2_unread_is_there(lane);
}

/* Asked for the first time, or the lane has moved since: it may lie here, or has just been read. */
static bool r2_unread_may_be(r2_lane_t *lane)
{
    r2_net_t *net = lane->link->net;

    return r2_net_was_away(net) || r2_unread_is_here(lane) ||
           net->now_ns - lane->rx.last_ns < r2_scaled_timeout_ns(net, 1);
}

/*
 * Asked again: the lane moved, or the end of what lay here has not been seen. What came in the pass
 * in which it was asked counts: what follows comes when room was made for it.
 */
static bool r2_unread_is_still(const r2_lane_t *lane)
{
    const uint64_t since_ns = lane->conn->worker->unread_ns;

    return lane->rx.last_ns >= lane->rx.excused_ns ||
           (0 != since_ns && since_ns <= lane->rx.excused_ns);
}

bool r2_unread_answer(r2_lane_t *lane, uint32_t awaits)
{
    const r2_net_t *net = lane->link->net;
    const bool retransmit =
        0 != lane->rx.excused_ns &&
        net->now_ns - lane->rx.excused_ns < r2_scaled_timeout_ns(net, R2_UNREAD_EXCUSE_TIMES);
    const bool here = r2_seq_lt(awaits, lane->rx.next);
    bool waits;

    if (!retransmit || r2_seq_lt(lane->rx.excused_seq, awaits)) {
        waits = r2_unread_may_be(lane) || here; /* it came meanwhile */
    } else if (here) {
        /* else acknowledged in vain since then, unless that waits behind what we send slowly */
        waits = !lane->excused_here || lane->tx.sent_ns >= lane->rx.excused_ns;
    } else {
        waits = r2_unread_is_still(lane);
    }
    if (waits) {
        lane->rx.excused_ns = net->now_ns;
        lane->rx.excused_seq = awaits;
        lane->excused_here = here;
    }
    return waits;
}
