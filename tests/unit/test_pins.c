/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Pinned memory that is kept from run to run, and taken before one begins; what becomes of it when
 * a device is reset. On the driver of tests/fakecuda.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "exec/pins.h"
#include "fakecuda/api.h"
#include "fakecuda/fakecuda.h"

#define OK(call) assert_int_equal(call, CUDA_SUCCESS)

static r2_mem_t mem;
static r2_pins_t pins;

/* Two pieces are kept. */
static int start(void **state)
{
    r2_pin_t *two[2];

    (void) state;
    OK(cuInit(0));
    r2_mem_init(&mem, "libcuda.so.1");
    r2_pins_init(&pins, &mem, 1u << 20);
    pins.at = (r2_mem_at_t){R2_MEM_PINNED, 0, NULL};
    for (int i = 0; i < 2; ++i) {
        two[i] = r2_pins_get(&pins, 4096);
        assert_non_null(two[i]);
        assert_false(two[i]->is_heap);
        assert_int_not_equal(two[i]->id, 0);
    }
    r2_pins_put(&pins, two[0]);
    r2_pins_put(&pins, two[1]);
    return 0;
}

/* All of it was given back once. */
static int end(void **state)
{
    (void) state;
    r2_pins_fini(&pins);
    r2_mem_fini(&mem);
    assert_int_equal(fakecuda_counter("allocs"), fakecuda_counter("frees"));
    assert_string_equal(fakecuda_mistake(), "");
    return 0;
}

/* The driver takes back what it has pinned, as when a device is reset; then something else of the
 * application is there. */
static void take_back(const r2_pin_t *pin)
{
    const r2_mem_at_t at = {R2_MEM_PINNED, 0, NULL};

    assert_int_equal(r2_mem_enter(&mem, &at), R2_OK);
    OK(cuMemFreeHost(pin->memory));
    r2_mem_leave(&mem);
}

static void what_is_taken_ahead_is_kept_for_the_run(void **state)
{
    r2_pins_wanted_t wanted = {.count = 2, .bytes = {4096, 100}};

    (void) state;
    assert_true(r2_pins_take(&pins, &wanted));
    assert_null(pins.free);
    assert_int_equal(pins.kept_bytes, 0);
    r2_pins_give(&pins, &wanted);
    assert_int_equal(pins.kept_bytes, 2 * 4096);
}

/* The device was reset between the two: one piece went with it, and one was pinned afterwards. */
static void what_is_gone_is_not_kept(void **state)
{
    r2_pins_wanted_t wanted = {.count = 2, .bytes = {4096, 8192}};
    r2_pin_t *last;

    (void) state;
    assert_false(r2_pins_take(&pins, &wanted));
    take_back(wanted.pins[0]);
    take_back(pins.free);
    r2_pins_forget(&pins);
    assert_null(pins.free);
    r2_pins_fill(&mem, &pins.at, &wanted);
    last = wanted.pins[1];
    r2_pins_give(&pins, &wanted);
    assert_ptr_equal(pins.free, last);
    assert_int_equal(pins.kept_bytes, 8192);
}

/* What a run has while the device is reset comes back later. */
static void what_comes_back_later_is_not_kept(void **state)
{
    r2_pin_t *gone = r2_pins_kept(&pins, 4096), *there = r2_pins_kept(&pins, 4096);

    (void) state;
    take_back(gone);
    r2_pins_forget(&pins);
    r2_pins_put(&pins, gone);
    assert_null(pins.free);
    r2_pins_put(&pins, there);
    assert_ptr_equal(pins.free, there);
    assert_int_equal(pins.kept_bytes, 4096);
}

/* It was another context that ended, not the one that pins. */
static void what_is_there_is_kept(void **state)
{
    (void) state;
    r2_pins_forget(&pins);
    assert_int_equal(pins.kept_bytes, 2 * 4096);
}

/* Pageable memory is nobody's but ours. */
static void what_was_never_pinned_stays(void **state)
{
    r2_pin_t *pin;

    (void) state;
    assert_int_equal(fakecuda_set("faults", "cuMemHostAlloc@1=2"), 0);
    pin = r2_pins_get(&pins, 16384);
    assert_int_equal(fakecuda_set("faults", ""), 0);
    assert_non_null(pin);
    assert_true(pin->is_heap);
    r2_pins_forget(&pins);
    r2_pins_put(&pins, pin);
    assert_ptr_equal(pins.free, pin);
    assert_int_equal(pins.kept_bytes, 2 * 4096 + 16384);
}

#define T_PINS(test) cmocka_unit_test_setup_teardown(test, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T_PINS(what_is_taken_ahead_is_kept_for_the_run), T_PINS(what_is_gone_is_not_kept),
        T_PINS(what_comes_back_later_is_not_kept),       T_PINS(what_is_there_is_kept),
        T_PINS(what_was_never_pinned_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
