/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Runs one scenario from a file or the command line and prints what came of it.
 */
#include "r2_config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/kinds.h"
#include "scenario.h"

static void print_counters(const r2_counters_t *counters)
{
    size_t count;
    const r2_counter_info_t *table = r2_counters_table(&count);

    for (size_t i = 0; i < count; ++i) {
        uint64_t value;

        memcpy(&value, (const char *) counters + table[i].offset, sizeof(value));
        if (0 != value) {
            printf("  %-20s %" PRIu64 " %s\n", table[i].name, value, table[i].unit);
        }
    }
}

static void print_calls(const scenario_result_t *result)
{
    for (int kind = 0; kind < R2_COLL_KIND_COUNT; ++kind) {
        const uint64_t count = result->calls[kind].count;

        if (0 != count) {
            printf("  %-20s %.3f us, mean of %" PRIu64 " calls\n",
                   r2_kind((r2_coll_kind_t) kind)->name,
                   (double) result->calls[kind].ns / 1e3 / (double) count, count);
        }
    }
}

int main(int argc, char **argv)
{
    static char text[65536];
    scenario_result_t result;
    FILE *file;
    bool ok;

    if (2 != argc) {
        fprintf(stderr, "usage: run_scenario FILE | run_scenario 'STATEMENT; STATEMENT; ..'\n");
        return 2;
    }
    file = fopen(argv[1], "r");
    if (NULL != file) {
        text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
        fclose(file);
    } else {
        snprintf(text, sizeof(text), "%s", argv[1]);
    }
    ok = scenario_check(text, &result);
    printf("%s after %.3f ms of virtual time, digest %016" PRIx64 ", %u errors\n",
           ok ? "passed" : "failed", (double) result.time_ns / 1e6, result.digest, result.errors);
    print_calls(&result);
    print_counters(&result.counters);
    return ok ? 0 : 1;
}
