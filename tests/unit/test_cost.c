/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Cost parameters: what a file says, what is wrong with it, what is measured.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ctx/cost.h"

static char name[] = "/tmp/r2-cost-XXXXXX";
static char text[256];

static r2_status_t find(const char *words, r2_cost_params_t *cost)
{
    FILE *file = fopen(name, "w");

    assert_non_null(file);
    fputs(words, file);
    assert_int_equal(fclose(file), 0);
    return r2_cost_find(name, r2_clock_system(), cost, text, sizeof(text));
}

static void file_is_read(void **state)
{
    r2_cost_params_t cost;

    (void) state;
    assert_int_equal(find("# of this cluster\n\nalpha_ns 4000 # of a step\n reduce_mbytes_per_s\t9000\n", &cost),
                     R2_OK);
    assert_int_equal(cost.alpha_ns, 4000);
    assert_int_equal(cost.reduce_mbytes_per_s, 9000);
    assert_int_equal(find("alpha_ns 4294967295\n", &cost), R2_OK);
    assert_int_equal(cost.alpha_ns, UINT32_MAX);
    assert_true(cost.reduce_mbytes_per_s > 0); /* measured */
}

static void wrong_lines_are_named(void **state)
{
    static const char *const lines[] = {"alpha_ns",    "alpha_ns 0",   "alpha_ns -1",  "alpha_ns 4294967296",
                                        "alpha_ns 1x", "alpha_ns 1 2", "beta 1",       "99999999999999999999"};
    r2_cost_params_t cost = {1, 2};

    (void) state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        char words[64];

        snprintf(words, sizeof(words), "alpha_ns 5\n%s\n", lines[i]);
        assert_int_equal(find(words, &cost), R2_ERR_PARAM);
        assert_non_null(strstr(text, " line 2: "));
        assert_int_equal(cost.alpha_ns, 1); /* untouched */
    }
    assert_int_equal(r2_cost_find("/nowhere/cost", r2_clock_system(), &cost, text, sizeof(text)),
                     R2_ERR_PARAM);
    assert_non_null(strstr(text, "/nowhere/cost"));
}

static void nothing_said_is_measured(void **state)
{
    r2_cost_params_t cost;

    (void) state;
    assert_int_equal(r2_cost_find("", r2_clock_system(), &cost, text, sizeof(text)), R2_OK);
    assert_int_equal(cost.alpha_ns, 0);
    assert_true(cost.reduce_mbytes_per_s > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(file_is_read),
                                       cmocka_unit_test(wrong_lines_are_named),
                                       cmocka_unit_test(nothing_said_is_measured)};
    int fd = mkstemp(name), failed;

    if (fd < 0) {
        return 1;
    }
    close(fd);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(name);
    return failed;
}
