/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Cost estimator: latency and rate of the rails as the job's own traffic shows them to rank 0, for
 * predictions.
 */
#ifndef R2_CTX_ESTIMATOR_H
#define R2_CTX_ESTIMATOR_H

#include <stdbool.h>

#include "ctx/crowded.h"
#include "ctx/plan_env.h"
#include "ctx/core.h"
#include "r2/nic.h"

/** One rail of rank 0's host. */
typedef struct r2_estimator_rail {
    uint64_t from_ns, from_bytes; /* where the window under way began; 0: none is */
    uint64_t before_bytes_per_s;  /* rate of the window before */
    uint64_t best_bytes_per_s;    /* most that two windows in a row have reached */
    uint32_t windows;
} r2_estimator_rail_t;

/**
 * Rank 0 measures and makes versions, everybody keeps the newest one that a sync of maps brought
 * (agree.c): so a version has one content, and no plan is made from what not all ranks hold. Engine
 * lock.
 */
typedef struct r2_estimator {
    r2_core_t *core;          /* borrowed */
    r2_observer_t observer;   /* in core->observers */
    r2_cost_params_t given;   /* by a file: not measured */
    const r2_plan_env_t *env; /* borrowed: what plans of the job are made from; NULL: not told */
    int32_t rank;             /* ours in the job's communicator */
    r2_estimator_rail_t rails[R2_RAILS_MAX];
    uint32_t rate_changes;  /* versions with another rate */
    uint64_t round_trip_ns; /* the least so far, over any rail; 0: none yet */
    uint64_t steps_ns;      /* of the short calls of the window under way, sums */
    uint32_t steps, calls;
    uint32_t windows;       /* of short calls, complete */
    uint64_t least_step_ns; /* mean of a window; 0: none yet */
    uint64_t step_ns;       /* the same, as it was after 1, 2, 4, ... windows: what is told */
    uint64_t looked_ns;     /* when a call has last looked */
    r2_crowded_t crowded;
    uint32_t crowded_once; /* all bits that were told */
    r2_cost_params_t cost;
    uint32_t version; /* 0: what rank 0 published at start is all there is */
} r2_estimator_t;

/** Observes a process from now on. @param given cost that is known beforehand; zeros: nothing. */
void r2_estimator_init(r2_estimator_t *estimator, r2_core_t *core, const r2_cost_params_t *given);
/** Makes a new version if what was seen differs notably from the newest. Any rank; does nothing but
 * on rank 0. */
void r2_estimator_look(r2_estimator_t *estimator);
/** A map sync brought this version. */
void r2_estimator_heard(r2_estimator_t *estimator, uint32_t version, const r2_cost_params_t *cost);
/** True if we know what changes these plans: worth a map sync. On even rails whether they are slow
 * and ranks crowded, on others what predictions are made from, too. */
bool r2_estimator_wanted(const r2_estimator_t *estimator, const r2_plan_env_t *env);
/** The newest cost that is known here, for plans that are made from `env`. */
const r2_cost_params_t *r2_estimator_cost(const r2_estimator_t *estimator,
                                          const r2_plan_env_t *env);

#endif
