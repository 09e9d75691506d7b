/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The engine with data: bounded packing, copies, staging memory, code of the user.
 */
#include "exec_links.h"
#include "r2/prng.h"

/* A buffer where the packed stream is stored backwards. */
static void backwards(void *arg, uint64_t offset, void *packed, uint64_t bytes, bool unpack)
{
    uint8_t *buffer = arg;

    for (uint64_t i = 0; i < bytes; ++i) {
        uint8_t *there = &buffer[999 - offset - i], *here = (uint8_t *) packed + i;

        *(unpack ? there : here) = *(unpack ? here : there);
    }
}

/* Three sends of 60 bytes with room for 100: one at a time; a receive behind them is not held
 * up. */
static void packed_sends_are_bounded(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint8_t in[1000], out[1000] = {0};
    r2_exec_args_t args = arguments(NULL, NULL);

    (void) state;
    for (int i = 0; i < 1000; ++i) {
        in[i] = (uint8_t) (i * 3);
    }
    args.convertors[0] = (r2_convertor_t){.move = backwards, .arg = in};
    args.convertors[1] = (r2_convertor_t){.move = backwards, .arg = out};
    r2_schedule_init(&schedule);
    add_sends(&schedule, 3, 60);
    r2_schedule_add(
        &schedule,
        &(r2_op_t){.kind = R2_OP_RECV, .peer = 1, .tag = 9, .bytes = 4, .dst = {R2_BUF_OUT, 5}},
        NULL, 0);
    start(&exec, &schedule, &args);
    assert_int_equal(call_count, 2);
    assert_true(calls[0].send && !calls[1].send);
    assert_int_equal((uint8_t) calls[0].data[0], in[999]);
    assert_int_equal((uint8_t) calls[0].data[59], in[940]);
    calls[1].sink(calls[1].arg, 2, "ab", 2);
    assert_int_equal(out[999 - 7], 'a');
    assert_int_equal(exec.packed_bytes, 60);
    complete(0, R2_OK);
    r2_engine_run(&engine, true);
    assert_int_equal(call_count, 3);
    assert_int_equal((uint8_t) calls[2].data[0], in[999 - 60]);
    complete(1, R2_OK);
    complete(2, R2_OK);
    r2_engine_run(&engine, true);
    assert_int_equal(call_count, 4);
    assert_null(r2_engine_collect(&engine));
    complete(3, R2_OK);
    assert_ptr_equal(r2_engine_collect(&engine), &exec);
    assert_int_equal(exec.packed_bytes, 0);
    r2_exec_fini(&exec);
}

/*
 * Sends that become ready late, of lower steps than what fills the room, do not wait for it: peers
 * may take what is under way only after them.
 */
static void the_lowest_send_has_room(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint8_t in[1000] = {0};
    r2_exec_args_t args = arguments(NULL, NULL);
    uint32_t recv;

    (void) state;
    args.convertors[0] = (r2_convertor_t){.move = backwards, .arg = in};
    r2_schedule_init(&schedule);
    recv = r2_schedule_add(
        &schedule,
        &(r2_op_t){.kind = R2_OP_RECV, .peer = 1, .tag = 9, .bytes = 8, .dst = {R2_BUF_SCRATCH, 0}},
        NULL, 0);
    schedule.scratch_bytes = 8;
    for (uint32_t i = 0; i < 4; ++i) { /* the first two after the receive, the others at once */
        const uint32_t deps[] = {recv};

        r2_schedule_add(&schedule,
                        &(r2_op_t){.kind = R2_OP_SEND,
                                   .peer = 1,
                                   .tag = i,
                                   .bytes = 60,
                                   .src = {R2_BUF_IN, 60 * (uint64_t) i}},
                        deps, i < 2 ? 1 : 0);
    }
    start(&exec, &schedule, &args);
    assert_int_equal(call_count, 2); /* the receive, and one send fills the room */
    assert_int_equal(calls[1].tag, 2);
    complete(0, R2_OK);
    r2_engine_run(&engine, true);
    assert_int_equal(call_count, 3); /* beyond the bound */
    assert_int_equal(calls[2].tag, 0);
    complete(2, R2_OK);
    r2_engine_run(&engine, true);
    assert_int_equal(call_count, 4);
    assert_int_equal(calls[3].tag, 1);
    complete(1, R2_OK);
    complete(3, R2_OK);
    r2_engine_run(&engine, true);
    assert_int_equal(call_count, 5);
    assert_int_equal(calls[4].tag, 3);
    complete(4, R2_OK);
    assert_ptr_equal(r2_engine_collect(&engine), &exec);
    assert_int_equal(exec.status, R2_OK);
    r2_exec_fini(&exec);
}

/* One send larger than the bound goes alone; an abort in between frees what is packed. */
static void too_large_to_pack_goes_alone(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint8_t in[1000] = {0};
    r2_exec_args_t args = arguments(NULL, NULL);

    (void) state;
    args.convertors[0] = (r2_convertor_t){.move = backwards, .arg = in};
    r2_schedule_init(&schedule);
    add_sends(&schedule, 2, 400);
    start(&exec, &schedule, &args);
    assert_int_equal(call_count, 1);
    r2_exec_abort(&exec, R2_ERR_PEER_GONE);
    r2_engine_run(&engine, true);
    assert_int_equal(call_count, 1);
    assert_ptr_equal(r2_engine_collect(&engine), &exec);
    assert_int_equal(exec.status, R2_ERR_PEER_GONE);
    r2_exec_fini(&exec);
}

/* Copies between buffers with convertors go through pieces. */
static void copies_move(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint8_t in[1000], out[1000];
    r2_exec_args_t args = arguments(in, NULL);

    (void) state;
    for (int i = 0; i < 1000; ++i) {
        in[i] = (uint8_t) (i * 3);
    }
    args.convertors[1] = (r2_convertor_t){.move = backwards, .arg = out};
    r2_schedule_init(&schedule);
    r2_schedule_add(
        &schedule,
        &(r2_op_t){
            .kind = R2_OP_COPY, .bytes = 1000, .src = {R2_BUF_IN, 0}, .dst = {R2_BUF_OUT, 0}},
        NULL, 0);
    start(&exec, &schedule, &args);
    for (int i = 0; i < 1000; ++i) {
        assert_int_equal(out[999 - i], in[i]);
    }
    assert_ptr_equal(r2_engine_collect(&engine), &exec);
    r2_exec_fini(&exec);
}

/* Staging memory goes from one run to the next. */
static void staging_memory_is_kept(void **state)
{
    r2_exec_args_t args = arguments(NULL, NULL);
    uint64_t lengths[] = {100, 5000, 4200};
    const char *before = NULL;

    (void) state;
    for (int i = 0; i < 3; ++i) {
        r2_schedule_t schedule;
        r2_exec_t exec;

        r2_schedule_init(&schedule);
        schedule.scratch_bytes = lengths[i];
        start(&exec, &schedule, &args);
        assert_int_equal((uintptr_t) exec.scratch % 64, 0);
        memset(exec.scratch, 1, lengths[i]);
        assert_true(0 == R2_POOL_KEEP || 2 != i || exec.scratch == before);
        before = exec.scratch;
        assert_ptr_equal(r2_engine_collect(&engine), &exec);
        r2_exec_fini(&exec);
        r2_exec_fini(&exec); /* nothing */
    }
}

/* What is kept is bounded, and long blocks make room for short ones. */
static void kept_memory_is_bounded(void **state)
{
    const size_t lengths[] = {0, 1, 64, 65, 4096, 10000, 200000, 600000, (1 << 20) + 1};
    void *taken[r2_array_count(lengths)];
    r2_prng_t prng;

    (void) state;
    r2_prng_seed(&prng, 3);
    for (int round = 0; round < 200; ++round) {
        for (size_t i = 0; i < r2_array_count(lengths); ++i) {
            taken[i] = r2_blocks_get(&engine.blocks, lengths[i]);
            assert_non_null(taken[i]);
            memset(taken[i], round, lengths[i]);
        }
        for (size_t i = 0; i < r2_array_count(lengths); ++i) {
            r2_blocks_put(&engine.blocks, taken[i], lengths[i]);
            assert_true(engine.blocks.kept_bytes <= (1 << 20));
        }
    }
    assert_true(0 == R2_POOL_KEEP || engine.blocks.kept_bytes > (1 << 18));
    assert_null(r2_blocks_get(&engine.blocks, SIZE_MAX / 2));
    r2_blocks_put(&engine.blocks, NULL, 100);
}

/* Runs of one program at the same time: what one does is nothing to the others. */
static void runs_share_a_program(void **state)
{
    enum { RUNS = 8 };
    r2_schedule_t schedule;
    r2_program_t *program;
    r2_exec_t exec[RUNS];
    uint8_t in[30];
    r2_exec_args_t args = arguments(in, in);

    (void) state;
    r2_schedule_init(&schedule);
    add_sends(&schedule, 3, 10);
    assert_int_equal(r2_program_create(&schedule, &program), R2_OK);
    r2_schedule_fini(&schedule);
    for (int i = 0; i < RUNS; ++i) {
        assert_int_equal(r2_exec_init(&exec[i], &engine, &args, r2_program_get(program)), R2_OK);
        r2_exec_start(&exec[i]);
    }
    assert_int_equal(program->users, RUNS + 1);
    r2_program_put(program); /* forgotten: those under way go on */
    r2_engine_run(&engine, true);
    assert_int_equal(call_count, 3 * RUNS);
    for (uint32_t i = call_count; i-- > 0;) {
        complete(i, 0 == i ? R2_ERR_NO_PATH : R2_OK);
    }
    for (int i = RUNS; i-- > 0;) {
        assert_ptr_equal(r2_engine_collect(&engine), &exec[i]);
        assert_int_equal(exec[i].status, 0 == i ? R2_ERR_NO_PATH : R2_OK);
        r2_exec_fini(&exec[i]);
    }
}

static uint32_t moved; /* calls of count_moves() */

static void count_moves(void *arg, uint64_t offset, void *packed, uint64_t bytes, bool unpack)
{
    ++moved;
    backwards(arg, offset, packed, bytes, unpack);
}

/* Runs that call code of the user wait for a thread of his; others behind them do not. */
static void code_of_the_user_waits_for_his_thread(void **state)
{
    enum { USER_OP, MOVER, PREDEFINED, RUNS };
    const r2_region_t in = {R2_BUF_IN, 0}, out = {R2_BUF_OUT, 0};
    static uint8_t source[1000] = {1}, result[RUNS][1000]; /* as backwards() has it */
    r2_exec_t exec[RUNS];

    (void) state;
    moved = 0;
    for (int i = 0; i < RUNS; ++i) {
        r2_exec_args_t args = arguments(source, result[i]);
        r2_schedule_t schedule;
        const r2_op_t op = {
            .kind = MOVER == i ? R2_OP_COPY : R2_OP_REDUCE, .bytes = 10, .src = in, .dst = out};

        args.any_thread = USER_OP != i;
        if (MOVER == i) {
            args.convertors[1] = (r2_convertor_t){.move = count_moves, .arg = result[i]};
        }
        r2_schedule_init(&schedule);
        r2_schedule_add(&schedule, &op, NULL, 0);
        prepare(&exec[i], &schedule, &args);
    }
    assert_int_equal(r2_engine_run(&engine, false), 1);
    assert_int_equal(reduced, 10);
    assert_int_equal(moved, 0);
    assert_ptr_equal(r2_engine_collect(&engine), &exec[PREDEFINED]);
    assert_int_equal(r2_engine_run(&engine, false), 0);
    assert_int_equal(r2_engine_run(&engine, true), 2);
    assert_int_equal(reduced, 20);
    assert_int_equal(moved, 1);
    assert_ptr_equal(r2_engine_collect(&engine), &exec[USER_OP]);
    assert_ptr_equal(r2_engine_collect(&engine), &exec[MOVER]);
    for (int i = 0; i < RUNS; ++i) {
        r2_exec_fini(&exec[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(packed_sends_are_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_lowest_send_has_room, set_up, tear_down),
        cmocka_unit_test_setup_teardown(too_large_to_pack_goes_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(copies_move, set_up, tear_down),
        cmocka_unit_test_setup_teardown(staging_memory_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(kept_memory_is_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(runs_share_a_program, set_up, tear_down),
        cmocka_unit_test_setup_teardown(code_of_the_user_waits_for_his_thread, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
