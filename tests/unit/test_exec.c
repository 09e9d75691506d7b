/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The engine over links that the test plays: order of ops, errors.
 */
#include "exec_links.h"
#include "r2/prng.h"

/* recv into scratch; reduce it into out; send out: each only after the one before. */
static void ops_wait_for_each_other(void **state)
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
        &(r2_op_t){.kind = R2_OP_COPY, .bytes = 8, .src = {R2_BUF_IN, 0}, .dst = {R2_BUF_OUT, 0}},
        NULL, 0);
    recv = r2_schedule_add(
        &schedule,
        &(r2_op_t){.kind = R2_OP_RECV, .peer = 1, .tag = 7, .bytes = 8, .dst = {R2_BUF_SCRATCH, 0}},
        NULL, 0);
    reduce = r2_schedule_add(
        &schedule,
        &(r2_op_t){
            .kind = R2_OP_REDUCE, .bytes = 8, .src = {R2_BUF_SCRATCH, 0}, .dst = {R2_BUF_OUT, 0}},
        (uint32_t[]){copy, recv, R2_OP_NONE}, 3);
    r2_schedule_add(
        &schedule,
        &(r2_op_t){.kind = R2_OP_SEND, .peer = 2, .tag = 8, .bytes = 8, .src = {R2_BUF_OUT, 0}},
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

static void add_op(r2_schedule_t *schedule, r2_prng_t *prng)
{
    uint32_t deps[12], count = 0, before = schedule->op_count;

    for (uint32_t i = 0; before > 0 && i < r2_prng_below(prng, 12); ++i) {
        deps[count++] =
            r2_prng_chance(prng, 100000) ? R2_OP_NONE : (uint32_t) r2_prng_below(prng, before);
    }
    r2_schedule_add(
        schedule,
        &(r2_op_t){
            .kind = R2_OP_RECV, .peer = 1, .tag = before, .bytes = 1, .dst = {R2_BUF_OUT, 0}},
        deps, count);
}

/* An op is started when, and only when, all it waits for is complete: random schedules and
 * orders. */
static void random_schedules(void **state)
{
    r2_prng_t prng;
    uint8_t out[1];
    r2_exec_args_t args = arguments(NULL, out);

    (void) state;
    r2_prng_seed(&prng, 11);
    for (int round = 0; round < 300; ++round) {
        uint32_t count = (uint32_t) r2_prng_between(&prng, 1, 60), seen = 0, over = 0;
        bool started[64] = {false}, complete_op[64] = {false};
        r2_schedule_t schedule;
        r2_exec_t exec;

        call_count = 0;
        r2_schedule_init(&schedule);
        for (uint32_t i = 0; i < count; ++i) {
            add_op(&schedule, &prng);
        }
        start(&exec, &schedule, &args);
        while (over < count) {
            uint32_t pick;

            for (; seen < call_count; ++seen) {
                assert_false(started[calls[seen].tag]);
                started[calls[seen].tag] = true;
            }
            for (uint32_t i = 0; i < count; ++i) {
                const r2_op_t *op = &exec.schedule->ops[i];
                bool may = true;

                for (uint32_t d = 0; d < op->dep_count; ++d) {
                    may = may && complete_op[exec.schedule->deps[op->first_dep + d]];
                }
                assert_int_equal(started[i], may);
            }
            do {
                pick = (uint32_t) r2_prng_below(&prng, call_count);
            } while (calls[pick].over);
            complete_op[calls[pick].tag] = true;
            ++over;
            complete(pick, R2_OK);
            r2_engine_run(&engine, true);
        }
        assert_int_equal(call_count, count);
        assert_ptr_equal(r2_engine_collect(&engine), &exec);
        r2_exec_fini(&exec);
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
    r2_exec_abort(&exec, R2_ERR_PEER_GONE);
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

/* A run of sends of 10 bytes each that copies so many bytes at most. */
static void start_sends(r2_exec_t *exec, uint32_t count, uint64_t keep_bytes)
{
    static const uint8_t in[30];
    r2_schedule_t schedule;
    r2_exec_args_t args = arguments(in, NULL);

    call_count = kept = 0;
    args.keep_bytes = keep_bytes;
    r2_schedule_init(&schedule);
    add_sends(&schedule, count, 10);
    start(exec, &schedule, &args);
    assert_int_equal(call_count, count);
}

static void end(r2_exec_t *exec, uint32_t copies)
{
    assert_int_equal(kept, copies);
    assert_ptr_equal(r2_engine_collect(&engine), exec);
    assert_int_equal(exec->status, R2_OK);
    assert_null(engine.ending);
    assert_null(engine.ready);
    r2_exec_fini(exec);
}

/* What is only to be acknowledged is copied, and the run is over. */
static void acknowledgements_are_not_waited_for(void **state)
{
    r2_exec_t exec;

    (void) state;
    may_keep = true;
    start_sends(&exec, 3, 30);
    end(&exec, 3);

    start_sends(&exec, 3, 29); /* too much */
    assert_null(r2_engine_collect(&engine));
    complete(1, R2_OK);
    assert_int_equal(kept, 0);
    assert_int_equal(r2_engine_run(&engine, false), 0);
    end(&exec, 2);

    may_keep = false; /* not handed over yet: looked at again in each pass, and asked for once */
    asked = 0;
    start_sends(&exec, 2, 30);
    assert_int_equal(asked, 2);
    r2_engine_run(&engine, true);
    assert_int_equal(asked, 2);
    assert_null(r2_engine_collect(&engine));
    may_keep = true;
    r2_engine_run(&engine, true);
    end(&exec, 2);

    keep_most = 1;
    start_sends(&exec, 2, 30);
    assert_int_equal(kept, 1);
    assert_null(r2_engine_collect(&engine));
    complete(1, R2_OK);
    end(&exec, 1);

    may_keep = false;
    start_sends(&exec, 2, 30);
    complete(0, R2_ERR_NO_PATH);
    assert_ptr_equal(r2_engine_collect(&engine), &exec);
    assert_null(engine.ending);
    r2_exec_fini(&exec);
}

/* Who sends little in all has it copied when it is sent. */
static void short_runs_send_copies(void **state)
{
    for (uint64_t copy_bytes = 29; copy_bytes <= 30; ++copy_bytes) {
        r2_schedule_t schedule;
        r2_exec_t exec;
        uint8_t in[30];
        r2_exec_args_t args = arguments(in, NULL);

        (void) state;
        call_count = 0;
        args.copy_bytes = copy_bytes;
        r2_schedule_init(&schedule);
        add_sends(&schedule, 3, 10);
        start(&exec, &schedule, &args);
        assert_int_equal(was_brief, 30 == copy_bytes);
        r2_exec_abort(&exec, R2_ERR_CANCELED);
        assert_ptr_equal(r2_engine_collect(&engine), &exec);
        r2_exec_fini(&exec);
    }
}

/* Nothing is copied while the run has to wait for something else. */
static void what_others_send_is_waited_for(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint8_t in[20], out[1];
    r2_exec_args_t args = arguments(in, out);

    (void) state;
    may_keep = true;
    args.keep_bytes = 100;
    r2_schedule_init(&schedule);
    add_sends(&schedule, 2, 10);
    r2_schedule_add(
        &schedule,
        &(r2_op_t){.kind = R2_OP_RECV, .peer = 1, .tag = 9, .bytes = 1, .dst = {R2_BUF_OUT, 0}},
        NULL, 0);
    start(&exec, &schedule, &args);
    r2_engine_run(&engine, true);
    assert_int_equal(kept, 0);
    complete(0, R2_OK);
    complete(2, R2_OK);
    r2_engine_run(&engine, true);
    end(&exec, 1);
}

/* What a SEND op passes on leaves as it comes; one that waits for more, or sends a part, waits. */
static void chunks_are_passed_on(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint8_t in[40], out[40];
    r2_exec_args_t args = arguments(in, out);
    const r2_op_t recv = {
        .kind = R2_OP_RECV, .peer = 1, .tag = 7, .bytes = 40, .dst = {R2_BUF_OUT, 0}};
    r2_op_t send = {.kind = R2_OP_SEND, .peer = 2, .tag = 8, .bytes = 40, .src = {R2_BUF_OUT, 0}};
    uint32_t arrived;

    (void) state;
    r2_schedule_init(&schedule);
    schedule.chunk_bytes = 10;
    arrived = r2_schedule_add(&schedule, &recv, NULL, 0);
    r2_schedule_add(&schedule, &send, &arrived, 1);
    send.tag = 9;
    send.bytes = 30;
    r2_schedule_add(&schedule, &send, &arrived, 1);
    start(&exec, &schedule, &args);
    assert_int_equal(call_count, 2);
    assert_true(calls[0].send && calls[0].filling && 8 == calls[0].tag);
    assert_false(calls[1].send);
    calls[1].arrived(calls[1].arg, 20);
    assert_int_equal(calls[0].ready, 20);
    complete(1, R2_OK);
    assert_int_equal(calls[0].ready, 40);
    r2_engine_run(&engine, true);
    assert_int_equal(call_count, 3);
    assert_true(!calls[2].filling && 9 == calls[2].tag);
    complete(0, R2_OK);
    complete(2, R2_OK);
    end(&exec, 0);
}

/* Not where messages say whether a map is pending: what comes may say so at its end. */
static void what_carries_waits(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint8_t in[40], out[40];
    r2_exec_args_t args = arguments(in, out);
    r2_program_t *program;
    uint32_t arrived;

    (void) state;
    r2_schedule_init(&schedule);
    schedule.chunk_bytes = 10;
    arrived = r2_schedule_add(
        &schedule,
        &(r2_op_t){.kind = R2_OP_RECV, .peer = 1, .tag = 7, .bytes = 40, .dst = {R2_BUF_OUT, 0}},
        NULL, 0);
    r2_schedule_add(
        &schedule,
        &(r2_op_t){.kind = R2_OP_SEND, .peer = 2, .tag = 8, .bytes = 40, .src = {R2_BUF_OUT, 0}},
        &arrived, 1);
    assert_int_equal(r2_program_create(&schedule, &program), R2_OK);
    r2_schedule_fini(&schedule);
    assert_int_equal(r2_exec_init(&exec, &engine, &args, program), R2_OK);
    exec.carrying = true;
    r2_exec_start(&exec);
    r2_engine_run(&engine, true);
    assert_int_equal(call_count, 1);
    assert_null(calls[0].arrived);
    complete(0, R2_OK);
    r2_engine_run(&engine, true);
    assert_int_equal(call_count, 2);
    assert_false(calls[1].filling);
    complete(1, R2_OK);
    end(&exec, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ops_wait_for_each_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_to_do, set_up, tear_down),
        cmocka_unit_test_setup_teardown(random_schedules, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_error_ends_the_run_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(errors_at_the_start, set_up, tear_down),
        cmocka_unit_test_setup_teardown(acknowledgements_are_not_waited_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(short_runs_send_copies, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_others_send_is_waited_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(chunks_are_passed_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_carries_waits, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
