/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Messages of one chunk: which ones go whole, and how unexpected ones arrive.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/pool.h"
#include "link/tx.h"
#include "stub_net.h"

#define LONGEST (1u << 20)

static void sent(void *arg, r2_status_t status)
{
    (void) arg;
    (void) status;
}

/* Bytes of the chunks of a message, all lanes being up and the one whose turn it is this fast, and
 * at its quickest. */
static uint32_t chunk_bytes_at(uint64_t bytes, uint64_t bytes_per_s, uint32_t peak_kbytes_per_s,
                               bool suspect)
{
    static const char data[LONGEST + 1];
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
    link->lanes[link->turn.lane].tx.delivery.bytes_per_s = bytes_per_s;
    link->lanes[link->turn.lane].tx.peak_kbytes_per_s = peak_kbytes_per_s;
    if (suspect) {
        r2_lane_enter(&link->lanes[link->turn.lane], R2_LANE_SUSPECT);
    }
    assert_int_equal(r2_link_send(link, &args), R2_IN_PROGRESS);
    chunk_bytes = link->tx.messages->chunk_bytes;
    r2_link_withdraw(link, 1);
    stub_net_destroy(stub);
    return chunk_bytes;
}

static uint32_t chunk_bytes_of(uint64_t bytes, uint64_t bytes_per_s, bool suspect)
{
    return chunk_bytes_at(bytes, bytes_per_s, 0, suspect);
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

/* Who shares a core delivers little by lanes that are fast. A shaper's bucket is not believed. */
static void quickest_packets_count(void **state)
{
    (void) state;
    assert_int_equal(chunk_bytes_at(45056, 40000000, 310000, false), 45056);
    assert_int_equal(chunk_bytes_at(65536, 40000000, 310000, false), 8192);
    assert_int_equal(chunk_bytes_at(47000, 40000000, 4000000, false), 47000); /* eight times */
    assert_int_equal(chunk_bytes_at(49000, 40000000, 4000000, false), 8192);
    assert_int_equal(chunk_bytes_at(16384, 12500000, 4000000, false), 8192);
    assert_int_equal(chunk_bytes_at(74000, 400000000, 4000000, false), 74000);
    assert_int_equal(chunk_bytes_at(76000, 400000000, 4000000, false), 8192); /* 500 MB/s */
    assert_int_equal(chunk_bytes_at(90000, 600000000, 4000000, false), 90000);
}

/* After a pause a bucket is full. What comes through it then is forgotten soon. */
static void quickest_packet_fades(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = &stub->link->lanes[0];

    (void) state;
    stub_lane_up(stub, 0);
    r2_delivery_acked(lane, 8191, R2_NS_PER_US); /* a short one says nothing */
    assert_int_equal(lane->tx.peak_kbytes_per_s, 0);
    r2_delivery_acked(lane, 65536, 0); /* nor one of which the time is not known */
    assert_int_equal(lane->tx.peak_kbytes_per_s, 0);
    r2_delivery_acked(lane, 65536, 64 * R2_NS_PER_US);
    assert_int_equal(lane->tx.peak_kbytes_per_s, 1024000);
    for (int i = 0; i < 56; ++i) { /* seven times half */
        stub->net.now_ns += 5 * R2_NS_PER_MS;
        r2_delivery_acked(lane, 65536, 5 * R2_NS_PER_MS);
    }
    assert_int_equal(lane->tx.peak_kbytes_per_s, 13107); /* what the slow ones reach */
    stub_net_destroy(stub);
}

/* All that was acknowledged within one pass took no time by its clock: that is no rate. */
static void no_time_is_no_rate(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = &stub->link->lanes[0];

    (void) state;
    stub_lane_up(stub, 0);
    r2_delivery_sending(lane);
    r2_delivery_acked(lane, 1u << 20, 0);
    assert_int_equal(r2_lane_rate(lane), 0);
    stub->net.now_ns += R2_NS_PER_MS;
    r2_delivery_acked(lane, 1u << 20, 0);
    assert_int_equal(r2_lane_rate(lane), UINT64_C(2097152000));
    stub_net_destroy(stub);
}

/* The lane has to be one that they may go by, and a chunk is no longer than it may be. */
static void others_are_shared(void **state)
{
    (void) state;
    assert_int_equal(chunk_bytes_of(65536, 1000000000, true), 8192);
    assert_true(chunk_bytes_of(1048577, 10000000000, false) < 1048577);
}

/* A message of 1 MiB behind `count` others of `bytes` that are not acknowledged, by two fast lanes.
 * @return bytes of its chunks. */
static uint32_t chunk_bytes_behind(uint32_t count, uint32_t bytes, uint32_t window_bytes,
                                   bool credited)
{
    static const char data[LONGEST];
    stub_net_t *stub = stub_net_create();
    r2_link_t *link = stub->link;
    r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                           .data = data,
                           .bytes = bytes,
                           .chunk_bytes = 8192,
                           .done = sent};
    r2_tx_message_t *message;
    uint32_t chunk_bytes;

    stub->params.unexpected_bytes = 4u << 20;
    stub->params.eager_bytes = credited ? LONGEST : 0;
    link->chunk_most_bytes = LONGEST;
    for (uint32_t i = 0; i < link->lane_count; ++i) {
        stub_lane_up(stub, i);
        link->lanes[i].tx.window_bytes = window_bytes;
        link->lanes[i].tx.delivery.bytes_per_s = 1000000000;
    }
    for (; args.tag.id < count; ++args.tag.id) {
        assert_true(r2_link_send(link, &args) >= 0);
    }
    assert_true(!credited || link->tx.in_flight_packets > 0);
    args.bytes = LONGEST;
    args.message_p = &message;
    assert_int_equal(r2_link_send(link, &args), R2_IN_PROGRESS);
    chunk_bytes = message->chunk_bytes;
    r2_link_withdraw(link, 1);
    stub_net_destroy(stub);
    return chunk_bytes;
}

/* Lanes share a message that is all there is to send: a barrier's that is acknowledged late is
 * nothing beside it. In a stream each message has as few chunks as lanes are fast for. */
static void what_is_under_way_is_weighed(void **state)
{
    const uint32_t ms = 1000000 / 8192 * 8192, window = 4u << 20;

    (void) state;
    assert_int_equal(chunk_bytes_behind(1, 8, window, true), LONGEST / STUB_RAILS);
    assert_int_equal(chunk_bytes_behind(1, LONGEST / 4 - 8192, window, true), LONGEST / STUB_RAILS);
    assert_int_equal(chunk_bytes_behind(1, LONGEST / 4, window, true), ms);
    assert_int_equal(chunk_bytes_behind(1, LONGEST / 4, window, false), ms); /* waits for credit */
    assert_int_equal(chunk_bytes_behind(2, 65536, 8192, true), LONGEST / STUB_RAILS);
    assert_int_equal(chunk_bytes_behind(3, 65536, 8192, true), ms); /* one waits for room */
}

/* Sends a packed message. @return whether there was room for it. */
static bool packs(stub_net_t *stub, uint32_t id, uint64_t bytes)
{
    r2_link_send_t args = {
        .tag = {.comm_key = 1, .coll_seq = 1, .id = id}, .bytes = bytes, .chunk_bytes = 8192};

    args.block = r2_link_block(stub->link, bytes, args.chunk_bytes);
    if (NULL == args.block) {
        return false;
    }
    memset(args.block, 1, bytes);
    assert_int_equal(r2_link_send(stub->link, &args), R2_OK);
    return true;
}

/* Whether the newest packet asks for an acknowledgement. */
static bool asks(const stub_net_t *stub)
{
    const r2_tp_send_t *op = stub->sends->prev->op;
    r2_wire_header_t header;
    bool is_short;

    assert_int_equal(
        r2_wire_parse(op->header, op->header_bytes, op->data_bytes, &header, &is_short), R2_OK);
    return 0 != (header.flags & R2_WIRE_ACK_NOW);
}

/* Packs messages of 8,000 bytes until there is no room. @return how many. */
static uint32_t pack_all(stub_net_t *stub, uint32_t eager_bytes)
{
    uint32_t count = 0;

    stub->params.eager_bytes = eager_bytes;
    while (count < 100 && packs(stub, count, 8000)) {
        ++count;
    }
    return count;
}

static stub_net_t *stub_for_streams(void)
{
    stub_net_t *stub = stub_net_create();

    stub_lane_up(stub, 0);
    stub->mode = STUB_LATER;
    stub->params.retransmit_bytes = 64000;
    stub->params.unexpected_bytes = 1u << 20;
    stub->link->lanes[0].tx.window_bytes = 4u << 20;
    return stub;
}

static void acknowledge_all(stub_net_t *stub)
{
    stub->complete = true;
    r2_net_progress(&stub->net);
    stub_acknowledge(stub, &stub->link->lanes[0]);
    assert_int_equal(stub->link->tx.copied_bytes, 0);
    assert_int_equal(stub->link->tx.packed_bytes, 0);
    stub->complete = false;
}

/* Room for what is packed: sixteen messages of eager_bytes and a header, or of its length. */
static void streams_have_room(void **state)
{
    const uint32_t header = 256;
    stub_net_t *stub = stub_for_streams();

    (void) state;
    assert_int_equal(pack_all(stub, 13000 - header), 26); /* 208,000 bytes */
    assert_int_equal(stub->link->tx.packed_bytes, 208000);
    acknowledge_all(stub);
    assert_int_equal(pack_all(stub, 12999 - header), 25); /* 7,984 are left */
    assert_true(packs(stub, 25, 7800));
    assert_false(packs(stub, 26, 1)); /* as if it were 199, a 64th of eager_bytes */
    acknowledge_all(stub);
    stub->params.copy_max_bytes = 7999; /* longer ones only if they leave at once */
    stub->link->lanes[0].tx.window_bytes = 8000;
    assert_false(packs(stub, 0, 8000));
    stub->params.retransmit_bytes = 7999; /* a longer one may never be copied */
    stub->link->lanes[0].tx.window_bytes = 4u << 20;
    assert_false(packs(stub, 0, 8000));
    stub->params.retransmit_bytes = 0;
    assert_false(packs(stub, 0, 8));
    stub->params.retransmit_bytes = 64000;
    assert_int_equal(pack_all(stub, 1024), 16);
    stub_net_destroy(stub);
}

/* Short messages that wait for room on lanes are packed up to retransmit_bytes. */
static void streams_that_wait_have_less_room(void **state)
{
    stub_net_t *stub = stub_for_streams();

    (void) state;
    stub->link->lanes[0].tx.window_bytes = 8000;
    assert_int_equal(pack_all(stub, 65536), 8);
    stub_net_destroy(stub);
}

/* What is packed takes none of the room for other copies. */
static void streams_leave_room(void **state)
{
    stub_net_t *stub = stub_for_streams();

    (void) state;
    assert_int_equal(pack_all(stub, 65536), 100);
    assert_int_equal(stub->link->tx.copied_bytes, 0);
    assert_int_equal(stub->link->tx.copies, 0);
    assert_true(r2_link_copies(stub->link, 8000));
    stub_net_destroy(stub);
}

/* Of what is packed each lane asks for its part of three quarters of the room. */
static void streams_ask(void **state)
{
    const uint32_t room = 16 * (10000 + 256), part = 3 * room / 4 / 2;
    stub_net_t *stub = stub_for_streams();
    uint32_t asked = 0;

    (void) state;
    stub_lane_up(stub, 1);
    stub->link->lanes[1].tx.window_bytes = 4u << 20;
    stub->params.eager_bytes = 10000;
    for (uint32_t i = 0; i < 20; ++i) {
        assert_true(packs(stub, i, 8000));
        asked += asks(stub);
        for (uint32_t k = 0; k < 2; ++k) {
            assert_true(stub->link->lanes[k].tx.unasked_bytes <= part);
        }
    }
    for (uint32_t k = 0; k < 2; ++k) {
        assert_true(stub->link->lanes[k].tx.in_flight_bytes > part);
    }
    assert_int_equal(asked, 2);
    stub_net_destroy(stub);
}

/** Who wants unexpected messages. */
typedef struct taker {
    uint32_t taken;
    bool refuses;
} taker_t;

static bool take(void *arg, uint32_t rank, const r2_tag_t *tag, const void *data, uint64_t bytes)
{
    taker_t *taker = arg;

    assert_int_equal(rank, 1);
    assert_int_equal(tag->id, 7);
    assert_int_equal(bytes, 8);
    assert_memory_equal(data, "12345678", 8);
    taker->taken += taker->refuses ? 0 : 1;
    return !taker->refuses;
}

static bool over(void *arg, const r2_tag_t *tag)
{
    (void) arg;
    (void) tag;
    return false;
}

static stub_net_t *taken_by(taker_t *taker)
{
    stub_net_t *stub = stub_net_create();

    stub_lane_up(stub, 0);
    stub->net.upcalls.over = over;
    stub->net.upcalls.unexpected = take;
    stub->net.upcalls.arg = taker;
    stub->net.app_drives = true;
    return stub;
}

/* The peer's message, all of it in one packet unless it has `more` bytes. @return it was taken by
 * who wants such. */
static bool arrives(stub_net_t *stub, uint32_t number, uint8_t flags, uint32_t more)
{
    const r2_lane_t *lane = &stub->link->lanes[0];
    const taker_t *taker = stub->net.upcalls.arg;
    const uint32_t taken = taker->taken;
    const r2_wire_header_t header = {.version = R2_WIRE_VERSION,
                                     .kind = R2_WIRE_DATA,
                                     .flags = flags,
                                     .lane_seq = lane->rx.next,
                                     .connection = lane->connect.rx_connection,
                                     .ack_next = lane->tx.seq,
                                     .consumed = (uint32_t) stub->net.first_seq,
                                     .length = 8,
                                     .message = stub->net.first_seq + number,
                                     .tag = {R2_LINK_UNEXPECTED_KEY, 0, number, 7},
                                     .message_bytes = 8 + more,
                                     .chunk_bytes = 8};

    stub_packet(stub, &header, sizeof(header), "12345678", 8);
    return taker->taken > taken;
}

/* What the transport is told when it has more. */
static bool takes_more(const stub_net_t *stub)
{
    return stub->net.callbacks.takes_more(stub->link->lanes[0].conn->worker);
}

/* Nothing is kept of it, it counts as consumed, and a second copy is known as one. */
static void unexpected_messages_are_handed_over(void **state)
{
    taker_t taker = {0};
    stub_net_t *stub = taken_by(&taker);
    const uint32_t consumed = stub->link->rx.consumed;

    (void) state;
    assert_true(arrives(stub, 0, R2_WIRE_EAGER, 0));
    assert_true(arrives(stub, 2, R2_WIRE_EAGER, 0));
    assert_true(arrives(stub, 1, R2_WIRE_EAGER, 0));
    assert_int_equal(stub->link->rx.consumed - consumed, 3 * (8 + R2_EAGER_COST_BYTES));
    assert_int_equal(stub->counters.rx_bytes, 24);
    assert_int_equal(stub->counters.unexpected_chunks, 0);
    assert_int_equal(stub->link->rx.matches.count, 0);
    assert_true(stub->net.first_seq + 3 == stub->link->rx.watermark);
    assert_false(arrives(stub, 1, R2_WIRE_EAGER, 0));
    assert_int_equal(stub->counters.rx_duplicates, 1);
    assert_true(takes_more(stub));
    stub_net_destroy(stub);
}

/* While the application is away, or there is no memory, the link keeps it; what comes in parts, or
 * without a budget, goes the way of all others. */
static void others_are_kept(void **state)
{
    taker_t taker = {0};
    stub_net_t *stub = taken_by(&taker);

    (void) state;
    assert_true(arrives(stub, 4, R2_WIRE_EAGER, 0));
    assert_true(takes_more(stub));
    assert_false(arrives(stub, 0, 0, 0));
    assert_int_equal(stub->counters.rx_malformed, 1);
    assert_false(takes_more(stub)); /* what calls wait for is left where it is till then */
    assert_false(arrives(stub, 1, R2_WIRE_EAGER, 8));
    taker.refuses = true;
    assert_false(arrives(stub, 2, R2_WIRE_EAGER, 0));
    taker.refuses = false;
    stub->net.app_drives = false;
    assert_false(arrives(stub, 3, R2_WIRE_EAGER, 0));
    assert_int_equal(stub->counters.unexpected_chunks, 3);
    assert_int_equal(stub->link->rx.matches.count, 3);
    stub_net_destroy(stub);
}

/* A stream of long messages finds the memory of those before it, up to 4 MiB: no new pages. */
static void blocks_of_streams_are_kept(void **state)
{
    enum { MESSAGES = 32, KEPT = 4 << 20 };
    const size_t bytes = 65536 + 256 + 64; /* two of its kind do not fit into 128 KiB */
    stub_net_t *stub = stub_net_create();
    r2_blocks_t *blocks = &stub->net.blocks;
    void *taken[MESSAGES + 1];

    (void) state;
    for (int i = 0; i <= MESSAGES; ++i) {
        taken[i] = r2_blocks_get(blocks, bytes);
        assert_non_null(taken[i]);
    }
    for (int i = 0; i <= MESSAGES; ++i) {
        r2_blocks_put(blocks, taken[i], bytes);
        assert_true(blocks->kept_bytes <= KEPT);
    }
    assert_int_equal(blocks->kept_bytes, 0 == R2_POOL_KEEP ? 0 : KEPT);
    for (int i = 0; i < MESSAGES; ++i) {
        taken[i] = r2_blocks_get(blocks, bytes);
    }
    assert_int_equal(blocks->kept_bytes, 0);
    for (int i = 0; i < MESSAGES; ++i) {
        r2_blocks_put(blocks, taken[i], bytes);
    }
    stub_net_destroy(stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_messages_go_whole),
        cmocka_unit_test(quickest_packets_count),
        cmocka_unit_test(quickest_packet_fades),
        cmocka_unit_test(no_time_is_no_rate),
        cmocka_unit_test(others_are_shared),
        cmocka_unit_test(what_is_under_way_is_weighed),
        cmocka_unit_test(streams_have_room),
        cmocka_unit_test(streams_that_wait_have_less_room),
        cmocka_unit_test(streams_leave_room),
        cmocka_unit_test(streams_ask),
        cmocka_unit_test(unexpected_messages_are_handed_over),
        cmocka_unit_test(others_are_kept),
        cmocka_unit_test(blocks_of_streams_are_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
