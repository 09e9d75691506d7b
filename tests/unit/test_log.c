/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Log lines while the component that prints them goes: nobody is left in its function.
 */
#include "r2_config.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/logger.h"

static atomic_bool inside;
static atomic_uint lines;

static void slow_log(void *arg, int level, const char *line)
{
    const struct timespec pause = {.tv_nsec = 50000000};

    (void) arg;
    (void) level;
    (void) line;
    atomic_store(&inside, true);
    nanosleep(&pause, NULL);
    atomic_store(&inside, false);
    atomic_fetch_add(&lines, 1);
}

static void *says(void *arg)
{
    const r2_log_t *log = arg;

    r2_warn(log, "the first of two");
    r2_warn(log, "the second, to stderr");
    return NULL;
}

static void nobody_is_in_what_is_taken_away(void **state)
{
    r2_log_t log = {.level = R2_LOG_WARN, .fn = slow_log, .prefix = "test"};
    pthread_t thread;

    (void) state;
    assert_int_equal(pthread_create(&thread, NULL, says, &log), 0);
    while (!atomic_load(&inside)) {
        sched_yield();
    }
    r2_log_forget(&log);
    assert_false(atomic_load(&inside));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_in_range(atomic_load(&lines), 1, 2); /* the second may be said before */
    assert_null(log.fn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_in_what_is_taken_away),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
