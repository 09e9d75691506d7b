/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * When a relay lane is needed, who relays, and how much it may carry.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "link/relay.h"
#include "stub_net.h"

/*
 * The peer opened a relay lane because nothing of ours came through to it: our direct lane makes it
 * needless only once it is heard again.
 */
static void silent_direct_lanes_do_not_make_it_needless(void **state)
{
    stub_net_t *stub = stub_net_create();
    const r2_lane_t *direct = &stub->link->lanes[0];

    (void) state;
    assert_false(r2_relay_needless(stub->link));
    stub_lane_up(stub, 0);
    assert_true(r2_relay_needless(stub->link));
    assert_non_null(r2_relay_lane(stub->link));
    assert_true(r2_relay_needless(stub->link));
    stub->time_ns += R2_NS_PER_MS;
    stub->link->path.relay->wired_ns = stub->time_ns;
    assert_false(r2_relay_needless(stub->link));
    stub->time_ns += R2_NS_PER_MS;
    stub_speak(stub, direct);
    assert_true(direct->rx.last_ns > stub->link->path.relay->wired_ns);
    assert_true(r2_relay_needless(stub->link));
    stub_net_destroy(stub);
}

/*
 * Short packets take more of the window than they are long, so that an acknowledgement can name all
 * that are under way when the first of them is late.
 */
static void what_is_under_way_can_be_named(void **state)
{
    static const uint64_t windows[] = {1u << 16, 1u << 20, 1u << 26};
    stub_net_t *stub = stub_net_create();
    r2_lane_t *lane = r2_relay_lane(stub->link);

    (void) state;
    assert_non_null(lane);
    for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); ++i) {
        const uint64_t most = windows[i] + windows[i] / 4; /* control packets, too (relay_bars) */

        lane->tx.window_bytes = windows[i];
        assert_true(most / r2_relay_cost(lane, 64) < R2_ACK_WINDOW);
        assert_int_equal(r2_relay_cost(lane, (uint32_t) windows[i]), windows[i]);
    }
    stub_net_destroy(stub);
}

/* Who relays may not hear us, and nobody says so: the next connect request goes by another. */
static void requests_go_by_each_in_turn(void **state)
{
    stub_net_t *stub = stub_net_create_of(5);
    r2_lane_t *lane = r2_relay_lane(stub->link);
    uint32_t by = 0;

    (void) state;
    assert_non_null(lane);
    for (int i = 0; i < 3; ++i) {
        assert_int_equal(r2_relay_call(lane, "request", 8), R2_OK);
        by |= 1u << stub->link->path.relay->connect_via;
    }
    assert_int_equal(by, 1u << 2 | 1u << 3 | 1u << 4);
    stub_net_destroy(stub);
}

/* What waits for a process goes back when no lane to it is left. */
static void frames_without_a_way_are_given_up(void **state)
{
    static const char data[64];
    stub_net_t *stub = stub_net_create_of(3);
    const r2_wire_relay_t frame = {.source = 2, .op = R2_RELAY_CALL, .id = 9};
    r2_link_t *from;

    (void) state;
    stub_lane_up(stub, 0);
    assert_int_equal(r2_net_link(&stub->net, 2, &from), R2_OK);
    stub->net.in_callback = true; /* nothing is sent now */
    r2_relay_forward(from, 1, &frame, data, sizeof(data));
    stub->net.in_callback = false;
    assert_non_null(stub->link->tx.relayed);
    r2_relay_give_up(stub->link);
    assert_non_null(stub->link->tx.relayed);
    stub->link->path.left = true; /* and no lane is opened any more */
    r2_relay_give_up(stub->link);
    assert_null(stub->link->tx.relayed);
    stub_net_destroy(stub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_go_by_each_in_turn),
        cmocka_unit_test(frames_without_a_way_are_given_up),
        cmocka_unit_test(silent_direct_lanes_do_not_make_it_needless),
        cmocka_unit_test(what_is_under_way_can_be_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
