/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Point-to-point in the simulator: every message exactly once and whole, gets, bounds, faults.
 */
#include "r2_config.h"

#include "link/state.h"
#include "p2p_world.h"

static void test_messages(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed <= 3; ++seed) {
        t_world_t *world = t_world_new(seed);

        world->messages = T_MESSAGES;
        t_run(world, r2_sim_now_ns(world->sim) + T_LIMIT_NS);
        for (uint32_t i = 0; i < T_NODES; ++i) {
            assert_true(world->nodes[i].packed > T_MESSAGES / 10);
        }
        t_finish(world);
    }
}

/* A node that is only sent to lets the others in and answers, though it has never asked for
 * them. */
static void test_receive_first(void **state)
{
    (void) state;
    for (uint64_t seed = 30; seed <= 32; ++seed) {
        t_world_t *world = t_world_new_quiet(seed);

        world->messages = 20;
        t_finish(world);
    }
}

static void test_gets(void **state)
{
    t_world_t *world = t_world_new(4);

    (void) state;
    world->messages = 20;
    world->gets = T_GETS;
    t_finish(world);
}

/* Writes of every length and sums, healthy and with a rail that goes and comes. */
static void test_puts(void **state)
{
    (void) state;
    for (uint64_t seed = 6; seed <= 7; ++seed) {
        t_world_t *world = t_world_new(seed);
        uint64_t start_ns = r2_sim_now_ns(world->sim);

        world->puts = 6 * T_NODES;
        if (7 == seed) {
            t_run(world, start_ns + 3 * R2_NS_PER_MS);
            r2_sim_set_pass(world->sim, 1, 0, false, false);
            t_run(world, start_ns + 200 * R2_NS_PER_MS);
            r2_sim_set_pass(world->sim, 1, 0, true, true);
        }
        t_finish(world);
    }
}

static uint64_t t_updated(t_node_t *node, uint32_t to, r2_p2p_verb_t verb, uint32_t bytes,
                          uint64_t operand, uint64_t compare)
{
    r2_p2p_update_t update = {verb, bytes, operand, compare};
    t_node_t *peer = &node->world->nodes[to];

    node->puts_open = 1;
    node->old = 0;
    assert_int_equal(r2_p2p_update(node->p2p, to, &node->old, (uint64_t) (uintptr_t) peer->sums,
                                   &update, t_op(node)),
                     R2_IN_PROGRESS);
    t_run(node->world, r2_sim_now_ns(node->world->sim) + T_LIMIT_NS);
    assert_int_equal(node->puts_open, 0);
    return node->old;
}

/* Each update gives the old value and leaves the right new one, here and at a peer. */
static void test_updates(void **state)
{
    t_world_t *world = t_world_new(8);
    t_node_t *node = &world->nodes[1];

    (void) state;
    for (uint32_t to = 1; to <= 2; ++to) {
        uint64_t *sum = world->nodes[to].sums;

        *sum = 0xf0f0f0f0f0f0f0f0;
        assert_int_equal(t_updated(node, to, R2_P2P_AND, 8, 0xff00ff00ff00ff00, 0),
                         0xf0f0f0f0f0f0f0f0);
        assert_int_equal(t_updated(node, to, R2_P2P_OR, 8, 1, 0), 0xf000f000f000f000);
        assert_int_equal(t_updated(node, to, R2_P2P_XOR, 8, 3, 0), 0xf000f000f000f001);
        assert_int_equal(t_updated(node, to, R2_P2P_SWAP, 8, 0x1ffffffff, 0), 0xf000f000f000f002);
        assert_int_equal(t_updated(node, to, R2_P2P_ADD, 4, 2, 0), 0xffffffff); /* no carry */
        assert_int_equal(*sum, 0x100000001);
        assert_int_equal(t_updated(node, to, R2_P2P_COMPARE_SWAP, 8, 5, 6), 0x100000001);
        assert_int_equal(*sum, 0x100000001);
        assert_int_equal(t_updated(node, to, R2_P2P_COMPARE_SWAP, 4, 7, 1), 1);
        assert_int_equal(*sum, 0x100000007);
    }
    t_world_free(world);
}

static void t_given_up(void *arg, r2_status_t status)
{
    (void) arg;
    (void) status;
}

/* A call that is longer than any may be does not bar the way of the others. */
static void test_too_long(void **state)
{
    t_world_t *world = t_world_new(10);
    t_node_t *node = &world->nodes[0];
    r2_link_send_t send = {.tag = {R2_LINK_UNEXPECTED_KEY, node->p2p->next_seq++, 1},
                           .bytes = R2_P2P_MESSAGE_MAX + 1,
                           .chunk_bytes = 65536,
                           .done = t_given_up};
    char *data = calloc(1, send.bytes);
    r2_link_t *link;

    (void) state;
    assert_non_null(data);
    send.data = data;
    assert_int_equal(r2_net_link(&node->ctx->core.net, 1, &link), R2_OK);
    assert_int_equal(r2_link_send(link, &send), R2_IN_PROGRESS);
    world->messages = T_MESSAGES;
    t_run(world, r2_sim_now_ns(world->sim) + T_LIMIT_NS);
    assert_true(t_over(world));
    assert_true(world->nodes[1].ctx->core.counters.rx_malformed > 0);
    t_world_free(world);
    free(data);
}

/* Both ends pair rails as they were published, whatever address a NIC has got since. */
static void test_another_address(void **state)
{
    t_world_t *world = t_world_new(11);
    t_node_t *node = &world->nodes[0];
    r2_net_t *net = &node->ctx->core.net;
    r2_link_t *link;

    (void) state;
    r2_nic_watch_sim_address(&node->watch, 0, 0x0100000b); /* 11.0.0.1 */
    (void) r2_ctx_drive(node->ctx, R2_DRIVE_WOKEN);
    assert_int_equal(net->rails[0].nic.ipv4, 0x0100000b);
    assert_null(r2_core_link(&node->ctx->core, 1));
    assert_int_equal(r2_net_link(net, 1, &link), R2_OK);
    assert_int_equal(link->lane_count, T_RAILS);
    for (uint32_t i = 0; i < T_RAILS; ++i) {
        assert_ptr_equal(link->lanes[i].rail, &net->rails[i]);
        assert_int_equal(link->lanes[i].remote_idx, i);
    }
    world->messages = T_MESSAGES;
    t_run(world, r2_sim_now_ns(world->sim) + T_LIMIT_NS);
    assert_true(t_over(world));
    t_world_free(world);
}

static void t_told(r2_p2p_op_t *op, r2_status_t status)
{
    *(r2_status_t *) op->arg = status;
}

/* @return whether progress by this driver tells what is over. */
static bool t_drives(t_node_t *node, const void *driver)
{
    r2_status_t status = R2_IN_PROGRESS;
    r2_p2p_op_t op = {.done = t_told, .arg = &status};
    uint64_t from = 5, to = 0;
    bool drove;

    assert_int_equal(
        r2_p2p_get(node->p2p, node->idx, &to, (uint64_t) (uintptr_t) &from, sizeof(from), &op),
        R2_IN_PROGRESS);
    (void) r2_ctx_progress_as(node->ctx, driver);
    drove = R2_OK == status;
    r2_ctx_progress(node->ctx);
    assert_int_equal(status, R2_OK);
    return drove;
}

/* Of several components that progress one context, one does, until it gives that up. */
static void test_drivers(void **state)
{
    t_world_t *world = t_world_new(9);
    t_node_t *node = &world->nodes[0];
    char first, second;

    (void) state;
    assert_true(t_drives(node, &first));
    assert_false(t_drives(node, &second));
    r2_ctx_progress_end(node->ctx, &second); /* it was not the one */
    assert_false(t_drives(node, &second));
    assert_true(t_drives(node, &first));
    r2_ctx_progress_end(node->ctx, &first);
    assert_true(t_drives(node, &second));
    assert_false(t_drives(node, &first));
    t_world_free(world);
}

static bool t_pack_fails(void *arg, void *to)
{
    memset(to, 0, 100);
    ++*(uint32_t *) arg;
    return false;
}

/* What cannot be packed, or cannot leave at once, is not sent, and leaves nothing behind. */
static void test_packing_fails(void **state)
{
    static const size_t too_much[] = {65536, R2_P2P_MESSAGE_MAX, R2_P2P_MESSAGE_MAX + 1};
    t_world_t *world = t_world_new(11);
    t_node_t *node = &world->nodes[0];
    uint32_t packs = 0;
    r2_link_t *link;

    (void) state;
    assert_int_equal(r2_net_link(&node->ctx->core.net, 1, &link), R2_OK);
    for (uint32_t i = 0; i < 3; ++i) { /* no lane is up yet */
        assert_int_equal(r2_p2p_send_packed(node->p2p, 1, 0, too_much[i], t_pack_fails, &packs),
                         R2_ERR_AGAIN);
    }
    assert_int_equal(r2_p2p_send_packed(node->p2p, 0, 0, 100, t_pack_fails, &packs),
                     R2_ERR_AGAIN); /* to itself */
    assert_int_equal(packs, 0);
    assert_int_equal(r2_p2p_send_packed(node->p2p, 1, 0, 100, t_pack_fails, &packs), R2_ERR_PARAM);
    assert_int_equal(packs, 1);
    assert_int_equal(link->tx.copies, 0);
    world->messages = 20;
    t_finish(world);
}

/* Receivers that compute: the senders stop at the budget of unexpected data, and all of it comes
 * through after. */
static void test_away(void **state)
{
    t_world_t *world = t_world_new(5);
    uint64_t start_ns = r2_sim_now_ns(world->sim);

    (void) state;
    world->messages = T_MESSAGES;
    world->gets = 2;
    t_run(world, start_ns + 20 * R2_NS_PER_MS);
    world->nodes[1].away_until_ns = start_ns + 900 * R2_NS_PER_MS;
    world->nodes[2].away_until_ns = start_ns + 400 * R2_NS_PER_MS;
    t_run(world, start_ns + 380 * R2_NS_PER_MS);
    assert_false(t_over(world));
    for (uint32_t i = 0; i < T_NODES; ++i) {
        assert_int_equal(r2_ctx_counters(world->nodes[i].ctx)->lanes_failed, 0);
    }
    t_finish(world);
}

/* Long active messages, more than all may have under way. */
static void t_send_long(t_node_t *node, uint32_t to)
{
    for (uint32_t i = 0; i < 2 * R2_P2P_GRANTED_MAX / R2_P2P_MESSAGE_MAX; ++i) {
        t_send_bytes(node, to, R2_P2P_MESSAGE_MAX);
    }
}

/* What a stopped peer was allowed to send bars none of what others send. */
static void test_stopped(void **state)
{
    t_world_t *world = t_world_new(24);
    t_node_t *node = &world->nodes[0];
    uint64_t ns = 0;

    (void) state;
    t_send_long(&world->nodes[1], 0);
    for (; node->p2p->granted_bytes < R2_P2P_GRANTED_MAX && ns < R2_NS_PER_S; ns += R2_NS_PER_MS) {
        t_run_without(world, T_NODES, R2_NS_PER_MS / 2);
    }
    assert_true(node->p2p->granted_bytes >= R2_P2P_GRANTED_MAX);
    assert_int_equal(node->received, 0);
    t_send_long(&world->nodes[2], 0);
    t_run_without(world, 1, 2 * R2_NS_PER_S);
    assert_int_equal(node->received, 2 * R2_P2P_GRANTED_MAX / R2_P2P_MESSAGE_MAX);
    t_run_without(world, T_NODES, 5 * R2_NS_PER_S);
    assert_int_equal(node->received, 4 * R2_P2P_GRANTED_MAX / R2_P2P_MESSAGE_MAX);
    assert_int_equal(node->p2p->granted_bytes, 0);
    t_world_free(world);
}

/* Nor does what it has credit for, where that is short; and no credit of a get is left at who is
 * read. */
static void test_stopped_gets(void **state)
{
    t_world_t *world = t_world_new(25);
    t_node_t *node = &world->nodes[0];

    (void) state;
    for (uint32_t i = 0; i < T_NODES; ++i) {
        world->nodes[i].ctx->core.params.credit_bytes = 65536;
    }
    for (uint32_t i = 0; i < 8; ++i) {
        t_read(node, 1);
    }
    t_run_without(world, T_NODES, 5 * R2_NS_PER_MS);
    assert_int_equal(node->gets_open, 8);
    t_run_without(world, 1, R2_NS_PER_S);
    assert_int_equal(node->gets_open, 8);
    t_read(node, 2);
    t_run_without(world, 1, 2 * R2_NS_PER_S);
    assert_int_equal(node->gets_open, 8);
    t_run_without(world, T_NODES, 5 * R2_NS_PER_S);
    assert_int_equal(node->gets_open, 0);
    t_finish(world);
}

/* Credit for what is read goes with the question: none comes later and is kept for ever. */
static void test_credits(void **state)
{
    t_world_t *world = t_world_new(26);

    (void) state;
    world->messages = 50;
    world->gets = 60;
    t_run(world, r2_sim_now_ns(world->sim) + T_LIMIT_NS);
    for (uint32_t i = 0; i < T_NODES; ++i) {
        assert_int_equal(world->nodes[i].ctx->core.net.early_credits, 0);
    }
    t_finish(world);
}

/* Rails lose carrier, drop silently and come back while messages and gets are under way. */
static void test_faults(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
        t_world_t *world = t_world_new(10 + seed);
        uint64_t start_ns = r2_sim_now_ns(world->sim);
        uint64_t failed = 0;

        world->messages = T_MESSAGES;
        world->gets = T_GETS;
        t_run(world, start_ns + 15 * R2_NS_PER_MS);
        r2_sim_set_carrier(world->sim, 1, 0, false);
        t_run(world, start_ns + 30 * R2_NS_PER_MS);
        r2_sim_set_pass(world->sim, 2, 1, false, false);
        r2_sim_set_pass(world->sim, 0, 2, false, true);
        t_run(world, start_ns + 250 * R2_NS_PER_MS);
        r2_sim_set_carrier(world->sim, 1, 0, true);
        r2_sim_set_pass(world->sim, 0, 2, true, true);
        for (uint32_t i = 0; i < T_NODES; ++i) {
            failed += r2_ctx_counters(world->nodes[i].ctx)->lanes_failed;
        }
        assert_true(failed > 0);
        t_finish(world);
    }
}

/* A get from a peer that nothing reaches any more ends with an error, and the user is told. */
static void t_got_error(r2_p2p_op_t *op, r2_status_t status)
{
    t_node_t *node = op->arg;

    assert_true(status < 0);
    --node->gets_open;
    free(op);
}

static void test_no_path(void **state)
{
    t_world_t *world = t_world_new(20);
    t_node_t *node = &world->nodes[1];
    r2_p2p_op_t *op = calloc(1, sizeof(*op));

    (void) state;
    assert_non_null(op);
    for (uint32_t rail = 0; rail < T_RAILS; ++rail) {
        r2_sim_set_pass(world->sim, 2, rail, false, false);
    }
    op->done = t_got_error;
    op->arg = node;
    node->gets_open = 1;
    assert_int_equal(r2_p2p_get(node->p2p, 2, node->copy,
                                (uint64_t) (uintptr_t) world->nodes[2].memory, T_GET_BYTES, op),
                     R2_IN_PROGRESS);
    t_run(world, r2_sim_now_ns(world->sim) + T_LIMIT_NS);
    assert_int_equal(node->gets_open, 0);
    for (uint32_t i = 0; i < 100 && 0 == node->lost; ++i) {
        t_node_run(node);
    }
    assert_int_equal(node->lost, 1);
    t_world_free(world);
}

/* Peers that nothing was sent to or received from cannot lose anything: the user is not told. */
static void test_no_path_idle(void **state)
{
    t_world_t *world = t_world_new(22);
    t_node_t *node = &world->nodes[1];

    (void) state;
    r2_core_enter(&node->ctx->core);
    r2_p2p_lost(node->p2p, 2, R2_ERR_NO_PATH);
    r2_core_leave(&node->ctx->core);
    t_node_run(node);
    assert_int_equal(node->lost, 0);
    assert_true(t_updated(node, 3, R2_P2P_ADD, 8, 1, 0) < UINT64_MAX);
    for (uint32_t peer = 2; peer < T_NODES; ++peer) {
        r2_core_enter(&node->ctx->core);
        r2_p2p_lost(node->p2p, peer, R2_ERR_NO_PATH);
        r2_core_leave(&node->ctx->core);
    }
    t_node_run(node);
    assert_int_equal(node->lost, 1);
    r2_core_enter(&world->nodes[3].ctx->core); /* who only received and answered */
    r2_p2p_lost(world->nodes[3].p2p, 1, R2_ERR_NO_PATH);
    r2_core_leave(&world->nodes[3].ctx->core);
    t_node_run(&world->nodes[3]);
    assert_int_equal(world->nodes[3].lost, 1);
    t_world_free(world);
}

/* One user at a time; messages that are too long are refused. */
static void test_refused(void **state)
{
    t_world_t *world = t_world_new(21);
    r2_p2p_handlers_t handlers = {t_received, t_lost, NULL};
    r2_p2p_op_t op = {.done = t_got_error};
    r2_p2p_t *second;

    (void) state;
    assert_int_equal(r2_p2p_bind(world->nodes[0].ctx, &handlers, &second), R2_ERR_PARAM);
    assert_int_equal(
        r2_p2p_send(world->nodes[0].p2p, 1, 0, world->nodes[0].memory, R2_P2P_MESSAGE_MAX + 1, &op),
        R2_ERR_PARAM);
    assert_int_equal(r2_p2p_update(world->nodes[0].p2p, 1, NULL, 4,
                                   &(r2_p2p_update_t){R2_P2P_ADD, 8, 1, 0}, &op),
                     R2_ERR_PARAM);
    /* without an operation: only what the link copies */
    assert_int_equal(r2_p2p_send(world->nodes[0].p2p, 1, 0, world->nodes[0].memory,
                                 world->params.copy_max_bytes + 1, NULL),
                     R2_ERR_AGAIN);
    assert_int_equal(r2_p2p_reach(world->nodes[0].p2p, T_NODES), R2_ERR_UNSUPPORTED);
    t_world_free(world);
}

/* A get that the owner refuses leaves nothing behind: no row that waits, no link that is busy. */
static void test_refused_gets(void **state)
{
    t_world_t *world = t_world_new(22);
    t_node_t *node = &world->nodes[0];
    const r2_link_t *link;

    (void) state;
    for (uint32_t i = 0; i < 3; ++i) {
        r2_p2p_op_t *op = calloc(1, sizeof(*op));

        op->done = t_got_error;
        op->arg = node;
        node->gets_open = 1;
        assert_int_equal(r2_p2p_get(node->p2p, 1, node->copy, (uintptr_t) world->nodes[1].memory,
                                    R2_WIRE_MESSAGE_MAX + 1, op),
                         R2_IN_PROGRESS);
        t_run(world, r2_sim_now_ns(world->sim) + 2 * R2_NS_PER_S);
        assert_int_equal(node->gets_open, 0);
        assert_null(node->p2p->gets);
    }
    t_run_without(world, T_NODES, R2_NS_PER_S / 10);
    link = node->ctx->core.net.links[1];
    assert_int_equal(r2_link_posted(link), 0);
    assert_int_equal(link->rx.matches.count, 0);
    assert_false(r2_link_busy(link));
    t_world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages), cmocka_unit_test(test_receive_first),
        cmocka_unit_test(test_gets), cmocka_unit_test(test_packing_fails),
        cmocka_unit_test(test_away),
        cmocka_unit_test(test_stopped), cmocka_unit_test(test_stopped_gets),
        cmocka_unit_test(test_credits),
        cmocka_unit_test(test_puts), cmocka_unit_test(test_updates), cmocka_unit_test(test_drivers),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_another_address), cmocka_unit_test(test_faults),
          cmocka_unit_test(test_no_path), cmocka_unit_test(test_no_path_idle),
          cmocka_unit_test(test_refused),
        cmocka_unit_test(test_refused_gets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
