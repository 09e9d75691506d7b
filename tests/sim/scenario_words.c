/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Words of scenarios: numbers, times, places, options.
 */
#include "r2_config.h"

#include "scenario_parts.h"

#include <stdlib.h>
#include <string.h>

#include "r2/units.h"

bool word_number(const char *word, uint64_t *value_p)
{
    char *end;

    *value_p = (uint64_t) strtoll(word, &end, 0);
    return end != word && '\0' == *end;
}

bool word_time(const char *word, uint64_t *ns_p)
{
    double value;

    if (R2_OK != r2_unit_real(word, R2_UNIT_TIME, &value)) {
        return false;
    }
    *ns_p = (uint64_t) (value + 0.5);
    return true;
}

bool word_percent(const char *word, uint64_t *ppm_p)
{
    const bool marked = NULL != strchr(word, '%');
    double value;

    if (R2_OK != r2_unit_real(word, marked ? R2_UNIT_PERCENT : R2_UNIT_NUMBER, &value)) {
        return false;
    }
    value *= marked ? 1e6 : 1e4;
    *ppm_p = (uint64_t) (value + 0.5);
    return value <= 1e6;
}

bool word_index(const char *word, const char *prefix, uint32_t *index_p)
{
    size_t length = strlen(prefix);
    uint64_t value;

    if (0 != strncmp(word, prefix, length) || !word_number(word + length, &value) ||
        value > SCENARIO_RANKS_MAX) {
        return false;
    }
    *index_p = (uint32_t) value;
    return true;
}

/* @return the text behind "name=" among the words from `first` on, or NULL. */
const char *option_text(const statement_t *st, uint32_t first, const char *name)
{
    size_t length = strlen(name);
    uint32_t i;

    for (i = first; i < st->count; ++i) {
        if (0 == strncmp(st->words[i], name, length) && '=' == st->words[i][length]) {
            return st->words[i] + length + 1;
        }
    }
    return NULL;
}

bool option_flag(const statement_t *st, uint32_t first, const char *name)
{
    uint32_t i;

    for (i = first; i < st->count; ++i) {
        if (0 == strcmp(st->words[i], name)) {
            return true;
        }
    }
    return false;
}

bool option_number(const statement_t *st, uint32_t first, const char *name, uint64_t *value_p)
{
    const char *word = option_text(st, first, name);

    return NULL == word || word_number(word, value_p);
}

bool option_time(const statement_t *st, uint32_t first, const char *name, uint64_t *value_p)
{
    const char *word = option_text(st, first, name);

    return NULL == word || word_time(word, value_p);
}

int word_find(const char *word, const char *const *names, int count)
{
    int i;

    for (i = 0; i < count; ++i) {
        if (0 == strcmp(word, names[i])) {
            return i;
        }
    }
    return -1;
}
