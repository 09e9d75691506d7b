/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One link: what excuses a peer or a lane, and for how long; which lanes give descriptors back.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "link/idle.h"
#include "link/offer.h"
#include "link/relay.h"
#include "stub_net.h"

#define STEP_NS (10 * R2_NS_PER_MS)

static void ended(void *arg, r2_status_t status)
{
    (void) arg;
    (void) status;
}

static void send_something(stub_net_t *stub)
{
    static const char data[64];
    const r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                                 .data = data,
                                 .bytes = sizeof(data),
                                 .chunk_bytes = 16384,
                                 .done = ended};

    assert_true(r2_link_send(stub->link, &args) >= 0);
    r2_net_progress(&stub->net);
}

static void pass(stub_net_t *stub, uint64_t ns)
{
    for (const uint64_t end_ns = stub->time_ns + ns; stub->time_ns < end_ns;) {
        stub->time_ns += STEP_NS;
        r2_net_progress(&stub->net);
    }
}

/*
 * Somebody says that a process is gone, and a call finds its host out of reach: the lane on which
 * the call went is not in doubt yet, and gets nothing while another is sound. Nor one that the
 * peer has just closed.
 */
static void lanes_out_of_reach_or_over_get_nothing(void **state)
{
    (void) state;
    for (int over = 0; over < 2; ++over) {
        stub_net_t *stub = stub_net_create();
        r2_lane_t *bad = &stub->link->lanes[0], *good = &stub->link->lanes[1];

        stub_lane_up(stub, 0);
        stub_lane_up(stub, 1);
        stub->link->turn.lane = 0;
        if (0 == over) {
            bad->unreachable = true;
        } else {
            bad->connect.closing = R2_CLOSING_HEARD;
        }
        assert_true(r2_tx_has_sound_lane(stub->link));
        send_something(stub);
        assert_null(bad->tx.in_flight);
        assert_non_null(good->tx.in_flight);
        good->failed = true;
        assert_false(r2_tx_has_sound_lane(stub->link));
        stub_net_destroy(stub);
    }
}

/* ---- descriptors ---- */

/* The peer agrees to the end of a lane in the very progress pass in which the wait for that
 * ends. */
static void word_of_the_last_moment_counts(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = &stub->link->lanes[0];

    (void) state;
    stub_lane_up(stub, 0);
    lane->connect.closing_ns = stub->net.now_ns;
    stub->net.now_ns += r2_scaled_timeout_ns(&stub->net, 1);
    r2_idle_heard(lane, R2_WIRE_CLOSED);
    r2_idle_scan(lane);
    assert_int_equal(lane->state, R2_LANE_RESTING);
    stub_net_destroy(stub);
}

/*
 * The peer gave a lane up in wire-up while this process was stopped, which reads old words that
 * bring it up, or had read them just before, and then the peer's next call: nothing that was up has
 * failed. Where nobody was away, or the lane was proved, it has.
 */
static void lanes_that_were_never_up_did_not_fail(void **state)
{
    static const struct {
        uint64_t before_s, after_s; /* it came up */
        bool proved, came; /* something of ours was acknowledged, something of the peer's came */
        uint32_t failed;
    } cases[] = {{0, 0, false, false, 1},
                 {100, 0, false, false, 0},
                 {0, 100, false, false, 0},
                 {100, 0, true, false, 1},
                 {100, 0, false, true, 1}};

    (void) state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        stub_net_t *stub = stub_net_create();
        const r2_lane_t *lane = &stub->link->lanes[0];

        stub_lane_wire(stub, 0);
        r2_net_progress(&stub->net);
        stub->time_ns += cases[i].before_s * R2_NS_PER_S;
        stub_speak(stub, lane);
        assert_int_equal(lane->state, R2_LANE_UP);
        send_something(stub);
        if (cases[i].proved) {
            stub_acknowledge(stub, lane);
        }
        if (cases[i].came) {
            const r2_wire_header_t ping = {.version = R2_WIRE_VERSION,
                                           .kind = R2_WIRE_PING,
                                           .connection = lane->connect.rx_connection,
                                           .lane_seq = lane->rx.next,
                                           .ack_next = (uint32_t) stub->net.first_seq,
                                           .consumed = (uint32_t) stub->net.first_seq};

            stub_packet(stub, &ping, sizeof(ping), NULL, 0);
        }
        stub->time_ns += cases[i].after_s * R2_NS_PER_S;
        pass(stub, 20 * R2_NS_PER_MS);
        stub_lane_wire(stub, 0);
        assert_int_equal(lane->state, R2_LANE_WIRING);
        assert_int_equal(stub->counters.lanes_failed, cases[i].failed);
        r2_link_withdraw(stub->link, 1);
        stub_net_destroy(stub);
    }
}

/* Where the application has taken what calls of others need: of calls, those that nobody hears. */
static void calls_that_nobody_hears_are_taken_back(void **state)
{
    (void) state;
    for (int unconnected = 0; unconnected < 2; ++unconnected) {
        stub_net_t *stub = stub_net_create();
        const r2_lane_t *lane = &stub->link->lanes[0];

        stub->unconnected = unconnected;
        send_something(stub);
        assert_int_equal(lane->state, R2_LANE_CONNECTING);
        pass(stub, 4 * stub->params.failure_timeout_ms * R2_NS_PER_MS);
        assert_int_equal(lane->state, R2_LANE_CONNECTING);
        stub->no_room = true;
        pass(stub, R2_NS_PER_S / 5);
        assert_int_equal(lane->state, unconnected ? R2_LANE_RESTING : R2_LANE_CONNECTING);
        assert_true(NULL == lane->connect.call || !unconnected);
        r2_link_withdraw(stub->link, 1);
        stub_net_destroy(stub);
    }
}

/* A lane that carries something and hears nothing is not kept for ever; it is no failure. */
static void silent_lanes_give_back(void **state)
{
    (void) state;
    for (int no_room = 0; no_room < 2; ++no_room) {
        stub_net_t *stub = stub_net_create();

        stub_lane_up(stub, 0);
        send_something(stub);
        assert_non_null(stub->link->lanes[0].tx.in_flight);
        stub->no_room = no_room;
        pass(stub, 5 * R2_NS_PER_S);
        assert_int_equal(stub->counters.lanes_rested, no_room ? 1 : 0);
        assert_int_equal(stub->counters.lanes_closed, no_room ? 1 : 0);
        assert_int_equal(stub->counters.lanes_up, 1);
        assert_int_equal(stub->counters.lanes_failed, 0);
        r2_link_withdraw(stub->link, 1);
        stub_net_destroy(stub);
    }
}

/* Others hold descriptors and will give them back: said of late, by who can still be reached. */
static void turns_are_awaited_for_a_while(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = &stub->link->lanes[1];

    (void) state;
    stub->net.now_ns = stub->link->path.spoke_ns = stub->time_ns;
    assert_false(r2_room_awaits_turn(stub->link));
    lane->why = R2_ERR_NO_DESCRIPTORS;
    assert_false(r2_room_awaits_turn(stub->link));
    lane->connect.turn = true;
    assert_true(r2_room_awaits_turn(stub->link));
    stub->net.now_ns += R2_NS_PER_S;
    assert_true(r2_room_awaits_turn(stub->link));
    stub->net.now_ns += 3600 * R2_NS_PER_S;
    assert_false(r2_room_awaits_turn(stub->link));
    stub_net_destroy(stub);
}

/* The peer said so, and opened the lane itself later: who loses that lane waits for no turn. */
static void turns_end_when_they_come(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = &stub->link->lanes[0];
    uint8_t bytes[R2_HELLO_BYTES_MAX];
    r2_hello_offer_t offer = {0};
    size_t length;

    (void) state;
    r2_net_progress(&stub->net);
    length = stub_offer(stub, 0, R2_HELLO_SHORT, bytes);
    memcpy(&offer, bytes, length);
    offer.stands = 1;
    r2_hello_result(&stub->net, lane->connect.connect_id, R2_OK, &offer, length);
    assert_true(r2_room_awaits_turn(stub->link));
    stub_hello(stub, 0, bytes, stub_offer(stub, 0, 0, bytes));
    assert_int_equal(lane->state, R2_LANE_WIRING);
    r2_lane_fence(lane, R2_ERR_LANE_DOWN, false);
    assert_false(r2_room_awaits_turn(stub->link));
    stub_net_destroy(stub);
}

/* ---- what lies unread ---- */

/* A word counts until a later one comes, by whatever lane; one from long ago has no order. */
static void later_words_count(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_link_t *link = stub->link;
    r2_lane_t *lane = &link->lanes[0], *other = &link->lanes[1];

    (void) state;
    stub->net.now_ns = stub->time_ns;
    link->path.unread_ns = stub->time_ns;
    link->path.unread_at = 65530;
    r2_unread_heard(lane, 1, 65530);
    assert_int_equal(link->path.unread, 1);
    r2_unread_heard(other, 0, 65529);
    assert_int_equal(link->path.unread, 1);
    assert_int_equal((int32_t) (other->rx.told - lane->rx.told), -1);
    r2_unread_heard(lane, 2, 3); /* the stamp wraps */
    assert_int_equal(link->path.unread, 2);
    r2_unread_heard(other, 0, 65530);
    assert_int_equal(link->path.unread, 2);
    assert_int_equal((int32_t) (other->rx.told - lane->rx.told), -9);
    r2_unread_heard(other, 0, 30000); /* 17 minutes later */
    assert_int_equal(link->path.unread, 0);
    stub->net.now_ns += 10 * R2_NS_PER_S;
    r2_unread_heard(lane, 3, 29990);
    assert_int_equal(link->path.unread, 0);
    stub->net.now_ns += 3600 * R2_NS_PER_S;
    r2_unread_heard(lane, 3, 29990);
    assert_int_equal(link->path.unread, 3);
    assert_int_equal(lane->rx.told, link->path.told);
    stub_net_destroy(stub);
}

/* Of the peer's rail by its word, of ours by what was seen there for long. */
static void unread_packets_are_an_excuse(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = &stub->link->lanes[0];

    (void) state;
    stub_lane_up(stub, 0);
    stub->net.now_ns = stub->time_ns + R2_NS_PER_S;
    lane->conn->worker->unread_ns = lane->conn->worker->rare_ns = 0;
    assert_false(r2_unread_excuses(lane));
    stub->link->path.unread = (uint16_t) (1u << lane->remote_idx);
    assert_true(r2_unread_excuses(lane));
    stub->link->path.unread = (uint16_t) ~stub->link->path.unread;
    assert_false(r2_unread_excuses(lane));
    lane->conn->worker->unread_ns = stub->net.now_ns; /* as any progress pass does */
    assert_false(r2_unread_excuses(lane));
    lane->conn->worker->unread_ns = stub->time_ns;
    assert_true(r2_unread_excuses(lane));
    stub_net_destroy(stub);
}

/* A packet that was filled `ago_ns` ago and acknowledges what is before ack_next. */
static void speak(stub_net_t *stub, const r2_lane_t *lane, uint32_t ack_next, uint64_t ago_ns)
{
    r2_wire_header_t header = {.version = R2_WIRE_VERSION, .kind = R2_WIRE_ACK};

    header.connection = lane->connect.rx_connection;
    header.ack_next = ack_next;
    header.consumed = (uint32_t) stub->net.first_seq;
    header.unread_at = r2_unread_stamp(stub->time_ns - ago_ns);
    stub_packet(stub, &header, sizeof(header), NULL, 0);
}

/* However long the timeout: a peer that answers on one lane runs, and the other one is given up. */
static void quiet_peers_are_known_to_run(void **state)
{
    (void) state;
    for (uint64_t timeout_ms = 50; timeout_ms <= 5000; timeout_ms *= 10) {
        stub_net_t *stub = stub_net_create();
        r2_lane_t *bad = &stub->link->lanes[0], *good = &stub->link->lanes[1];
        const uint64_t end_ns = stub->time_ns + 60 * timeout_ms * R2_NS_PER_MS;

        stub->params.failure_timeout_ms = timeout_ms;
        stub_lane_up(stub, 0);
        stub_lane_up(stub, 1);
        assert_true(r2_lane_ping(bad));
        r2_lane_enter(bad, R2_LANE_SUSPECT);
        r2_tx_hedge(bad);
        r2_link_activate(stub->link);
        while (R2_LANE_SUSPECT == bad->state && stub->time_ns < end_ns) {
            stub->time_ns = r2_min(r2_link_deadline_ns(stub->link), stub->time_ns + R2_NS_PER_S);
            r2_net_progress(&stub->net);
            if (NULL != good->tx.in_flight) {
                speak(stub, good, good->tx.seq, 0);
            }
        }
        assert_int_not_equal(bad->state, R2_LANE_SUSPECT);
        assert_int_equal(stub->counters.lanes_failed, 1);
        stub_net_destroy(stub);
    }
}

/* A peer that speaks every few seconds and acknowledges nothing has heard nothing. */
static void rare_words_show_a_stall(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = &stub->link->lanes[0];

    (void) state;
    stub->params.failure_timeout_ms = 100;
    stub_lane_up(stub, 0);
    speak(stub, lane, lane->tx.seq, 0);
    send_something(stub);
    for (int i = 0; i < 10 && R2_LANE_DOWN != lane->state; ++i) {
        pass(stub, 5 * R2_NS_PER_S / 2);
        if (R2_LANE_DOWN != lane->state) {
            speak(stub, lane, lane->tx.in_flight->header.lane_seq, 0);
        }
    }
    assert_int_equal(lane->state, R2_LANE_DOWN);
    assert_int_equal(stub->counters.lanes_failed, 1);
    r2_link_withdraw(stub->link, 1);
    stub_net_destroy(stub);
}

/* After a pause a peer that sends slowly says what it filled before it could have our packet. */
static void old_words_after_a_pause_show_nothing(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = &stub->link->lanes[0];

    (void) state;
    stub->params.failure_timeout_ms = 20;
    stub_lane_up(stub, 0);
    speak(stub, lane, lane->tx.seq, 0);
    pass(stub, 19 * R2_NS_PER_S / 10);
    send_something(stub);
    for (int i = 0; i < 200; ++i) {
        pass(stub, STEP_NS);
        assert_int_equal(stub->counters.lanes_failed, 0);
        speak(stub, lane, lane->tx.in_flight->header.lane_seq, 2 * R2_NS_PER_S);
    }
    assert_int_equal(lane->state, R2_LANE_DOUBT);
    r2_link_withdraw(stub->link, 1);
    stub_net_destroy(stub);
}

/* ---- who could relay ---- */

/* What others say of the peer grows old. */
static void busy_is_believed_for_a_while(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_link_t *link = stub->link;

    (void) state;
    stub->net.now_ns = stub->time_ns;
    assert_false(r2_relay_is_busy(link, 0));
    assert_non_null(r2_relay_lane(link));
    assert_false(r2_relay_is_busy(link, 0));
    link->path.relay->busy_ns = stub->time_ns;
    assert_true(r2_relay_is_busy(link, 0));
    assert_false(r2_relay_is_busy(link, stub->time_ns)); /* it has answered since */
    stub->net.now_ns += 3600 * R2_NS_PER_S;
    assert_false(r2_relay_is_busy(link, 0));
    stub_net_destroy(stub);
}

/* However long the timeout: the next one is asked well before the limit without a path. */
static void calls_by_others_end(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_lane_t *relay = r2_relay_lane(stub->link);

    (void) state;
    assert_non_null(relay);
    stub->net.now_ns = stub->time_ns;
    stub->params.failure_timeout_ms = 5000;
    relay->connect.connect_id = 1;
    stub->link->path.relay->connect_ns = stub->time_ns;
    assert_true(r2_relay_deadline_ns(stub->link) <= stub->time_ns + 10 * R2_NS_PER_S);
    relay->connect.connect_id = 0;
    stub_net_destroy(stub);
}

/* Nobody here wants it: that it is gone is found out where others ask. */
static void a_process_is_judged_where_others_ask(void **state)
{
    (void) state;
    for (int asked = 0; asked < 2; ++asked) {
        stub_net_t *stub = stub_net_create();

        stub->net.now_ns = stub->time_ns;
        r2_link_presence_timer(stub->link);
        if (asked) {
            r2_link_inquire(stub->link);
        }
        for (uint32_t i = 0; i < STUB_RAILS * 3; ++i) {
            r2_lane_refused(&stub->link->lanes[i % STUB_RAILS]);
        }
        r2_link_presence_timer(stub->link);
        assert_int_equal(stub->link->broken, R2_OK);
        stub->net.now_ns += R2_NS_PER_S;
        r2_link_presence_timer(stub->link);
        assert_int_equal(stub->link->broken, asked ? R2_ERR_PEER_GONE : R2_OK);
        stub_net_destroy(stub);
    }
}

/* A stopped process listens. A way that refuses, and loses requests in between, shows none. */
static void refusals_are_kept_while_requests_are_lost(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = &stub->link->lanes[0];

    (void) state;
    stub->net.now_ns = lane->connect.kernel_ns = stub->time_ns + 3600 * R2_NS_PER_S;
    assert_true(r2_link_is_busy(stub->link));
    for (int i = 0; i < 3; ++i) {
        r2_lane_refused(lane);
        r2_lane_unanswered(lane, false);
        assert_int_equal(r2_link_is_busy(stub->link), i < 2);
    }
    r2_lane_unanswered(lane, true); /* somebody listens */
    assert_true(r2_link_is_busy(stub->link));
    stub_net_destroy(stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_out_of_reach_or_over_get_nothing),
        cmocka_unit_test(word_of_the_last_moment_counts),
        cmocka_unit_test(lanes_that_were_never_up_did_not_fail),
        cmocka_unit_test(calls_that_nobody_hears_are_taken_back),
        cmocka_unit_test(silent_lanes_give_back),
        cmocka_unit_test(turns_are_awaited_for_a_while),
        cmocka_unit_test(turns_end_when_they_come),
        cmocka_unit_test(later_words_count),
        cmocka_unit_test(unread_packets_are_an_excuse),
        cmocka_unit_test(quiet_peers_are_known_to_run),
        cmocka_unit_test(rare_words_show_a_stall),
        cmocka_unit_test(old_words_after_a_pause_show_nothing),
        cmocka_unit_test(busy_is_believed_for_a_while),
        cmocka_unit_test(calls_by_others_end),
        cmocka_unit_test(a_process_is_judged_where_others_ask),
        cmocka_unit_test(refusals_are_kept_while_requests_are_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
