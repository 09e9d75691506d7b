/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Same bits on both sides of every threshold: healthy, with a dead rail, while plans change, after
 * the heal.
 *
 * Where the choice changes is looked up in the planner, so a new threshold is tested from the day
 * that it decides. Sums are of doubles that span 30 binary orders: another tree gives other bits.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "r2/planner.h"
#include "r2/transport.h"
#include "scenario.h"

enum { PLACES_MOST = 8, ELEMENT_BYTES = 8 };

/* Longer vectors than this are all of one kind. */
static const uint64_t longest_count = (uint64_t) 1 << 17;

static const struct {
    r2_coll_kind_t kind;
    const char *word; /* of scenarios */
    size_t least;     /* thresholds on the numbers of hosts below */
    bool folds;       /* in two levels, where hosts have several ranks */
} kinds[] = {
    {R2_COLL_ALLREDUCE, "allreduce", 1, true},
    {R2_COLL_REDUCE, "reduce", 1, true},
    {R2_COLL_SCAN, "scan", 1, false},
    {R2_COLL_EXSCAN, "exscan", 1, false},
    {R2_COLL_BCAST, "bcast", 1, false},
    {R2_COLL_ALLGATHER, "allgather", 1, false},
    {R2_COLL_GATHER, "gather", 1, false},
    {R2_COLL_SCATTER, "scatter", 1, false},
    {R2_COLL_ALLTOALL, "alltoall", 1, false},
    {R2_COLL_REDUCE_SCATTER_BLOCK, "reduce-scatter-block", 0, true},
};

/** Ranks in blocks on hosts. */
typedef struct layout {
    int32_t hosts, ppn;
} layout_t;

/* All collectives that know no hosts behave alike with several ranks on each. */
static const layout_t layouts[] = {{3, 1}, {5, 1}, {9, 1}};
static const layout_t packed[] = {{3, 2}, {2, 3}};
static const layout_t pair = {2, 1};

static const char *chosen(r2_coll_kind_t kind, const r2_topology_t *topology, uint64_t count)
{
    r2_params_t params;

    r2_params_init(&params);
    return r2_plan_choose(&(r2_plan_input_t){.kind = kind,
                                             .size = topology->rank_count,
                                             .topology = topology,
                                             .element_bytes = ELEMENT_BYTES,
                                             .count = count,
                                             .commutative = true,
                                             .reproducible = true,
                                             .scratch_bytes = params.scratch_bytes,
                                             .chunk_min_bytes = params.chunk_min_bytes,
                                             .chunk_max_bytes = R2_CHUNK_HELD_BYTES,
                                             .copy_max_bytes = params.copy_max_bytes});
}

/** Counts at which another algorithm is chosen than for one less. @return how many. */
static size_t thresholds(r2_coll_kind_t kind, layout_t layout, uint64_t *counts_p)
{
    r2_topology_t topology;
    size_t found = 0;

    assert_int_equal(R2_OK, r2_topology_init(&topology, (uint32_t) layout.hosts, 4,
                                             layout.hosts * layout.ppn, 1));
    for (uint64_t count = 2; count <= longest_count; ++count) {
        if (0 != strcmp(chosen(kind, &topology, count - 1), chosen(kind, &topology, count))) {
            assert_true(found < PLACES_MOST);
            counts_p[found++] = count;
        }
    }
    r2_topology_fini(&topology);
    return found;
}

static scenario_result_t run(const char *faults, layout_t layout, const char *program)
{
    char source[5120];
    scenario_result_t result;

    snprintf(source, sizeof(source),
             "hosts %d; ppn %d; rails 4; rate 12500000; latency 50us; jitter 20us; seed 3; %s %s",
             layout.hosts, layout.ppn, faults, program);
    assert_true(scenario_check(source, &result));
    assert_int_equal(result.errors, 0);
    return result;
}

/**
 * Two and one less, the threshold and one more, again and again: before, during and after the
 * fault. Maps are agreed on in calls that reach all from all: an allreduce beside others.
 */
static void program_at(const char *word, const uint64_t *counts, size_t found, char *text,
                       size_t room)
{
    const char *const phases[] = {"", "compute 900ms;", "compute 4s;"};
    size_t used = 0;

    for (size_t p = 0; p < r2_array_count(phases); ++p) {
        used += (size_t) snprintf(text + used, room - used, "%s", phases[p]);
        for (size_t i = 0; i < found; ++i) {
            for (uint64_t count = counts[i] - 2; count <= counts[i] + 1; ++count) {
                used += (size_t) snprintf(text + used, room - used,
                                          "coll %s f64 %lu times=6; coll allreduce f64 9 times=2;"
                                          "coll %s f64 %lu nb times=3; wait;",
                                          word, (unsigned long) count, word, (unsigned long) count);
            }
        }
    }
    assert_true(used < room);
}

/** @return number of thresholds. */
static size_t same_bits(size_t k, layout_t layout)
{
    uint64_t counts[PLACES_MOST];
    const size_t found = thresholds(kinds[k].kind, layout, counts);
    char program[4608];
    scenario_result_t healthy, broken;

    if (0 == found) {
        return 0;
    }
    program_at(kinds[k].word, counts, found, program, sizeof(program));
    healthy = run("", layout, program);
    assert_int_equal(healthy.counters.epochs, 0);
    /* in the middle of the first calls, and back in the middle of a pause */
    broken = run("at 2ms down h1 rail2; at 2s up h1 rail2;", layout, program);
    assert_int_equal(broken.digest, healthy.digest);
    /* degraded, and healthy again */
    if (broken.counters.epochs < 2 * (uint64_t) (layout.hosts * layout.ppn)) {
        fail_msg("%s on %d hosts: plans changed %lu times", kinds[k].word, layout.hosts,
                 (unsigned long) broken.counters.epochs);
    }
    broken = run("at 1ms drop h0 rail1; at 1ms down h1 rail3; at 2s heal;", layout, program);
    assert_int_equal(broken.digest, healthy.digest);
    broken =
        run("at 0ms down h1 rail0; at 0ms down h1 rail1; at 0ms down h1 rail2;", layout, program);
    assert_int_equal(broken.digest, healthy.digest);
    return found;
}

static void test_same_bits(void **state)
{
    (void) state;
    for (size_t k = 0; k < r2_array_count(kinds); ++k) {
        size_t found = 0;

        for (size_t l = 0; l < r2_array_count(layouts); ++l) {
            found += same_bits(k, layouts[l]);
        }
        assert_true(found >= kinds[k].least);
    }
}

/** Reductions fold within hosts first from some length on: another tree, whatever broke. */
static void test_same_bits_on_crowded_hosts(void **state)
{
    (void) state;
    for (size_t k = 0; k < r2_array_count(kinds); ++k) {
        for (size_t l = 0; kinds[k].folds && l < r2_array_count(packed); ++l) {
            assert_true(same_bits(k, packed[l]) >= 1);
        }
    }
}

/** Two hosts: doubling, one step, two halves, and one step again. */
static void test_same_bits_of_two(void **state)
{
    (void) state;
    assert_int_equal(R2_COLL_ALLREDUCE, kinds[0].kind);
    assert_int_equal(3, same_bits(0, pair));
}

/** What the test is for: sums around a threshold differ between the trees of both sides. */
static void test_trees_differ(void **state)
{
    scenario_result_t few_steps, direct, folded;

    (void) state;
    few_steps =
        run("param allreduce_algorithm recursive-doubling;", layouts[1], "coll allreduce f64 900;");
    direct = run("param allreduce_algorithm direct;", layouts[1], "coll allreduce f64 900;");
    assert_int_not_equal(few_steps.digest, direct.digest);
    direct = run("param allreduce_algorithm direct;", packed[0], "coll allreduce f64 9000;");
    folded = run("param allreduce_algorithm hierarchical;", packed[0], "coll allreduce f64 9000;");
    assert_int_not_equal(folded.digest, direct.digest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits),
                                       cmocka_unit_test(test_same_bits_on_crowded_hosts),
                                       cmocka_unit_test(test_same_bits_of_two),
                                       cmocka_unit_test(test_trees_differ)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
