/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Families: the algorithms of one collective, and how one is chosen.
 */
#ifndef R2_PLAN_FAMILY_H
#define R2_PLAN_FAMILY_H

#include "plan/builders.h"

typedef struct r2_algorithm {
    const char *name;
    r2_build_fn_t build;
    const char *instead; /* name in the plan when it stands in for one asked for by name */
} r2_algorithm_t;

/** Algorithms of one family of collectives; the last one is always permitted. */
typedef struct r2_family {
    const r2_algorithm_t *algorithms;
    size_t count;
    const char *names;
    /* by size, from values equal on all ranks only */
    const r2_algorithm_t *(*choose)(const r2_plan_input_t *input, uint64_t total_bytes);
    /* may this one, asked for by name, run? NULL: all may */
    bool (*permitted)(const r2_plan_input_t *input, const r2_algorithm_t *algorithm);
} r2_family_t;

/* families.c */
extern const r2_family_t r2_family_reduce;
extern const r2_family_t r2_family_scan; /* and exscan */
extern const r2_family_t r2_family_gather;
extern const r2_family_t r2_family_scatter;
extern const r2_family_t r2_family_alltoall;
extern const r2_family_t r2_family_exchange; /* all whose lengths are known to the two ends only */

#endif
