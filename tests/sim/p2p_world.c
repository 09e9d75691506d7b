/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Programs of nodes that talk point-to-point.
 */
#include "r2_config.h"

#include "p2p_world.h"

#include <utlist.h>

static void t_wake(void *arg, uint32_t node)
{
    (void) arg;
    (void) node;
}

static void t_carrier(void *arg, uint32_t host, uint32_t rail, bool up)
{
    t_world_t *world = arg;

    for (uint32_t i = 0; i < T_NODES; ++i) {
        if (r2_sim_host_of(world->sim, i) == host && NULL != world->nodes[i].ctx) {
            r2_nic_watch_sim_set(&world->nodes[i].watch, rail, up);
            (void) r2_ctx_drive(world->nodes[i].ctx, R2_DRIVE_WOKEN);
        }
    }
}

static uint8_t t_byte(uint32_t from, uint32_t number, uint64_t offset)
{
    return (uint8_t) (from * 31 + number * 7 + offset + (offset >> 8) * 3 + (offset >> 16));
}

static void t_fill(uint8_t *data, const t_head_t *head)
{
    for (uint32_t i = 0; i < head->bytes; ++i) {
        data[i] = t_byte(head->from, head->number, i);
    }
    memcpy(data, head, r2_min(sizeof(*head), (size_t) head->bytes));
}

void t_received(void *arg, uint32_t rank, uint8_t id, const void *data, size_t bytes)
{
    t_node_t *node = arg;
    const uint8_t *got = data;
    t_head_t head;

    assert_true(bytes >= sizeof(head));
    memcpy(&head, data, sizeof(head));
    assert_int_equal(head.from, rank);
    assert_int_equal(head.to, node->idx);
    assert_int_equal(head.bytes, bytes);
    assert_int_equal(head.number & 0xff, id);
    assert_true(head.number < T_MESSAGES);
    assert_false(node->seen[rank][head.number]);
    node->seen[rank][head.number] = true;
    for (uint32_t i = sizeof(head); i < bytes; ++i) {
        assert_int_equal(got[i], t_byte(head.from, head.number, i));
    }
    ++node->received;
}

void t_lost(void *arg, uint32_t rank, r2_status_t status)
{
    t_node_t *node = arg;

    assert_true(rank < T_NODES && status < 0);
    ++node->lost;
}

static void t_send_free(t_send_t *send)
{
    DL_DELETE(send->node->sends, send);
    free(send->data);
    free(send);
}

static void t_sent(r2_p2p_op_t *op, r2_status_t status)
{
    t_send_t *send = op->arg;

    assert_int_equal(status, R2_OK);
    --send->node->sends_open;
    memset(send->data, 0xee, 16); /* ours again: a late reader is found by the simulator */
    t_send_free(send);
}

static bool t_pack(void *arg, void *to)
{
    const t_send_t *send = arg;
    t_head_t head;

    memcpy(&head, send->data, sizeof(head));
    memcpy(to, send->data, head.bytes);
    return true;
}

/* Messages in turn: packed, if all may leave at once, or as they lie. */
static r2_status_t t_send_either(t_node_t *node, uint32_t to, uint32_t bytes, t_send_t *send)
{
    r2_status_t status = R2_ERR_AGAIN;

    if (0 != node->sent % 2) {
        status = r2_p2p_send_packed(node->p2p, to, (uint8_t) node->sent, bytes, t_pack, send);
        node->packed += R2_OK == status;
    }
    return R2_ERR_AGAIN != status
               ? status
               : r2_p2p_send(node->p2p, to, (uint8_t) node->sent, send->data, bytes, &send->op);
}

void t_send_bytes(t_node_t *node, uint32_t to, uint32_t bytes)
{
    t_send_t *send = calloc(1, sizeof(*send));
    t_head_t head = {node->idx, to, node->sent, bytes};
    r2_status_t status;

    assert_non_null(send);
    send->node = node;
    send->data = malloc(bytes);
    assert_non_null(send->data);
    send->op.done = t_sent;
    send->op.arg = send;
    t_fill(send->data, &head);
    ++node->world->expected[to];
    ++node->sends_open;
    DL_APPEND(node->sends, send);
    status = t_send_either(node, to, bytes, send);
    ++node->sent;
    assert_true(status >= 0);
    if (R2_OK == status) {
        t_sent(&send->op, R2_OK);
    }
}

static void t_got(r2_p2p_op_t *op, r2_status_t status)
{
    t_node_t *node = op->arg;
    uint32_t from = (node->idx + node->gets) % T_NODES;

    assert_int_equal(status, R2_OK);
    assert_memory_equal(node->copy, node->world->nodes[from].memory, T_GET_BYTES);
    --node->gets_open;
    free(op);
}

static void t_send(t_node_t *node)
{
    uint32_t to = (node->idx + 1 + (uint32_t) r2_prng_below(&node->prng, T_NODES - 1)) % T_NODES;
    uint32_t most = 0 == node->sent % 3 ? T_BYTES - 16 : 2000;

    t_send_bytes(node, to, 16 + (uint32_t) r2_prng_below(&node->prng, most));
}

static void t_read_done(r2_p2p_op_t *op, r2_status_t status)
{
    t_node_t *node = op->arg;

    assert_int_equal(status, R2_OK);
    --node->gets_open;
    free(op);
}

void t_read(t_node_t *node, uint32_t from)
{
    r2_p2p_op_t *op = calloc(1, sizeof(*op));

    assert_non_null(op);
    op->done = t_read_done;
    op->arg = node;
    ++node->gets_open;
    assert_int_equal(r2_p2p_get(node->p2p, from, node->copy,
                                (uint64_t) (uintptr_t) node->world->nodes[from].memory, T_GET_BYTES,
                                op),
                     R2_IN_PROGRESS);
}

/* One get at a time, from each of the others in turn. */
static void t_get(t_node_t *node)
{
    r2_p2p_op_t *op = calloc(1, sizeof(*op));
    uint32_t from;

    assert_non_null(op);
    do {
        from = (node->idx + ++node->gets) % T_NODES;
    } while (from == node->idx);
    op->done = t_got;
    op->arg = node;
    ++node->gets_open;
    memset(node->copy, 0, T_GET_BYTES);
    assert_int_equal(r2_p2p_get(node->p2p, from, node->copy,
                                (uint64_t) (uintptr_t) node->world->nodes[from].memory, T_GET_BYTES,
                                op),
                     R2_IN_PROGRESS);
}

/* Every node owns a quarter of each other's memory, and writes more of it each time. */
static void t_put_done(r2_p2p_op_t *op, r2_status_t status)
{
    t_node_t *node = op->arg;

    assert_int_equal(status, R2_OK);
    --node->puts_open;
    free(op);
}

r2_p2p_op_t *t_op(t_node_t *node)
{
    r2_p2p_op_t *op = calloc(1, sizeof(*op));

    assert_non_null(op);
    op->done = t_put_done;
    op->arg = node;
    return op;
}

/* A put, one update of each sum; to all nodes in turn, this one too. */
static void t_put(t_node_t *node)
{
    static const uint32_t lengths[] = {0, 1, 8, R2_P2P_SHORT_BYTES, R2_P2P_SHORT_BYTES + 1,
                                       T_GET_BYTES / T_NODES};
    r2_p2p_update_t add = {R2_P2P_ADD, 8, (1ull << 32) + 1, 0};
    r2_p2p_update_t narrow = {R2_P2P_ADD, 4, 1, 0};
    uint32_t to = node->puts % T_NODES, mine = node->idx * (T_GET_BYTES / T_NODES);
    t_node_t *peer = &node->world->nodes[to];
    uint32_t bytes = lengths[node->puts / T_NODES % (sizeof(lengths) / sizeof(lengths[0]))];

    for (uint32_t i = 0; i < bytes; ++i) {
        node->copy[i] = t_byte(node->idx, node->puts, i);
    }
    node->puts_open += 3;
    assert_int_equal(r2_p2p_put(node->p2p, to, node->copy,
                                (uint64_t) (uintptr_t) (peer->memory + mine), bytes, t_op(node)),
                     R2_IN_PROGRESS);
    assert_int_equal(r2_p2p_update(node->p2p, to, &node->old, (uint64_t) (uintptr_t) &peer->sums[0],
                                   &add, t_op(node)),
                     R2_IN_PROGRESS);
    assert_int_equal(r2_p2p_update(node->p2p, to, NULL, (uint64_t) (uintptr_t) &peer->sums[1],
                                   &narrow, t_op(node)),
                     R2_IN_PROGRESS);
    ++node->puts;
}

static void t_node_start(t_world_t *world, uint32_t idx, uint64_t seed)
{
    t_node_t *node = &world->nodes[idx];
    r2_ctx_config_t config = {.params = &world->params};
    r2_p2p_handlers_t handlers = {t_received, t_lost, node};
    r2_ctx_parts_t parts = {.clock = r2_sim_clock(world->sim, idx),
                            .tp = r2_sim_transport(world->sim, idx),
                            .hello = r2_hello_sim_node(world->hub, idx),
                            .oob = r2_oob_loop_rank(world->oob, idx),
                            .host_id = r2_sim_host_of(world->sim, idx) + 1,
                            .first_seq = UINT64_MAX - 10};
    char text[256];

    node->world = world;
    node->idx = idx;
    r2_prng_seed(&node->prng, seed * 100 + idx);
    node->memory = malloc(T_GET_BYTES);
    node->copy = malloc(T_GET_BYTES);
    assert_true(NULL != node->memory && NULL != node->copy);
    for (uint32_t i = 0; i < T_GET_BYTES; ++i) {
        node->memory[i] = t_byte(idx, 1000, i);
    }
    r2_sim_nics(world->sim, idx, parts.nics, &parts.nic_count);
    snprintf(parts.host_name, sizeof(parts.host_name), "h%u", (unsigned) parts.host_id);
    assert_int_equal(r2_nic_watch_sim_create(parts.nics, parts.nic_count, false, &node->watch),
                     R2_OK);
    parts.watch = node->watch;
    assert_int_equal(r2_ctx_assemble(&config, &parts, &node->ctx, text, sizeof(text)), R2_OK);
    assert_int_equal(r2_p2p_bind(node->ctx, &handlers, &node->p2p), R2_OK);
}

static t_world_t *t_world_make(uint64_t seed, bool quiet)
{
    static const uint32_t host[T_NODES] = {0, 1, 2, 0};
    r2_sim_config_t config = {.seed = seed,
                              .host_count = 3,
                              .node_count = T_NODES,
                              .node_host = host,
                              .rail_count = T_RAILS,
                              .rail_bytes_per_s = 50000000};
    uint8_t key[R2_JOB_KEY_BYTES] = {1, 2, 3};
    t_world_t *world = calloc(1, sizeof(*world));
    r2_sim_hooks_t hooks = {t_wake, t_carrier, world};

    assert_non_null(world);
    assert_true(sodium_init() >= 0);
    world->sim = r2_sim_create(&config, &hooks);
    world->oob = r2_oob_loop_create(T_NODES, key);
    world->hub = r2_hello_sim_create(world->sim, T_NODES);
    assert_true(NULL != world->sim && NULL != world->oob && NULL != world->hub);
    r2_params_init(&world->params);
    world->params.verbose = 0;
    for (uint32_t i = 0; i < T_NODES; ++i) {
        t_node_start(world, i, seed);
    }
    for (uint32_t i = 0; i < T_NODES; ++i) {
        for (uint32_t j = 0; j < T_NODES; ++j) {
            if (!quiet || T_QUIET != i || i == j) {
                assert_int_equal(r2_p2p_reach(world->nodes[i].p2p, j), R2_OK);
            }
        }
    }
    return world;
}

t_world_t *t_world_new(uint64_t seed)
{
    return t_world_make(seed, false);
}

t_world_t *t_world_new_quiet(uint64_t seed)
{
    t_world_t *world = t_world_make(seed, true);

    world->quiet = true;
    return world;
}

void t_world_free(t_world_t *world)
{
    for (uint32_t i = 0; i < T_NODES; ++i) {
        r2_p2p_unbind(world->nodes[i].p2p);
        r2_ctx_dismantle(world->nodes[i].ctx);
        r2_nic_watch_sim_destroy(&world->nodes[i].watch);
        while (NULL != world->nodes[i].sends) {
            t_send_free(world->nodes[i].sends);
        }
        free(world->nodes[i].memory);
        free(world->nodes[i].copy);
    }
    assert_null(r2_sim_failure(world->sim));
    r2_hello_sim_destroy(world->hub);
    r2_oob_loop_destroy(world->oob);
    r2_sim_destroy(world->sim);
    free(world);
}

static uint32_t t_messages_of(const t_node_t *node)
{
    return node->world->quiet && T_QUIET == node->idx ? 0 : node->world->messages;
}

/* Drives a node until nothing happens; its program sends as it goes. */
void t_node_run(t_node_t *node)
{
    t_world_t *world = node->world;
    r2_drive_t who =
        r2_sim_now_ns(world->sim) < node->away_until_ns ? R2_DRIVE_SERVICE : R2_DRIVE_APP;
    uint32_t received = node->received;

    world->turn = node->idx;
    while (r2_ctx_drive(node->ctx, who) > 0) {
    }
    node->unexpected_max = r2_max(node->unexpected_max, node->ctx->core.net.unexpected_bytes);
    node->waiting_max = r2_max(node->waiting_max, node->p2p->waiting_count);
    for (uint32_t i = 0; i < T_NODES; ++i) {
        node->answers_max = r2_max(node->answers_max, node->p2p->peers[i].answer_bytes);
    }
    if (R2_DRIVE_SERVICE == who) {
        /* the user is never called by the service thread */
        assert_int_equal(node->received, received);
        return;
    }
    for (uint32_t i = 0; i < 3 && node->sent < t_messages_of(node) && node->sends_open < 64; ++i) {
        t_send(node);
    }
    if (node->gets < world->gets && 0 == node->gets_open) {
        t_get(node);
    }
    if (node->puts < world->puts && 0 == node->puts_open) {
        t_put(node);
    }
}

bool t_over(const t_world_t *world)
{
    for (uint32_t i = 0; i < T_NODES; ++i) {
        const t_node_t *node = &world->nodes[i];

        if (node->sent < t_messages_of(node) || node->received < world->expected[i] ||
            node->sends_open > 0 || node->puts < world->puts || node->puts_open > 0 ||
            node->gets < world->gets || node->gets_open > 0) {
            return false;
        }
    }
    return true;
}

static uint64_t t_next_ns(const t_world_t *world)
{
    uint64_t now_ns = r2_sim_now_ns(world->sim);
    uint64_t next_ns = r2_min(r2_sim_next_ns(world->sim), now_ns + R2_NS_PER_MS);

    for (uint32_t i = 0; i < T_NODES; ++i) {
        next_ns = r2_min(next_ns, r2_ctx_deadline_ns(world->nodes[i].ctx));
    }
    return r2_max(next_ns, now_ns + R2_NS_PER_US);
}

void t_run(t_world_t *world, uint64_t until_ns)
{
    while (!t_over(world) && r2_sim_now_ns(world->sim) < until_ns) {
        for (uint32_t i = 0; i < T_NODES; ++i) {
            t_node_run(&world->nodes[i]);
        }
        r2_sim_run_until(world->sim, t_next_ns(world));
        assert_null(r2_sim_failure(world->sim));
    }
}

/* What the last round of puts wrote, and the sums of all. */
static void t_check_puts(const t_world_t *world, const t_node_t *node)
{
    uint64_t each = world->puts / T_NODES * T_NODES;

    if (0 == world->puts) {
        return;
    }
    assert_int_equal(node->sums[0], each * ((1ull << 32) + 1));
    assert_int_equal(node->sums[1], each);
    for (uint32_t from = 0; from < T_NODES; ++from) {
        const uint8_t *got = node->memory + from * (T_GET_BYTES / T_NODES);
        uint32_t number = world->puts - T_NODES + node->idx;

        for (uint32_t i = 0; i < T_GET_BYTES / T_NODES; ++i) {
            assert_int_equal(got[i], t_byte(from, number, i));
        }
    }
}

void t_finish(t_world_t *world)
{
    t_run(world, r2_sim_now_ns(world->sim) + T_LIMIT_NS);
    for (uint32_t i = 0; i < T_NODES; ++i) {
        const t_node_t *node = &world->nodes[i];

        assert_int_equal(node->sent, t_messages_of(node));
        assert_int_equal(node->received, world->expected[i]);
        assert_int_equal(node->sends_open, 0);
        assert_int_equal(node->gets_open, 0);
        assert_int_equal(node->lost, 0);
        /* without credit, and for the rows that had credit when the application went away */
        assert_true(node->unexpected_max <= (T_NODES - 1) * world->params.unexpected_bytes +
                                                R2_P2P_GRANTED_MAX +
                                                (world->gets > 0 ? T_GET_BYTES : 0));
        assert_int_equal(node->p2p->granted_bytes, 0);
        assert_null(node->p2p->gets);
        assert_null(node->p2p->issued);
        assert_null(node->p2p->pulls);
        assert_null(node->p2p->unsent);
        assert_int_equal(node->p2p->waiting_count, 0);
        t_check_puts(world, node);
    }
    t_world_free(world);
}

void t_run_without(t_world_t *world, uint32_t stopped, uint64_t ns)
{
    uint64_t until_ns = r2_sim_now_ns(world->sim) + ns;

    while (r2_sim_now_ns(world->sim) < until_ns) {
        for (uint32_t i = 0; i < T_NODES; ++i) {
            if (stopped != i) {
                t_node_run(&world->nodes[i]);
            }
        }
        r2_sim_run_until(world->sim, r2_sim_now_ns(world->sim) + 100 * R2_NS_PER_US);
        assert_null(r2_sim_failure(world->sim));
    }
}
