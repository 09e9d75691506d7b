/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The table of remembered plans: what is found, what is forgotten, against a plain list.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/known.h"
#include "r2/prng.h"

enum { ROOM = 4, KEYS = 9, TURNS = 20000 };

static void test_size_class(void **state)
{
    (void) state;
    assert_int_equal(0, r2_plan_size_class(0));
    assert_int_equal(0, r2_plan_size_class(1));
    assert_int_equal(10, r2_plan_size_class(1024));
    assert_int_equal(11, r2_plan_size_class(1025));
    assert_int_equal(63, r2_plan_size_class(UINT64_MAX));
}

static void test_every_part_counts(void **state)
{
    const r2_plan_key_t keys[] = {
        {1, 2, 3, 4}, {9, 2, 3, 4}, {1, 9, 3, 4}, {1, 2, 9, 4}, {1, 2, 3, 9}};
    r2_plan_known_t known = {.shares = {.weight = NULL}};
    r2_plan_cache_t cache;

    (void) state;
    assert_int_equal(R2_ERR_PARAM, r2_plan_cache_init(&cache, 0));
    assert_int_equal(R2_OK, r2_plan_cache_init(&cache, 8));
    known.forecast.bound_ns = 7;
    assert_int_equal(7, r2_plan_cache_store(&cache, &keys[0], &known)->forecast.bound_ns);
    assert_int_equal(7, r2_plan_cache_find(&cache, &keys[0])->forecast.bound_ns);
    for (int k = 1; k < 5; k++) {
        assert_null(r2_plan_cache_find(&cache, &keys[k]));
    }
    assert_int_equal(1, cache.hits);
    assert_int_equal(4, cache.misses);
    known.forecast.bound_ns = 8;
    r2_plan_cache_store(&cache, &keys[1], &known);
    r2_plan_cache_forget(&cache, 1);
    assert_null(r2_plan_cache_find(&cache, &keys[0]));
    assert_int_equal(8, r2_plan_cache_find(&cache, &keys[1])->forecast.bound_ns);
    r2_plan_cache_fini(&cache);
}

/** Random finds and stores: what is known are the ROOM keys used last. */
static void test_forgets_the_oldest(void **state)
{
    uint64_t used[KEYS] = {0};
    r2_plan_cache_t cache;
    r2_prng_t prng;

    (void) state;
    r2_prng_seed(&prng, 11);
    assert_int_equal(R2_OK, r2_plan_cache_init(&cache, ROOM));
    for (uint64_t turn = 1; turn <= TURNS; turn++) {
        const uint64_t key = r2_prng_below(&prng, KEYS);
        const r2_plan_key_t wanted = {.comm = 1, .operation = 1, .size_class = 20, .map = key};
        const r2_plan_known_t *entry = r2_plan_cache_find(&cache, &wanted);
        int later = 0;

        for (int k = 0; k < KEYS; k++) {
            later += used[k] > used[key] ? 1 : 0;
        }
        assert_int_equal(0 < used[key] && later < ROOM, NULL != entry);
        if (NULL == entry) {
            r2_plan_known_t known = {
                .shares = {.weight = malloc(sizeof(*known.shares.weight)), .host_count = 1}};

            assert_non_null(known.shares.weight);
            known.shares.weight[0] = key;
            r2_plan_cache_store(&cache, &wanted, &known);
            assert_null(known.shares.weight);
        } else {
            assert_int_equal(key, entry->shares.weight[0]);
        }
        used[key] = turn;
    }
    assert_int_equal(TURNS, cache.hits + cache.misses);
    r2_plan_cache_fini(&cache);
}

/** All ranks' rows, told by their digest and the bytes that they send. */
static void plan_of(const r2_plan_input_t *input, uint32_t *digest_p, uint64_t *bytes_p)
{
    r2_schedule_t schedule;

    assert_int_equal(R2_OK, r2_plan_build(input, &schedule));
    *digest_p = schedule.digest;
    *bytes_p = 0;
    for (uint32_t i = 0; i < schedule.row_count; i++) {
        *bytes_p += R2_ROW_SEND == schedule.rows[i].kind ? schedule.rows[i].bytes : 0;
    }
    r2_schedule_fini(&schedule);
}

/** Knows a call on a map; the plan must be that of a rank which has to work it out anew. */
static void know(r2_plan_cache_t *cache, uint64_t comm, r2_plan_input_t *input, bool fresh)
{
    uint32_t digest, anew_digest;
    uint64_t bytes, anew_bytes;
    bool was_fresh;

    input->known = NULL;
    plan_of(input, &anew_digest, &anew_bytes);
    assert_int_equal(R2_OK, r2_plan_know(cache, comm, r2_topology_digest(input->topology), input,
                                         &input->known, &was_fresh));
    assert_int_equal(fresh, was_fresh);
    plan_of(input, &digest, &bytes);
    assert_int_equal(anew_digest, digest);
    assert_int_equal(anew_bytes, bytes);
}

/** Broken, healed, broken again: the return to an earlier map finds its plan. */
static void test_return_to_a_map(void **state)
{
    r2_topology_t topology;
    r2_plan_input_t input = {.kind = R2_COLL_ALLREDUCE, .size = 4, .element_bytes = 4,
                             .count = 1 << 20, .commutative = true, .reproducible = true,
                             .scratch_bytes = 1 << 20, .chunk_min_bytes = 8192,
                             .chunk_max_bytes = 131072, .topology = &topology};
    r2_plan_cache_t cache;
    char text[200];

    (void) state;
    assert_int_equal(R2_OK, r2_plan_cache_init(&cache, 8));
    assert_int_equal(R2_OK, r2_topology_init(&topology, 4, 4, 4, 1250));
    know(&cache, 1, &input, false);
    assert_null(input.known); /* even: nothing to know */
    for (int turn = 0; turn < 3; turn++) {
        r2_topology_set_capacity(&topology, 3, 1, 0);
        know(&cache, 1, &input, 0 == turn);
        assert_true(input.known->shares.weight[3] < input.known->shares.weight[0]);
        r2_topology_set_capacity(&topology, 2, 0, 8);
        know(&cache, 1, &input, 0 == turn);
        r2_topology_set_capacity(&topology, 2, 0, R2_CAPACITY_FULL);
    }
    assert_int_equal(4, cache.hits);
    assert_int_equal(2, cache.misses);
    know(&cache, 2, &input, true); /* another communicator */
    input.count /= 2;
    know(&cache, 1, &input, true); /* another class of lengths */
    input.count -= 1;
    know(&cache, 1, &input, false);
    r2_plan_known_text(input.known, text, sizeof(text));
    assert_non_null(strstr(text, "weighted 0."));
    assert_non_null(strstr(text, "bound 0."));
    r2_topology_fini(&topology);
    r2_plan_cache_fini(&cache);
}

/** Ranks whose first call of a class had another length, or who forgot it, still choose the same. */
static void test_choice_of_a_class(void **state)
{
    r2_topology_t topology;
    r2_plan_input_t input = {.kind = R2_COLL_ALLREDUCE, .size = 4, .element_bytes = 4,
                             .commutative = true, .reproducible = true, .scratch_bytes = 1 << 20,
                             .chunk_min_bytes = 8192, .chunk_max_bytes = 131072, .topology = &topology};

    (void) state;
    assert_int_equal(R2_OK, r2_topology_init(&topology, 4, 4, 4, 1250));
    for (uint32_t capacity = 1; capacity < R2_CAPACITY_FULL; capacity++) {
        r2_plan_cache_t cache;

        assert_int_equal(R2_OK, r2_plan_cache_init(&cache, 8));
        r2_topology_set_capacity(&topology, 0, 0, capacity);
        for (uint64_t count = 16384; count > 2048; count -= 512) {
            input.count = count;
            know(&cache, 1, &input, 0 == (count & (count - 1)));
        }
        r2_plan_cache_fini(&cache);
    }
    r2_topology_fini(&topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_size_class),
                                       cmocka_unit_test(test_every_part_counts),
                                       cmocka_unit_test(test_forgets_the_oldest),
                                       cmocka_unit_test(test_return_to_a_map),
                                       cmocka_unit_test(test_choice_of_a_class)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
