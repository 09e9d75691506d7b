/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Collectives and algorithms that the schedule tests go through.
 */
#ifndef R2_TESTS_SCHEDULE_CASES_H
#define R2_TESTS_SCHEDULE_CASES_H

#include "checker.h"

/** A collective with an algorithm; name NULL: the planner's choice. */
typedef struct r2_case {
    r2_coll_kind_t kind;
    const char *algorithm;
} r2_case_t;

/** All in the registry that run on any hosts, and of every collective the planner's choice. */
const r2_case_t *r2_cases(size_t *count_p);

/** Are counts of this collective those of a rank's block? Else of the whole vector. */
bool r2_case_per_rank(r2_coll_kind_t kind);

/** Ranks of a plan at most; one more than the checker runs. */
#define R2_CASE_RANKS_MAX (R2_CHECK_RANKS_MAX + 1)

/** Blocks of uneven lengths, some empty, and places for them with gaps, in another order. */
typedef struct r2_uneven {
    uint64_t counts[R2_CASE_RANKS_MAX];
    uint64_t displs[R2_CASE_RANKS_MAX];
} r2_uneven_t;

/** Arguments with small limits, so that short vectors are cut into many segments. */
r2_plan_input_t r2_case_input(const r2_case_t *one, int32_t size, uint64_t count,
                              uint64_t element_bytes);

/** Hosts of ranks: two on each, three on each, uneven, in blocks and not. */
#define R2_PLACEMENTS 9u
/** Ranks of a placement. */
int32_t r2_case_ranks(size_t placement);
/** A topology of healthy rails for it; fails the test that calls it. */
void r2_case_placement(r2_topology_t *topology, size_t placement);

/** Three hosts of one rank and a last one of all others, with four rails each, as input->topology,
 * and the limits of real jobs; fails the test that calls it. */
void r2_case_full_host(r2_plan_input_t *input, r2_topology_t *topology, uint32_t told_mbytes_per_s);

/** The plan on a topology instead of input->topology. */
r2_status_t r2_case_plan(const r2_topology_t *topology, const r2_plan_input_t *input,
                         r2_schedule_t *schedule_p);

/** Gives `input` uneven blocks of `count` elements on average, if its collective takes them. */
void r2_case_uneven(r2_plan_input_t *input, r2_uneven_t *uneven, uint64_t count, bool displs);

/** Checks the schedules of all ranks; fails the test that calls it. @param in_place bit by rank. */
void r2_case_check(const r2_plan_input_t *input, uint64_t in_place);
/** Sets of schedules that were checked so far. */
uint64_t r2_case_checked(void);

#endif
