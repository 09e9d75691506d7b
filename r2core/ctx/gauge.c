/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Gauge: latency and rate of the rails as the job's own traffic shows them to rank 0, for predictions.
 */
#include "r2_config.h"

#include "ctx/gauge.h"

#include "plan/forecast.h"

/*
 * Nothing is sent for the sake of measuring. Round trips are those of acknowledgements, less the time that
 * they were held; short packets on idle rails come with the first calls of every job. A rate is what left by
 * a rail in a window in which chunks waited. The first window also empties what queues and shapers take at
 * once, so a rate counts when two windows in a row have reached it.
 */
#define R2_GAUGE_WINDOW_NS (50 * R2_NS_PER_MS)
/* A window that took so many times longer had idle time in it. */
#define R2_GAUGE_SPAN 4u
/*
 * Before that many, a rail has not found its pace. What a rail carried is no more than what it can carry (with
 * equal shares a healthy host waits for a degraded one), so rates may grow later; each change waits twice as
 * long as the one before, which bounds the merges they cause.
 */
#define R2_GAUGE_WINDOWS 4u
#define R2_GAUGE_VERSIONS 16u
/* Smaller changes, as a fraction, are no news: plans that were worked out stay valid. */
#define R2_GAUGE_NOTABLE 8u

/*
 * A round trip ends in the other process's network layer. A step ends in its collective, when it next runs: where ranks
 * share cores, that is most of the time. So calls of next to no bytes are timed, and the mean of some in a
 * row counts, the least of these: what ranks wait because others come late is no cost of steps.
 */
#define R2_GAUGE_SHORT_BYTES 256u
#define R2_GAUGE_CALLS       8u
/* Least round trips that a step is taken for at most: a rank that is always early times the others' work. */
#define R2_GAUGE_STEP_MAX UINT64_C(8)
/* Without loaded rails calls look themselves. */
#define R2_GAUGE_LOOK_NS (50 * R2_NS_PER_MS)

static bool r2_gauge_leads(const r2_gauge_t *gauge)
{
    return 0 == gauge->core->net.rank && NULL != gauge->basis;
}

/* Ranks of our host share its rails, and a collective loads them alike. */
static uint32_t r2_gauge_sharers(const r2_gauge_t *gauge)
{
    const r2_topology_t *job = &gauge->basis->topology;
    uint32_t count = 0;

    for (int32_t rank = 0; rank < job->rank_count; ++rank) {
        count += job->host_of[rank] == job->host_of[gauge->rank];
    }
    return count;
}

static void r2_gauge_loaded(void *arg, uint32_t rail)
{
    r2_gauge_t *all = arg;
    r2_gauge_rail_t *gauge = &all->rails[rail];
    const r2_net_t *net = &all->core->net;
    const uint64_t now_ns = net->now_ns, bytes = net->rails[rail].tx_bytes;
    const uint64_t span_ns = now_ns - gauge->from_ns;
    uint64_t bytes_per_s;

    if (!r2_gauge_leads(all) || (0 != gauge->from_ns && span_ns < R2_GAUGE_WINDOW_NS)) {
        return;
    }
    if (0 != gauge->from_ns && span_ns < R2_GAUGE_SPAN * R2_GAUGE_WINDOW_NS) {
        bytes_per_s = (bytes - gauge->from_bytes) * r2_gauge_sharers(all) * R2_NS_PER_S / span_ns;
        gauge->best_bytes_per_s =
            r2_max(gauge->best_bytes_per_s, r2_min(bytes_per_s, gauge->before_bytes_per_s));
        gauge->before_bytes_per_s = bytes_per_s;
        ++gauge->windows;
    } else {
        gauge->before_bytes_per_s = 0;
    }
    gauge->from_ns = now_ns;
    gauge->from_bytes = bytes;
    r2_gauge_look(all);
}

/* Of an even number the lower one. 0: there are none. */
static uint64_t r2_gauge_median(uint64_t *values, uint32_t count)
{
    for (uint32_t i = 1; i < count; ++i) {
        for (uint32_t at = i; at > 0 && values[at - 1] > values[at]; --at) {
            const uint64_t higher = values[at - 1];

            values[at - 1] = values[at];
            values[at] = higher;
        }
    }
    return 0 == count ? 0 : values[(count - 1) / 2];
}

/*
 * Until there were short calls half a round trip, the least of all rails: the others may have carried long packets
 * only, whose time is not alpha.
 */
static uint32_t r2_gauge_alpha_ns(r2_gauge_t *gauge)
{
    uint64_t *least_ns = &gauge->round_trip_ns;

    for (uint32_t rail = 0; rail < gauge->core->net.rail_count; ++rail) {
        const uint64_t now_ns = r2_net_round_trip_ns(&gauge->core->net, rail);

        if (0 != now_ns && (0 == *least_ns || now_ns < *least_ns)) {
            *least_ns = now_ns;
        }
    }
    if (0 != gauge->step_ns) {
        return (uint32_t) r2_min(gauge->step_ns, 0 == *least_ns ? (uint64_t) UINT32_MAX
                                                                : R2_GAUGE_STEP_MAX * *least_ns);
    }
    return (uint32_t) r2_min(*least_ns / 2, (uint64_t) UINT32_MAX);
}

/* What rails give of what plans take them for: the median, since single ones are the health map's matter. */
static uint32_t r2_gauge_rate_ppm(const r2_gauge_t *all)
{
    const r2_topology_t *told = &all->basis->topology;
    const uint32_t *told_mbytes_per_s =
        &told->rate_mbytes_per_s[told->host_of[all->rank] * told->rail_count];
    uint64_t parts[R2_RAILS_MAX];
    uint32_t count = 0;

    for (uint32_t rail = 0; rail < all->core->net.rail_count; ++rail) {
        const r2_gauge_rail_t *gauge = &all->rails[rail];

        if (gauge->windows >= R2_GAUGE_WINDOWS << all->rate_changes &&
            0 != gauge->best_bytes_per_s && 0 != told_mbytes_per_s[rail]) {
            parts[count++] = r2_max(gauge->best_bytes_per_s / told_mbytes_per_s[rail], (uint64_t) 1);
        }
    }
    return (uint32_t) r2_min(r2_gauge_median(parts, count), (uint64_t) UINT32_MAX);
}

static bool r2_gauge_differs(uint32_t seen, uint32_t known)
{
    const uint32_t by = seen > known ? seen - known : known - seen;

    return 0 != seen && (uint64_t) by * R2_GAUGE_NOTABLE > known;
}

void r2_gauge_look(r2_gauge_t *gauge)
{
    const r2_cost_params_t *given = &gauge->given;
    uint32_t alpha_ns, rate_ppm;

    if (!r2_gauge_leads(gauge) || R2_GAUGE_VERSIONS == gauge->version) {
        return;
    }
    alpha_ns = 0 != given->alpha_ns ? given->alpha_ns : r2_gauge_alpha_ns(gauge);
    rate_ppm = 0 != given->rate_ppm ? given->rate_ppm : r2_gauge_rate_ppm(gauge);
    if (0 == gauge->version) {
        gauge->cost = *given;
    }
    if (r2_gauge_differs(alpha_ns, gauge->cost.alpha_ns) ||
        r2_gauge_differs(rate_ppm, gauge->cost.rate_ppm)) {
        gauge->rate_changes += r2_gauge_differs(rate_ppm, gauge->cost.rate_ppm);
        gauge->cost.alpha_ns = 0 != alpha_ns ? alpha_ns : gauge->cost.alpha_ns;
        gauge->cost.rate_ppm = 0 != rate_ppm ? rate_ppm : gauge->cost.rate_ppm;
        ++gauge->version;
        r2_debug(&gauge->core->log,
                 "rails as seen: a step takes %u ns, rails give %u ppm of what is told of them",
                 gauge->cost.alpha_ns, gauge->cost.rate_ppm);
        r2_observe_plan(gauge->core->observers, gauge->basis, gauge->rank);
    }
}

/* Of all ranks of the job, so that most steps go from host to host. @return 0: says nothing of steps. */
static uint32_t r2_gauge_steps(const r2_gauge_t *gauge, const r2_schedule_t *schedule, int32_t size)
{
    return (uint32_t) size == gauge->core->net.size && 0 < schedule->op_count &&
                   schedule->ops[0].bytes <= R2_GAUGE_SHORT_BYTES
               ? r2_forecast_steps(schedule, size)
               : 0;
}

static void r2_gauge_short_call(r2_gauge_t *gauge, uint32_t steps, uint64_t took_ns)
{
    gauge->steps_ns += took_ns;
    gauge->steps += steps;
    if (++gauge->calls < R2_GAUGE_CALLS) {
        return;
    }
    took_ns = r2_max(gauge->steps_ns / gauge->steps, (uint64_t) 1);
    gauge->least_step_ns = 0 == gauge->least_step_ns ? took_ns : r2_min(gauge->least_step_ns, took_ns);
    ++gauge->windows;
    if (0 == (gauge->windows & (gauge->windows - 1))) { /* else a job that gets faster makes too many versions */
        gauge->step_ns = gauge->least_step_ns;
    }
    gauge->steps_ns = 0;
    gauge->steps = gauge->calls = 0;
}

static void r2_gauge_called(void *arg, const r2_schedule_t *schedule, int32_t size,
                            uint64_t begun_ns)
{
    r2_gauge_t *gauge = arg;
    const uint64_t now_ns = gauge->core->net.now_ns;
    const uint32_t steps =
        0 != begun_ns && r2_gauge_leads(gauge) ? r2_gauge_steps(gauge, schedule, size) : 0;

    if (0 != steps) {
        r2_gauge_short_call(gauge, steps, r2_now_ns(gauge->core->clock) - begun_ns);
    }
    if (now_ns - gauge->looked_ns >= R2_GAUGE_LOOK_NS) {
        gauge->looked_ns = now_ns;
        r2_gauge_look(gauge);
    }
}

static void r2_gauge_plan(void *arg, const r2_basis_t *basis, int32_t rank)
{
    r2_gauge_t *gauge = arg;

    gauge->basis = basis;
    gauge->rank = rank;
}

void r2_gauge_init(r2_gauge_t *gauge, r2_core_t *core, const r2_cost_params_t *given)
{
    *gauge = (r2_gauge_t){.core = core,
                          .given = *given,
                          .observer = {.loaded = r2_gauge_loaded,
                                       .called = r2_gauge_called,
                                       .plan = r2_gauge_plan,
                                       .arg = gauge}};
    r2_core_watch(core, &gauge->observer);
}

void r2_gauge_heard(r2_gauge_t *gauge, uint32_t version, const r2_cost_params_t *cost)
{
    if (version > gauge->version) {
        gauge->version = version;
        gauge->cost = *cost;
    }
}

bool r2_gauge_wanted(const r2_gauge_t *gauge, const r2_basis_t *basis)
{
    const r2_cost_params_t *known = &gauge->cost, *used = &basis->cost;

    return !basis->even && gauge->version > basis->cost_version &&
           ((0 == used->alpha_ns && 0 != known->alpha_ns) ||
            r2_gauge_differs(known->rate_ppm, used->rate_ppm));
}

const r2_cost_params_t *r2_gauge_cost(const r2_gauge_t *gauge, const r2_basis_t *basis)
{
    return 0 == gauge->version ? &basis->cost : &gauge->cost;
}
