/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Rate limit of probes and beacons on one rail: short bursts, and a bounded rate.
 */
#ifndef R2_RAIL_PROBE_LIMIT_H
#define R2_RAIL_PROBE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/util.h"
#include "rail/probe.h"

#define R2_PROBE_WAIT_NS (R2_NS_PER_S) /* what would wait longer is refused: a bounded queue */

/**
 * When the next packet may leave. One per rail; zero to begin with.
 * Source: the generic cell rate algorithm, ITU-T I.371.
 */
typedef struct r2_probe_limit {
    uint64_t full_ns; /* when the whole burst may go again */
    uint32_t rate;    /* per second; 0: R2_PROBE_RATE */
} r2_probe_limit_t;

/** What one of so many processes of a host may send per second and rail. */
static inline uint32_t r2_probe_limit_rate(uint32_t processes)
{
    return r2_max(R2_PROBE_HOST_RATE / r2_max(processes, 1u), R2_PROBE_RATE);
}

/** That many may go at once; with them the rate is kept in every interval of one second. */
static inline uint32_t r2_probe_limit_burst(uint32_t rate)
{
    return rate / R2_PROBE_BURSTS;
}

/**
 * Takes a place.
 * @param start_ns_p when the packet may leave, now_ns or later. @return false: the queue is full.
 */
static inline bool r2_probe_limit_take(r2_probe_limit_t *limit, uint64_t now_ns,
                                       uint64_t *start_ns_p)
{
    const uint32_t rate = 0 == limit->rate ? R2_PROBE_RATE : limit->rate;
    const uint32_t burst = r2_probe_limit_burst(rate);
    const uint64_t step_ns = R2_NS_PER_S / (rate - burst), slack_ns = (burst - 1) * step_ns;
    const uint64_t full_ns = r2_max(limit->full_ns, now_ns);
    const uint64_t start_ns = full_ns > now_ns + slack_ns ? full_ns - slack_ns : now_ns;

    if (start_ns - now_ns > R2_PROBE_WAIT_NS) {
        return false;
    }
    limit->full_ns = full_ns + step_ns;
    *start_ns_p = start_ns;
    return true;
}

#endif
