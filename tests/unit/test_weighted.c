/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Weighted allreduce under the checker: any map gives each element the tree that `direct` gives it.
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
#include "r2/prng.h"
#include "schedule_cases.h"

enum { RANKS_MOST = 16, MAPS_PER_SIZE = 60 };

static const r2_case_t weighted = {R2_COLL_ALLREDUCE, "weighted"};
static const r2_case_t ring = {R2_COLL_ALLREDUCE, "ring"};
static const r2_case_t paper = {R2_COLL_ALLREDUCE, "r2"};
static const r2_case_t gather = {R2_COLL_ALLGATHER, "ring"};
static const r2_case_t hierarchical = {R2_COLL_ALLREDUCE, "hierarchical"};

static void break_rails(r2_prng_t *prng, r2_topology_t *topology)
{
    for (uint64_t n = r2_prng_below(prng, 6); n > 0; --n) {
        r2_topology_set_capacity(topology, (uint32_t) r2_prng_below(prng, topology->host_count),
                                 (uint32_t) r2_prng_below(prng, topology->rail_count),
                                 (uint32_t) r2_prng_below(prng, R2_CAPACITY_FULL));
    }
    if (r2_prng_chance(prng, 300000)) {
        r2_topology_cut(topology, 0, (uint32_t) r2_prng_below(prng, topology->host_count), 0);
    }
}

static void check(const r2_plan_input_t *input, uint64_t in_place, r2_claim_t claim)
{
    r2_check_job_t job;
    r2_check_report_t report = {.flaw = R2_FLAW_OP, .text = "build failed"};

    if (R2_OK == r2_check_job_init(&job, input, in_place)) {
        if (R2_CLAIM_EACH_ONCE != claim) {
            assert_int_equal(claim, job.claim);
        }
        job.claim = claim;
        r2_check_job_run(&job, &report);
    }
    if (R2_FLAW_NONE != report.flaw) {
        print_error("%s size %d count %lu in place %lx scratch %lu: %s: %s\n", input->algorithm,
                    input->size, (unsigned long) input->count, (unsigned long) in_place,
                    (unsigned long) input->scratch_bytes, r2_flaw_name(report.flaw), report.text);
    }
    r2_check_job_fini(&job);
    assert_int_equal(R2_FLAW_NONE, report.flaw);
}

/** Ranks on hosts in any order, each host with as many as before. */
static void shuffle_ranks(r2_prng_t *prng, r2_topology_t *topology)
{
    for (int32_t r = topology->rank_count - 1; r > 0; --r) {
        const uint64_t other = r2_prng_below(prng, (uint64_t) r + 1);
        const uint32_t host = topology->host_of[r];

        topology->host_of[r] = topology->host_of[other];
        topology->host_of[other] = host;
    }
}

/** One random map and vector: each once, in canonical order, whatever the shares. */
static void check_random(r2_prng_t *prng, int32_t size, const r2_case_t *one)
{
    const bool tiers = one == &hierarchical;
    r2_claim_t claim = tiers && 1 < size ? R2_CLAIM_RANK_ORDER : R2_CLAIM_CANONICAL;
    const uint64_t in_places[] = {0, UINT64_MAX, 0x5a5a96695a5a9669u};
    const uint64_t elements[] = {1, 4, 12};
    const uint64_t scratches[] = {1 << 20, 1024, 64};
    uint32_t hosts = (uint32_t) size;
    r2_plan_input_t input = r2_case_input(one, size, r2_prng_below(prng, 60 * (uint64_t) size),
                                          elements[r2_prng_below(prng, 3)]);
    r2_topology_t topology;

    if (tiers || (one != &paper && r2_prng_chance(prng, 250000))) {
        hosts = (uint32_t) r2_prng_between(prng, 1, (uint64_t) size);
    }
    assert_int_equal(R2_OK, r2_topology_init(&topology, hosts,
                                             (uint32_t) r2_prng_between(prng, 1, 4), size, 1000));
    break_rails(prng, &topology);
    input.topology = &topology;
    input.scratch_bytes = scratches[r2_prng_below(prng, 3)];
    input.chunk_min_bytes = r2_prng_chance(prng, 500000) ? 8 : 64;
    input.commutative = false;
    if (tiers && input.scratch_bytes < 1024) {
        input.scratch_bytes = 192; /* the least */
    }
    if (tiers && 1 < size && r2_prng_chance(prng, 300000)) {
        shuffle_ranks(prng, &topology);
        claim = R2_CLAIM_EACH_ONCE;
        input.commutative = true;
    }
    if (one == &paper) {
        /* most of a host's rate lost: beyond the crossover */
        for (uint32_t rail = r2_prng_chance(prng, 700000) ? 0 : 4; rail < topology.rail_count;
             ++rail) {
            r2_topology_set_capacity(&topology, hosts / 2, rail, 5);
        }
    }
    if (one == &gather) {
        input.count /= (uint64_t) size;
        claim = R2_CLAIM_EACH_ONCE;
    }
    if ((one == &ring || one == &paper) && 1 < size) {
        claim = R2_CLAIM_EACH_ONCE;
        input.commutative = true;
    }
    check(&input, in_places[r2_prng_below(prng, 3)], claim);
    r2_topology_fini(&topology);
}

static void test_random_maps(void **state)
{
    r2_prng_t prng;

    (void) state;
    r2_prng_seed(&prng, 1);
    for (int32_t size = 1; size <= RANKS_MOST; ++size) {
        for (int i = 0; i < MAPS_PER_SIZE; ++i) {
            check_random(&prng, size, &weighted);
            check_random(&prng, size, &hierarchical);
            check_random(&prng, size, &ring);
            check_random(&prng, size, &paper);
            check_random(&prng, size, &gather);
        }
    }
}

/** Four hosts with four rails each, one rail of host 3 dead. */
static void quarter_lost(r2_topology_t *topology)
{
    assert_int_equal(R2_OK, r2_topology_init(topology, 4, 4, 4, 1250));
    r2_topology_set_capacity(topology, 3, 1, 0);
}

static uint64_t sent_bytes(const r2_schedule_t *schedule)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < schedule->op_count; ++i) {
        bytes += R2_OP_SEND == schedule->ops[i].kind ? schedule->ops[i].bytes : 0;
    }
    return bytes;
}

/** What each rank sends is what its rails can: 1.6 and 1.2 of the vector. */
static void test_traffic(void **state)
{
    r2_plan_input_t input = r2_case_input(&weighted, 4, 1000000, 4);
    r2_topology_t topology;

    (void) state;
    quarter_lost(&topology);
    input.scratch_bytes = 16 << 20;
    input.chunk_min_bytes = 8192;
    for (input.rank = 0; input.rank < 4; ++input.rank) {
        const uint64_t expected = 3 == input.rank ? 4800000 : 6400000;
        r2_schedule_t schedule;

        assert_int_equal(R2_OK, r2_case_plan(&topology, &input, &schedule));
        assert_string_equal("weighted", schedule.algorithm);
        assert_in_range(sent_bytes(&schedule), expected - 64, expected + 64);
        r2_schedule_fini(&schedule);
    }
    r2_topology_fini(&topology);
}

/** First rows that send results stand before the last that contribute: phases overlap. */
static void test_pipelined(void **state)
{
    r2_plan_input_t input = r2_case_input(&weighted, 4, 1 << 20, 4);
    uint32_t first_result = UINT32_MAX, last_contribution = 0;
    r2_topology_t topology;
    r2_schedule_t schedule;

    (void) state;
    quarter_lost(&topology);
    input.rank = 3;
    input.scratch_bytes = 16 << 20;
    input.chunk_min_bytes = 8192;
    assert_int_equal(R2_OK, r2_case_plan(&topology, &input, &schedule));
    for (uint32_t i = 0; i < schedule.op_count; ++i) {
        if (R2_OP_SEND != schedule.ops[i].kind) {
            continue;
        }
        if (0 != schedule.ops[i].tag % 2) { /* a result */
            first_result = r2_min(first_result, i);
        } else {
            last_contribution = i;
        }
    }
    assert_true(first_result < schedule.op_count / 8);
    assert_true(last_contribution > schedule.op_count - schedule.op_count / 8);
    r2_schedule_fini(&schedule);
    r2_topology_fini(&topology);
}

/** Ranks that know different maps do not mix. */
static void test_digest(void **state)
{
    r2_plan_input_t input = r2_case_input(&weighted, 4, 1000, 4);
    r2_schedule_t healthy, broken, other;
    r2_topology_t topology;

    (void) state;
    quarter_lost(&topology);
    input.scratch_bytes = 64; /* segments of one element, whatever the shares */
    assert_int_equal(R2_OK, r2_case_plan(&topology, &input, &broken));
    r2_topology_set_capacity(&topology, 3, 1, R2_CAPACITY_FULL);
    assert_int_equal(R2_OK, r2_case_plan(&topology, &input, &healthy));
    assert_int_not_equal(healthy.digest, broken.digest);
    /* the same lengths in another order */
    r2_topology_set_capacity(&topology, 2, 1, 0);
    assert_int_equal(R2_OK, r2_case_plan(&topology, &input, &other));
    assert_int_not_equal(other.digest, broken.digest);
    r2_schedule_fini(&other);
    r2_schedule_fini(&healthy);
    r2_schedule_fini(&broken);
    input.size = 3;
    assert_int_equal(R2_ERR_PARAM, r2_case_plan(&topology, &input, &healthy));
    r2_topology_fini(&topology);
}

/** n = 4, X = 1/2: beyond the crossover 4/10, Y = 1/2 + 1/4 / (1/2 + 8); X = 1/4: a ring. */
static void test_paper_share(void **state)
{
    r2_plan_input_t input = r2_case_input(&paper, 4, 1000000, 4);
    r2_topology_t topology;
    r2_schedule_t schedule;

    (void) state;
    assert_int_equal(529411, r2_allreduce_r2_share_ppm(500000, 4));
    assert_int_equal(0, r2_allreduce_r2_share_ppm(250000, 4));
    assert_int_equal(0, r2_allreduce_r2_share_ppm(399999, 4));
    assert_int_not_equal(0, r2_allreduce_r2_share_ppm(400000, 4));
    assert_int_equal(1000000, r2_allreduce_r2_share_ppm(1000000, 4));
    quarter_lost(&topology);
    r2_topology_set_capacity(&topology, 3, 2, 0);
    input.rank = 3;
    assert_int_equal(R2_OK, r2_case_plan(&topology, &input, &schedule));
    /* 3/2 of what goes round all, and the rest once */
    assert_in_range(sent_bytes(&schedule), 4 * (705882 + 529411) - 64, 4 * (705884 + 529411) + 64);
    r2_schedule_fini(&schedule);
    r2_topology_fini(&topology);
    input.topology = NULL;
    assert_string_equal("direct (the one asked for cannot run)", r2_plan_choose(&input));
}

static const char *chosen(r2_plan_input_t input, uint64_t bytes, const r2_topology_t *topology)
{
    input.count = bytes / input.element_bytes;
    input.topology = topology;
    input.algorithm = NULL;
    return r2_plan_choose(&input);
}

/** Algorithms with different trees change places at the same lengths, however the rails are. */
static void test_thresholds_ignore_health(void **state)
{
    const r2_plan_input_t input = r2_case_input(&weighted, 4, 0, 4);
    r2_prng_t prng;

    (void) state;
    r2_prng_seed(&prng, 3);
    for (int i = 0; i < 200; ++i) {
        r2_topology_t topology;

        assert_int_equal(R2_OK, r2_topology_init(&topology, 4, 4, 4, 1250));
        break_rails(&prng, &topology);
        for (uint64_t bytes = 4; bytes <= 1 << 26; bytes *= 2) {
            const char *there = chosen(input, bytes, &topology);
            const bool few_steps = 0 == strcmp("recursive-doubling", there);

            assert_int_equal(few_steps, bytes <= 8192);
            assert_true(few_steps || 0 == strcmp("direct", there) ||
                        0 == strcmp("weighted", there));
        }
        r2_topology_fini(&topology);
    }
}

static uint64_t ns_of(const r2_forecast_t *forecast, const r2_algorithm_t *algorithm)
{
    return r2_forecast_of(forecast, algorithm)->ns;
}

static void test_choice(void **state)
{
    r2_plan_input_t input = r2_case_input(&weighted, 4, 1 << 20, 4);
    r2_forecast_t forecast;
    r2_topology_t topology;
    char text[80], cut[12];

    (void) state;
    quarter_lost(&topology);
    assert_string_equal("weighted", chosen(input, 1 << 26, &topology));
    input.algorithm = NULL;
    input.topology = &topology;
    assert_int_equal(R2_OK, r2_plan_describe(&input, text, sizeof(text)));
    assert_string_equal("weighted(0.30,0.30,0.30,0.10)", text);
    assert_int_equal(R2_OK, r2_plan_describe(&input, cut, sizeof(cut)));
    assert_int_equal(sizeof(cut) - 1, strlen(cut));
    assert_int_equal(R2_OK, r2_forecast_allreduce(&input, &forecast));
    assert_true(ns_of(&forecast, &r2_allreduce_weighted) < ns_of(&forecast, &r2_allreduce_direct));
    assert_true(ns_of(&forecast, &r2_allreduce_weighted) < ns_of(&forecast, &r2_allreduce_ring));
    assert_true(forecast.bound_ns <= ns_of(&forecast, &r2_allreduce_weighted));
    r2_topology_set_capacity(&topology, 3, 1, R2_CAPACITY_FULL);
    assert_string_equal("direct", chosen(input, 1 << 26, &topology));
    input.topology = NULL;
    assert_int_equal(R2_ERR_PARAM, r2_forecast_allreduce(&input, &forecast));
    input.algorithm = "none";
    assert_int_equal(R2_ERR_PARAM, r2_plan_describe(&input, text, sizeof(text)));
    r2_topology_fini(&topology);
}

/** Two hosts share no rail: an allgather goes round by others, over rails that are there. */
static void test_allgather_goes_round(void **state)
{
    const r2_case_t any = {R2_COLL_ALLGATHER, NULL};
    r2_plan_input_t input = r2_case_input(&any, 4, 4096, 4);
    r2_topology_t topology;

    (void) state;
    assert_int_equal(R2_OK, r2_topology_init(&topology, 4, 2, 4, 1250));
    input.topology = &topology;
    input.scratch_bytes = 1 << 20;
    input.chunk_min_bytes = 1024;
    assert_string_equal("direct", r2_plan_choose(&input));
    r2_topology_set_capacity(&topology, 0, 1, 0);
    assert_string_equal("direct", r2_plan_choose(&input)); /* all still share a rail */
    r2_topology_set_capacity(&topology, 1, 0, 0);
    assert_string_equal("ring", r2_plan_choose(&input));
    check(&input, 0, R2_CLAIM_EACH_ONCE);
    for (input.rank = 0; input.rank < 4; ++input.rank) {
        r2_schedule_t schedule;

        assert_int_equal(R2_OK, r2_plan_build(&input, &schedule));
        for (uint32_t i = 0; i < schedule.op_count; ++i) {
            assert_true(R2_OP_SEND != schedule.ops[i].kind ||
                        0 < r2_topology_pair_rate(&topology, (uint32_t) input.rank,
                                                  (uint32_t) schedule.ops[i].peer));
        }
        r2_schedule_fini(&schedule);
    }
    input.rank = 0;
    r2_topology_set_capacity(&topology, 2, 0, 0);
    r2_topology_set_capacity(&topology, 3, 0, 0); /* host 0 shares no rail with anybody */
    assert_string_equal("direct", r2_plan_choose(&input));
    r2_topology_fini(&topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_maps),
        cmocka_unit_test(test_traffic),
        cmocka_unit_test(test_paper_share),
        cmocka_unit_test(test_pipelined),
        cmocka_unit_test(test_digest),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_allgather_goes_round),
        cmocka_unit_test(test_thresholds_ignore_health),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
