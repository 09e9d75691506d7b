/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What help texts say of hosts, rails, verdicts and times; ages in notices.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "health/notice.h"
#include "health_world.h"

#define TEXT_BYTES 4096

static void add_fault(world_t *world, fault_kind_t kind, uint32_t host, uint32_t host_b,
                      uint32_t rail)
{
    world->faults[world->fault_count++] = (fault_t){.kind = kind, .host = host, .host_b = host_b,
                                                    .rail = rail, .rank = host,
                                                    .from_ns = world->now_ns, .to_ns = R2_NEVER_NS};
}

static void describe(const world_t *world, uint32_t rank, uint32_t other, char *text_p)
{
    r2_health_describe(world->machines[rank].health, world->host_of[rank], other, world->now_ns,
                       text_p, TEXT_BYTES);
}

/* Seconds in the line that begins so. */
static double seconds_of(const char *text, const char *line)
{
    const char *at = strstr(text, line);

    assert_non_null(at);
    at = strstr(at, ", for ");
    assert_non_null(at);
    return strtod(at + strlen(", for "), NULL);
}

static void ages_are_at_most_an_eighth_too_short(void **state)
{
    uint64_t age_ms, last_ns = 0;

    (void) state;
    for (age_ms = 0; age_ms < UINT32_MAX / 2; age_ms += 1 + age_ms / 50) {
        uint64_t back_ns = r2_notice_age_ns(r2_notice_age(age_ms * R2_NS_PER_MS));

        assert_true(back_ns >= last_ns);
        assert_true(back_ns <= age_ms * R2_NS_PER_MS);
        assert_true(9 * back_ns >= 8 * age_ms * R2_NS_PER_MS);
        last_ns = back_ns;
    }
    assert_int_equal(r2_notice_age(UINT64_MAX), r2_notice_age(UINT32_MAX * R2_NS_PER_MS));
    /* every value means another age */
    for (age_ms = 0; age_ms <= r2_notice_age(UINT64_MAX); ++age_ms) {
        assert_int_equal(age_ms, r2_notice_age(r2_notice_age_ns((uint8_t) age_ms)));
    }
}

static void healthy_rails_are_named(void **state)
{
    char text[TEXT_BYTES];
    world_t world;

    (void) state;
    world_init(&world, 3, 2, 2, 1);
    describe(&world, 0, 2, text);
    assert_string_equal(text, "  rail 0 of h0: healthy\n  rail 1 of h0: healthy\n"
                              "  rail 0 of h2: healthy\n  rail 1 of h2: healthy\n");
    r2_health_describe_broken(world.machines[0].health, world.now_ns, text, sizeof(text));
    assert_string_equal(text, "");
    world_fini(&world);
}

/* Everybody tells the time of the first evidence, not the time at which it was heard of. */
static void verdicts_are_told_with_their_age(void **state)
{
    char text[TEXT_BYTES];
    uint32_t rank;
    world_t world;

    (void) state;
    world_init(&world, 6, 2, 2, 3);
    world.delay_ns = 700 * R2_NS_PER_MS; /* notices take their time */
    add_fault(&world, FAULT_NIC, 1, 0, 1);
    world_run(&world, 5000);
    for (rank = 0; rank < world.rank_count; ++rank) {
        double seconds;

        describe(&world, rank, 1 == world.host_of[rank] ? 0 : 1, text);
        seconds = seconds_of(text, "  rail 1 of h1: nic, direction both, capacity 0/16");
        assert_true(seconds > 3.5 && seconds <= 5.0);
        r2_health_describe_broken(world.machines[rank].health, world.now_ns, text, sizeof(text));
        assert_true(seconds_of(text, "  rail 1 of h1: nic") > 3.5);
        assert_null(strstr(text, "rail 0"));
    }
    world_fini(&world);
}

static void broken_paths_and_dead_processes_are_told(void **state)
{
    char text[TEXT_BYTES];
    world_t world;

    (void) state;
    world_init(&world, 4, 2, 2, 5);
    add_fault(&world, FAULT_PATH, 0, 2, 1);
    add_fault(&world, FAULT_KILL, 3, 0, 0);
    world.faults[1].rank = 7; /* the other process of its host sees it */
    world_run(&world, 2000);
    describe(&world, 0, 2, text);
    assert_non_null(strstr(
        text, "  rail 0 of h0: healthy\n  rail 1 of h0: healthy, no path between the two hosts\n"));
    describe(&world, 2, 3, text);
    assert_non_null(strstr(text, "  rank 7 on h3: its process is gone\n"));
    assert_true(r2_health_gone(world.machines[2].health, 7));
    assert_false(r2_health_gone(world.machines[2].health, 6));
    assert_false(r2_health_gone(world.machines[2].health, 99));
    r2_health_describe_broken(world.machines[2].health, world.now_ns, text, sizeof(text));
    assert_non_null(strstr(text, "  rail 1 of h0: no path to h2\n"));
    assert_non_null(strstr(text, "  rank 7 on h3: its process is gone\n"));
    world_fini(&world);
}

/* Any room is enough; nothing is written behind it. */
static void text_is_cut_off_where_it_ends(void **state)
{
    char whole[TEXT_BYTES], text[TEXT_BYTES];
    size_t bytes;
    world_t world;

    (void) state;
    world_init(&world, 3, 2, 3, 1);
    describe(&world, 0, 1, whole);
    for (bytes = 1; bytes <= strlen(whole) + 1; ++bytes) {
        memset(text, 'x', sizeof(text));
        r2_health_describe(world.machines[0].health, 0, 1, world.now_ns, text, bytes);
        assert_int_equal(strlen(text), bytes - 1);
        assert_memory_equal(text, whole, bytes - 1);
        assert_int_equal(text[bytes], 'x');
    }
    r2_health_describe(world.machines[0].health, 0, 99, world.now_ns, text, sizeof(text));
    assert_string_equal(text, "");
    world_fini(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ages_are_at_most_an_eighth_too_short),
        cmocka_unit_test(healthy_rails_are_named),
        cmocka_unit_test(verdicts_are_told_with_their_age),
        cmocka_unit_test(broken_paths_and_dead_processes_are_told),
        cmocka_unit_test(text_is_cut_off_where_it_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
