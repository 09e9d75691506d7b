/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The engine over links that the test plays: order of rows, errors, bounded packing.
 */
/* Their functions are reached, the links below take the place of the real ones. */
#include "exec/engine.c"
#include "exec/exec.c"
#include "exec/program.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/pool.h"
#include "base/util.h"
#include "r2/prng.h"

#define CALLS_MAX 256

/** A send or a receive that the engine started. */
typedef struct call {
    bool send, over;
    uint32_t tag;
    const char *data;
    uint64_t bytes;
    r2_link_done_fn_t done;
    r2_link_sink_fn_t sink;
    void *arg;
} call_t;

static call_t calls[CALLS_MAX];
static uint32_t call_count;
static r2_status_t next_status; /* of the next call; R2_IN_PROGRESS: by complete() */
static uint32_t refused_link;   /* rank whose link cannot be had; UINT32_MAX: none */

r2_status_t r2_net_link(r2_net_t *net, uint32_t rank, struct r2_link **link_p)
{
    (void) net;
    *link_p = NULL;
    return rank == refused_link ? R2_ERR_NOT_FOUND : R2_OK;
}

static r2_status_t note(bool send, uint32_t tag, const void *data, uint64_t bytes,
                        r2_link_done_fn_t done, r2_link_sink_fn_t sink, void *arg)
{
    r2_status_t status = next_status;

    assert_true(call_count < CALLS_MAX);
    calls[call_count++] =
        (call_t){send, R2_IN_PROGRESS != status, tag, data, bytes, done, sink, arg};
    next_status = R2_IN_PROGRESS;
    return status;
}

r2_status_t r2_link_send(r2_link_t *link, const r2_link_send_t *args)
{
    (void) link;
    return note(true, args->tag.row, args->data, args->bytes, args->done, NULL, args->arg);
}

r2_status_t r2_link_recv(r2_link_t *link, const r2_link_recv_t *args)
{
    (void) link;
    return note(false, args->tag.row, args->data, args->bytes, args->done, args->sink, args->arg);
}

static void complete(uint32_t call, r2_status_t status)
{
    assert_true(call < call_count && !calls[call].over);
    calls[call].over = true;
    calls[call].done(calls[call].arg, status);
}

static r2_engine_t engine;
static uint32_t reduced; /* elements */
static const uint32_t ranks[] = {0, 1, 2, 3};

static void add_bytes(void *arg, const void *in, void *inout, size_t count)
{
    (void) arg;
    for (size_t i = 0; i < count; ++i) {
        ((uint8_t *) inout)[i] = (uint8_t) (((uint8_t *) inout)[i] + ((const uint8_t *) in)[i]);
    }
    reduced += (uint32_t) count;
}

static int set_up(void **state)
{
    (void) state;
    r2_engine_init(&engine, NULL, 1 << 20);
    call_count = reduced = 0;
    next_status = R2_IN_PROGRESS;
    refused_link = UINT32_MAX;
    return 0;
}

static int tear_down(void **state)
{
    (void) state;
    r2_engine_fini(&engine);
    return 0;
}

static r2_exec_args_t arguments(const void *in, void *out)
{
    return (r2_exec_args_t){.in = in,
                            .out = out,
                            .reduce = add_bytes,
                            .element_bytes = 1,
                            .ranks = ranks,
                            .tag.comm_key = 1,
                            .pack_bytes = 100};
}

static void prepare(r2_exec_t *exec, r2_schedule_t *schedule, const r2_exec_args_t *args)
{
    r2_program_t *program;

    assert_int_equal(schedule->status, R2_OK);
    assert_int_equal(r2_program_create(schedule, &program), R2_OK);
    r2_schedule_fini(schedule);
    assert_int_equal(r2_exec_init(exec, &engine, args, program), R2_OK);
    r2_exec_start(exec);
}

static void start(r2_exec_t *exec, r2_schedule_t *schedule, const r2_exec_args_t *args)
{
    prepare(exec, schedule, args);
    r2_engine_run(&engine, true);
}

/* recv into scratch; reduce it into out; send out: each only after the one before. */
static void rows_wait_for_each_other(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint8_t in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8] = {0};
    r2_exec_args_t args = arguments(in, out);
    uint32_t copy, recv, reduce;

    (void) state;
    r2_schedule_init(&schedule);
    schedule.scratch_bytes = 8;
    copy = r2_schedule_add(
        &schedule,
        &(r2_row_t){.kind = R2_ROW_COPY, .bytes = 8, .src = {R2_BUF_IN, 0}, .dst = {R2_BUF_OUT, 0}},
        NULL, 0);
    recv = r2_schedule_add(
        &schedule,
        &(r2_row_t){
            .kind = R2_ROW_RECV, .peer = 1, .tag = 7, .bytes = 8, .dst = {R2_BUF_SCRATCH, 0}},
        NULL, 0);
    reduce = r2_schedule_add(
        &schedule,
        &(r2_row_t){
            .kind = R2_ROW_REDUCE, .bytes = 8, .src = {R2_BUF_SCRATCH, 0}, .dst = {R2_BUF_OUT, 0}},
        (uint32_t[]){copy, recv, R2_NO_ROW}, 3);
    r2_schedule_add(
        &schedule,
        &(r2_row_t){.kind = R2_ROW_SEND, .peer = 2, .tag = 8, .bytes = 8, .src = {R2_BUF_OUT, 0}},
        &reduce, 1);
    start(&exec, &schedule, &args);
    assert_memory_equal(in, out, 8);
    assert_int_equal(call_count, 1);
    assert_false(calls[0].send);
    assert_int_equal(calls[0].tag, 7);
    memset((char *) (uintptr_t) calls[0].data, 10, 8);
    complete(0, R2_OK);
    assert_int_equal(reduced, 0); /* callbacks only take note */
    assert_int_equal(r2_engine_run(&engine, true), 2);
    assert_int_equal(reduced, 8);
    assert_int_equal(out[7], 18);
    assert_int_equal(call_count, 2);
    assert_ptr_equal(calls[1].data, out);
    assert_null(r2_engine_collect(&engine));
    complete(1, R2_OK);
    assert_ptr_equal(r2_engine_collect(&engine), &exec);
    assert_int_equal(exec.status, R2_OK);
    assert_null(r2_engine_collect(&engine));
    r2_exec_fini(&exec);
}

static void nothing_to_do(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    r2_exec_args_t args = arguments(NULL, NULL);

    (void) state;
    r2_schedule_init(&schedule);
    start(&exec, &schedule, &args);
    assert_ptr_equal(r2_engine_collect(&engine), &exec);
    assert_int_equal(exec.status, R2_OK);
    r2_exec_fini(&exec);
}

static void add_row(r2_schedule_t *schedule, r2_prng_t *prng)
{
    uint32_t deps[12], count = 0, before = schedule->row_count;

    for (uint32_t i = 0; before > 0 && i < r2_prng_below(prng, 12); ++i) {
        deps[count++] =
            r2_prng_chance(prng, 100000) ? R2_NO_ROW : (uint32_t) r2_prng_below(prng, before);
    }
    r2_schedule_add(
        schedule,
        &(r2_row_t){
            .kind = R2_ROW_RECV, .peer = 1, .tag = before, .bytes = 1, .dst = {R2_BUF_OUT, 0}},
        deps, count);
}

/* A row is started when, and only when, all it waits for is complete: random schedules and orders.
 */
static void random_schedules(void **state)
{
    r2_prng_t prng;
    uint8_t out[1];
    r2_exec_args_t args = arguments(NULL, out);

    (void) state;
    r2_prng_seed(&prng, 11);
    for (int round = 0; round < 300; ++round) {
        uint32_t count = (uint32_t) r2_prng_between(&prng, 1, 60), seen = 0, over = 0;
        bool started[64] = {false}, complete_row[64] = {false};
        r2_schedule_t schedule;
        r2_exec_t exec;

        call_count = 0;
        r2_schedule_init(&schedule);
        for (uint32_t i = 0; i < count; ++i) {
            add_row(&schedule, &prng);
        }
        start(&exec, &schedule, &args);
        while (over < count) {
            uint32_t pick;

            for (; seen < call_count; ++seen) {
                assert_false(started[calls[seen].tag]);
                started[calls[seen].tag] = true;
            }
            for (uint32_t i = 0; i < count; ++i) {
                const r2_row_t *row = &exec.schedule->rows[i];
                bool may = true;

                for (uint32_t d = 0; d < row->dep_count; ++d) {
                    may = may && complete_row[exec.schedule->deps[row->first_dep + d]];
                }
                assert_int_equal(started[i], may);
            }
            do {
                pick = (uint32_t) r2_prng_below(&prng, call_count);
            } while (calls[pick].over);
            complete_row[calls[pick].tag] = true;
            ++over;
            complete(pick, R2_OK);
            r2_engine_run(&engine, true);
        }
        assert_int_equal(call_count, count);
        assert_ptr_equal(r2_engine_collect(&engine), &exec);
        r2_exec_fini(&exec);
    }
}

static void add_sends(r2_schedule_t *schedule, uint32_t count, uint64_t bytes)
{
    for (uint32_t i = 0; i < count; ++i) {
        r2_schedule_add(schedule,
                        &(r2_row_t){.kind = R2_ROW_SEND,
                                    .peer = 1,
                                    .tag = i,
                                    .bytes = bytes,
                                    .src = {R2_BUF_IN, i * bytes}},
                        NULL, 0);
    }
}

static void an_error_ends_the_run_once(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint8_t in[30];
    r2_exec_args_t args = arguments(in, in);

    (void) state;
    r2_schedule_init(&schedule);
    add_sends(&schedule, 3, 10);
    start(&exec, &schedule, &args);
    assert_int_equal(call_count, 3);
    complete(1, R2_ERR_NO_PATH);
    complete(0, R2_OK); /* late: changes nothing */
    complete(2, R2_ERR_PEER_GONE);
    r2_exec_abort(&exec, R2_ERR_POISONED);
    assert_ptr_equal(r2_engine_collect(&engine), &exec);
    assert_int_equal(exec.status, R2_ERR_NO_PATH);
    assert_null(r2_engine_collect(&engine));
    r2_exec_fini(&exec);
}

static void errors_at_the_start(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint8_t in[30];
    r2_exec_args_t args = arguments(in, in);

    (void) state;
    r2_schedule_init(&schedule);
    add_sends(&schedule, 3, 10);
    next_status = R2_ERR_NO_MEMORY;
    start(&exec, &schedule, &args);
    assert_int_equal(call_count, 1); /* nothing is started after the error */
    assert_ptr_equal(r2_engine_collect(&engine), &exec);
    assert_int_equal(exec.status, R2_ERR_NO_MEMORY);
    r2_exec_fini(&exec);

    refused_link = 1;
    r2_schedule_init(&schedule);
    add_sends(&schedule, 1, 10);
    start(&exec, &schedule, &args);
    assert_ptr_equal(r2_engine_collect(&engine), &exec);
    assert_int_equal(exec.status, R2_ERR_NOT_FOUND);
    r2_exec_fini(&exec);
}

/* A buffer where the packed stream is stored backwards. */
static void backwards(void *arg, uint64_t offset, void *packed, uint64_t bytes, bool unpack)
{
    uint8_t *buffer = arg;

    for (uint64_t i = 0; i < bytes; ++i) {
        uint8_t *there = &buffer[999 - offset - i], *here = (uint8_t *) packed + i;

        *(unpack ? there : here) = *(unpack ? here : there);
    }
}

/* Three sends of 60 bytes with room for 100: one at a time; a receive behind them is not held up.
 */
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
    args.movers[0] = (r2_mover_t){backwards, in};
    args.movers[1] = (r2_mover_t){backwards, out};
    r2_schedule_init(&schedule);
    add_sends(&schedule, 3, 60);
    r2_schedule_add(
        &schedule,
        &(r2_row_t){.kind = R2_ROW_RECV, .peer = 1, .tag = 9, .bytes = 4, .dst = {R2_BUF_OUT, 5}},
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
 * Sends that become ready late, of lower steps than what fills the room, do not wait for it: peers may take what is
 * under way only after them.
 */
static void the_lowest_send_has_room(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint8_t in[1000] = {0};
    r2_exec_args_t args = arguments(NULL, NULL);
    uint32_t recv;

    (void) state;
    args.movers[0] = (r2_mover_t){backwards, in};
    r2_schedule_init(&schedule);
    recv = r2_schedule_add(
        &schedule,
        &(r2_row_t){.kind = R2_ROW_RECV, .peer = 1, .tag = 9, .bytes = 8, .dst = {R2_BUF_SCRATCH, 0}},
        NULL, 0);
    schedule.scratch_bytes = 8;
    for (uint32_t i = 0; i < 4; ++i) { /* the first two after the receive, the others at once */
        const uint32_t deps[] = {recv};

        r2_schedule_add(&schedule,
                        &(r2_row_t){.kind = R2_ROW_SEND,
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
    args.movers[0] = (r2_mover_t){backwards, in};
    r2_schedule_init(&schedule);
    add_sends(&schedule, 2, 400);
    start(&exec, &schedule, &args);
    assert_int_equal(call_count, 1);
    r2_exec_abort(&exec, R2_ERR_POISONED);
    r2_engine_run(&engine, true);
    assert_int_equal(call_count, 1);
    assert_ptr_equal(r2_engine_collect(&engine), &exec);
    assert_int_equal(exec.status, R2_ERR_POISONED);
    r2_exec_fini(&exec);
}

/* Copies between buffers with movers go through pieces. */
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
    args.movers[1] = (r2_mover_t){backwards, out};
    r2_schedule_init(&schedule);
    r2_schedule_add(
        &schedule,
        &(r2_row_t){
            .kind = R2_ROW_COPY, .bytes = 1000, .src = {R2_BUF_IN, 0}, .dst = {R2_BUF_OUT, 0}},
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
        const r2_row_t row = {.kind = MOVER == i ? R2_ROW_COPY : R2_ROW_REDUCE,
                              .bytes = 10,
                              .src = in,
                              .dst = out};

        args.any_thread = USER_OP != i;
        if (MOVER == i) {
            args.movers[1] = (r2_mover_t){count_moves, result[i]};
        }
        r2_schedule_init(&schedule);
        r2_schedule_add(&schedule, &row, NULL, 0);
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
        cmocka_unit_test_setup_teardown(rows_wait_for_each_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_to_do, set_up, tear_down),
        cmocka_unit_test_setup_teardown(random_schedules, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_error_ends_the_run_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(errors_at_the_start, set_up, tear_down),
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
