/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What travels beside the lanes in the simulator: out-of-band messages, probes, beacons.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "doubles/post_sim.h"
#include "doubles/probe_sim.h"
#include "doubles/sim.h"
#include "rail/hello.h"
#include "rail/probe_limit.h"

#define T_NODES 4 /* on three hosts: 0 and 3 share one */
#define T_HEARD 256

static const uint8_t t_key[R2_JOB_KEY_BYTES] = "key of the job, thirty-two byte";

/** One process and what it was told. */
typedef struct t_node {
    r2_post_t post;
    r2_probe_t probe;
    uint8_t address[R2_PROBE_ADDRESS_MAX];
    size_t address_bytes;
    bool frozen;
    uint32_t received; /* messages */
    uint32_t last_rank;
    uint32_t numbers[T_HEARD]; /* what the messages said, in order of arrival */
    uint32_t results;
    r2_probe_answer_t answer;
    uint64_t rtt_ns, told_ns;
    uint32_t heard;
    uint64_t beacon_id;
    struct t_world *world;
} t_node_t;

typedef struct t_world {
    r2_sim_t *sim;
    r2_post_sim_t *post;
    r2_probe_sim_t *probe;
    bool awake[T_NODES];
    t_node_t nodes[T_NODES];
} t_world_t;

static void t_wake(void *arg, uint32_t node)
{
    t_world_t *world = arg;

    world->awake[node] = true;
}

static void t_carrier(void *arg, uint32_t host, uint32_t rail, bool up)
{
    (void) arg;
    (void) host;
    (void) rail;
    (void) up;
}

static void t_received(void *arg, uint32_t rank, const void *data, size_t bytes)
{
    t_node_t *node = arg;

    assert_true(node->received < T_HEARD);
    assert_int_equal(bytes, sizeof(uint32_t));
    memcpy(&node->numbers[node->received++], data, bytes);
    node->last_rank = rank;
}

static void t_result(void *arg, uint64_t probe_id, r2_probe_answer_t answer, uint64_t rtt_ns)
{
    t_node_t *node = arg;

    assert_int_equal(probe_id, 77);
    ++node->results;
    node->answer = answer;
    node->rtt_ns = rtt_ns;
    node->told_ns = r2_sim_now_ns(node->world->sim);
}

static void t_heard(void *arg, uint32_t rank, uint32_t rail_idx, uint64_t beacon_id)
{
    t_node_t *node = arg;

    assert_int_equal(rail_idx, 0);
    ++node->heard;
    node->last_rank = rank;
    node->beacon_id = beacon_id;
}

static t_world_t *t_world_new(uint64_t seed)
{
    t_world_t *world = calloc(1, sizeof(*world));
    const r2_sim_hooks_t hooks = {t_wake, t_carrier, world};
    const r2_sim_config_t config = {
        .seed = seed, .host_count = 3, .node_count = T_NODES, .rail_count = 2};
    r2_nic_t nics[R2_RAILS_MAX];
    size_t count;

    world->sim = r2_sim_create(&config, &hooks);
    world->post = r2_post_sim_create(world->sim, T_NODES);
    world->probe = r2_probe_sim_create(world->sim, T_NODES);
    assert_true(NULL != world->sim && NULL != world->post && NULL != world->probe);
    for (uint32_t i = 0; i < T_NODES; ++i) {
        t_node_t *node = &world->nodes[i];
        const r2_post_upcalls_t post_upcalls = {.received = t_received, .arg = node};
        const r2_probe_upcalls_t probe_upcalls = {t_result, t_heard, node};

        node->world = world;
        node->post = r2_post_sim_node(world->post, i);
        node->probe = r2_probe_sim_node(world->probe, i);
        node->post.ops->bind(node->post.instance, &post_upcalls);
        node->probe.ops->bind(node->probe.instance, &probe_upcalls);
        node->probe.ops->key(node->probe.instance, t_key);
        r2_sim_nics(world->sim, i, nics, &count);
        assert_int_equal(node->probe.ops->listen(node->probe.instance, 0, &nics[0], node->address,
                                                 &node->address_bytes),
                         R2_OK);
    }
    return world;
}

static void t_world_free(t_world_t *world)
{
    assert_null(r2_sim_failure(world->sim));
    while (r2_sim_step(world->sim)) {
        /* what is left must not be left behind */
    }
    r2_probe_sim_destroy(world->probe);
    r2_post_sim_destroy(world->post);
    r2_sim_destroy(world->sim);
    free(world);
}

static void t_poll_all(t_world_t *world)
{
    const uint64_t now_ns = r2_sim_now_ns(world->sim);

    for (uint32_t i = 0; i < T_NODES; ++i) {
        t_node_t *node = &world->nodes[i];

        if (!node->frozen &&
            (world->awake[i] || node->probe.ops->deadline_ns(node->probe.instance) <= now_ns)) {
            world->awake[i] = false;
            node->post.ops->poll(node->post.instance);
            node->probe.ops->poll(node->probe.instance);
        }
    }
}

/** Lets time pass as a harness does: a process is polled only when it is woken, or at its
 * deadline. */
static void t_run(t_world_t *world, uint64_t span_ns)
{
    const uint64_t end_ns = r2_sim_now_ns(world->sim) + span_ns;

    t_poll_all(world);
    while (r2_sim_now_ns(world->sim) < end_ns) {
        uint64_t next_ns = r2_min(r2_sim_next_ns(world->sim), end_ns);

        for (uint32_t i = 0; i < T_NODES; ++i) {
            const t_node_t *node = &world->nodes[i];

            if (!node->frozen) {
                next_ns = r2_min(next_ns, node->probe.ops->deadline_ns(node->probe.instance));
            }
        }
        r2_sim_run_until(world->sim, next_ns);
        t_poll_all(world);
    }
}

static void t_send(t_world_t *world, uint32_t from, uint32_t to, uint32_t number)
{
    const r2_post_t *post = &world->nodes[from].post;

    assert_int_equal(post->ops->send(post->instance, to, &number, sizeof(number)), R2_OK);
}

static r2_status_t t_try_probe(t_world_t *world, uint32_t from, uint32_t to)
{
    const r2_probe_t *probe = &world->nodes[from].probe;

    return probe->ops->probe(probe->instance, 0, NULL, 0, world->nodes[to].address,
                             world->nodes[to].address_bytes, R2_NS_PER_S, 77);
}

/** One probe and its answer. */
static r2_probe_answer_t t_probe(t_world_t *world, uint32_t from, uint32_t to)
{
    const uint32_t results = world->nodes[from].results;

    assert_int_equal(t_try_probe(world, from, to), R2_OK);
    t_run(world, 2 * R2_NS_PER_S);
    assert_int_equal(world->nodes[from].results, results + 1);
    return world->nodes[from].answer;
}

static void t_beacon(t_world_t *world, uint32_t from, uint32_t to, uint64_t id)
{
    const r2_probe_t *probe = &world->nodes[from].probe;

    probe->ops->beacon(probe->instance, 0, NULL, 0, world->nodes[to].address,
                       world->nodes[to].address_bytes, from, id);
    t_run(world, R2_NS_PER_S);
}

static void test_post_arrives(void **state)
{
    t_world_t *world = t_world_new(1);
    const r2_post_t *post = &world->nodes[0].post;
    uint8_t long_one[R2_POST_BYTES_MAX + 1] = {0};

    (void) state;
    r2_post_sim_set_delay(world->post, R2_NS_PER_MS, R2_NS_PER_MS);
    t_send(world, 0, 1, 5);
    t_run(world, R2_NS_PER_MS - 1);
    assert_int_equal(world->nodes[1].received, 0);
    t_run(world, 1);
    assert_int_equal(world->nodes[1].received, 1);
    assert_int_equal(world->nodes[1].numbers[0], 5);
    assert_int_equal(world->nodes[1].last_rank, 0);
    assert_int_equal(post->ops->send(post->instance, 0, "me", 2), R2_ERR_PARAM);
    assert_int_equal(post->ops->send(post->instance, T_NODES, "who", 3), R2_ERR_PARAM);
    assert_int_equal(post->ops->send(post->instance, 1, long_one, sizeof(long_one)), R2_ERR_PARAM);
    t_world_free(world);
}

/** Loss, duplicates and reordering happen, as often as they were asked for. */
static void test_post_troubles(void **state)
{
    t_world_t *world = t_world_new(2);
    bool overtaken = false;

    (void) state;
    r2_post_sim_set_delay(world->post, 0, R2_NS_PER_MS);
    for (uint32_t i = 0; i < 60; ++i) {
        t_send(world, 0, 1, i);
    }
    t_run(world, R2_NS_PER_S);
    assert_int_equal(world->nodes[1].received, 60);
    for (uint32_t i = 1; i < 60; ++i) {
        overtaken |= world->nodes[1].numbers[i] < world->nodes[1].numbers[i - 1];
    }
    assert_true(overtaken);
    r2_post_sim_set_duplicates(world->post, 1000000);
    t_send(world, 1, 2, 1);
    t_run(world, R2_NS_PER_S);
    assert_int_equal(world->nodes[2].received, 2);
    r2_post_sim_set_duplicates(world->post, 0);
    r2_post_sim_set_loss(world->post, 500000);
    for (uint32_t i = 0; i < 60; ++i) {
        t_send(world, 2, 0, i);
    }
    t_run(world, R2_NS_PER_S);
    assert_in_range(world->nodes[0].received, 15, 45);
    t_world_free(world);
}

/** A node without its management NIC hears its own host only. */
static void test_post_cut(void **state)
{
    t_world_t *world = t_world_new(3);

    (void) state;
    t_send(world, 0, 1, 1); /* on its way when the NIC goes down */
    r2_post_sim_set_cut(world->post, 0, true);
    t_send(world, 0, 1, 2);
    t_send(world, 1, 0, 3);
    t_send(world, 0, 3, 4);
    t_send(world, 1, 2, 5);
    t_run(world, R2_NS_PER_S);
    assert_int_equal(world->nodes[0].received + world->nodes[1].received, 0);
    assert_int_equal(world->nodes[3].received, 1);
    assert_int_equal(world->nodes[2].received, 1);
    r2_post_sim_set_cut(world->post, 0, false);
    t_send(world, 1, 0, 6);
    t_run(world, R2_NS_PER_S);
    assert_int_equal(world->nodes[0].received, 1);
    assert_int_equal(world->nodes[0].numbers[0], 6);
    t_world_free(world);
}

/** A stopped process finds the newest messages, and no more than the queue holds; a dead one
 * none. */
static void test_post_stopped(void **state)
{
    t_world_t *world = t_world_new(4);

    (void) state;
    world->nodes[1].frozen = true;
    for (uint32_t i = 0; i < R2_POST_SIM_QUEUE_MAX + 10; ++i) {
        t_send(world, 0, 1, i);
        if (0 == i % 7) {
            t_run(world, R2_NS_PER_MS); /* some have arrived, some are on their way */
        }
    }
    t_run(world, R2_NS_PER_S);
    world->nodes[1].frozen = false;
    t_run(world, R2_NS_PER_S);
    assert_int_equal(world->nodes[1].received, R2_POST_SIM_QUEUE_MAX);
    assert_int_equal(world->nodes[1].numbers[0], 10);
    assert_int_equal(world->nodes[1].numbers[R2_POST_SIM_QUEUE_MAX - 1], R2_POST_SIM_QUEUE_MAX + 9);
    t_send(world, 0, 2, 1);
    r2_sim_kill(world->sim, 2);
    t_run(world, R2_NS_PER_S);
    assert_int_equal(world->nodes[2].received, 0);
    t_world_free(world);
}

/** Answered by the host: its process runs, is stopped, is dead. */
static void test_probe_alive(void **state)
{
    t_world_t *world = t_world_new(5);
    const uint64_t rtt_ns = 2 * r2_sim_latency_ns(world->sim, 0);

    (void) state;
    assert_int_equal(t_probe(world, 0, 1), R2_PROBE_ALIVE);
    assert_int_equal(world->nodes[0].rtt_ns, rtt_ns);
    world->nodes[1].frozen = true;
    assert_int_equal(t_probe(world, 0, 1), R2_PROBE_ALIVE);
    r2_sim_kill(world->sim, 1);
    assert_int_equal(t_probe(world, 0, 1), R2_PROBE_ALIVE);
    t_world_free(world);
}

static void test_probe_silent(void **state)
{
    t_world_t *world = t_world_new(6);
    uint64_t sent_ns;

    (void) state;
    r2_sim_set_pass(world->sim, 1, 0, true, false); /* the way there is broken */
    sent_ns = r2_sim_now_ns(world->sim);
    assert_int_equal(t_probe(world, 0, 1), R2_PROBE_SILENT);
    assert_int_equal(world->nodes[0].told_ns, sent_ns + R2_NS_PER_S);
    r2_sim_set_pass(world->sim, 1, 0, false, true); /* the way back */
    assert_int_equal(t_probe(world, 0, 1), R2_PROBE_SILENT);
    r2_sim_set_pass(world->sim, 1, 0, true, true);
    r2_sim_set_carrier(world->sim, 1, 0, false);
    assert_int_equal(t_probe(world, 0, 1), R2_PROBE_SILENT);
    r2_sim_set_carrier(world->sim, 1, 0, true);
    assert_int_equal(t_probe(world, 0, 1), R2_PROBE_ALIVE);
    r2_probe_sim_set_loss(world->probe, 1000000);
    assert_int_equal(t_probe(world, 0, 1), R2_PROBE_SILENT);
    t_world_free(world);
}

/** Without own carrier nothing was asked, also when it was lost after the question. */
static void test_probe_unable(void **state)
{
    t_world_t *world = t_world_new(7);

    (void) state;
    r2_sim_set_carrier(world->sim, 0, 0, false);
    t_run(world, R2_NS_PER_S);
    assert_int_equal(t_probe(world, 0, 1), R2_PROBE_UNABLE);
    r2_sim_set_carrier(world->sim, 0, 0, true);
    t_run(world, R2_NS_PER_S);
    assert_int_equal(t_try_probe(world, 0, 1), R2_OK);
    r2_sim_set_carrier(world->sim, 0, 0, false);
    t_run(world, 2 * R2_NS_PER_S);
    assert_int_equal(world->nodes[0].results, 2);
    assert_int_equal(world->nodes[0].answer, R2_PROBE_UNABLE);
    t_world_free(world);
}

/** A process that is alone on its host may look into 16 others at once, 64 may not all do that. */
static void test_probe_share(void **state)
{
    static const struct {
        uint32_t processes, burst;
    } hosts[] = {{0, 200}, {1, 200}, {4, 50}, {20, 10}, {64, 10}};

    (void) state;
    for (size_t i = 0; i < r2_array_count(hosts); ++i) {
        t_world_t *world = t_world_new(8);
        r2_probe_t *probe = &world->nodes[0].probe;
        uint32_t taken = 0;

        probe->ops->share(probe->instance, hosts[i].processes);
        while (taken < 300 && R2_OK == t_try_probe(world, 0, 1)) {
            ++taken;
        }
        t_run(world, R2_NS_PER_MS / 4);
        assert_int_equal(world->nodes[0].results, hosts[i].burst);
        t_world_free(world);
    }
}

/** Many at once: the burst leaves, the rest waits for its turn, what waits is bounded. */
static void test_probe_limit(void **state)
{
    const uint64_t step_ns = R2_NS_PER_S / (R2_PROBE_RATE - R2_PROBE_RATE / R2_PROBE_BURSTS);
    t_world_t *world = t_world_new(8);
    uint32_t taken = 0;

    (void) state;
    while (taken < 1000 && R2_OK == t_try_probe(world, 0, 1)) {
        ++taken;
    }
    assert_int_equal(taken, R2_PROBE_RATE);
    t_run(world, step_ns - 1);
    assert_int_equal(world->nodes[0].results, r2_probe_limit_burst(R2_PROBE_RATE));
    t_run(world, R2_NS_PER_S - step_ns);
    assert_in_range(world->nodes[0].results, R2_PROBE_RATE - 2, R2_PROBE_RATE);
    t_run(world, R2_NS_PER_S);
    assert_int_equal(world->nodes[0].results, taken);
    assert_int_equal(world->nodes[0].answer, R2_PROBE_ALIVE);
    t_world_free(world);
}

/** Beacons need the one way only, and a process that runs. */
static void test_beacon(void **state)
{
    static const uint8_t other[R2_JOB_KEY_BYTES] = "key of another job";
    t_world_t *world = t_world_new(9);
    t_node_t *node = &world->nodes[1];

    (void) state;
    r2_sim_set_pass(world->sim, 1, 0, false, true);
    t_beacon(world, 0, 1, 41);
    assert_int_equal(node->heard, 1);
    assert_int_equal(node->last_rank, 0);
    assert_int_equal(node->beacon_id, 41);
    r2_sim_set_pass(world->sim, 1, 0, true, false);
    t_beacon(world, 0, 1, 42);
    assert_int_equal(node->heard, 1);
    r2_sim_set_pass(world->sim, 1, 0, true, true);
    node->frozen = true;
    t_beacon(world, 0, 1, 43);
    assert_int_equal(node->heard, 1);
    node->frozen = false;
    t_run(world, 1);
    assert_int_equal(node->beacon_id, 43);
    node->probe.ops->key(node->probe.instance, other);
    t_beacon(world, 0, 1, 44);
    assert_int_equal(node->heard, 2);
    node->probe.ops->key(node->probe.instance, t_key);
    r2_sim_kill(world->sim, 1);
    t_beacon(world, 0, 1, 45);
    assert_int_equal(node->heard, 2);
    t_world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_post_arrives), cmocka_unit_test(test_post_troubles),
        cmocka_unit_test(test_post_cut),     cmocka_unit_test(test_post_stopped),
        cmocka_unit_test(test_probe_alive),  cmocka_unit_test(test_probe_silent),
        cmocka_unit_test(test_probe_unable), cmocka_unit_test(test_probe_limit),
        cmocka_unit_test(test_probe_share),  cmocka_unit_test(test_beacon),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
