/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Parameters: defaults, ranges, suffixes, relations, the environment.
 */
#include "r2_config.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "r2/counters.h"
#include "r2/params.h"

static r2_params_t fresh(void)
{
    r2_params_t params;

    memset(&params, 0, sizeof(params));
    r2_params_init(&params);
    return params;
}

static void assert_refused(const r2_params_t *params, const char *names)
{
    char text[256] = "";

    assert_int_equal(r2_params_check(params, text, sizeof(text)), R2_ERR_PARAM);
    assert_non_null(strstr(text, names));
}

static void defaults_are_good(void **state)
{
    r2_params_t params = fresh();
    size_t count;
    const r2_param_info_t *table = r2_params_table(&count);
    char text[256] = "";

    (void) state;
    assert_int_equal(r2_params_check(&params, text, sizeof(text)), R2_OK);
    assert_true(count > 20);
    for (size_t i = 0; i < count; ++i) {
        assert_true(strlen(table[i].help) > 10);
        assert_in_range(table[i].level, 1, 9);
        if (R2_PARAM_STRING != table[i].type) {
            assert_true(table[i].min <= table[i].dflt && table[i].dflt <= table[i].max);
        }
        for (size_t k = 0; k < i; ++k) {
            assert_string_not_equal(table[i].name, table[k].name);
        }
    }
}

/* Both ends of every range, and one step beyond, by text and by value. */
static void ranges(void **state)
{
    size_t count;
    const r2_param_info_t *table = r2_params_table(&count);

    (void) state;
    for (size_t i = 0; i < count; ++i) {
        r2_params_t params = fresh();
        char number[32];

        if (R2_PARAM_STRING == table[i].type) {
            continue;
        }
        snprintf(number, sizeof(number), "%" PRIu64, table[i].max);
        assert_int_equal(r2_params_set(&params, table[i].name, number), R2_OK);
        snprintf(number, sizeof(number), "%" PRIu64, table[i].min);
        assert_int_equal(r2_params_set(&params, table[i].name, number), R2_OK);
        snprintf(number, sizeof(number), "%" PRIu64, table[i].max + 1);
        assert_int_equal(r2_params_set(&params, table[i].name, number), R2_ERR_PARAM);
        if (table[i].min > 0) {
            snprintf(number, sizeof(number), "%" PRIu64, table[i].min - 1);
            assert_int_equal(r2_params_set(&params, table[i].name, number), R2_ERR_PARAM);
        }
        if (R2_PARAM_SIZE == table[i].type) {
            size_t beyond = (size_t) table[i].max + 1;

            memcpy((char *) &params + table[i].offset, &beyond, sizeof(beyond));
            assert_refused(&params, table[i].name);
        }
    }
}

/* A parameter that is one of a few words. */
static void words(void **state)
{
    static const char *const good[] = {"auto", "connect", "put"};
    r2_params_t params = fresh();
    char text[256];

    (void) state;
    for (size_t i = 0; i < r2_array_count(good); ++i) {
        assert_int_equal(r2_params_set(&params, "probe", good[i]), R2_OK);
        assert_int_equal(r2_params_check(&params, text, sizeof(text)), R2_OK);
    }
    assert_int_equal(r2_params_set(&params, "probe", "Put"), R2_OK);
    assert_refused(&params, "probe (Put) is none of auto, connect, put");
    assert_int_equal(r2_params_set(&params, "probe", ""), R2_OK);
    assert_refused(&params, "probe ()");
    assert_int_equal(r2_params_set(&params, "probe", "auto, connect"), R2_OK);
    assert_refused(&params, "probe (auto, connect)");
    params = fresh();
    assert_int_equal(r2_params_set(&params, "gpu", "ignore"), R2_OK);
    assert_int_equal(r2_params_set(&params, "tls", "tcp"), R2_OK);
    assert_int_equal(r2_params_check(&params, text, sizeof(text)), R2_OK);
    assert_int_equal(r2_params_set(&params, "gpu", "ign"), R2_OK);
    assert_refused(&params, "gpu (ign) is none of auto, decline, ignore");
    params = fresh();
    assert_int_equal(r2_params_set(&params, "tls", "rc"), R2_OK);
    assert_int_equal(r2_params_check(&params, text, sizeof(text)), R2_OK);
    assert_int_equal(r2_params_set(&params, "tls", "dc"), R2_OK);
    assert_refused(&params, "tls (dc) is none of auto, tcp, rc");
}

/* Sizes that may be a word are strings, and have a range all the same. */
static void sizes_or_auto(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"auto", R2_PARAM_AUTO},
                {"0", 0},
                {"256", 256},
                {"32k", 32768},
                {"1099511627776", UINT64_C(1) << 40}};
    static const char *const bad[] = {"", "Auto", "automatic", "-1", "12x", "1099511627777", "1.5"};
    r2_params_t params = fresh();
    uint64_t bytes = 77;
    char text[256];

    (void) state;
    assert_string_equal(params.gpu_reduce_bytes, "auto");
    for (size_t i = 0; i < r2_array_count(good); ++i) {
        assert_int_equal(r2_params_set(&params, "gpu_reduce_bytes", good[i].text), R2_OK);
        assert_int_equal(r2_params_check(&params, text, sizeof(text)), R2_OK);
        assert_int_equal(r2_params_size(good[i].text, UINT64_C(1) << 40, &bytes), R2_OK);
        assert_int_equal(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < r2_array_count(bad); ++i) {
        assert_int_equal(r2_params_set(&params, "gpu_reduce_bytes", bad[i]), R2_OK);
        assert_refused(&params, "is neither auto nor in the range 0 .. 1099511627776");
        assert_int_equal(r2_params_size(bad[i], UINT64_C(1) << 40, &bytes), R2_ERR_PARAM);
    }
    assert_int_equal(bytes, UINT64_C(1) << 40);
}

static void suffixes(void **state)
{
    r2_params_t params = fresh();

    (void) state;
    assert_int_equal(r2_params_set(&params, "eager_bytes", "64k"), R2_OK);
    assert_int_equal(params.eager_bytes, 65536);
    assert_int_equal(r2_params_set(&params, "eager_bytes", "2M"), R2_OK);
    assert_int_equal(params.eager_bytes, 2u << 20);
    assert_int_equal(r2_params_set(&params, "scratch_bytes", "1g"), R2_OK);
    assert_int_equal(params.scratch_bytes, 1u << 30);
    assert_int_equal(r2_params_set(&params, "takeover_us", "5k"), R2_ERR_PARAM); /* no size */
    assert_int_equal(r2_params_set(&params, "eager_bytes", "64kb"), R2_ERR_PARAM);
    assert_int_equal(r2_params_set(&params, "eager_bytes", "k"), R2_ERR_PARAM);
    assert_int_equal(r2_params_set(&params, "reproducible", "false"), R2_OK);
    assert_false(params.reproducible);
    assert_int_equal(r2_params_set(&params, "reproducible", "1"), R2_OK);
    assert_true(params.reproducible);
}

/* What is not a number, or one that does not fit. Shifting by the suffix must not wrap into the
 * range. */
static void nonsense(void **state)
{
    static const char *const texts[] = {"",
                                        " ",
                                        "-1",
                                        "+",
                                        "x",
                                        "0x10",
                                        "10 ",
                                        "1e3",
                                        "1.5",
                                        "true!",
                                        "18446744073709551616",
                                        "18014398509481985k",
                                        "17592186044417m",
                                        "17179869185g",
                                        " -1",
                                        " -18446744073709486080",
                                        "\t7000",
                                        "  -65536k",
                                        "-18446744073709486080"};

    (void) state;
    for (size_t i = 0; i < r2_array_count(texts); ++i) {
        r2_params_t params = fresh(), before = params;

        if (R2_ERR_PARAM != r2_params_set(&params, "eager_bytes", texts[i])) {
            fail_msg("'%s' was taken for %zu", texts[i], params.eager_bytes);
        }
        assert_memory_equal(&params, &before, sizeof(params));
    }
}

static void names(void **state)
{
    r2_params_t params = fresh();

    (void) state;
    assert_int_equal(r2_params_set(&params, "no_such_name", "1"), R2_ERR_NOT_FOUND);
    assert_int_equal(r2_params_set(&params, "", "1"), R2_ERR_NOT_FOUND);
    assert_int_equal(r2_params_set(&params, "rails", "eth0,eth1"), R2_OK);
    assert_string_equal(params.rails, "eth0,eth1");
}

static void relations(void **state)
{
    r2_params_t params = fresh();

    (void) state;
    params.chunk_min_bytes = 131072;
    params.chunk_max_bytes = 8192;
    assert_refused(&params, "chunk_min_bytes");
    params = fresh();
    params.window_min_bytes = 131072;
    params.window_max_bytes = 65536;
    assert_refused(&params, "window_min_bytes");
    params = fresh();
    params.failure_timeout_ms = 20;
    params.ack_delay_us = 10000;
    assert_refused(&params, "ack_delay_us");
    params = fresh();
    params.heal_min_ms = 3000;
    params.heal_max_ms = 2000;
    assert_refused(&params, "heal_min_ms");
}

/* What a process keeps for a pair that it relays for grows with windows and chunks. */
static void defaults_have_room_for_relays(void **state)
{
    const r2_params_t params = fresh();
    const uint64_t header_bytes = 1024; /* more than a packet's */
    const uint64_t side_bytes =
        2 * params.relay_window_bytes + params.chunk_max_bytes + header_bytes;

    (void) state;
    assert_true(params.relay_bytes / (2 * side_bytes) >= 15);
}

static void environment(void **state)
{
    r2_params_t params = fresh();
    char text[256] = "";

    (void) state;
    setenv("OMPI_MCA_coll_r2_unexpected_bytes", "1m", 1);
    assert_int_equal(r2_params_from_env(&params, text, sizeof(text)), R2_OK);
    assert_int_equal(params.unexpected_bytes, 1u << 20);
    setenv("OMPI_MCA_coll_r2_unexpected_bytes", "lots", 1);
    assert_int_equal(r2_params_from_env(&params, text, sizeof(text)), R2_ERR_PARAM);
    assert_non_null(strstr(text, "unexpected_bytes=lots"));
    unsetenv("OMPI_MCA_coll_r2_unexpected_bytes");
}

/* A second name sets the same value, in the same range; the first name goes before it. */
static void synonyms(void **state)
{
    size_t count;
    const r2_param_synonym_t *table = r2_params_synonyms(&count);
    r2_params_t params = fresh();
    char text[256] = "";

    (void) state;
    assert_true(count >= 2);
    for (size_t i = 0; i < count; ++i) {
        r2_params_t other = fresh();

        assert_int_equal(r2_params_set(&params, table[i].name, "4321"), R2_OK);
        assert_int_equal(r2_params_set(&other, table[i].stands_for, "4321"), R2_OK);
        assert_int_equal(r2_params_set(&params, table[i].name, "1"),
                         r2_params_set(&other, table[i].stands_for, "1"));
        assert_int_equal(r2_params_set(&params, table[i].name, "-1"), R2_ERR_PARAM);
        assert_int_equal(r2_params_set(&params, table[i].stands_for, "4321"), R2_OK);
    }
    assert_int_equal(params.failure_timeout_ms, 4321);
    assert_int_equal(params.no_path_timeout_ms, 4321);
    setenv("OMPI_MCA_coll_r2_failure_timeout", "70", 1);
    assert_int_equal(r2_params_from_env(&params, text, sizeof(text)), R2_OK);
    assert_int_equal(params.failure_timeout_ms, 70);
    setenv("OMPI_MCA_coll_r2_failure_timeout_ms", "90", 1);
    assert_int_equal(r2_params_from_env(&params, text, sizeof(text)), R2_OK);
    assert_int_equal(params.failure_timeout_ms, 90);
    setenv("OMPI_MCA_coll_r2_failure_timeout", "7s", 1);
    assert_int_equal(r2_params_from_env(&params, text, sizeof(text)), R2_ERR_PARAM);
    assert_non_null(strstr(text, "OMPI_MCA_coll_r2_failure_timeout=7s"));
    unsetenv("OMPI_MCA_coll_r2_failure_timeout");
    unsetenv("OMPI_MCA_coll_r2_failure_timeout_ms");
}

/* A deprecated name of a counter is none that a counter has now, and stands for one. */
static void synonyms_of_counters(void **state)
{
    static const char *const before[] = {"rx_ghosts", "parked_chunks", "parked_bytes_max",
                                         "merges"};
    size_t rows, count;
    const r2_counter_info_t *table = r2_counters_table(&rows);
    const r2_counter_synonym_t *synonyms = r2_counters_synonyms(&count);

    (void) state;
    assert_int_equal(count, r2_array_count(before));
    for (size_t i = 0; i < count; ++i) {
        uint32_t stands_for = 0;

        assert_string_equal(synonyms[i].name, before[i]);
        for (size_t row = 0; row < rows; ++row) {
            assert_string_not_equal(synonyms[i].name, table[row].name);
            stands_for += 0 == strcmp(synonyms[i].stands_for, table[row].name);
        }
        assert_int_equal(stands_for, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_good), cmocka_unit_test(ranges), cmocka_unit_test(suffixes),
        cmocka_unit_test(words),
        cmocka_unit_test(sizes_or_auto),
        cmocka_unit_test(nonsense),          cmocka_unit_test(names),  cmocka_unit_test(relations),
        cmocka_unit_test(defaults_have_room_for_relays),
        cmocka_unit_test(environment),
        cmocka_unit_test(synonyms),
        cmocka_unit_test(synonyms_of_counters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
