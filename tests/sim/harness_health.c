/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Health maps of a simulated job against what was really done to it.
 */
#include "r2_config.h"

#include <stdio.h>

#include "ctx/state.h"
#include "harness.h"

void job_note_fault(job_t *job, const scenario_event_t *event)
{
    switch (event->verb) {
    case VERB_DOWN:
    case VERB_DROP:
    case VERB_DROP_IN:
    case VERB_DROP_OUT:
    case VERB_PORT_DOWN:
    case VERB_BREAK:
    case VERB_RATE:
    case VERB_LOSS:
    case VERB_REFUSE: /* maps may tell */
        job->faulted[event->host][event->rail] = true;
        break;
    case VERB_CUT: /* two hosts only: nobody is left who could tell whose NIC it is not */
        job->faulted[event->host][event->rail] = true;
        job->faulted[event->host_b][event->rail] = true;
        break;
    case VERB_NO_LISTENER:
        job->faulted[r2_sim_host_of(job->sim, event->rank)][event->rail] = true;
        break;
    case VERB_UP:
    case VERB_PASS:
    case VERB_PORT_UP:
    case VERB_JOIN:
    case VERB_ACCEPT:
    case VERB_SLOW:
    case VERB_DESCRIPTORS:
    case VERB_MEMORY:
    case VERB_STOP:
    case VERB_CONT:
    case VERB_KILL:
    case VERB_POST_CUT:
    case VERB_POST_JOIN:
    case VERB_HEAL:
    case VERB_COUNT:
        break;
    }
}

/* With rules packets get lost for no reason that a probe could find; with two faults at two ends
 * ... */
static bool job_can_judge(const job_t *job)
{
    return 0 == job->scenario->rule_count;
}

/* Where something was done to the NICs of all hosts but one, nobody can tell that one from a dead
 * NIC or plane. */
static bool job_is_alone(const job_t *job, const r2_health_map_t *map, uint32_t rail)
{
    uint32_t sound = 0;

    for (uint32_t h = 0; h < map->host_count; ++h) {
        sound += !job->faulted[h][rail];
    }
    return sound <= 1;
}

static bool job_deserves(const job_t *job, const r2_health_map_t *map, uint32_t host, uint32_t rail)
{
    const r2_health_entry_t *entry = r2_health_map_entry(map, host, rail);

    return entry->capacity == R2_CAPACITY_FULL || job->faulted[host][rail] ||
           (0 == entry->capacity && job_is_alone(job, map, rail));
}

void rank_check_map(job_rank_t *rank)
{
    const r2_health_map_t *map = r2_ctx_health_map(rank->ctx);
    uint64_t changes = rank->ctx->core.counters.map_changes;
    job_t *job = rank->job;

    if (NULL == map || changes == rank->map_changes || !job_can_judge(job)) {
        return;
    }
    rank->map_changes = changes;
    for (uint32_t h = 0; h < map->host_count; ++h) {
        for (uint32_t r = 0; r < map->rail_count; ++r) {
            const r2_health_entry_t *entry = r2_health_map_entry(map, h, r);

            if (!job_deserves(job, map, h, r)) {
                job_fail(job,
                         "rank %u blames rail %u of host %u, which is healthy (%s, capacity %u)",
                         rank->idx, r, h, r2_verdict_name((r2_verdict_t) entry->verdict),
                         entry->capacity);
            }
        }
    }
}

void rank_note_heals(job_rank_t *rank)
{
    uint64_t healed = rank->ctx->core.counters.lanes_healed;

    if (healed != rank->lanes_healed) {
        rank->lanes_healed = healed;
        rank->job->result->healed_ns = r2_sim_now_ns(rank->job->sim) - R2_NS_PER_S;
    }
}

static void job_expect(void *arg, uint64_t index)
{
    job_t *job = arg;
    const scenario_expect_t *expect = &job->scenario->expects[index];

    for (uint32_t i = 0; i < job->rank_count && !job->failed; ++i) {
        const r2_health_map_t *map =
            NULL == job->ranks[i].ctx ? NULL : r2_ctx_health_map(job->ranks[i].ctx);
        const r2_health_entry_t *entry;

        if (NULL == map || job->ranks[i].dead || job->ranks[i].stopped) {
            continue;
        }
        entry = r2_health_map_entry(map, expect->host, expect->rail);
        if (entry->capacity < expect->least || entry->capacity > expect->most) {
            job_fail(job,
                     "rank %u: rail %u of host %u has capacity %u (%s), %u to %u were expected", i,
                     expect->rail, expect->host, entry->capacity,
                     r2_verdict_name((r2_verdict_t) entry->verdict), expect->least, expect->most);
        }
    }
}

void job_plan_expectations(job_t *job)
{
    for (uint32_t i = 0; i < job->scenario->expect_count; ++i) {
        r2_sim_at(job->sim, r2_sim_now_ns(job->sim) + job->scenario->expects[i].at_ns, job_expect,
                  job, i);
    }
}

/*
 * Every other host refuses on this rail, probes, too: only a lane that others open proves it, and
 * where descriptors are short nobody opens one for that.
 */
static bool job_rail_is_unprovable(const job_t *job, uint32_t host, uint32_t rail)
{
    bool all = true, is_short = false;

    for (uint32_t i = 0; i < job->scenario->event_count; ++i) {
        is_short = is_short || VERB_DESCRIPTORS == job->scenario->events[i].verb;
    }
    for (uint32_t other = 0; other < job->scenario->sim.host_count; ++other) {
        all = all && (other == host || job->closed[other][rail]);
    }
    return is_short && all;
}

static bool job_rail_is_well(const job_t *job, uint32_t host, uint32_t rail)
{
    if (job->closed[host][rail] || job_rail_is_unprovable(job, host, rail)) {
        return false;
    }
    for (uint32_t i = 0; i < job->rank_count; ++i) {
        for (uint32_t k = 0; k < job->rank_count; ++k) {
            uint32_t a = r2_sim_host_of(job->sim, i), b = r2_sim_host_of(job->sim, k);

            if (a != b && (a == host || b == host) &&
                (!r2_sim_passes(job->sim, i, k, rail) || !r2_sim_carrier(job->sim, i, rail))) {
                return false;
            }
        }
    }
    return true;
}

bool job_maps_are_well(const job_t *job, char *text_p, size_t text_bytes)
{
    for (uint32_t i = 0; i < job->rank_count; ++i) {
        const r2_health_map_t *map = r2_ctx_health_map(job->ranks[i].ctx);

        for (uint32_t at = 0;
             NULL != map && !job->ranks[i].dead && at < map->host_count * map->rail_count; ++at) {
            uint32_t host = at / map->rail_count, rail = at % map->rail_count;

            if (0 == map->entries[at].capacity && job_rail_is_well(job, host, rail)) {
                snprintf(text_p, text_bytes,
                         "rank %u has not heard that rail %u of host %u is well", i, rail, host);
                return false;
            }
        }
    }
    return true;
}

void job_check_plan_env(job_t *job)
{
    const r2_plan_env_t *first = NULL;

    job->result->seen = job->ranks[0].ctx->estimator.cost;
    for (uint32_t i = 0; i < job->rank_count; ++i) {
        const r2_plan_env_t *env = r2_agree_plan_env(job->ranks[i].ctx->comms.agree.job);

        if (job->ranks[i].dead || 0 != job->ranks[i].errors || NULL == env) {
            continue;
        }
        first = NULL == first ? env : first;
        if (env->map_digest != first->map_digest || env->cost_version != first->cost_version) {
            job_fail(job, "rank %u makes plans from something else than the first rank", i);
        }
        job->result->cost = env->cost;
        job->result->cost_version = env->cost_version;
    }
}

void job_check_healthy(job_t *job)
{
    const scenario_result_t *result = job->result;

    if (job->scenario->healthy && !job->failed && 0 != result->counters.lanes_failed) {
        job_fail(job, "%llu lanes failed, and all are healthy",
                 (unsigned long long) result->counters.lanes_failed);
    }
}
