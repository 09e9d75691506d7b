/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Who waits asks, and nobody else: acknowledgements, and credit for messages that may not go.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <utlist.h>

#include "link/rx.h"
#include "link/tx.h"
#include "stub_net.h"

#define CHUNK      16384u
#define ROW        (4u << 20)
#define LONG_BYTES 20000u
#define FAST       (1000u * 1000 * 1000) /* bytes per second */
/* As in credit.c. */
#define MUTE_NS (100 * R2_NS_PER_US)

static void ended(void *arg, r2_status_t status)
{
    r2_status_t *status_p = arg;

    *status_p = status;
}

static stub_net_t *stub_with_a_lane(void)
{
    stub_net_t *stub = stub_net_create();

    stub_lane_up(stub, 0);
    stub->params.credit_bytes = 1u << 20;
    stub->link->lanes[0].tx.window_bytes = 64u << 20;
    return stub;
}

/* A packet of the peer, in order. */
static void peer_sends(stub_net_t *stub, r2_wire_header_t header, const void *data)
{
    r2_lane_t *lane = &stub->link->lanes[0];

    header.version = R2_WIRE_VERSION;
    header.connection = lane->connect.rx_connection;
    header.lane_seq = lane->rx.next;
    header.ack_next =
        NULL == lane->tx.in_flight ? lane->tx.seq : lane->tx.in_flight->header.lane_seq;
    header.consumed = (uint32_t) stub->net.first_seq;
    stub_packet(stub, &header, sizeof(header), data, header.length);
}

static void peer_credits(stub_net_t *stub, r2_tag_t tag, uint64_t bytes, bool heard)
{
    r2_wire_credit_t credit = {.tag = tag, .bytes = bytes, .heard = heard};

    peer_sends(stub, (r2_wire_header_t){.kind = R2_WIRE_CREDIT, .length = sizeof(credit)}, &credit);
}

/* Items of a kind under way; the most that CREDIT says. */
static uint32_t under_way(const stub_net_t *stub, r2_wire_kind_t kind, uint64_t *credit_p)
{
    const r2_packet_t *packet;
    uint32_t count = 0;

    *credit_p = 0;
    for (packet = stub->link->lanes[0].tx.in_flight; NULL != packet; packet = packet->next) {
        const r2_tx_item_t *item = packet->item;

        count += kind == item->kind ? 1 : 0;
        for (uint32_t i = 0;
             R2_WIRE_CREDIT == item->kind && i < item->payload_bytes / sizeof(r2_wire_credit_t);
             ++i) {
            *credit_p = r2_max(*credit_p, item->payload.credits[i].bytes);
        }
    }
    return count;
}

static void send_one(stub_net_t *stub, uint32_t id, uint64_t bytes, r2_status_t *status_p)
{
    static const char data[1 << 20];
    r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1, .id = id},
                           .data = data,
                           .bytes = bytes,
                           .chunk_bytes = CHUNK,
                           .done = ended,
                           .arg = status_p};

    assert_true(r2_link_send(stub->link, &args) >= 0);
}

/* Time passes without a word of the peer. */
static void time_passes(stub_net_t *stub, uint64_t ns)
{
    stub->time_ns += ns;
    (void) r2_net_progress(&stub->net);
}

/* The peer has all that was sent. @return requests for credit that were under way. */
static uint32_t requests_arrive(stub_net_t *stub)
{
    r2_lane_t *lane = &stub->link->lanes[0];
    r2_wire_header_t header = {.version = R2_WIRE_VERSION, .kind = R2_WIRE_ACK};
    uint64_t ignored;
    uint32_t count = under_way(stub, R2_WIRE_RTS, &ignored);

    header.connection = lane->connect.rx_connection;
    header.ack_next = lane->tx.seq;
    header.consumed = (uint32_t) stub->net.first_seq;
    stub_packet(stub, &header, sizeof(header), NULL, 0);
    return count;
}

/*
 * More messages than the peer keeps requests for: the others ask when those have got their credit.
 * Few requests are under way at a time, however many there are.
 */
static void requests_are_bounded(void **state)
{
    enum { MORE = 200 };
    r2_status_t status = R2_IN_PROGRESS;
    stub_net_t *stub = stub_with_a_lane();
    uint32_t arrived = 0, now;

    (void) state;
    stub->params.unexpected_bytes = 1024;
    for (uint32_t i = 0; i < R2_REQUESTS_MAX + MORE; ++i) {
        send_one(stub, i, 20000, &status);
    }
    time_passes(stub, 0);
    time_passes(stub, MUTE_NS);
    while ((now = requests_arrive(stub)) > 0) {
        assert_true(now <= 32);
        arrived += now;
    }
    assert_int_equal(arrived, R2_REQUESTS_MAX);
    assert_int_equal(stub->link->tx.mute, MORE);
    for (uint32_t i = 0; i < MORE / 2; ++i) {
        peer_credits(stub, (r2_tag_t){.comm_key = 1, .coll_seq = 1, .id = i}, 20000, true);
    }
    time_passes(stub, MUTE_NS);
    while ((now = requests_arrive(stub)) > 0) {
        arrived += now;
    }
    assert_int_equal(arrived, R2_REQUESTS_MAX + MORE / 2);
    assert_int_equal(stub->link->tx.mute, MORE / 2);
    assert_int_equal(stub->link->tx.requests, R2_REQUESTS_MAX);
    send_one(stub, R2_REQUESTS_MAX + MORE, 4096, &status); /* a short one asks at once */
    assert_int_equal(stub->link->tx.requests, R2_REQUESTS_MAX);
    assert_int_equal(stub->link->tx.asks, 1);
    assert_int_equal(requests_arrive(stub), 0);
    stub_net_destroy(stub);
}

/* Credit for one of several messages shows that others get theirs: they go on waiting. */
static void credit_puts_requests_off(void **state)
{
    r2_status_t status = R2_IN_PROGRESS;
    stub_net_t *stub = stub_with_a_lane();
    uint64_t ignored;

    (void) state;
    stub->params.unexpected_bytes = 1024;
    stub->link->lanes[0].tx.delivery.bytes_per_s = FAST;
    send_one(stub, 7, 1 << 20, &status);
    send_one(stub, 8, 1 << 20, &status);
    time_passes(stub, MUTE_NS - 1);
    peer_credits(stub, (r2_tag_t){.comm_key = 1, .coll_seq = 1, .id = 7}, CHUNK, false);
    time_passes(stub, MUTE_NS - 1);
    assert_int_equal(under_way(stub, R2_WIRE_RTS, &ignored), 0);
    time_passes(stub, 1);
    assert_int_equal(under_way(stub, R2_WIRE_RTS, &ignored), 1);
    stub_net_destroy(stub);
}

static void never_done(void *arg, r2_status_t status)
{
    fail_msg("done was called: %p %d", arg, (int) status);
}

static void note_done(void *arg, r2_status_t status)
{
    assert_int_equal(status, R2_OK);
    ++*(unsigned *) arg;
}

static uint32_t pings_under_way(const stub_net_t *stub)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < stub->link->lane_count; ++i) {
        const r2_packet_t *packet;

        DL_FOREACH(stub->link->lanes[i].tx.in_flight, packet) {
            count += R2_WIRE_PING == packet->item->kind ? 1 : 0;
        }
    }
    return count;
}

/* Nothing waits for it until its call is at its end: then it is asked for, on each lane once. */
static void late_acknowledgements_are_asked_for_once(void **state)
{
    static const char data[LONG_BYTES];
    stub_net_t *stub = stub_net_create();
    r2_tx_message_t *messages[2];
    r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                           .data = data,
                           .bytes = LONG_BYTES,
                           .chunk_bytes = 32768,
                           .late_ack = true,
                           .done = never_done};
    r2_lane_t *lane = &stub->link->lanes[0];

    (void) state;
    stub_lane_up(stub, 0);
    lane->tx.window_bytes = 1u << 20;
    lane->tx.delivery.bytes_per_s = FAST;
    for (uint32_t i = 0; i < 2; ++i) {
        args.tag.id = i;
        args.message_p = &messages[i];
        assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS);
        assert_int_equal(0, lane->tx.in_flight->prev->brief.flags & R2_WIRE_ACK_NOW);
    }
    assert_int_equal(pings_under_way(stub), 0);
    r2_link_ask(messages[0]);
    assert_int_equal(pings_under_way(stub), 1);
    r2_link_ask(messages[1]); /* its packet left before that one */
    r2_link_ask(messages[0]);
    assert_int_equal(pings_under_way(stub), 1);
    r2_link_withdraw(stub->link, 1);
    stub_net_destroy(stub);
}

/* On a slow lane every chunk asks: when it arrives says how fast the lane is. */
static void slow_lanes_ask_for_all(void **state)
{
    static const char data[LONG_BYTES];
    stub_net_t *stub = stub_net_create();
    const r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                                 .data = data,
                                 .bytes = LONG_BYTES,
                                 .chunk_bytes = 32768,
                                 .late_ack = true,
                                 .done = never_done};
    r2_lane_t *lane = &stub->link->lanes[0];

    (void) state;
    stub_lane_up(stub, 0);
    lane->tx.window_bytes = 1u << 20;
    lane->tx.delivery.bytes_per_s = FAST / 100;
    assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS);
    assert_int_equal(lane->tx.in_flight->prev->brief.flags & R2_WIRE_ACK_NOW, R2_WIRE_ACK_NOW);
    r2_link_withdraw(stub->link, 1);
    stub_net_destroy(stub);
}

/* Of a message in many chunks those ask that may be the last ones of their lanes. */
static void last_chunks_ask(void **state)
{
    enum { CHUNKS = 8 };
    static const char data[CHUNKS * 1024];
    stub_net_t *stub = stub_net_create();
    const r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                                 .data = data,
                                 .bytes = sizeof(data),
                                 .chunk_bytes = 1024,
                                 .done = never_done};
    r2_lane_t *lane = &stub->link->lanes[0];
    const r2_packet_t *packet;
    uint32_t asking = 0, chunks = 0;

    (void) state;
    stub->params.retransmit_bytes = 0;
    stub->link->chunk_most_bytes = 1024; /* it does not go whole */
    stub_lane_up(stub, 0);
    lane->tx.window_bytes = 1u << 20;
    lane->tx.delivery.bytes_per_s = FAST;
    assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS);
    DL_FOREACH(lane->tx.in_flight, packet) {
        const bool asks = 0 != (packet->header.flags & R2_WIRE_ACK_NOW);

        ++chunks;
        asking += asks ? 1 : 0;
        assert_int_equal(asks, packet->item->chunk + stub->link->lane_count >= CHUNKS);
    }
    assert_int_equal(chunks, CHUNKS);
    assert_int_equal(asking, stub->link->lane_count);
    r2_link_withdraw(stub->link, 1);
    stub_net_destroy(stub);
}

/* A chunk of two arrives. */
static void chunk_arrives(stub_net_t *stub, uint32_t lane, uint32_t chunk, uint8_t flags)
{
    static const char data[1024];
    const r2_wire_header_t header = {.version = R2_WIRE_VERSION,
                                     .kind = R2_WIRE_DATA,
                                     .flags = flags,
                                     .connection = stub->link->lanes[lane].connect.rx_connection,
                                     .lane_seq = stub->link->lanes[lane].rx.next,
                                     .ack_next = stub->link->lanes[lane].tx.seq,
                                     .consumed = (uint32_t) stub->net.first_seq,
                                     .message = stub->net.first_seq,
                                     .tag = {.comm_key = 1, .coll_seq = 1},
                                     .message_bytes = 2 * sizeof(data),
                                     .chunk_bytes = sizeof(data),
                                     .chunk = chunk,
                                     .length = sizeof(data)};

    stub_packet(stub, &header, sizeof(header), data, sizeof(data));
}

/* Whose sender waits is acknowledged on all lanes when it is whole: a slow lane may have had none
 * of the chunks that ask. */
static void whole_messages_are_acknowledged(void **state)
{
    static const uint8_t flags[] = {R2_WIRE_ACK_NOW, 0};

    (void) state;
    for (uint32_t i = 0; i < 2; ++i) {
        stub_net_t *stub = stub_net_create();
        char memory[2048];
        unsigned done = 0;
        const r2_link_recv_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                                     .data = memory,
                                     .bytes = sizeof(memory),
                                     .done = note_done,
                                     .arg = &done};

        stub_lane_up(stub, 0);
        stub_lane_up(stub, 1);
        assert_int_equal(r2_link_recv(stub->link, &args), R2_IN_PROGRESS);
        chunk_arrives(stub, 0, 1, flags[i]);
        assert_int_equal(r2_lane_owes_ack(&stub->link->lanes[0]), 0 == flags[i]);
        chunk_arrives(stub, 1, 0, 0);
        assert_int_equal(done, 1);
        assert_int_equal(r2_lane_owes_ack(&stub->link->lanes[0]), 0 == flags[i]);
        assert_int_equal(r2_lane_owes_ack(&stub->link->lanes[1]), 0 == flags[i]);
        stub_net_destroy(stub);
    }
}

/* The same, where the slow lane's chunk is the first one. */
static void slow_lanes_are_acknowledged(void **state)
{
    stub_net_t *stub = stub_net_create();
    char memory[2048];
    unsigned done = 0;
    const r2_link_recv_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                                 .data = memory,
                                 .bytes = sizeof(memory),
                                 .done = note_done,
                                 .arg = &done};

    (void) state;
    stub_lane_up(stub, 0);
    stub_lane_up(stub, 1);
    assert_int_equal(r2_link_recv(stub->link, &args), R2_IN_PROGRESS);
    chunk_arrives(stub, 0, 0, 0);
    assert_true(r2_lane_owes_ack(&stub->link->lanes[0]));
    chunk_arrives(stub, 1, 1, R2_WIRE_ACK_NOW);
    assert_int_equal(done, 1);
    assert_false(r2_lane_owes_ack(&stub->link->lanes[0]));
    assert_false(r2_lane_owes_ack(&stub->link->lanes[1]));
    stub_net_destroy(stub);
}

/* So that a lane goes on sending while acknowledgements come, one in each part of its window
 * asks. */
static void every_part_of_a_window_asks(void **state)
{
    static const char data[LONG_BYTES];
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = &stub->link->lanes[0];
    uint32_t asking = 0, sent = 0;
    const r2_packet_t *packet;

    (void) state;
    stub_lane_up(stub, 0);
    stub->params.unexpected_bytes = 1u << 20;
    lane->tx.window_bytes = 32 * LONG_BYTES;
    lane->tx.delivery.bytes_per_s = FAST;
    for (; sent < 16; ++sent) { /* half of it */
        const r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1, .id = sent},
                                     .data = data,
                                     .bytes = LONG_BYTES,
                                     .chunk_bytes = 32768,
                                     .late_ack = true,
                                     .done = never_done};

        assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS);
    }
    DL_FOREACH(lane->tx.in_flight, packet) {
        asking += 0 != (packet->brief.flags & R2_WIRE_ACK_NOW) ? 1 : 0;
    }
    assert_in_range(asking, 3, 4);
    r2_link_withdraw(stub->link, 1);
    stub_net_destroy(stub);
}

/* Sends so many messages. @return what they take of the budget of unexpected data. */
static uint64_t unasked(stub_net_t *stub, uint64_t comm_key, uint32_t count)
{
    static const char data[CHUNK];
    const uint64_t before = stub->link->tx.eager_sent;

    for (uint32_t i = 0; i < count; ++i) {
        const r2_link_send_t args = {.tag = {.comm_key = comm_key, .coll_seq = 1, .id = i},
                                     .data = data,
                                     .bytes = CHUNK,
                                     .chunk_bytes = CHUNK,
                                     .done = never_done};

        assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS);
    }
    return stub->link->tx.eager_sent - before;
}

/* Calls go unasked up to 256 KiB, messages that no receive is posted for in all of the budget. */
static void calls_have_a_part_of_the_budget(void **state)
{
    const uint64_t each = CHUNK + R2_EAGER_COST_BYTES;
    stub_net_t *stub = stub_with_a_lane();
    uint64_t calls;

    (void) state;
    stub->params.unexpected_bytes = 4u << 20;
    calls = unasked(stub, 1, 40);
    assert_int_equal(calls, (256u << 10) / each * each);
    assert_int_equal(calls + unasked(stub, R2_LINK_UNEXPECTED_KEY, 400), (4u << 20) / each * each);
    r2_link_withdraw(stub->link, 1);
    r2_link_withdraw(stub->link, R2_LINK_UNEXPECTED_KEY);
    stub_net_destroy(stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_bounded),
        cmocka_unit_test(credit_puts_requests_off),
        cmocka_unit_test(late_acknowledgements_are_asked_for_once),
        cmocka_unit_test(slow_lanes_ask_for_all),
        cmocka_unit_test(last_chunks_ask),
        cmocka_unit_test(every_part_of_a_window_asks),
        cmocka_unit_test(calls_have_a_part_of_the_budget),
        cmocka_unit_test(whole_messages_are_acknowledged),
        cmocka_unit_test(slow_lanes_are_acknowledged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
