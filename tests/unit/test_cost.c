/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Cost parameters: what a file says, what is wrong with it, what is measured.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ctx/cost_source.h"
#include "plan/forecast.h"

static char name[] = "/tmp/r2-cost-XXXXXX";
static char text[256];

static r2_status_t find(const char *words, r2_cost_params_t *cost)
{
    FILE *file = fopen(name, "w");

    assert_non_null(file);
    fputs(words, file);
    assert_int_equal(fclose(file), 0);
    return r2_cost_find(name, r2_clock_system(), cost, text, sizeof(text));
}

static void file_is_read(void **state)
{
    r2_cost_params_t cost;

    (void) state;
    assert_int_equal(find("# of this cluster\n\nalpha_ns 4000 # of a step\nrate_ppm 900000\n "
                          "reduce_mbytes_per_s\t9000\n",
                          &cost),
                     R2_OK);
    assert_int_equal(cost.alpha_ns, 4000);
    assert_int_equal(cost.reduce_mbytes_per_s[R2_MEM_HOST], 9000);
    assert_int_equal(cost.rate_ppm, 900000);
    assert_int_equal(cost.crowded, 0);
    assert_int_equal(find("alpha_ns 4294967295\ncrowded 1\n", &cost), R2_OK);
    assert_int_equal(cost.crowded, R2_CROWDED_ALL);
    assert_int_equal(cost.alpha_ns, UINT32_MAX);
    assert_true(cost.reduce_mbytes_per_s[R2_MEM_HOST] > 0); /* measured */
}

static void wrong_lines_are_named(void **state)
{
    static const char *const lines[] = {"alpha_ns",    "alpha_ns 0",   "alpha_ns -1",
                                         "alpha_ns 4294967296", "alpha_ns 1x", "alpha_ns 1 2",
                                         "beta 1",       "99999999999999999999"};
    r2_cost_params_t cost = {1, 2, {3}, 0};

    (void) state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); ++i) {
        char words[64];

        snprintf(words, sizeof(words), "alpha_ns 5\n%s\n", lines[i]);
        assert_int_equal(find(words, &cost), R2_ERR_PARAM);
        assert_non_null(strstr(text, " line 2: "));
        assert_int_equal(cost.alpha_ns, 1); /* untouched */
    }
    assert_int_equal(r2_cost_find("/nowhere/cost", r2_clock_system(), &cost, text, sizeof(text)),
                     R2_ERR_PARAM);
    assert_non_null(strstr(text, "/nowhere/cost"));
}

static void nothing_said_is_measured(void **state)
{
    r2_cost_params_t cost;

    (void) state;
    assert_int_equal(r2_cost_find("", r2_clock_system(), &cost, text, sizeof(text)), R2_OK);
    assert_int_equal(cost.alpha_ns, 0); /* in use */
    assert_int_equal(cost.rate_ppm, 0);
    assert_true(cost.reduce_mbytes_per_s[R2_MEM_HOST] > 0);
}

/* Rails that give half of what they tell take twice as long, whatever the schedule; steps and
 * reductions do not. */
static void rates_that_rails_give(void **state)
{
    const r2_cost_params_t told = {
        .alpha_ns = 1000, .rate_ppm = R2_PPM, .reduce_mbytes_per_s = {UINT32_MAX}};
    r2_cost_params_t given = told;
    r2_plan_input_t input = {
        .kind = R2_COLL_ALLREDUCE, .size = 4, .element_bytes = 4, .count = 1 << 22};
    r2_topology_t topology;
    r2_forecast_t fast, slow;
    const uint64_t slack_ns = 1 << 17; /* steps and reductions */

    (void) state;
    assert_int_equal(r2_topology_init(&topology, 4, 4, 4, 1250), R2_OK);
    r2_topology_set_capacity(&topology, 1, 2, 0);
    given.rate_ppm = R2_PPM / 2;
    input.topology = &topology;
    input.cost = told;
    assert_int_equal(r2_forecast_allreduce(&input, &fast), R2_OK);
    input.cost = given;
    assert_int_equal(r2_forecast_allreduce(&input, &slow), R2_OK);
    assert_in_range(slow.bound_ns, 2 * fast.bound_ns, 2 * fast.bound_ns + 1);
    assert_int_equal(slow.count, 7);
    for (uint32_t i = 0; i < slow.count; ++i) {
        assert_in_range(slow.of[i].ns, 2 * fast.of[i].ns - slack_ns, 2 * fast.of[i].ns);
    }
    assert_int_equal(r2_cost_paced_ns(&given, R2_COST_NEVER), R2_COST_NEVER);
    r2_topology_fini(&topology);
}

/** First KiB from which on folding within hosts pays, up to 1 MiB; 0: never. */
static uint64_t pays_from(const r2_topology_t *topology, r2_cost_shape_fn_t apart)
{
    for (uint64_t kib = 1; kib <= 1 << 10; ++kib) {
        if (r2_cost_folding_pays(topology, kib << 10, apart)) {
            return kib;
        }
    }
    return 0;
}

/*
 * At 20 us for a step with a message, half of it for each more, a quarter of that within a host,
 * and 1 GB/s. 2 x 4: folded 10 (2 + 2) + 2.5 (2 + 12) us and D, doubling 20 + 2 * 5 us and 4 D:
 * equal at 45 / 3 us, 15 KB. 4 x 4: 10 (2 + 6) + 2.5 (2 + 24) and 1.5 D against 2 * 20 + 2 * 5 and
 * 8 D: 95 / 6.5. Direct on 2 x 4: 10 (2 + 8) + 2.5 * 6 us and 4 D, more in all.
 */
static void folding_pays_by_layout_alone(void **state)
{
    static const uint32_t uneven[] = {0, 1, 0, 0, 2, 1}; /* as 3 + 2 + 1, not in blocks */
    static const struct {
        uint32_t hosts;
        int32_t ranks;
        uint64_t doubling, direct; /* KiB; 5: from where on it is asked at all */
    } layouts[] = {{1, 8, 0, 0},  {4, 4, 0, 0},   {2, 4, 30, 5}, {2, 8, 15, 5},
                   {4, 8, 24, 5}, {4, 16, 15, 5}, {3, 6, 22, 5}, {16, 128, 26, 5}};
    r2_topology_t t;

    (void) state;
    for (size_t i = 0; i < r2_array_count(layouts); ++i) {
        assert_int_equal(
            r2_topology_init(&t, layouts[i].hosts, 4, layouts[i].ranks, 1 + (uint32_t) i), R2_OK);
        assert_int_equal(pays_from(&t, r2_allreduce_doubling.shape), layouts[i].doubling);
        assert_int_equal(pays_from(&t, r2_allreduce_direct.shape), layouts[i].direct);
        r2_topology_set_capacity(&t, 0, 1, 0);
        t.rate_mbytes_per_s[0] = 7;
        assert_int_equal(pays_from(&t, r2_allreduce_doubling.shape), layouts[i].doubling);
        r2_topology_fini(&t);
    }
    assert_int_equal(r2_topology_init(&t, 3, 4, 6, 1), R2_OK);
    memcpy(t.host_of, uneven, sizeof(uneven));
    /* the rank of the last host stands for three: 10 (2 + 12) + 2.5 (2 + 12) us and 4/3 D, against
     * 10 (2 + 10) + 2.5 * 4 us and 3 D */
    assert_int_equal(pays_from(&t, r2_allreduce_direct.shape), 27);
    r2_topology_fini(&t);
    /* two ranks and one: 10 (2 + 4) + 2.5 (2 + 4) us and D, against 10 (1 + 2) + 2.5 us and 2 D */
    assert_int_equal(r2_topology_init(&t, 2, 4, 3, 1), R2_OK);
    assert_int_equal(pays_from(&t, r2_allreduce_exchange.shape), 42);
    r2_topology_fini(&t);
}

/* `direct` and `weighted` take the same steps: what first calls do not know yet changes no choice
 * between them. */
static void first_calls_choose_as_later_ones(void **state)
{
    static const r2_cost_params_t later[] = {
        {.alpha_ns = 2000}, {.alpha_ns = 400000}, {.rate_ppm = R2_PPM / 100}};
    uint32_t random = 1, weighted = 0;

    (void) state;
    for (uint32_t draw = 0; draw < 200; ++draw) {
        const uint32_t hosts = 3 + draw % 14;
        r2_topology_t t;

        assert_int_equal(r2_topology_init(&t, hosts, 4, (int32_t) hosts, 1250), R2_OK);
        for (uint32_t failed = 0; failed <= draw % 4; ++failed) {
            random = random * 1664525u + 1013904223u;
            r2_topology_set_capacity(&t, (random >> 8) % hosts, (random >> 20) % 3,
                                     (random >> 28) % 8);
        }
        for (uint32_t e = 13; e <= 26; ++e) {
            r2_plan_input_t input = {.kind = R2_COLL_ALLREDUCE, .size = (int32_t) hosts,
                                     .element_bytes = 4, .count = (uint64_t) 1 << (e - 2),
                                     .commutative = true, .reproducible = true,
                                     .scratch_bytes = 1 << 24, .topology = &t};
            const char *first;

            input.cost.reduce_mbytes_per_s[R2_MEM_HOST] = UINT32_MAX;
            first = r2_plan_choose(&input);
            weighted += 0 == strcmp(first, "weighted");
            for (size_t i = 0; i < r2_array_count(later); ++i) {
                input.cost = later[i];
                input.cost.reduce_mbytes_per_s[R2_MEM_HOST] = UINT32_MAX;
                assert_string_equal(r2_plan_choose(&input), first);
            }
        }
        r2_topology_fini(&t);
    }
    assert_true(weighted > 1000);
}

static void ranks_on_hosts(void **state)
{
    static const uint32_t uneven[] = {0, 1, 0, 0, 2, 1};
    r2_topology_placement_t placement;
    r2_topology_t t;

    (void) state;
    assert_int_equal(r2_topology_init(&t, 3, 4, 6, 1), R2_OK);
    memcpy(t.host_of, uneven, sizeof(uneven));
    assert_int_equal(r2_topology_placement(&t, &placement), R2_OK);
    assert_int_equal(placement.least, 1);
    assert_int_equal(placement.most, 3);
    assert_int_equal(placement.pairs, 9);
    r2_topology_fini(&t);
}

/*
 * What crosses hosts, at 1 GB/s, without steps: 64 KiB of eight ranks. Doubling on 4 x 2 sends two
 * vectors from each host in two of its three steps; one rank each on 3 hosts hand in, exchange and
 * take back.
 */
static void doubling_crosses_hosts(void **state)
{
    static const struct {
        uint32_t hosts;
        int32_t ranks;
        uint32_t thirds; /* of the vector over rails, times 3 */
    } cases[] = {{1, 8, 0}, {4, 8, 12}, {2, 8, 12}, {8, 8, 9}, {3, 6, 8}, {3, 3, 6}, {2, 3, 3}};
    const r2_cost_params_t params = {.rate_ppm = R2_PPM, .reduce_mbytes_per_s = {UINT32_MAX}};
    const uint64_t bytes = 3 << 16;

    (void) state;
    for (size_t i = 0; i < r2_array_count(cases); ++i) {
        r2_topology_t t;
        r2_classes_t classes;

        assert_int_equal(r2_topology_init(&t, cases[i].hosts, 1, cases[i].ranks, 1000), R2_OK);
        assert_int_equal(r2_classes_init(&classes, &t, R2_MEMBERS_RANKS), R2_OK);
        assert_in_range(r2_cost_doubling_ns(&classes, &params, bytes), bytes / 3 * cases[i].thirds,
                        bytes / 3 * cases[i].thirds + 1);
        r2_classes_fini(&classes);
        r2_topology_fini(&t);
    }
}

/* Blocks of 1 MiB are handed on within hosts where rails are slower than that: what is told of them
 * for each rank of a host, or what they are known to give. Shorter ones wherever they are. */
static void long_blocks_follow_the_rails(void **state)
{
    static const struct {
        uint32_t mbytes_per_s; /* of each of four rails */
        uint32_t rate_ppm;
        int32_t ranks; /* on two hosts */
        uint64_t bytes;
        const char *name;
    } cases[] = {{1250, 0, 8, 1 << 20, "direct"},       {1000, 0, 8, 1 << 20, "hierarchical"},
                 {1000, 0, 4, 1 << 20, "direct"},       {500, 0, 4, 1 << 20, "hierarchical"},
                 {12, 0, 4, 1 << 24, "hierarchical"},   {1250, 10000, 8, 1 << 20, "hierarchical"},
                 {1250, 0, 8, 1 << 18, "hierarchical"}, {1500, 0, 12, 1 << 20, "hierarchical"}};

    (void) state;
    for (size_t i = 0; i < r2_array_count(cases); ++i) {
        r2_topology_t t;
        const r2_plan_input_t input = {.kind = R2_COLL_ALLGATHER,
                                       .size = cases[i].ranks,
                                       .element_bytes = 1,
                                       .count = cases[i].bytes,
                                       .scratch_bytes = 1 << 24,
                                       .topology = &t,
                                       .cost = {.rate_ppm = cases[i].rate_ppm}};

        assert_int_equal(r2_topology_init(&t, 2, 4, cases[i].ranks, cases[i].mbytes_per_s), R2_OK);
        assert_string_equal(r2_plan_choose(&input), cases[i].name);
        r2_topology_fini(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(file_is_read),
                                       cmocka_unit_test(wrong_lines_are_named),
                                       cmocka_unit_test(nothing_said_is_measured),
                                       cmocka_unit_test(rates_that_rails_give),
                                       cmocka_unit_test(folding_pays_by_layout_alone),
                                       cmocka_unit_test(first_calls_choose_as_later_ones),
                                       cmocka_unit_test(ranks_on_hosts),
                                       cmocka_unit_test(long_blocks_follow_the_rails),
                                       cmocka_unit_test(doubling_crosses_hosts)};
    int fd = mkstemp(name), failed;

    if (fd < 0) {
        return 1;
    }
    close(fd);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(name);
    return failed;
}
