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

#include "ctx/cost.h"
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
    assert_int_equal(find("# of this cluster\n\nalpha_ns 4000 # of a step\nrate_ppm 900000\n reduce_mbytes_per_s\t9000\n", &cost),
                     R2_OK);
    assert_int_equal(cost.alpha_ns, 4000);
    assert_int_equal(cost.reduce_mbytes_per_s[R2_MEM_HOST], 9000);
    assert_int_equal(cost.rate_ppm, 900000);
    assert_int_equal(find("alpha_ns 4294967295\n", &cost), R2_OK);
    assert_int_equal(cost.alpha_ns, UINT32_MAX);
    assert_true(cost.reduce_mbytes_per_s[R2_MEM_HOST] > 0); /* measured */
}

static void wrong_lines_are_named(void **state)
{
    static const char *const lines[] = {"alpha_ns",    "alpha_ns 0",   "alpha_ns -1",  "alpha_ns 4294967296",
                                        "alpha_ns 1x", "alpha_ns 1 2", "beta 1",       "99999999999999999999"};
    r2_cost_params_t cost = {1, 2, {3}};

    (void) state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
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

/* Rails that give half of what they tell take twice as long, whatever the schedule; steps and reductions do not. */
static void rates_that_rails_give(void **state)
{
    const r2_cost_params_t told = {.alpha_ns = 1000, .rate_ppm = R2_PPM, .reduce_mbytes_per_s = {UINT32_MAX}};
    r2_cost_params_t given = told;
    r2_plan_input_t input = {.kind = R2_COLL_ALLREDUCE, .size = 4, .element_bytes = 4, .count = 1 << 22};
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
    for (r2_forecast_kind_t k = 0; k < R2_FORECAST_COUNT; k++) {
        assert_in_range(slow.ns[k], 2 * fast.ns[k] - slack_ns, 2 * fast.ns[k]);
    }
    assert_int_equal(r2_cost_paced_ns(&given, R2_COST_NEVER), R2_COST_NEVER);
    r2_topology_fini(&topology);
}

/** First KiB from which on folding within hosts pays; 0: never. */
static uint64_t pays_from(const r2_topology_t *topology)
{
    for (uint64_t kib = 1; kib <= 1 << 20; kib++) {
        if (r2_cost_folding_pays(topology, kib << 10)) {
            return kib;
        }
    }
    return 0;
}

static void folding_pays_by_layout_alone(void **state)
{
    static const uint32_t uneven[] = {0, 1, 0, 0, 2, 1}; /* as 3 + 2 + 1, not in blocks */
    static const struct {
        uint32_t hosts;
        int32_t ranks;
        uint64_t from_kib;
    } layouts[] = {{1, 8, 0}, {4, 4, 0}, {2, 8, 18}, {4, 8, 40}, {4, 16, 12}};
    r2_topology_t t;

    (void) state;
    for (size_t i = 0; i < r2_array_count(layouts); i++) {
        assert_int_equal(
            r2_topology_init(&t, layouts[i].hosts, 4, layouts[i].ranks, 1 + (uint32_t) i), R2_OK);
        assert_int_equal(pays_from(&t), layouts[i].from_kib);
        r2_topology_set_capacity(&t, 0, 1, 0);
        t.rate_mbytes_per_s[0] = 7;
        assert_int_equal(pays_from(&t), layouts[i].from_kib);
        r2_topology_fini(&t);
    }
    assert_int_equal(r2_topology_init(&t, 3, 4, 6, 1), R2_OK);
    memcpy(t.host_of, uneven, sizeof(uneven));
    assert_int_equal(r2_topology_pairs_most(&t), 9);
    /* 2 * 9 / 6 of the vector over the rails of host 0, against 4 / 3 */
    assert_int_equal(pays_from(&t), 35);
    r2_topology_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(file_is_read),
                                       cmocka_unit_test(wrong_lines_are_named),
                                       cmocka_unit_test(nothing_said_is_measured),
                                       cmocka_unit_test(rates_that_rails_give),
                                       cmocka_unit_test(folding_pays_by_layout_alone)};
    int fd = mkstemp(name), failed;

    if (fd < 0) {
        return 1;
    }
    close(fd);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(name);
    return failed;
}
