/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Degraded rails: each lane's rate against the other lanes of the same link, over all peers.
 */
/*
 * A lane says how fast the slower of its two NICs is. The best of all lanes over our rail, to different
 * hosts and in both directions, therefore tells about our NIC: if all are slow it is ours. What a rail
 * gives when it is healthy is learned, since rails may be of unequal speed.
 */
#include "r2_config.h"

#include "health/state.h"

#include <string.h>

#define R2_PACE_WHOLE   1000u /* ratios are thousandths */
#define R2_PACE_WINDOWS 3u    /* in a row decide */

static void r2_pace_claim(r2_health_t *health, uint32_t rail, uint32_t sixteenths, uint64_t now_ns)
{
    const r2_health_entry_t *entry = r2_health_map_entry(&health->map, health->own_host, rail);
    bool full = sixteenths >= R2_CAPACITY_FULL;
    const r2_health_entry_t next = {
        .version = entry->version,
        .capacity = (uint8_t) sixteenths,
        .verdict = full ? R2_VERDICT_HEALTHY : R2_VERDICT_SLOW};
    const r2_health_news_t news = {.time_ns = now_ns, .since_ns = now_ns, .own = true,
                                   .rank = R2_NOBODY, .verdict = (r2_verdict_t) next.verdict,
                                   .evidence = "rate against the other rails of the same peers"};

    r2_writer_claim(health, health->own_host, rail, &next, &news, now_ns);
}

static uint32_t r2_pace_sixteenths(uint32_t ratio, const r2_health_t *health)
{
    if (ratio * 100 >= health->params.slow_percent * R2_PACE_WHOLE) {
        return R2_CAPACITY_FULL;
    }
    return r2_max((ratio * R2_CAPACITY_FULL + R2_PACE_WHOLE / 2) / R2_PACE_WHOLE, 1u);
}

/* A window has ended: counts it for or against the capacity that the map names. */
static void r2_pace_close(r2_health_t *health, uint32_t rail, uint64_t now_ns)
{
    uint32_t capacity = r2_health_map_entry(&health->map, health->own_host, rail)->capacity;
    r2_pace_t *pace = &health->paces[rail];
    uint32_t ratio, is;

    if (!pace->second_host || 0 == capacity) {
        return; /* one peer cannot tell whose NIC is slow */
    }
    pace->baseline = r2_max(pace->baseline, pace->best);
    if (0 == pace->baseline) {
        return;
    }
    ratio = (uint32_t) ((uint64_t) pace->best * R2_PACE_WHOLE / pace->baseline);
    is = r2_pace_sixteenths(ratio, health);
    pace->low_best = 0 == pace->low ? is : r2_max(pace->low_best, is);
    pace->high_least = 0 == pace->high ? is : r2_min(pace->high_least, is);
    pace->low = is + 1 < capacity ? pace->low + 1 : 0; /* one sixteenth is noise */
    pace->high = is > capacity + 1 || (R2_CAPACITY_FULL == is && is > capacity) ? pace->high + 1 : 0;
    if (pace->low >= R2_PACE_WINDOWS) {
        pace->low = pace->high = 0;
        r2_pace_claim(health, rail, pace->low_best, now_ns);
    } else if (pace->high >= R2_PACE_WINDOWS) {
        pace->low = pace->high = 0;
        r2_pace_claim(health, rail, pace->high_least, now_ns);
    }
}

static void r2_pace_add(r2_health_t *health, uint32_t rail, uint32_t host, uint32_t ratio,
                        uint64_t now_ns)
{
    r2_pace_t *pace = &health->paces[rail];

    if (0 != pace->window_ns &&
        now_ns >= pace->window_ns + r2_health_ms(health->params.slow_window_ms)) {
        r2_pace_close(health, rail, now_ns);
        pace->window_ns = 0;
    }
    if (0 == pace->window_ns) {
        pace->window_ns = r2_max(now_ns, 1ull);
        pace->best = 0;
        pace->first_host = host;
        pace->second_host = false;
    }
    pace->best = r2_max(pace->best, ratio);
    pace->second_host = pace->second_host || host != pace->first_host;
}

/*
 * What a lane of this link should give: the median of all, of two the better one. Not the best: lanes
 * that share a NIC get unequal parts of it, and the luckiest one would make all others look slow.
 */
static uint64_t r2_batch_usual(const r2_batch_t *batch)
{
    uint64_t sorted[R2_RAILS_MAX];
    uint32_t count = 0;

    for (uint32_t rail = 0; rail < R2_RAILS_MAX; ++rail) {
        uint32_t at = count;

        if (0 == (batch->seen & 1u << rail)) {
            continue;
        }
        for (; at > 0 && sorted[at - 1] < batch->bytes[rail]; --at) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = batch->bytes[rail];
        ++count;
    }
    return count < 2 ? 0 : sorted[(count - 1) / 2]; /* a single lane has nothing to be compared with */
}

/* All lanes of one link are in: compares them with each other. */
static void r2_batch_close(r2_health_t *health)
{
    const r2_batch_t batch = health->batch;
    uint64_t usual = r2_batch_usual(&batch);

    memset(&health->batch, 0, sizeof(health->batch));
    for (uint32_t rail = 0; usual > 0 && rail < health->rail_count; ++rail) {
        if (0 != (batch.seen & 1u << rail)) {
            uint64_t bytes = r2_min(batch.bytes[rail], usual);
            uint64_t ratio = (uint64_t) ((unsigned __int128) bytes * R2_PACE_WHOLE / usual);

            r2_pace_add(health, rail, health->topology.host_of[batch.rank], (uint32_t) ratio,
                        batch.now_ns);
        }
    }
}

void r2_capacity_rate(r2_health_t *health, uint32_t rank, uint32_t rail, bool outbound, uint64_t bytes,
                      uint64_t now_ns)
{
    r2_batch_t *batch = &health->batch;

    if (0 != batch->seen && (batch->rank != rank || batch->outbound != outbound ||
                             batch->now_ns != now_ns || 0 != (batch->seen & 1u << rail))) {
        r2_batch_close(health);
    }
    batch->rank = rank;
    batch->outbound = outbound;
    batch->now_ns = now_ns;
    batch->bytes[rail] = bytes;
    batch->seen |= 1u << rail;
}
