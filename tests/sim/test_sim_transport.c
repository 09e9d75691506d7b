/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The laws of the simulator's transport: bandwidth, order, rails of hosts, call rules.
 */
#include "r2_config.h"

#include "transport_world.h"

static void bandwidth_is_the_rails(void **state)
{
    test_world_t world;
    r2_tp_ep_t *ep;
    uint64_t start_ns, expected_ns = 16 * R2_NS_PER_MS * 1024 / 1000 * 1024 / 1000;
    uint32_t i, count = (16u << 20) / 32768;

    (void) state;
    test_world_init(&world, test_two_hosts(1), "rail0");
    ep = test_connect(&world, 0, 1);
    start_ns = r2_sim_now_ns(world.sim);
    for (i = 0; i < count; ++i) {
        assert_true(test_send(&world, 0, ep, i, 32768) >= 0);
    }
    test_run(&world, forever);
    assert_int_equal(count, world.nodes[1].received);
    assert_true(world.nodes[1].in_order && world.nodes[1].intact);
    assert_in_range(r2_sim_now_ns(world.sim) - start_ns, expected_ns, expected_ns * 102 / 100);
    assert_null(r2_sim_failure(world.sim));
    test_world_fini(&world);
}

static void slow_rail_is_slow(void **state)
{
    test_world_t world;
    r2_tp_ep_t *ep;
    uint64_t start_ns;
    uint32_t i;

    (void) state;
    test_world_init(&world, test_two_hosts(2), "rail1");
    ep = test_connect(&world, 0, 1);
    r2_sim_set_rate(world.sim, 1, 1, 10000000);
    start_ns = r2_sim_now_ns(world.sim);
    for (i = 0; i < 32; ++i) {
        test_send(&world, 0, ep, i, 31250);
    }
    test_run(&world, forever);
    assert_in_range(r2_sim_now_ns(world.sim) - start_ns, 100 * R2_NS_PER_MS, 101 * R2_NS_PER_MS);
    test_world_fini(&world);
}

static void incast_shares_the_receiver(void **state)
{
    test_world_t world;
    r2_tp_ep_t *eps[3];
    r2_sim_config_t config = {.seed = 3, .host_count = 4, .node_count = 4, .rail_count = 1};
    uint64_t start_ns;
    uint32_t i, k;

    (void) state;
    test_world_init(&world, config, "rail0");
    for (k = 0; k < 3; ++k) {
        eps[k] = test_connect(&world, k + 1, 0);
    }
    start_ns = r2_sim_now_ns(world.sim);
    for (i = 0; i < 100; ++i) {
        for (k = 0; k < 3; ++k) {
            test_send(&world, k + 1, eps[k], i, 10000);
        }
    }
    test_run(&world, forever);
    assert_int_equal(300, world.nodes[0].received);
    assert_true(world.nodes[0].in_order);
    assert_in_range(r2_sim_now_ns(world.sim) - start_ns, 3 * R2_NS_PER_MS, 3100 * R2_NS_PER_US);
    test_world_fini(&world);
}

static void socket_takes_what_fits(void **state)
{
    test_world_t world;
    r2_sim_config_t config = test_two_hosts(4);
    r2_tp_ep_t *ep;
    uint32_t i;

    (void) state;
    config.socket_bytes = 100000;
    test_world_init(&world, config, "rail0");
    ep = test_connect(&world, 0, 1);
    for (i = 0; i < 3; ++i) {
        assert_int_equal(R2_OK, test_send(&world, 0, ep, i, 30000));
    }
    assert_int_equal(R2_IN_PROGRESS, test_send(&world, 0, ep, 3, 30000));
    assert_int_equal(R2_IN_PROGRESS, test_send(&world, 0, ep, 4, 1)); /* no overtaking */
    test_run(&world, forever);
    assert_int_equal(2, world.sent_ok);
    assert_int_equal(5, world.nodes[1].received);
    assert_true(world.nodes[1].in_order && world.nodes[1].intact);
    test_world_fini(&world);
}

static void early_reuse_shows(void **state)
{
    test_world_t world;
    r2_sim_config_t config = test_two_hosts(5);
    test_packet_t *packet;
    r2_tp_ep_t *ep;

    (void) state;
    config.socket_bytes = 1;
    test_world_init(&world, config, "rail0");
    ep = test_connect(&world, 0, 1);
    assert_int_equal(R2_OK, test_send(&world, 0, ep, 0, 1000));
    packet = test_packet(&world, 0, 1, 1000);
    assert_int_equal(R2_IN_PROGRESS, world.nodes[0].tp.ops->send(ep, &packet->op));
    packet->data[0] ^= 1;
    test_run(&world, forever);
    assert_int_equal(2, world.nodes[1].received);
    assert_false(world.nodes[1].intact);
    assert_non_null(strstr(r2_sim_failure(world.sim), "memory changed"));
    test_world_fini(&world);
}

static void receiver_that_sleeps_stops_the_sender(void **state)
{
    test_world_t world;
    r2_tp_ep_t *ep;
    uint32_t i;

    (void) state;
    test_world_init(&world, test_two_hosts(6), "rail0");
    ep = test_connect(&world, 0, 1);
    world.nodes[1].frozen = true;
    for (i = 0; i < 40; ++i) {
        test_send(&world, 0, ep, i, 32768);
    }
    test_run(&world, forever);
    /* 256 KiB wait at the receiver, 256 KiB in the socket, the rest with the caller */
    assert_in_range(world.sent_ok, 6, 8);
    world.nodes[1].frozen = false;
    test_run(&world, forever);
    assert_int_equal(40, world.nodes[1].received);
    assert_true(world.nodes[1].in_order && world.nodes[1].intact);
    test_world_fini(&world);
}

static void ranks_of_a_host_have_a_rail_of_their_own(void **state)
{
    test_world_t world;
    r2_sim_config_t config = {.seed = 18, .host_count = 2, .node_count = 3, .rail_count = 0};
    uint8_t address[R2_TP_ADDRESS_MAX];
    const r2_tp_ops_t *ops;
    size_t bytes;
    r2_tp_ep_t *ep;

    (void) state;
    test_world_init(&world, config, NULL);
    ep = test_connect(&world, 0, 2);
    test_send(&world, 0, ep, 0, 10000);
    test_run(&world, forever);
    assert_int_equal(1, world.nodes[2].received);
    ops = world.nodes[0].tp.ops;
    assert_int_equal(R2_OK, ops->ep_open(world.nodes[1].worker, NULL, &ep));
    assert_int_equal(R2_OK, ops->ep_address(ep, address, &bytes));
    ops->ep_close(ep);
    assert_int_equal(R2_OK, ops->ep_open(world.nodes[0].worker, NULL, &ep));
    assert_int_equal(R2_ERR_NO_PATH, ops->ep_connect(ep, address, bytes));
    ops->ep_close(ep);
    test_world_fini(&world);
}

static void test_expect_failure(test_world_t *world, const char *text)
{
    assert_non_null(r2_sim_failure(world->sim));
    assert_non_null(strstr(r2_sim_failure(world->sim), text));
    test_world_fini(world);
}

static void broken_call_rules_are_failures(void **state)
{
    test_world_t world;
    r2_tp_ep_t *ep, *back;
    test_packet_t *packet;

    (void) state;
    test_world_init(&world, test_two_hosts(19), "rail0");
    ep = test_connect(&world, 0, 1);
    world.nodes[0].tp.ops->ep_close(ep);
    test_send(&world, 0, ep, 0, 1);
    test_expect_failure(&world, "closed endpoint");

    test_world_init(&world, test_two_hosts(19), "rail0");
    ep = test_connect(&world, 0, 1);
    test_send(&world, 0, ep, 0, SEGMENT);
    test_expect_failure(&world, "too long");

    test_world_init(&world, test_two_hosts(19), "rail0");
    ep = test_connect(&world, 0, 1);
    world.nodes[0].tp.ops->ep_close(ep);
    test_connect(&world, 0, 1);
    test_expect_failure(&world, "second endpoint");

    test_world_init(&world, test_two_hosts(19), "rail0");
    ep = test_connect(&world, 0, 1);
    back = test_connect(&world, 1, 0);
    world.nodes[1].close_in_callback = back;
    test_send(&world, 0, ep, 0, 1);
    test_run(&world, forever);
    test_expect_failure(&world, "inside a callback");

    test_world_init(&world, test_two_hosts(19), "rail0");
    ep = test_connect(&world, 0, 1);
    packet = test_packet(&world, 0, 0, 10);
    packet->header.application = 1;
    world.nodes[0].tp.ops->send(ep, &packet->op);
    free(packet);
    test_expect_failure(&world, "before its lane is wired up");
}

static uint64_t test_trace(uint64_t seed)
{
    test_world_t world;
    r2_sim_config_t config = test_two_hosts(seed);
    r2_tp_ep_t *ep;
    uint64_t trace;
    uint32_t i;

    config.keep_ppm = 500000;
    test_world_init(&world, config, "rail0");
    ep = test_connect(&world, 0, 1);
    r2_sim_set_loss(world.sim, 0, 0, 50000);
    for (i = 0; i < 100; ++i) {
        test_send(&world, 0, ep, i, 5000);
    }
    test_run(&world, r2_sim_now_ns(world.sim) + 200 * R2_NS_PER_US);
    r2_sim_set_carrier(world.sim, 0, 0, false);
    test_run(&world, test_in_ms(&world, 3));
    r2_sim_set_carrier(world.sim, 0, 0, true);
    test_run(&world, forever);
    trace = world.nodes[1].trace;
    test_world_fini(&world);
    return trace;
}

static void equal_seeds_give_equal_runs(void **state)
{
    (void) state;
    assert_int_equal(test_trace(20), test_trace(20));
    assert_int_not_equal(test_trace(20), test_trace(21));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bandwidth_is_the_rails),
        cmocka_unit_test(slow_rail_is_slow),
        cmocka_unit_test(incast_shares_the_receiver),
        cmocka_unit_test(socket_takes_what_fits),
        cmocka_unit_test(early_reuse_shows),
        cmocka_unit_test(receiver_that_sleeps_stops_the_sender),
        cmocka_unit_test(ranks_of_a_host_have_a_rail_of_their_own),
        cmocka_unit_test(broken_call_rules_are_failures),
        cmocka_unit_test(equal_seeds_give_equal_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
