/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Crowded ranks: rails that carry, and trials of plans.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ctx/crowded.h"

#define MS R2_NS_PER_MS

static const r2_cost_params_t without = {0};

/* @return what is told after rails have sent so many bytes in each of these windows. */
static bool carry(const uint64_t *bytes, uint32_t windows, uint64_t window_ns)
{
    r2_crowded_t crowded = {0};
    uint64_t sent = 5000;

    for (uint32_t i = 0; i <= windows; ++i) {
        const r2_crowded_rails_t now = {
            .now_ns = MS + i * window_ns, .bytes = sent, .slow_bytes_per_s = 1000000};

        r2_crowded_look_at_rails(&crowded, &now);
        sent += i < windows ? bytes[i] : 0;
    }
    return crowded.rails.carry;
}

/* Two windows in a row: the first one also fills queues. Long ones had pauses in them. */
static void rails_carry_for_two_windows(void **state)
{
    static const uint64_t once[] = {0, 90000, 20000, 90000, 20000}, twice[] = {0, 20001, 20001},
                          long_ones[] = {900000, 900000, 900000};

    (void) state;
    assert_false(carry(once, 5, 20 * MS));
    assert_true(carry(twice, 3, 20 * MS));
    assert_false(carry(twice, 2, 20 * MS));
    assert_true(carry(long_ones, 3, 79 * MS));
    assert_false(carry(long_ones, 3, 80 * MS));
}

/* Calls of 64 KiB; plans follow what is told at once. */
static void calls(r2_crowded_t *crowded, uint32_t kind, uint64_t bytes, uint32_t count,
                  uint64_t before_ns, uint64_t with_ns)
{
    const r2_crowded_call_t is = {.kind = kind, .size = 4, .bytes = bytes};

    for (uint32_t i = 0; i < count; ++i) {
        const r2_cost_params_t used = {.crowded = r2_crowded_told(crowded)};

        r2_crowded_called(crowded, &is,
                          r2_cost_is_crowded(&used, kind, bytes) ? with_ns : before_ns, &used);
    }
}

static const r2_crowded_t crowd = {.crowded = true, .rails = {.carry = true}};

/* Eight calls before, some until memory is used to it, sixteen that are judged. */
#define WARM 64u
static void what_gains_stays(void **state)
{
    r2_crowded_t crowded = crowd;
    const uint32_t bit = 1u << (R2_CROWDED_ALLREDUCE + 3);

    (void) state;
    calls(&crowded, R2_CROWDED_ALLREDUCE, 65536, 7, 100000, 0);
    assert_int_equal(r2_crowded_told(&crowded), 0);
    calls(&crowded, R2_CROWDED_ALLREDUCE, 65536, 1, 100000, 0);
    assert_int_equal(r2_crowded_told(&crowded), bit);
    calls(&crowded, R2_CROWDED_ALLREDUCE, 65536, 1000, 0, 124000); /* less than 1/4 more */
    assert_int_equal(r2_crowded_told(&crowded), bit);
    calls(&crowded, R2_CROWDED_ALLREDUCE, 65536, 64, 0, 128000);
    assert_int_equal(r2_crowded_told(&crowded), 0); /* it goes on being judged */
}

/* Somebody has the processor for some calls after many that gained. */
static void what_has_gained_is_not_lost_at_once(void **state)
{
    r2_crowded_t crowded = crowd;
    const uint32_t bit = 1u << (R2_CROWDED_REDUCE + 3);

    (void) state;
    calls(&crowded, R2_CROWDED_REDUCE, 65536, 8 + WARM + 160, 100000, 20000);
    calls(&crowded, R2_CROWDED_REDUCE, 65536, 16, 0, 180000);
    assert_int_equal(r2_crowded_told(&crowded), bit);
    calls(&crowded, R2_CROWDED_REDUCE, 65536, 32, 0, 180000);
    assert_int_equal(r2_crowded_told(&crowded), 0);
}

/* What calls take on cores that are free is no measure for a trial. */
static void free_cores_are_no_measure(void **state)
{
    r2_crowded_t crowded = crowd;
    const uint32_t bit = 1u << (R2_CROWDED_REDUCE + 3);

    (void) state;
    crowded.crowded = false;
    calls(&crowded, R2_CROWDED_REDUCE, 65536, 100, 10000, 0);
    crowded.crowded = true;
    calls(&crowded, R2_CROWDED_REDUCE, 65536, 8, 100000, 0);
    assert_int_equal(r2_crowded_told(&crowded), bit);
    calls(&crowded, R2_CROWDED_REDUCE, 65536, 1000, 100000, 80000);
    assert_int_equal(r2_crowded_told(&crowded), bit);
}

/* Lost trials are held again, three times. */
static void what_lost_is_tried_again(void **state)
{
    r2_crowded_t crowded = crowd;
    const uint32_t bit = 1u << (R2_CROWDED_REDUCE + 3);
    const uint32_t rests[] = {1024, 4096, 16384};

    (void) state;
    calls(&crowded, R2_CROWDED_REDUCE, 65536, 8 + WARM + 16, 100000, 200000);
    for (uint32_t i = 0; i < 3; ++i) {
        calls(&crowded, R2_CROWDED_REDUCE, 65536, rests[i] - 1, 100000, 200000);
        assert_int_equal(r2_crowded_told(&crowded), 0);
        calls(&crowded, R2_CROWDED_REDUCE, 65536, 1, 100000, 200000);
        assert_int_equal(r2_crowded_told(&crowded), bit);
        calls(&crowded, R2_CROWDED_REDUCE, 65536, WARM + 16, 100000, 101000); /* has to gain now */
        assert_int_equal(r2_crowded_told(&crowded), 0);
    }
    calls(&crowded, R2_CROWDED_REDUCE, 65536, 100000, 100000, 200000);
    assert_int_equal(r2_crowded_told(&crowded), 0);
}

static void what_loses_is_left(void **state)
{
    r2_crowded_t crowded = crowd;
    const uint32_t bit = 1u << (R2_CROWDED_REDUCE + 7);

    (void) state;
    calls(&crowded, R2_CROWDED_REDUCE, 1 << 20, 8 + WARM + 15, 100000, 200000);
    assert_int_equal(r2_crowded_told(&crowded), bit);
    calls(&crowded, R2_CROWDED_REDUCE, 1 << 20, 1, 100000, 200000);
    assert_int_equal(r2_crowded_told(&crowded), 0);
    calls(&crowded, R2_CROWDED_REDUCE, 1 << 20, 1000, 100000, 200000);
    assert_int_equal(r2_crowded_told(&crowded), 0);                 /* for a while */
    calls(&crowded, R2_CROWDED_REDUCE, 1 << 19, 8, 100000, 200000); /* others have their own */
    calls(&crowded, R2_CROWDED_BCAST, 1 << 20, 8, 100000, 200000);
    assert_int_equal(r2_crowded_told(&crowded),
                     1u << (R2_CROWDED_REDUCE + 6) | 1u << (R2_CROWDED_BCAST + 7));
}

/* Short calls are judged for longer, and one call that somebody held up does not decide. */
static void trials_take_their_time(void **state)
{
    r2_crowded_t crowded = crowd;

    (void) state;
    calls(&crowded, R2_CROWDED_BCAST, 16384, 8 + WARM + 99, 10000, 20000);
    assert_int_equal(r2_crowded_told(&crowded), 1u << (R2_CROWDED_BCAST + 1));
    calls(&crowded, R2_CROWDED_BCAST, 16384, 1, 10000, 20000);
    assert_int_equal(r2_crowded_told(&crowded), 0);
    calls(&crowded, R2_CROWDED_BCAST, 65536, 8 + WARM + 15, 100000, 100000);
    calls(&crowded, R2_CROWDED_BCAST, 65536, 1, 100000, 100 * MS);
    assert_int_equal(r2_crowded_told(&crowded), 1u << (R2_CROWDED_BCAST + 3));
}

/* Long calls have no warming up beyond their plans, and where they take far longer than before a
 * few of them suffice. */
static void what_takes_twice_as_long_is_left_soon(void **state)
{
    const uint32_t bit = 1u << (R2_CROWDED_BCAST + 7);
    r2_crowded_t crowded = crowd;

    (void) state;
    calls(&crowded, R2_CROWDED_BCAST, 4 << 20, 8 + 2 + 7, 5 * MS, 11 * MS);
    assert_int_equal(r2_crowded_told(&crowded), bit);
    calls(&crowded, R2_CROWDED_BCAST, 4 << 20, 1, 5 * MS, 11 * MS);
    assert_int_equal(r2_crowded_told(&crowded), 0);
    crowded = crowd;
    calls(&crowded, R2_CROWDED_BCAST, 4 << 20, 8 + 2 + 15, 5 * MS, 9 * MS);
    assert_int_equal(r2_crowded_told(&crowded), bit);
    calls(&crowded, R2_CROWDED_BCAST, 4 << 20, 1, 5 * MS, 9 * MS);
    assert_int_equal(r2_crowded_told(&crowded), 0);
}

/* Not crowded, or on rails that may be the limit: no trial. */
static void others_are_not_tried(void **state)
{
    r2_crowded_t crowded = {.crowded = true};

    (void) state;
    calls(&crowded, R2_CROWDED_BCAST, 65536, 100, 100000, 100000);
    assert_int_equal(r2_crowded_told(&crowded), 0);
    crowded = (r2_crowded_t){.rails = {.carry = true}};
    calls(&crowded, R2_CROWDED_BCAST, 65536, 100, 100000, 100000);
    assert_int_equal(r2_crowded_told(&crowded), 0);
}

/* The bit of each length. */
static void lengths_have_bits(void **state)
{
    const r2_cost_params_t bcasts = {.crowded = 1u << (R2_CROWDED_BCAST + 1)};

    (void) state;
    assert_int_equal(r2_cost_crowded_bit(0), 0);
    assert_int_equal(r2_cost_crowded_bit(8192), 0);
    assert_int_equal(r2_cost_crowded_bit(8193), 1);
    assert_int_equal(r2_cost_crowded_bit(1 << 20), 7);
    assert_int_equal(r2_cost_crowded_bit(1 << 19), 6);
    assert_int_equal(r2_cost_crowded_bit(1 << 24), 7);
    assert_int_equal(r2_cost_crowded_bit((1 << 24) + 1), R2_CROWDED_LENGTHS);
    assert_true(r2_cost_is_crowded(&bcasts, R2_CROWDED_BCAST, 16384));
    assert_false(r2_cost_is_crowded(&bcasts, R2_CROWDED_BCAST, 16385));
    assert_false(r2_cost_is_crowded(&bcasts, R2_CROWDED_REDUCE, 16384));
    assert_false(r2_cost_is_crowded(&without, R2_CROWDED_BCAST, 16384));
    assert_false(r2_cost_is_crowded(&bcasts, R2_CROWDED_BCAST, (1 << 24) + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rails_carry_for_two_windows), cmocka_unit_test(what_gains_stays),
        cmocka_unit_test(what_loses_is_left),          cmocka_unit_test(trials_take_their_time),
        cmocka_unit_test(others_are_not_tried),        cmocka_unit_test(lengths_have_bits),
        cmocka_unit_test(what_has_gained_is_not_lost_at_once),
        cmocka_unit_test(what_lost_is_tried_again),
        cmocka_unit_test(free_cores_are_no_measure),
        cmocka_unit_test(what_takes_twice_as_long_is_left_soon)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
