/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Draws peers that are healthy but unhelpful.
 */
#include "r2_config.h"

#include "generate_parts.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "doubles/sim.h"

#define US(seconds) ((uint64_t) (seconds) * 1000000)

const char *const generate_axis_names[GENERATE_AXES] = {
    [GENERATE_STOP] = "stop",       [GENERATE_BACKLOG] = "backlog", [GENERATE_REFUSE] = "refuse",
    [GENERATE_SLOW] = "slow",       [GENERATE_COMPUTE] = "compute",
    [GENERATE_DESCRIPTORS] = "descriptors", [GENERATE_MEMORY] = "memory",
};

/* ---- streams ---- */

static bool draw_has(const draw_t *d, generate_axis_t axis)
{
    return 0 != (d->active & 1u << axis);
}

static uint64_t axis_pick(draw_t *d, generate_axis_t axis, uint64_t low, uint64_t high)
{
    return r2_prng_between(&d->axis[axis], low, high);
}

static bool axis_chance(draw_t *d, generate_axis_t axis, uint32_t percent)
{
    return r2_prng_chance(&d->axis[axis], percent * 10000);
}

/* As draw_pick_wide(). */
static uint64_t axis_wide(draw_t *d, generate_axis_t axis, uint64_t low, uint64_t high)
{
    uint64_t top = high;

    while (top / 2 >= low && 0 != top && axis_chance(d, axis, 70)) {
        top /= 2;
    }
    return axis_pick(d, axis, low, r2_max(low, top));
}

static uint64_t axis_rank(draw_t *d, generate_axis_t axis)
{
    return axis_pick(d, axis, 0, d->hosts * d->ppn - 1);
}

/* Within the time of the faults, or while the lanes open, in microseconds. */
static uint64_t axis_time_us(draw_t *d, generate_axis_t axis)
{
    return axis_chance(d, axis, 30) ? axis_pick(d, axis, 0, 300)
                                    : axis_wide(d, axis, 1, d->span_ns / R2_NS_PER_US);
}

/* ---- what holds from the start ---- */

/* The limit of a process: from the least that r2 begins with up to what all lanes take. */
static void draw_limit(draw_t *d, uint64_t rank)
{
    const generate_axis_t axis = GENERATE_DESCRIPTORS;
    const uint64_t ranks = d->hosts * d->ppn, least = R2_SIM_LANES_FDS(2);
    const uint64_t most = R2_SIM_WORKER_FDS * (d->rails + 1) + R2_SIM_EP_FDS * ranks * d->rails;
    const uint64_t at_us = axis_chance(d, axis, 70) ? 0 : axis_time_us(d, axis);

    draw_say(d, "at %" PRIu64 "us descriptors r%" PRIu64 " %" PRIu64, at_us, rank,
             axis_wide(d, axis, least, r2_max(least, most)));
    if (axis_chance(d, axis, 30)) {
        draw_say(d, "at %" PRIu64 "us descriptors r%" PRIu64 " 0",
                 at_us + axis_wide(d, axis, 100, US(20)), rank);
    }
}

/* One or two processes, or all. */
static void draw_descriptors(draw_t *d)
{
    const generate_axis_t axis = GENERATE_DESCRIPTORS;
    const uint64_t ranks = d->hosts * d->ppn;

    if (axis_chance(d, axis, 30)) {
        for (uint64_t rank = 0; rank < ranks; ++rank) {
            draw_limit(d, rank);
        }
        return;
    }
    for (uint64_t left = axis_pick(d, axis, 1, 2); left > 0; --left) {
        draw_limit(d, axis_rank(d, axis));
    }
}

void draw_unhelpful_begin(draw_t *d)
{
    static const uint32_t rates[GENERATE_AXES] = {
        [GENERATE_STOP] = 50,    [GENERATE_BACKLOG] = 50, [GENERATE_REFUSE] = 30,
        [GENERATE_SLOW] = 25,    [GENERATE_COMPUTE] = 50, [GENERATE_DESCRIPTORS] = 20,
        [GENERATE_MEMORY] = 15};
    r2_prng_t mood;

    if (0 == d->axes) {
        return;
    }
    for (uint32_t i = 0; i < GENERATE_AXES; ++i) {
        r2_prng_seed(&d->axis[i], (d->seed + 1) * 0xd1342543de82ef95ull + (i + 1) * 0x9e3779b9ull);
        d->active |= axis_chance(d, i, rates[i]) ? d->axes & 1u << i : 0;
    }
    r2_prng_seed(&mood, d->seed * 0xd1342543de82ef95ull + 777);
    d->sound = r2_prng_chance(&mood, 600000);
    if (d->sound && !d->lossy && r2_prng_chance(&mood, 500000)) {
        draw_say(d, "param no_path_timeout_ms %" PRIu64, r2_prng_between(&mood, 2000, 20000));
    }
    if (draw_has(d, GENERATE_BACKLOG)) {
        draw_say(d, "backlog %" PRIu64, axis_pick(d, GENERATE_BACKLOG, 1, 8));
    }
}

/* ---- the program ---- */

/* A rank computes while the others send it what they can, or in the middle of calls that it
 * began. */
void draw_unhelpful_steps(draw_t *d)
{
    static const char *const kinds[] = {"gather", "scatter", "allgather",
                                        "reduce", "bcast",   "allreduce"};
    const generate_axis_t axis = GENERATE_COMPUTE;
    const uint64_t ranks = d->hosts * d->ppn;
    uint64_t rank, kind, count;

    if (!draw_has(d, axis) || !axis_chance(d, axis, 25)) {
        return;
    }
    rank = axis_rank(d, axis);
    kind = axis_pick(d, axis, 0, r2_array_count(kinds) - 1);
    count = axis_wide(d, axis, 1000, 60000);
    if (axis_chance(d, axis, 50)) {
        char root[32] = "";

        if (kind != 2 && kind != 5) {
            snprintf(root, sizeof(root), " root=%" PRIu64, axis_rank(d, axis));
        }
        draw_say(d, "coll %s i64 %" PRIu64 "%s times=%" PRIu64 " nb", kinds[kind],
                 kind < 3 ? (count + ranks - 1) / ranks : count, root, axis_pick(d, axis, 1, 4));
    }
    draw_say(d, "compute %" PRIu64 "us rank=%" PRIu64, axis_wide(d, axis, 1000, US(180)), rank);
    if (axis_chance(d, axis, 50)) {
        draw_say(d, "coll gather i64 %" PRIu64 " root=%" PRIu64 " times=%" PRIu64,
                 (count + ranks - 1) / ranks, rank, axis_pick(d, axis, 1, 8));
    }
}

/* ---- what happens ---- */

static void draw_stops(draw_t *d)
{
    const generate_axis_t axis = GENERATE_STOP;

    for (uint64_t left = axis_pick(d, axis, 1, 3); left > 0; --left) {
        const uint64_t rank = axis_rank(d, axis);
        const uint64_t at_us = axis_chance(d, axis, 25) ? 0 : axis_time_us(d, axis);

        draw_say(d, "at %" PRIu64 "us stop r%" PRIu64, at_us, rank);
        draw_say(d, "at %" PRIu64 "us cont r%" PRIu64, at_us + axis_wide(d, axis, 1000, US(150)),
                 rank);
    }
}

/* Firewalls on all rails but one, at most: where all refuse nobody can tell it from a process that
 * is gone. */
static void draw_refusals(draw_t *d)
{
    const generate_axis_t axis = GENERATE_REFUSE;
    const uint64_t spared = axis_pick(d, axis, 0, d->rails_least - 1);

    for (uint64_t left = axis_pick(d, axis, 1, 4); left > 0; --left) {
        const uint64_t host = axis_pick(d, axis, 0, d->hosts - 1);
        const uint64_t rail = axis_pick(d, axis, 0, d->rails - 1);
        const uint64_t at_us = axis_chance(d, axis, 40) ? 0 : axis_time_us(d, axis);
        const uint64_t until_us = at_us + axis_wide(d, axis, 100, US(20));
        const bool plane = axis_chance(d, axis, 50), probes = axis_chance(d, axis, 30);
        const bool ends = axis_chance(d, axis, 40);

        for (uint64_t h = plane ? 0 : host; rail != spared && h < (plane ? d->hosts : host + 1);
             ++h) {
            draw_say(d, "at %" PRIu64 "us refuse h%" PRIu64 " rail%" PRIu64 "%s", at_us, h, rail,
                     probes ? " probes" : "");
            if (ends) {
                draw_say(d, "at %" PRIu64 "us accept h%" PRIu64 " rail%" PRIu64, until_us, h, rail);
            }
        }
    }
}

static void draw_slow(draw_t *d)
{
    const generate_axis_t axis = GENERATE_SLOW;
    const uint64_t rank = axis_rank(d, axis);
    const uint64_t at_us = axis_chance(d, axis, 40) ? 0 : axis_time_us(d, axis);

    draw_say(d, "at %" PRIu64 "us slow r%" PRIu64 " %" PRIu64 "us", at_us, rank,
             axis_wide(d, axis, 100, 200000));
    draw_say(d, "at %" PRIu64 "us slow r%" PRIu64 " 0us", at_us + axis_wide(d, axis, 1000, US(60)),
             rank);
}

/* Without small pieces no lane opens: where these fail, they do not fail too often. */
static void draw_memory(draw_t *d)
{
    const generate_axis_t axis = GENERATE_MEMORY;
    const uint64_t rank = axis_rank(d, axis);
    const uint64_t at_us = axis_chance(d, axis, 40) ? 0 : axis_time_us(d, axis);

    const uint64_t least = axis_wide(d, axis, 1, 1u << 17);
    const uint64_t drawn = axis_wide(d, axis, 1, 1000);
    const uint64_t permille = least < 4096 ? r2_min(drawn, 300ull) : drawn;

    draw_say(d, "at %" PRIu64 "us memory r%" PRIu64 " %.1f %" PRIu64, at_us, rank,
             (double) permille / 10, least);
    if (axis_chance(d, axis, 50)) {
        draw_say(d, "at %" PRIu64 "us memory r%" PRIu64 " 0 0",
                 at_us + axis_wide(d, axis, 100, US(2)), rank);
    }
}

void draw_unhelpful_end(draw_t *d)
{
    if (draw_has(d, GENERATE_STOP)) {
        draw_stops(d);
    }
    if (draw_has(d, GENERATE_REFUSE) && d->rails > 1) {
        draw_refusals(d);
    }
    if (draw_has(d, GENERATE_SLOW)) {
        draw_slow(d);
    }
    if (draw_has(d, GENERATE_DESCRIPTORS)) {
        draw_descriptors(d);
    }
    if (draw_has(d, GENERATE_MEMORY)) {
        draw_memory(d);
        draw_say(d, "expect any");
    } else if (d->sound) {
        draw_say(d, "expect healthy");
    }
}
