/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What is chosen on the machines of tests/golden/topologies, against tests/golden/topologies.txt.
 *
 * A change that is meant: run with "--write FILE" and look at the difference before committing it.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "plan/forecast.h"
#include "sim/real.h"

static const char *const machines[] = {"healthy-4x4",   "quarter-lost-4x4", "slow-rail-4x4",
                                       "two-dead-4x4",  "cut-6x2",          "nothing-shared-4x2",
                                       "two-hosts-2x4", "ranks-8-on-4x2",   "unequal-nics-5x2",
                                       "many-80x4",     "no-way-4x2"};

/* Ranges are told apart at powers of two and the steps of a sixteenth between them. */
enum { LENGTH_BITS = 28, DETAIL_BITS = 26 };

static const char *source_dir(void)
{
    const char *dir = getenv("R2_SRCDIR");

    return NULL == dir ? "." : dir;
}

static void read_machine(const char *name, r2_topology_t *topology)
{
    char path[4096], error[512];
    topo_t topo;
    FILE *file;

    snprintf(path, sizeof(path), "%s/tests/golden/topologies/%s.txt", source_dir(), name);
    file = fopen(path, "r");
    if (NULL == file) {
        print_error("%s cannot be read: set R2_SRCDIR to the source directory\n", path);
    }
    assert_non_null(file);
    if (R2_OK != topo_read(file, path, &topo, error, sizeof(error))) {
        fail_msg("%s", error);
    }
    assert_int_equal(R2_OK, real_topology(&topo, topology));
    topo_fini(&topo);
    fclose(file);
}

static r2_plan_input_t machine_input(const r2_topology_t *topology, bool reproducible)
{
    r2_plan_input_t input = real_input(topology, R2_COLL_ALLREDUCE, 0, NULL);

    input.reproducible = reproducible;
    return input;
}

static void print_choices(FILE *file, r2_plan_input_t input)
{
    char before[256] = "", text[256];

    for (unsigned bit = 10; bit < LENGTH_BITS; ++bit) {
        for (uint64_t part = 16; part < 32; ++part) {
            const uint64_t bytes = ((uint64_t) 1 << bit) / 16 * part;

            input.count = bytes / input.element_bytes;
            assert_int_equal(R2_OK, r2_plan_describe(&input, text, sizeof(text)));
            if (0 == strcmp(before, text)) {
                continue;
            }
            if ('\0' == before[0]) {
                fprintf(file, "0.. %s", text);
            } else {
                fprintf(file, " | %luK.. %s", (unsigned long) (bytes / 1024), text);
            }
            memcpy(before, text, sizeof(before));
        }
    }
    fprintf(file, "\n");
}

static void print_forecast(FILE *file, r2_plan_input_t input)
{
    r2_forecast_t forecast;

    input.count = ((uint64_t) 1 << DETAIL_BITS) / input.element_bytes;
    assert_int_equal(R2_OK, r2_forecast_allreduce(&input, &forecast));
    fprintf(file, "  64M, us:");
    for (uint32_t i = 0; i < forecast.count; ++i) {
        fprintf(file, " %s ", forecast.of[i].algorithm->name);
        if (R2_COST_NEVER == forecast.of[i].ns) {
            fprintf(file, "never,");
        } else {
            fprintf(file, "%lu,", (unsigned long) (forecast.of[i].ns / 1000));
        }
    }
    fprintf(file, " bound %lu\n", (unsigned long) (forecast.bound_ns / 1000));
}

static void print_machines(FILE *file)
{
    fprintf(file, "# SPDX-License-Identifier: BSD-3-Clause\n"
                  "# Copyright (c) 2026 The r2 authors\n"
                  "# Allreduce of floats on the machines of tests/golden/topologies: algorithm by "
                  "length, predicted times.\n"
                  "# Written by: tests/unit/test_plan_topology --write FILE\n");
    for (size_t m = 0; m < r2_array_count(machines); ++m) {
        r2_topology_t topology;

        read_machine(machines[m], &topology);
        fprintf(file, "\n%s: ", machines[m]);
        print_choices(file, machine_input(&topology, true));
        fprintf(file, "  reproducible=0: ");
        print_choices(file, machine_input(&topology, false));
        print_forecast(file, machine_input(&topology, true));
        r2_topology_fini(&topology);
    }
}

static void test_golden(void **state)
{
    char path[4096], expected[512], made[512];
    FILE *golden, *now = tmpfile();
    unsigned line = 0;
    bool more;

    (void) state;
    snprintf(path, sizeof(path), "%s/tests/golden/topologies.txt", source_dir());
    golden = fopen(path, "r");
    assert_non_null(golden);
    assert_non_null(now);
    print_machines(now);
    rewind(now);
    do {
        more = NULL != fgets(expected, sizeof(expected), golden);
        ++line;
        assert_int_equal(more, NULL != fgets(made, sizeof(made), now));
        if (more && 0 != strcmp(expected, made)) {
            print_error("line %u, expected: %s    made: %sIf this is meant: "
                        "test_plan_topology --write tests/golden/topologies.txt\n",
                        line, expected, made);
            fail();
        }
    } while (more);
    assert_true(line > 4 * r2_array_count(machines));
    fclose(golden);
    fclose(now);
}

static int write_golden(const char *path)
{
    FILE *file = fopen(path, "w");

    if (NULL == file) {
        perror(path);
        return 1;
    }
    print_machines(file);
    return 0 == fclose(file) ? 0 : 1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden)};

    if (3 == argc && 0 == strcmp("--write", argv[1])) {
        return write_golden(argv[2]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
