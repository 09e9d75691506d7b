/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Numbers with units: what is read, and what is refused.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/util.h"
#include "r2/units.h"

static void whole_numbers(void **state)
{
    static const struct {
        const char *text;
        r2_unit_t unit;
        uint64_t value;
    } rows[] = {
        {"0", R2_UNIT_NUMBER, 0},
        {"007", R2_UNIT_NUMBER, 7},
        {"18446744073709551615", R2_UNIT_NUMBER, UINT64_MAX},
        {"4096", R2_UNIT_BYTES, 4096},
        {"64k", R2_UNIT_BYTES, 65536},
        {"64K", R2_UNIT_BYTES, 65536},
        {"16M", R2_UNIT_BYTES, 16 << 20},
        {"16MiB", R2_UNIT_BYTES, 16 << 20},
        {"3g", R2_UNIT_BYTES, (uint64_t) 3 << 30},
        {"17179869183G", R2_UNIT_BYTES, UINT64_MAX - (1u << 30) + 1},
        {"5us", R2_UNIT_TIME, 5000},
        {"18446744073s", R2_UNIT_TIME, 18446744073000000000u},
        {"1250", R2_UNIT_RATE, 1250000000},
        {"400gbit", R2_UNIT_RATE, 50000000000},
        {"8Kbit", R2_UNIT_RATE, 1000},
    };

    (void) state;
    for (size_t i = 0; i < r2_array_count(rows); ++i) {
        uint64_t value = 1;

        if (R2_OK != r2_unit_whole(rows[i].text, rows[i].unit, 0, UINT64_MAX, &value) ||
            value != rows[i].value) {
            fail_msg("%s is read as %llu", rows[i].text, (unsigned long long) value);
        }
    }
}

static void bounds_belong_to_the_range(void **state)
{
    uint64_t value = 1;

    (void) state;
    assert_int_equal(r2_unit_whole("1k", R2_UNIT_BYTES, 1024, 1024, &value), R2_OK);
    assert_int_equal(value, 1024);
    assert_int_equal(r2_unit_whole("1k", R2_UNIT_BYTES, 1025, UINT64_MAX, &value), R2_ERR_PARAM);
    assert_int_equal(r2_unit_whole("1k", R2_UNIT_BYTES, 0, 1023, &value), R2_ERR_PARAM);
    assert_int_equal(value, 1024);
}

static void real_numbers(void **state)
{
    static const struct {
        const char *text;
        r2_unit_t unit;
        double value;
    } rows[] = {
        {"0", R2_UNIT_NUMBER, 0},       {"1.5", R2_UNIT_NUMBER, 1.5},
        {"2e3", R2_UNIT_NUMBER, 2000},  {"1.5K", R2_UNIT_BYTES, 1536},
        {"0.5us", R2_UNIT_TIME, 500},   {"2S", R2_UNIT_TIME, 2e9},
        {"12.5", R2_UNIT_RATE, 12.5e6}, {"100mbit", R2_UNIT_RATE, 12.5e6},
        {"50G", R2_UNIT_RATE, 50e9},    {"1k", R2_UNIT_RATE, 1e3},
        {"25%", R2_UNIT_PERCENT, 0.25}, {"100%", R2_UNIT_PERCENT, 1},
    };

    (void) state;
    for (size_t i = 0; i < r2_array_count(rows); ++i) {
        double value = -1;

        assert_int_equal(r2_unit_real(rows[i].text, rows[i].unit, &value), R2_OK);
        assert_true(value == rows[i].value);
    }
}

/* Neither function takes them, and the value stays as it was. */
static void what_is_no_number(void **state)
{
    static const struct {
        const char *text;
        r2_unit_t unit;
    } rows[] = {
        {"", R2_UNIT_NUMBER},       {" 1", R2_UNIT_NUMBER},  {"+1", R2_UNIT_NUMBER},
        {"-1", R2_UNIT_NUMBER},     {"1 ", R2_UNIT_NUMBER},  {"0x10", R2_UNIT_NUMBER},
        {"1k", R2_UNIT_NUMBER},     {"inf", R2_UNIT_NUMBER}, {"nan", R2_UNIT_NUMBER},
        {"k", R2_UNIT_BYTES},       {"64kb", R2_UNIT_BYTES}, {"64 k", R2_UNIT_BYTES},
        {"1kk", R2_UNIT_BYTES},     {"5", R2_UNIT_TIME},     {"5m", R2_UNIT_TIME},
        {"5minutes", R2_UNIT_TIME}, {"1bit", R2_UNIT_RATE},  {"1mbps", R2_UNIT_RATE},
        {"30", R2_UNIT_PERCENT},    {"%", R2_UNIT_PERCENT},  {"30%%", R2_UNIT_PERCENT},
    };

    (void) state;
    for (size_t i = 0; i < r2_array_count(rows); ++i) {
        uint64_t whole = 7;
        double real = 7;

        if (R2_OK == r2_unit_whole(rows[i].text, rows[i].unit, 0, UINT64_MAX, &whole) ||
            R2_OK == r2_unit_real(rows[i].text, rows[i].unit, &real) || 7 != whole || 7 != real) {
            fail_msg("\"%s\" is taken for a number", rows[i].text);
        }
    }
}

static void what_is_too_much_or_no_whole_number(void **state)
{
    static const struct {
        const char *text;
        r2_unit_t unit;
    } rows[] = {
        {"18446744073709551616", R2_UNIT_NUMBER},
        {"17179869184G", R2_UNIT_BYTES},
        {"1.5", R2_UNIT_NUMBER},
        {"1.5k", R2_UNIT_BYTES},
        {"1e3", R2_UNIT_NUMBER},
        {"18446744074s", R2_UNIT_TIME},
        {"30%", R2_UNIT_PERCENT},
    };
    double real = 7;

    (void) state;
    for (size_t i = 0; i < r2_array_count(rows); ++i) {
        uint64_t whole = 7;

        assert_int_equal(r2_unit_whole(rows[i].text, rows[i].unit, 0, UINT64_MAX, &whole),
                         R2_ERR_PARAM);
        assert_int_equal(whole, 7);
    }
    assert_int_equal(r2_unit_real("1e308G", R2_UNIT_RATE, &real), R2_ERR_PARAM);
    assert_true(7 == real);
}

static void forms_are_examples(void **state)
{
    (void) state;
    for (int unit = 0; unit < R2_UNIT_COUNT; ++unit) {
        assert_non_null(r2_unit_form((r2_unit_t) unit));
    }
    assert_string_equal(r2_unit_form(R2_UNIT_TIME), "time like 5us or 1ms");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(bounds_belong_to_the_range),
        cmocka_unit_test(real_numbers),
        cmocka_unit_test(what_is_no_number),
        cmocka_unit_test(what_is_too_much_or_no_whole_number),
        cmocka_unit_test(forms_are_examples),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
