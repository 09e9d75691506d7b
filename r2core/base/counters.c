/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The counter table.
 */
#include "r2_config.h"

#include "r2/counters.h"

static const r2_counter_info_t r2_counter_rows[] = {
#define R2_COUNTER(name, unit, help) {#name, unit, help, offsetof(r2_counters_t, name)},
#include "base/counters.def"
#undef R2_COUNTER
};

const r2_counter_info_t *r2_counters_table(size_t *count_p)
{
    *count_p = sizeof(r2_counter_rows) / sizeof(r2_counter_rows[0]);
    return r2_counter_rows;
}

static const r2_counter_synonym_t r2_counter_synonym_rows[] = {
#define R2_COUNTER(name, unit, help)
#define R2_COUNTER_SYNONYM(name, stands_for) {#name, #stands_for},
#include "base/counters.def"
#undef R2_COUNTER
};

const r2_counter_synonym_t *r2_counters_synonyms(size_t *count_p)
{
    *count_p = sizeof(r2_counter_synonym_rows) / sizeof(r2_counter_synonym_rows[0]);
    return r2_counter_synonym_rows;
}
