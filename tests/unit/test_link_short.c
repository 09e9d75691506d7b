/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Short headers on a link: which packets get one, and whose message is meant by half a number.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "stub_net.h"

static void post(stub_net_t *stub, uint32_t id, uint64_t bytes)
{
    static const char data[8200];
    const r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1, .id = id},
                                 .data = data,
                                 .bytes = bytes,
                                 .chunk_bytes = 8192};

    assert_int_equal(r2_link_send(stub->link, &args), R2_OK);
}

/* Length of the header of the newest packet. */
static size_t header_bytes(const stub_net_t *stub)
{
    return stub->sends->prev->op->header_bytes;
}

static void messages_of_one_chunk_have_short_headers(void **state)
{
    stub_net_t *stub = stub_net_create();

    (void) state;
    stub->params.copy_max_bytes = 8200;
    stub_lane_up(stub, 0);
    stub->mode = STUB_LATER;
    post(stub, 0, 8);
    assert_int_equal(header_bytes(stub), sizeof(r2_wire_short_t));
    post(stub, 1, 8192);
    assert_int_equal(header_bytes(stub), sizeof(r2_wire_short_t));
    post(stub, 2, 8200); /* two chunks */
    assert_int_equal(header_bytes(stub), sizeof(r2_wire_header_t));
    post(stub, 0x10000, 8);
    assert_int_equal(header_bytes(stub), sizeof(r2_wire_header_t));
    stub_net_destroy(stub);
}

/* Where a message is sent again long after it, half of its number would not do. */
static void old_messages_have_long_headers(void **state)
{
    stub_net_t *stub = stub_net_create();

    (void) state;
    stub_lane_up(stub, 0);
    stub_lane_up(stub, 1);
    stub->mode = STUB_LATER;
    post(stub, 0, 8);
    assert_int_equal(header_bytes(stub), sizeof(r2_wire_short_t));
    stub->link->tx.next_number += R2_WIRE_NEAR;
    r2_lane_fence(&stub->link->lanes[stub->link->turn.lane], R2_ERR_LANE_DOWN, false);
    r2_net_progress(&stub->net);
    assert_int_equal(stub->counters.resent_chunks, 1);
    assert_int_equal(header_bytes(stub), sizeof(r2_wire_header_t));
    stub_net_destroy(stub);
}

/* The peer's message of 8 bytes, in the short form. @return packets that made no sense. */
static uint64_t hear(stub_net_t *stub, uint64_t number)
{
    const r2_lane_t *lane = &stub->link->lanes[0];
    const r2_wire_header_t header = {.version = R2_WIRE_VERSION,
                                     .kind = R2_WIRE_DATA,
                                     .flags = R2_WIRE_EAGER,
                                     .lane_seq = lane->rx.next,
                                     .connection = lane->connect.rx_connection,
                                     .ack_next = lane->tx.seq,
                                     .consumed = (uint32_t) stub->net.first_seq,
                                     .length = 8,
                                     .message = number,
                                     .tag = {.comm_key = 1, .coll_seq = (uint32_t) number},
                                     .message_bytes = 8,
                                     .chunk_bytes = 8};
    r2_wire_short_t brief;

    assert_true(r2_wire_shorten(&header, &brief));
    stub_packet(stub, &brief, sizeof(brief), "12345678", 8);
    return stub->counters.rx_malformed + stub->counters.rx_duplicates;
}

/* Numbers go on over 2^32, and over a message that was taken back and never comes. */
static void numbers_go_on(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_link_t *link = stub->link;
    const uint64_t first = 0x2ffffffffull;

    (void) state;
    stub_lane_up(stub, 0);
    link->rx.watermark = first;
    assert_int_equal(hear(stub, first), 0);
    assert_int_equal(hear(stub, first + 1), 0);
    assert_true(first + 2 == link->rx.watermark);
    for (uint64_t i = 1; i < 8; ++i) { /* further than 2^31 from the gap in the end */
        assert_int_equal(hear(stub, first + 2 + i * 0x70000000ull), 0);
        assert_true(first + 2 + i * 0x70000000ull ==
                    r2_runs_newest(&link->rx.completed, link->rx.watermark));
    }
    assert_int_equal(hear(stub, first + 2 + 7 * 0x70000000ull - R2_WIRE_NEAR), 0);
    assert_int_equal(hear(stub, first + 2 + 7 * 0x70000000ull), 1); /* once more */
    assert_true(first + 2 == link->rx.watermark);
    stub_net_destroy(stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_of_one_chunk_have_short_headers),
        cmocka_unit_test(old_messages_have_long_headers),
        cmocka_unit_test(numbers_go_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
