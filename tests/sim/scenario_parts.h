/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Parts of the reader of scenarios: statements and their words.
 */
#ifndef TESTS_SIM_SCENARIO_PARTS_H
#define TESTS_SIM_SCENARIO_PARTS_H

#include "scenario.h"

#define WORDS_MAX 16

/** One statement, cut into words. */
typedef struct statement {
    char text[256];
    char *words[WORDS_MAX];
    uint32_t count;
} statement_t;

/* scenario_words.c: @return false if the word is none */
bool word_number(const char *word, uint64_t *value_p);
bool word_time(const char *word, uint64_t *ns_p);
bool word_percent(const char *word, uint64_t *ppm_p);
/** Words such as "h2", "rail0", "r5". */
bool word_index(const char *word, const char *prefix, uint32_t *index_p);
/** @return the place of a word among names; -1: not there. */
int word_find(const char *word, const char *const *names, int count);
/** @return the text behind "name=" among the words from `first` on, or NULL. */
const char *option_text(const statement_t *st, uint32_t first, const char *name);
bool option_flag(const statement_t *st, uint32_t first, const char *name);
/** Value of "name=", if that is there. @return false: it is there and cannot be read. */
bool option_number(const statement_t *st, uint32_t first, const char *name, uint64_t *value_p);
bool option_time(const statement_t *st, uint32_t first, const char *name, uint64_t *value_p);

/* scenario_faults.c: statements */
bool scenario_on_event(scenario_t *sc, const statement_t *st);
bool scenario_on_expect_map(scenario_t *sc, const statement_t *st);

#endif
