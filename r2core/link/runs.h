/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A set of 64-bit numbers after a watermark, kept as runs: memory follows the gaps, not the
 * numbers.
 */
#ifndef R2_LINK_RUNS_H
#define R2_LINK_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "r2/status.h"

/** Numbers first .. last, both included; may wrap. */
typedef struct r2_run {
    uint64_t first, last;
} r2_run_t;

/** Runs in order of their distance from the watermark, none touching the next. Engine lock. */
typedef struct r2_runs {
    r2_run_t *list; /* owned */
    size_t count, room;
} r2_runs_t;

void r2_runs_fini(r2_runs_t *runs);

/** Makes sure that `more` insertions need no memory. @return R2_OK or R2_ERR_NO_MEMORY. */
r2_status_t r2_runs_reserve(r2_runs_t *runs, size_t more);

/** @param watermark at or before every number of the set, by less than 2^63. */
bool r2_runs_has(const r2_runs_t *runs, uint64_t watermark, uint64_t number);

/** The last number of the set; @return `watermark` if it is empty. */
static inline uint64_t r2_runs_newest(const r2_runs_t *runs, uint64_t watermark)
{
    return 0 == runs->count ? watermark : runs->list[runs->count - 1].last;
}

/** Adds a number that is not in the set; room for it was reserved. */
void r2_runs_add(r2_runs_t *runs, uint64_t watermark, uint64_t number);

/** Takes `number` out if it is the first of the set. @return true if it was. */
bool r2_runs_take_first(r2_runs_t *runs, uint64_t number);

#endif
