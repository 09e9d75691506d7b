/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One link whose peer refuses, is stopped, leaves, or runs another version.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "link/offer.h"
#include "link/relay.h"
#include "stub_net.h"

/* Time passes; lane calls that are due are refused. */
static void refuse_for(stub_net_t *stub, uint32_t lane, uint64_t ns)
{
    const uint64_t end_ns = stub->time_ns + ns;

    while (stub->time_ns < end_ns) {
        stub->time_ns += 10 * R2_NS_PER_MS;
        r2_net_progress(&stub->net);
        r2_hello_result(&stub->net, stub->link->lanes[lane].connect.connect_id, R2_ERR_REFUSED,
                        NULL, 0);
    }
}

/* Others ask for a peer that we reach, and one rail to it refuses for ever: nobody is gone. */
static void links_with_a_lane_are_not_given_up(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = &stub->link->lanes[0];

    (void) state;
    stub_lane_up(stub, 0);
    refuse_for(stub, 1, 2 * R2_NS_PER_S);
    stub->link->path.inquired = true; /* the lane was suspect, and a frame was to be relayed */
    refuse_for(stub, 1, 2 * R2_NS_PER_S);
    stub_speak(stub, lane);
    refuse_for(stub, 1, 20 * R2_NS_PER_S);
    assert_int_equal(stub->link->broken, R2_OK);
    assert_int_equal(lane->state, R2_LANE_UP);
    stub_net_destroy(stub);
}

/* When all refuse and nobody says a word, the process is gone; also if others ask for it only. */
static void links_that_refuse_are_given_up(void **state)
{
    stub_net_t *stub = stub_net_create();

    (void) state;
    stub->link->path.inquired = true;
    stub_refuse(stub, R2_NS_PER_S);
    assert_int_equal(stub->link->broken, R2_ERR_PEER_GONE);
    stub_net_destroy(stub);
}

/* Lanes that the peer offers and that never get through give back what they took. */
static void wiring_gives_workers_back(void **state)
{
    uint8_t offer[R2_HELLO_BYTES_MAX];
    stub_net_t *stub = stub_net_create();
    uint32_t most = 0;

    (void) state;
    stub_net_watch(stub);
    for (uint32_t round = 0; round < 200; ++round) {
        const uint32_t rail = round % STUB_RAILS;

        r2_hello_result(&stub->net, stub->link->lanes[rail].connect.connect_id, R2_ERR_TIMEOUT,
                        NULL, 0);
        stub_hello(stub, rail, offer, stub_offer(stub, rail, 0, offer));
        assert_int_equal(stub->link->lanes[rail].state, R2_LANE_WIRING);
        stub->time_ns += 0 == round % 5 ? 11 * R2_NS_PER_S : R2_NS_PER_MS;
        r2_net_progress(&stub->net);
        most = r2_max(most, stub->workers);
    }
    assert_true(most <= 2 * STUB_RAILS); /* the one in use and the newest, of each rail */
    stub_net_destroy(stub);
}

/* Notices are repeated while a peer is stopped: so many wait for it, on its lanes too, no more. */
static void notices_to_a_stopped_peer_are_bounded(void **state)
{
    stub_net_t *stub = stub_net_create();
    const char notice[] = "notice";
    r2_wire_header_t header = {.version = R2_WIRE_VERSION, .kind = R2_WIRE_ACK};
    r2_lane_t *lane = &stub->link->lanes[0];
    uint32_t sent = 0;

    (void) state;
    stub_lane_up(stub, 0);
    for (uint32_t i = 0; i < 100; ++i) {
        sent += R2_OK == r2_net_notice(&stub->net, 1, notice, sizeof(notice), false) ? 1 : 0;
        r2_net_progress_links(&stub->net);
    }
    assert_null(stub->link->tx.control);
    assert_int_equal(sent, 32);
    assert_int_equal(stub->link->tx.in_flight_packets, sent);
    header.connection = lane->connect.rx_connection;
    header.ack_next = lane->tx.seq;
    header.consumed = (uint32_t) stub->net.first_seq;
    stub_packet(stub, &header, sizeof(header), NULL, 0);
    assert_int_equal(stub->link->tx.unsettled[R2_WIRE_NOTICE], 0);
    assert_int_equal(r2_net_notice(&stub->net, 1, notice, sizeof(notice), false), R2_OK);
    stub_net_destroy(stub);
}

/* Lanes to a process that ended are not opened: nobody relays by it, nothing is left with it. */
static void who_has_left_relays_nothing(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_wire_header_t header = {.version = R2_WIRE_VERSION, .kind = R2_WIRE_LEAVE};
    const r2_wire_relay_t frame = {.source = 0, .op = R2_RELAY_CALL};
    const r2_tx_relay_t to = {.destination = 1, .hello = true};
    const r2_relay_parts_t parts = {NULL, NULL, 0, 0};
    const r2_lane_t *lane = &stub->link->lanes[0];

    (void) state;
    stub_lane_up(stub, 0);
    assert_true(r2_relay_reaches(stub->link));
    header.connection = lane->connect.rx_connection;
    header.lane_seq = lane->rx.next;
    header.ack_next = lane->tx.seq;
    header.consumed = (uint32_t) stub->net.first_seq;
    stub_packet(stub, &header, sizeof(header), NULL, 0);
    assert_true(stub->link->path.parted);
    assert_int_equal(stub->link->lanes[1].connect.failures,
                     0); /* as if it were still to be opened */
    assert_false(r2_relay_reaches(stub->link));
    assert_int_equal(r2_relay_post(&stub->net, 1, &to, &frame, &parts), R2_ERR_NO_PATH);
    assert_null(stub->link->tx.relayed);
    stub_net_destroy(stub);
}

/* While a peer does not read, what it is asked stays one question, and frames are bounded. */
static void hello_frames_are_bounded(void **state)
{
    stub_net_t *stub = stub_net_create();
    const r2_wire_relay_t frame = {.source = 0, .op = R2_RELAY_CALL};
    const r2_tx_relay_t to = {.destination = 1, .hello = true};
    const r2_relay_parts_t parts = {NULL, NULL, 0, 0};
    uint32_t sent = 0;

    (void) state;
    stub_lane_up(stub, 0);
    for (uint32_t i = 0; i < 100; ++i) {
        sent += R2_OK == r2_relay_post(&stub->net, 1, &to, &frame, &parts) ? 1 : 0;
        r2_net_progress_links(&stub->net);
    }
    assert_int_equal(sent, 32);
    stub_acknowledge(stub, &stub->link->lanes[0]);
    assert_int_equal(stub->link->tx.unsettled[R2_WIRE_RELAY], 0);
    assert_int_equal(r2_relay_post(&stub->net, 1, &to, &frame, &parts), R2_OK);
    stub_net_destroy(stub);
}

/* What only a direct lane may take waits for one; data behind it goes by the relay lane. */
static void frames_hold_no_data_up(void **state)
{
    static const char data[64];
    stub_net_t *stub = stub_net_create();
    const r2_wire_relay_t frame = {.source = 0, .op = R2_RELAY_CALL};
    const r2_tx_relay_t to = {.destination = 1, .hello = true};
    const r2_relay_parts_t parts = {NULL, NULL, 0, 0};
    const r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                                 .data = data,
                                 .bytes = sizeof(data),
                                 .chunk_bytes = 16384};

    (void) state;
    stub_lane_up(stub, 0);
    stub_lane_up(stub, 1);
    stub->net.rails[1].idx = R2_RELAY_RAIL;
    stub->mode = STUB_LATER;
    assert_int_equal(r2_relay_post(&stub->net, 1, &to, &frame, &parts), R2_OK);
    assert_int_equal(r2_link_send(stub->link, &args), R2_OK);
    r2_net_progress(&stub->net);
    assert_null(stub->link->lanes[1].tx.in_flight);
    r2_lane_close(&stub->link->lanes[0]);
    r2_net_progress(&stub->net);
    assert_int_equal(stub->counters.resent_chunks, 1);
    assert_non_null(stub->link->tx.retransmit);
    assert_int_equal(stub->link->tx.retransmit->kind, R2_WIRE_RELAY);
    stub->net.rails[1].idx = 1;
    stub_net_destroy(stub);
}

/* Where a direct lane only lacks room for a frame that was lost, what comes later takes no room. */
static void frames_are_not_overtaken(void **state)
{
    static const char data[8000];
    stub_net_t *stub = stub_net_create();
    const r2_wire_relay_t frame = {.source = 0, .op = R2_RELAY_CALL};
    const r2_tx_relay_t to = {.destination = 1, .hello = true};
    const r2_relay_parts_t parts = {data, NULL, sizeof(data), 0};
    r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                           .data = data,
                           .bytes = 5000,
                           .chunk_bytes = 16384};
    r2_lane_t *first = &stub->link->lanes[0], *other = &stub->link->lanes[1];

    (void) state;
    stub_lane_up(stub, 0);
    assert_int_equal(r2_relay_post(&stub->net, 1, &to, &frame, &parts), R2_OK);
    assert_non_null(first->tx.in_flight);
    stub_lane_up(stub, 1);
    other->tx.window_bytes = 10000;
    assert_int_equal(r2_link_send(stub->link, &args), R2_OK);
    assert_non_null(other->tx.in_flight);
    r2_lane_close(first);
    r2_net_progress(&stub->net);
    assert_non_null(stub->link->tx.retransmit); /* it does not fit */
    args.tag.id = 1;
    args.bytes = 64;
    assert_int_equal(r2_link_send(stub->link, &args), R2_OK);
    r2_net_progress(&stub->net);
    assert_int_equal(stub->counters.tx_chunks, 1);
    stub_acknowledge(stub, other);
    assert_null(stub->link->tx.retransmit);
    assert_int_equal(other->tx.in_flight->item->kind, R2_WIRE_RELAY);
    assert_int_equal(stub->counters.tx_chunks, 2);
    stub_net_destroy(stub);
}

/*
 * The peer has called, without room for its lane: it is called back, until such a call gets lost or
 * is taken back. One that is stopped is still owed the lane.
 */
static void callers_are_owed_a_lane_while_they_are_reached(void **state)
{
    static const struct {
        r2_status_t status; /* of the call back; R2_OK: none, it is taken back */
        bool owed;
    } cases[] = {{R2_ERR_TIMEOUT, false}, {R2_ERR_UNRESPONSIVE, true}, {R2_OK, false}};

    (void) state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        stub_net_t *stub = stub_net_create();
        uint8_t offer[R2_HELLO_BYTES_MAX];
        r2_link_t *link = stub->link;

        stub->no_room = stub->unconnected = true;
        stub_hello(stub, 0, offer, stub_offer(stub, 0, 0, offer));
        assert_true(link->path.owed);
        for (int pass = 0; pass < 120; ++pass) {
            stub->no_room = pass >= 100 && R2_OK == cases[i].status; /* the application took it */
            stub->time_ns += 10 * R2_NS_PER_MS;
            r2_net_progress(&stub->net);
            assert_true(pass >= 100 || link->path.owed);
        }
        assert_int_not_equal(stub->connect_id, 0);
        if (R2_OK != cases[i].status) {
            r2_hello_result(&stub->net, stub->connect_id, cases[i].status, NULL, 0);
        }
        assert_int_equal(link->path.owed, cases[i].owed);
        stub_net_destroy(stub);
    }
}

/* Whoever runs another r2 is told so, however long its offers are; what makes no sense is not. */
static void offers_of_other_versions_are_rejected(void **state)
{
    stub_net_t *stub = stub_net_create();
    uint8_t bytes[R2_HELLO_BYTES_MAX] = {0};
    const size_t length = stub_offer(stub, 0, 0, bytes);
    r2_hello_offer_t theirs, offer;

    (void) state;
    memcpy(&offer, bytes, sizeof(offer));
    assert_int_equal(r2_hello_offer_parse(&stub->net, bytes, length, &theirs), R2_OK);
    assert_int_equal(r2_hello_offer_parse(&stub->net, bytes, length - 1, &theirs), R2_ERR_WIRE);
    assert_int_equal(r2_hello_offer_parse(&stub->net, bytes, length + 1, &theirs), R2_ERR_WIRE);
    for (size_t less = 0; less <= length; ++less) {
        offer.version = R2_WIRE_VERSION - 1;
        assert_int_equal(r2_hello_offer_parse(&stub->net, &offer, length - less, &theirs),
                         length - less < offsetof(r2_hello_offer_t, verdict) ? R2_ERR_WIRE
                                                                             : R2_ERR_VERSION);
        offer.version = R2_WIRE_VERSION;
    }
    ++offer.segment_bytes;
    assert_int_equal(r2_hello_offer_parse(&stub->net, &offer, length, &theirs), R2_ERR_VERSION);
    offer.magic = 0;
    assert_int_equal(r2_hello_offer_parse(&stub->net, &offer, length, &theirs), R2_ERR_WIRE);
    stub_net_destroy(stub);
}

static void sent(void *arg, r2_status_t status)
{
    (void) arg;
    (void) status;
}

static void pass(stub_net_t *stub, uint64_t ms)
{
    for (uint64_t i = 0; i < ms; i += 5) {
        stub->time_ns += 5 * R2_NS_PER_MS;
        r2_net_progress(&stub->net);
    }
}

/* A link was silent, and its peer is heard again: a lane that does not answer then is suspect after
 * half a timeout, and not at once. */
static void a_lane_in_doubt_gets_half_a_timeout(void **state)
{
    static const char data[64];
    const r2_link_send_t args = {.tag = {.comm_key = 1, .coll_seq = 1},
                                 .data = data,
                                 .bytes = sizeof(data),
                                 .chunk_bytes = 16384,
                                 .done = sent};
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane;

    (void) state;
    stub->params.failure_timeout_ms = 100;
    stub_lane_up(stub, 0);
    stub_lane_up(stub, 1);
    assert_true(r2_link_send(stub->link, &args) >= 0);
    r2_net_progress(&stub->net);
    lane = &stub->link->lanes[NULL != stub->link->lanes[0].tx.in_flight ? 0 : 1];
    pass(stub, 110);
    assert_int_equal(lane->state, R2_LANE_DOUBT);
    stub_speak(stub, &stub->link->lanes[1 - lane->idx]);
    pass(stub, 40);
    assert_int_equal(lane->state, R2_LANE_DOUBT);
    pass(stub, 20);
    assert_int_equal(lane->state, R2_LANE_SUSPECT);
    r2_link_withdraw(stub->link, 1);
    stub_net_destroy(stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notices_to_a_stopped_peer_are_bounded),
        cmocka_unit_test(hello_frames_are_bounded),
        cmocka_unit_test(frames_hold_no_data_up),
        cmocka_unit_test(frames_are_not_overtaken),
        cmocka_unit_test(callers_are_owed_a_lane_while_they_are_reached),
        cmocka_unit_test(who_has_left_relays_nothing),
        cmocka_unit_test(links_with_a_lane_are_not_given_up),
        cmocka_unit_test(links_that_refuse_are_given_up),
        cmocka_unit_test(wiring_gives_workers_back),
        cmocka_unit_test(offers_of_other_versions_are_rejected),
        cmocka_unit_test(a_lane_in_doubt_gets_half_a_timeout),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
