/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Agreed maps are shared by all that agree on the same, and made anew by map syncs.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "ctx/map_sync.h"

#define HOSTS 5u
#define RAILS 3u

static const uint32_t host_of[] = {0, 1, 2, 3, 4, 0, 1};

static r2_hosts_t job_hosts(r2_host_t *hosts)
{
    static r2_host_rail_t rails[RAILS];

    for (uint32_t i = 0; i < HOSTS; ++i) {
        hosts[i] = (r2_host_t){.name = "h", .rails = rails, .rail_count = RAILS};
    }
    return (r2_hosts_t){.rank_count = r2_array_count(host_of), .host_count = HOSTS,
                        .host_of = (uint32_t *) (uintptr_t) host_of, .hosts = hosts};
}

static r2_health_change_t dead(uint32_t host, uint32_t rail, uint32_t version)
{
    return (r2_health_change_t){.host_a = host, .rail = rail,
                                .entry = {.version = version, .verdict = R2_VERDICT_NIC}};
}

static void equal_maps_are_one(void **state)
{
    const r2_health_change_t change = dead(1, 2, 7);
    r2_shared_map_t *list = NULL, *a, *b, *c, *shared;

    (void) state;
    a = r2_shared_map_create(HOSTS, RAILS);
    b = r2_shared_map_create(HOSTS, RAILS);
    c = r2_shared_map_create(HOSTS, RAILS);
    assert_true(r2_health_map_merge(&c->map, &change));
    a = r2_shared_map_share(&list, a);
    shared = r2_shared_map_share(&list, b);
    assert_ptr_equal(shared, a);
    c = r2_shared_map_share(&list, c);
    assert_ptr_not_equal(c, a);
    r2_shared_map_put(a);
    assert_ptr_equal(list, c);
    assert_ptr_equal(c->next, a); /* still used by `shared` */
    r2_shared_map_put(shared);
    assert_null(c->next);
    r2_shared_map_put(r2_shared_map_get(c));
    assert_ptr_equal(list, c);
    r2_shared_map_put(c);
    assert_null(list);
}

/* Digests are no proof: maps that differ in a version only plan the same and must not be one. */
static void versions_tell_maps_apart(void **state)
{
    const r2_health_change_t change = {.host_a = 1, .rail = 2,
                                       .entry = {.version = 2, .capacity = R2_CAPACITY_FULL}};
    r2_shared_map_t *list = NULL, *a, *b;

    (void) state;
    a = r2_shared_map_create(HOSTS, RAILS);
    b = r2_shared_map_create(HOSTS, RAILS);
    assert_true(r2_health_map_merge(&b->map, &change));
    assert_true(r2_health_map_digest(&a->map) == r2_health_map_digest(&b->map));
    a = r2_shared_map_share(&list, a);
    b = r2_shared_map_share(&list, b);
    assert_ptr_not_equal(a, b);
    r2_shared_map_put(a);
    r2_shared_map_put(b);
    assert_null(list);
}

static r2_plan_env_t *env_of(const r2_hosts_t *hosts, const uint32_t *ranks, int32_t size)
{
    r2_plan_env_t *env = NULL;

    assert_int_equal(r2_plan_env_create(hosts, ranks, size, RAILS, &env), R2_OK);
    return env;
}

/* Two communicators of the same shape on other hosts must not be one: the same map means another
 * thing there. */
static void bases_are_shared_by_hosts(void **state)
{
    static const uint32_t here[] = {0, 1}, twin[] = {5, 6}, there[] = {2, 3};
    const r2_health_change_t change = dead(1, 0, 1);
    r2_host_t table[HOSTS];
    const r2_hosts_t hosts = job_hosts(table);
    r2_plan_env_t *list = NULL, *a, *b, *c, *next;
    r2_health_map_t map;

    (void) state;
    a = r2_plan_env_share(&list, env_of(&hosts, here, 2));
    b = r2_plan_env_share(&list, env_of(&hosts, twin, 2));
    c = r2_plan_env_share(&list, env_of(&hosts, there, 2));
    assert_ptr_equal(a, b);
    assert_ptr_not_equal(a, c);
    assert_int_equal(r2_plan_env_copy(a, &next), R2_OK);
    assert_int_equal(r2_health_map_init(&map, HOSTS, RAILS), R2_OK);
    assert_true(r2_health_map_merge(&map, &change));
    r2_plan_env_apply(next, &map);
    next = r2_plan_env_share(&list, next);
    assert_ptr_not_equal(next, a);
    /* who keeps it sees no change */
    assert_int_equal(a->topology.capacity[1 * RAILS], R2_CAPACITY_FULL);
    assert_int_equal(next->topology.capacity[1 * RAILS], 0);
    r2_plan_env_put(next);
    r2_plan_env_put(a);
    r2_plan_env_put(b);
    r2_plan_env_put(c);
    assert_null(list);
    r2_health_map_fini(&map);
}

/* Three ranks know different things; whoever reduces whose map, all end with the same. */
static void a_sync_brings_all_together(void **state)
{
    static const uint32_t all[] = {0, 1, 2, 3, 4};
    const r2_health_change_t changes[] = {
        dead(0, 0, 3), dead(4, 2, 1),
        {.is_path = true, .host_a = 1, .host_b = 3, .rail = 1, .entry = {.version = 1}}};
    r2_host_t table[HOSTS];
    const r2_hosts_t hosts = job_hosts(table);
    r2_cost_params_t cost = {.alpha_ns = 5};
    r2_shared_map_t *agreed = r2_shared_map_create(HOSTS, RAILS);
    r2_plan_env_t *env = env_of(&hosts, all, 5);
    r2_map_sync_t *syncs[3];

    (void) state;
    for (uint32_t i = 0; i < 3; ++i) {
        r2_health_map_t ours;

        assert_int_equal(r2_health_map_init(&ours, HOSTS, RAILS), R2_OK);
        assert_true(r2_health_map_merge(&ours, &changes[i]));
        assert_true(r2_map_sync_matters(&agreed->map, &ours));
        assert_int_equal(r2_map_sync_create(agreed, env, &ours, 1 == i ? 9 : 0, &cost, &syncs[i]),
                         R2_OK);
        r2_health_map_fini(&ours);
    }
    for (uint32_t i = 0; i < 3; ++i) { /* each in an order of its own */
        memcpy(syncs[i]->taken, syncs[i]->given, syncs[i]->bytes);
        r2_map_sync_reduce(syncs[i], syncs[(i + 1) % 3]->given, syncs[i]->taken, 1);
        r2_map_sync_reduce(syncs[i], syncs[(i + 2) % 3]->given, syncs[i]->taken, 1);
        assert_memory_equal(syncs[i]->taken, syncs[0]->taken, syncs[0]->bytes);
    }
    for (uint32_t i = 0; i < 3; ++i) {
        assert_true(r2_map_sync_take(syncs[i]));
        assert_int_equal(syncs[i]->env->cost_version, 9);
        assert_int_equal(r2_health_map_entry(&syncs[i]->next->map, 0, 0)->capacity, 0);
        assert_int_equal(r2_health_map_entry(&syncs[i]->next->map, 4, 2)->capacity, 0);
        assert_true(r2_health_map_is_cut(&syncs[i]->next->map, 3, 1, 1));
        assert_true(syncs[i]->env->map_digest == syncs[0]->env->map_digest);
        assert_true(env->map_digest != syncs[0]->env->map_digest);
        assert_false(r2_map_sync_matters(&syncs[i]->next->map, &syncs[0]->next->map));
    }
    for (uint32_t i = 0; i < 3; ++i) {
        r2_map_sync_destroy(syncs[i]);
    }
    r2_map_sync_destroy(NULL);
    r2_shared_map_put(agreed);
    r2_plan_env_put(env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_maps_are_one),
        cmocka_unit_test(versions_tell_maps_apart),
        cmocka_unit_test(bases_are_shared_by_hosts),
        cmocka_unit_test(a_sync_brings_all_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
