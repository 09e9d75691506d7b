/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Which algorithm is chosen for which length, against tests/golden/plans.txt.
 *
 * A change that is meant: run with "--write" and look at the difference before committing it.
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
#include "r2/params.h"
#include "r2/planner.h"
#include "r2/transport.h"

static const struct {
    r2_coll_kind_t kind;
    const char *name;
    bool per_rank; /* the length is of a rank's block */
} kinds[] = {
    {R2_COLL_ALLREDUCE, "allreduce", false},
    {R2_COLL_ALLGATHER, "allgather", true},
    {R2_COLL_REDUCE_SCATTER_BLOCK, "reduce_scatter_block", true},
    {R2_COLL_BCAST, "bcast", false},
    {R2_COLL_BARRIER, "barrier", false},
    {R2_COLL_REDUCE, "reduce", false},
    {R2_COLL_SCAN, "scan", false},
    {R2_COLL_GATHER, "gather", true},
    {R2_COLL_SCATTER, "scatter", true},
    {R2_COLL_ALLTOALL, "alltoall", true},
};

/* What decides besides the length. */
static const struct {
    const char *name;
    uint64_t element_bytes;
    bool commutative, exact, reproducible;
} types[] = {
    {"float sum", 4, true, false, true},
    {"int sum", 4, true, true, true},
    {"double sum, reproducible=0", 8, true, false, false},
    {"16 bytes, not commutative", 16, false, false, true},
};

static const int32_t sizes[] = {1, 2, 3, 4, 5, 8, 16, 64, 65, 128, 1000};

/* Lengths are told apart down to this: all thresholds are multiples of it. */
enum { GRAIN_BYTES = 1024 };
static const uint64_t longest_bytes = (uint64_t) 1 << 30;

static r2_plan_input_t golden_input(size_t kind, size_t type, int32_t size)
{
    r2_params_t params;

    r2_params_init(&params);
    return (r2_plan_input_t){.kind = kinds[kind].kind,
                             .size = size,
                             .element_bytes = types[type].element_bytes,
                             .commutative = types[type].commutative,
                             .exact = types[type].exact,
                             .reproducible = types[type].reproducible,
                             .scratch_bytes = params.scratch_bytes,
                             .chunk_min_bytes = params.chunk_min_bytes,
                             .chunk_max_bytes = R2_CHUNK_HELD_BYTES,
                             .copy_max_bytes = params.copy_max_bytes};
}

static void print_bytes(FILE *file, uint64_t bytes)
{
    const char *const units[] = {"", "K", "M", "G"};
    size_t unit = 0;

    while (bytes >= 1024 && 0 == bytes % 1024 && unit + 1 < r2_array_count(units)) {
        bytes /= 1024;
        ++unit;
    }
    fprintf(file, "%lu%s", (unsigned long) bytes, units[unit]);
}

static const char *golden_choice(r2_plan_input_t input, uint64_t bytes)
{
    input.count = bytes / input.element_bytes;
    return r2_plan_choose(&input);
}

/** First length above `low` that has another algorithm, or longest_bytes. */
static uint64_t golden_next(r2_plan_input_t input, uint64_t low)
{
    const char *name = golden_choice(input, low);
    uint64_t same = low, step = GRAIN_BYTES;

    while (same + step < longest_bytes && golden_choice(input, same + step) == name) {
        same += step;
        /* an algorithm that is chosen for 1/1000 of a length only would be missed */
        step = r2_round_up(r2_max(same / 1000, 1u), GRAIN_BYTES);
    }
    if (same + step >= longest_bytes) {
        return longest_bytes;
    }
    while (golden_choice(input, same + GRAIN_BYTES) == name) {
        same += GRAIN_BYTES;
    }
    return same + GRAIN_BYTES;
}

/** One line: each range ends with the length printed. */
static void print_ranges(FILE *file, r2_plan_input_t input)
{
    uint64_t low = 0;

    fprintf(file, "0");
    while (low < longest_bytes) {
        uint64_t next = golden_next(input, low);

        if (next == longest_bytes) {
            fprintf(file, ".. %s\n", golden_choice(input, low));
        } else {
            fprintf(file, "..");
            print_bytes(file, next - GRAIN_BYTES);
            fprintf(file, " %s | ", golden_choice(input, low));
            print_bytes(file, next - GRAIN_BYTES);
        }
        low = next;
    }
}

/** What the plan of rank 0 looks like; the digest pins what all ranks must agree on. */
static void print_plan(FILE *file, const char *collective, const r2_plan_input_t *ask,
                       uint64_t bytes)
{
    r2_plan_input_t input = *ask;
    r2_schedule_t schedule;

    input.count = bytes / input.element_bytes;
    assert_int_equal(R2_OK, r2_plan_build(&input, &schedule));
    fprintf(file, "%s, %d ranks, ", collective, input.size);
    print_bytes(file, bytes);
    fprintf(file, ": %s, chunks of ", schedule.algorithm);
    print_bytes(file, schedule.chunk_bytes);
    fprintf(file, ", %u rows, staging ", schedule.op_count);
    print_bytes(file, schedule.scratch_bytes);
    fprintf(file, ", digest %08x\n", schedule.digest);
    r2_schedule_fini(&schedule);
}

static void print_details(FILE *file, size_t kind, int32_t size, uint64_t bytes)
{
    const r2_plan_input_t input = golden_input(kind, 0, size);

    print_plan(file, kinds[kind].name, &input, bytes);
}

static void print_all_details(FILE *file)
{
    const uint64_t lengths[] = {8, 8192, 65536, 1 << 20, 16 << 20, 256 << 20};
    const int32_t few[] = {2, 4, 7, 64};

    fprintf(file, "\n# Plans of rank 0, float sum\n");
    for (size_t k = 0; k < r2_array_count(kinds); ++k) {
        for (size_t s = 0; s < r2_array_count(few); ++s) {
            for (size_t l = 0; l < r2_array_count(lengths); ++l) {
                if (R2_COLL_BARRIER != kinds[k].kind || 0 == l) {
                    print_details(file, k, few[s],
                                  R2_COLL_BARRIER != kinds[k].kind ? lengths[l] : 0);
                }
            }
        }
    }
}

/** By name on broken rails: of four, host 2 has lost one and host 3 two. */
static void print_named(FILE *file)
{
    const char *const names[] = {"ring", "r2", "recursive", "hierarchical", "weighted"};
    const int32_t hosts[] = {4, 7};
    const uint64_t lengths[] = {1 << 20, 16 << 20};

    fprintf(file,
            "\n# Plans of rank 0 by name, float sum, 4 rails; 1 of host 2 and 2 of host 3 are "
            "dead\n");
    for (size_t i = 0; i < r2_array_count(names) * r2_array_count(hosts); ++i) {
        const int32_t size = hosts[i % r2_array_count(hosts)];
        r2_plan_input_t input = golden_input(0, 0, size);
        r2_topology_t topology;

        assert_int_equal(R2_OK, r2_topology_init(&topology, (uint32_t) size, 4, size, 1250));
        r2_topology_set_capacity(&topology, 2, 0, 0);
        r2_topology_set_capacity(&topology, 3, 0, 0);
        r2_topology_set_capacity(&topology, 3, 1, 0);
        input.topology = &topology;
        input.algorithm = names[i / r2_array_count(hosts)];
        for (size_t l = 0; l < r2_array_count(lengths); ++l) {
            print_plan(file, "allreduce", &input, lengths[l]);
        }
        r2_topology_fini(&topology);
    }
}

/** Which ranks are on which host decides, too: a float sum and one whose order is free. */
static void print_layouts(FILE *file)
{
    const struct {
        uint32_t hosts;
        int32_t ranks;
    } layouts[] = {{1, 4}, {2, 3},  {2, 4},   {2, 8},    {3, 6},    {3, 7},
                   {4, 8}, {4, 16}, {16, 17}, {16, 128}, {32, 256}, {128, 1024}};

    fprintf(file, "\n# allreduce, bytes; ranks in blocks on hosts\n");
    for (size_t l = 0; l < 2 * r2_array_count(layouts); ++l) {
        const size_t type = l % 2, at = l / 2;
        r2_plan_input_t input = golden_input(0, type, layouts[at].ranks);
        r2_topology_t topology;

        assert_int_equal(
            R2_OK, r2_topology_init(&topology, layouts[at].hosts, 4, layouts[at].ranks, 1250));
        input.topology = &topology;
        fprintf(file, "allreduce, %d ranks on %u hosts, %s: ", layouts[at].ranks, layouts[at].hosts,
                types[type].name);
        print_ranges(file, input);
        r2_topology_fini(&topology);
    }
}

/** What goes to each host once, or leaves it once, where that spares messages. */
static void print_levels(FILE *file, size_t kind)
{
    const struct {
        uint32_t hosts;
        int32_t ranks;
    } layouts[] = {{1, 4},  {2, 3},  {2, 4},   {2, 8},   {3, 6},   {3, 12},   {4, 8},
                   {4, 16}, {8, 16}, {16, 17}, {16, 32}, {16, 64}, {16, 128}, {128, 1024}};

    fprintf(file, "\n# %s, bytes%s; ranks in blocks on hosts\n", kinds[kind].name,
            kinds[kind].per_rank ? " of a rank's block" : "");
    for (size_t at = 0; at < r2_array_count(layouts); ++at) {
        r2_plan_input_t input = golden_input(kind, 0, layouts[at].ranks);
        r2_topology_t topology;

        assert_int_equal(
            R2_OK, r2_topology_init(&topology, layouts[at].hosts, 4, layouts[at].ranks, 1250));
        input.topology = &topology;
        fprintf(file, "%s, %d ranks on %u hosts: ", kinds[kind].name, layouts[at].ranks,
                layouts[at].hosts);
        print_ranges(file, input);
        r2_topology_fini(&topology);
    }
}

static void print_plans(FILE *file)
{
    fprintf(
        file,
        "# SPDX-License-Identifier: BSD-3-Clause\n"
        "# Copyright (c) 2026 The r2 authors\n"
        "# Algorithm by length, with default parameters. A range ends with the length printed.\n"
        "# Written by: tests/unit/test_plan_golden --write FILE\n");
    for (size_t k = 0; k < r2_array_count(kinds); ++k) {
        fprintf(file, "\n# %s, bytes%s\n", kinds[k].name,
                kinds[k].per_rank ? " of a rank's block" : "");
        for (size_t t = 0; t < r2_array_count(types); ++t) {
            /* only reductions differ by type */
            if (0 < t && R2_COLL_ALLREDUCE != kinds[k].kind) {
                continue;
            }
            for (size_t s = 0; s < r2_array_count(sizes); ++s) {
                fprintf(file, "%s, %d ranks", kinds[k].name, sizes[s]);
                fprintf(file, R2_COLL_ALLREDUCE == kinds[k].kind ? ", %s: " : ": ", types[t].name);
                print_ranges(file, golden_input(k, t, sizes[s]));
            }
        }
    }
    print_layouts(file);
    for (size_t k = 0; k < r2_array_count(kinds); ++k) {
        if (R2_COLL_BCAST == kinds[k].kind || R2_COLL_REDUCE == kinds[k].kind ||
            R2_COLL_REDUCE_SCATTER_BLOCK == kinds[k].kind || R2_COLL_ALLTOALL == kinds[k].kind ||
            R2_COLL_ALLGATHER == kinds[k].kind) {
            print_levels(file, k);
        }
    }
    print_all_details(file);
    print_named(file);
}

/** Reads a whole file into memory. @return NULL: cannot be read. */
static char *read_all(FILE *file, size_t *length_p)
{
    size_t room = 1 << 16;
    char *text = malloc(room + 1);

    *length_p = 0;
    while (NULL != text && NULL != file) {
        size_t got = fread(text + *length_p, 1, room - *length_p, file);

        *length_p += got;
        if (0 == got) {
            text[*length_p] = '\0';
            return text;
        }
        if (*length_p == room) {
            char *grown = realloc(text, 2 * room + 1);

            if (NULL == grown) {
                break;
            }
            text = grown;
            room *= 2;
        }
    }
    free(text);
    return NULL;
}

/** Prints the first line that differs. */
static void report_difference(const char *expected, const char *made)
{
    while ('\0' != *expected && '\0' != *made) {
        size_t left = strcspn(expected, "\n"), right = strcspn(made, "\n");

        if (left != right || 0 != strncmp(expected, made, left)) {
            break;
        }
        expected += left + ('\n' == expected[left] ? 1 : 0);
        made += right + ('\n' == made[right] ? 1 : 0);
    }
    print_error("expected: %.*s\n    made: %.*s\nIf this is meant: test_plan_golden --write %s\n",
                (int) strcspn(expected, "\n"), expected, (int) strcspn(made, "\n"), made,
                "tests/golden/plans.txt");
}

static void test_golden(void **state)
{
    const char *source_dir = getenv("R2_SRCDIR");
    char path[4096];
    FILE *golden, *now = tmpfile();
    char *expected, *made;
    size_t expected_length, made_length;

    (void) state;
    snprintf(path, sizeof(path), "%s/tests/golden/plans.txt",
             NULL == source_dir ? "." : source_dir);
    golden = fopen(path, "r");
    if (NULL == golden) {
        print_error("%s cannot be read: set R2_SRCDIR to the source directory\n", path);
    }
    assert_non_null(golden);
    assert_non_null(now);
    print_plans(now);
    rewind(now);
    expected = read_all(golden, &expected_length);
    made = read_all(now, &made_length);
    assert_non_null(expected);
    assert_non_null(made);
    if (0 != strcmp(expected, made)) {
        report_difference(expected, made);
        fail();
    }
    free(expected);
    free(made);
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
    print_plans(file);
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
