/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Costs of the ways of data in a GPU's memory: that they follow the rates, limits, and what they
 * come to on some machines.
 */
#include "r2_config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/util.h"
#include "r2/device_cost.h"

#define GB UINT64_C(1000000000)
#define US UINT64_C(1000)

/*
 * Examples, not measurements: buses and memory by the makers' data sheets, of buses 80 %; times to
 * start, and what the host does, are made up, the same for all.
 *   PCIe 3.0 x16: 15.75 GB/s each way, PCIe 5.0 x16: 63 GB/s (PCI-SIG, 128b/130b)
 *   V100 SXM2: 900 GB/s of memory, H100 SXM5: 3350 GB/s; NVLink 4: 450 GB/s each way (NVIDIA)
 *   rails: two of 100 Gbit/s beside the V100, eight of 400 Gbit/s beside eight H100, one for each
 */
#define HOST                                                                        \
    .copy_on_ns = 8 * US, .copy_off_ns = 8 * US, .launch_ns = 10 * US, .message_ns = 2 * US, \
    .host_reduce_bytes_per_s = 8 * GB, .host_copy_bytes_per_s = 10 * GB

static const r2_device_rates_t v100_pcie3 = {HOST,
                                             .copy_on_bytes_per_s = 12600000000,
                                             .copy_off_bytes_per_s = 12600000000,
                                             .inside_bytes_per_s = 450 * GB,
                                             .reduce_bytes_per_s = 12600000000,
                                             .open_ns = 100 * US,
                                             .peer_bytes_per_s = 12600000000,
                                             .rails_bytes_per_s = 25 * GB};
static const r2_device_rates_t h100_pcie5 = {HOST,
                                             .copy_on_bytes_per_s = 50 * GB,
                                             .copy_off_bytes_per_s = 50 * GB,
                                             .inside_bytes_per_s = 1675 * GB,
                                             .reduce_bytes_per_s = 50 * GB,
                                             .open_ns = 100 * US,
                                             .peer_bytes_per_s = 50 * GB,
                                             .rails_bytes_per_s = 50 * GB};
static const r2_device_rates_t h100_nvlink = {HOST,
                                              .copy_on_bytes_per_s = 50 * GB,
                                              .copy_off_bytes_per_s = 50 * GB,
                                              .inside_bytes_per_s = 1675 * GB,
                                              .reduce_bytes_per_s = 50 * GB,
                                              .open_ns = 100 * US,
                                              .peer_bytes_per_s = 450 * GB,
                                              .rails_bytes_per_s = 50 * GB,
                                              .nic_bytes_per_s = 40 * GB};

static const r2_device_rates_t *const machines[] = {&v100_pcie3, &h100_pcie5, &h100_nvlink};

static uint64_t from(const r2_device_rates_t *rates, r2_device_way_t way, r2_device_way_t other)
{
    uint64_t bytes = 77;

    assert_true(r2_device_from(rates, way, other, &bytes));
    return bytes;
}

static uint64_t gpu_from(const r2_device_rates_t *rates)
{
    return from(rates, R2_DEVICE_REDUCE_GPU, R2_DEVICE_REDUCE_HOST);
}

/* In ns, a message of 1 KiB and one of 16 MiB. */
static void the_cost_of_each_way_on_some_machines(void **state)
{
    static const uint64_t golden[][R2_DEVICE_WAY_COUNT][2] = {
        {{128, 2097152}, {10081, 1341525}, {18265, 4358772},
         {114081, 1445525}, {18203, 1380816}, {2041, 673089}},
        {{128, 2097152}, {10020, 345544}, {18143, 2366810},
         {114020, 449544}, {18061, 364030}, {2020, 337544}},
        {{128, 2097152}, {10020, 345544}, {18143, 2366810},
         {114002, 151283}, {18061, 364030}, {2026, 421430}},
    };

    (void) state;
    for (size_t m = 0; m < r2_array_count(machines); ++m) {
        for (int way = 0; way < R2_DEVICE_WAY_COUNT; ++way) {
            for (int is_long = 0; is_long < 2; ++is_long) {
                const uint64_t bytes = 0 == is_long ? 1024 : 16 << 20;
                const double ns = 1e9 * r2_device_cost_s(machines[m], (r2_device_way_t) way, bytes);

                assert_int_equal(llround(ns), golden[m][way][is_long]);
            }
        }
    }
}

static void from_which_length_on_some_machines(void **state)
{
    static const struct {
        uint64_t gpu_reduces, peer_reads, peer_reads_open, nics;
    } golden[] = {{262144, 1 << 20, 1, 1},
                  {131072, 1 << 20, 1, 1},
                  {131072, 1 << 20, 1, R2_DEVICE_NEVER_BYTES}}; /* NICs: slower than rails */

    (void) state;
    for (size_t m = 0; m < r2_array_count(machines); ++m) {
        r2_device_rates_t open = *machines[m];

        open.open_ns = 0;
        assert_int_equal(gpu_from(machines[m]), golden[m].gpu_reduces);
        assert_int_equal(from(machines[m], R2_DEVICE_PEER, R2_DEVICE_STAGED_HOST),
                         golden[m].peer_reads);
        assert_int_equal(from(&open, R2_DEVICE_PEER, R2_DEVICE_STAGED_HOST),
                         golden[m].peer_reads_open);
        assert_int_equal(from(machines[m], R2_DEVICE_NIC, R2_DEVICE_STAGED_RAILS), golden[m].nics);
    }
}

/* Messages are staged in pieces from a length on: then parts overlap, and that one drops. */
static void longer_costs_more(void **state)
{
    (void) state;
    for (int way = 0; way < R2_DEVICE_WAY_COUNT; ++way) {
        double before = -1;

        for (uint64_t bytes = 0; bytes < R2_DEVICE_NEVER_BYTES; bytes = 2 * bytes + 3) {
            const double now = r2_device_cost_s(&v100_pcie3, (r2_device_way_t) way, bytes);
            const bool begins = R2_DEVICE_STAGED_RAILS == way && bytes / 2 <= R2_DEVICE_WHOLE_BYTES;

            assert_true(isfinite(now));
            assert_true(now > before || (begins && bytes > R2_DEVICE_WHOLE_BYTES));
            before = now;
        }
    }
}

/* What each rate is for: a way that needs it is dearer by a lower one, and no other. */
static void a_lower_rate_costs_more(void **state)
{
    const struct {
        size_t offset;
        uint32_t ways; /* bits */
    } rows[] = {
        {offsetof(r2_device_rates_t, copy_on_bytes_per_s), 1u << R2_DEVICE_STAGED_HOST},
        {offsetof(r2_device_rates_t, copy_off_bytes_per_s),
         1u << R2_DEVICE_STAGED_HOST | 1u << R2_DEVICE_REDUCE_HOST},
        {offsetof(r2_device_rates_t, reduce_bytes_per_s), 1u << R2_DEVICE_REDUCE_GPU},
        {offsetof(r2_device_rates_t, host_reduce_bytes_per_s), 1u << R2_DEVICE_REDUCE_HOST},
        {offsetof(r2_device_rates_t, host_copy_bytes_per_s), 1u << R2_DEVICE_STAGED_HOST},
        {offsetof(r2_device_rates_t, peer_bytes_per_s), 1u << R2_DEVICE_PEER},
        {offsetof(r2_device_rates_t, rails_bytes_per_s),
         1u << R2_DEVICE_STAGED_RAILS | 1u << R2_DEVICE_NIC},
        {offsetof(r2_device_rates_t, nic_bytes_per_s), 1u << R2_DEVICE_NIC},
        {offsetof(r2_device_rates_t, inside_bytes_per_s), 0},
    };

    (void) state;
    for (size_t i = 0; i < r2_array_count(rows); ++i) {
        r2_device_rates_t slow = v100_pcie3;

        *(uint64_t *) (void *) ((char *) &slow + rows[i].offset) = GB;
        for (int way = 0; way < R2_DEVICE_WAY_COUNT; ++way) {
            const double usual = r2_device_cost_s(&v100_pcie3, (r2_device_way_t) way, 1 << 24);
            const double now = r2_device_cost_s(&slow, (r2_device_way_t) way, 1 << 24);
            const bool staged = R2_DEVICE_STAGED_RAILS == way && i < 2; /* the slowest counts */

            assert_int_equal(now > usual, staged || 0 != (rows[i].ways >> way & 1));
        }
    }
}

/* What is not known is no way, and nothing is chosen by it. */
static void a_missing_rate_is_no_way(void **state)
{
    const r2_device_rates_t none = {0};
    r2_device_rates_t rates = v100_pcie3;
    uint64_t bytes = 77;

    (void) state;
    for (int way = 0; way <= R2_DEVICE_WAY_COUNT; ++way) {
        assert_true(isinf(r2_device_cost_s(&none, (r2_device_way_t) way, 0)));
        assert_false(r2_device_from(&none, (r2_device_way_t) way, R2_DEVICE_REDUCE_HOST, &bytes));
    }
    rates.reduce_bytes_per_s = 0;
    assert_true(isfinite(r2_device_cost_s(&rates, R2_DEVICE_REDUCE_HOST, 1)));
    assert_false(r2_device_from(&rates, R2_DEVICE_REDUCE_GPU, R2_DEVICE_REDUCE_HOST, &bytes));
    assert_false(r2_device_from(&rates, R2_DEVICE_REDUCE_HOST, R2_DEVICE_REDUCE_GPU, &bytes));
    rates = v100_pcie3;
    rates.launch_ns = 0;
    assert_false(r2_device_from(&rates, R2_DEVICE_REDUCE_GPU, R2_DEVICE_REDUCE_HOST, &bytes));
    assert_int_equal(bytes, 77);
    rates = h100_nvlink;
    rates.nic_bytes_per_s = 0; /* the way between is no bound */
    assert_true(r2_device_cost_s(&rates, R2_DEVICE_NIC, 1 << 20) <
                r2_device_cost_s(&h100_nvlink, R2_DEVICE_NIC, 1 << 20));
}

/* A GPU that reduces no faster never does; one that starts in no time always does. */
static void limits(void **state)
{
    r2_device_rates_t rates = h100_pcie5;

    (void) state;
    rates.reduce_bytes_per_s = rates.host_reduce_bytes_per_s;
    assert_int_equal(gpu_from(&rates), R2_DEVICE_NEVER_BYTES);
    rates.reduce_bytes_per_s = UINT64_MAX;
    rates.launch_ns = 1;
    rates.host_reduce_bytes_per_s = 1000;
    assert_int_equal(gpu_from(&rates), 1);
    rates.launch_ns = UINT64_MAX;
    assert_int_equal(gpu_from(&rates), R2_DEVICE_NEVER_BYTES);
}

/* Twice the time to start: from twice the length on, as lengths are powers of two. */
static void a_job_s_length(void **state)
{
    const uint64_t ms = 1000 * US;
    r2_device_rates_t rates = h100_pcie5;
    uint64_t from;

    (void) state;
    assert_true(r2_device_from(&rates, R2_DEVICE_REDUCE_GPU, R2_DEVICE_REDUCE_HOST, &from));
    assert_int_equal(r2_device_reduces_from(&rates, 5 * ms, 5 * ms), from);
    assert_int_not_equal(from, R2_DEVICE_REDUCE_USUAL_BYTES);
    assert_int_equal(r2_device_reduces_from(&rates, 5 * ms + 1, 5 * ms),
                     R2_DEVICE_REDUCE_USUAL_BYTES);
    assert_int_equal(r2_device_reduces_from(NULL, 0, 5 * ms), R2_DEVICE_REDUCE_USUAL_BYTES);
    rates.launch_ns = 1;
    assert_int_equal(r2_device_reduces_from(&rates, 0, 0), R2_DEVICE_REDUCE_LEAST_BYTES);
    rates.host_reduce_bytes_per_s = 1000 * GB;
    rates.reduce_bytes_per_s = 1;
    assert_int_equal(r2_device_reduces_from(&rates, 0, 0), R2_DEVICE_NEVER_BYTES);
    rates.reduce_bytes_per_s = 0;
    assert_int_equal(r2_device_reduces_from(&rates, 0, 0), R2_DEVICE_REDUCE_USUAL_BYTES);
}

static void the_choice_follows_the_rates(void **state)
{
    r2_device_rates_t rates = h100_pcie5;
    uint64_t before = 0;

    (void) state;
    for (rates.launch_ns = US; rates.launch_ns < 10000 * US; rates.launch_ns *= 2) {
        const uint64_t now = gpu_from(&rates);

        assert_true(0 == before || now == 2 * before);
        assert_true(r2_device_cost_s(&rates, R2_DEVICE_REDUCE_GPU, now) <
                    r2_device_cost_s(&rates, R2_DEVICE_REDUCE_HOST, now));
        assert_false(r2_device_cost_s(&rates, R2_DEVICE_REDUCE_GPU, now / 2) <
                     r2_device_cost_s(&rates, R2_DEVICE_REDUCE_HOST, now / 2));
        before = now;
    }
    rates = h100_pcie5;
    rates.host_reduce_bytes_per_s /= 8;
    assert_true(gpu_from(&rates) < gpu_from(&h100_pcie5));
}

static void pieces_are_within_limits(void **state)
{
    (void) state;
    assert_int_equal(r2_device_piece(0, 64), 0);
    assert_int_equal(r2_device_piece(R2_DEVICE_WHOLE_BYTES, 64), R2_DEVICE_WHOLE_BYTES);
    assert_int_equal(r2_device_piece(R2_DEVICE_WHOLE_BYTES + 1, 64), R2_DEVICE_LEAST_BYTES);
    assert_int_equal(r2_device_piece(2000000, 64), 124992);
    assert_int_equal(r2_device_piece(2000000, 1), 125000);
    assert_int_equal(r2_device_piece(UINT64_C(1) << 40, 64), R2_DEVICE_MOST_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cost_of_each_way_on_some_machines),
        cmocka_unit_test(from_which_length_on_some_machines),
        cmocka_unit_test(longer_costs_more),
        cmocka_unit_test(a_lower_rate_costs_more),
        cmocka_unit_test(a_missing_rate_is_no_way),
        cmocka_unit_test(limits),
        cmocka_unit_test(a_job_s_length),
        cmocka_unit_test(the_choice_follows_the_rates),
        cmocka_unit_test(pieces_are_within_limits),
    };

    return cmocka_run_group_tests_name("costs of GPUs' memory", tests, NULL, NULL);
}
