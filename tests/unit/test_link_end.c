/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One link whose peer has ended: nothing is asked, nothing is waited for, and the link rests.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "link/relay.h"
#include "stub_net.h"

/* The peer ends; what it says of that comes on a lane. */
static void peer_leaves(stub_net_t *stub, const r2_lane_t *lane)
{
    r2_wire_header_t header = {
        .version = R2_WIRE_VERSION, .kind = R2_WIRE_LEAVE, .flags = R2_WIRE_ACK_NOW};

    header.connection = lane->connect.rx_connection;
    header.lane_seq = lane->rx.next;
    header.ack_next = lane->tx.seq;
    header.consumed = (uint32_t) stub->net.first_seq;
    stub_packet(stub, &header, sizeof(header), NULL, 0);
    assert_true(stub->link->path.parted);
}

/* The process is no more: its connection ends, and nobody takes calls. */
static void peer_ends(stub_net_t *stub, r2_lane_t *lane)
{
    if (NULL != lane->conn) {
        r2_lane_failed(lane->conn->worker->worker, lane->conn, R2_ERR_LANE_DOWN);
    }
    for (uint32_t i = 0; i < STUB_RAILS; ++i) {
        r2_hello_result(&stub->net, stub->link->lanes[i].connect.connect_id, R2_ERR_REFUSED, NULL,
                        0);
    }
    r2_net_progress(&stub->net);
    assert_int_equal(lane->state, R2_LANE_DOWN);
}

/* A verdict was against its lane: that waits for nothing any more. */
static void accused_lanes_rest(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = &stub->link->lanes[0];

    (void) state;
    stub_lane_up(stub, 0);
    lane->timing.barred_ns = stub->time_ns + R2_NS_PER_S;
    peer_leaves(stub, lane);
    peer_ends(stub, lane);
    assert_false(stub->link->is_active);
    stub_net_destroy(stub);
}

/* What came on it last was not acknowledged, and nobody waits for that. */
static void lanes_that_owed_rest(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = &stub->link->lanes[0];

    (void) state;
    stub_lane_up(stub, 0);
    peer_leaves(stub, lane);
    lane->rx.ack = R2_ACK_LATER;
    peer_ends(stub, lane);
    assert_false(stub->link->is_active);
    stub_net_destroy(stub);
}

/* A verdict against its rail: there is nothing to ask the lane, as nobody would answer. */
static void nobody_is_asked_who_has_left(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = &stub->link->lanes[0];

    (void) state;
    stub_lane_up(stub, 0);
    peer_leaves(stub, lane);
    r2_net_peer_rail(&stub->net, 1, 0, true, stub->time_ns + R2_NS_PER_S);
    r2_net_progress(&stub->net);
    assert_null(lane->tx.in_flight);
    peer_ends(stub, lane);
    assert_null(stub->link->tx.retransmit);
    assert_false(stub->link->is_active);
    stub_net_destroy(stub);
}

/* Nothing tells that the process at the other end of a relay lane is no more. */
static void relay_lanes_end(void **state)
{
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = &stub->link->lanes[0], *relay;

    (void) state;
    stub_lane_up(stub, 0);
    peer_leaves(stub, lane);
    peer_ends(stub, lane);
    relay = r2_relay_lane(stub->link);
    assert_non_null(relay);
    r2_lane_enter(relay, R2_LANE_UP); /* as if all that was said had come by it */
    r2_link_activate(stub->link);
    r2_net_progress(&stub->net);
    assert_int_equal(relay->state, R2_LANE_DOWN);
    assert_false(stub->link->is_active);
    stub_net_destroy(stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accused_lanes_rest),
        cmocka_unit_test(lanes_that_owed_rest),
        cmocka_unit_test(nobody_is_asked_who_has_left),
        cmocka_unit_test(relay_lanes_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
