/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Topology, shares and predicted times: known values.
 */
#include "r2_config.h"

#include "plan/order.h"
#include "shares_fixture.h"

/* X = 1/8, 1/4, 1/2 of 4 hosts: 96.9, 93.8 and 75 % of the healthy throughput. */
static void test_estimated_throughput(void **state)
{
    static const struct {
        uint32_t rails, dead;
        uint64_t permille;
    } estimate[] = {{8, 1, 968}, {4, 1, 937}, {4, 2, 750}, {4, 0, 1000}};

    (void) state;
    for (size_t i = 0; i < r2_array_count(estimate); ++i) {
        fixture_t f;
        uint64_t healthy;

        start(&f, 4, estimate[i].rails, 4);
        healthy = r2_cost_bound_ns(&f.topology, vector_bytes);
        for (uint32_t rail = 0; rail < estimate[i].dead; ++rail) {
            r2_topology_set_capacity(&f.topology, 2, rail, 0);
        }
        solve(&f);
        assert_true(f.shares.routable);
        assert_int_equal(estimate[i].permille, healthy * 1000 / weighted_ns(&f));
        assert_near(weighted_ns(&f), r2_cost_bound_ns(&f.topology, vector_bytes));
        done(&f);
    }
}

/* n = 4, X = 1/4: T* = 6 / 3.75 = 1.6, shares (1.6 x 0.75 - 1) / 2 = 0.1 and 0.3. */
static void test_estimated_shares(void **state)
{
    fixture_t f;

    (void) state;
    start(&f, 4, 4, 4);
    r2_topology_set_capacity(&f.topology, 1, 3, 0);
    solve(&f);
    assert_in_range(share_ppm(&f.shares, 0), 299999, 300000);
    assert_in_range(share_ppm(&f.shares, 1), 99999, 100001);
    assert_false(r2_shares_are_equal(&f.shares, &f.classes));
    done(&f);
}

static void test_two_hosts(void **state)
{
    fixture_t f;

    (void) state;
    start(&f, 2, 4, 2);
    r2_topology_set_capacity(&f.topology, 1, 3, 0);
    solve(&f);
    assert_true(r2_shares_are_equal(&f.shares, &f.classes));
    assert_int_equal(equal_ns(&f), weighted_ns(&f));
    done(&f);
}

/* Hosts 0 and 1 share no rail: both own nothing, and the bound is still met. */
static void test_nothing_shared(void **state)
{
    fixture_t f;

    (void) state;
    start(&f, 4, 2, 4);
    r2_topology_set_capacity(&f.topology, 0, 1, 0);
    r2_topology_set_capacity(&f.topology, 1, 0, 0);
    solve(&f);
    assert_true(f.shares.routable);
    assert_int_equal(0, share_ppm(&f.shares, 0));
    assert_int_equal(0, share_ppm(&f.shares, 1));
    assert_near(weighted_ns(&f), r2_cost_bound_ns(&f.topology, vector_bytes));
    assert_int_equal(R2_COST_NEVER, equal_ns(&f));
    done(&f);
}

/* The same by broken paths instead of dead rails: half of the rate of six hosts stays. */
static void test_cut(void **state)
{
    fixture_t f;

    (void) state;
    start(&f, 6, 2, 6);
    assert_true(r2_topology_cut(&f.topology, 4, 1, 0));
    assert_true(r2_topology_cut(&f.topology, 1, 4, 1));
    assert_true(r2_topology_cut(&f.topology, 1, 4, 1));
    assert_int_equal(2, f.topology.cut_count);
    assert_false(r2_topology_cut(&f.topology, 1, 1, 0));
    assert_false(r2_topology_cut(&f.topology, 1, 6, 0));
    assert_int_equal(0, r2_topology_pair_rate(&f.topology, 1, 4));
    solve(&f);
    assert_true(f.shares.routable);
    assert_int_equal(0, share_ppm(&f.shares, 1));
    assert_int_equal(0, share_ppm(&f.shares, 4));
    assert_int_not_equal(R2_COST_NEVER, weighted_ns(&f));
    done(&f);
}

static void test_no_way(void **state)
{
    fixture_t f;

    (void) state;
    start(&f, 4, 2, 4);
    for (uint32_t h = 0; h < 4; ++h) {
        r2_topology_set_capacity(&f.topology, h, h % 2, 0);
    }
    solve(&f);
    assert_false(f.shares.routable);
    assert_int_equal(R2_COST_NEVER, weighted_ns(&f));
    done(&f);
    start(&f, 4, 2, 4);
    r2_topology_set_capacity(&f.topology, 3, 0, 0);
    r2_topology_set_capacity(&f.topology, 3, 1, 0);
    solve(&f);
    assert_false(f.shares.routable);
    assert_int_equal(0, share_ppm(&f.shares, 3));
    assert_int_equal(R2_COST_NEVER, r2_cost_bound_ns(&f.topology, 1));
    done(&f);
}

/* Hosts 0 and 1 have rail 0 only, host 2 rail 1: equal rates, and yet two classes. */
static void test_classes(void **state)
{
    fixture_t f;

    (void) state;
    start(&f, 6, 2, 6);
    r2_topology_set_capacity(&f.topology, 0, 1, 0);
    r2_topology_set_capacity(&f.topology, 1, 1, 0);
    r2_topology_set_capacity(&f.topology, 2, 0, 0);
    solve(&f);
    assert_int_equal(3, f.classes.count);
    assert_true(f.shares.routable);
    for (uint32_t h = 0; h < 3; ++h) {
        assert_int_equal(0, share_ppm(&f.shares, h));
    }
    done(&f);
}

/* More classes than pairs are looked at for: a host without rails is still seen. */
static void test_many_classes(void **state)
{
    fixture_t f;

    (void) state;
    start(&f, 3 * R2_CLASSES_PAIRED_MAX, 1, 3 * R2_CLASSES_PAIRED_MAX);
    for (uint32_t h = 0; h < f.topology.host_count; ++h) {
        f.topology.rate_mbytes_per_s[h] = 1000 + h;
    }
    solve(&f);
    assert_null(f.classes.pairs);
    assert_true(f.shares.routable);
    assert_near(weighted_ns(&f), r2_cost_bound_ns(&f.topology, vector_bytes));
    r2_shares_fini(&f.shares);
    r2_classes_fini(&f.classes);
    r2_topology_set_capacity(&f.topology, 5, 0, 0);
    solve(&f);
    assert_false(f.shares.routable);
    assert_int_equal(0, share_ppm(&f.shares, 5));
    done(&f);
}

/* Ranks divide their host's share, however many there are. */
static void test_ranks_of_a_host(void **state)
{
    static const uint32_t host_of[] = {0, 1, 1, 1, 2, 3, 3, 4};
    uint64_t bytes[5] = {0};
    r2_layout_t layout;
    fixture_t f;

    (void) state;
    start(&f, 5, 4, 8);
    for (int32_t r = 0; r < 8; ++r) {
        f.topology.host_of[r] = host_of[r];
    }
    r2_topology_set_capacity(&f.topology, 2, 1, 0);
    solve(&f);
    assert_int_equal(R2_OK, r2_shares_layout(&f.shares, &f.topology, 1000000, 1, &layout));
    for (int32_t r = 0; r < 8; ++r) {
        bytes[host_of[r]] += r2_layout_bytes(&layout, r);
    }
    for (uint32_t h = 0; h < 5; ++h) {
        const uint64_t expected = share_ppm(&f.shares, h);

        assert_in_range(bytes[h], expected - r2_min(expected, 2u), expected + 2);
    }
    r2_layout_fini(&layout);
    done(&f);
}

/** Hosts 1 and 2 share no rail: host 0 goes between them. */
static void test_bridge(void **state)
{
    const int32_t expected[] = {1, 0, 2, 3};
    int32_t order[4];
    fixture_t f;

    (void) state;
    start(&f, 4, 2, 4);
    r2_topology_set_capacity(&f.topology, 1, 1, 0);
    r2_topology_set_capacity(&f.topology, 2, 0, 0);
    assert_int_equal(R2_OK, r2_order_ring(&f.topology, 4, order));
    assert_memory_equal(expected, order, sizeof(order));
    r2_topology_fini(&f.topology);
}

static void test_digest(void **state)
{
    r2_topology_t a, b;

    (void) state;
    assert_int_equal(R2_OK, r2_topology_init(&a, 4, 2, 8, 1000));
    assert_int_equal(R2_OK, r2_topology_init(&b, 4, 2, 8, 1000));
    assert_int_equal(3, a.host_of[7]);
    assert_int_equal(0, a.host_of[1]);
    assert_true(r2_topology_digest(&a) == r2_topology_digest(&b));
    assert_true(r2_topology_is_healthy(&a));
    r2_topology_set_capacity(&a, 1, 1, 15);
    assert_false(r2_topology_is_healthy(&a));
    assert_true(r2_topology_digest(&a) != r2_topology_digest(&b));
    r2_topology_set_capacity(&a, 1, 1, 99);
    r2_topology_set_capacity(&a, 4, 0, 0);
    assert_true(r2_topology_digest(&a) == r2_topology_digest(&b));
    r2_topology_cut(&a, 0, 1, 0);
    r2_topology_cut(&a, 2, 3, 1);
    assert_false(r2_topology_is_healthy(&a));
    assert_true(r2_topology_digest(&a) != r2_topology_digest(&b));
    r2_topology_cut(&b, 3, 2, 1);
    r2_topology_cut(&b, 1, 0, 0);
    assert_true(r2_topology_digest(&a) == r2_topology_digest(&b));
    b.host_of[1] = 1;
    assert_true(r2_topology_digest(&a) != r2_topology_digest(&b));
    r2_topology_fini(&a);
    r2_topology_fini(&b);
    assert_int_equal(R2_ERR_PARAM, r2_topology_init(&a, 4, 2, 3, 1000));
    assert_int_equal(R2_ERR_PARAM, r2_topology_init(&a, 4, 0, 4, 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_estimated_throughput),
        cmocka_unit_test(test_estimated_shares),
        cmocka_unit_test(test_two_hosts),
        cmocka_unit_test(test_nothing_shared),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_no_way),
        cmocka_unit_test(test_bridge),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_many_classes),
        cmocka_unit_test(test_ranks_of_a_host),
        cmocka_unit_test(test_digest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
