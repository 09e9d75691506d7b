/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Loans of memory of a GPU by its owner, on the driver of tests/fakecuda and links that the test
 * plays: what is offered and when, and what is sent after all.
 */
#include "r2_config.h"

#include "exec_loans.h"

static void answer(uint32_t call, r2_loan_answer_t what)
{
    const uint32_t word = what;

    assert_int_equal(calls[call].bytes, sizeof(word));
    memcpy((char *) (uintptr_t) calls[call].data, &word, sizeof(word));
    complete(call, R2_OK);
}

/* An offer is under way: calls 0 and 1. */
static void assert_offered(void)
{
    r2_mem_share_t offered;

    run_until_calls(2);
    assert_call(0, false, R2_LOAN_ANSWER);
    assert_call(1, true, R2_LOAN_OFFER);
    assert_int_equal(calls[1].bytes, sizeof(offered));
    memcpy(&offered, calls[1].data, sizeof(offered));
    assert_int_equal(offered.start + offered.offset_bytes, in);
    complete(1, R2_OK);
}

static void what_is_read_is_not_loaded(void **state)
{
    r2_exec_t exec;

    (void) state;
    one_send(&exec, 0, LONG);
    assert_offered();
    run_a_while();
    assert_int_equal(call_count, 2);
    answer(0, R2_LOAN_READ);
    run_until_calls(3);
    assert_call(2, true, R2_LOAN_WORD);
    run_a_while();
    assert_false(exec.over); /* the word is borrowed memory */
    complete(2, R2_OK);
    assert_int_equal(run_until_over(&exec), R2_OK);
    assert_int_equal(fakecuda_counter("bytes_d2h"), off);
    r2_exec_fini(&exec);
}

static void nothing_is_offered_before_the_application_has_written_it(void **state)
{
    r2_exec_t exec;

    (void) state;
    close_gate(NULL, &gate);
    OK(cuMemsetD8Async(in, 77, LONG, NULL));
    one_send(&exec, 0, LONG);
    run_a_while();
    assert_int_equal(call_count, 0);
    sem_post(&gate);
    assert_offered();
    assert_int_equal(*seen(in), 77);
    answer(0, R2_LOAN_READ);
    run_until_calls(3);
    ends_with(&exec, 2);
}

static void falls_back(r2_loan_answer_t what)
{
    r2_exec_t exec;

    call_count = 0;
    one_send(&exec, 0, LONG);
    assert_offered();
    answer(0, what);
    run_until_calls(3);
    assert_call(2, true, 0);
    assert_memory_equal(calls[2].data, seen(in), LONG);
    ends_with(&exec, 2);
}

static void who_cannot_read_is_sent_to(void **state)
{
    r2_exec_t exec;

    (void) state;
    falls_back(R2_LOAN_NOT_NOW);
    for (int i = 0; i < R2_LOAN_REFUSALS; ++i) {
        falls_back(R2_LOAN_NEVER);
    }
    call_count = 0;
    one_send(&exec, 0, LONG); /* nothing is offered any more */
    run_until_calls(1);
    assert_call(0, true, 0);
    ends_with(&exec, 0);
}

static void is_sent_at_once(uint64_t bytes)
{
    r2_exec_t exec;

    call_count = 0;
    one_send(&exec, 0, bytes);
    run_until_calls(1);
    assert_call(0, true, 0);
    assert_memory_equal(calls[0].data, seen(in), bytes);
    ends_with(&exec, 0);
}

static void what_cannot_be_lent_is_sent(void **state)
{
    const CUdeviceptr plain = in;

    (void) state;
    is_sent_at_once(R2_LOAN_LEAST_BYTES - 1);
    beside = false;
    is_sent_at_once(LONG);
    beside = true;
    OK(cuMemAllocAsync(&in, BYTES, NULL)); /* memory of a pool cannot be opened by others */
    OK(cuMemsetD8(in, 4, BYTES));
    OK(cuCtxSynchronize());
    is_sent_at_once(LONG);
    OK(cuMemFree(in));
    in = plain;
    assert_int_equal(fakecuda_counter("bytes_d2h"), off + R2_LOAN_LEAST_BYTES - 1 + 2 * LONG);
}

/* In place: what a peer has sent is in the copy, not in the user's memory; what is not sent from
 * there is found out as loads begin, before that. */
static void what_an_op_has_written_is_sent(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint32_t op;

    (void) state;
    r2_schedule_init(&schedule);
    op = add(&schedule, R2_OP_SEND, out_at(0), none, PIECE, R2_OP_NONE);
    op = add(&schedule, R2_OP_RECV, none, out_at(0), PIECE, op);
    add(&schedule, R2_OP_SEND, out_at(0), none, BYTES, op);
    begin(&exec, &schedule);
    run_until_calls(1);
    complete(0, R2_OK);
    run_until_calls(2);
    memset((char *) (uintptr_t) calls[1].data, 3, PIECE);
    complete(1, R2_OK);
    run_until_calls(3);
    assert_call(2, true, 2);
    assert_int_equal(calls[2].data[0], 3);
    assert_int_equal(calls[2].data[PIECE], 9);
    assert_int_equal(calls[2].data[BYTES - 1], 9);
    complete(2, R2_OK);
    assert_int_equal(run_until_over(&exec), R2_OK);
    assert_int_equal(*seen(out), 3);
    r2_exec_fini(&exec);
}

static void the_peers_questions_name_the_op(void **state)
{
    r2_exec_t exec;
    uint32_t digest;

    (void) state;
    one_send(&exec, 0, LONG);
    digest = exec.schedule->digest;
    assert_offered();
    assert_true(r2_exec_has_op(&exec, R2_OP_SEND, 1, 0, digest));
    assert_true(r2_exec_has_op(&exec, R2_OP_SEND, 1, R2_LOAN_OFFER, digest));
    assert_true(r2_exec_has_op(&exec, R2_OP_RECV, 1, R2_LOAN_ANSWER, digest));
    assert_false(r2_exec_has_op(&exec, R2_OP_SEND, 1, R2_LOAN_ANSWER, digest));
    assert_false(r2_exec_has_op(&exec, R2_OP_SEND, 1, R2_LOAN_OFFER | 1, digest));
    r2_exec_abort(&exec, R2_ERR_PEER_GONE);
    assert_ptr_equal(r2_engine_collect(&engine), &exec);
    r2_exec_fini(&exec);
    assert_true(calls[0].over);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T_LOAN(what_is_read_is_not_loaded),
        T_LOAN(nothing_is_offered_before_the_application_has_written_it),
        T_LOAN(who_cannot_read_is_sent_to),
        T_LOAN(what_cannot_be_lent_is_sent),
        T_LOAN(what_an_op_has_written_is_sent),
        T_LOAN(the_peers_questions_name_the_op),
    };

    return cmocka_run_group_tests_name("loans", tests, NULL, NULL);
}
