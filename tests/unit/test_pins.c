/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Pinned memory that is kept from run to run, and taken before one begins.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "exec/pins.h"

/* Two pieces are kept, of memory of any kind, so that no driver is asked. */
static void start(r2_pins_t *pins)
{
    r2_pins_init(pins, NULL, 1u << 20);
    for (int i = 0; i < 2; ++i) {
        r2_pin_t *pin = calloc(1, sizeof(*pin));

        assert_non_null(pin);
        pin->is_heap = true;
        pin->bytes = 4096;
        pin->memory = aligned_alloc(64, pin->bytes);
        assert_non_null(pin->memory);
        r2_pins_put(pins, pin);
    }
}

static void what_is_taken_ahead_is_kept_for_the_run(void **state)
{
    r2_pins_wanted_t wanted = {.count = 2, .bytes = {4096, 100}};
    r2_pins_t pins;

    (void) state;
    start(&pins);
    assert_true(r2_pins_take(&pins, &wanted));
    assert_null(pins.free);
    assert_int_equal(pins.kept_bytes, 0);
    r2_pins_give(&pins, &wanted);
    assert_int_equal(pins.kept_bytes, 2 * 4096);
    r2_pins_fini(&pins);
}

/* The device was reset between the two: the driver has taken back what it had pinned. */
static void what_is_gone_is_not_kept(void **state)
{
    r2_pins_wanted_t wanted = {.count = 2, .bytes = {4096, 4096}};
    r2_pins_t pins;

    (void) state;
    start(&pins);
    assert_true(r2_pins_take(&pins, &wanted));
    r2_pins_forget(&pins);
    r2_pins_give(&pins, &wanted);
    assert_null(pins.free);
    assert_int_equal(pins.kept_bytes, 0);
    r2_pins_fini(&pins);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_taken_ahead_is_kept_for_the_run),
        cmocka_unit_test(what_is_gone_is_not_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
