/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Data that are read to where they belong while their packet is on its way: of which packets, and
 * until when.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "link/state.h"
#include "stub_net.h"

#define CHUNK  1024u
#define CHUNKS 3u
#define DIGEST 77u

static char memory[CHUNKS * CHUNK];
static uint32_t ends; /* of the receive */

static void take(void *arg, uint64_t offset, const void *data, uint64_t bytes)
{
    (void) arg;
    (void) offset;
    (void) data;
    (void) bytes;
}

static void ended(void *arg, r2_status_t status)
{
    (void) arg;
    assert_int_equal(status, R2_OK);
    ++ends;
}

static r2_link_recv_t receive_args(void)
{
    return (r2_link_recv_t){.tag = {.comm_key = 1, .coll_seq = 1},
                            .data = memory,
                            .bytes = sizeof(memory),
                            .digest = DIGEST,
                            .done = ended};
}

static stub_net_t *stub_of_two_lanes(const r2_link_recv_t *args)
{
    stub_net_t *stub = stub_net_create();

    stub_lane_up(stub, 0);
    stub_lane_up(stub, 1);
    stub->net.app_drives = true;
    memset(memory, 0, sizeof(memory));
    ends = 0;
    if (NULL != args) {
        assert_int_equal(r2_link_recv(stub->link, args), R2_IN_PROGRESS);
    }
    return stub;
}

static r2_wire_header_t header_of(const stub_net_t *stub, uint32_t lane_idx, uint32_t chunk)
{
    const r2_lane_t *lane = &stub->link->lanes[lane_idx];

    return (r2_wire_header_t){.version = R2_WIRE_VERSION,
                              .kind = R2_WIRE_DATA,
                              .flags = R2_WIRE_EAGER,
                              .connection = lane->connect.rx_connection,
                              .lane_seq = lane->rx.next,
                              .ack_next = lane->tx.seq,
                              .consumed = (uint32_t) stub->net.first_seq,
                              .message = stub->net.first_seq,
                              .tag = {.comm_key = 1, .coll_seq = 1},
                              .message_bytes = sizeof(memory),
                              .chunk_bytes = CHUNK,
                              .chunk = chunk,
                              .length = CHUNK,
                              .digest = DIGEST};
}

static void *land(stub_net_t *stub, uint32_t lane_idx, const r2_wire_header_t *header)
{
    return stub->net.callbacks.land(stub->link->lanes[lane_idx].conn->worker, header,
                                    sizeof(*header), header->length);
}

/* The packet is whole, and its data are at `data`. */
static void comes(stub_net_t *stub, uint32_t lane_idx, const r2_wire_header_t *header,
                  const void *data)
{
    stub->net.callbacks.received(stub->link->lanes[lane_idx].conn->worker, header, sizeof(*header),
                                 data, header->length);
}

/* Chunks land where they belong, in any order, and are not written again. */
static void chunks_land_in_their_receive(void **state)
{
    static const uint32_t order[] = {1, 0, 2};
    const r2_link_recv_t args = receive_args();
    stub_net_t *stub = stub_of_two_lanes(&args);

    (void) state;
    for (uint32_t i = 0; i < CHUNKS; ++i) {
        const r2_wire_header_t header = header_of(stub, 0, order[i]);
        char *at = land(stub, 0, &header);

        assert_ptr_equal(at, memory + order[i] * CHUNK);
        memset(at, 'a' + (int) order[i], CHUNK);
        assert_int_equal(ends, 0);
        comes(stub, 0, &header, at);
    }
    assert_int_equal(ends, 1);
    for (uint32_t i = 0; i < sizeof(memory); ++i) {
        assert_int_equal(memory[i], 'a' + (int) (i / CHUNK));
    }
    assert_int_equal(stub->lands_off, 0);
    stub_net_destroy(stub);
}

/** What keeps a chunk from landing. */
typedef enum bar {
    NO_BAR,
    NOT_POSTED,
    SINK,
    NOT_DRIVEN, /* and a sink of the user's */
    OTHER_BYTES,
    OTHER_DIGEST,
    OTHER_TAG,
    PLACED,
    UNSURE,
    NO_DATA_KIND,
    FAILED_LANE,
    NO_CONNECTION,
    OTHER_WORKER,
    HERE_ALREADY,
    CUT_OTHERWISE,
    BARS
} bar_t;

static void bar_receive(bar_t bar, r2_link_recv_t *args)
{
    args->sink = SINK == bar || NOT_DRIVEN == bar ? take : NULL;
    args->bytes -= OTHER_BYTES == bar ? CHUNK : 0;
    args->digest += OTHER_DIGEST == bar ? 1 : 0;
    args->tag.id += OTHER_TAG == bar ? 1 : 0;
}

static void bar_header(bar_t bar, stub_net_t *stub, r2_wire_header_t *header)
{
    header->flags |= PLACED == bar ? R2_WIRE_PLACED : 0;
    header->flags |= UNSURE == bar ? R2_WIRE_UNSURE : 0;
    header->kind = NO_DATA_KIND == bar ? R2_WIRE_CREDIT : header->kind;
    header->connection += NO_CONNECTION == bar ? 1 : 0;
    stub->link->lanes[0].failed = FAILED_LANE == bar;
    stub->net.app_drives = NOT_DRIVEN != bar;
    if (HERE_ALREADY == bar || CUT_OTHERWISE == bar) {
        const r2_wire_header_t first = header_of(stub, 1, HERE_ALREADY == bar ? 1 : 0);

        comes(stub, 1, &first, memory);
    }
    if (CUT_OTHERWISE == bar) {
        header->chunk_bytes = header->length = CHUNK / 2;
    }
}

static void others_do_not_land(void **state)
{
    (void) state;
    for (int bar = NO_BAR; bar < BARS; ++bar) {
        r2_link_recv_t args = receive_args();
        r2_wire_header_t header;
        stub_net_t *stub;

        bar_receive((bar_t) bar, &args);
        stub = stub_of_two_lanes(NOT_POSTED == bar ? NULL : &args);
        header = header_of(stub, 0, 1);
        bar_header((bar_t) bar, stub, &header);
        if (NO_BAR == bar) {
            assert_ptr_equal(land(stub, 0, &header), memory + CHUNK);
        } else if (land(stub, OTHER_WORKER == bar ? 1 : 0, &header) != NULL) {
            fail_msg("landed, whatever bar %d", bar);
        }
        stub->link->lanes[0].failed = false;
        stub->net.app_drives = true;
        stub_net_destroy(stub);
    }
}

/* Another lane brings all of the message: its memory is the application's, and what lands in it
 * goes on elsewhere, and is not taken again. */
static void memory_is_given_back_at_once(void **state)
{
    const r2_link_recv_t args = receive_args();
    stub_net_t *stub = stub_of_two_lanes(&args);
    const r2_wire_header_t header = header_of(stub, 0, 1);
    static const char data[CHUNK] = {'x'};

    (void) state;
    assert_non_null(land(stub, 0, &header));
    for (uint32_t chunk = 0; chunk < CHUNKS; ++chunk) {
        const r2_wire_header_t other = header_of(stub, 1, chunk);

        assert_int_equal(stub->lands_off, 0);
        comes(stub, 1, &other, data);
    }
    assert_int_equal(ends, 1);
    assert_int_equal(stub->lands_off, 1);
    memset(memory, 'm', sizeof(memory));
    comes(stub, 0, &header, data);
    assert_int_equal(stub->counters.rx_duplicates, 1);
    assert_int_equal(memory[CHUNK], 'm');
    stub_net_destroy(stub);
    assert_int_equal(memory[CHUNK], 'm');
}

/* A receive that is given up has nothing landing in it; nor has one whose packet came, or whose
 * connection is gone, anything to turn off. */
static void nothing_lands_any_more(void **state)
{
    static const char data[CHUNK] = {'x'};

    (void) state;
    for (int how = 0; how < 3; ++how) {
        const r2_link_recv_t args = receive_args();
        stub_net_t *stub = stub_of_two_lanes(&args);
        const r2_wire_header_t header = header_of(stub, 0, 1);

        assert_non_null(land(stub, 0, &header));
        if (1 == how) {
            comes(stub, 0, &header, data);
        } else if (2 == how) {
            r2_lane_fence(&stub->link->lanes[0], R2_ERR_LANE_DOWN, false);
        }
        assert_int_equal(stub->lands_off, 0);
        r2_link_withdraw(stub->link, args.tag.comm_key);
        assert_int_equal(stub->lands_off, 0 == how ? 1 : 0);
        assert_int_equal(ends, 0);
        stub_net_destroy(stub);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_land_in_their_receive),
        cmocka_unit_test(others_do_not_land),
        cmocka_unit_test(memory_is_given_back_at_once),
        cmocka_unit_test(nothing_lands_any_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
