/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Messages of GPU memory that are staged in pieces, on the driver of tests/fakecuda and links that
 * the test plays: which begin with their first piece, in which order ops begin, and how often
 * pieces are looked at.
 */
#include "r2_config.h"

#include <signal.h>
#include <sys/wait.h>

#include "exec_loans.h"

#define MIB (UINT64_C(1) << 20)
/* As slow as this, a message of 2 MiB takes a second: the test sees it while pieces are missing. */
#define SLOW "2"

enum { MIB_MOST = 16 };

static CUdeviceptr wide; /* so many MiB */

static int start_wide(void **state)
{
    start_loans(state);
    engine.loans.enabled = beside = is_busy = false;
    OK(cuMemAlloc(&wide, MIB_MOST * MIB));
    for (uint32_t i = 0; i < MIB_MOST * MIB / sizeof(i); ++i) {
        ((uint32_t *) (void *) seen(wide))[i] = i;
    }
    set("delay_us", "0");
    off = fakecuda_counter("bytes_d2h");
    return 0;
}

static int end_wide(void **state)
{
    beside = is_busy = reads_gpus = false;
    OK(cuMemFree(wide));
    return end_gpu(state);
}

#define T_WIDE(test) cmocka_unit_test_setup_teardown(test, start_wide, end_wide)

static void begin_wide(r2_exec_t *exec, r2_schedule_t *schedule)
{
    r2_exec_args_t args = arguments((void *) (uintptr_t) wide, (void *) (uintptr_t) out);

    args.at[0] = args.at[1] = place;
    assert_int_equal(r2_staging_follow(&engine.staging, &place), R2_OK);
    start(exec, schedule, &args);
}

static void send_wide(r2_exec_t *exec, uint64_t bytes)
{
    r2_schedule_t schedule;

    r2_schedule_init(&schedule);
    add(&schedule, R2_OP_SEND, in_at(0), none, bytes, R2_OP_NONE);
    begin_wide(exec, &schedule);
}

static uint32_t pieces_of(const r2_exec_t *exec, uint32_t op)
{
    return exec->stage->touch->src[op].end - exec->stage->touch->src[op].first;
}

/* Its first pieces are there, and not all. */
static void run_until_pieces(r2_exec_t *exec, uint32_t op)
{
    while (0 == exec->stage->ready_src[op]) {
        r2_engine_run(&engine, true);
        sched_yield();
    }
    r2_engine_run(&engine, true);
    assert_true(exec->stage->ready_src[op] < pieces_of(exec, op));
}

static void a_message_begins_with_its_first_piece(void **state)
{
    r2_exec_t exec;

    (void) state;
    set("copy_mbytes_per_s", SLOW);
    send_wide(&exec, 2 * MIB);
    run_until_pieces(&exec, 0);
    assert_int_equal(call_count, 1);
    assert_true(calls[0].filling && calls[0].ready > 0 && calls[0].ready < 2 * MIB);
    assert_memory_equal(calls[0].data, seen(wide), calls[0].ready);
    set("copy_mbytes_per_s", "0");
    while (calls[0].ready < 2 * MIB) {
        r2_engine_run(&engine, true);
        sched_yield();
    }
    assert_memory_equal(calls[0].data, seen(wide), 2 * MIB);
    assert_int_equal(call_count, 1);
    ends_with(&exec, 0);
}

/* It leaves when all of it is loaded, as memory of the host. */
static void goes_whole(void)
{
    r2_exec_t exec;

    set("copy_mbytes_per_s", SLOW);
    send_wide(&exec, 2 * MIB);
    run_until_pieces(&exec, 0);
    assert_int_equal(call_count, 0);
    set("copy_mbytes_per_s", "0");
    run_until_calls(1);
    assert_false(calls[0].filling);
    assert_memory_equal(calls[0].data, seen(wide), 2 * MIB);
    ends_with(&exec, 0);
}

static void where_lanes_are_busy_it_goes_whole(void **state)
{
    (void) state;
    is_busy = true;
    goes_whole();
}

static void within_a_host_it_goes_whole(void **state)
{
    (void) state;
    beside = true;
    goes_whole();
}

/* A message of 2 MiB that NICs read, beside a short one to receive. @return op of that. */
static uint32_t nics_read_a_send(r2_schedule_t *schedule)
{
    uint32_t recv;

    engine.staging.nic_bytes = 2 * MIB;
    reads_gpus = true;
    r2_schedule_init(schedule);
    schedule->scratch_bytes = PIECE;
    recv = add(schedule, R2_OP_RECV, none, none, PIECE, R2_OP_NONE);
    add(schedule, R2_OP_SEND, in_at(0), none, 2 * MIB, R2_OP_NONE);
    return recv;
}

/* What NICs were to read, and has to be loaded after all, is the message that has begun: also where
 * an op has loaded a part of it. */
static void what_is_fetched_does_not_begin_again(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint32_t recv;

    (void) state;
    recv = nics_read_a_send(&schedule);
    add(&schedule, R2_OP_SEND, in_at(0), none, MIB, recv);
    begin_wide(&exec, &schedule);
    run_until_calls(2);
    assert_call(1, true, 1);
    assert_true(0 != calls[1].gpu.gpu_id);
    complete(0, R2_OK);
    run_until_calls(3);
    assert_true(0 == calls[2].gpu.gpu_id);
    while (exec.ops[2].filling) { /* in pieces, or whole */
        r2_engine_run(&engine, true);
    }
    complete(2, R2_OK);
    set("copy_mbytes_per_s", SLOW);
    calls[1].fetch(calls[1].arg);
    run_until_pieces(&exec, 1);
    assert_null(calls[1].fetched);
    set("copy_mbytes_per_s", "0");
    while (NULL == calls[1].fetched) {
        r2_engine_run(&engine, true);
        sched_yield();
    }
    assert_memory_equal(calls[1].fetched, seen(wide), 2 * MIB);
    assert_int_equal(call_count, 3);
    ends_with(&exec, 1);
}

/* A SEND op before another, and later ready. Loads come in the order of ops: its own is there
 * first. */
static void ops_that_wait_begin_in_their_order(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint32_t recv;

    (void) state;
    r2_schedule_init(&schedule);
    schedule.scratch_bytes = 3 * PIECE;
    recv = add(&schedule, R2_OP_RECV, none, none, PIECE, R2_OP_NONE);
    add(&schedule, R2_OP_SEND, in_at(0), none, PIECE, recv);
    add(&schedule, R2_OP_SEND, in_at(PIECE), none, PIECE, recv);
    add(&schedule, R2_OP_SEND, in_at(MIB), none, PIECE, R2_OP_NONE);
    add(&schedule, R2_OP_SEND, in_at(2 * MIB), none, PIECE, R2_OP_NONE);
    close_gate(NULL, &gate);
    begin_wide(&exec, &schedule);
    run_a_while();
    assert_int_equal(exec.stage->waiting_count, 2);
    complete(0, R2_OK);
    run_a_while();
    assert_int_equal(call_count, 1);
    assert_int_equal(exec.stage->waiting_count, 4);
    sem_post(&gate);
    run_until_calls(5);
    for (uint32_t i = 1; i < 5; ++i) {
        assert_call(i, true, i);
        complete(i, R2_OK);
    }
    ends(&exec, R2_OK);
}

/* What has begun leaves its place to what waits again: the list is as long as the schedule. */
static void an_op_may_wait_again(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;

    (void) state;
    engine.staging.nic_bytes = PIECE;
    reads_gpus = true;
    r2_schedule_init(&schedule);
    add(&schedule, R2_OP_SEND, in_at(0), none, PIECE, R2_OP_NONE);
    add(&schedule, R2_OP_SEND, in_at(PIECE), none, PIECE - 1, R2_OP_NONE);
    close_gate(NULL, &gate);
    begin_wide(&exec, &schedule);
    assert_int_equal(exec.stage->waiting_count, 2);
    sem_post(&gate);
    run_until_calls(2);
    set("copy_mbytes_per_s", "1");
    calls[0].fetch(calls[0].arg);
    while (NULL == calls[0].fetched) {
        r2_engine_run(&engine, true);
        assert_true(exec.stage->waiting_head + exec.stage->waiting_count <= 2);
    }
    assert_memory_equal(calls[0].fetched, seen(wide), PIECE);
    complete(1, R2_OK);
    ends_with(&exec, 0);
}

/* @return how often pieces of a message were looked at, less once for each time that the run was
 * gone through; a piece came each time. */
static uint64_t looks(uint64_t bytes, uint32_t *pieces_p)
{
    r2_exec_t exec;
    uint64_t polls = 0, looked;

    set("copy_mbytes_per_s", "400");
    send_wide(&exec, bytes);
    *pieces_p = pieces_of(&exec, 0);
    while (exec.stage->ready_src[0] < *pieces_p) {
        r2_engine_run(&engine, true);
        ++polls;
        sched_yield();
    }
    looked = exec.stage->looked;
    set("copy_mbytes_per_s", "0");
    run_until_calls(1);
    ends_with(&exec, 0);
    call_count = 0;
    return looked > polls ? looked - polls : 0;
}

static void pieces_are_looked_at_once(void **state)
{
    uint32_t pieces;

    (void) state;
    for (uint64_t mib = 2; mib <= MIB_MOST; mib *= 2) {
        const uint64_t looked = looks(mib * MIB, &pieces);

        print_message("%2u MiB: %u pieces, %u looks\n", (unsigned) mib, pieces, (unsigned) looked);
        assert_true(pieces >= 4 * mib);
        assert_true(looked <= 2 * pieces + 2);
    }
}

static uint32_t missing_of(const r2_staged_side_t *side, const r2_touch_span_t *span)
{
    uint32_t count = 0;

    for (uint32_t s = span->first; s < span->end; ++s) {
        count += R2_STAGE_MISSING == side->loaded[s] ? 1 : 0;
    }
    return count;
}

enum { ISLANDS = 4 };

/* What NICs were to read is fetched while others have some pieces of it loaded: what is missing
 * between those does not wait for them. */
static void what_is_missing_is_loaded_together(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint32_t recv;

    (void) state;
    recv = nics_read_a_send(&schedule);
    for (uint32_t i = 0; i < ISLANDS; ++i) {
        add(&schedule, R2_OP_SEND, in_at(i * MIB / 2), none, MIB / 4, recv);
    }
    begin_wide(&exec, &schedule);
    run_until_calls(2);
    assert_call(1, true, 1);
    set("copy_mbytes_per_s", "4");
    complete(0, R2_OK);
    r2_engine_run(&engine, true);
    assert_int_equal(exec.stage->waiting_count, ISLANDS);
    assert_true(missing_of(&exec.stage->sides[0], &exec.stage->touch->src[1]) > 0);
    calls[1].fetch(calls[1].arg);
    r2_engine_run(&engine, true);
    assert_int_equal(exec.stage->ready_src[1], 0); /* the first piece is on its way */
    assert_int_equal(missing_of(&exec.stage->sides[0], &exec.stage->touch->src[1]), 0);
    set("copy_mbytes_per_s", "0");
    while (NULL == calls[1].fetched || call_count < 2 + ISLANDS) {
        r2_engine_run(&engine, true);
    }
    assert_memory_equal(calls[1].fetched, seen(wide), 2 * MIB);
    for (uint32_t i = 0; i < ISLANDS; ++i) {
        complete(2 + i, R2_OK);
    }
    ends_with(&exec, 1);
}

/* Both operands of a reduction. */
static void both_operands_are_loaded_together(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint32_t send;

    (void) state;
    engine.staging.nic_bytes = LONG;
    reads_gpus = true;
    r2_schedule_init(&schedule);
    add(&schedule, R2_OP_SEND, in_at(0), none, LONG, R2_OP_NONE);
    send = add(&schedule, R2_OP_SEND, out_at(0), none, LONG, R2_OP_NONE);
    add(&schedule, R2_OP_REDUCE, in_at(0), out_at(0), LONG, send);
    begin_wide(&exec, &schedule);
    run_until_calls(2);
    assert_true(0 != calls[0].gpu.gpu_id && 0 != calls[1].gpu.gpu_id);
    set("copy_mbytes_per_s", "1");
    complete(1, R2_OK);
    r2_engine_run(&engine, true);
    assert_int_equal(missing_of(&exec.stage->sides[0], &exec.stage->touch->src[2]), 0);
    assert_int_equal(missing_of(&exec.stage->sides[1], &exec.stage->touch->dst[2]), 0);
    set("copy_mbytes_per_s", "0");
    ends_with(&exec, 0);
}

static void is_read_by_its_peer(void)
{
    const uint32_t word = R2_LOAN_READ;

    run_until_calls(2);
    assert_call(0, false, R2_LOAN_ANSWER);
    complete(1, R2_OK);
    memcpy((char *) (uintptr_t) calls[0].data, &word, sizeof(word));
    complete(0, R2_OK);
    run_until_calls(3);
}

#ifdef R2_ENABLE_DEBUG
/* What must not be ends the process. */
static void assert_noticed(r2_exec_t *exec)
{
    const pid_t child = fork();
    int status = 0;

    if (0 == child) {
        exec->stage->ready_src[0] = 1;
        (void) r2_stream_may_begin(exec, 0);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && SIGABRT == WTERMSIG(status));
}
#endif

/* Ops that wait for the application's work only have no piece that is ready: a message that began
 * so would send what is in no copy. */
static void what_is_not_loaded_never_begins_in_pieces(void **state)
{
    (void) state;
    for (int is_lent = 0; is_lent <= 1; ++is_lent) {
        r2_exec_t exec;

        engine.staging.nic_bytes = 2 * MIB;
        reads_gpus = 0 == is_lent;
        engine.loans.enabled = beside = 1 == is_lent;
        close_gate(NULL, &gate);
        send_wide(&exec, 2 * MIB);
        beside = false; /* that is no reason, then */
        run_a_while();
        assert_int_equal(exec.stage->waiting_count, 1);
        assert_true(exec.ops[0].by_nic || r2_loan_is_on(&exec.ops[0]));
        assert_int_equal(exec.stage->ready_src[0], 0);
        assert_false(r2_stream_may_begin(&exec, 0));
        assert_false(exec.ops[0].filling);
        assert_int_equal(call_count, 0);
#ifdef R2_ENABLE_DEBUG
        assert_noticed(&exec);
#endif
        sem_post(&gate);
        run_until_calls(1);
        if (1 == is_lent) {
            is_read_by_its_peer();
        }
        ends_with(&exec, call_count - 1);
        call_count = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T_WIDE(a_message_begins_with_its_first_piece),
        T_WIDE(where_lanes_are_busy_it_goes_whole),
        T_WIDE(within_a_host_it_goes_whole),
        T_WIDE(what_is_fetched_does_not_begin_again),
        T_WIDE(ops_that_wait_begin_in_their_order),
        T_WIDE(an_op_may_wait_again),
        T_WIDE(pieces_are_looked_at_once),
        T_WIDE(what_is_missing_is_loaded_together),
        T_WIDE(both_operands_are_loaded_together),
        T_WIDE(what_is_not_loaded_never_begins_in_pieces),
    };

    return cmocka_run_group_tests_name("messages staged in pieces", tests, NULL, NULL);
}
