/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Reads the values of --fault.
 */
#include "r2_config.h"

#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "r2/units.h"

/* AT: "100" is an iteration, "2.5s" is a time. */
static bool parse_when(const char *text, r2_bench_fault_t *fault)
{
    double ns;

    fault->at_iteration =
        R2_OK == r2_unit_whole(text, R2_UNIT_NUMBER, 0, UINT64_MAX, &fault->iteration);
    if (!fault->at_iteration && R2_OK == r2_unit_real(text, R2_UNIT_TIME, &ns)) {
        fault->seconds = ns / 1e9;
        return true;
    }
    return fault->at_iteration;
}

/* "AT KIND[=V] HOST RAIL". The command may take more words; those three are the least. */
static bool parse_fault(const char *text, r2_bench_fault_t *fault)
{
    char *copy = strdup(text);
    char *rest = NULL;
    char *when = NULL != copy ? strtok_r(copy, " \t", &rest) : NULL;
    bool ok;

    memset(fault, 0, sizeof(*fault));
    ok = NULL != when && parse_when(when, fault);
    if (ok) {
        rest += strspn(rest, " \t");
        fault->text = strdup(rest);
        fault->words[0] = strdup(rest);
        ok = NULL != fault->text && NULL != fault->words[0];
    }
    free(copy);
    if (!ok) {
        free(fault->text);
        free(fault->words[0]);
        return false;
    }
    copy = fault->words[0];
    rest = NULL;
    for (char *word = strtok_r(copy, " \t", &rest); ok && NULL != word;
         word = strtok_r(NULL, " \t", &rest)) {
        ok = fault->words_count < R2_BENCH_MAX_WORDS;
        if (ok) {
            fault->words[fault->words_count++] = word;
        }
    }
    if (!ok || fault->words_count < 3) {
        free(fault->text);
        free(copy);
        return false;
    }
    return true;
}

bool r2_bench_options_add_fault(r2_bench_options_t *options, const char *text)
{
    r2_bench_fault_t *faults;

    if (options->faults_count == R2_BENCH_MAX_FAULTS) {
        return false;
    }
    faults = realloc(options->faults, (options->faults_count + 1) * sizeof(*faults));
    if (NULL == faults) {
        return false;
    }
    options->faults = faults;
    if (!parse_fault(text, &faults[options->faults_count])) {
        return false;
    }
    ++options->faults_count;
    return true;
}
