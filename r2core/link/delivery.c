/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Delivery rate: how fast lanes are at least, known soon.
 */
/*
 * rates.c tells what a lane delivers while chunks wait for it, and says nothing of lanes for which
 * none ever waits, since they are faster than the processor. The delivery rate of a lane is what
 * was acknowledged over the time in which anything was in flight: no more than what the lane could
 * do, and known after R2_DELIVERY_BYTES. So many that what a shaper lets through at once does not
 * count for much.
 */
#include "r2_config.h"

#include "link/tx.h"

#define R2_DELIVERY_BYTES (512u << 10)
/* Shorter packets take as long as shortest ones. */
#define R2_PEAK_BYTES 8192u

void r2_delivery_sending(r2_lane_t *lane)
{
    if (NULL == lane->tx.in_flight) {
        lane->tx.delivery.mark_ns = lane->link->net->now_ns;
    }
}

/* What the quickest packet says that was no short one. */
static void r2_delivery_peak(r2_lane_t *lane, uint64_t bytes, uint64_t took_ns)
{
    uint64_t kbytes_per_s = lane->tx.peak_kbytes_per_s;

    if (bytes >= R2_PEAK_BYTES) {
        kbytes_per_s = r2_max(kbytes_per_s, bytes * (R2_NS_PER_S / 1000) / r2_max(took_ns, 1u));
        lane->tx.peak_kbytes_per_s = (uint32_t) r2_min(kbytes_per_s, (uint64_t) UINT32_MAX);
    }
}

void r2_delivery_acked(r2_lane_t *lane, uint64_t bytes, uint64_t took_ns)
{
    r2_delivery_t *delivery = &lane->tx.delivery;
    uint64_t now_ns = lane->link->net->now_ns;
    uint64_t bytes_per_s;

    if (0 != took_ns) {
        r2_delivery_peak(lane, bytes, took_ns);
    }
    delivery->ns += now_ns - delivery->mark_ns;
    delivery->bytes += bytes;
    delivery->mark_ns = now_ns;
    if (delivery->bytes < R2_DELIVERY_BYTES) {
        return;
    }
    bytes_per_s = delivery->bytes * R2_NS_PER_S / r2_max(delivery->ns, 1u);
    /* slow where little was under way: that says less, but what was measured long ago fades */
    delivery->bytes_per_s = r2_max(bytes_per_s, delivery->bytes_per_s - delivery->bytes_per_s / 4);
    delivery->ns = delivery->bytes = 0;
    lane->tx.peak_kbytes_per_s /= 2; /* what a shaper let through at once after a pause fades */
}
