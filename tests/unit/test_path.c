/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What the kernels tell of paths, and chunks that are as long as these are quick.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "link/tx.h"
#include "stub_net.h"

#define LONGEST (1u << 20)

static void sent(void *arg, r2_status_t status)
{
    (void) arg;
    (void) status;
}

/* The next 128 KiB of a lane were acknowledged, and the kernels tell this of its path. @return what
 * is thought of it. */
static uint64_t path_of(stub_net_t *stub, uint32_t idx, uint64_t bytes_per_s, uint64_t after_ns)
{
    r2_lane_t *lane = &stub->link->lanes[idx];

    stub->path_bytes_per_s = bytes_per_s;
    stub->net.now_ns += after_ns;
    r2_delivery_acked(lane, 65535, 0);
    r2_delivery_acked(lane, 65537, 0);
    return r2_lane_path_rate(lane);
}

static uint64_t path_tells(stub_net_t *stub, uint64_t bytes_per_s, uint64_t after_ns)
{
    return path_of(stub, 0, bytes_per_s, after_ns);
}

/* The path is what it was at its slowest for ten seconds: a full bucket is let through at any rate.
 * Of a new connection nothing is thought before it was seen eight times. */
static void slowest_path_counts(void **state)
{
    const uint64_t fast = 1000000000, slow = 10000000;
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = &stub->link->lanes[0];

    (void) state;
    stub_lane_up(stub, 0);
    for (int i = 0; i < 7; ++i) {
        assert_int_equal(path_tells(stub, 3 * fast, 0), 0);
    }
    assert_int_equal(path_tells(stub, fast, 0), fast);
    assert_int_equal(path_tells(stub, slow, 0), slow);
    assert_int_equal(path_tells(stub, 2 * slow, R2_NS_PER_S), slow);
    for (int i = 0; i < 6; ++i) {
        assert_int_equal(path_tells(stub, fast, R2_NS_PER_S), slow);
    }
    assert_int_equal(path_tells(stub, fast, 3 * R2_NS_PER_S), slow);
    assert_int_equal(path_tells(stub, fast, 1), 2 * slow); /* the least since */
    for (int i = 0; i < 7; ++i) { /* a bucket that is full after a pause is no news */
        assert_int_equal(path_tells(stub, fast, 11 * R2_NS_PER_S), 2 * slow);
    }
    assert_int_equal(path_tells(stub, fast, 0), fast);
    stub->path_bytes_per_s = slow;
    r2_delivery_acked(lane, 16384, 2 * R2_NS_PER_MS - 1);
    assert_int_equal(r2_lane_path_rate(lane), fast);
    lane->timing.min_rtt_ns = R2_NS_PER_MS;
    r2_delivery_acked(lane, 1, 3 * R2_NS_PER_MS - 1);
    assert_int_equal(r2_lane_path_rate(lane), fast);
    r2_delivery_acked(lane, 1, 3 * R2_NS_PER_MS); /* late: it is asked at once */
    assert_int_equal(r2_lane_path_rate(lane), slow);
    assert_int_equal(path_tells(stub, 0, 0), 0); /* it tells no more */
    assert_int_equal(path_tells(stub, fast, 11 * R2_NS_PER_S), 0);
    stub_net_destroy(stub);
}

/* Who shares a core with others finds lanes slow whose path is not: chunks as short as they ask for
 * would take more turns. 250 us of the path, at most 64 KiB, and half that if lanes share it all.
 */
static void chunks_are_no_shorter_than_the_path_is_quick(void **state)
{
    static const char data[LONGEST];
    const struct {
        uint64_t bytes, path_bytes_per_s;
        uint32_t chunk_bytes;
        enum { ALL, ONE_UNKNOWN, ONE_BEHIND, FILLING } how;
    } rows[] = {{LONGEST, 1000000000, 8192, ONE_UNKNOWN}, {LONGEST, 1000000000, 8192, ONE_BEHIND},
                {LONGEST, 1000000000, 8192, FILLING},     {LONGEST, 0, 8192, ALL},
                {LONGEST, 12500000, 8192, ALL},           {LONGEST, 100000000, 24576, ALL},
                {LONGEST, 200000000, 49152, ALL},         {LONGEST, 1000000000, 65536, ALL},
                {LONGEST, 12500000000, 65536, ALL},       {32768, 1000000000, 32768, ALL},
                {49152, 1000000000, 32768, ALL},          {32768, 12500000, 8192, ALL}};

    (void) state;
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); ++row) {
        stub_net_t *stub = stub_net_create();
        r2_tx_message_t *message;
        r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                               .data = data,
                               .bytes = rows[row].bytes,
                               .chunk_bytes = 8192,
                               .message_p = &message,
                               .done = sent};

        for (uint32_t i = 0; i < stub->link->lane_count; ++i) {
            stub_lane_up(stub, i);
            stub->link->lanes[i].tx.load.bytes_per_s = 10000000;
            if (i > 0 || ONE_UNKNOWN != rows[row].how) {
                stub->link->lanes[i].conn->path.bytes_per_s = rows[row].path_bytes_per_s;
            }
        }
        stub->link->lanes[0].tx.window_bytes -= ONE_BEHIND == rows[row].how ? 1 : 0;
        args.filling = FILLING == rows[row].how;
        assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS);
        assert_int_equal(message->chunk_bytes, rows[row].chunk_bytes);
        r2_link_withdraw(stub->link, 1);
        stub_net_destroy(stub);
    }
}

/* So many looks at the path in a row say that it carries so much. @return is it quick? */
static bool looks_say(stub_net_t *stub, uint32_t count, uint64_t bytes_per_s)
{
    for (uint32_t i = 0; i < count; ++i) {
        (void) path_tells(stub, bytes_per_s, 0);
    }
    return r2_lane_path_is_quick(&stub->link->lanes[0]);
}

/* A peer that had no processor for once is no slow path; a shaper's bucket makes none quick. While
 * the kernel's window is short nothing is said. */
static void most_looks_make_a_path_quick(void **state)
{
    const uint64_t fast = 800000000, slow = fast - 1;
    stub_net_t *stub = stub_net_create();

    (void) state;
    stub_lane_up(stub, 0);
    stub->path_window_bytes = 65535;
    assert_false(looks_say(stub, 100, fast));
    stub->path_window_bytes = 65536;
    assert_false(looks_say(stub, 15, fast));
    assert_true(looks_say(stub, 1, fast));
    assert_false(looks_say(stub, 1, slow));
    assert_false(looks_say(stub, 7, fast));
    assert_true(looks_say(stub, 100, fast));
    assert_true(looks_say(stub, 2, slow));
    assert_false(looks_say(stub, 1, slow));
    for (int i = 0; i < 100; ++i) { /* every other message finds the bucket full */
        assert_false(looks_say(stub, 1, fast));
        assert_false(looks_say(stub, 1, slow));
    }
    for (int i = 0; i < 20; ++i) { /* one of twenty came late */
        (void) looks_say(stub, 19, fast);
        (void) looks_say(stub, 1, slow);
    }
    assert_true(looks_say(stub, 0, 0));
    assert_true(looks_say(stub, 100, fast));
    stub->path_window_bytes = 0; /* it lost packets */
    assert_true(looks_say(stub, 16, slow));
    assert_false(looks_say(stub, 1, slow));
    stub->path_window_bytes = 65536;
    assert_true(looks_say(stub, 1, fast));
    assert_false(looks_say(stub, 1, 0)); /* it tells no more */
    stub_net_destroy(stub);
}

/* What is seen by one lane of a rail counts for the others, if they were seen so, too. */
static void looks_count_for_the_rail(void **state)
{
    const uint64_t fast = 800000000, slow = fast - 1;
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lanes = stub->link->lanes;

    (void) state;
    stub->path_window_bytes = 65536;
    stub_lane_up(stub, 0);
    stub_lane_up(stub, 1);
    lanes[1].rail = lanes[0].rail;
    assert_true(looks_say(stub, 16, fast));
    for (int i = 0; i < 3; ++i) {
        (void) path_of(stub, 1, fast, 0);
        assert_false(r2_lane_path_is_quick(&lanes[1]));
    }
    (void) path_of(stub, 1, fast, 0);
    assert_true(r2_lane_path_is_quick(&lanes[1]));
    (void) looks_say(stub, 12, fast);
    for (int i = 0; i < 100; ++i) { /* its own peer is slow, though every other bucket is full */
        (void) path_of(stub, 1, slow, 0);
        assert_false(r2_lane_path_is_quick(&lanes[1]));
        (void) path_of(stub, 1, fast, 0);
        assert_false(r2_lane_path_is_quick(&lanes[1]));
        assert_true(looks_say(stub, 8, fast));
    }
    (void) path_of(stub, 1, slow, 0);
    (void) looks_say(stub, 8, fast);
    for (int i = 0; i < 100; ++i) { /* and always slow: no news of the rail */
        (void) path_of(stub, 1, slow, 0);
        assert_true(r2_lane_path_is_quick(&lanes[0]));
    }
    assert_true(looks_say(stub, 2, slow));
    assert_false(looks_say(stub, 1, slow));
    stub_net_destroy(stub);
}

/* Bytes of the chunks of a message where this process waits for processors, and so many of its four
 * lanes are quick by most looks, though all are slow by what they deliver. */
static uint32_t crowded_chunk_bytes(uint64_t bytes, bool crowded, uint32_t quick_lanes,
                                    bool filling)
{
    static const char data[LONGEST];
    stub_net_t *stub = stub_net_create();
    r2_tx_message_t *message;
    const r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                                 .data = data,
                                 .bytes = bytes,
                                 .chunk_bytes = 8192,
                                 .filling = filling,
                                 .message_p = &message,
                                 .done = sent};
    uint32_t chunk_bytes;

    stub->net.crowded = crowded;
    for (uint32_t i = 0; i < stub->link->lane_count; ++i) {
        stub_lane_up(stub, i);
        stub->link->lanes[i].tx.load.bytes_per_s = 10000000;
        stub->link->lanes[i].conn->quick = 4;
        stub->link->lanes[i].rail->quick = i < quick_lanes ? 16 : 15;
    }
    assert_int_equal(r2_link_send(stub->link, &args), R2_IN_PROGRESS);
    chunk_bytes = message->chunk_bytes;
    r2_link_withdraw(stub->link, 1);
    stub_net_destroy(stub);
    return chunk_bytes;
}

/* Each lane that shares a message takes a turn of two processes: up to 256 KiB one does. */
static void crowded_messages_take_few_turns(void **state)
{
    stub_net_t *stub = stub_net_create();
    const uint32_t lanes = stub->link->lane_count;

    (void) state;
    stub_net_destroy(stub);
    assert_int_equal(crowded_chunk_bytes(LONGEST, true, lanes, false), 262144);
    assert_int_equal(crowded_chunk_bytes(262144, true, lanes, false), 262144);
    assert_int_equal(crowded_chunk_bytes(262143, true, lanes, false), 262143);
    assert_int_equal(crowded_chunk_bytes(262145, true, lanes, false), 262144);
    assert_int_equal(crowded_chunk_bytes(65536, true, lanes, false), 65536);
    assert_int_equal(crowded_chunk_bytes(LONGEST, false, lanes, false), 8192);
    assert_int_equal(crowded_chunk_bytes(LONGEST, true, lanes - 1, false), 8192);
    assert_int_equal(crowded_chunk_bytes(LONGEST, true, lanes, true), 8192);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slowest_path_counts),
        cmocka_unit_test(chunks_are_no_shorter_than_the_path_is_quick),
        cmocka_unit_test(most_looks_make_a_path_quick),
        cmocka_unit_test(looks_count_for_the_rail),
        cmocka_unit_test(crowded_messages_take_few_turns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
