/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Health map: merging is commutative, associative and idempotent; lookups, bounds and digest.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "model/health_map.h"
#include "r2/nic.h"
#include "r2/prng.h"

#define HOSTS   20
#define RAILS   3
#define CHANGES 200
#define SETS    3000

static r2_health_change_t random_change(r2_prng_t *prng, bool packed)
{
    r2_health_change_t change = {.is_path = r2_prng_chance(prng, packed ? 900000 : 300000)};
    uint32_t hosts = packed ? HOSTS : 4;

    change.host_a = (uint32_t) r2_prng_below(prng, hosts);
    change.host_b = (change.host_a + 1 + (uint32_t) r2_prng_below(prng, hosts - 1)) % hosts;
    change.rail = (uint32_t) r2_prng_below(prng, RAILS);
    change.entry.version = 1 + (uint32_t) r2_prng_below(prng, 6);
    if (!change.is_path) {
        change.entry.capacity = (uint8_t) r2_prng_below(prng, R2_CAPACITY_FULL + 1);
        change.entry.verdict = (uint8_t) r2_prng_below(prng, R2_VERDICT_COUNT);
        change.entry.direction = (uint8_t) r2_prng_below(prng, R2_DIRECTION_COUNT);
    }
    return change;
}

static void shuffle(r2_prng_t *prng, r2_health_change_t *changes, uint32_t count)
{
    uint32_t idx;

    for (idx = count; idx > 1; --idx) {
        uint32_t other = (uint32_t) r2_prng_below(prng, idx);
        r2_health_change_t kept = changes[idx - 1];

        changes[idx - 1] = changes[other];
        changes[other] = kept;
    }
}

static void merge_all(r2_health_map_t *map, const r2_health_change_t *changes, uint32_t count)
{
    uint32_t idx;

    for (idx = 0; idx < count; ++idx) {
        (void) r2_health_map_merge(map, &changes[idx]);
    }
}

/* Everything that a map knows, as changes: merging two maps. @return number of changes. */
static uint32_t contents(const r2_health_map_t *map, r2_health_change_t *changes_p)
{
    uint32_t idx, count = 0;

    for (idx = 0; idx < map->host_count * map->rail_count; ++idx) {
        changes_p[count++] = (r2_health_change_t){.host_a = idx / map->rail_count,
                                                  .rail = idx % map->rail_count,
                                                  .entry = map->entries[idx]};
    }
    for (idx = 0; idx < map->exception_count; ++idx) {
        const r2_health_exception_t *path = &map->exceptions[idx];

        changes_p[count++] = (r2_health_change_t){.is_path = true,
                                                  .host_a = path->host_a,
                                                  .host_b = path->host_b,
                                                  .rail = path->rail,
                                                  .entry.version = path->version};
    }
    return count;
}

static void assert_same(const r2_health_map_t *a, const r2_health_map_t *b)
{
    assert_memory_equal(a->entries, b->entries,
                        (size_t) a->host_count * a->rail_count * sizeof(a->entries[0]));
    assert_int_equal(a->exception_count, b->exception_count);
    assert_memory_equal(a->exceptions, b->exceptions,
                        a->exception_count * sizeof(a->exceptions[0]));
    assert_true(r2_health_map_digest(a) == r2_health_map_digest(b));
}

static void merge_is_a_semilattice(void **state)
{
    static r2_health_change_t changes[CHANGES], all[HOSTS * RAILS + R2_HEALTH_EXCEPTIONS_MAX];
    r2_health_map_t one, two, left, right;
    uint32_t set, idx, full = 0;
    r2_prng_t prng;

    (void) state;
    r2_prng_seed(&prng, 20);
    for (set = 0; set < SETS; ++set) {
        uint32_t count = 1 + (uint32_t) r2_prng_below(&prng, CHANGES);

        assert_int_equal(r2_health_map_init(&one, HOSTS, RAILS), R2_OK);
        assert_int_equal(r2_health_map_init(&two, HOSTS, RAILS), R2_OK);
        assert_int_equal(r2_health_map_init(&left, HOSTS, RAILS), R2_OK);
        assert_int_equal(r2_health_map_init(&right, HOSTS, RAILS), R2_OK);
        for (idx = 0; idx < count; ++idx) {
            changes[idx] = random_change(&prng, 0 == set % 2);
        }
        merge_all(&one, changes, count);
        full += R2_HEALTH_EXCEPTIONS_MAX == one.exception_count;
        merge_all(&one, changes, count); /* idempotent */
        shuffle(&prng, changes, count);
        merge_all(&two, changes, count); /* commutative */
        assert_same(&one, &two);
        merge_all(&left, changes, count / 2); /* associative: two halves, then together */
        merge_all(&right, changes + count / 2, count - count / 2);
        merge_all(&left, all, contents(&right, all));
        assert_same(&one, &left);
        r2_health_map_copy(&right, &one);
        assert_same(&one, &right);
        r2_health_map_fini(&one);
        r2_health_map_fini(&two);
        r2_health_map_fini(&left);
        r2_health_map_fini(&right);
    }
    assert_true(full > 100); /* the bound was reached often */
}

static r2_health_change_t cut(uint32_t a, uint32_t b, uint32_t rail, uint32_t version)
{
    return (r2_health_change_t){
        .is_path = true, .host_a = a, .host_b = b, .rail = rail, .entry.version = version};
}

static void exceptions_are_bounded(void **state)
{
    r2_health_change_t change;
    r2_health_map_t map;
    uint32_t idx;

    (void) state;
    assert_int_equal(r2_health_map_init(&map, HOSTS, RAILS), R2_OK);
    for (idx = 0; idx < 5 * R2_HEALTH_EXCEPTIONS_MAX; ++idx) {
        change = cut(idx % HOSTS, (idx % HOSTS + 1 + idx / HOSTS) % HOSTS, 1,
                     r2_health_map_path_version(&map, true));
        if (change.host_a == change.host_b) {
            continue;
        }
        (void) r2_health_map_merge(&map, &change);
        assert_true(map.exception_count <= R2_HEALTH_EXCEPTIONS_MAX);
        assert_true(r2_health_map_is_cut(&map, change.host_a, change.host_b, 1)); /* newest stays */
    }
    assert_int_equal(map.exception_count, R2_HEALTH_EXCEPTIONS_MAX);
    change = cut(change.host_b, change.host_a, 1, r2_health_map_path_version(&map, false));
    assert_true(r2_health_map_merge(&map, &change));
    assert_false(r2_health_map_is_cut(&map, change.host_a, change.host_b, 1));
    r2_health_map_fini(&map);
}

static void path_versions(void **state)
{
    r2_health_change_t change;
    r2_health_map_t map;

    (void) state;
    assert_int_equal(r2_health_map_init(&map, HOSTS, RAILS), R2_OK);
    assert_int_equal(r2_health_map_path_version(&map, true), 1);
    change = cut(3, 1, 0, 1);
    assert_true(r2_health_map_merge(&map, &change));
    assert_int_equal(r2_health_map_path_version(&map, true), 3);
    assert_int_equal(r2_health_map_path_version(&map, false), 2);
    change.entry.version = R2_HEALTH_VERSION_MAX;
    assert_true(r2_health_map_merge(&map, &change));
    assert_int_equal(r2_health_map_path_version(&map, false), R2_HEALTH_VERSION_MAX);
    change.entry.version = R2_HEALTH_VERSION_MAX + 1;
    assert_false(r2_health_map_merge(&map, &change));
    r2_health_map_fini(&map);
}

static void lookups(void **state)
{
    r2_health_change_t change = {.host_a = 2, .rail = 1, .entry = {.version = 1, .capacity = 5}};
    r2_health_map_t map;

    (void) state;
    assert_int_equal(r2_health_map_init(&map, 0, 1), R2_ERR_PARAM);
    assert_int_equal(r2_health_map_init(&map, 1, 0), R2_ERR_PARAM);
    assert_int_equal(r2_health_map_init(&map, 1, R2_RAILS_MAX + 1), R2_ERR_PARAM);
    assert_int_equal(r2_health_map_init(&map, 4, 2), R2_OK);
    assert_int_equal(r2_health_map_between(&map, 0, 2, 1), R2_CAPACITY_FULL);
    assert_true(r2_health_map_merge(&map, &change));
    assert_false(r2_health_map_merge(&map, &change));
    assert_int_equal(r2_health_map_entry(&map, 2, 1)->capacity, 5);
    assert_int_equal(r2_health_map_between(&map, 0, 2, 1), 5);
    assert_int_equal(r2_health_map_between(&map, 0, 2, 0), R2_CAPACITY_FULL);
    change.entry.capacity = 6; /* ties go to the lower capacity */
    assert_false(r2_health_map_merge(&map, &change));
    change.entry.capacity = 4;
    assert_true(r2_health_map_merge(&map, &change));
    assert_int_equal(r2_health_map_between(&map, 0, 2, 1), 4);
    change = cut(2, 0, 0, 1);
    assert_true(r2_health_map_merge(&map, &change));
    assert_true(r2_health_map_is_cut(&map, 0, 2, 0) && r2_health_map_is_cut(&map, 2, 0, 0));
    assert_false(r2_health_map_is_cut(&map, 0, 2, 1) || r2_health_map_is_cut(&map, 0, 1, 0));
    assert_int_equal(r2_health_map_between(&map, 2, 0, 0), 0);
    r2_health_map_fini(&map);
}

/* Changes from outside that fit nowhere. */
static void refused(void **state)
{
    const r2_health_change_t bad[] = {
        {.host_a = 4, .entry = {.version = 1}},
        {.rail = 2, .entry = {.version = 1}},
        {.entry = {.version = 1, .capacity = R2_CAPACITY_FULL + 1}},
        {.is_path = true, .host_a = 1, .host_b = 4, .entry = {.version = 1}},
        {.is_path = true, .host_a = 1, .host_b = 1, .entry = {.version = 1}},
        {.is_path = true, .host_a = 1, .host_b = 2, .entry = {.version = 0}},
    };
    r2_health_map_t map, fresh;
    uint32_t idx;

    (void) state;
    assert_int_equal(r2_health_map_init(&map, 4, 2), R2_OK);
    assert_int_equal(r2_health_map_init(&fresh, 4, 2), R2_OK);
    for (idx = 0; idx < r2_array_count(bad); ++idx) {
        assert_false(r2_health_map_merge(&map, &bad[idx]));
    }
    assert_same(&map, &fresh);
    r2_health_map_fini(&map);
    r2_health_map_fini(&fresh);
}

/* All of another map at once. */
static void join(void **state)
{
    const r2_health_change_t change = {
        .host_a = 1, .rail = 1, .entry = {.version = 1, .capacity = 3}};
    const r2_health_change_t path = cut(0, 3, 0, 1);
    r2_health_map_t a, b, c;

    (void) state;
    assert_int_equal(r2_health_map_init(&a, 4, 2), R2_OK);
    assert_int_equal(r2_health_map_init(&b, 4, 2), R2_OK);
    assert_int_equal(r2_health_map_init(&c, 4, 2), R2_OK);
    assert_true(r2_health_map_equal(&a, &b));
    assert_false(r2_health_map_join(&a, &b));
    assert_true(r2_health_map_merge(&a, &change));
    assert_true(r2_health_map_merge(&b, &path));
    assert_false(r2_health_map_equal(&a, &b));
    r2_health_map_copy(&c, &a);
    assert_true(r2_health_map_join(&a, &b));
    assert_true(r2_health_map_join(&b, &c));
    assert_true(r2_health_map_equal(&a, &b));
    assert_true(r2_health_map_digest_all(&a) == r2_health_map_digest_all(&b));
    assert_int_equal(r2_health_map_entry(&b, 1, 1)->capacity, 3);
    assert_true(r2_health_map_is_cut(&a, 3, 0, 0));
    r2_health_map_reset(&a);
    r2_health_map_reset(&b);
    assert_true(r2_health_map_equal(&a, &b));
    assert_false(r2_health_map_is_cut(&a, 3, 0, 0));
    r2_health_map_fini(&a);
    r2_health_map_fini(&b);
    r2_health_map_fini(&c);
}

/* Capacities and cuts count, versions and verdicts do not. */
static void digest(void **state)
{
    r2_health_change_t change = {.host_a = 1, .rail = 1, .entry = {.version = 1, .capacity = 0}};
    r2_health_map_t map;
    uint64_t start, dead, cut_digest;

    (void) state;
    assert_int_equal(r2_health_map_init(&map, 4, 2), R2_OK);
    start = r2_health_map_digest(&map);
    assert_true(r2_health_map_merge(&map, &change));
    dead = r2_health_map_digest(&map);
    assert_true(dead != start);
    change.entry = (r2_health_entry_t){.version = 2, .verdict = R2_VERDICT_PLANE};
    assert_true(r2_health_map_merge(&map, &change));
    assert_true(r2_health_map_digest(&map) == dead);
    change.entry = (r2_health_entry_t){.version = 3, .capacity = R2_CAPACITY_FULL};
    assert_true(r2_health_map_merge(&map, &change));
    assert_true(r2_health_map_digest(&map) == start);
    change = cut(0, 1, 0, 1);
    assert_true(r2_health_map_merge(&map, &change));
    cut_digest = r2_health_map_digest(&map);
    assert_true(cut_digest != start && cut_digest != dead);
    change.entry.version = 2;
    assert_true(r2_health_map_merge(&map, &change));
    assert_true(r2_health_map_digest(&map) == start);
    r2_health_map_fini(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merge_is_a_semilattice), cmocka_unit_test(exceptions_are_bounded),
        cmocka_unit_test(path_versions),          cmocka_unit_test(lookups),
        cmocka_unit_test(refused),                cmocka_unit_test(digest),
        cmocka_unit_test(join),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
