/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Degraded rails: each lane's rate against the other lanes of the same link, over all peers.
 */
/*
 * A lane says how fast the slower of its two NICs is. The best of all lanes over our rail, to
 * different hosts and in both directions, therefore tells about our NIC: if all are slow it is
 * ours. How slow, tells their mean: lanes to slow peers do not count then, and while one peer has
 * all of the rail its lane finds more than the share that others leave it on the other rails. What
 * a rail gives when it is healthy is known from the speeds of the NICs, or learned: rails may be of
 * unequal speed.
 */
#include "r2_config.h"

#include "health/machine.h"

#include <string.h>

#define R2_SLOW_WHOLE   1000u /* ratios are thousandths */
#define R2_SLOW_WINDOWS 3u    /* in a row decide */
/* Sixteenths by which a lane may be slower than its peer is known to be. */
#define R2_SLOW_MARGIN 2u
#define R2_SLOW_TURNS  8u /* hosts that explain each other take turns of so many windows */

static void r2_slow_claim(r2_health_t *health, uint32_t rail, uint32_t sixteenths, uint64_t now_ns)
{
    const r2_health_entry_t *entry = r2_health_map_entry(&health->map, health->own_host, rail);
    bool full = sixteenths >= R2_CAPACITY_FULL;
    const r2_health_entry_t next = {
        .version = entry->version,
        .capacity = (uint8_t) sixteenths,
        .verdict = full ? R2_VERDICT_HEALTHY : R2_VERDICT_SLOW};
    const r2_verdict_event_t event = {.time_ns = now_ns,
                                      .since_ns = now_ns,
                                      .own = true,
                                      .rank = R2_NOBODY,
                                      .verdict = (r2_verdict_t) next.verdict,
                                      .evidence = "rate against the other rails of the same peers"};

    r2_owner_claim(health, health->own_host, rail, &next, &event, now_ns);
}

/* The mean of some lanes against what the rail gives when it is healthy, thousandths. */
static uint32_t r2_slow_ratio(const r2_slow_t *window, uint64_t sum, uint32_t count)
{
    return (uint32_t) (sum * R2_SLOW_WHOLE / count / window->baseline);
}

static uint32_t r2_slow_best(const r2_slow_t *window)
{
    uint32_t best = 0;

    for (uint32_t idx = 0; idx < window->peer_count; ++idx) {
        best = r2_max(best, window->peers[idx].sum / window->peers[idx].count);
    }
    return best;
}

/*
 * What a window says: sixteenths. A healthy rail has the benefit of the doubt: a single fast lane
 * is enough. One that was slow has to come halfway to the full rate with all lanes of a peer.
 */
static uint32_t r2_slow_is(const r2_health_t *health, const r2_slow_t *window, uint32_t capacity)
{
    bool slow = capacity < R2_CAPACITY_FULL;
    uint32_t percent = slow ? (100 + health->params.slow_percent) / 2 : health->params.slow_percent;
    uint32_t best = r2_slow_ratio(window, slow ? r2_slow_best(window) : window->best, 1), mean,
             count = 0;
    uint64_t sum = 0;

    if (best * 100 >= percent * R2_SLOW_WHOLE) {
        return R2_CAPACITY_FULL;
    }
    for (uint32_t idx = 0; idx < window->peer_count; ++idx) {
        sum += window->peers[idx].sum;
        count += window->peers[idx].count;
    }
    mean = r2_slow_ratio(window, sum, count);
    return r2_clamp_u64((mean * R2_CAPACITY_FULL + R2_SLOW_WHOLE / 2) / R2_SLOW_WHOLE, 1,
                        R2_CAPACITY_FULL - 1);
}

/* All peers of this window are known to be slow on this rail, and that is all there is to see. */
static bool r2_slow_is_explained(const r2_health_t *health, const r2_slow_t *window, uint32_t rail)
{
    for (uint32_t idx = 0; idx < window->peer_count; ++idx) {
        const r2_slow_sum_t *peer = &window->peers[idx];
        const r2_health_entry_t *entry = r2_health_map_entry(&health->map, peer->host, rail);
        uint32_t seen = r2_slow_ratio(window, peer->sum, peer->count) * R2_CAPACITY_FULL;

        if (R2_VERDICT_SLOW != entry->verdict ||
            seen + R2_SLOW_MARGIN * R2_SLOW_WHOLE < entry->capacity * R2_SLOW_WHOLE) {
            return false;
        }
    }
    return true;
}

/*
 * Windows that a rail must look better in. Where hosts explain each other one of them has to be the
 * first: then the others are not explained any more.
 */
static uint32_t r2_slow_windows(const r2_health_t *health, bool explained)
{
    return R2_SLOW_WINDOWS + (explained ? 2 * (health->own_host % R2_SLOW_TURNS) : 0);
}

/* A window has ended: counts it for or against the capacity that the map names. */
static void r2_slow_close(r2_health_t *health, uint32_t rail, uint64_t now_ns)
{
    uint32_t capacity = r2_health_map_entry(&health->map, health->own_host, rail)->capacity;
    r2_slow_t *window = &health->windows[rail];
    bool explained;
    uint32_t is;

    if (window->peer_count < 2 || 0 == capacity) {
        return; /* one peer cannot tell whose NIC is slow */
    }
    window->baseline = r2_max(window->baseline, r2_slow_best(window));
    if (0 == window->baseline) {
        return;
    }
    explained = r2_slow_is_explained(health, window, rail);
    is = explained ? R2_CAPACITY_FULL : r2_slow_is(health, window, capacity);
    /* the first window of a row may have begun before the change */
    window->low_best = window->low < 2 ? is : r2_max(window->low_best, is);
    window->high_least = window->high < 2 ? is : r2_min(window->high_least, is);
    window->low = is + 1 < capacity ? window->low + 1 : 0; /* one sixteenth is noise */
    window->high =
        is > capacity + 1 || (R2_CAPACITY_FULL == is && is > capacity) ? window->high + 1 : 0;
    if (window->low >= R2_SLOW_WINDOWS) {
        window->low = window->high = 0;
        r2_slow_claim(health, rail, window->low_best, now_ns);
    } else if (window->high >= r2_slow_windows(health, explained)) {
        window->low = window->high = 0;
        r2_slow_claim(health, rail, window->high_least, now_ns);
    }
}

static void r2_slow_add(r2_health_t *health, uint32_t rail, uint32_t host, uint32_t ratio,
                        uint64_t now_ns)
{
    r2_slow_t *window = &health->windows[rail];
    uint32_t idx = 0;

    if (0 != window->window_ns &&
        now_ns >= window->window_ns + r2_health_ms(health->params.slow_window_ms)) {
        r2_slow_close(health, rail, now_ns);
        window->window_ns = 0;
    }
    if (0 == window->window_ns) {
        window->window_ns = r2_max(now_ns, 1ull);
        window->peer_count = window->best = 0;
    }
    window->best = r2_max(window->best, ratio);
    while (idx < window->peer_count && host != window->peers[idx].host) {
        ++idx;
    }
    if (idx == R2_SLOW_PEERS) {
        return;
    }
    if (idx == window->peer_count) {
        window->peers[window->peer_count++] = (r2_slow_sum_t){.host = host};
    }
    window->peers[idx].sum += ratio;
    ++window->peers[idx].count;
}

/*
 * What a rail of these should give: the median of all that are not 0, of two the better one. Not
 * the best: lanes that share a NIC get unequal parts of it, and the luckiest one would make all
 * others look slow.
 */
static uint64_t r2_slow_usual(const uint64_t *of_rail)
{
    uint64_t sorted[R2_RAILS_MAX];
    uint32_t count = 0;

    for (uint32_t rail = 0; rail < R2_RAILS_MAX; ++rail) {
        uint32_t at = count;

        if (0 == of_rail[rail]) {
            continue;
        }
        for (; at > 0 && sorted[at - 1] < of_rail[rail]; --at) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = of_rail[rail];
        ++count;
    }
    /* a single one has nothing to be compared with */
    return count < 2 ? 0 : sorted[(count - 1) / 2];
}

/* Thousandths of the usual rail; no rail counts as faster. */
static uint32_t r2_slow_share(uint64_t of_rail, uint64_t usual)
{
    return (uint32_t) ((unsigned __int128) r2_min(of_rail, usual) * R2_SLOW_WHOLE / usual);
}

void r2_capacity_init(r2_health_t *health)
{
    const uint64_t *speed = health->self.rail_speed;
    uint64_t usual = r2_slow_usual(speed);

    for (uint32_t rail = 0; usual > 0 && rail < health->rail_count; ++rail) {
        health->windows[rail].baseline = r2_slow_share(speed[rail], usual);
    }
}

/* All lanes of one link are in: compares them with each other. */
static void r2_batch_close(r2_health_t *health)
{
    const r2_batch_t batch = health->batch;
    uint64_t usual = r2_slow_usual(batch.bytes);

    memset(&health->batch, 0, sizeof(health->batch));
    for (uint32_t rail = 0; usual > 0 && rail < health->rail_count; ++rail) {
        if (0 != (batch.seen & 1u << rail)) {
            r2_slow_add(health, rail, health->hosts->host_of[batch.rank],
                        r2_slow_share(batch.bytes[rail], usual), batch.now_ns);
        }
    }
}

void r2_capacity_rate(r2_health_t *health, uint32_t rank, uint32_t rail, bool outbound,
                      uint64_t bytes, uint64_t now_ns)
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
