/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Notices between health machines: layout, what is refused, stale claims.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "health/notice.h"
#include "health_world.h"

/* Little endian, packed, every byte at its place for ever (of this version). */
static void notice_layout(void **state)
{
    static const uint8_t bytes[] = {
        1,    9,    0x02, 0x00, 0x03, 0x00, 0x00, 0x00, /* version, kind, flags, answer, rail */
        0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, /* id */
        0x24, 0x23, 0x22, 0x21, 0x00, 0x00, 0x00, 0x00, /* host_a, host_b */
        0x34, 0x33, 0x32, 0x31, 0x05, 0x04, 0x02, 0x00, /* entry_version, capacity, ... */
    };
    r2_notice_t notice;

    (void) state;
    assert_int_equal(sizeof(bytes), sizeof(notice));
    assert_int_equal(r2_notice_parse(bytes, sizeof(bytes), &notice), R2_OK);
    assert_int_equal(notice.kind, R2_NOTICE_CLAIM);
    assert_int_equal(notice.flags, R2_NOTICE_ACT);
    assert_int_equal(notice.rail, 3);
    assert_true(0x1112131415161718ull == notice.id);
    assert_int_equal(notice.host_a, 0x21222324);
    assert_int_equal(notice.entry_version, 0x31323334);
    assert_int_equal(notice.capacity, 5);
    assert_int_equal(notice.verdict, R2_VERDICT_SLOW);
    assert_int_equal(notice.direction, R2_DIRECTION_IN);
}

/* Each differs in one byte from a notice that is taken. */
static void notices_refused(void **state)
{
    const r2_notice_t good = {.version = R2_NOTICE_VERSION, .kind = R2_NOTICE_ACK, .id = 5};
    static const uint8_t unused[] = {0, 2, 3, 4, 7, 16, 20, 24, 27, 28, 29, 30, 31};
    uint8_t bytes[sizeof(good) + 1] = {0};
    r2_notice_t notice;
    uint32_t idx;

    (void) state;
    memcpy(bytes, &good, sizeof(good));
    assert_int_equal(r2_notice_parse(bytes, sizeof(good), &notice), R2_OK);
    assert_int_equal(r2_notice_parse(bytes, sizeof(good) - 1, &notice), R2_ERR_WIRE);
    assert_int_equal(r2_notice_parse(bytes, sizeof(good) + 1, &notice), R2_ERR_WIRE);
    assert_int_equal(r2_notice_parse(bytes, 0, &notice), R2_ERR_WIRE);
    for (idx = 0; idx < r2_array_count(unused); ++idx) {
        bytes[unused[idx]] ^= 2;
        assert_int_equal(r2_notice_parse(bytes, sizeof(good), &notice), R2_ERR_WIRE);
        bytes[unused[idx]] ^= 2;
    }
    bytes[1] = 0;
    assert_int_equal(r2_notice_parse(bytes, sizeof(good), &notice), R2_ERR_WIRE);
    bytes[1] = R2_NOTICE_KIND_END;
    assert_int_equal(r2_notice_parse(bytes, sizeof(good), &notice), R2_ERR_WIRE);
}

/* An entry is a rail of one host: a verdict that names two, or a process, would be looked up. */
static void verdicts_that_no_entry_has_are_refused(void **state)
{
    r2_notice_t notice = {.version = R2_NOTICE_VERSION, .id = 5}, parsed;

    (void) state;
    for (uint8_t verdict = 0; verdict < R2_VERDICT_COUNT; ++verdict) {
        const bool fits = R2_VERDICT_HEALTHY == verdict || R2_VERDICT_NIC == verdict ||
                          R2_VERDICT_PLANE == verdict || R2_VERDICT_SLOW == verdict;

        notice.verdict = verdict;
        notice.kind = R2_NOTICE_CHANGE;
        assert_true(fits == (R2_OK == r2_notice_parse(&notice, sizeof(notice), &parsed)));
        notice.kind = R2_NOTICE_CLAIM;
        assert_true(fits == (R2_OK == r2_notice_parse(&notice, sizeof(notice), &parsed)));
    }
}

/* A claim from before the last change is answered with the change, not obeyed. */
static void stale_claims_are_refused(void **state)
{
    r2_notice_t claim = {.version = R2_NOTICE_VERSION,
                         .kind = R2_NOTICE_CLAIM,
                         .flags = R2_NOTICE_ACT,
                         .id = 9,
                         .verdict = R2_VERDICT_NIC};
    world_t world;

    (void) state;
    world_init(&world, 3, 1, 2, 1);
    world_fault(&world, FAULT_NIC, 0, 0)->to_ns = world.now_ns + 300 * R2_NS_PER_MS;
    world_run(&world, 5000);
    assert_int_equal(world_entry(&world, 0, 0, 0)->version, 2);
    assert_int_equal(
        r2_health_noticed(world.machines[0].health, 1, &claim, sizeof(claim), world.now_ns), R2_OK);
    assert_int_equal(world_entry(&world, 0, 0, 0)->version, 2);
    claim.entry_version = 2;
    claim.capacity = 8; /* strangers may only call a rail dead */
    assert_int_equal(
        r2_health_noticed(world.machines[0].health, 1, &claim, sizeof(claim), world.now_ns), R2_OK);
    assert_int_equal(world_entry(&world, 0, 0, 0)->version, 2);
    claim.capacity = 0;
    assert_int_equal(
        r2_health_noticed(world.machines[0].health, 1, &claim, sizeof(claim), world.now_ns), R2_OK);
    assert_int_equal(world_entry(&world, 0, 0, 0)->version, 3);
    world_fini(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notice_layout),
        cmocka_unit_test(notices_refused),
        cmocka_unit_test(verdicts_that_no_entry_has_are_refused),
        cmocka_unit_test(stale_claims_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
