/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Messages of one chunk: which ones go whole.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "stub_net.h"

#define LONGEST (1u << 20)

static void sent(void *arg, r2_status_t status)
{
    (void) arg;
    (void) status;
}

/* Bytes of the chunks of a message, all lanes being up and the preferred one this fast. */
static uint32_t chunk_bytes_of(uint64_t bytes, uint64_t bytes_per_s, bool suspect)
{
    static const char data[LONGEST];
    stub_net_t *stub = stub_net_create();
    r2_link_t *link = stub->link;
    const r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                                 .data = data,
                                 .bytes = bytes,
                                 .chunk_bytes = 8192,
                                 .done = sent};
    uint32_t chunk_bytes;

    for (uint32_t i = 0; i < link->lane_count; ++i) {
        stub_lane_up(stub, i);
        link->lanes[i].tx.delivery.bytes_per_s = 1000000;
    }
    link->lanes[link->preferred].tx.delivery.bytes_per_s = bytes_per_s;
    if (suspect) {
        r2_lane_enter(&link->lanes[link->preferred], R2_LANE_SUSPECT);
    }
    assert_int_equal(r2_link_send(link, &args), R2_IN_PROGRESS);
    chunk_bytes = link->tx.messages->chunk_bytes;
    r2_link_withdraw(link, 1);
    stub_net_destroy(stub);
    return chunk_bytes;
}

/* 150 us of a lane are not worth sharing. */
static void short_messages_go_whole(void **state)
{
    (void) state;
    assert_int_equal(chunk_bytes_of(65536, 1000000000, false), 65536);
    assert_int_equal(chunk_bytes_of(30001, 200010000, false), 30001);
    assert_int_equal(chunk_bytes_of(30001, 190000000, false), 8192);
    assert_int_equal(chunk_bytes_of(65536, 12500000, false), 8192);
    assert_int_equal(chunk_bytes_of(65536, 0, false), 8192); /* nothing is known */
}

/* The lane has to be one that they may go by, and a chunk is no longer than it may be. */
static void others_are_shared(void **state)
{
    (void) state;
    assert_int_equal(chunk_bytes_of(65536, 1000000000, true), 8192);
    assert_true(chunk_bytes_of(131073, 10000000000, false) < 131073);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_messages_go_whole),
        cmocka_unit_test(others_are_shared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
