/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Persistent requests of one rank of a simulated job.
 */
#include "r2_config.h"

#include <utlist.h>

#include "harness.h"

static bool is_started(const job_rank_t *rank, uint32_t request)
{
    const rank_op_t *op;

    DL_FOREACH(rank->ops, op) {
        if (op->persistent && op->call->step == request) {
            return true;
        }
    }
    return false;
}

/* Requests that are open, in an order that belongs to this rank and turn. @return how many. */
static uint32_t requests_in_order(const job_rank_t *rank, uint32_t turn, uint32_t *order_p)
{
    uint32_t count = 0;
    r2_prng_t prng;

    r2_prng_seed(&prng,
                 rank->job->scenario->sim.seed + 7919 * rank->step + 104729 * turn + rank->idx);
    for (uint32_t i = 0; i < rank->job->scenario->step_count; ++i) {
        if (NULL != rank->requests[i]) {
            const uint32_t at = (uint32_t) r2_prng_below(&prng, count + 1);

            order_p[count++] = order_p[at];
            order_p[at] = i;
        }
    }
    return count;
}

void rank_close_requests(job_rank_t *rank, int comm)
{
    uint32_t order[SCENARIO_STEPS_MAX];
    const uint32_t count = requests_in_order(rank, 0, order);

    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t at = order[i];

        if (comm < 0 || (uint32_t) comm == rank->job->scenario->steps[at].comm) {
            r2_sequence_close(rank->requests[at]);
            rank->requests[at] = NULL;
        }
    }
}

void rank_make_request(job_rank_t *rank)
{
    const scenario_step_t *s = &rank->job->scenario->steps[rank->step];
    r2_status_t status =
        r2_sequence_open(rank->comms[s->comm], s->coll, &rank->requests[rank->step]);

    if (R2_OK != status) {
        job_fail(rank->job, "rank %u step %u: %s", rank->idx, rank->step, r2_status_string(status));
    }
    rank_next_step(rank);
}

bool rank_start_requests(job_rank_t *rank)
{
    const scenario_step_t *s = &rank->job->scenario->steps[rank->step];
    uint32_t order[SCENARIO_STEPS_MAX];
    uint32_t count = requests_in_order(rank, 0, order), at;

    if ((s->rank >= 0 && (uint32_t) s->rank != rank->idx) || rank->iteration == count * s->times) {
        rank_next_step(rank);
        return true;
    }
    (void) requests_in_order(rank, rank->iteration / count, order);
    at = order[rank->iteration % count];
    if (is_started(rank, at)) {
        return false;
    }
    ++rank->iteration;
    rank_post(rank, at, rank->starts[at]++);
    return true;
}
