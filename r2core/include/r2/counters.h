/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Counters: one table (counters.def) gives the struct and its documentation.
 */
#ifndef R2_COUNTERS_H
#define R2_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include "r2/status.h"

/** All counters of one process. Written under the engine lock. */
typedef struct r2_counters {
#define R2_COUNTER(name, unit, help) uint64_t name;
#include "base/counters.def"
#undef R2_COUNTER
} r2_counters_t;

/** One row of the counter table. */
typedef struct r2_counter_info {
    const char *name;
    const char *unit;
    const char *help;
    size_t offset; /* of the field in r2_counters_t, bytes */
} r2_counter_info_t;

/** The counter table. @param count_p number of rows. @return the first row, static. */
R2_EXPORT const r2_counter_info_t *r2_counters_table(size_t *count_p);

/** A deprecated name of a counter: the same value. */
typedef struct r2_counter_synonym {
    const char *name;
    const char *stands_for; /* name of a row of the counter table */
} r2_counter_synonym_t;

/** The table of synonyms. @param count_p number of rows. @return the first row, static. */
R2_EXPORT const r2_counter_synonym_t *r2_counters_synonyms(size_t *count_p);

#endif
