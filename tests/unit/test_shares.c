/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Topology, shares and predicted times: known values, properties of random maps, every division
 * tried.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/util.h"
#include "plan/cost.h"
#include "plan/order.h"
#include "r2/prng.h"

/* No cost but that of the rails. */
static const r2_cost_params_t wire_only = {.alpha_ns = 0, .reduce_mbytes_per_s = {UINT32_MAX}};
static const uint64_t vector_bytes = (uint64_t) 1 << 30;

/** What a failed property was found on. */
static void print_topology(const r2_topology_t *topology)
{
    for (uint32_t h = 0; h < topology->host_count; h++) {
        print_error("host %u:", h);
        for (uint32_t rail = 0; rail < topology->rail_count; rail++) {
            print_error(" %lu", (unsigned long) r2_topology_rail_rate(topology, h, rail));
        }
        print_error("\n");
    }
    for (uint32_t c = 0; c < topology->cut_count; c++) {
        print_error("cut %u-%u rail %u\n", topology->cuts[c].host_a, topology->cuts[c].host_b,
                    topology->cuts[c].rail);
    }
}

static void assert_not_above(uint64_t ns, uint64_t limit, const r2_topology_t *topology)
{
    if (ns - ns / 1024 > limit) {
        print_error("%lu ns, not %lu:\n", (unsigned long) ns, (unsigned long) limit);
        print_topology(topology);
        fail();
    }
}

/** A topology with its classes and shares, one rank per host. */
typedef struct fixture {
    r2_topology_t topology;
    r2_classes_t classes;
    r2_shares_t shares;
} fixture_t;

static void solve(fixture_t *f)
{
    assert_int_equal(R2_OK, r2_classes_init(&f->classes, &f->topology, R2_MEMBERS_RANKS));
    assert_int_equal(R2_OK, r2_shares_solve(&f->shares, &f->classes));
}

static void done(fixture_t *f)
{
    r2_shares_fini(&f->shares);
    r2_classes_fini(&f->classes);
    r2_topology_fini(&f->topology);
}

static void start(fixture_t *f, uint32_t hosts, uint32_t rails, int32_t ranks)
{
    assert_int_equal(R2_OK, r2_topology_init(&f->topology, hosts, rails, ranks, 1000));
}

static uint64_t weighted_ns(const fixture_t *f)
{
    return r2_cost_exchange_ns(&f->classes, &f->shares, &wire_only, vector_bytes);
}

static uint64_t equal_ns(const fixture_t *f)
{
    r2_shares_t equal;
    uint64_t ns;

    assert_int_equal(R2_OK, r2_shares_equal(&equal, &f->classes));
    ns = r2_cost_exchange_ns(&f->classes, &equal, &wire_only, vector_bytes);
    r2_shares_fini(&equal);
    return ns;
}

/** a within 1/2^16 of b. */
static void assert_near(uint64_t a, uint64_t b)
{
    assert_in_range(a, b - b / 65536, b + b / 65536);
}

static uint64_t share_ppm(const r2_shares_t *shares, uint32_t host)
{
    unsigned __int128 sum = 0;

    for (uint32_t h = 0; h < shares->host_count; h++) {
        sum += shares->weight[h];
    }
    return (uint64_t) ((unsigned __int128) shares->weight[host] * 1000000 / sum);
}

/* X = 1/8, 1/4, 1/2 of 4 hosts: 96.9, 93.8 and 75 % of the healthy throughput. */
static void test_known_throughput(void **state)
{
    static const struct {
        uint32_t rails, dead;
        uint64_t permille;
    } known[] = {{8, 1, 968}, {4, 1, 937}, {4, 2, 750}, {4, 0, 1000}};

    (void) state;
    for (size_t i = 0; i < r2_array_count(known); i++) {
        fixture_t f;
        uint64_t healthy;

        start(&f, 4, known[i].rails, 4);
        healthy = r2_cost_bound_ns(&f.topology, vector_bytes);
        for (uint32_t rail = 0; rail < known[i].dead; rail++) {
            r2_topology_set_capacity(&f.topology, 2, rail, 0);
        }
        solve(&f);
        assert_true(f.shares.routable);
        assert_int_equal(known[i].permille, healthy * 1000 / weighted_ns(&f));
        assert_near(weighted_ns(&f), r2_cost_bound_ns(&f.topology, vector_bytes));
        done(&f);
    }
}

/* n = 4, X = 1/4: T* = 6 / 3.75 = 1.6, shares (1.6 x 0.75 - 1) / 2 = 0.1 and 0.3. */
static void test_known_shares(void **state)
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
    for (uint32_t h = 0; h < 4; h++) {
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
    for (uint32_t h = 0; h < 3; h++) {
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
    for (uint32_t h = 0; h < f.topology.host_count; h++) {
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
    for (int32_t r = 0; r < 8; r++) {
        f.topology.host_of[r] = host_of[r];
    }
    r2_topology_set_capacity(&f.topology, 2, 1, 0);
    solve(&f);
    assert_int_equal(R2_OK, r2_shares_layout(&f.shares, &f.topology, 1000000, 1, &layout));
    for (int32_t r = 0; r < 8; r++) {
        bytes[host_of[r]] += r2_layout_bytes(&layout, r);
    }
    for (uint32_t h = 0; h < 5; h++) {
        const uint64_t expected = share_ppm(&f.shares, h);

        assert_in_range(bytes[h], expected - r2_min(expected, 2u), expected + 2);
    }
    r2_layout_fini(&layout);
    done(&f);
}

static void random_topology(r2_prng_t *prng, fixture_t *f)
{
    const uint32_t hosts = (uint32_t) r2_prng_between(prng, 1, 16);
    const uint32_t rails = (uint32_t) r2_prng_between(prng, 1, 8);
    const int32_t ranks =
        (int32_t) (hosts + (r2_prng_chance(prng, 300000) ? r2_prng_below(prng, 9) : 0));
    const uint64_t faults = r2_prng_below(prng, 6);

    start(f, hosts, rails, ranks);
    f->topology.any_pairing = r2_prng_chance(prng, 200000);
    for (uint32_t i = 0; r2_prng_chance(prng, 200000) && i < hosts * rails; i++) {
        f->topology.rate_mbytes_per_s[i] = (uint32_t) r2_prng_between(prng, 100, 50000);
    }
    for (uint64_t i = 0; i < faults; i++) {
        const uint32_t host = (uint32_t) r2_prng_below(prng, hosts);
        const uint32_t rail = (uint32_t) r2_prng_below(prng, rails);

        if (r2_prng_chance(prng, 200000)) {
            r2_topology_cut(&f->topology, host, (uint32_t) r2_prng_below(prng, hosts), rail);
        } else {
            r2_topology_set_capacity(&f->topology, host, rail,
                                     (uint32_t) r2_prng_below(prng, R2_CAPACITY_FULL));
        }
    }
}

static void check_layout(const fixture_t *f, uint64_t count)
{
    r2_layout_t layout;
    uint64_t largest = 0;

    assert_int_equal(R2_OK, r2_shares_layout(&f->shares, &f->topology, count, 4, &layout));
    assert_int_equal(0, layout.start[0]);
    assert_int_equal(count * 4, layout.start[f->topology.rank_count]);
    for (int32_t r = 0; r < f->topology.rank_count; r++) {
        const uint64_t bytes = r2_layout_bytes(&layout, r);

        assert_true(layout.start[r] <= layout.start[r + 1]);
        assert_int_equal(0, bytes % 4);
        largest = r2_max(largest, bytes);
        if (0 == f->shares.weight[f->topology.host_of[r]]) {
            assert_int_equal(0, bytes);
        }
    }
    assert_int_equal(largest, layout.largest_bytes);
    r2_layout_fini(&layout);
}

/* Hosts without capacity own nothing, unless the form of the exchange leaves no choice. */
static void check_dead_hosts(const fixture_t *f)
{
    for (uint32_t h = 0; 1 < f->topology.host_count && h < f->topology.host_count; h++) {
        if (0 == r2_topology_host_rate(&f->topology, h)) {
            assert_true(0 == f->shares.weight[h] || r2_shares_are_equal(&f->shares, &f->classes));
            assert_false(f->shares.routable);
        }
    }
}

/** A direct exchange needs a way between all hosts, a ring only between some. */
static bool all_pairs_share(const r2_topology_t *topology)
{
    for (uint32_t a = 0; a < topology->host_count; a++) {
        for (uint32_t b = a + 1; b < topology->host_count; b++) {
            if (0 == r2_topology_pair_rate(topology, a, b)) {
                return false;
            }
        }
    }
    return true;
}

static void test_random_maps(void **state)
{
    r2_prng_t prng;
    unsigned weighted_wins = 0, ring_known = 0;

    (void) state;
    r2_prng_seed(&prng, 20260704);
    for (int i = 0; i < 20000; i++) {
        fixture_t f, again;
        uint64_t weighted, bound;

        random_topology(&prng, &f);
        again.topology = f.topology;
        solve(&f);
        solve(&again);
        assert_memory_equal(f.shares.weight, again.shares.weight,
                            f.shares.host_count * sizeof(*f.shares.weight));
        r2_shares_fini(&again.shares);
        r2_classes_fini(&again.classes);
        weighted = weighted_ns(&f);
        bound = r2_cost_bound_ns(&f.topology, vector_bytes);
        assert_true(weighted >= bound);
        assert_int_equal(f.shares.routable, R2_COST_NEVER != weighted);
        if (f.shares.routable) {
            const uint64_t ring = r2_cost_ring_ns(&f.topology, NULL, &wire_only, vector_bytes);

            assert_not_above(weighted, equal_ns(&f), &f.topology);
            weighted_wins += weighted < equal_ns(&f) - equal_ns(&f) / 256 ? 1 : 0;
            /* several ranks per host send more than a ring does: the hierarchical form is for them
             */
            if (f.topology.rank_count == (int32_t) f.topology.host_count &&
                all_pairs_share(&f.topology)) {
                assert_not_above(weighted, ring, &f.topology);
                ring_known++;
            }
        }
        check_layout(&f, r2_prng_below(&prng, 100000));
        check_dead_hosts(&f);
        done(&f);
    }
    assert_true(weighted_wins > 2000);
    assert_true(ring_known > 5000);
}

/** Least time over all divisions into `parts` equal pieces of host h onwards. */
static uint64_t best_division(const fixture_t *f, r2_shares_t *tried, uint32_t host, uint64_t left)
{
    uint64_t best = R2_COST_NEVER;

    if (host + 1 == tried->host_count) {
        tried->weight[host] = left;
        return r2_cost_exchange_ns(&f->classes, tried, &wire_only, vector_bytes);
    }
    for (uint64_t part = 0; part <= left; part++) {
        uint64_t ns;

        tried->weight[host] = part;
        ns = best_division(f, tried, host + 1, left - part);
        best = r2_min(best, ns);
    }
    return best;
}

/* Every division into 24 parts, shared rails of pairs included: none beats the solver. */
static void test_every_division(void **state)
{
    r2_prng_t prng;
    unsigned divided = 0;

    (void) state;
    r2_prng_seed(&prng, 7);
    for (int i = 0; i < 1000; i++) {
        uint64_t weights[4];
        r2_shares_t tried = {.weight = weights};
        fixture_t f;
        uint64_t best;

        tried.host_count = (uint32_t) r2_prng_between(&prng, 3, 4);
        start(&f, tried.host_count, (uint32_t) r2_prng_between(&prng, 1, 4),
              (int32_t) tried.host_count);
        for (uint64_t n = r2_prng_below(&prng, 8); n > 0; n--) {
            r2_topology_set_capacity(&f.topology, (uint32_t) r2_prng_below(&prng, 4),
                                     (uint32_t) r2_prng_below(&prng, 4),
                                     (uint32_t) (8 * r2_prng_below(&prng, 2)));
        }
        solve(&f);
        /* classes are told apart by their first host; a division must treat hosts one by one */
        for (uint32_t h = 0; h < tried.host_count; h++) {
            weights[h] = 0;
        }
        if (f.classes.count == tried.host_count) {
            best = best_division(&f, &tried, 0, 24);
            divided++;
            assert_not_above(weighted_ns(&f), best, &f.topology);
        }
        done(&f);
    }
    assert_true(divided > 50);
}

static uint64_t ring_ns(const r2_topology_t *topology, const int32_t *order)
{
    return r2_cost_ring_ns(topology, order, &wire_only, vector_bytes);
}

/** A circle holds each rank once, is never slower than that of ranks, and often mends what is
 * broken. */
static void test_ring_order(void **state)
{
    unsigned mended = 0;
    r2_prng_t prng;

    (void) state;
    r2_prng_seed(&prng, 5);
    for (int i = 0; i < 5000; i++) {
        int32_t order[32], again[32];
        uint64_t seen = 0;
        fixture_t f;

        random_topology(&prng, &f);
        assert_int_equal(R2_OK, r2_order_ring(&f.topology, f.topology.rank_count, order));
        assert_int_equal(R2_OK, r2_order_ring(&f.topology, f.topology.rank_count, again));
        assert_memory_equal(order, again, (size_t) f.topology.rank_count * sizeof(*order));
        for (int32_t r = 0; r < f.topology.rank_count; r++) {
            seen |= (uint64_t) 1 << order[r];
        }
        assert_int_equal(((uint64_t) 1 << f.topology.rank_count) - 1, seen);
        assert_true(ring_ns(&f.topology, order) <= ring_ns(&f.topology, NULL));
        mended += ring_ns(&f.topology, order) < ring_ns(&f.topology, NULL) ? 1 : 0;
        r2_topology_fini(&f.topology);
    }
    assert_true(mended > 100);
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
        cmocka_unit_test(test_known_throughput),
        cmocka_unit_test(test_known_shares),
        cmocka_unit_test(test_two_hosts),
        cmocka_unit_test(test_nothing_shared),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_no_way),
        cmocka_unit_test(test_random_maps),
        cmocka_unit_test(test_every_division),
        cmocka_unit_test(test_ring_order),
        cmocka_unit_test(test_bridge),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_many_classes),
        cmocka_unit_test(test_ranks_of_a_host),
        cmocka_unit_test(test_digest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
