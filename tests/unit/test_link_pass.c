/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Messages that are passed on as they come: what a receive is told, and what then leaves.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "link/rx.h"
#include "stub_net.h"

enum { CHUNK = 1024, CHUNKS = 4, BYTES = CHUNKS * CHUNK - 100 };

static uint32_t done;
static uint64_t told, times;

static void note_done(void *arg, r2_status_t status)
{
    (void) arg;
    assert_int_equal(R2_OK, status);
    ++done;
}

static void note_arrived(void *arg, uint64_t bytes)
{
    (void) arg;
    assert_true(bytes > told);
    told = bytes;
    ++times;
}

static stub_net_t *set_up(void)
{
    stub_net_t *stub = stub_net_create();

    done = 0;
    told = times = 0;
    stub_lane_up(stub, 0);
    return stub;
}

/* Whole chunks leave as soon as they are there, though it is short enough to be copied. */
static void chunks_leave_when_they_are_there(void **state)
{
    static const char data[BYTES];
    const struct {
        uint64_t bytes, chunks;
    } steps[] = {{0, 0}, {CHUNK - 1, 0}, {CHUNK, 1}, {3 * CHUNK + 1, 3}, {BYTES, 4}};
    stub_net_t *stub = set_up();
    r2_tx_message_t *message = NULL;
    const r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                                 .data = data,
                                 .bytes = BYTES,
                                 .chunk_bytes = CHUNK,
                                 .granted_bytes = BYTES,
                                 .brief = true,
                                 .filling = true,
                                 .message_p = &message,
                                 .done = note_done};

    (void) state;
    assert_int_equal(R2_IN_PROGRESS, r2_link_send(stub->link, &args));
    assert_non_null(message);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); ++i) {
        r2_link_ready(message, steps[i].bytes);
        assert_int_equal(steps[i].chunks, stub->counters.tx_chunks);
    }
    assert_int_equal(0, done);
    stub_acknowledge(stub, &stub->link->lanes[0]);
    assert_int_equal(1, done);
    stub_net_destroy(stub);
}

/* A chunk of the peer's message. */
static void hear(stub_net_t *stub, uint32_t chunk)
{
    static const char data[CHUNK];
    const r2_lane_t *lane = &stub->link->lanes[0];
    const r2_wire_header_t header = {.version = R2_WIRE_VERSION,
                                     .kind = R2_WIRE_DATA,
                                     .flags = R2_WIRE_EAGER,
                                     .lane_seq = lane->rx.next,
                                     .connection = lane->connect.rx_connection,
                                     .ack_next = lane->tx.seq,
                                     .consumed = (uint32_t) stub->net.first_seq,
                                     .length = CHUNKS - 1 == chunk ? BYTES % CHUNK : CHUNK,
                                     .message = stub->net.first_seq,
                                     .tag = {.comm_key = 1, .coll_seq = 1},
                                     .message_bytes = BYTES,
                                     .chunk_bytes = CHUNK,
                                     .chunk = chunk};

    stub_packet(stub, &header, sizeof(header), data, header.length);
    assert_int_equal(0, stub->counters.rx_malformed);
}

static void receive(stub_net_t *stub, char *data)
{
    const r2_link_recv_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                                 .data = data,
                                 .bytes = BYTES,
                                 .arrived = note_arrived,
                                 .done = note_done};

    assert_int_equal(R2_IN_PROGRESS, r2_link_recv(stub->link, &args));
}

/* Without a gap from the start on; the end is told by `done` alone. */
static void what_has_arrived_is_told(void **state)
{
    stub_net_t *stub = set_up();
    char data[BYTES];

    (void) state;
    receive(stub, data);
    hear(stub, 1);
    assert_int_equal(0, times);
    hear(stub, 0);
    assert_int_equal(2 * CHUNK, told);
    hear(stub, 3);
    assert_int_equal(1, times);
    assert_int_equal(0, done);
    hear(stub, 2);
    assert_int_equal(1, times);
    assert_int_equal(1, done);
    stub_net_destroy(stub);
}

/* Chunks that came before the receive count once they are in its memory. */
static void unexpected_chunks_are_told_when_they_are_given(void **state)
{
    stub_net_t *stub = set_up();
    char data[BYTES];

    (void) state;
    hear(stub, 0);
    hear(stub, 2);
    receive(stub, data);
    assert_int_equal(CHUNK, told);
    hear(stub, 1);
    assert_int_equal(3 * CHUNK, told);
    hear(stub, 3);
    assert_int_equal(1, done);
    stub_net_destroy(stub);
}

/* While the application is away chunks are kept: nothing is told before they are given. */
static void kept_chunks_are_told_when_they_are_given(void **state)
{
    stub_net_t *stub = set_up();
    char data[BYTES];

    (void) state;
    receive(stub, data);
    stub->net.app_drives = stub->net.may_deliver = false;
    hear(stub, 0);
    assert_int_equal(0, times);
    stub->net.app_drives = true;
    r2_rx_deferred(stub->link);
    assert_int_equal(CHUNK, told);
    hear(stub, 1);
    assert_int_equal(2 * CHUNK, told);
    r2_link_unpost(stub->link, &(r2_tag_t){.comm_key = 1, .coll_seq = 1});
    stub_net_destroy(stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_leave_when_they_are_there),
        cmocka_unit_test(what_has_arrived_is_told),
        cmocka_unit_test(unexpected_chunks_are_told_when_they_are_given),
        cmocka_unit_test(kept_chunks_are_told_when_they_are_given),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
