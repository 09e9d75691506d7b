/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A simulated job from its first event to its end, and how long that may take.
 */
#include "r2_config.h"

#include <stdio.h>

#include "base/util.h"
#include "harness.h"

#define LIMIT_EXTRA_NS (30 * R2_NS_PER_S)
#define LIMIT_CALLS    10u /* as long, where lanes need many calls of which some are lost */
#define LIMIT_CALL_NS  (10 * R2_NS_PER_S) /* for each collective there: lanes take turns */
#define CLEAN_LIMIT_NS (60 * R2_NS_PER_S)
#define STEP_LIMIT     40000000u

static bool job_finished(const job_t *job)
{
    for (uint32_t i = 0; i < job->rank_count; ++i) {
        if (!job->ranks[i].dead && !job->ranks[i].finished) {
            return false;
        }
    }
    return true;
}

/* The last thing that is done to the job, from its start on: a stopped process goes on by then. */
static uint64_t job_last_event_ns(const scenario_t *sc)
{
    uint64_t last_ns = 0;

    for (uint32_t i = 0; i < sc->event_count; ++i) {
        last_ns = r2_max(last_ns, sc->events[i].at_ns);
    }
    return last_ns;
}

static uint64_t job_limit_ns(const job_t *job)
{
    const scenario_t *sc = job->scenario;
    uint64_t limit_ns = sc->limit_ns;
    bool has_descriptors = false, is_slow;

    if (0 != limit_ns) {
        return R2_NS_PER_S + limit_ns;
    }
    limit_ns = job_last_event_ns(sc);
    for (uint32_t i = 0; i < sc->event_count; ++i) {
        has_descriptors = has_descriptors || VERB_DESCRIPTORS == sc->events[i].verb;
    }
    is_slow = sc->hello_loss_ppm > 0 && has_descriptors;
    for (uint32_t i = 0; i < sc->step_count; ++i) {
        limit_ns += sc->steps[i].compute_ns;
        limit_ns += is_slow ? sc->steps[i].times * LIMIT_CALL_NS : 0;
    }
    if (sc->any_outcome) { /* calls may end because no lane opens, and ranks compute after that */
        limit_ns += job->params.no_path_timeout_ms * R2_NS_PER_MS;
    }
    return R2_NS_PER_S + limit_ns + LIMIT_EXTRA_NS * (is_slow ? LIMIT_CALLS : 1);
}

void job_take_sim_failure(job_t *job)
{
    if (!job->failed && NULL != r2_sim_failure(job->sim)) {
        job->failed = true;
        snprintf(job->result->text, sizeof(job->result->text), "simulator: %s",
                 r2_sim_failure(job->sim));
    }
}

void job_run_program(job_t *job)
{
    uint64_t limit_ns = job_limit_ns(job);
    uint32_t steps = 0;

    while (!job->failed && !job_finished(job)) {
        if (++steps > STEP_LIMIT) {
            job_fail(job, "stuck: too many events");
        } else if (r2_sim_next_ns(job->sim) > limit_ns) {
            job_fail(job, "stuck: %s",
                     R2_NEVER_NS == r2_sim_next_ns(job->sim)
                         ? "nobody waits for anything any more"
                         : "not finished within the limit of virtual time");
        } else {
            r2_sim_step(job->sim);
        }
        job_take_sim_failure(job);
    }
}

void job_run_out(job_t *job)
{
    const uint64_t last_ns = R2_NS_PER_S + job_last_event_ns(job->scenario);
    const uint64_t limit_ns = r2_max(r2_sim_now_ns(job->sim), last_ns) + CLEAN_LIMIT_NS;
    char text[200] = "";

    job->ending = true;
    for (uint32_t i = 0; i < job->rank_count; ++i) {
        job_schedule(&job->ranks[i], r2_sim_now_ns(job->sim));
    }
    while (!job->failed &&
           !(job_is_clean(job, text, sizeof(text)) && job_maps_are_well(job, text, sizeof(text)))) {
        uint64_t next_ns = r2_sim_now_ns(job->sim) + 5 * R2_NS_PER_MS;

        r2_sim_run_until(job->sim, next_ns);
        job_take_sim_failure(job);
        if (next_ns > limit_ns) {
            job_fail(job, "left over: %s", text);
        }
    }
}
