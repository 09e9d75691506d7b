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
/* Clocks are read once per progress pass: shorter times say nothing. */
#define R2_DELIVERY_NS (10 * R2_NS_PER_US)
/* Shorter packets take as long as shortest ones. */
#define R2_PEAK_BYTES 8192u
/* How often the kernel is asked what the path carries, and how long that counts. */
#define R2_PATH_BYTES      (128u << 10)
#define R2_PATH_LATE_BYTES (16u << 10) /* behind what came late: that may be the path's doing */
#define R2_PATH_LATE_NS    (2 * R2_NS_PER_MS)
#define R2_PATH_ASKED      8u /* times before it is thought to be quick */
#define R2_PATH_LIFE_NS    (10 * R2_NS_PER_S)
/*
 * A path is quick while most looks at those of its rail say so, and its own do: there are few looks
 * at each. One that says so counts one; one that does not counts eight, since a shaper's bucket
 * lets much through at any rate, and is not the end of it: a peer that had no processor looks like
 * a slow path at times. While the kernel's window is short, as at first, that always is so: slow
 * looks count one, and quick ones nothing. A path that is slow as a rule says nothing of its rail.
 */
#define R2_QUICK_BYTES_PER_S  800000000u
#define R2_QUICK_WINDOW_BYTES 65536u
#define R2_QUICK_SLOW         8u
#define R2_QUICK_ENOUGH       16u
#define R2_QUICK_OWN          4u
#define R2_QUICK_MOST         32u

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

/*
 * The least of some time: a shaper lets its bucket through at any rate, what fits in finds it full
 * again, and so does the first packet after a pause. A path that is never seen to be slow is not.
 */
static void r2_delivery_path_least(r2_path_rate_t *path, uint64_t bytes_per_s, uint64_t now_ns)
{
    const bool known = 0 != path->bytes_per_s;
    const bool slower = known && bytes_per_s <= path->bytes_per_s;
    bool due;

    path->since_bytes_per_s =
        0 == path->since_bytes_per_s ? bytes_per_s : r2_min(path->since_bytes_per_s, bytes_per_s);
    ++path->asked;
    due = path->asked >= R2_PATH_ASKED && (!known || now_ns - path->at_ns > R2_PATH_LIFE_NS);
    if (slower || due) {
        path->bytes_per_s = path->since_bytes_per_s;
        path->at_ns = now_ns;
        path->since_bytes_per_s = 0;
        path->asked = 0;
    }
}

/* A look at a path. @return what is thought of it then. @param quick what was before. */
static uint32_t r2_delivery_path_quick(uint32_t quick, uint64_t bytes_per_s, bool has_window)
{
    if (bytes_per_s < R2_QUICK_BYTES_PER_S) {
        return quick - r2_min(quick, has_window ? R2_QUICK_SLOW : 1u);
    }
    return has_window ? r2_min(quick + 1, R2_QUICK_MOST) : quick;
}

bool r2_lane_path_is_quick(const r2_lane_t *lane)
{
    return NULL != lane->conn && lane->conn->quick >= R2_QUICK_OWN &&
           lane->rail->quick >= R2_QUICK_ENOUGH;
}

uint64_t r2_lane_path_rate(const r2_lane_t *lane)
{
    return NULL == lane->conn ? 0 : lane->conn->path.bytes_per_s;
}

static void r2_delivery_path(r2_lane_t *lane, uint64_t bytes, uint64_t took_ns)
{
    r2_lane_conn_t *conn = lane->conn;
    const r2_tp_ops_t *ops = NULL == conn ? NULL : conn->worker->rail->tp->ops;
    const bool late = took_ns >= R2_PATH_LATE_NS + lane->timing.min_rtt_ns;
    uint64_t bytes_per_s, window_bytes = 0;
    bool has_window;

    if (NULL == ops || NULL == ops->ep_path_rate) {
        return;
    }
    conn->path.acked_bytes += bytes;
    if (conn->path.acked_bytes < (late ? R2_PATH_LATE_BYTES : R2_PATH_BYTES)) {
        return;
    }
    conn->path.acked_bytes = 0;
    bytes_per_s = ops->ep_path_rate(conn->ep, &window_bytes);
    if (0 == bytes_per_s) {
        conn->path = (r2_path_rate_t){.bytes_per_s = 0};
        conn->quick = 0;
        return;
    }
    r2_delivery_path_least(&conn->path, bytes_per_s, lane->link->net->now_ns);
    has_window = window_bytes >= R2_QUICK_WINDOW_BYTES;
    /* else it is slow, and not its rail */
    if (conn->quick > 0 || bytes_per_s >= R2_QUICK_BYTES_PER_S) {
        lane->rail->quick = r2_delivery_path_quick(lane->rail->quick, bytes_per_s, has_window);
    }
    conn->quick = r2_delivery_path_quick(conn->quick, bytes_per_s, has_window);
}

void r2_delivery_acked(r2_lane_t *lane, uint64_t bytes, uint64_t took_ns)
{
    r2_delivery_t *delivery = &lane->tx.delivery;
    uint64_t now_ns = lane->link->net->now_ns;
    uint64_t bytes_per_s;

    if (0 != took_ns) {
        r2_delivery_peak(lane, bytes, took_ns);
    }
    r2_delivery_path(lane, bytes, took_ns);
    delivery->ns += now_ns - delivery->mark_ns;
    delivery->bytes += bytes;
    delivery->mark_ns = now_ns;
    if (delivery->bytes < R2_DELIVERY_BYTES || delivery->ns < R2_DELIVERY_NS) {
        return;
    }
    bytes_per_s = delivery->bytes * R2_NS_PER_S / r2_max(delivery->ns, 1u);
    /* slow where little was under way: that says less, but what was measured long ago fades */
    delivery->bytes_per_s = r2_max(bytes_per_s, delivery->bytes_per_s - delivery->bytes_per_s / 4);
    delivery->ns = delivery->bytes = 0;
    lane->tx.peak_kbytes_per_s /= 2; /* what a shaper let through at once after a pause fades */
}
