/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The laws of the simulator's transport: bandwidth, order, late delivery, ghosts, call rules.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "doubles/sim.h"

#define SEGMENT   (64u << 10)
#define NODES_MAX 4

/** One process with one worker. */
typedef struct test_node {
    struct test_world *world;
    r2_tp_t tp;
    r2_tp_device_t *device;
    r2_tp_worker_t *worker;
    uint64_t received, bytes;
    uint64_t trace; /* hash of what arrived and when */
    uint32_t next[NODES_MAX];
    bool in_order, intact;
    uint32_t failures;
    r2_tp_ep_t *close_in_callback;
    bool frozen;
    bool awake;
} test_node_t;

typedef struct test_world {
    r2_sim_t *sim;
    uint32_t node_count;
    test_node_t nodes[NODES_MAX];
    uint32_t sent_ok, sent_canceled;
    uint32_t carrier_news;
} test_world_t;

/** Header of the tests' packets. */
typedef struct test_header {
    uint32_t source;
    uint32_t number;
    uint32_t application;
} test_header_t;

typedef struct test_packet {
    r2_tp_send_t op;
    test_world_t *world;
    test_header_t header;
    uint8_t data[SEGMENT];
} test_packet_t;

static void test_received(void *arg, const void *header, size_t header_bytes, const void *data,
                          size_t data_bytes)
{
    test_node_t *node = arg;
    const uint8_t *bytes = data;
    test_header_t h;
    size_t i;

    assert_int_equal(sizeof(h), header_bytes);
    memcpy(&h, header, sizeof(h));
    if (h.number != node->next[h.source]) {
        node->in_order = false;
    }
    node->next[h.source] = h.number + 1;
    for (i = 0; i < data_bytes; i += 977) {
        if (bytes[i] != (uint8_t) (h.number + i)) {
            node->intact = false;
        }
    }
    node->received++;
    node->bytes += data_bytes;
    node->trace = node->trace * 31 + h.number + r2_sim_now_ns(node->world->sim);
    if (NULL != node->close_in_callback) {
        node->tp.ops->ep_close(node->close_in_callback);
        node->close_in_callback = NULL;
    }
}

static void test_failed(void *arg, void *ep_arg, r2_status_t status)
{
    test_node_t *node = arg;

    (void) ep_arg;
    assert_true(status < 0);
    node->failures++;
}

static void test_sent(r2_tp_send_t *op, r2_status_t status)
{
    test_packet_t *packet = r2_container_of(op, test_packet_t, op);

    if (R2_OK == status) {
        packet->world->sent_ok++;
    } else {
        packet->world->sent_canceled++;
    }
    free(packet);
}

static void test_wake(void *arg, uint32_t node)
{
    test_world_t *world = arg;

    world->nodes[node].awake = true;
}

static void test_carrier(void *arg, uint32_t host, uint32_t rail, bool up)
{
    test_world_t *world = arg;

    (void) host;
    (void) rail;
    (void) up;
    world->carrier_news++;
}

static bool test_is_application(const void *header, size_t header_bytes)
{
    test_header_t h;

    (void) header_bytes;
    memcpy(&h, header, sizeof(h));
    return 0 != h.application;
}

static r2_tp_worker_t *test_new_worker(test_node_t *node)
{
    static const r2_tp_callbacks_t callbacks = {test_received, test_failed};
    r2_tp_worker_t *worker;

    assert_int_equal(R2_OK, node->tp.ops->worker_create(node->device, &callbacks, node, &worker));
    return worker;
}

/* Nodes with one worker each on `rail` (NULL: within the host). */
static void test_world_init(test_world_t *world, r2_sim_config_t config, const char *rail)
{
    r2_sim_hooks_t hooks = {test_wake, test_carrier, world};
    r2_tp_device_config_t device_config = {rail, SEGMENT};
    uint32_t i;

    memset(world, 0, sizeof(*world));
    config.is_application = test_is_application;
    world->sim = r2_sim_create(&config, &hooks);
    assert_non_null(world->sim);
    world->node_count = config.node_count;
    for (i = 0; i < config.node_count; i++) {
        test_node_t *node = &world->nodes[i];

        node->world = world;
        node->in_order = node->intact = true;
        node->tp = r2_sim_transport(world->sim, i);
        assert_int_equal(
            R2_OK, node->tp.ops->device_open(node->tp.instance, &device_config, &node->device));
        node->worker = test_new_worker(node);
    }
}

static r2_sim_config_t test_two_hosts(uint64_t seed)
{
    return (r2_sim_config_t){.seed = seed, .host_count = 2, .node_count = 2, .rail_count = 2};
}

static void test_world_fini(test_world_t *world)
{
    uint32_t i;

    for (i = 0; i < world->node_count; i++) {
        test_node_t *node = &world->nodes[i];

        node->tp.ops->worker_destroy(node->worker);
        node->tp.ops->device_close(node->device);
    }
    r2_sim_destroy(world->sim);
}

static r2_tp_ep_t *test_connect_workers(test_world_t *world, r2_tp_worker_t *from,
                                        r2_tp_worker_t *to)
{
    uint8_t address[R2_TP_ADDRESS_MAX];
    const r2_tp_ops_t *ops = world->nodes[0].tp.ops;
    size_t bytes;
    r2_tp_ep_t *ep;

    assert_int_equal(R2_OK, ops->ep_open(to, NULL, &ep));
    assert_int_equal(R2_OK, ops->ep_address(ep, address, &bytes));
    ops->ep_close(ep);
    assert_int_equal(R2_OK, ops->ep_open(from, NULL, &ep));
    assert_int_equal(R2_OK, ops->ep_connect(ep, address, bytes));
    return ep;
}

static r2_tp_ep_t *test_connect(test_world_t *world, uint32_t from, uint32_t to)
{
    return test_connect_workers(world, world->nodes[from].worker, world->nodes[to].worker);
}

static test_packet_t *test_packet(test_world_t *world, uint32_t source, uint32_t number,
                                  size_t data_bytes)
{
    test_packet_t *packet = malloc(sizeof(*packet));
    size_t i;

    assert_non_null(packet);
    packet->world = world;
    packet->header = (test_header_t){source, number, 0};
    for (i = 0; i < data_bytes; i++) {
        packet->data[i] = (uint8_t) (number + i);
    }
    packet->op = (r2_tp_send_t){.header = &packet->header,
                                .header_bytes = sizeof(packet->header),
                                .data = packet->data,
                                .data_bytes = data_bytes,
                                .sent = test_sent};
    return packet;
}

static r2_status_t test_send(test_world_t *world, uint32_t source, r2_tp_ep_t *ep, uint32_t number,
                             size_t data_bytes)
{
    test_packet_t *packet = test_packet(world, source, number, data_bytes);
    r2_status_t status = world->nodes[source].tp.ops->send(ep, &packet->op);

    if (R2_IN_PROGRESS != status) {
        memset(packet, 0xee, sizeof(*packet));
        free(packet);
    }
    return status;
}

static void test_drive(test_world_t *world)
{
    uint32_t i;

    for (i = 0; i < world->node_count; i++) {
        test_node_t *node = &world->nodes[i];

        while (node->awake && !node->frozen) {
            node->awake = 0 != node->tp.ops->worker_progress(node->worker);
        }
    }
}

/* Runs until nothing happens any more, or the time has come. */
static void test_run(test_world_t *world, uint64_t until_ns)
{
    test_drive(world);
    while (r2_sim_next_ns(world->sim) <= until_ns && r2_sim_step(world->sim)) {
        test_drive(world);
    }
    if (R2_NEVER_NS != until_ns) {
        r2_sim_run_until(world->sim, until_ns);
    }
}

static uint64_t test_in_ms(const test_world_t *world, uint64_t ms)
{
    return r2_sim_now_ns(world->sim) + ms * R2_NS_PER_MS;
}

static const uint64_t forever = R2_NEVER_NS;

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
    for (i = 0; i < count; i++) {
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
    for (i = 0; i < 32; i++) {
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
    for (k = 0; k < 3; k++) {
        eps[k] = test_connect(&world, k + 1, 0);
    }
    start_ns = r2_sim_now_ns(world.sim);
    for (i = 0; i < 100; i++) {
        for (k = 0; k < 3; k++) {
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
    for (i = 0; i < 3; i++) {
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
    for (i = 0; i < 40; i++) {
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
    for (b = 0; b < r2_array_count(breaks); b++) {
        test_world_t world;
        r2_tp_ep_t *ep;
        uint32_t i;

        test_world_init(&world, test_two_hosts(7 + b), "rail0");
        ep = test_connect(&world, 0, 1);
        for (i = 0; i < 20; i++) {
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
    for (i = 0; i < 40; i++) {
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
    for (i = 0; i < 200; i++) {
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
    for (i = 0; i < 12; i++) {
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
    for (i = 0; i < 40; i++) {
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
    for (seed = 0; seed < 8; seed++) {
        test_world_t world;
        r2_tp_ep_t *ep;
        uint32_t i;

        test_world_init(&world, test_two_hosts(seed), "rail0");
        ep = test_connect(&world, 0, 1);
        for (i = 0; i < 20; i++) {
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
    r2_tp_device_config_t config = {"rail1", SEGMENT};
    r2_tp_device_config_t unknown = {"rail7", SEGMENT};
    r2_tp_callbacks_t callbacks = {test_received, test_failed};
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
    for (i = 0; i < 100; i++) {
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
        cmocka_unit_test(broken_path_delivers_late_once_and_in_order),
        cmocka_unit_test(one_way_drop_lets_a_socketful_through),
        cmocka_unit_test(loss_delays_but_loses_nothing),
        cmocka_unit_test(closing_leaves_ghosts_or_not),
        cmocka_unit_test(closed_receiver_still_gets_late_data),
        cmocka_unit_test(destroyed_worker_resets_over_a_working_path_only),
        cmocka_unit_test(killed_process_fails_its_peers_endpoints),
        cmocka_unit_test(broken_endpoint_is_reported_once),
        cmocka_unit_test(dead_rail_gives_no_device_but_an_endpoint),
        cmocka_unit_test(ranks_of_a_host_have_a_rail_of_their_own),
        cmocka_unit_test(broken_call_rules_are_failures),
        cmocka_unit_test(equal_seeds_give_equal_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
