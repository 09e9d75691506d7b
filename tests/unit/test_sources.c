/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The table of sources: which of them a drive polls.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "ctx/source.h"

typedef struct place {
    unsigned polls, flushes;
    uint64_t deadline_ns;
} place_t;

static void place_poll(void *instance)
{
    ++((place_t *) instance)->polls;
}

static void place_flush(void *instance)
{
    ++((place_t *) instance)->flushes;
}

static uint64_t place_deadline_ns(void *instance)
{
    return ((const place_t *) instance)->deadline_ns;
}

static void who_is_due_is_polled(void **state)
{
    place_t bare = {0}, timed = {.deadline_ns = 100}, quiet = {0}, file = {0};
    r2_sources_t sources = {.count = 0};

    (void) state;
    assert_true(R2_NEVER_NS == r2_sources_deadline_ns(&sources));
    r2_sources_add(&sources, &(r2_source_t){.fd = -1, .poll = place_poll, .instance = &bare});
    r2_sources_add(&sources, &(r2_source_t){.fd = 3,
                                            .poll = place_poll,
                                            .deadline_ns = place_deadline_ns,
                                            .instance = &timed});
    r2_sources_add(&sources, &(r2_source_t){.fd = 4, .poll = place_poll, .instance = &quiet});
    r2_sources_add(&sources, &(r2_source_t){.fd = 5, .flush = place_flush, .instance = &file});
    assert_true(100 == r2_sources_deadline_ns(&sources));
    r2_sources_poll(&sources, 99);
    assert_true(1 == bare.polls && 0 == timed.polls && 0 == quiet.polls);
    r2_sources_poll(&sources, 100);
    assert_true(2 == bare.polls && 1 == timed.polls && 0 == quiet.polls);
    sources.at[2].ready = true;
    timed.deadline_ns = R2_NEVER_NS;
    r2_sources_poll(&sources, 101);
    r2_sources_poll(&sources, 102); /* it was polled: it is not ready any more */
    assert_true(4 == bare.polls && 1 == timed.polls && 1 == quiet.polls);
    assert_int_equal(file.flushes, 0);
    r2_sources_flush(&sources);
    assert_true(1 == file.flushes && 4 == bare.polls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_due_is_polled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
