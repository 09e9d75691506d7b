/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * How long things may take, and how much peers may have kept here.
 */
#include "r2_config.h"

#include "link/state.h"

/*
 * In multiples of failure_timeout_ms: longest timeout of a lane. Lost acknowledgements make long
 * round trips, which must not breed longer ones.
 */
#define R2_TIMEOUT_TIMES 10u
/* Whatever the parameter: no multiple of it is longer than this, unless it is itself. */
#define R2_SCALED_TIMEOUT_MAX_NS (10 * R2_NS_PER_S)
/* Coming later than our own timers by more than this (stopped, computing) restarts all lane timers;
 * or than failure_timeout_ms if that is less. */
#define R2_OWN_SILENCE_NS (20 * R2_NS_PER_MS)
/* A peer's question from before our return may be heard so late: hello takes several round
 * trips. */
#define R2_BACK_TIMES 20u /* failure_timeout_ms */
/* All peers may have kept as unexpected so much without credit, unless that is less than the least
 * for one. */
#define R2_UNEXPECTED_ALL_BYTES   (64u << 20)
#define R2_UNEXPECTED_LEAST_BYTES (32u << 10)

uint64_t r2_scaled_timeout_ns(const r2_net_t *net, uint32_t times)
{
    uint64_t timeout_ns = net->params->failure_timeout_ms * R2_NS_PER_MS;

    return r2_max(timeout_ns, r2_min(times * timeout_ns, R2_SCALED_TIMEOUT_MAX_NS));
}

uint64_t r2_net_pause_ns(const r2_net_t *net)
{
    return r2_scaled_timeout_ns(net, 1) / 2;
}

uint64_t r2_net_own_silence_ns(const r2_net_t *net)
{
    return r2_min(R2_OWN_SILENCE_NS, r2_scaled_timeout_ns(net, 1));
}

/*
 * What a pause of the peer may add: twice the longest delay of late (hosts with more ranks than
 * cores pause now and then). Once, where the peer has been heard on some lane all along since this
 * one's oldest packet left: then it is no pause that this lane waits for.
 */
static uint64_t r2_lane_pause_ns(const r2_lane_t *lane)
{
    const r2_link_t *link = lane->link;
    const uint64_t peak_ns = link->path.peak_delay_ns;
    uint64_t since_ns;

    if (NULL == lane->tx.in_flight) {
        return 2 * peak_ns;
    }
    since_ns = r2_max(lane->tx.in_flight->sent_ns, lane->timing.base_ns);
    return r2_pause_stamp(link->net->now_ns) - link->path.slept <=
                       r2_pause_stamp(link->net->now_ns) - r2_pause_stamp(since_ns) ||
                   2 * (link->net->now_ns - link->path.last_rx_ns) >= peak_ns
               ? 2 * peak_ns
               : peak_ns;
}

/*
 * How long acknowledgements may be missing: the floor, the round trip with its variation (RFC
 * 6298), with a pause of the peer, or twice what the lane needs at its measured rate for what is in
 * flight.
 */
uint64_t r2_lane_timeout_ns(const r2_lane_t *lane)
{
    const r2_net_t *net = lane->link->net;
    uint64_t wait_ns =
        lane->timing.srtt_ns + r2_max(4 * lane->timing.rttvar_ns, r2_lane_pause_ns(lane));

    if (lane->tx.load.bytes_per_s > 0) {
        wait_ns =
            r2_max(wait_ns, 2 * lane->tx.in_flight_bytes * R2_NS_PER_S / lane->tx.load.bytes_per_s);
    }
    return r2_max(r2_scaled_timeout_ns(net, 1),
                  r2_min(wait_ns, r2_scaled_timeout_ns(net, R2_TIMEOUT_TIMES)));
}

bool r2_lane_is_overdue(const r2_lane_t *lane)
{
    uint64_t waited_ns =
        NULL == lane->tx.in_flight
            ? 0
            : lane->link->net->now_ns - r2_max(lane->tx.in_flight->sent_ns, lane->timing.base_ns);

    return 2 * waited_ns > r2_scaled_timeout_ns(lane->link->net, 1) &&
           2 * waited_ns > r2_lane_timeout_ns(lane);
}

uint64_t r2_net_unexpected_bytes(const r2_net_t *net)
{
    uint64_t share = R2_UNEXPECTED_ALL_BYTES / r2_max(net->size - 1u, 1u);

    return r2_min(net->params->unexpected_bytes,
                  r2_max(share, (uint64_t) R2_UNEXPECTED_LEAST_BYTES));
}

static bool r2_net_is_since(const r2_net_t *net, uint64_t at_ns)
{
    return 0 != at_ns && net->now_ns - at_ns <= r2_scaled_timeout_ns(net, R2_BACK_TIMES);
}

bool r2_net_was_away(r2_net_t *net)
{
    net->note_own_silence(net);
    return r2_net_is_since(net, net->back_ns);
}

bool r2_net_reads_on(r2_net_t *net)
{
    return r2_net_was_away(net) && net->drained_ns < net->back_ns;
}

bool r2_net_was_late(const r2_net_t *net)
{
    return r2_net_is_since(net, net->late_ns);
}

bool r2_net_catches_up(r2_net_t *net)
{
    return r2_net_reads_on(net) ||
           (0 != net->late_ns && net->now_ns - net->late_ns <= r2_net_own_silence_ns(net));
}
