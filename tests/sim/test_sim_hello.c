/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Connect requests in the simulator: accept queues of processes that do not run, listeners that
 * refuse.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "doubles/hello_sim.h"

#define T_NODES      3 /* 0 and 2 share a host */
#define T_TIMEOUT_NS (2 * R2_NS_PER_S)

static const uint8_t t_key[R2_JOB_KEY_BYTES] = "key of the job, thirty-two byte";

/** One process and what it was told. */
typedef struct t_node {
    struct t_world *world; /* borrowed */
    r2_hello_t hello;
    uint8_t address[R2_HELLO_ADDRESS_MAX], local[R2_HELLO_ADDRESS_MAX];
    size_t address_bytes, local_bytes;
    bool stopped;
    uint32_t requests, results;
    r2_status_t last;
} t_node_t;

typedef struct t_world {
    r2_sim_t *sim;       /* owned */
    r2_hello_sim_t *hub; /* owned */
    t_node_t nodes[T_NODES];
} t_world_t;

static void t_wake(void *arg, uint32_t node)
{
    (void) arg;
    (void) node;
}

static void t_carrier(void *arg, uint32_t host, uint32_t rail, bool up)
{
    (void) arg;
    (void) host;
    (void) rail;
    (void) up;
}

static void t_request(void *arg, uint32_t rail_idx, uint64_t token, const void *request,
                      size_t bytes)
{
    t_node_t *node = arg;

    (void) rail_idx;
    ++node->requests;
    node->hello.ops->reply(node->hello.instance, token, request, bytes);
}

static void t_result(void *arg, uint64_t connect_id, r2_status_t status, const void *reply,
                     size_t bytes)
{
    t_node_t *node = arg;

    (void) connect_id;
    (void) reply;
    assert_int_equal(bytes, R2_OK == status ? 2 : 0);
    ++node->results;
    node->last = status;
}

static t_world_t *t_world_new(void)
{
    t_world_t *world = calloc(1, sizeof(*world));
    const r2_sim_hooks_t hooks = {t_wake, t_carrier, world};
    const r2_sim_config_t config = {
        .seed = 1, .host_count = 2, .node_count = T_NODES, .rail_count = 2};
    r2_nic_t nics[R2_RAILS_MAX];
    size_t count;

    assert_non_null(world);
    world->sim = r2_sim_create(&config, &hooks);
    world->hub = r2_hello_sim_create(world->sim, T_NODES);
    assert_true(NULL != world->sim && NULL != world->hub);
    for (uint32_t i = 0; i < T_NODES; ++i) {
        t_node_t *node = &world->nodes[i];
        const r2_hello_upcalls_t upcalls = {
            .request = t_request, .result = t_result, .arg = node};
        const r2_hello_ops_t *ops;

        node->world = world;
        node->hello = r2_hello_sim_node(world->hub, i);
        ops = node->hello.ops;
        ops->bind(node->hello.instance, &upcalls);
        ops->key(node->hello.instance, t_key);
        r2_sim_nics(world->sim, i, nics, &count);
        assert_int_equal(ops->listen(node->hello.instance, 0, &nics[0], node->address,
                                     &node->address_bytes),
                         R2_OK);
        assert_int_equal(ops->listen(node->hello.instance, R2_SIM_LOCAL, NULL, node->local,
                                     &node->local_bytes),
                         R2_OK);
    }
    return world;
}

static void t_world_free(t_world_t *world)
{
    assert_null(r2_sim_failure(world->sim));
    r2_hello_sim_destroy(world->hub);
    r2_sim_destroy(world->sim);
    free(world);
}

/* Lets time pass; all processes that are not stopped poll every 10 ms. */
static void t_run(t_world_t *world, uint64_t span_ns)
{
    const uint64_t end_ns = r2_sim_now_ns(world->sim) + span_ns;

    while (r2_sim_now_ns(world->sim) < end_ns) {
        r2_sim_run_until(world->sim, r2_sim_now_ns(world->sim) + 10 * R2_NS_PER_MS);
        for (uint32_t i = 0; i < T_NODES; ++i) {
            if (!world->nodes[i].stopped) {
                world->nodes[i].hello.ops->poll(world->nodes[i].hello.instance);
            }
        }
    }
}

static r2_status_t t_call(t_world_t *world, uint32_t from, uint32_t to, uint32_t rail)
{
    t_node_t *caller = &world->nodes[from], *callee = &world->nodes[to];
    const bool local = R2_SIM_LOCAL == rail;

    return caller->hello.ops->call(
        caller->hello.instance, rail, local ? callee->local : callee->address,
        local ? callee->local_bytes : callee->address_bytes, "hi", 2, T_TIMEOUT_NS, 1);
}

/* One call and its outcome. */
static r2_status_t t_outcome(t_world_t *world, uint32_t from, uint32_t to)
{
    t_node_t *caller = &world->nodes[from];
    const uint32_t results = caller->results;

    assert_int_equal(t_call(world, from, to, 0), R2_OK);
    t_run(world, T_TIMEOUT_NS + R2_NS_PER_S);
    assert_int_equal(caller->results, results + 1);
    return caller->last;
}

/* Calls that were given up fill the queue of a process that does not run: then there is silence. */
static void full_queue_is_silent(void **state)
{
    t_world_t *world = t_world_new();
    t_node_t *stopped = &world->nodes[1];

    (void) state;
    r2_hello_sim_set_backlog(world->hub, 3);
    stopped->stopped = true;
    for (uint32_t i = 0; i < 3; ++i) {
        assert_int_equal(t_outcome(world, 0, 1), R2_ERR_UNRESPONSIVE);
    }
    assert_int_equal(t_outcome(world, 0, 1), R2_ERR_TIMEOUT);
    assert_int_equal(t_outcome(world, 2, 1), R2_ERR_TIMEOUT);
    stopped->stopped = false;
    assert_int_equal(t_outcome(world, 0, 1), R2_OK);
    assert_int_equal(stopped->requests, 1); /* it never saw those that were given up */
    t_world_free(world);
}

/* A call that found the queue full gets in when the process goes on before its deadline. */
static void full_queue_lets_in_later(void **state)
{
    t_world_t *world = t_world_new();
    t_node_t *stopped = &world->nodes[1];

    (void) state;
    r2_hello_sim_set_backlog(world->hub, 1);
    stopped->stopped = true;
    assert_int_equal(t_call(world, 2, 1, 0), R2_OK);
    t_run(world, 20 * R2_NS_PER_MS);
    assert_int_equal(t_call(world, 0, 1, 0), R2_OK);
    t_run(world, 500 * R2_NS_PER_MS);
    assert_int_equal(world->nodes[0].results + world->nodes[2].results, 0);
    stopped->stopped = false;
    t_run(world, T_TIMEOUT_NS);
    assert_int_equal(world->nodes[0].last, R2_OK);
    assert_int_equal(world->nodes[2].last, R2_OK);
    assert_int_equal(stopped->requests, 2);
    t_world_free(world);
}

/* Queues of different listeners are apart; the one within a host says at once that it is full. */
static void queue_within_a_host(void **state)
{
    t_world_t *world = t_world_new();

    (void) state;
    r2_hello_sim_set_backlog(world->hub, 1);
    world->nodes[2].stopped = true;
    assert_int_equal(t_call(world, 0, 2, R2_SIM_LOCAL), R2_OK);
    t_run(world, 20 * R2_NS_PER_MS);
    assert_int_equal(t_call(world, 0, 2, R2_SIM_LOCAL), R2_ERR_AGAIN);
    assert_int_equal(t_call(world, 1, 2, 0), R2_OK);
    t_run(world, T_TIMEOUT_NS);
    assert_int_equal(world->nodes[1].last, R2_ERR_UNRESPONSIVE);
    t_world_free(world);
}

static void firewall_refuses(void **state)
{
    t_world_t *world = t_world_new();
    const uint64_t start_ns = r2_sim_now_ns(world->sim);

    (void) state;
    r2_hello_sim_set_listener(world->hub, 1, 0, R2_HELLO_SIM_REFUSES);
    assert_int_equal(t_call(world, 0, 1, 0), R2_OK);
    while (0 == world->nodes[0].results) {
        t_run(world, 10 * R2_NS_PER_MS);
    }
    assert_int_equal(world->nodes[0].last, R2_ERR_REFUSED);
    assert_true(r2_sim_now_ns(world->sim) - start_ns < 100 * R2_NS_PER_MS);
    assert_int_equal(t_outcome(world, 1, 0), R2_OK); /* the other way is free */
    r2_hello_sim_set_listener(world->hub, 1, 0, R2_HELLO_SIM_ACCEPTS);
    assert_int_equal(t_outcome(world, 0, 1), R2_OK);
    t_world_free(world);
}

static void listener_that_cannot_be_opened(void **state)
{
    t_world_t *world = t_world_new();
    t_node_t *node = &world->nodes[1];
    uint8_t address[R2_HELLO_ADDRESS_MAX];
    r2_nic_t nics[R2_RAILS_MAX];
    size_t count, bytes;

    (void) state;
    r2_sim_nics(world->sim, 1, nics, &count);
    r2_hello_sim_set_listener(world->hub, 1, 1, R2_HELLO_SIM_BROKEN);
    assert_int_equal(node->hello.ops->listen(node->hello.instance, 1, &nics[1], address, &bytes),
                     R2_ERR_SYSTEM);
    r2_hello_sim_set_listener(world->hub, 1, 1, R2_HELLO_SIM_ACCEPTS);
    assert_int_equal(node->hello.ops->listen(node->hello.instance, 1, &nics[1], address, &bytes),
                     R2_OK);
    t_world_free(world);
}

/* Each call takes a descriptor until its end; without one nothing is accepted, and it goes on by
 * itself. */
static void descriptors_run_out(void **state)
{
    t_world_t *world = t_world_new();

    (void) state;
    r2_sim_set_descriptors(world->sim, 0, 1);
    assert_int_equal(t_call(world, 0, 1, 0), R2_OK);
    assert_int_equal(t_call(world, 0, 1, 0), R2_ERR_AGAIN);
    assert_int_equal(t_call(world, 1, 0, 0), R2_OK);
    t_run(world, T_TIMEOUT_NS);
    assert_int_equal(world->nodes[0].last, R2_OK);
    assert_int_equal(world->nodes[1].last, R2_OK);
    assert_true(r2_sim_take_descriptors(world->sim, 0, 1)); /* by the application */
    assert_int_equal(t_call(world, 0, 1, 0), R2_ERR_AGAIN);
    assert_int_equal(t_outcome(world, 1, 0), R2_ERR_UNRESPONSIVE);
    assert_int_equal(world->nodes[0].requests, 1);
    r2_sim_put_descriptors(world->sim, 0, 1);
    assert_int_equal(t_outcome(world, 1, 0), R2_OK);
    t_world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_queue_is_silent),
        cmocka_unit_test(full_queue_lets_in_later),
        cmocka_unit_test(queue_within_a_host),
        cmocka_unit_test(firewall_refuses),
        cmocka_unit_test(descriptors_run_out),
        cmocka_unit_test(listener_that_cannot_be_opened),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
