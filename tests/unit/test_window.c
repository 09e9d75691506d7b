/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What a lane's window lets through, and what is asked for where it is full.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <utlist.h>

#include "link/tx.h"
#include "stub_net.h"

/* As in tx.c. */
#define ROOM_NS (100 * R2_NS_PER_US)
#define FAST    (1000u * 1000 * 1000) /* bytes per second */

static void never_done(void *arg, r2_status_t status)
{
    fail_msg("done was called: %p %d", arg, (int) status);
}

static uint32_t pings_under_way(const stub_net_t *stub)
{
    const r2_packet_t *packet;
    uint32_t count = 0;

    DL_FOREACH(stub->link->lanes[0].tx.in_flight, packet) {
        count += R2_WIRE_PING == packet->item->kind ? 1 : 0;
    }
    return count;
}

/* A lane that has `shorts` messages under way, of 6,000 bytes each, which are copied and ask for
 * nothing; its window is of 32 KiB. Then one of 64 KiB. @return what goes of it at once. */
static uint32_t chunks_behind(stub_net_t *stub, uint32_t shorts)
{
    static const char data[65536];
    r2_link_send_t args = {
        .tag = {.comm_key = 1, .coll_seq = 1}, .data = data, .bytes = 6000, .chunk_bytes = 65536};
    r2_lane_t *lane = &stub->link->lanes[0];
    r2_tx_message_t *message;

    stub->params.unexpected_bytes = 4u << 20;
    stub->params.eager_bytes = sizeof(data);
    stub_lane_up(stub, 0);
    lane->tx.window_bytes = 32768;
    lane->tx.delivery.bytes_per_s = FAST;
    for (uint32_t i = 0; i < shorts; ++i) {
        args.tag.id = i;
        assert_int_equal(r2_link_send(stub->link, &args), R2_OK);
        assert_int_equal(0, lane->tx.in_flight->prev->brief.flags & R2_WIRE_ACK_NOW);
    }
    args.tag.id = shorts;
    args.bytes = sizeof(data);
    args.done = never_done;
    args.message_p = &message;
    assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS);
    assert_int_equal(message->chunk_count, 1);
    return message->next_chunk;
}

/* A chunk that is longer than the window does not wait for what is acknowledged late. */
static void long_chunks_go_behind_little(void **state)
{
    stub_net_t *stub = stub_net_create();

    (void) state;
    stub->params.copy_max_bytes = 8192;
    assert_int_equal(chunks_behind(stub, 1), 1);
    assert_int_equal(pings_under_way(stub), 0);
    r2_link_withdraw(stub->link, 1);
    stub_net_destroy(stub);
}

/* Behind more than that it waits, and asks for it, once: not at once, what comes of the peer brings
 * it. */
static void who_waits_for_room_asks(void **state)
{
    stub_net_t *stub = stub_net_create();

    (void) state;
    stub->params.copy_max_bytes = 8192;
    assert_int_equal(chunks_behind(stub, 3), 0);
    assert_int_equal(pings_under_way(stub), 0);
    assert_int_equal(r2_link_deadline_ns(stub->link), stub->net.now_ns + ROOM_NS);
    for (uint32_t i = 0; i < 2; ++i) {
        stub->time_ns += ROOM_NS;
        (void) r2_net_progress(&stub->net);
        assert_int_equal(pings_under_way(stub), 1);
    }
    assert_true(r2_link_deadline_ns(stub->link) > stub->net.now_ns);
    r2_link_withdraw(stub->link, 1);
    stub_net_destroy(stub);
}

#define RATE        (125u * 1000 * 1000) /* bytes per second, of 1 Gbit */
#define RTT_NS      (100 * R2_NS_PER_US)
#define BUSY_NS     (1500 * R2_NS_PER_US) /* as in rtt.c */
#define BUSY_MOST   (256u << 10)
#define ROUNDS      2
#define ROUNDS_MOST 8

/* What such a rate delivers in the time for which a window lasts. */
static uint64_t busy_bytes(uint64_t rate, uint64_t rounds)
{
    return rate / R2_NS_PER_MS * (BUSY_NS + rounds * RTT_NS) / 1000;
}

/* Two lanes with windows of 32 KiB: the first delivers nothing that is known of, the second so many
 * bytes per second. */
static r2_lane_t *two_lanes(stub_net_t *stub, uint64_t rate)
{
    r2_lane_t *lanes = stub->link->lanes;

    for (uint32_t i = 0; i < 2; ++i) {
        stub_lane_up(stub, i);
        lanes[i].timing.min_rtt_ns = RTT_NS;
        lanes[i].timing.min_rtt_at_ns = stub->net.now_ns;
        lanes[i].tx.window_bytes = 32768;
        lanes[i].tx.limited = false;
    }
    lanes[1].tx.delivery.bytes_per_s = rate;
    return lanes;
}

/* A lane with a short window would never show what it can: it gets that of the best one. */
static void windows_follow_the_best_lane(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = two_lanes(stub, RATE);

    (void) state;
    r2_rtt_sample(lane, 11 * R2_NS_PER_MS + RTT_NS, 100); /* what was measured may be over */
    assert_int_equal(lane->tx.window_bytes, 32768);
    r2_rtt_sample(lane, RTT_NS, 100);
    assert_int_equal(lane->tx.window_bytes, busy_bytes(RATE, ROUNDS));
    lane->tx.limited = true; /* a burst that is let through at once says little */
    r2_rtt_sample(lane, RTT_NS, 1u << 20);
    assert_int_equal(lane->tx.window_bytes, busy_bytes(RATE, ROUNDS_MOST));
    stub_net_destroy(stub);
}

/* Where data does not wait, a window finds by itself how much it needs. */
static void windows_of_fast_lanes_grow(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = two_lanes(stub, FAST);

    (void) state;
    r2_rtt_sample(lane, RTT_NS, 100);
    assert_int_equal(lane->tx.window_bytes, BUSY_MOST);
    lane->tx.limited = true;
    r2_rtt_sample(lane, RTT_NS, 100); /* a few bytes are no answer to a full window */
    assert_true(lane->tx.limited);
    r2_rtt_sample(lane, RTT_NS, 1u << 20);
    assert_false(lane->tx.limited);
    assert_int_equal(lane->tx.window_bytes, BUSY_MOST + (1u << 20) + 100);
    lane->tx.limited = true;
    r2_rtt_sample(lane, RTT_NS, 1u << 20);
    assert_int_equal(lane->tx.window_bytes, busy_bytes(FAST, ROUNDS_MOST));
    stub_net_destroy(stub);
}

/* One of a fifth of the rate keeps its short window. */
static void windows_of_slow_lanes_stay_short(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = two_lanes(stub, RATE);

    (void) state;
    lane[0].tx.load.bytes_per_s = RATE / 5;
    lane[1].tx.load.bytes_per_s = RATE;
    r2_rtt_sample(lane, RTT_NS, 100);
    assert_int_equal(lane->tx.window_bytes, 32768);
    stub_net_destroy(stub);
}

/* Nor has one that delivered a tenth of it, for all that is known, a window as long as the best. */
static void windows_of_unlike_lanes_are_shorter(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = two_lanes(stub, RATE);

    (void) state;
    lane[0].tx.delivery.bytes_per_s = RATE / 10;
    r2_rtt_sample(lane, RTT_NS, 100);
    assert_int_equal(lane->tx.window_bytes, busy_bytes(RATE / 10 * 4, ROUNDS));
    stub_net_destroy(stub);
}

static void ignore_done(void *arg, r2_status_t status)
{
    (void) arg;
    (void) status;
}

static uint32_t packets_under_way(const stub_net_t *stub)
{
    const r2_packet_t *packet;
    uint32_t count = 0;

    for (uint32_t i = 0; i < 2; ++i) {
        DL_FOREACH(stub->link->lanes[i].tx.in_flight, packet) {
            ++count;
        }
    }
    return count;
}

/* A chunk of 32 KiB, which fills a lane of one rate, and some time later three for a lane of
 * another. @param copy_bytes what may be copied. @return chunks under way. */
static uint32_t chunks_beside(uint64_t rate, uint64_t other_rate, uint64_t later_ns,
                              size_t copy_bytes)
{
    static const char data[3 * 32768];
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = two_lanes(stub, other_rate);
    r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                           .data = data,
                           .bytes = 32768,
                           .chunk_bytes = 32768,
                           .done = ignore_done};
    uint32_t sent;

    stub->params.unexpected_bytes = 4u << 20;
    stub->params.eager_bytes = sizeof(data);
    lane[0].tx.delivery.bytes_per_s = rate;
    lane[0].tx.window_bytes = 35000;
    lane[1].tx.window_bytes = 1u << 20;
    stub->link->turn.lane = 0;
    stub->params.copy_max_bytes = 0;
    assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS);
    assert_non_null(lane[0].tx.in_flight);
    stub->net.now_ns += later_ns;
    stub->params.copy_max_bytes = copy_bytes;
    args.tag.id = 1;
    args.bytes = sizeof(data);
    assert_true(r2_link_send(stub->link, &args) >= 0);
    sent = packets_under_way(stub);
    r2_link_withdraw(stub->link, 1);
    stub_net_destroy(stub);
    return sent;
}

/* What a lane's window has room for is none of it where a lane like it is sooner through. */
static void like_lanes_share_alike(void **state)
{
    (void) state;
    assert_int_equal(chunks_beside(RATE / 10, RATE / 10, 0, 0), 3);
    assert_int_equal(chunks_beside(RATE / 10, RATE / 6, 0, 0), 3);
}

/* But it waits for no slow one, for none that is late, and not if it is to leave at once. */
static void like_lanes_wait_for_none_that_is_late(void **state)
{
    (void) state;
    assert_int_equal(chunks_beside(RATE / 10, RATE / 4, 0, 0), 4);
    assert_int_equal(chunks_beside(RATE / 10, RATE / 10, 2 * R2_NS_PER_MS, 0), 4);
    assert_int_equal(chunks_beside(RATE / 10, RATE / 10, 0, 1u << 20), 4);
}

/* Bytes of the chunks of a long message by two lanes of such a rate, of which the quickest packets
 * tell much more. */
static uint32_t chunk_of(uint32_t rate)
{
    static const char data[1u << 20];
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = two_lanes(stub, rate);
    r2_tx_message_t *message;
    r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                           .data = data,
                           .bytes = sizeof(data),
                           .chunk_bytes = 4096,
                           .done = never_done,
                           .message_p = &message};
    uint32_t bytes;

    stub->params.unexpected_bytes = 4u << 20;
    lane[0].tx.delivery.bytes_per_s = rate;
    lane[0].tx.peak_kbytes_per_s = lane[1].tx.peak_kbytes_per_s = rate / 1000 * 8;
    assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS);
    bytes = message->chunk_bytes;
    r2_link_withdraw(stub->link, 1);
    stub_net_destroy(stub);
    return bytes;
}

/* On a lane that data waits for, chunks are so short that some of them are under way. */
static void chunks_are_shorter_than_windows(void **state)
{
    (void) state;
    assert_int_equal(chunk_of(RATE / 10), 8192);
    assert_int_equal(chunk_of(RATE), 8192); /* its window is still to grow */
    assert_true(chunk_of(2 * RATE) > 32768);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_chunks_go_behind_little),
        cmocka_unit_test(who_waits_for_room_asks),
        cmocka_unit_test(windows_follow_the_best_lane),
        cmocka_unit_test(windows_of_fast_lanes_grow),
        cmocka_unit_test(windows_of_slow_lanes_stay_short),
        cmocka_unit_test(windows_of_unlike_lanes_are_shorter),
        cmocka_unit_test(like_lanes_share_alike),
        cmocka_unit_test(like_lanes_wait_for_none_that_is_late),
        cmocka_unit_test(chunks_are_shorter_than_windows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
