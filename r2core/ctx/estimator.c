/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Cost estimator: latency and rate of the rails as the job's own traffic shows them to rank 0, for
 * predictions.
 */
#include "r2_config.h"

#include "ctx/estimator.h"

#include "plan/forecast.h"
#include "plan/thresholds.h"

/*
 * Nothing is sent for the sake of measuring. Round trips are those of acknowledgements, less the
 * time that they were held; short packets on idle rails come with the first calls of every job. A
 * rate is what left by a rail in a window in which chunks waited. The first window also empties
 * what queues and shapers take at once, so a rate counts when two windows in a row have reached it.
 */
#define R2_ESTIMATOR_WINDOW_NS (50 * R2_NS_PER_MS)
/* A window that took so many times longer had idle time in it. */
#define R2_ESTIMATOR_SPAN 4u
/*
 * Before that many, a rail has not found its pace. What a rail carried is no more than what it can
 * carry (with equal shares a healthy host waits for a degraded one), so rates may grow later; each
 * change waits twice as long as the one before, which bounds the map syncs they cause.
 */
#define R2_ESTIMATOR_WINDOWS  4u
#define R2_ESTIMATOR_VERSIONS 64u
/* From so many on no more is tried for crowded ranks. */
#define R2_ESTIMATOR_CROWDED 32u
/* Smaller changes, as a fraction, are no news: plans that were worked out stay valid. */
#define R2_ESTIMATOR_NOTABLE 8u

/*
 * A round trip ends in the other process's network layer. A step ends in its collective, when it
 * next runs: where ranks share cores, that is most of the time. So calls of next to no bytes are
 * timed, and the mean of some in a row counts, the least of these: what ranks wait because others
 * come late is no cost of steps.
 */
#define R2_ESTIMATOR_SHORT_BYTES 256u
#define R2_ESTIMATOR_CALLS       8u
/* Least round trips that a step is taken for at most: a rank that is always early times the others'
 * work. */
#define R2_ESTIMATOR_STEP_MAX UINT64_C(8)

/* Calls whose plans depend on whether ranks are crowded: shorter ones have the same either way. */
#define R2_ESTIMATOR_CROWDED_BYTES 8192u

static bool r2_estimator_leads(const r2_estimator_t *estimator)
{
    return 0 == estimator->core->net.rank && NULL != estimator->env;
}

/* Ranks of our host share its rails, and a collective loads them alike. */
static uint32_t r2_estimator_sharers(const r2_estimator_t *estimator)
{
    const r2_topology_t *job = &estimator->env->topology;
    uint32_t count = 0;

    for (int32_t rank = 0; rank < job->rank_count; ++rank) {
        count += job->host_of[rank] == job->host_of[estimator->rank];
    }
    return count;
}

static void r2_estimator_loaded(void *arg, uint32_t rail)
{
    r2_estimator_t *all = arg;
    r2_estimator_rail_t *estimator = &all->rails[rail];
    const r2_net_t *net = &all->core->net;
    const uint64_t now_ns = net->now_ns, bytes = net->rails[rail].tx_bytes;
    const uint64_t span_ns = now_ns - estimator->from_ns;
    uint64_t bytes_per_s;

    if (!r2_estimator_leads(all) || (0 != estimator->from_ns && span_ns < R2_ESTIMATOR_WINDOW_NS)) {
        return;
    }
    if (0 != estimator->from_ns && span_ns < R2_ESTIMATOR_SPAN * R2_ESTIMATOR_WINDOW_NS) {
        bytes_per_s = (uint64_t) ((unsigned __int128) (bytes - estimator->from_bytes) *
                                  r2_estimator_sharers(all) * R2_NS_PER_S / span_ns);
        estimator->best_bytes_per_s =
            r2_max(estimator->best_bytes_per_s, r2_min(bytes_per_s, estimator->before_bytes_per_s));
        estimator->before_bytes_per_s = bytes_per_s;
        ++estimator->windows;
    } else {
        estimator->before_bytes_per_s = 0;
    }
    estimator->from_ns = now_ns;
    estimator->from_bytes = bytes;
    r2_estimator_look(all);
}

/* Of an even number the lower one. 0: there are none. */
static uint64_t r2_estimator_median(uint64_t *values, uint32_t count)
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
 * Until there were short calls half a round trip, the least of all rails: the others may have
 * carried long packets only, whose time is not alpha.
 */
static uint32_t r2_estimator_alpha_ns(r2_estimator_t *estimator)
{
    uint64_t *least_ns = &estimator->round_trip_ns;

    for (uint32_t rail = 0; rail < estimator->core->net.rail_count; ++rail) {
        const uint64_t now_ns = r2_net_round_trip_ns(&estimator->core->net, rail);

        if (0 != now_ns && (0 == *least_ns || now_ns < *least_ns)) {
            *least_ns = now_ns;
        }
    }
    if (0 != estimator->step_ns) {
        return (uint32_t) r2_min(estimator->step_ns, 0 == *least_ns
                                                         ? (uint64_t) UINT32_MAX
                                                         : R2_ESTIMATOR_STEP_MAX * *least_ns);
    }
    return (uint32_t) r2_min(*least_ns / 2, (uint64_t) UINT32_MAX);
}

/* What rails give of what plans take them for: the median, since single ones are the health map's
 * matter. */
static uint32_t r2_estimator_rate_ppm(const r2_estimator_t *all)
{
    const r2_topology_t *told = &all->env->topology;
    const uint32_t *told_mbytes_per_s =
        &told->rate_mbytes_per_s[told->host_of[all->rank] * told->rail_count];
    uint64_t parts[R2_RAILS_MAX];
    uint32_t count = 0;

    for (uint32_t rail = 0; rail < all->core->net.rail_count; ++rail) {
        const r2_estimator_rail_t *estimator = &all->rails[rail];

        if (estimator->windows >= R2_ESTIMATOR_WINDOWS << all->rate_changes &&
            0 != estimator->best_bytes_per_s && 0 != told_mbytes_per_s[rail]) {
            parts[count++] =
                r2_max(estimator->best_bytes_per_s / told_mbytes_per_s[rail], (uint64_t) 1);
        }
    }
    return (uint32_t) r2_min(r2_estimator_median(parts, count), (uint64_t) UINT32_MAX);
}

/* What rails of rank 0's host, which tell more, carry together one way at most where they are
 * slow. */
static uint64_t r2_estimator_slow_bytes_per_s(const r2_estimator_t *estimator)
{
    const r2_topology_t *told = &estimator->env->topology;
    const uint32_t *told_mbytes_per_s =
        &told->rate_mbytes_per_s[told->host_of[estimator->rank] * told->rail_count];
    uint64_t all = 0;

    for (uint32_t rail = 0; rail < estimator->core->net.rail_count; ++rail) {
        all += told_mbytes_per_s[rail];
    }
    return all * 1000000 / R2_COST_SLOW;
}

/* Do ranks wait for processors, and do rails carry what they tell? */
static void r2_estimator_look_at_cores(r2_estimator_t *estimator)
{
    r2_net_t *net = &estimator->core->net;
    r2_crowded_rails_t rails = {.now_ns = net->now_ns};
    r2_cpu_time_t now;

    if (!r2_cpu_time(estimator->core->clock, &now)) {
        return;
    }
    r2_crowded_look_at_cores(&estimator->crowded, &now);
    net->crowded = estimator->crowded.cores.waits;
    if (!r2_estimator_leads(estimator) || 0 != estimator->given.crowded) {
        return;
    }
    for (uint32_t rail = 0; rail < net->rail_count; ++rail) {
        rails.bytes += net->rails[rail].tx_bytes + net->rails[rail].rx_bytes;
    }
    rails.bytes *= r2_estimator_sharers(estimator);
    rails.slow_bytes_per_s = r2_estimator_slow_bytes_per_s(estimator);
    r2_crowded_look_at_rails(&estimator->crowded, &rails);
}

static bool r2_estimator_differs(uint32_t seen, uint32_t known)
{
    const uint32_t by = seen > known ? seen - known : known - seen;

    return 0 != seen && (uint64_t) by * R2_ESTIMATOR_NOTABLE > known;
}

/* Rails that are measured to carry far less than they tell are the limit, not processors. */
static uint32_t r2_estimator_crowded(const r2_estimator_t *estimator, uint32_t rate_ppm)
{
    const r2_cost_params_t seen = {.rate_ppm = rate_ppm};
    const uint32_t told = r2_cost_is_slow(&seen) ? 0 : r2_crowded_told(&estimator->crowded);

    if (0 != estimator->given.crowded) {
        return estimator->given.crowded;
    }
    if (estimator->version >= R2_ESTIMATOR_CROWDED) { /* what loses can still be withdrawn */
        return told & estimator->crowded_once;
    }
    return told;
}

void r2_estimator_look(r2_estimator_t *estimator)
{
    const r2_cost_params_t *given = &estimator->given;
    uint32_t alpha_ns, rate_ppm, crowded;

    if (!r2_estimator_leads(estimator) || R2_ESTIMATOR_VERSIONS == estimator->version) {
        return;
    }
    alpha_ns = 0 != given->alpha_ns ? given->alpha_ns : r2_estimator_alpha_ns(estimator);
    rate_ppm = 0 != given->rate_ppm ? given->rate_ppm : r2_estimator_rate_ppm(estimator);
    crowded = r2_estimator_crowded(estimator, rate_ppm);
    if (0 == estimator->version) {
        estimator->cost = *given;
    }
    if (r2_estimator_differs(alpha_ns, estimator->cost.alpha_ns) ||
        r2_estimator_differs(rate_ppm, estimator->cost.rate_ppm) ||
        crowded != estimator->cost.crowded) {
        estimator->rate_changes += r2_estimator_differs(rate_ppm, estimator->cost.rate_ppm);
        estimator->cost.alpha_ns = 0 != alpha_ns ? alpha_ns : estimator->cost.alpha_ns;
        estimator->cost.rate_ppm = 0 != rate_ppm ? rate_ppm : estimator->cost.rate_ppm;
        estimator->cost.crowded = crowded;
        estimator->crowded_once |= crowded;
        ++estimator->version;
        r2_debug(&estimator->core->log,
                 "rails as seen: a step takes %u ns, rails give %u ppm of what is told of them; "
                 "planned for ranks that wait for processors: %08x",
                 estimator->cost.alpha_ns, estimator->cost.rate_ppm, crowded);
        r2_observe_plan(estimator->core->observers, estimator->env, estimator->rank);
    }
}

/* Of all ranks of the job, so that most steps go from host to host. @return 0: says nothing of
 * steps. */
static uint32_t r2_estimator_steps(const r2_estimator_t *estimator, const r2_schedule_t *schedule,
                                   int32_t size)
{
    return (uint32_t) size == estimator->core->net.size && NULL != estimator->env &&
                   0 < schedule->op_count && schedule->ops[0].bytes <= R2_ESTIMATOR_SHORT_BYTES
               ? r2_forecast_steps(schedule, size, estimator->env->topology.host_count)
               : 0;
}

static void r2_estimator_short_call(r2_estimator_t *estimator, uint32_t steps, uint64_t took_ns)
{
    estimator->steps_ns += took_ns;
    estimator->steps += steps;
    if (++estimator->calls < R2_ESTIMATOR_CALLS) {
        return;
    }
    took_ns = r2_max(estimator->steps_ns / estimator->steps, (uint64_t) 1);
    estimator->least_step_ns =
        0 == estimator->least_step_ns ? took_ns : r2_min(estimator->least_step_ns, took_ns);
    ++estimator->windows;
    if (0 == (estimator->windows &
              (estimator->windows - 1))) { /* else a job that gets faster makes too many versions */
        estimator->step_ns = estimator->least_step_ns;
    }
    estimator->steps_ns = 0;
    estimator->steps = estimator->calls = 0;
}

static void r2_estimator_crowded_call(r2_estimator_t *estimator, const r2_schedule_t *schedule,
                                      int32_t size, uint64_t begun_ns)
{
    static const struct {
        r2_coll_kind_t kind;
        uint32_t shift;
    } kinds[] = {{R2_COLL_ALLREDUCE, R2_CROWDED_ALLREDUCE},
                 {R2_COLL_REDUCE, R2_CROWDED_REDUCE},
                 {R2_COLL_BCAST, R2_CROWDED_BCAST},
                 {R2_COLL_ALLGATHER, R2_CROWDED_ALLGATHER},
                 {R2_COLL_ALLGATHERV, R2_CROWDED_ALLGATHER}};
    const uint32_t kind = schedule->digest & (((uint32_t) 1 << R2_DIGEST_KIND_BITS) - 1);
    const uint64_t took_ns = r2_now_ns(estimator->core->clock) - begun_ns;
    const r2_cost_params_t planned = {.crowded = schedule->crowded};

    for (size_t i = 0; i < r2_array_count(kinds); ++i) {
        const r2_crowded_call_t call = {.kind = kinds[i].shift,
                                        .coll = kind,
                                        .size = size,
                                        .bytes = schedule->call_bytes};

        if ((uint32_t) kinds[i].kind == kind &&
            (R2_CROWDED_ALLGATHER != kinds[i].shift || schedule->minds_crowds) &&
            call.bytes > R2_ESTIMATOR_CROWDED_BYTES && call.bytes <= r2_threshold_crowded_bytes) {
            r2_crowded_called(&estimator->crowded, &call, took_ns, &planned);
        }
    }
}

static void r2_estimator_called(void *arg, const r2_schedule_t *schedule, int32_t size,
                                uint64_t begun_ns)
{
    r2_estimator_t *estimator = arg;
    const uint64_t now_ns = estimator->core->net.now_ns;
    const uint32_t steps = 0 != begun_ns && r2_estimator_leads(estimator)
                               ? r2_estimator_steps(estimator, schedule, size)
                               : 0;

    if (0 != steps) {
        r2_estimator_short_call(estimator, steps, r2_now_ns(estimator->core->clock) - begun_ns);
    }
    if (0 != begun_ns && r2_estimator_leads(estimator)) {
        r2_estimator_crowded_call(estimator, schedule, size, begun_ns);
    }
    if (now_ns - estimator->looked_ns >= R2_CROWDED_LOOK_NS) {
        estimator->looked_ns = now_ns;
        r2_estimator_look_at_cores(estimator);
        r2_estimator_look(estimator);
    }
}

static void r2_estimator_plan(void *arg, const r2_plan_env_t *env, int32_t rank)
{
    r2_estimator_t *estimator = arg;

    estimator->env = env;
    estimator->rank = rank;
}

void r2_estimator_init(r2_estimator_t *estimator, r2_core_t *core, const r2_cost_params_t *given)
{
    *estimator = (r2_estimator_t){.core = core,
                                  .given = *given,
                                  .observer = {.loaded = r2_estimator_loaded,
                                               .called = r2_estimator_called,
                                               .plan = r2_estimator_plan,
                                               .arg = estimator}};
    r2_core_watch(core, &estimator->observer);
}

void r2_estimator_heard(r2_estimator_t *estimator, uint32_t version, const r2_cost_params_t *cost)
{
    if (version > estimator->version) {
        estimator->version = version;
        estimator->cost = *cost;
    }
}

bool r2_estimator_wanted(const r2_estimator_t *estimator, const r2_plan_env_t *env)
{
    const r2_cost_params_t *known = &estimator->cost, *used = &env->cost;

    if (estimator->version <= env->cost_version) {
        return false;
    }
    if (known->crowded != used->crowded) {
        return true;
    }
    if (env->even) {
        return r2_cost_is_slow(known) != r2_cost_is_slow(used);
    }
    return (0 == used->alpha_ns && 0 != known->alpha_ns) ||
           r2_estimator_differs(known->rate_ppm, used->rate_ppm);
}

const r2_cost_params_t *r2_estimator_cost(const r2_estimator_t *estimator, const r2_plan_env_t *env)
{
    return 0 == estimator->version ? &env->cost : &estimator->cost;
}
