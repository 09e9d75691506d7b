/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One-sided communication where memory is short at one node: nothing is done twice, nobody waits
 * for ever, and answers under way are bounded.
 */
#include "r2_config.h"

#include "p2p_world.h"

#include "link/state.h"

#define T_STARVED 1 /* the node */
#define T_READS   1000
#define T_LONG    (R2_P2P_SHORT_BYTES + 1)

/**
 * Allocations of one kind. None of the link's own is as long: without its hash tables a process
 * ends, and without memory for a question that arrives nothing is tested here.
 */
typedef struct t_kind {
    bool zeroed; /* by calloc() */
    size_t bytes;
} t_kind_t;

/** Which allocations fail. */
static struct {
    const t_world_t *world; /* NULL: none */
    t_kind_t kinds[8];      /* 0 bytes: no more */
    unsigned failed;
} starve;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

static bool t_fails(bool zeroed, size_t bytes)
{
    if (NULL == starve.world || T_STARVED != starve.world->turn) {
        return false;
    }
    for (size_t i = 0; i < r2_array_count(starve.kinds) && 0 != starve.kinds[i].bytes; ++i) {
        if (starve.kinds[i].bytes == bytes && starve.kinds[i].zeroed == zeroed) {
            ++starve.failed;
            return true;
        }
    }
    return false;
}

void *__wrap_malloc(size_t bytes)
{
    return t_fails(false, bytes) ? NULL : __real_malloc(bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return t_fails(false, bytes) ? NULL : __real_aligned_alloc(alignment, bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return t_fails(true, count * bytes) ? NULL : __real_calloc(count, bytes);
}

static void t_starve(const t_world_t *world, const t_kind_t *kinds, size_t count)
{
    memset(&starve, 0, sizeof(starve));
    memcpy(starve.kinds, kinds, count * sizeof(*kinds));
    starve.world = world;
}

static void t_feed(void)
{
    starve.world = NULL;
}

static void t_run_for(t_world_t *world, uint64_t ns)
{
    t_run(world, r2_sim_now_ns(world->sim) + ns);
}

/* Node 0 asks the starved one for one thing of each kind. */
static void t_ask_all(t_world_t *world)
{
    t_node_t *node = &world->nodes[0], *peer = &world->nodes[T_STARVED];
    uint64_t memory = (uint64_t) (uintptr_t) peer->memory;
    r2_p2p_update_t add = {R2_P2P_ADD, 4, 1, 0};

    memset(node->copy, 0x55, 4 * T_LONG);
    node->puts_open = 5;
    assert_int_equal(r2_p2p_get(node->p2p, T_STARVED, node->copy + 2 * T_LONG, memory + 2 * T_LONG,
                                R2_P2P_SHORT_BYTES, t_op(node)),
                     R2_IN_PROGRESS);
    assert_int_equal(r2_p2p_get(node->p2p, T_STARVED, node->copy + 3 * T_LONG, memory + 3 * T_LONG,
                                T_LONG, t_op(node)),
                     R2_IN_PROGRESS);
    assert_int_equal(r2_p2p_put(node->p2p, T_STARVED, node->copy, memory, 100, t_op(node)),
                     R2_IN_PROGRESS);
    assert_int_equal(
        r2_p2p_put(node->p2p, T_STARVED, node->copy, memory + T_LONG, T_LONG, t_op(node)),
        R2_IN_PROGRESS);
    assert_int_equal(r2_p2p_update(node->p2p, T_STARVED, &node->old,
                                   (uint64_t) (uintptr_t) peer->sums, &add, t_op(node)),
                     R2_IN_PROGRESS);
}

static void t_check_all(const t_world_t *world)
{
    const t_node_t *node = &world->nodes[0], *peer = &world->nodes[T_STARVED];

    assert_int_equal(node->puts_open, 0);
    assert_int_equal(peer->sums[0], 1); /* done once */
    assert_int_equal(node->old, 0);
    assert_memory_equal(peer->memory, node->copy, 100);
    assert_memory_equal(peer->memory + T_LONG, node->copy, T_LONG);
    assert_memory_equal(peer->memory + 2 * T_LONG, node->copy + 2 * T_LONG, R2_P2P_SHORT_BYTES);
    assert_memory_equal(peer->memory + 3 * T_LONG, node->copy + 3 * T_LONG, T_LONG);
    for (uint32_t i = 0; i < T_NODES; ++i) {
        assert_int_equal(world->nodes[i].lost, 0);
    }
}

/* Wires the link, so that only what is asked later needs memory. */
static t_world_t *t_world_wired(uint64_t seed)
{
    t_world_t *world = t_world_new(seed);

    t_ask_all(world);
    t_run_for(world, R2_NS_PER_S);
    t_check_all(world);
    world->nodes[T_STARVED].sums[0] = 0;
    return world;
}

static void t_starved_for_a_while(const t_kind_t *kinds, size_t count)
{
    t_world_t *world = t_world_wired(41);

    r2_pool_fini(&world->nodes[T_STARVED].ctx->core.net.messages);
    t_starve(world, kinds, count);
    t_ask_all(world);
    t_run_for(world, R2_P2P_SHORT_NS / 2);
    assert_true(starve.failed > 0);
    t_feed();
    t_run_for(world, T_LIMIT_NS);
    t_check_all(world);
    t_finish(world);
}

static const t_kind_t t_answers[] = {
    {false, sizeof(r2_am_buf_t) + sizeof(r2_p2p_reply_t)},
    {false, sizeof(r2_am_buf_t) + sizeof(r2_p2p_reply_t) + 4},
    {false, sizeof(r2_am_buf_t) + sizeof(r2_p2p_reply_t) + R2_P2P_SHORT_BYTES}};

/* The owner has no memory for answers: it answers when it has. */
static void test_no_answers(void **state)
{
    (void) state;
    t_starved_for_a_while(t_answers, r2_array_count(t_answers));
}

/* No memory for what it has to remember. */
static void test_no_states(void **state)
{
    static const t_kind_t kinds[] = {
        {true, sizeof(r2_p2p_serve_t)}, {true, sizeof(r2_p2p_pull_t)}, {true,
                                                                        sizeof(r2_p2p_get_t)}};

    (void) state;
    t_starved_for_a_while(kinds, r2_array_count(kinds));
}

/* No memory in the link to send what is ready. */
static void test_no_messages(void **state)
{
    static const t_kind_t kinds[] = {{false, sizeof(r2_tx_message_t)}};

    (void) state;
    t_starved_for_a_while(kinds, r2_array_count(kinds));
}

/* A question that could be answered waits behind an older one of the same peer that cannot. */
static void test_in_order(void **state)
{
    static const t_kind_t kinds[] = {{false, sizeof(r2_am_buf_t) + sizeof(r2_p2p_reply_t) + 4}};
    const r2_p2p_update_t add = {R2_P2P_ADD, 4, 1, 0};
    t_world_t *world = t_world_wired(47);
    t_node_t *node = &world->nodes[0], *owner = &world->nodes[T_STARVED];
    const uint64_t sum = (uint64_t) (uintptr_t) owner->sums, later = 1000;

    (void) state;
    t_starve(world, kinds, r2_array_count(kinds));
    node->puts_open = 2;
    assert_int_equal(r2_p2p_update(node->p2p, T_STARVED, &node->old, sum, &add, t_op(node)),
                     R2_IN_PROGRESS);
    t_run_for(world, R2_NS_PER_MS);
    assert_int_equal(owner->p2p->waiting_count, 1);
    assert_int_equal(r2_p2p_put(node->p2p, T_STARVED, &later, sum, sizeof(later), t_op(node)),
                     R2_IN_PROGRESS);
    t_run_for(world, R2_NS_PER_MS);
    assert_int_equal(owner->p2p->waiting_count, 2);
    assert_int_equal(owner->sums[0], 0);
    t_feed();
    t_run_for(world, T_LIMIT_NS);
    assert_int_equal(node->puts_open, 0);
    assert_int_equal(node->old, 0);
    assert_int_equal(owner->sums[0], later);
    t_world_free(world);
}

static void t_note_status(r2_p2p_op_t *op, r2_status_t status)
{
    *(r2_status_t *) op->arg = status;
}

/* It never has any again: the peer is given up after a while, and the user can end the job. */
static void test_never_again(void **state)
{
    t_world_t *world = t_world_wired(42);
    t_node_t *node = &world->nodes[0], *owner = &world->nodes[T_STARVED];
    r2_status_t status = R2_IN_PROGRESS;
    r2_p2p_op_t op = {.done = t_note_status, .arg = &status};

    (void) state;
    t_starve(world, t_answers, r2_array_count(t_answers));
    node->puts_open = 1; /* it goes on until that time */
    assert_int_equal(r2_p2p_get(node->p2p, T_STARVED, node->copy,
                                (uint64_t) (uintptr_t) owner->memory, R2_P2P_SHORT_BYTES, &op),
                     R2_IN_PROGRESS);
    t_run_for(world, R2_P2P_SHORT_NS - R2_NS_PER_S);
    assert_int_equal(owner->lost, 0);
    t_run_for(world, 2 * R2_NS_PER_S);
    assert_int_equal(owner->lost, 1);
    assert_int_equal(owner->p2p->waiting_count, 0);
    assert_null(owner->p2p->unsent);
    t_feed();
    t_world_free(world);
}

static void t_read_much(t_node_t *node, uint32_t count)
{
    uint64_t memory = (uint64_t) (uintptr_t) node->world->nodes[T_STARVED].memory;

    memset(node->copy, 0, T_GET_BYTES);
    for (uint32_t i = 0; i < count; ++i) {
        uint64_t offset =
            (uint64_t) i * R2_P2P_SHORT_BYTES % (T_GET_BYTES - R2_P2P_SHORT_BYTES + 1);

        ++node->puts_open;
        assert_int_equal(r2_p2p_get(node->p2p, T_STARVED, node->copy + offset, memory + offset,
                                    R2_P2P_SHORT_BYTES, t_op(node)),
                         R2_IN_PROGRESS);
    }
}

/* Many short reads: the answers under way are bounded, and a peer that does not take its own bars
 * nobody. */
static void test_many_reads(void **state)
{
    t_world_t *world = t_world_wired(43);
    t_node_t *owner = &world->nodes[T_STARVED], *away = &world->nodes[0], *other = &world->nodes[2];

    (void) state;
    t_read_much(away, T_READS);
    t_node_run(away);
    away->away_until_ns = r2_sim_now_ns(world->sim) + 2 * R2_NS_PER_S;
    t_run_for(world, 200 * R2_NS_PER_MS);
    assert_true(owner->waiting_max > 100);
    t_read_much(other, 50);
    t_run_for(world, 1500 * R2_NS_PER_MS);
    assert_int_equal(other->puts_open, 0);
    assert_int_not_equal(away->puts_open, 0);
    t_run_for(world, T_LIMIT_NS);
    assert_int_equal(away->puts_open, 0);
    assert_memory_equal(away->copy, owner->memory, T_GET_BYTES - R2_P2P_SHORT_BYTES + 1);
    assert_true(owner->answers_max < R2_P2P_ANSWERS_MAX + sizeof(r2_am_buf_t) +
                                         sizeof(r2_p2p_reply_t) + R2_P2P_SHORT_BYTES);
    t_finish(world);
}

/* An owner that says it could not send ends the get, with its status; what comes later is thrown
 * away. */
static void test_released_with_error(void **state)
{
    t_world_t *world = t_world_wired(44);
    t_node_t *node = &world->nodes[0], *owner = &world->nodes[T_STARVED];
    r2_get_request_t answer = {.id = node->p2p->next_get, .status = (int32_t) R2_ERR_NO_MEMORY};
    r2_status_t status = R2_IN_PROGRESS;
    r2_p2p_op_t op = {.done = t_note_status, .arg = &status};
    r2_am_buf_t *buf = r2_am_buf_new(owner->p2p, 0, R2_P2P_AM_RELEASE, sizeof(answer));

    (void) state;
    assert_non_null(buf);
    memcpy(buf->data, &answer, sizeof(answer));
    assert_int_equal(r2_p2p_get(node->p2p, T_STARVED, node->copy,
                                (uint64_t) (uintptr_t) owner->memory, T_GET_BYTES, &op),
                     R2_IN_PROGRESS);
    r2_core_enter(&owner->ctx->core);
    r2_am_buf_post(buf);
    r2_core_leave(&owner->ctx->core);
    node->puts_open = 1; /* it goes on until that time */
    t_run_for(world, R2_NS_PER_S);
    node->puts_open = 0;
    assert_int_equal(status, R2_ERR_NO_MEMORY);
    assert_null(node->p2p->gets);
    t_ask_all(world);
    t_run_for(world, T_LIMIT_NS);
    t_check_all(world);
    t_world_free(world);
}

/* A message that must be copied and cannot be is not sent. */
static void test_no_copy(void **state)
{
    static const t_kind_t kinds[] = {{false, R2_BLOCK_BYTES}};
    t_world_t *world = t_world_wired(45);
    t_node_t *node = &world->nodes[T_STARVED];
    t_head_t head = {T_STARVED, 0, 0, sizeof(head)};

    (void) state;
    r2_blocks_fini(&node->ctx->core.net.blocks); /* nothing is kept */
    t_starve(world, kinds, r2_array_count(kinds));
    world->turn = T_STARVED;
    assert_int_equal(r2_p2p_send(node->p2p, 0, 0, &head, sizeof(head), NULL), R2_ERR_NO_MEMORY);
    t_feed();
    assert_int_equal(r2_p2p_send(node->p2p, 0, 0, &head, sizeof(head), NULL), R2_OK);
    world->expected[0] = 1;
    t_finish(world);
}

/* Long messages that the user has had give their memory to the next ones, short ones at once. */
static void test_long_messages_take_turns(void **state)
{
    t_world_t *world = t_world_wired(47);
    t_node_t *node = &world->nodes[0];
    const r2_p2p_inbound_t *told;

    (void) state;
    t_send_bytes(&world->nodes[1], 0, 100);
    t_run_for(world, R2_NS_PER_S);
    assert_int_equal(node->received, 1);
    assert_null(node->p2p->told);
    for (uint32_t i = 2; i < 6; ++i) {
        t_send_bytes(&world->nodes[1], 0, 30000);
        t_run_for(world, R2_NS_PER_S);
        assert_int_equal(node->received, i);
        told = node->p2p->told;
        assert_non_null(told);
        assert_null(told->next);
        assert_int_equal(told->bytes, 30000);
    }
    t_world_free(world);
}

/* What cannot be told for want of memory is told later. */
static void test_no_news(void **state)
{
    static const t_kind_t kinds[] = {{false, sizeof(r2_p2p_loss_t)}};
    t_world_t *world = t_world_wired(46);
    t_node_t *node = &world->nodes[T_STARVED];

    (void) state;
    r2_core_enter(&node->ctx->core);
    r2_p2p_lost(node->p2p, 0, R2_ERR_NO_PATH);
    r2_core_leave(&node->ctx->core);
    t_starve(world, kinds, r2_array_count(kinds));
    t_node_run(node);
    assert_int_equal(node->lost, 0);
    t_feed();
    t_node_run(node);
    assert_int_equal(node->lost, 1);
    t_world_free(world);
}

/* What was written over a connection in part is written again when that is closed. */
static void test_behind_a_fence(void **state)
{
    t_world_t *world = t_world_wired(31);
    t_node_t *node = &world->nodes[0], *peer = &world->nodes[T_STARVED];
    const r2_link_t *link = r2_core_link(&peer->ctx->core, 0);
    const uint64_t connection = link->lanes[0].connect.rx_connection;

    (void) state;
    memset(node->copy, 0x77, T_LONG);
    r2_core_enter(&node->ctx->core);
    node->puts_open = 1;
    assert_int_equal(r2_p2p_put_fenced(node->p2p, T_STARVED, node->copy,
                                       (uint64_t) (uintptr_t) peer->memory, T_LONG, connection,
                                       t_op(node)),
                     R2_IN_PROGRESS);
    r2_core_leave(&node->ctx->core);
    t_run_for(world, R2_NS_PER_S);
    assert_int_equal(node->puts_open, 0);
    assert_memory_equal(peer->memory, node->copy, T_LONG);
    assert_int_equal(peer->ctx->core.counters.direct_fences, 1);
    assert_int_not_equal(link->lanes[0].connect.rx_connection, connection);
    assert_int_equal(peer->ctx->core.counters.lanes_failed, 0);
    t_world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_behind_a_fence),
        cmocka_unit_test(test_no_answers),  cmocka_unit_test(test_no_states),
        cmocka_unit_test(test_no_messages), cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_never_again),
        cmocka_unit_test(test_many_reads),  cmocka_unit_test(test_released_with_error),
        cmocka_unit_test(test_no_copy),     cmocka_unit_test(test_no_news),
        cmocka_unit_test(test_long_messages_take_turns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
