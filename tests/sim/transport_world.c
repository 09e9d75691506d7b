/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Nodes on the simulated transport: packets, callbacks, running.
 */
#include "r2_config.h"

#include "transport_world.h"

void test_received(void *arg, const void *header, size_t header_bytes, const void *data,
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
    ++node->received;
    node->bytes += data_bytes;
    node->trace = node->trace * 31 + h.number + r2_sim_now_ns(node->world->sim);
    if (NULL != node->close_in_callback) {
        node->tp.ops->ep_close(node->close_in_callback);
        node->close_in_callback = NULL;
    }
}

void test_failed(void *arg, void *ep_arg, r2_status_t status)
{
    test_node_t *node = arg;

    (void) ep_arg;
    assert_true(status < 0);
    ++node->failures;
}

static void test_sent(r2_tp_send_t *op, r2_status_t status)
{
    test_packet_t *packet = r2_container_of(op, test_packet_t, op);

    if (R2_OK == status) {
        ++packet->world->sent_ok;
    } else {
        ++packet->world->sent_canceled;
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
    ++world->carrier_news;
}

static bool test_is_application(const void *header, size_t header_bytes)
{
    test_header_t h;

    (void) header_bytes;
    memcpy(&h, header, sizeof(h));
    return 0 != h.application;
}

r2_tp_worker_t *test_new_worker(test_node_t *node)
{
    static const r2_tp_callbacks_t callbacks = {.received = test_received, .failed = test_failed};
    r2_tp_worker_t *worker;

    assert_int_equal(R2_OK, node->tp.ops->worker_create(node->device, &callbacks, node, &worker));
    return worker;
}

void test_world_init(test_world_t *world, r2_sim_config_t config, const char *rail)
{
    test_world_init_over(world, config, rail, NULL);
}

void test_world_init_over(test_world_t *world, r2_sim_config_t config, const char *rail,
                          const char *tls)
{
    r2_sim_hooks_t hooks = {test_wake, test_carrier, world};
    r2_tp_device_config_t device_config = {.name = rail, .tls = tls, .segment_bytes = SEGMENT};
    uint32_t i;

    memset(world, 0, sizeof(*world));
    config.is_application = test_is_application;
    world->sim = r2_sim_create(&config, &hooks);
    assert_non_null(world->sim);
    world->node_count = config.node_count;
    for (i = 0; i < config.node_count; ++i) {
        test_node_t *node = &world->nodes[i];

        node->world = world;
        node->in_order = node->intact = true;
        node->tp = r2_sim_transport(world->sim, i);
        assert_int_equal(
            R2_OK, node->tp.ops->device_open(node->tp.instance, &device_config, &node->device));
        node->worker = test_new_worker(node);
    }
}

r2_sim_config_t test_two_hosts(uint64_t seed)
{
    return (r2_sim_config_t){.seed = seed, .host_count = 2, .node_count = 2, .rail_count = 2};
}

void test_world_fini(test_world_t *world)
{
    uint32_t i;

    for (i = 0; i < world->node_count; ++i) {
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

r2_tp_ep_t *test_connect(test_world_t *world, uint32_t from, uint32_t to)
{
    return test_connect_workers(world, world->nodes[from].worker, world->nodes[to].worker);
}

test_packet_t *test_packet(test_world_t *world, uint32_t source, uint32_t number, size_t data_bytes)
{
    test_packet_t *packet = malloc(sizeof(*packet));
    size_t i;

    assert_non_null(packet);
    packet->world = world;
    packet->header = (test_header_t){source, number, 0};
    for (i = 0; i < data_bytes; ++i) {
        packet->data[i] = (uint8_t) (number + i);
    }
    packet->op = (r2_tp_send_t){.header = &packet->header,
                                .header_bytes = sizeof(packet->header),
                                .data = packet->data,
                                .data_bytes = data_bytes,
                                .sent = test_sent};
    return packet;
}

r2_status_t test_send(test_world_t *world, uint32_t source, r2_tp_ep_t *ep, uint32_t number,
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

void test_grant(test_world_t *world, uint32_t owner, uint8_t *memory, size_t bytes,
                test_window_t *window_p)
{
    test_node_t *node = &world->nodes[owner];

    window_p->memory = memory;
    assert_int_equal(R2_OK, node->tp.ops->grant(node->worker, memory, bytes, NULL, window_p->key,
                                                &window_p->key_bytes, &window_p->grant));
}

r2_status_t test_put(test_world_t *world, uint32_t source, r2_tp_ep_t *ep, uint32_t number,
                     size_t data_bytes, const test_window_t *window)
{
    test_packet_t *packet = test_packet(world, source, number, data_bytes);
    const r2_tp_target_t target = {(uintptr_t) window->memory, window->key, window->key_bytes};
    r2_status_t status = world->nodes[source].tp.ops->put(ep, &packet->op, &target);

    if (R2_IN_PROGRESS != status) {
        memset(packet, 0xee, sizeof(*packet));
        free(packet);
    }
    return status;
}

static void test_drive(test_world_t *world)
{
    uint32_t i;

    for (i = 0; i < world->node_count; ++i) {
        test_node_t *node = &world->nodes[i];

        while (node->awake && !node->frozen) {
            node->awake = 0 != node->tp.ops->worker_progress(node->worker);
        }
    }
}

void test_run(test_world_t *world, uint64_t until_ns)
{
    test_drive(world);
    while (r2_sim_next_ns(world->sim) <= until_ns && r2_sim_step(world->sim)) {
        test_drive(world);
    }
    if (R2_NEVER_NS != until_ns) {
        r2_sim_run_until(world->sim, until_ns);
    }
}

uint64_t test_in_ms(const test_world_t *world, uint64_t ms)
{
    return r2_sim_now_ns(world->sim) + ms * R2_NS_PER_MS;
}
