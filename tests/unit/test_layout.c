/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Lengths of segments: by the length of a block, and by how fast the rails are told to be.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plan/layout.h"
#include "r2/topology.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

static r2_plan_input_t input_of(const r2_topology_t *topology)
{
    return (r2_plan_input_t){.kind = R2_COLL_ALLREDUCE,
                             .size = 4,
                             .element_bytes = 4,
                             .topology = topology,
                             .scratch_bytes = 16 * MIB,
                             .chunk_min_bytes = 8 * KIB,
                             .chunk_max_bytes = 128 * KIB,
                             .copy_max_bytes = 8 * KIB};
}

/** Of four hosts with four rails each. */
static uint64_t segment(uint32_t rate_mbytes_per_s, uint64_t block_bytes)
{
    r2_topology_t topology;
    r2_plan_input_t input;
    uint64_t bytes;

    assert_int_equal(r2_topology_init(&topology, 4, 4, 4, rate_mbytes_per_s), R2_OK);
    input = input_of(&topology);
    bytes = r2_segment_bytes_exchanged(&input, block_bytes);
    r2_topology_fini(&topology);
    return bytes;
}

static void slow_rails_have_segments_as_ever(void **state)
{
    const r2_plan_input_t input = input_of(NULL);

    (void) state;
    for (uint64_t block_bytes = KIB; block_bytes <= 64 * MIB; block_bytes *= 2) {
        const uint64_t usual = r2_segment_bytes_staged(&input, block_bytes);

        assert_int_equal(usual, segment(12, block_bytes)); /* 100 Mbit */
        assert_int_equal(usual, r2_segment_bytes_exchanged(&input, block_bytes));
        assert_true(usual <= segment(1250, block_bytes));
    }
}

static void fast_rails_have_long_ones(void **state)
{
    (void) state;
    assert_int_equal(segment(1250, 8 * KIB), 8 * KIB);
    assert_int_equal(segment(1250, 16 * KIB), 8 * KIB); /* each is copied when sent */
    assert_int_equal(segment(1250, 32 * KIB), 32 * KIB);
    assert_int_equal(segment(1250, 128 * KIB), 128 * KIB);
    assert_int_equal(segment(1250, MIB), 128 * KIB);
    assert_int_equal(segment(1250, 2 * MIB), 64 * KIB);
    assert_int_equal(segment(1250, 4 * MIB), 64 * KIB);
    assert_int_equal(segment(1250, 8 * MIB), 128 * KIB);
    assert_int_equal(segment(UINT32_MAX, MIB), 128 * KIB);
    assert_in_range(segment(125, 64 * KIB), 13000, 15040); /* 30 us of four times 1 Gbit */
}

/* What is left of a rail does not count: segments stay while rails fail. The slowest host does. */
static void health_does_not_count(void **state)
{
    r2_topology_t topology;
    r2_plan_input_t input;

    (void) state;
    assert_int_equal(r2_topology_init(&topology, 4, 4, 4, 1250), R2_OK);
    input = input_of(&topology);
    topology.capacity[5] = 0;
    assert_int_equal(r2_segment_bytes_exchanged(&input, 128 * KIB), 128 * KIB);
    for (uint32_t r = 0; r < 4; ++r) {
        topology.rate_mbytes_per_s[2 * 4 + r] = 12;
    }
    assert_int_equal(r2_segment_bytes_exchanged(&input, 128 * KIB), 8 * KIB);
    r2_topology_fini(&topology);
}

/* Two segments of each peer fit the staging memory all the same. */
static void staging_memory_is_kept(void **state)
{
    r2_topology_t topology;
    r2_plan_input_t input;

    (void) state;
    assert_int_equal(r2_topology_init(&topology, 4, 4, 4, 1250), R2_OK);
    input = input_of(&topology);
    input.scratch_bytes = 256 * KIB;
    assert_true(r2_segment_bytes_exchanged(&input, 128 * KIB) <= 256 * KIB / 6);
    r2_topology_fini(&topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_rails_have_segments_as_ever),
        cmocka_unit_test(fast_rails_have_long_ones),
        cmocka_unit_test(health_does_not_count),
        cmocka_unit_test(staging_memory_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
