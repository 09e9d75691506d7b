/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What the planner worked out for a topology and a class of lengths, once and for all calls like it.
 */
#ifndef R2_PLAN_KNOWN_H
#define R2_PLAN_KNOWN_H

#include "plan/cache.h"

/**
 * Predictions and shares for a call, from the table or worked out and remembered. Only where a plan
 * depends on them: an allreduce on uneven rails.
 * @param comm     of the communicator, unique in the process.
 * @param map      r2_topology_digest() of input->topology.
 * @param known_p  borrowed from the table until its next change; NULL: the plan needs none.
 * @param fresh_p  true: it was not in the table.
 * @return R2_OK or R2_ERR_NO_MEMORY.
 */
r2_status_t r2_plan_know(r2_plan_cache_t *cache, uint64_t comm, uint64_t map,
                         const r2_plan_input_t *input, const r2_plan_known_t **known_p, bool *fresh_p);

/** "weighted 21.5 ms, direct 25.0 ms, ring never, bound 21.4 ms". @param text '\0' terminated, cut to `room`. */
void r2_plan_known_text(const r2_plan_known_t *known, char *text, size_t room);

#endif
