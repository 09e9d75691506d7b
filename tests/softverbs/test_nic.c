/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The NIC of softverbs: what a reliable connection promises, on a cable that loses, repeats and
 * reorders.
 */
#include "softverbs/pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static pair_t pair;

static const pair_how_t rc = {.type = IBV_QPT_RC};

/* ---- what arrives */

static void sends_of_every_length_arrive(void **state)
{
    static const uint32_t lengths[] = {0, 1, 63, 64, 65, 128, 4000, 3 * SV_WINDOW * PAIR_SEGMENT};

    (void) state;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i) {
        struct ibv_wc wc;
        pair_init(&pair, &rc);
        pair_fill(pair.ends[0].memory, 0, lengths[i], 3);
        pair_post_recv(&pair, 1, 9, 100, PAIR_MEMORY - 100);
        pair_post(&pair, 0, 8,
                  &(pair_send_t){.opcode = IBV_WR_SEND_WITH_IMM, .length = lengths[i]});
        pair_run(&pair);
        pair_expect(&pair, 0, 8, IBV_WC_SUCCESS);
        assert_true(pair_poll(&pair, 1, &wc));
        assert_int_equal(wc.wr_id, 9);
        assert_int_equal(wc.byte_len, lengths[i]);
        assert_int_equal(wc.imm_data, 42);
        assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
        assert_memory_equal(pair.ends[1].memory + 100, pair.ends[0].memory, lengths[i]);
        assert_int_equal(pair.ends[1].memory[100 + lengths[i]], 0);
        pair_expect_none(&pair, 0);
        pair_expect_none(&pair, 1);
        pair_fini(&pair);
    }
}

/* A bit of everything, in both directions; afterwards it is looked at. */
enum { MIX = 20, MIX_SENDS = 200 };

static void post_mix(void)
{
    pair_end_t *ends = pair.ends;
    uint64_t number = 1000;

    pair_fill(ends[0].memory, 0, 8192, 1);
    pair_fill(ends[1].memory, 16384, 8192, 2);
    memcpy(ends[1].memory + 30000, &number, sizeof(number));
    for (uint32_t i = 0; i < MIX; ++i) {
        pair_post_recv(&pair, 1, 500 + i, 8192 + i * MIX_SENDS, MIX_SENDS);
    }
    for (uint32_t i = 0; i < MIX; ++i) {
        pair_post(&pair, 0, 4 * i,
                  &(pair_send_t){.opcode = IBV_WR_SEND, .from = i * MIX_SENDS,
                                 .length = MIX_SENDS - i});
        pair_post(&pair, 0, 4 * i + 1,
                  &(pair_send_t){.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .from = 31000 + 8 * i,
                                 .length = 8, .to = 30000, .compare_add = 1});
        pair_post(&pair, 0, 4 * i + 2,
                  &(pair_send_t){.opcode = IBV_WR_RDMA_READ, .from = 16384 + i * 400, .length = 400,
                                 .to = 16384 + i * 400});
        pair_post(&pair, 0, 4 * i + 3,
                  &(pair_send_t){.opcode = IBV_WR_RDMA_WRITE, .from = i * MIX_SENDS, .length = 190,
                                 .to = i * MIX_SENDS});
    }
}

static void check_mix(void)
{
    pair_end_t *ends = pair.ends;
    uint64_t number;

    for (uint32_t i = 0; i < 4 * MIX; ++i) {
        pair_expect(&pair, 0, i, IBV_WC_SUCCESS);
    }
    pair_expect_none(&pair, 0);
    for (uint32_t i = 0; i < MIX; ++i) {
        pair_expect(&pair, 1, 500 + i, IBV_WC_SUCCESS);
        assert_memory_equal(ends[1].memory + 8192 + i * MIX_SENDS, ends[0].memory + i * MIX_SENDS,
                            MIX_SENDS - i);
        assert_memory_equal(ends[1].memory + i * MIX_SENDS, ends[0].memory + i * MIX_SENDS, 190);
        memcpy(&number, ends[0].memory + 31000 + 8 * i, sizeof(number));
        assert_int_equal(number, 1000 + i);
    }
    pair_expect_none(&pair, 1);
    assert_memory_equal(ends[0].memory + 16384, ends[1].memory + 16384, MIX * 400);
    memcpy(&number, ends[1].memory + 30000, sizeof(number));
    assert_int_equal(number, 1000 + MIX);
}

static uint32_t victim;

static pair_fate_t one_lost(uint32_t number, const sv_packet_t *packet)
{
    (void) packet;
    return number == victim ? PAIR_LOST : PAIR_ARRIVES;
}

static void any_packet_may_be_lost(void **state)
{
    uint32_t packets = 1;
    uint64_t timeouts = 0;

    (void) state;
    for (victim = 0; victim < packets; ++victim) {
        pair_init(&pair, &rc);
        pair.fate = one_lost;
        post_mix();
        pair_pass_ms(&pair, 20);
        check_mix();
        packets = pair.number;
        timeouts += pair.ends[0].dev->counters.timeouts;
        pair_fini(&pair);
    }
    assert_true(packets > 300);
    assert_in_range(timeouts, 1, 2); /* all but the last are told by what follows them */
}

static uint64_t random_state;

static pair_fate_t any_fate(uint32_t number, const sv_packet_t *packet)
{
    (void) number;
    (void) packet;
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    switch (random_state >> 33 & 31) {
    case 0:
    case 1:
        return PAIR_LOST;
    case 2:
        return PAIR_TWICE;
    case 3:
        return PAIR_LATE;
    default:
        return PAIR_ARRIVES;
    }
}

static void all_arrives_once_on_a_bad_cable(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed <= 300; ++seed) {
        pair_init(&pair, &rc);
        random_state = seed;
        pair.fate = any_fate;
        post_mix();
        pair_pass_ms(&pair, 300);
        check_mix();
        pair_fini(&pair);
    }
}

static void reads_longer_than_the_window(void **state)
{
    uint32_t length = 3 * SV_WINDOW * PAIR_SEGMENT - 10;

    (void) state;
    for (victim = 0; victim < 40; ++victim) {
        pair_init(&pair, &rc);
        pair.fate = one_lost;
        pair_fill(pair.ends[1].memory, 0, length, 9);
        pair_post(&pair, 0, 1, &(pair_send_t){.opcode = IBV_WR_RDMA_READ, .length = length});
        pair_post(&pair, 0, 2, &(pair_send_t){.opcode = IBV_WR_RDMA_WRITE, .from = 1, .length = 9});
        pair_pass_ms(&pair, 20);
        pair_expect(&pair, 0, 1, IBV_WC_SUCCESS);
        pair_expect(&pair, 0, 2, IBV_WC_SUCCESS);
        assert_memory_equal(pair.ends[0].memory + 9, pair.ends[1].memory + 9, length - 9);
        pair_fini(&pair);
    }
}

/* A fence waits for reads before it; so many reads and atomics are in flight, and no more. */
static void fences_and_limits(void **state)
{
    (void) state;
    pair_init(&pair, &rc);
    pair_post(&pair, 0, 1, &(pair_send_t){.opcode = IBV_WR_RDMA_READ, .length = 8});
    pair_post(&pair, 0, 2, &(pair_send_t){.opcode = IBV_WR_RDMA_WRITE, .length = 8});
    pair_post(&pair, 0, 3, &(pair_send_t){.opcode = IBV_WR_RDMA_WRITE, .length = 8,
                                          .flags = IBV_SEND_FENCE});
    assert_int_equal(pair.number, 2);
    pair_run(&pair);
    for (uint64_t i = 1; i <= 3; ++i) {
        pair_expect(&pair, 0, i, IBV_WC_SUCCESS);
    }
    pair.number = 0;
    pair.ends[0].qp->attr.max_rd_atomic = 3;
    for (uint64_t i = 0; i < 6; ++i) {
        pair_post(&pair, 0, i, &(pair_send_t){.opcode = IBV_WR_RDMA_READ, .length = 200});
    }
    assert_int_equal(pair.number, 3);
    pair_run(&pair);
    for (uint64_t i = 0; i < 6; ++i) {
        pair_expect(&pair, 0, i, IBV_WC_SUCCESS);
    }
    pair_fini(&pair);
}

static void compare_and_swap(void **state)
{
    uint64_t number = 5;
    pair_send_t send = {.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
                        .from = 64, .length = 8, .to = 8, .compare_add = 5, .swap = 6};

    (void) state;
    pair_init(&pair, &rc);
    memcpy(pair.ends[1].memory + 8, &number, sizeof(number));
    pair_post(&pair, 0, 1, &send);
    pair_run(&pair);
    memcpy(&number, pair.ends[1].memory + 8, sizeof(number));
    assert_int_equal(number, 6);
    pair_post(&pair, 0, 2, &send); /* not equal: stays */
    pair_run(&pair);
    memcpy(&number, pair.ends[1].memory + 8, sizeof(number));
    assert_int_equal(number, 6);
    memcpy(&number, pair.ends[0].memory + 64, sizeof(number));
    assert_int_equal(number, 6);
    pair_fini(&pair);
}

/* A fault with a chance: seeded, so the same packets are lost each time. */
static void seeds(void **state)
{
    uint64_t lost[2];

    (void) state;
    for (int i = 0; i < 2; ++i) {
        pair_init(&pair, &rc);
        pair_inject(&pair, 1, SV_FAULT_DROP, 100000, 0);
        post_mix();
        pair_pass_ms(&pair, 300);
        check_mix();
        lost[i] = pair.ends[1].dev->counters.dropped;
        pair_fini(&pair);
    }
    assert_int_equal(lost[0], lost[1]);
    assert_true(lost[0] > 10);
}

/* A full table doubles, and gives the first new place. */
static void table_grows(void **state)
{
    sv_table_t table = {.at = NULL};
    int object;

    (void) state;
    for (uint32_t i = 1; i <= 300; ++i) {
        assert_int_equal(sv_table_add(&table, &object), i);
    }
    assert_int_equal(table.size, 512);
    sv_table_fini(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sends_of_every_length_arrive),
        cmocka_unit_test(any_packet_may_be_lost),
        cmocka_unit_test(all_arrives_once_on_a_bad_cable),
        cmocka_unit_test(reads_longer_than_the_window),
        cmocka_unit_test(fences_and_limits),
        cmocka_unit_test(compare_and_swap),
        cmocka_unit_test(seeds),
        cmocka_unit_test(table_grows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
