/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Probes of rails that only lanes reach.
 */
#include "r2_config.h"

#include "ctx/lane_asks.h"

#include "base/clock.h"
#include "base/util.h"
#include "link/net.h"

#define R2_LANE_ASKS_LOOK_NS R2_NS_PER_MS /* between two looks */

bool r2_lane_asks_start(r2_lane_asks_t *asks, r2_net_t *net, uint32_t rank, uint32_t rail,
                        uint64_t timeout_ns, uint64_t id)
{
    r2_lane_ask_t *ask = asks->asks;

    if (asks->count == R2_LANE_ASKS_MAX || !r2_net_ask(net, rank, rail)) {
        return false;
    }
    while (0 != ask->id) {
        ++ask;
    }
    *ask = (r2_lane_ask_t){.id = id,
                           .connection = r2_net_connection(net, rank, rail),
                           .begun_ns = net->now_ns,
                           .half_ns = net->now_ns + timeout_ns / 2,
                           .deadline_ns = net->now_ns + timeout_ns,
                           .rank = rank,
                           .rail = rail};
    ++asks->count;
    return true;
}

/* @return true: it is known. */
static bool r2_lane_ask_ends(const r2_lane_ask_t *ask, const r2_net_t *net,
                             r2_probe_answer_t *answer_p)
{
    if (r2_net_delivered_ns(net, ask->rank, ask->rail) > ask->begun_ns) {
        *answer_p = R2_PROBE_ALIVE;
        return true;
    }
    if (net->now_ns < ask->deadline_ns) {
        return false;
    }
    *answer_p = ask->asked_again &&
                        ask->connection == r2_net_connection(net, ask->rank, ask->rail) &&
                        r2_net_delivered_beside_ns(net, ask->rank, ask->rail) > ask->half_ns
                    ? R2_PROBE_SILENT
                    : R2_PROBE_UNABLE; /* it was away since, or the lane is another */
    return true;
}

/* Who answered at once, and was away then, has not read the question on the lane. */
static void r2_lane_ask_again(r2_lane_ask_t *ask, r2_net_t *net)
{
    if (!ask->asked_again && net->now_ns >= ask->half_ns) {
        ask->half_ns = net->now_ns;
        ask->asked_again = r2_net_ask(net, ask->rank, ask->rail);
    }
}

bool r2_lane_asks_next(r2_lane_asks_t *asks, r2_net_t *net, uint64_t *id_p,
                       r2_probe_answer_t *answer_p)
{
    for (uint32_t i = 0; asks->count > 0 && i < R2_LANE_ASKS_MAX; ++i) {
        r2_lane_ask_t *ask = &asks->asks[i];

        if (0 != ask->id) {
            r2_lane_ask_again(ask, net);
        }
        if (0 != ask->id && r2_lane_ask_ends(ask, net, answer_p)) {
            *id_p = ask->id;
            ask->id = 0;
            --asks->count;
            return true;
        }
    }
    return false;
}

uint64_t r2_lane_asks_deadline_ns(const r2_lane_asks_t *asks, const r2_net_t *net)
{
    return 0 == asks->count ? R2_NEVER_NS : net->now_ns + R2_LANE_ASKS_LOOK_NS;
}
