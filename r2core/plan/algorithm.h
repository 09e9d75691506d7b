/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Algorithms: what the file of each one exports, and those that a collective has (algorithms.def).
 */
#ifndef R2_PLAN_ALGORITHM_H
#define R2_PLAN_ALGORITHM_H

#include "plan/cost.h"
#include "plan/layout.h"
#include "r2/planner.h"

struct r2_forecast_input;
struct r2_prediction;

/** What the operation of a reduction must be. */
typedef enum r2_needs {
    R2_NEEDS_NOTHING,
    R2_NEEDS_COMMUTATIVE,
    R2_NEEDS_FREE_ORDER /* and, unless asked for by name, exact or not to be reproduced */
} r2_needs_t;

/** One algorithm. What decides about it looks only at values that are equal on all ranks. */
typedef struct r2_algorithm {
    const char *name;    /* in parameters, logs and the digest */
    const char *instead; /* the last one's: its name in the plan where it stands in for another */

    /**
     * Adds the ops of one rank. Called for two ranks or more, with at least one byte in all (but
     * for a barrier). Calls r2_plan_note_message() with the longest message that it decided on.
     * @return R2_OK or R2_ERR_NO_MEMORY; schedule->status is checked by the caller.
     */
    r2_status_t (*build)(const r2_plan_input_t *input, r2_schedule_t *schedule);

    /* What it cannot run without, even if asked for by name. */
    r2_needs_t needs;
    uint64_t (*scratch)(const r2_plan_input_t *input); /* least staging memory, bytes; NULL: any */
    bool (*fits)(const r2_plan_input_t *input); /* are ranks on the right hosts? NULL: any are */

    /* Is it the one for this length? NULL: never. */
    bool (*pays)(const r2_plan_input_t *input, uint64_t total_bytes);
    /* Is it better than the one for this length? Looks at no rail. NULL: never. */
    bool (*beats)(const r2_plan_input_t *input, uint64_t total_bytes,
                  const struct r2_algorithm *usual);
    /* Not 0: runs instead of others that have this if it is predicted to end first; of equals the
     * one with the lowest number. */
    uint32_t weighed;

    /* Predicts the time. @return R2_OK or R2_ERR_NO_MEMORY. NULL: there is no prediction. */
    r2_status_t (*forecast)(const struct r2_forecast_input *of, struct r2_prediction *prediction_p);
    r2_cost_shape_fn_t shape;        /* folding within hosts is weighed against it; NULL: not */
    uint32_t (*steps)(int32_t size); /* of a short call, one after the other; NULL: not known */
    bool steps_of_hosts;             /* of so many hosts, not ranks: a step within them is none */
} r2_algorithm_t;

#define R2_INSTEAD(name) name " (the one asked for cannot run)"

#define R2_FAMILY(name)
#define R2_ALGORITHM(name) extern const r2_algorithm_t r2_##name;
#include "plan/algorithms.def"
#undef R2_ALGORITHM

enum {
    R2_ALGORITHM_COUNT = 0
#define R2_ALGORITHM(name) +1
#include "plan/algorithms.def"
#undef R2_ALGORITHM
#undef R2_FAMILY
};

/** The algorithms of a collective; behind the last one NULL. */
const r2_algorithm_t *const *r2_algorithms_of(r2_coll_kind_t kind);

/** NULL: the collective has none of this name. */
const r2_algorithm_t *r2_algorithm_find(r2_coll_kind_t kind, const char *name);

/** The last one, which always can run. */
const r2_algorithm_t *r2_algorithm_last(r2_coll_kind_t kind);

/** Does the call have all that it needs? */
bool r2_algorithm_can_run(const r2_algorithm_t *algorithm, const r2_plan_input_t *input,
                          bool by_name);

/** Direct exchange in canonical order with any shares: rank r owns block r of the layout.
 * @param segment_bytes longest segment: whole elements, two of them fit staging memory. */
r2_status_t r2_build_allreduce_shares(const r2_plan_input_t *input, r2_schedule_t *schedule,
                                      const r2_layout_t *shares, uint64_t segment_bytes);

/** Part of the vector that goes round without the slowest rank, which lost `lost_ppm`. */
uint64_t r2_allreduce_r2_share_ppm(uint64_t lost_ppm, int32_t size);

#endif
