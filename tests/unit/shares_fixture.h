/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A topology with its shares and their predicted times.
 */
#ifndef R2_TESTS_SHARES_FIXTURE_H
#define R2_TESTS_SHARES_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/util.h"
#include "plan/cost.h"

/* No cost but that of the rails. */
static const r2_cost_params_t wire_only = {.alpha_ns = 0, .reduce_mbytes_per_s = {UINT32_MAX}};
static const uint64_t vector_bytes = (uint64_t) 1 << 30;

/** What a failed property was found on. */
static inline void print_topology(const r2_topology_t *topology)
{
    for (uint32_t h = 0; h < topology->host_count; ++h) {
        print_error("host %u:", h);
        for (uint32_t rail = 0; rail < topology->rail_count; ++rail) {
            print_error(" %lu", (unsigned long) r2_topology_rail_rate(topology, h, rail));
        }
        print_error("\n");
    }
    for (uint32_t c = 0; c < topology->cut_count; ++c) {
        print_error("cut %u-%u rail %u\n", topology->cuts[c].host_a, topology->cuts[c].host_b,
                    topology->cuts[c].rail);
    }
}

static inline void assert_not_above(uint64_t ns, uint64_t limit, const r2_topology_t *topology)
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

static inline void solve(fixture_t *f)
{
    assert_int_equal(R2_OK, r2_classes_init(&f->classes, &f->topology, R2_MEMBERS_RANKS));
    assert_int_equal(R2_OK, r2_shares_solve(&f->shares, &f->classes));
}

static inline void done(fixture_t *f)
{
    r2_shares_fini(&f->shares);
    r2_classes_fini(&f->classes);
    r2_topology_fini(&f->topology);
}

static inline void start(fixture_t *f, uint32_t hosts, uint32_t rails, int32_t ranks)
{
    assert_int_equal(R2_OK, r2_topology_init(&f->topology, hosts, rails, ranks, 1000));
}

static inline uint64_t weighted_ns(const fixture_t *f)
{
    return r2_cost_exchange_ns(&f->classes, &f->shares, &wire_only, vector_bytes);
}

static inline uint64_t equal_ns(const fixture_t *f)
{
    r2_shares_t equal;
    uint64_t ns;

    assert_int_equal(R2_OK, r2_shares_equal(&equal, &f->classes));
    ns = r2_cost_exchange_ns(&f->classes, &equal, &wire_only, vector_bytes);
    r2_shares_fini(&equal);
    return ns;
}

/** a within 1/2^16 of b. */
static inline void assert_near(uint64_t a, uint64_t b)
{
    assert_in_range(a, b - b / 65536, b + b / 65536);
}

static inline uint64_t share_ppm(const r2_shares_t *shares, uint32_t host)
{
    unsigned __int128 sum = 0;

    for (uint32_t h = 0; h < shares->host_count; ++h) {
        sum += shares->weight[h];
    }
    return (uint64_t) ((unsigned __int128) shares->weight[host] * 1000000 / sum);
}

#endif
