/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Shares and circles of random maps: properties, every division tried.
 */
#include "r2_config.h"

#include "plan/order.h"
#include "r2/prng.h"
#include "shares_fixture.h"

static void random_topology(r2_prng_t *prng, fixture_t *f)
{
    const uint32_t hosts = (uint32_t) r2_prng_between(prng, 1, 16);
    const uint32_t rails = (uint32_t) r2_prng_between(prng, 1, 8);
    const int32_t ranks =
        (int32_t) (hosts + (r2_prng_chance(prng, 300000) ? r2_prng_below(prng, 9) : 0));
    const uint64_t faults = r2_prng_below(prng, 6);

    start(f, hosts, rails, ranks);
    f->topology.any_pairing = r2_prng_chance(prng, 200000);
    for (uint32_t i = 0; r2_prng_chance(prng, 200000) && i < hosts * rails; ++i) {
        f->topology.rate_mbytes_per_s[i] = (uint32_t) r2_prng_between(prng, 100, 50000);
    }
    for (uint64_t i = 0; i < faults; ++i) {
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
    for (int32_t r = 0; r < f->topology.rank_count; ++r) {
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
    for (uint32_t h = 0; 1 < f->topology.host_count && h < f->topology.host_count; ++h) {
        if (0 == r2_topology_host_rate(&f->topology, h)) {
            assert_true(0 == f->shares.weight[h] || r2_shares_are_equal(&f->shares, &f->classes));
            assert_false(f->shares.routable);
        }
    }
}

/** A direct exchange needs a way between all hosts, a ring only between some. */
static bool all_pairs_share(const r2_topology_t *topology)
{
    for (uint32_t a = 0; a < topology->host_count; ++a) {
        for (uint32_t b = a + 1; b < topology->host_count; ++b) {
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
    for (int i = 0; i < 20000; ++i) {
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
            /* several ranks per host send more than a ring does: the hierarchical form is for
             * them */
            if (f.topology.rank_count == (int32_t) f.topology.host_count &&
                all_pairs_share(&f.topology)) {
                assert_not_above(weighted, ring, &f.topology);
                ++ring_known;
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
    for (uint64_t part = 0; part <= left; ++part) {
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
    for (int i = 0; i < 1000; ++i) {
        uint64_t weights[4];
        r2_shares_t tried = {.weight = weights};
        fixture_t f;
        uint64_t best;

        tried.host_count = (uint32_t) r2_prng_between(&prng, 3, 4);
        start(&f, tried.host_count, (uint32_t) r2_prng_between(&prng, 1, 4),
              (int32_t) tried.host_count);
        for (uint64_t n = r2_prng_below(&prng, 8); n > 0; --n) {
            r2_topology_set_capacity(&f.topology, (uint32_t) r2_prng_below(&prng, 4),
                                     (uint32_t) r2_prng_below(&prng, 4),
                                     (uint32_t) (8 * r2_prng_below(&prng, 2)));
        }
        solve(&f);
        /* classes are told apart by their first host; a division must treat hosts one by one */
        for (uint32_t h = 0; h < tried.host_count; ++h) {
            weights[h] = 0;
        }
        if (f.classes.count == tried.host_count) {
            best = best_division(&f, &tried, 0, 24);
            ++divided;
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
    for (int i = 0; i < 5000; ++i) {
        int32_t order[32], again[32];
        uint64_t seen = 0;
        fixture_t f;

        random_topology(&prng, &f);
        assert_int_equal(R2_OK, r2_order_ring(&f.topology, f.topology.rank_count, order));
        assert_int_equal(R2_OK, r2_order_ring(&f.topology, f.topology.rank_count, again));
        assert_memory_equal(order, again, (size_t) f.topology.rank_count * sizeof(*order));
        for (int32_t r = 0; r < f.topology.rank_count; ++r) {
            seen |= (uint64_t) 1 << order[r];
        }
        assert_int_equal(((uint64_t) 1 << f.topology.rank_count) - 1, seen);
        assert_true(ring_ns(&f.topology, order) <= ring_ns(&f.topology, NULL));
        mended += ring_ns(&f.topology, order) < ring_ns(&f.topology, NULL) ? 1 : 0;
        r2_topology_fini(&f.topology);
    }
    assert_true(mended > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_maps),
        cmocka_unit_test(test_every_division),
        cmocka_unit_test(test_ring_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
