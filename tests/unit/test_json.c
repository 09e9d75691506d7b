/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The writer of JSON, read back by another library.
 */
#include "r2_config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/util.h"
#include "r2/json.h"

/* What was printed is what a strict parser reads, whatever bytes there are. */
static void json_escapes(void **state)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"plain", "plain"},
        {"\"\\/", "\"\\/"},
        {"\x01\x1f\t\n\r\x7f", "\x01\x1f\t\n\r\x7f"},
        {"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\x80", "\xef\xbf\xbd"},
        {"\xc3", "\xef\xbf\xbd"},
        {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd"},                 /* overlong */
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* surrogate */
        {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xff"
         "a",
         "\xef\xbf\xbd"
         "a"},
    };

    (void) state;
    for (size_t i = 0; i < r2_array_count(rows); ++i) {
        char text[256];
        r2_json_t json;
        json_t *object;

        r2_json_init(&json, text, sizeof(text));
        r2_json_open(&json, NULL, '{');
        r2_json_string(&json, "s", rows[i].in);
        r2_json_u64(&json, "n", UINT64_MAX / 2);
        r2_json_close(&json, '}');
        assert_false(json.overflow);
        object = json_loads(text, 0, NULL);
        if (NULL == object) {
            fail_msg("row %zu: %s", i, text);
        }
        assert_string_equal(json_string_value(json_object_get(object, "s")), rows[i].out);
        assert_int_equal(json_integer_value(json_object_get(object, "n")), INT64_MAX);
        json_decref(object);
    }
}

/* In every size of memory: whole, or said to be not whole; never a byte beyond. */
static void json_overflow(void **state)
{
    (void) state;
    for (size_t bytes = 1; bytes < 40; ++bytes) {
        char text[64];
        r2_json_t json;

        memset(text, 'x', sizeof(text));
        r2_json_init(&json, text, bytes);
        r2_json_open(&json, NULL, '{');
        r2_json_string(&json, "a",
                       "\x01"
                       "b");
        r2_json_bool(&json, "c", true);
        r2_json_close(&json, '}');
        for (size_t i = bytes; i < sizeof(text); ++i) {
            assert_int_equal(text[i], 'x');
        }
        assert_int_equal(json.overflow, bytes <= strlen("{\"a\":\"\\u0001b\",\"c\":true}"));
    }
}

/* A text for people and programs: this is what it looks like. */
static void file_is_indented(void **state)
{
    static const char *const wanted =
        "{\n  \"a\": 1,\n  \"none\": [],\n  \"list\": [\n    null,\n    {\n"
        "      \"b\": true\n    },\n    \"c\"\n  ]\n}\n";
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    r2_json_t json;

    (void) state;
    r2_json_init_file(&json, out);
    r2_json_open(&json, NULL, '{');
    r2_json_u64(&json, "a", 1);
    r2_json_open(&json, "none", '[');
    r2_json_close(&json, ']');
    r2_json_open(&json, "list", '[');
    r2_json_null(&json, NULL);
    r2_json_open(&json, NULL, '{');
    r2_json_bool(&json, "b", true);
    r2_json_close(&json, '}');
    r2_json_string(&json, NULL, "c");
    r2_json_close(&json, ']');
    r2_json_close(&json, '}');
    assert_int_equal(r2_json_end_file(&json), R2_OK);
    fclose(out);
    assert_string_equal(text, wanted);
    free(text);
}

/* Each number comes back bit by bit, and stays a real one. */
static void reals_are_exact(void **state)
{
    static const double rows[] = {0,    1,     -1, 0.1, 1.0 / 3, 5e-324, 1.7976931348623157e308,
                                  1e22, 12.5e6};

    (void) state;
    for (size_t i = 0; i < r2_array_count(rows); ++i) {
        char text[64];
        r2_json_t json;
        json_t *array;

        r2_json_init(&json, text, sizeof(text));
        r2_json_open(&json, NULL, '[');
        r2_json_real(&json, NULL, rows[i]);
        r2_json_close(&json, ']');
        array = json_loads(text, 0, NULL);
        assert_true(json_is_real(json_array_get(array, 0)));
        assert_true(json_real_value(json_array_get(array, 0)) == rows[i]);
        json_decref(array);
    }
}

static void what_has_no_value_is_null(void **state)
{
    char text[64];
    r2_json_t json;

    (void) state;
    r2_json_init(&json, text, sizeof(text));
    r2_json_open(&json, NULL, '[');
    r2_json_real(&json, NULL, HUGE_VAL);
    r2_json_real(&json, NULL, -HUGE_VAL);
    r2_json_real(&json, NULL, HUGE_VAL - HUGE_VAL);
    r2_json_string(&json, NULL, NULL);
    r2_json_close(&json, ']');
    assert_string_equal(text, "[null,null,null,null]");
}

static void full_disk_is_told(void **state)
{
    FILE *out = fopen("/dev/full", "we");
    r2_json_t json;

    (void) state;
    if (NULL == out) {
        skip();
    }
    r2_json_init_file(&json, out);
    r2_json_open(&json, NULL, '{');
    r2_json_close(&json, '}');
    assert_int_equal(r2_json_end_file(&json), R2_ERR_SYSTEM);
    fclose(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_escapes),
        cmocka_unit_test(json_overflow),
        cmocka_unit_test(file_is_indented),
        cmocka_unit_test(reals_are_exact),
        cmocka_unit_test(what_has_no_value_is_null),
        cmocka_unit_test(full_disk_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
