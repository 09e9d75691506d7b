/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Recursive allreduce: under the checker for up to 64 ranks, its traffic, tiers and predicted time.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "plan/algorithm.h"
#include "plan/forecast.h"
#include "plan/tiers.h"
#include "r2/prng.h"
#include "schedule_cases.h"

enum { RAILS = 4, MAPS_PER_SIZE = 3, MAPS_OF_FEW = 40, FEW_RANKS = 12 };

static const r2_case_t recursive = {R2_COLL_ALLREDUCE, "recursive"};

static void check(const r2_plan_input_t *input, uint64_t in_place)
{
    r2_check_job_t job;
    r2_check_report_t report = {.flaw = R2_FLAW_OP, .text = "build failed"};

    if (R2_OK == r2_check_job_init(&job, input, in_place)) {
        assert_true(1 == input->size || R2_CLAIM_EACH_ONCE == job.claim);
        assert_string_equal(1 == input->size ? "copy" : "recursive", job.schedules[0].algorithm);
        r2_check_job_run(&job, &report);
    }
    if (R2_FLAW_NONE != report.flaw) {
        print_error("size %d hosts %u count %lu in place %lx scratch %lu: %s: %s\n", input->size,
                    input->topology->host_count, (unsigned long) input->count,
                    (unsigned long) in_place, (unsigned long) input->scratch_bytes,
                    r2_flaw_name(report.flaw), report.text);
    }
    r2_check_job_fini(&job);
    assert_int_equal(R2_FLAW_NONE, report.flaw);
}

/** Some hosts have lost one, two, three or all rails, or parts of them. */
static void break_hosts(r2_prng_t *prng, r2_topology_t *topology)
{
    const uint64_t hosts = r2_prng_below(prng, topology->host_count + 1);

    for (uint64_t i = 0; i < hosts; ++i) {
        const uint32_t host = (uint32_t) r2_prng_below(prng, topology->host_count);
        const uint64_t rails = r2_prng_between(prng, 1, RAILS);

        for (uint32_t rail = 0; rail < rails; ++rail) {
            r2_topology_set_capacity(topology, host, rail, (uint32_t) r2_prng_below(prng, 16));
        }
    }
}

static void check_random(r2_prng_t *prng, int32_t size)
{
    const uint64_t in_places[] = {0, UINT64_MAX, 0x5a5a96695a5a9669u};
    const uint64_t elements[] = {1, 4, 12};
    const uint64_t scratches[] = {1 << 20, 4096, 1024}; /* the least is 1024 */
    const bool alone = r2_prng_chance(prng, 700000);
    const uint32_t hosts =
        alone ? (uint32_t) size : (uint32_t) r2_prng_between(prng, 1, (uint64_t) size);
    r2_plan_input_t input =
        r2_case_input(&recursive, size, r2_prng_below(prng, 40 * (uint64_t) size),
                      elements[r2_prng_below(prng, 3)]);
    r2_topology_t topology;

    assert_int_equal(R2_OK, r2_topology_init(&topology, hosts, RAILS, size, 1000));
    break_hosts(prng, &topology);
    input.topology = &topology;
    input.scratch_bytes = scratches[r2_prng_below(prng, 3)];
    input.chunk_min_bytes = r2_prng_chance(prng, 500000) ? 8 : 64;
    input.commutative = true;
    check(&input, in_places[r2_prng_below(prng, 3)]);
    r2_topology_fini(&topology);
}

/** Each contribution once, of slow hosts too, for any number of ranks and any tiers. */
static void test_random_maps(void **state)
{
    r2_prng_t prng;

    (void) state;
    r2_prng_seed(&prng, 5);
    for (int32_t size = 1; size <= R2_CHECK_RANKS_MAX; ++size) {
        for (int i = 0; i < (size <= FEW_RANKS ? MAPS_OF_FEW : MAPS_PER_SIZE); ++i) {
            check_random(&prng, size);
        }
    }
}

/** Four hosts with four rails: all, all, three and two of them are left. */
static void three_tiers(r2_topology_t *topology)
{
    assert_int_equal(R2_OK, r2_topology_init(topology, 4, RAILS, 4, 1250));
    r2_topology_set_capacity(topology, 2, 0, 0);
    r2_topology_set_capacity(topology, 3, 0, 0);
    r2_topology_set_capacity(topology, 3, 1, 0);
}

/** By hand: T = 6 / 13 x 4, s = (T B - 1) / 2 = 0.4231 0.4231 0.1923 0 (clipped: T B = 12 / 13). */
static void test_tiers(void **state)
{
    r2_topology_t topology;
    r2_tiers_t tiers;

    (void) state;
    three_tiers(&topology);
    assert_int_equal(R2_OK, r2_tiers_of(&tiers, &topology));
    assert_int_equal(3, tiers.count);
    assert_int_equal(0, tiers.tier_of[3]);
    assert_int_equal(1, tiers.tier_of[2]);
    assert_int_equal(2, tiers.tier_of[0]);
    assert_int_equal(4, tiers.tiers[0].host_count);
    assert_int_equal(3, tiers.tiers[1].host_count);
    assert_int_equal(2, tiers.tiers[2].rank_count);
    assert_int_equal(0, tiers.tiers[0].weight);
    /* T = 2 then: shares 1/2 1/2 1/4 0, scaled to 2/5 2/5 1/5 0 */
    assert_in_range(tiers.tiers[1].weight, R2_SHARE_ONE * 3 / 5 - 99, R2_SHARE_ONE * 3 / 5 + 99);
    assert_in_range(tiers.tiers[2].weight, R2_SHARE_ONE * 2 / 5 - 99, R2_SHARE_ONE * 2 / 5 + 99);
    r2_tiers_fini(&tiers);
    r2_topology_set_capacity(&topology, 3, 1, R2_CAPACITY_FULL);
    r2_topology_set_capacity(&topology, 2, 0, R2_CAPACITY_FULL);
    assert_int_equal(R2_OK, r2_tiers_of(&tiers, &topology));
    assert_int_equal(2, tiers.count); /* X = 1/4: shares 0.3 and 0.1 */
    assert_in_range(tiers.tiers[0].weight, R2_SHARE_ONE * 2 / 5 - 99, R2_SHARE_ONE * 2 / 5 + 99);
    assert_in_range(tiers.tiers[1].weight, R2_SHARE_ONE * 3 / 5 - 99, R2_SHARE_ONE * 3 / 5 + 99);
    r2_tiers_fini(&tiers);
    r2_topology_fini(&topology);
}

/** Hosts of nearly equal rates are one tier; there are never more than the table holds. */
static void test_few_tiers(void **state)
{
    r2_topology_t topology;
    r2_tiers_t tiers;

    (void) state;
    assert_int_equal(R2_OK, r2_topology_init(&topology, 100, 1, 100, 1000));
    for (uint32_t h = 0; h < 100; ++h) {
        topology.rate_mbytes_per_s[h] = 1000 + h / 10;
    }
    assert_int_equal(R2_OK, r2_tiers_of(&tiers, &topology));
    assert_int_equal(1, tiers.count);
    r2_tiers_fini(&tiers);
    for (uint32_t h = 0; h < 100; ++h) {
        topology.rate_mbytes_per_s[h] = 10 * (h + 1);
    }
    assert_int_equal(R2_OK, r2_tiers_of(&tiers, &topology));
    assert_in_range(tiers.count, 8, R2_TIERS_MAX);
    for (uint32_t k = 1; k < tiers.count; ++k) {
        assert_true(tiers.tiers[k].host_count < tiers.tiers[k - 1].host_count);
    }
    r2_tiers_fini(&tiers);
    r2_topology_fini(&topology);
}

static uint64_t sent_bytes(const r2_plan_input_t *input, int32_t rank)
{
    r2_plan_input_t there = *input;
    r2_schedule_t schedule;
    uint64_t bytes = 0;

    there.rank = rank;
    assert_int_equal(R2_OK, r2_plan_build(&there, &schedule));
    for (uint32_t i = 0; i < schedule.op_count; ++i) {
        bytes += R2_OP_SEND == schedule.ops[i].kind ? schedule.ops[i].bytes : 0;
    }
    r2_schedule_fini(&schedule);
    return bytes;
}

/** Hosts send what their rails can: X = 1/4 on one of four, 1.6 and 1.2 of the vector. */
static void test_traffic(void **state)
{
    r2_plan_input_t input = r2_case_input(&recursive, 4, 1000000, 4);
    r2_topology_t topology;

    (void) state;
    assert_int_equal(R2_OK, r2_topology_init(&topology, 4, RAILS, 4, 1250));
    r2_topology_set_capacity(&topology, 3, 1, 0);
    input.topology = &topology;
    input.scratch_bytes = 16 << 20;
    input.chunk_min_bytes = 8192;
    for (int32_t rank = 0; rank < 4; ++rank) {
        const uint64_t expected = 3 == rank ? 4800000 : 6400000;

        assert_in_range(sent_bytes(&input, rank), expected - 64, expected + 64);
    }
    r2_topology_fini(&topology);
}

static uint64_t ns_of(const r2_forecast_t *forecast, const r2_algorithm_t *algorithm)
{
    return r2_forecast_of(forecast, algorithm)->ns;
}

/** Predicted: the bound and 36/256, and the steps, where neighbours share enough. */
static void test_prediction(void **state)
{
    r2_plan_input_t input = r2_case_input(&recursive, 4, 1 << 24, 4);
    const uint64_t steps_ns = 8 * 20000;
    uint64_t expected_ns;
    r2_forecast_t forecast;
    r2_topology_t topology;

    (void) state;
    three_tiers(&topology);
    input.topology = &topology;
    assert_int_equal(R2_OK, r2_forecast_allreduce(&input, &forecast));
    expected_ns = forecast.bound_ns / 256 * (256 + 32 + 4) + steps_ns;
    assert_in_range(ns_of(&forecast, &r2_allreduce_recursive), expected_ns,
                    expected_ns + expected_ns / 1000);
    assert_true(ns_of(&forecast, &r2_allreduce_recursive) < ns_of(&forecast, &r2_allreduce_ring));
    r2_topology_set_capacity(&topology, 3, 2, 0);
    r2_topology_set_capacity(&topology, 3, 3, 0);
    assert_int_equal(R2_OK, r2_forecast_allreduce(&input, &forecast));
    assert_true(R2_COST_NEVER == ns_of(&forecast, &r2_allreduce_recursive));
    r2_topology_fini(&topology);
}

/** Never below the bound, whatever is broken; and with rails that all share, never above a ring. */
static void test_prediction_properties(void **state)
{
    r2_prng_t prng;

    (void) state;
    r2_prng_seed(&prng, 6);
    for (int i = 0; i < 2000; ++i) {
        const uint32_t hosts = (uint32_t) r2_prng_between(&prng, 2, 24);
        r2_plan_input_t input = r2_case_input(&recursive, (int32_t) hosts, 1 << 24, 4);
        r2_forecast_t forecast;
        r2_topology_t topology;

        assert_int_equal(R2_OK, r2_topology_init(&topology, hosts, RAILS, (int32_t) hosts, 1250));
        break_hosts(&prng, &topology);
        topology.any_pairing = r2_prng_chance(&prng, 500000);
        input.topology = &topology;
        assert_int_equal(R2_OK, r2_forecast_allreduce(&input, &forecast));
        assert_true(ns_of(&forecast, &r2_allreduce_recursive) >= forecast.bound_ns);
        if (topology.any_pairing && R2_COST_NEVER != ns_of(&forecast, &r2_allreduce_ring)) {
            /* rounding of tiers costs a sixteenth at most, gaps (32 + 24) / 256 */
            assert_true(ns_of(&forecast, &r2_allreduce_recursive) <=
                        ns_of(&forecast, &r2_allreduce_ring) / 16 * 17 / 256 * 312 + 100000);
        }
        r2_topology_fini(&topology);
    }
}

/** Six hosts, two pairs of which cannot exchange: rings in another order can. */
static void test_choice(void **state)
{
    r2_plan_input_t input = r2_case_input(&recursive, 6, 1 << 24, 4);
    r2_topology_t topology;

    (void) state;
    assert_int_equal(R2_OK, r2_topology_init(&topology, 6, 2, 6, 1250));
    for (uint32_t rail = 0; rail < 2; ++rail) {
        r2_topology_cut(&topology, 1, 4, rail);
    }
    r2_topology_set_capacity(&topology, 0, 0, 8);
    input.topology = &topology;
    input.algorithm = NULL;
    input.commutative = true;
    input.reproducible = true;
    assert_string_equal("weighted", r2_plan_choose(&input));
    input.reproducible = false;
    assert_string_equal("recursive", r2_plan_choose(&input));
    input.scratch_bytes = 64;
    assert_string_not_equal("recursive", r2_plan_choose(&input));
    input.scratch_bytes = 1 << 20;
    input.commutative = false;
    assert_string_equal("weighted", r2_plan_choose(&input));
    input.algorithm = "recursive";
    assert_string_equal("direct (the one asked for cannot run)", r2_plan_choose(&input));
    r2_topology_fini(&topology);
}

/** Ranks that know different maps do not mix. */
static void test_digest(void **state)
{
    r2_plan_input_t input = r2_case_input(&recursive, 4, 1000, 4);
    r2_schedule_t one, other;
    r2_topology_t topology;

    (void) state;
    three_tiers(&topology);
    assert_int_equal(R2_OK, r2_case_plan(&topology, &input, &one));
    r2_topology_set_capacity(&topology, 2, 0, R2_CAPACITY_FULL);
    r2_topology_set_capacity(&topology, 1, 0, 0);
    assert_int_equal(R2_OK, r2_case_plan(&topology, &input, &other));
    assert_int_not_equal(one.digest, other.digest);
    r2_schedule_fini(&other);
    r2_schedule_fini(&one);
    r2_topology_fini(&topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_maps), cmocka_unit_test(test_tiers),
        cmocka_unit_test(test_few_tiers),   cmocka_unit_test(test_traffic),
        cmocka_unit_test(test_prediction),  cmocka_unit_test(test_prediction_properties),
        cmocka_unit_test(test_choice),      cmocka_unit_test(test_digest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
