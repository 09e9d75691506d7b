/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The simulated transport on broken paths: late delivery, loss, ghosts, killed processes.
 */
#include "r2_config.h"

#include "transport_world.h"

typedef void (*test_break_fn_t)(r2_sim_t *sim, bool broken);

static void test_break_carrier(r2_sim_t *sim, bool broken)
{
    r2_sim_set_carrier(sim, 1, 0, !broken);
}

static void test_break_in(r2_sim_t *sim, bool broken)
{
    r2_sim_set_pass(sim, 1, 0, true, !broken);
}

static void test_break_out(r2_sim_t *sim, bool broken)
{
    r2_sim_set_pass(sim, 0, 0, !broken, true);
}

static void test_break_cut(r2_sim_t *sim, bool broken)
{
    r2_sim_set_cut(sim, 1, 0, 0, broken);
}

static void broken_path_delivers_late_once_and_in_order(void **state)
{
    static const test_break_fn_t breaks[] = {test_break_carrier, test_break_in, test_break_out,
                                             test_break_cut};
    uint64_t seen;
    size_t b;

    (void) state;
    for (b = 0; b < r2_array_count(breaks); ++b) {
        test_world_t world;
        r2_tp_ep_t *ep;
        uint32_t i;

        test_world_init(&world, test_two_hosts(7 + b), "rail0");
        ep = test_connect(&world, 0, 1);
        for (i = 0; i < 20; ++i) {
            test_send(&world, 0, ep, i, 32768);
        }
        test_run(&world, r2_sim_now_ns(world.sim) + 200 * R2_NS_PER_US);
        breaks[b](world.sim, true);
        seen = world.nodes[1].received;
        assert_in_range(seen, 1, 19);
        test_run(&world, test_in_ms(&world, 5000));
        assert_int_equal(seen, world.nodes[1].received);
        assert_int_equal(0, world.nodes[0].failures);
        breaks[b](world.sim, false);
        assert_int_equal(seen, world.nodes[1].received);
        test_run(&world, test_in_ms(&world, 201));
        assert_int_equal(20, world.nodes[1].received);
        assert_true(world.nodes[1].in_order && world.nodes[1].intact);
        assert_int_equal(0 == b ? 2 : 0, world.carrier_news);
        assert_null(r2_sim_failure(world.sim));
        test_world_fini(&world);
    }
}

static void one_way_drop_lets_a_socketful_through(void **state)
{
    test_world_t world;
    r2_tp_ep_t *ep;
    uint32_t i;

    (void) state;
    test_world_init(&world, test_two_hosts(11), "rail0");
    ep = test_connect(&world, 0, 1);
    r2_sim_set_pass(world.sim, 0, 0, true, false);
    for (i = 0; i < 40; ++i) {
        test_send(&world, 0, ep, i, 32768);
    }
    test_run(&world, test_in_ms(&world, 5000));
    assert_in_range(world.nodes[1].received, 7, 8);
    assert_int_equal(0, world.sent_ok);
    r2_sim_set_pass(world.sim, 0, 0, true, true);
    test_run(&world, forever);
    assert_int_equal(40, world.nodes[1].received);
    assert_true(world.nodes[1].in_order);
    test_world_fini(&world);
}

static void loss_delays_but_loses_nothing(void **state)
{
    test_world_t world;
    r2_tp_ep_t *ep;
    uint32_t i;

    (void) state;
    test_world_init(&world, test_two_hosts(12), "rail0");
    ep = test_connect(&world, 0, 1);
    r2_sim_set_loss(world.sim, 1, 0, 100000);
    for (i = 0; i < 200; ++i) {
        test_send(&world, 0, ep, i, 1000);
    }
    test_run(&world, forever);
    assert_int_equal(200, world.nodes[1].received);
    assert_true(world.nodes[1].in_order && world.nodes[1].intact);
    assert_true(r2_sim_stats(world.sim)->rewinds > 5);
    test_world_fini(&world);
}

/* Closes a lane under a silent drop with data in the socket, heals. @return packets that came
 * later. */
static uint64_t test_ghosts(uint32_t keep_ppm)
{
    test_world_t world;
    r2_sim_config_t config = test_two_hosts(13);
    r2_tp_ep_t *ep;
    uint64_t late;
    uint32_t i;

    config.keep_ppm = keep_ppm;
    test_world_init(&world, config, "rail0");
    ep = test_connect(&world, 0, 1);
    r2_sim_set_pass(world.sim, 0, 0, false, false);
    for (i = 0; i < 12; ++i) {
        test_send(&world, 0, ep, i, 32768);
    }
    test_run(&world, test_in_ms(&world, 100));
    assert_int_equal(0, world.sent_ok);
    world.nodes[0].tp.ops->ep_close(ep);
    assert_int_equal(5, world.sent_canceled);
    r2_sim_set_pass(world.sim, 0, 0, true, true);
    test_run(&world, forever);
    late = world.nodes[1].received;
    assert_int_equal(late, r2_sim_stats(world.sim)->ghosts);
    assert_true(world.nodes[1].in_order && world.nodes[1].intact);
    assert_null(r2_sim_failure(world.sim));
    test_world_fini(&world);
    return late;
}

static void closing_leaves_ghosts_or_not(void **state)
{
    (void) state;
    assert_int_equal(7, test_ghosts(1000000));
    assert_int_equal(0, test_ghosts(0));
}

static void closed_receiver_still_gets_late_data(void **state)
{
    test_world_t world;
    r2_tp_ep_t *ep, *back;

    (void) state;
    test_world_init(&world, test_two_hosts(14), "rail0");
    ep = test_connect(&world, 0, 1);
    back = test_connect(&world, 1, 0);
    r2_sim_set_cut(world.sim, 0, 1, 0, true);
    test_send(&world, 0, ep, 0, 1000);
    test_run(&world, test_in_ms(&world, 50));
    world.nodes[1].tp.ops->ep_close(back);
    r2_sim_set_cut(world.sim, 0, 1, 0, false);
    test_run(&world, forever);
    assert_int_equal(1, world.nodes[1].received);
    test_world_fini(&world);
}

static void destroyed_worker_resets_over_a_working_path_only(void **state)
{
    test_world_t world;
    r2_tp_worker_t *old;
    r2_tp_ep_t *ep;

    (void) state;
    test_world_init(&world, test_two_hosts(15), "rail0");
    ep = test_connect(&world, 0, 1);
    old = world.nodes[1].worker;
    world.nodes[1].worker = test_new_worker(&world.nodes[1]);
    r2_sim_set_pass(world.sim, 1, 0, false, true);
    world.nodes[1].tp.ops->worker_destroy(old);
    test_run(&world, test_in_ms(&world, 500));
    assert_int_equal(0, world.nodes[0].failures);
    r2_sim_set_pass(world.sim, 1, 0, true, true);
    test_run(&world, forever);
    assert_int_equal(1, world.nodes[0].failures);
    assert_int_equal(R2_ERR_LANE_DOWN, test_send(&world, 0, ep, 0, 100));
    world.nodes[0].tp.ops->ep_close(ep);
    assert_null(r2_sim_failure(world.sim));
    test_world_fini(&world);
}

static void killed_process_fails_its_peers_endpoints(void **state)
{
    test_world_t world;
    r2_tp_ep_t *ep, *back;
    uint32_t i;

    (void) state;
    test_world_init(&world, test_two_hosts(16), "rail0");
    ep = test_connect(&world, 0, 1);
    back = test_connect(&world, 1, 0);
    for (i = 0; i < 40; ++i) {
        test_send(&world, 0, ep, i, 32768);
        test_send(&world, 1, back, i, 32768);
    }
    test_run(&world, r2_sim_now_ns(world.sim) + 100 * R2_NS_PER_US);
    r2_sim_kill(world.sim, 1);
    test_run(&world, forever);
    assert_int_equal(1, world.nodes[0].failures);
    assert_int_equal(0, world.nodes[1].failures);
    assert_int_equal(R2_ERR_LANE_DOWN, test_send(&world, 0, ep, 99, 100));
    world.nodes[0].tp.ops->ep_close(ep);
    assert_int_equal(R2_ERR_LANE_DOWN, test_send(&world, 1, back, 99, 100));
    world.nodes[1].tp.ops->ep_close(back);
    assert_null(r2_sim_failure(world.sim));
    test_world_fini(&world);
}

static void broken_endpoint_is_reported_once(void **state)
{
    uint64_t seed;

    (void) state;
    for (seed = 0; seed < 8; ++seed) {
        test_world_t world;
        r2_tp_ep_t *ep;
        uint32_t i;

        test_world_init(&world, test_two_hosts(seed), "rail0");
        ep = test_connect(&world, 0, 1);
        for (i = 0; i < 20; ++i) {
            test_send(&world, 0, ep, i, 32768);
        }
        r2_sim_break_endpoints(world.sim, 0, 0);
        test_run(&world, forever);
        assert_int_equal(1, world.nodes[0].failures);
        world.nodes[0].tp.ops->ep_close(ep);
        assert_int_equal(13, world.sent_canceled);
        assert_null(r2_sim_failure(world.sim));
        test_world_fini(&world);
    }
}

static void dead_rail_gives_no_device_but_an_endpoint(void **state)
{
    r2_tp_device_config_t config = {.name = "rail1", .segment_bytes = SEGMENT};
    r2_tp_device_config_t unknown = {.name = "rail7", .segment_bytes = SEGMENT};
    r2_tp_callbacks_t callbacks = {.received = test_received, .failed = test_failed};
    test_world_t world;
    r2_tp_device_t *device;
    r2_tp_worker_t *worker;

    (void) state;
    test_world_init(&world, test_two_hosts(17), "rail0");
    r2_sim_set_carrier(world.sim, 0, 1, false);
    assert_int_equal(R2_ERR_NO_DEVICE, world.nodes[0].tp.ops->device_open(
                                           world.nodes[0].tp.instance, &config, &device));
    assert_int_equal(R2_ERR_UNSUPPORTED, world.nodes[0].tp.ops->device_open(
                                             world.nodes[0].tp.instance, &unknown, &device));
    r2_sim_set_carrier(world.sim, 1, 0, false);
    test_connect(&world, 0, 1); /* the peer's rail is dead: succeeds silently */
    assert_int_equal(R2_ERR_NO_DEVICE, world.nodes[1].tp.ops->worker_create(
                                           world.nodes[1].device, &callbacks, NULL, &worker));
    test_run(&world, forever);
    assert_int_equal(2, world.carrier_news);
    test_world_fini(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_path_delivers_late_once_and_in_order),
        cmocka_unit_test(one_way_drop_lets_a_socketful_through),
        cmocka_unit_test(loss_delays_but_loses_nothing),
        cmocka_unit_test(closing_leaves_ghosts_or_not),
        cmocka_unit_test(closed_receiver_still_gets_late_data),
        cmocka_unit_test(destroyed_worker_resets_over_a_working_path_only),
        cmocka_unit_test(killed_process_fails_its_peers_endpoints),
        cmocka_unit_test(broken_endpoint_is_reported_once),
        cmocka_unit_test(dead_rail_gives_no_device_but_an_endpoint),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
