/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Paces: how fast lanes are at least, known soon.
 */
/*
 * rates.c tells what a lane delivers while chunks wait for it, and says nothing of lanes for which none
 * ever waits, since they are faster than the processor. The pace of a lane is what was acknowledged
 * over the time in which anything was in flight: no more than what the lane could do, and known after
 * R2_PACE_BYTES. So many that what a shaper lets through at once does not count for much.
 */
#include "r2_config.h"

#include "link/tx.h"

#define R2_PACE_BYTES (512u << 10)

void r2_pace_sending(r2_lane_t *lane)
{
    if (NULL == lane->tx.in_flight) {
        lane->tx.pace.mark_ns = lane->link->net->now_ns;
    }
}

void r2_pace_acked(r2_lane_t *lane, uint64_t bytes)
{
    r2_lane_pace_t *pace = &lane->tx.pace;
    uint64_t now_ns = lane->link->net->now_ns;
    uint64_t bytes_per_s;

    pace->ns += now_ns - pace->mark_ns;
    pace->bytes += bytes;
    pace->mark_ns = now_ns;
    if (pace->bytes < R2_PACE_BYTES) {
        return;
    }
    bytes_per_s = pace->bytes * R2_NS_PER_S / r2_max(pace->ns, 1u);
    /* slow where little was under way: that says less, but what was measured long ago fades */
    pace->bytes_per_s = r2_max(bytes_per_s, pace->bytes_per_s - pace->bytes_per_s / 4);
    pace->ns = pace->bytes = 0;
}
