/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Point-to-point in the simulator before nodes have met, while one registers memory, and while one
 * leaves.
 */
#include "r2_config.h"

#include "link/state.h"
#include "p2p_world.h"

/* Node 0 leaves, and ends when it may. */
static void t_leave(t_world_t *world)
{
    t_node_t *node = &world->nodes[0];
    uint64_t limit_ns = r2_sim_now_ns(world->sim) + T_LIMIT_NS;

    node->away_until_ns = R2_NEVER_NS; /* its program takes nothing any more */
    while (!r2_net_leave(&node->ctx->core.net)) {
        assert_true(r2_sim_now_ns(world->sim) < limit_ns);
        t_run_without(world, T_NODES, R2_NS_PER_MS);
    }
    r2_sim_kill(world->sim, 0);
}

/*
 * A node ends while others go on: they have all that it sent, although they compute and rails fail,
 * nothing of theirs waits for it, and they hear of no failure.
 */
static void test_leave(void **state)
{
    enum { COUNT = 100, BYTES = 3000 };

    (void) state;
    for (uint64_t seed = 0; seed < 12; ++seed) {
        t_world_t *world = t_world_new(50 + seed);
        t_node_t *nodes = world->nodes;
        uint64_t start_ns = r2_sim_now_ns(world->sim);

        for (uint32_t i = 1; i < T_NODES; ++i) {
            nodes[i].away_until_ns = start_ns + 300 * R2_NS_PER_MS;
            for (uint32_t k = 0; k < COUNT; ++k) {
                t_send_bytes(&nodes[0], i, BYTES);
            }
            t_send_bytes(&nodes[i], 0, BYTES); /* its acknowledgement may be the last thing */
        }
        t_run_without(world, T_NODES, seed * 300 * R2_NS_PER_US);
        if (0 != seed % 3) { /* one rail of its host, at any moment */
            r2_sim_set_pass(world->sim, 0, (uint32_t) seed % T_RAILS, 1 == seed % 3, 2 == seed % 3);
        }
        t_leave(world);
        t_run_without(world, 0, 2 * R2_NS_PER_S);
        for (uint32_t i = 1; i < T_NODES; ++i) {
            assert_int_equal(nodes[i].received, COUNT);
            assert_int_equal(nodes[i].sends_open, 0);
            assert_int_equal(nodes[i].lost, 0);
        }
        t_world_free(world);
    }
}

/* A peer that is stopped is waited for, but not for ever. */
static void test_leave_stopped(void **state)
{
    t_world_t *world = t_world_new(49);
    t_node_t *node = &world->nodes[0];
    uint64_t start_ns;

    (void) state;
    t_send_bytes(node, 1, 3000);
    t_run_without(world, T_NODES, 20 * R2_NS_PER_MS);
    t_send_bytes(node, 1, 3000);
    start_ns = r2_sim_now_ns(world->sim);
    node->away_until_ns = R2_NEVER_NS;
    while (!r2_net_leave(&node->ctx->core.net)) {
        t_run_without(world, 1, R2_NS_PER_MS);
        assert_true(r2_sim_now_ns(world->sim) < start_ns + T_LIMIT_NS);
    }
    assert_true(r2_sim_now_ns(world->sim) - start_ns >=
                world->params.no_path_timeout_ms * R2_NS_PER_MS / 2);
    t_world_free(world);
}

/* Asks node 1 until the answer is another. @return the answer. */
static r2_status_t t_ask_after(t_world_t *world, uint32_t rank, r2_status_t known)
{
    const uint64_t limit_ns = r2_sim_now_ns(world->sim) + T_LIMIT_NS;
    r2_status_t status = known;

    while (known == status && r2_sim_now_ns(world->sim) < limit_ns) {
        t_run_without(world, rank, R2_NS_PER_MS);
        status = r2_p2p_ask_after(world->nodes[1].p2p, rank);
    }
    return status;
}

/*
 * Who has nothing to say to a peer asks what has become of it: one that lives, one that has left,
 * and one that was killed, of which nobody would hear otherwise. It is not told as lost before it
 * is known to be gone, and a way that is lost is not a process that is gone.
 */
static void test_ask_after(void **state)
{
    t_world_t *world = t_world_new(48);
    t_node_t *nodes = world->nodes;

    (void) state;
    assert_int_equal(r2_p2p_ask_after(nodes[1].p2p, 0), R2_ERR_NOT_FOUND);
    t_send_bytes(&nodes[1], 0, 3000);
    t_send_bytes(&nodes[1], 2, 3000);
    t_run_without(world, T_NODES, 200 * R2_NS_PER_MS);
    assert_int_equal(r2_p2p_ask_after(nodes[1].p2p, 0), R2_OK);
    for (uint32_t rail = 0; rail < T_RAILS; ++rail) { /* a host without a way */
        r2_sim_set_pass(world->sim, 2, rail, false, false);
    }
    t_send_bytes(&nodes[1], 2, 3000);
    assert_int_equal(t_ask_after(world, 2, R2_OK), R2_ERR_AGAIN);
    t_run_without(world, T_NODES, R2_NS_PER_S);
    assert_int_equal(r2_p2p_ask_after(nodes[1].p2p, 2), R2_ERR_AGAIN);
    for (uint32_t rail = 0; rail < T_RAILS; ++rail) {
        r2_sim_set_pass(world->sim, 2, rail, true, true);
    }
    t_run_without(world, T_NODES, 2 * R2_NS_PER_S);
    assert_int_equal(r2_p2p_ask_after(nodes[1].p2p, 2), R2_OK);
    t_leave(world);
    t_run_without(world, 0, 200 * R2_NS_PER_MS);
    assert_int_equal(r2_p2p_ask_after(nodes[1].p2p, 0), R2_ERR_PEER_GONE);
    r2_sim_kill(world->sim, 2);
    nodes[2].away_until_ns = R2_NEVER_NS;
    assert_int_equal(t_ask_after(world, 2, R2_OK), R2_ERR_AGAIN);
    assert_int_equal(t_ask_after(world, 2, R2_ERR_AGAIN), R2_ERR_PEER_GONE);
    t_world_free(world);
}

/* Asks after all that are lost each millisecond, for so long, or until node 2 is given up. */
static void t_ask_after_lost(t_world_t *world, uint64_t pause_ns, uint64_t for_ns)
{
    const r2_link_t *link = world->nodes[1].ctx->core.net.links[2];
    const uint64_t limit_ns = r2_sim_now_ns(world->sim) + for_ns;

    while (R2_OK == r2_link_broken(link) && r2_sim_now_ns(world->sim) < limit_ns) {
        t_run_without(world, 2, R2_NS_PER_MS);
        r2_ctx_ask_after_lost(world->nodes[1].ctx, pause_ns);
    }
}

/*
 * A peer ends when all that it was sent is acknowledged: nobody hears of it who does not ask. The
 * first question is asked at once, the next ones after a pause; and one that would open a lane that
 * rests has to wait for seconds.
 */
static void test_ask_after_lost(void **state)
{
    t_world_t *world = t_world_new(52);
    t_node_t *nodes = world->nodes;
    r2_net_t *net = &nodes[1].ctx->core.net;
    r2_link_t *link;
    uint64_t asked_ns;

    (void) state;
    t_send_bytes(&nodes[1], 2, 3000);
    t_run_without(world, T_NODES, 200 * R2_NS_PER_MS);
    link = net->links[2];
    t_ask_after_lost(world, 0, 10 * R2_NS_PER_MS);
    assert_true(0 == link->path.inquired_ns); /* a lane works */
    r2_sim_kill(world->sim, 2);
    nodes[2].away_until_ns = R2_NEVER_NS;
    t_run_without(world, 2, 3 * R2_NS_PER_S);
    assert_int_equal(r2_link_broken(link), R2_OK);
    r2_ctx_ask_after_lost(nodes[1].ctx, R2_NS_PER_S);
    asked_ns = link->path.inquired_ns;
    assert_true(asked_ns > 0);
    t_ask_after_lost(world, R2_NS_PER_S, 2 * R2_NS_PER_MS);
    assert_true(asked_ns == link->path.inquired_ns);
    t_ask_after_lost(world, R2_NS_PER_S, T_LIMIT_NS);
    assert_int_equal(r2_link_broken(link), R2_ERR_PEER_GONE);

    link->lanes[0].state = R2_LANE_RESTING;
    link->path.inquired_ns = 0;
    link->path.last_rx_ns = net->now_ns;
    assert_false(r2_link_may_ask(link, R2_NS_PER_MS));
    net->now_ns += R2_ASK_RESTING_NS;
    assert_true(r2_link_may_ask(link, R2_NS_PER_MS));
    link->path.inquired_ns = net->now_ns - R2_NS_PER_S;
    assert_false(r2_link_may_ask(link, R2_NS_PER_MS));
    link->lanes[0].state = R2_LANE_DOWN;
    assert_true(r2_link_may_ask(link, R2_NS_PER_MS));
    net->now_ns -= R2_ASK_RESTING_NS;
    t_world_free(world);
}

static const r2_oob_ops_t *t_next;
static unsigned t_asked;

static r2_status_t t_lookup(void *instance, uint32_t rank, void *blob_p, size_t *bytes_p)
{
    ++t_asked;
    return t_next->lookup(instance, rank, blob_p, bytes_p);
}

/* What a process has published is asked for once, before there is a link to it, too: the launcher
 * answers slowly on a busy machine, and the engine stands meanwhile. */
static void test_published_is_asked_once(void **state)
{
    t_world_t *world = t_world_new(13);
    r2_net_t *net = &world->nodes[0].ctx->core.net;
    r2_oob_ops_t ops = *net->oob.ops;
    r2_peer_info_t info;
    r2_link_t *link;

    (void) state;
    t_next = net->oob.ops;
    t_asked = 0;
    ops.lookup = t_lookup;
    net->oob.ops = &ops;
    assert_int_equal(net->known_count, T_NODES); /* a place for each */
    assert_null(r2_core_link(&world->nodes[0].ctx->core, 1));
    for (uint32_t i = 0; i < 10; ++i) {
        assert_int_equal(r2_net_lookup(net, 1 + i % 2, &info), R2_OK);
        assert_int_equal(info.rail_count, T_RAILS);
        r2_peer_info_put(&info);
    }
    assert_true(t_asked <= 2);
    assert_int_equal(r2_net_link(net, 1, &link), R2_OK);
    assert_true(t_asked <= 2);
    t_asked = 0;
    for (unsigned i = 1; i < 3; ++i) { /* one that shares its place, and has published nothing */
        assert_int_equal(r2_net_lookup(net, 1 + net->known_count, &info), R2_ERR_NOT_FOUND);
        assert_int_equal(t_asked, i);
    }
    net->oob.ops = t_next;
    t_world_free(world);
}

/** A transport that registers, in the place of a rail's own. */
static struct {
    r2_core_t *core;
    r2_tp_ops_t ops;
    r2_tp_t tp;
    uint32_t begun, pinned, ended, granted;
} pins;

/* Nobody else may have it now. */
static bool t_is_locked(void)
{
    if (0 != pthread_mutex_trylock(&pins.core->lock)) {
        return true;
    }
    pthread_mutex_unlock(&pins.core->lock);
    return false;
}

static void *t_pin_begin(r2_tp_worker_t *worker, void *data, size_t bytes)
{
    (void) worker, (void) bytes;
    assert_true(t_is_locked());
    ++pins.begun;
    return data;
}

static void t_pin(r2_tp_worker_t *worker, void *pin)
{
    (void) worker, (void) pin;
    assert_false(t_is_locked());
    ++pins.pinned;
}

static void t_pin_end(r2_tp_worker_t *worker, void *pin)
{
    (void) worker, (void) pin;
    assert_true(t_is_locked());
    ++pins.ended;
}

static r2_status_t t_grant(r2_tp_worker_t *worker, void *data, size_t bytes,
                           const r2_tp_memory_t *memory, void *key_p, size_t *key_bytes_p,
                           void **grant_p)
{
    (void) worker, (void) bytes, (void) memory;
    assert_true(t_is_locked());
    assert_int_equal(pins.ended, pins.begun);
    memcpy(key_p, "key", 3);
    *key_bytes_p = 3;
    *grant_p = data;
    ++pins.granted;
    return R2_OK;
}

static void t_ungrant(r2_tp_worker_t *worker, void *grant)
{
    (void) worker, (void) grant;
    --pins.granted;
}

static r2_status_t t_get(r2_tp_ep_t *ep, r2_tp_send_t *op, const r2_tp_target_t *target)
{
    (void) ep, (void) op, (void) target;
    return R2_ERR_UNSUPPORTED;
}

/* Others go on while pages are pinned, which for long memory takes long: on each of two rails. */
static void test_pages_are_pinned_without_the_lock(void **state)
{
    t_world_t *world = t_world_new(32);
    t_node_t *node = &world->nodes[0];
    r2_core_t *core = &node->ctx->core;
    r2_p2p_region_t *region;
    r2_p2p_memory_t memory;
    const r2_tp_t *before[2];

    (void) state;
    memset(&pins, 0, sizeof(pins));
    pins.core = core;
    core->params.direct = true;
    for (uint32_t i = 0; i < 2; ++i) {
        r2_rail_t *rail = &core->net.rails[i];

        pins.tp = *rail->tp;
        pins.ops = *rail->tp->ops;
        pins.ops.pin_begin = t_pin_begin;
        pins.ops.pin = t_pin;
        pins.ops.pin_end = t_pin_end;
        pins.ops.grant = t_grant;
        pins.ops.ungrant = t_ungrant;
        pins.ops.get = t_get;
        pins.tp.ops = &pins.ops;
        before[i] = rail->tp;
        rail->tp = &pins.tp;
        snprintf(rail->nic.rdma, sizeof(rail->nic.rdma), "rail%u", i);
    }
    assert_int_equal(r2_p2p_register(node->p2p, node->memory, T_BYTES, &memory, &region), R2_OK);
    assert_false(t_is_locked());
    assert_int_equal(memory.count, 2);
    assert_int_equal(pins.pinned, 2);
    assert_int_equal(pins.granted, 2);
    r2_p2p_deregister(region);
    assert_int_equal(pins.granted, 0);
    for (uint32_t i = 0; i < 2; ++i) {
        core->net.rails[i].tp = before[i];
        core->net.rails[i].nic.rdma[0] = '\0';
    }
    core->params.direct = false;
    t_world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leave),
        cmocka_unit_test(test_leave_stopped),
        cmocka_unit_test(test_ask_after),
        cmocka_unit_test(test_ask_after_lost),
        cmocka_unit_test(test_published_is_asked_once),
        cmocka_unit_test(test_pages_are_pinned_without_the_lock),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
