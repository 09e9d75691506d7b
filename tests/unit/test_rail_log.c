/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What is told of rails at the default level: wording, folding, who is silent.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/util.h"
#include "ctx/rail_log.h"
#include "model/health_map.h"

#define S R2_NS_PER_S
/* 14:03:07 UTC of some day, when the clock says 0 */
#define WALL_NS ((20000ll * 86400 + 14 * 3600 + 3 * 60 + 7) * (int64_t) S)

typedef struct lines {
    uint32_t count;
    char last[1024];
} lines_t;

static void take(void *arg, int level, const char *line)
{
    lines_t *lines = arg;
    const char *text = strstr(line, "warning: ");

    (void) level;
    assert_non_null(text);
    ++lines->count;
    snprintf(lines->last, sizeof(lines->last), "%s", text + strlen("warning: "));
}

static r2_log_t log_of(lines_t *lines)
{
    memset(lines, 0, sizeof(*lines));
    return (r2_log_t){.level = R2_LOG_WARN, .fn = take, .arg = lines, .prefix = "h1:0"};
}

static r2_rail_change_t rail1(bool dead, uint64_t since_ns)
{
    return (r2_rail_change_t){.host = 1, .other = UINT32_MAX, .rail = 1, .nic = "rail1",
                              .host_name = "h1",
                              .verdict = dead ? R2_VERDICT_NIC : R2_VERDICT_HEALTHY,
                              .capacity = dead ? 0 : R2_CAPACITY_FULL, .left = dead ? 3 : 4,
                              .all = 4, .since_ns = since_ns};
}

static void change(r2_rail_log_t *rails, bool dead, uint64_t now_ns)
{
    const r2_rail_change_t what = rail1(dead, now_ns);

    r2_rail_log_change(rails, &what, now_ns);
}

/* Lets time pass as a context does: ticks when they are due. */
static void run_until(r2_rail_log_t *rails, uint64_t end_ns)
{
    while (r2_rail_log_deadline_ns(rails) <= end_ns) {
        r2_rail_log_tick(rails, r2_rail_log_deadline_ns(rails));
    }
}

static void says_what_an_admin_wants(void **state)
{
    lines_t lines;
    const r2_log_t log = log_of(&lines);
    r2_rail_log_t *rails = r2_rail_log_create(&log, WALL_NS);
    r2_rail_change_t what;

    (void) state;
    assert_true(R2_NEVER_NS == r2_rail_log_deadline_ns(rails)); /* a healthy job costs no wakeup */
    change(rails, true, 0);
    assert_string_equal(lines.last,
                        "rail1 of h1 is dead (NIC, cable or switch port); the job goes on with "
                        "3 of 4 rails; since 14:03:07");
    run_until(rails, 3600 * S);
    change(rails, false, 3600 * S);
    assert_string_equal(lines.last, "rail1 of h1 is back after 3600.0 s; 4 of 4 rails work");
    run_until(rails, 7200 * S);
    assert_int_equal(lines.count, 2);
    assert_true(R2_NEVER_NS == r2_rail_log_deadline_ns(rails));
    what = (r2_rail_change_t){.host = 0, .other = 2, .rail = 1, .nic = "rail1", .host_name = "h0",
                              .other_name = "h2", .verdict = R2_VERDICT_PATH, .left = 3, .all = 4,
                              .since_ns = 7201 * S};
    r2_rail_log_change(rails, &what, 7202 * S);
    assert_string_equal(lines.last,
                        "rail1 between h0 and h2 does not pass (a switch or cable between the "
                        "two); they go on with 3 of 4 rails; since 16:03:08");
    what = rail1(true, 7300 * S);
    what.verdict = R2_VERDICT_SLOW;
    what.capacity = 4;
    r2_rail_log_change(rails, &what, 7300 * S);
    assert_string_equal(lines.last,
                        "rail1 of h1 gives 4/16 of its rate (NIC, cable, switch port or other "
                        "traffic); since 16:04:47");
    assert_int_equal(lines.count, 4);
    r2_rail_log_destroy(rails, 7300 * S);
    assert_int_equal(lines.count, 4);
}

/* 1,000 flaps in 500 s: two lines at once, then one for each interval, which grow. */
static void flaps_are_folded(void **state)
{
    lines_t lines;
    const r2_log_t log = log_of(&lines);
    r2_rail_log_t *rails = r2_rail_log_create(&log, WALL_NS);
    uint64_t now_ns = S;

    (void) state;
    for (uint32_t i = 0; i < 1000; ++i) {
        run_until(rails, now_ns);
        change(rails, true, now_ns);
        now_ns += S / 4;
        run_until(rails, now_ns);
        change(rails, false, now_ns);
        now_ns += S / 4;
        if (19 == i) { /* 10 s: the first interval is over */
            run_until(rails, now_ns + S);
            assert_int_equal(lines.count, 3);
            assert_string_equal(lines.last,
                                "rail1 of h1 changed 38 more times in 10 s, broken 19 of these; "
                                "it is well now, with 4 of 4 rails");
        }
    }
    run_until(rails, now_ns);
    assert_true(lines.count >= 6 && lines.count <= 8); /* 10, 20, 40, 80, 160 s and those at once */
    run_until(rails, now_ns + 2000 * S); /* calm: the rest is told once, and it is over */
    assert_true(lines.count >= 7 && lines.count <= 9);
    assert_true(R2_NEVER_NS == r2_rail_log_deadline_ns(rails));
    now_ns += 2000 * S;
    change(rails, true, now_ns); /* and what is new has its line at once again */
    assert_non_null(strstr(lines.last, "is dead (NIC"));
    r2_rail_log_destroy(rails, now_ns);
}

/* What is folded when a job ends is told. */
static void the_end_tells_the_rest(void **state)
{
    lines_t lines;
    const r2_log_t log = log_of(&lines);
    r2_rail_log_t *rails = r2_rail_log_create(&log, WALL_NS);

    (void) state;
    change(rails, true, 1 * S);
    change(rails, false, 2 * S);
    change(rails, true, 3 * S);
    assert_int_equal(lines.count, 2);
    r2_rail_log_destroy(rails, 4 * S);
    assert_int_equal(lines.count, 3);
    assert_string_equal(lines.last,
                        "rail1 of h1 changed 1 more times in 3 s, broken 1 of these; it is dead "
                        "(NIC, cable or switch port); the job goes on with 3 of 4 rails");
}

/* A rail of another host: its own host has a while to tell; then who misses it does. */
static void another_hosts_rail_is_left_to_it(void **state)
{
    lines_t lines;
    const r2_log_t log = log_of(&lines);
    r2_rail_log_t *rails = r2_rail_log_create(&log, WALL_NS);
    r2_rail_change_t what = rail1(true, 0);

    (void) state;
    what.from = "h0";
    r2_rail_log_hold(rails, &what, 0);
    r2_rail_log_release(rails, 1, 1); /* it did */
    run_until(rails, 100 * S);
    assert_int_equal(lines.count, 0);
    r2_rail_log_hold(rails, &what, 100 * S);
    r2_rail_log_hold(rails, &what, 101 * S);
    run_until(rails, 102 * S);
    assert_int_equal(lines.count, 0);
    run_until(rails, 110 * S);
    assert_int_equal(lines.count, 1);
    assert_string_equal(lines.last,
                        "rail1 of h1 is dead (NIC, cable or switch port), seen from h0; h1 does "
                        "not answer; the job goes on with 3 of 4 rails; since 14:03:07");
    r2_rail_log_hold(rails, &what, 111 * S);
    run_until(rails, 200 * S);
    assert_int_equal(lines.count, 1); /* once */
    r2_rail_log_destroy(rails, 200 * S);
}

/* Any number of rails and ways that break: memory is bounded, and each has its line. */
static void many_subjects(void **state)
{
    lines_t lines;
    const r2_log_t log = log_of(&lines);
    r2_rail_log_t *rails = r2_rail_log_create(&log, WALL_NS);
    const uint32_t count = 3 * R2_RAIL_LOG_SUBJECTS_MAX;

    (void) state;
    for (uint32_t i = 0; i < count; ++i) {
        r2_rail_change_t what = rail1(true, i);

        what.host = i;
        r2_rail_log_change(rails, &what, i);
    }
    assert_int_equal(lines.count, count);
    r2_rail_log_destroy(rails, count);
    assert_int_equal(lines.count, count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_an_admin_wants),
        cmocka_unit_test(flaps_are_folded),
        cmocka_unit_test(the_end_tells_the_rest),
        cmocka_unit_test(another_hosts_rail_is_left_to_it),
        cmocka_unit_test(many_subjects),
    };

    setenv("TZ", "UTC", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
