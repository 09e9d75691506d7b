/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Turns: short messages go by one lane for a while, then by the next, and both ends agree by which.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "link/turn.h"
#include "link/tx.h"
#include "stub_net.h"

#define HALF  (R2_TURN_BYTES / 2)
#define BYTES 1024

static void lanes_have_their_turns_in_order(void **state)
{
    static const struct {
        uint8_t lane;
        uint32_t lanes;
        uint8_t next, bytes;
    } rows[] = {
        {0, 0xf, 1, 0}, {3, 0xf, 0, 0},                       /* one after the other */
        {0, 0x9, 3, 0}, {3, 0x6, 1, 0},       {1, 0xc, 2, 0}, /* some have none */
        {2, 0x4, 2, 0}, {0, 1u << 31, 31, 0},                 /* one has all, or the last */
        {1, 0, 1, 7},                                         /* nothing changes */
    };

    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        r2_turn_t turn = {.lane = rows[i].lane, .bytes = 7};

        r2_turn_next(&turn, rows[i].lanes);
        assert_int_equal(turn.lane, rows[i].next);
        assert_int_equal(turn.bytes, rows[i].bytes);
    }
}

/* Lane 1 has the turn, and lane 0 had it before. */
static void the_turn_goes_where_the_peer_is(void **state)
{
    static const struct {
        uint16_t so_far;
        uint8_t lane;
        bool follows;
        uint8_t then;
        uint16_t bytes;
    } rows[] = {
        {0, 1, false, 1, 100},
        {HALF, 1, true, 1, HALF + 100}, /* where it is expected */
        {0, 0, true, 1, 100},
        {HALF / 2 - 1, 0, true, 1, HALF / 2 + 99}, /* sent before the turn */
        {HALF / 2, 0, true, 0, 200},               /* too late for that */
        {0, 2, true, 2, 200},                      /* this end follows */
        {0, 2, false, 1, 100},
        {HALF - 1, 2, false, 1, HALF + 99}, /* the peer follows */
        {HALF, 2, false, 2, 200},           /* or it alone sends */
        {HALF, 0, false, 0, 200},
        {UINT16_MAX, 1, true, 1, UINT16_MAX},
    };

    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        r2_turn_t turn = {.lane = 1, .before = 0, .bytes = rows[i].so_far};

        r2_turn_heard(&turn, rows[i].lane, 100, rows[i].follows);
        assert_int_equal(turn.lane, rows[i].then);
        assert_int_equal(turn.bytes, rows[i].bytes);
    }
}

/** How two ends send to each other. */
typedef enum pattern { EXCHANGE, PING_PONG, LEADER_SENDS, FOLLOWER_SENDS } pattern_t;

/** Two ends, of which the second follows. */
typedef struct pair {
    r2_turn_t end[2];
    uint32_t lanes[2]; /* that may have turns, by each end's word */
    uint32_t by[32];   /* packets by lane */
    uint32_t misses;   /* packets that came where the receiver did not look */
} pair_t;

/* @return the lane that it goes by. */
static uint32_t leaves(pair_t *pair, uint32_t from, uint32_t bytes)
{
    r2_turn_t *turn = &pair->end[from];

    if (r2_turn_is_over(turn)) {
        r2_turn_next(turn, pair->lanes[from]);
    }
    r2_turn_count(turn, bytes);
    ++pair->by[turn->lane];
    return turn->lane;
}

static void comes(pair_t *pair, uint32_t to, uint32_t lane, uint32_t bytes)
{
    pair->misses += lane != pair->end[to].lane ? 1 : 0;
    r2_turn_heard(&pair->end[to], lane, bytes, 1 == to);
}

static void play(pair_t *pair, pattern_t pattern, uint32_t bytes, uint32_t times)
{
    for (uint32_t i = 0; i < times; ++i) {
        const bool first = FOLLOWER_SENDS != pattern, second = LEADER_SENDS != pattern;
        const uint32_t lane = first ? leaves(pair, 0, bytes) : 0;
        uint32_t other = 0;

        if (EXCHANGE == pattern) { /* both send before anything comes */
            other = leaves(pair, 1, bytes);
        }
        if (first) {
            comes(pair, 1, lane, bytes);
        }
        if (EXCHANGE != pattern && second) {
            other = leaves(pair, 1, bytes);
        }
        if (second) {
            comes(pair, 0, other, bytes);
        }
    }
}

/* Of so many lanes that may have turns, each got about as much as the others. */
static void shares_are_equal(const pair_t *pair, uint32_t lanes)
{
    const uint32_t all = pair->by[0] + pair->by[1] + pair->by[2] + pair->by[3];

    for (uint32_t lane = 0; lane < lanes; ++lane) {
        assert_in_range(lanes * pair->by[lane], all * 9 / 10, all * 11 / 10);
    }
}

/* Whoever sends: all lanes are used alike, and the receiver looks at the right one, but for two
 * packets of a turn and some of the first. */
static void both_ends_agree(void **state)
{
    static const struct {
        uint32_t lanes[2]; /* by each end's word */
        uint32_t start;    /* lane of the second end's first turn */
        uint32_t equal;    /* lanes that get equal shares */
    } rows[] = {
        {{0xf, 0xf}, 0, 4}, {{0x3, 0x3}, 0, 2}, {{0x1, 0x1}, 0, 1},
        {{0xf, 0xf}, 1, 4}, {{0xf, 0xf}, 2, 4}, /* as if something had been lost */
        {{0xf, 0xb}, 0, 0}, {{0xd, 0xf}, 0, 0}, /* one end knows more than the other */
    };

    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        for (int pattern = EXCHANGE; pattern <= FOLLOWER_SENDS; ++pattern) {
            for (uint32_t bytes = 100; bytes < 4200; bytes += 500) {
                const uint32_t turns = 64, packets = R2_TURN_BYTES / bytes;
                pair_t pair = {.lanes = {rows[i].lanes[0], rows[i].lanes[1]}};

                pair.end[1].lane = (uint8_t) rows[i].start;
                play(&pair, (pattern_t) pattern, bytes, turns * packets);
                assert_in_range(pair.misses, 0, 2 * (turns + packets));
                shares_are_equal(&pair, rows[i].equal);
            }
        }
    }
}

static void never_done(void *arg, r2_status_t status)
{
    (void) arg;
    (void) status;
    fail();
}

/* So many messages of BYTES, each acknowledged. @return those that went by lane 0. */
static uint32_t send_by(stub_net_t *stub, uint32_t count)
{
    static const char data[BYTES];
    static uint32_t id;
    uint32_t first = 0;

    for (uint32_t i = 0; i < count; ++i) {
        const r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1, .id = ++id},
                                     .data = data,
                                     .bytes = BYTES,
                                     .chunk_bytes = 8192,
                                     .granted_bytes = BYTES,
                                     .done = never_done};

        assert_int_equal(r2_link_send(stub->link, &args), R2_OK); /* copied */
        first += NULL != stub->link->lanes[0].tx.in_flight ? 1 : 0;
        for (uint32_t lane = 0; lane < STUB_RAILS; ++lane) {
            if (NULL != stub->link->lanes[lane].tx.in_flight) {
                stub_acknowledge(stub, &stub->link->lanes[lane]);
            }
        }
    }
    return first;
}

static stub_net_t *two_lanes(void)
{
    stub_net_t *stub = stub_net_create();

    stub_lane_up(stub, 0);
    stub_lane_up(stub, 1);
    stub->link->turn.lane = 0;
    return stub;
}

#define TURN (R2_TURN_BYTES / (BYTES + (uint32_t) sizeof(r2_wire_header_t)) + 1) /* messages */

static void short_messages_take_lanes_in_turn(void **state)
{
    stub_net_t *stub = two_lanes();

    (void) state;
    assert_int_equal(send_by(stub, TURN), TURN);
    assert_int_equal(send_by(stub, TURN), 0);
    assert_int_equal(send_by(stub, TURN), TURN);
    stub_net_destroy(stub);
}

/* A lane that something is known against has no turn, and a slow one neither. */
static void bad_lanes_have_no_turn(void **state)
{
    static const struct {
        r2_lane_state_t state;
        uint64_t rates[2];
        bool turns; /* lane 1 has some */
    } rows[] = {
        {R2_LANE_UP, {0, 0}, true},       {R2_LANE_DOUBT, {0, 0}, false},
        {R2_LANE_SUSPECT, {0, 0}, false}, {R2_LANE_UP, {100, 25}, true},
        {R2_LANE_UP, {100, 24}, false},   {R2_LANE_UP, {100, 0}, true}, /* not known */
    };

    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        stub_net_t *stub = two_lanes();

        r2_lane_enter(&stub->link->lanes[1], rows[i].state);
        stub->link->lanes[0].tx.load.bytes_per_s = rows[i].rates[0];
        stub->link->lanes[1].tx.load.bytes_per_s = rows[i].rates[1];
        assert_int_equal(send_by(stub, 2 * TURN), rows[i].turns ? TURN : 2 * TURN);
        stub_net_destroy(stub);
    }
}

/* Nothing waits in a lane whose round trips take no longer than on an idle one: it goes on, if it
 * is one that may have turns, and as fast as others. */
static void calm_lanes_keep_the_turn(void **state)
{
    static const struct {
        uint64_t calm_ns, now_ns; /* round trip of an idle lane, and of late */
        uint64_t other_ns;        /* of the other one when it was idle */
        uint64_t rates[2];
        bool keeps;
    } rows[] = {
        {20000, 20000, 0, {0, 0}, true},     {20000, 39999, 0, {0, 0}, true},
        {20000, 40000, 0, {0, 0}, false},    {0, 20000, 0, {0, 0}, false}, /* not known */
        {20000, 20000, 10001, {0, 0}, true}, {20000, 20000, 10000, {0, 0}, false},
        {20000, 20000, 0, {25, 100}, true},  {20000, 20000, 0, {24, 100}, false},
    };

    (void) state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        stub_net_t *stub = two_lanes();
        r2_lane_t *lanes = stub->link->lanes;

        assert_int_equal(send_by(stub, TURN), TURN);
        lanes[0].timing.srtt_ns = rows[i].now_ns;
        lanes[0].timing.calm_rtt_ns = rows[i].calm_ns;
        lanes[1].timing.calm_rtt_ns = rows[i].other_ns;
        lanes[0].tx.load.bytes_per_s = rows[i].rates[0];
        lanes[1].tx.load.bytes_per_s = rows[i].rates[1];
        assert_int_equal(send_by(stub, 1), rows[i].keeps ? 1 : 0);
        stub_net_destroy(stub);
    }
}

/* What nobody uses may be dead: after some turns others have theirs. */
static void a_calm_lane_has_some_turns(void **state)
{
    stub_net_t *stub = two_lanes();
    r2_lane_t *lane = &stub->link->lanes[0];

    (void) state;
    for (uint32_t i = 0; i <= R2_TURN_AGAIN; ++i) {
        lane->timing.srtt_ns = lane->timing.calm_rtt_ns = 20000;
        assert_int_equal(send_by(stub, TURN), TURN);
    }
    lane->timing.srtt_ns = lane->timing.calm_rtt_ns = 20000;
    assert_int_equal(send_by(stub, TURN), 0);
    lane->timing.srtt_ns = lane->timing.calm_rtt_ns = 20000;
    assert_int_equal(send_by(stub, 1), 1);
    stub_net_destroy(stub);
}

/* Such a lane gives the turn up when something is known against it, and follows the peer. */
static void a_kept_turn_ends(void **state)
{
    stub_net_t *stub = two_lanes();
    r2_link_t *link = stub->link;

    (void) state;
    assert_int_equal(send_by(stub, TURN), TURN);
    link->lanes[0].timing.calm_rtt_ns = link->lanes[0].timing.srtt_ns = 20000;
    assert_int_equal(send_by(stub, TURN), TURN);
    r2_tx_turn_heard(&link->lanes[1], BYTES);
    assert_int_equal(link->turn.lane, 1);
    link->turn = (r2_turn_t){.bytes = R2_TURN_BYTES};
    link->lanes[0].timing.calm_rtt_ns = link->lanes[0].timing.srtt_ns = 20000;
    r2_lane_enter(&link->lanes[0], R2_LANE_DOUBT);
    assert_int_equal(send_by(stub, 8), 0);
    stub_net_destroy(stub);
}

static void is_asked_for(void *arg)
{
    (void) arg;
    fail_msg("a lane can send it");
}

static void ends_never(void *arg, r2_status_t status)
{
    fail_msg("done was called: %p %d", arg, (int) status);
}

/* A chunk in memory of a GPU that is to be sent again lets others pass, and waits all the same:
 * rates are measured while chunks do. */
static void what_others_pass_waits(void **state)
{
    static const char there[49152]; /* the transport reads it */
    const r2_tp_memory_t gpu = {.data = there, .bytes = sizeof(there), .gpu_id = 1};
    const r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                                 .data = there,
                                 .bytes = sizeof(there),
                                 .chunk_bytes = 16384,
                                 .gpu = &gpu,
                                 .granted_bytes = sizeof(there),
                                 .fetch = is_asked_for,
                                 .done = ends_never};
    stub_net_t *stub = stub_net_create();
    r2_link_t *link = stub->link;

    (void) state;
    stub->mode = STUB_LATER;
    stub->reads_gpus = true;
    for (uint32_t i = 0; i < 2; ++i) {
        stub_lane_up(stub, i);
        link->lanes[i].tx.window_bytes = 0 == i ? 1u << 20 : 1;
    }
    stub->complete = true; /* of HELLO */
    r2_net_progress(&stub->net);
    stub->complete = false;
    assert_int_equal(r2_link_send(link, &args), R2_IN_PROGRESS);
    assert_int_equal(stub->counters.tx_chunks, 3);
    assert_int_equal(link->tx.rates.since_ns, 0);
    assert_non_null(link->lanes[1].tx.in_flight); /* and so it is full */
    r2_lane_fence(&link->lanes[0], R2_ERR_LANE_DOWN, false);
    r2_net_progress(&stub->net);
    assert_non_null(link->tx.retransmit);
    assert_int_not_equal(link->tx.rates.since_ns, 0);
    stub_acknowledge(stub, &link->lanes[1]);
    r2_net_progress(&stub->net);
    assert_true(stub->counters.resent_chunks > 0);
    r2_link_withdraw(link, 1);
    stub_net_destroy(stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_have_their_turns_in_order),
        cmocka_unit_test(the_turn_goes_where_the_peer_is),
        cmocka_unit_test(both_ends_agree),
        cmocka_unit_test(short_messages_take_lanes_in_turn),
        cmocka_unit_test(bad_lanes_have_no_turn),
        cmocka_unit_test(calm_lanes_keep_the_turn),
        cmocka_unit_test(a_calm_lane_has_some_turns),
        cmocka_unit_test(a_kept_turn_ends),
        cmocka_unit_test(what_others_pass_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
