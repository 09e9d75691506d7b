/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Loans of memory of a GPU by who reads it, on the driver of tests/fakecuda and links that the test
 * plays: the owner is a child.
 */
#include "r2_config.h"

#include <signal.h>

#include "exec_loans.h"

static r2_mem_share_t childs; /* memory of another process: LONG bytes of 5 */
static int to_child = -1;

/* ---- the other process */

static void own_memory(int news, int orders)
{
    r2_mem_share_t share;
    CUdeviceptr at;
    char order;

    memset(&share, 0, sizeof(share));
    start_device();
    OK(cuMemAlloc(&at, LONG + 64));
    OK(cuMemsetD8(at + 64, 5, LONG));
    OK(cuCtxSynchronize());
    MUST(CUDA_SUCCESS == cuIpcGetMemHandle((CUipcMemHandle *) (void *) &share.handle, at));
    share.id = 1;
    share.start = at;
    share.room_bytes = LONG + 64;
    share.offset_bytes = 64;
    MUST(sizeof(share) == write(news, &share, sizeof(share)));
    MUST(1 == read(orders, &order, 1));
    OK(cuMemFree(at));
    MUST(1 == write(news, "x", 1));
    (void) !read(orders, &order, 1); /* the end */
    _exit(0);
}

static int from_child = -1;

static void start_child(void)
{
    int news[2], orders[2];

    must(0 == pipe(news) && 0 == pipe(orders), "pipe", __FILE__, __LINE__);
    if (0 == fork()) {
        close(orders[1]);
        own_memory(news[1], orders[0]);
    }
    close(orders[0]);
    close(news[1]);
    to_child = orders[1];
    from_child = news[0];
    must(sizeof(childs) == read(from_child, &childs, sizeof(childs)), "a child's memory", __FILE__,
         __LINE__);
}

/* ---- who reads */

static void one_recv(r2_exec_t *exec)
{
    r2_schedule_t schedule;
    uint32_t op;

    r2_schedule_init(&schedule);
    op = add(&schedule, R2_OP_RECV, none, out_at(0), LONG, R2_OP_NONE);
    add(&schedule, R2_OP_SEND, out_at(0), none, 64, op);
    begin(exec, &schedule);
    run_until_calls(2);
    assert_call(0, false, R2_LOAN_OFFER);
    assert_call(1, false, 0);
}

static void offer(const r2_mem_share_t *share)
{
    memcpy((char *) (uintptr_t) calls[0].data, share, sizeof(*share));
    complete(0, R2_OK);
}

/* Into the user's memory at once; what is sent on is loaded from there. */
static void what_is_lent_is_read_from_device_to_device(void **state)
{
    r2_exec_t exec;

    (void) state;
    one_recv(&exec);
    offer(&childs);
    run_until_calls(4);
    assert_call(2, false, R2_LOAN_WORD);
    assert_call(3, true, R2_LOAN_ANSWER);
    assert_int_equal(calls[3].data[0], R2_LOAN_READ);
    assert_int_equal(fakecuda_counter("bytes_d2d"), between + LONG);
    complete(3, R2_OK);
    run_a_while();
    assert_int_equal(call_count, 4); /* it counts when the owner has given its word */
    complete(2, R2_OK);
    run_until_calls(5);
    assert_true(calls[1].over); /* the message is not awaited any more */
    assert_call(4, true, 1);
    assert_int_equal(calls[4].data[0], 5);
    assert_int_equal(calls[4].data[63], 5);
    complete(4, R2_OK);
    assert_int_equal(run_until_over(&exec), R2_OK);
    assert_int_equal(seen(out)[LONG - 1], 5);
    assert_int_equal(seen(out)[LONG], 9);
    r2_exec_fini(&exec);
}

/* What was lent is read, and its owner leaves: the message will not come. */
static void owner_leaves(r2_exec_t *exec)
{
    one_recv(exec);
    offer(&childs);
    run_until_calls(4);
    complete(3, R2_OK);
    complete(1, R2_ERR_PEER_GONE);
    run_a_while();
    assert_false(exec->over); /* the word may be under way: who is done may leave */
}

/* Without its word what was read counts not. */
static void what_is_not_confirmed_fails(void **state)
{
    r2_exec_t exec;

    (void) state;
    owner_leaves(&exec);
    complete(2, R2_ERR_PEER_GONE);
    ends(&exec, R2_ERR_PEER_GONE);
}

static void the_word_of_who_is_done_and_has_left_counts(void **state)
{
    r2_exec_t exec;

    (void) state;
    owner_leaves(&exec);
    complete(2, R2_OK);
    run_until_calls(5);
    complete(4, R2_OK);
    assert_int_equal(run_until_over(&exec), R2_OK);
    assert_int_equal(seen(out)[LONG - 1], 5);
    r2_exec_fini(&exec);
}

static void ends_by_message(r2_exec_t *exec, uint32_t next)
{
    memset((char *) (uintptr_t) calls[1].data, 6, LONG);
    complete(1, R2_OK);
    run_until_calls(next + 1);
    assert_true(calls[0].over); /* no offer is awaited any more, whatever else the run waits for */
    assert_call(next, true, 1);
    complete(next, R2_OK);
    assert_int_equal(run_until_over(exec), R2_OK);
    assert_int_equal(*seen(out), 6);
    r2_exec_fini(exec);
}

static void what_cannot_be_opened_is_asked_for(void **state)
{
    r2_mem_share_t wrong = childs;
    r2_exec_t exec;

    (void) state;
    memset(&wrong.handle, 0, sizeof(wrong.handle));
    wrong.id = 2;
    one_recv(&exec);
    offer(&wrong);
    run_until_calls(3);
    assert_call(2, true, R2_LOAN_ANSWER);
    assert_int_equal(calls[2].data[0], R2_LOAN_NEVER);
    complete(2, R2_OK);
    ends_by_message(&exec, 3);
}

/* The answer's memory is borrowed as long as it is under way. */
static void a_message_may_come_before_the_answer_is_away(void **state)
{
    r2_mem_share_t wrong = childs;
    r2_exec_t exec;

    (void) state;
    memset(&wrong.handle, 0, sizeof(wrong.handle));
    wrong.id = 2;
    one_recv(&exec);
    offer(&wrong);
    run_until_calls(3);
    memset((char *) (uintptr_t) calls[1].data, 6, LONG);
    complete(1, R2_OK);
    run_a_while();
    assert_int_equal(call_count, 3);
    complete(2, R2_OK);
    run_until_calls(4);
    ends_with(&exec, 3);
}

static void a_message_without_an_offer_ends_its_wait(void **state)
{
    r2_exec_t exec;

    (void) state;
    one_recv(&exec);
    ends_by_message(&exec, 2);
}

/* Who was told that no offer comes (by a peer that is done) goes on with the message. */
static void an_offer_that_is_denied_is_no_failure(void **state)
{
    r2_exec_t exec;

    (void) state;
    one_recv(&exec);
    complete(0, R2_ERR_PLAN_MISMATCH);
    ends_by_message(&exec, 2);
}

/* Memory of the host on this side: it is sent. */
static void memory_of_the_host_is_not_copied_to(void **state)
{
    static char host[LONG];
    r2_exec_args_t args = arguments(NULL, host);
    r2_schedule_t schedule;
    r2_exec_t exec;

    (void) state;
    r2_schedule_init(&schedule);
    add(&schedule, R2_OP_RECV, none, out_at(0), LONG, R2_OP_NONE);
    start(&exec, &schedule, &args);
    run_until_calls(2);
    offer(&childs);
    run_until_calls(3);
    assert_int_equal(calls[2].data[0], R2_LOAN_NOT_NOW);
    complete(2, R2_OK);
    ends_with(&exec, 1);
}

static void reads(r2_exec_t *exec)
{
    one_recv(exec);
    offer(&childs);
    run_until_calls(4);
    complete(3, R2_OK);
    complete(2, R2_OK);
    run_until_calls(5);
    ends_with(exec, 4);
    assert_int_equal(*seen(out), 5);
}

/* The last test: the owner frees what is open here. */
static void what_its_owner_has_freed_is_not_read(void **state)
{
    r2_exec_t exec;
    char word;

    (void) state;
    reads(&exec);
    call_count = 0;
    reads(&exec);
    assert_int_equal(fakecuda_counter("ipc_opens") - opens, 1);
    call_count = 0;
    must(1 == write(to_child, "x", 1) && 1 == read(from_child, &word, 1), "the child", __FILE__,
         __LINE__);
    one_recv(&exec);
    offer(&childs);
    run_until_calls(3);
    assert_int_equal(calls[2].data[0], R2_LOAN_NEVER);
    assert_int_equal(fakecuda_counter("use_after_free"), 1); /* told, and not copied */
    complete(2, R2_OK);
    ends_by_message(&exec, 3);
}

static int end_freed(void **state)
{
    CUcontext now;

    OK(cuCtxGetCurrent(&now));
    assert_ptr_equal(now, context);
    tear_down(state);
    r2_mem_fini(&mem);
    close(to_child);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T_LOAN(what_is_lent_is_read_from_device_to_device),
        T_LOAN(what_is_not_confirmed_fails),
        T_LOAN(the_word_of_who_is_done_and_has_left_counts),
        T_LOAN(what_cannot_be_opened_is_asked_for),
        T_LOAN(a_message_may_come_before_the_answer_is_away),
        T_LOAN(a_message_without_an_offer_ends_its_wait),
        T_LOAN(an_offer_that_is_denied_is_no_failure),
        T_LOAN(memory_of_the_host_is_not_copied_to),
        cmocka_unit_test_setup_teardown(what_its_owner_has_freed_is_not_read, start_loans,
                                        end_freed),
    };

    start_child();
    return cmocka_run_group_tests_name("borrowed memory", tests, NULL, NULL);
}
