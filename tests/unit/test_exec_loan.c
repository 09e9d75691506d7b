/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Loans of memory of a GPU, on the driver of tests/fakecuda and links that the test plays: what is
 * offered and when, what is read, and what is sent after all. The peer's memory is that of a child.
 */
#include "r2_config.h"

#include "exec_gpu.h"

#include <signal.h>

enum { LONG = 32768 };

static const r2_region_t none = {R2_BUF_SCRATCH, 0};
static r2_mem_share_t childs; /* memory of another process: LONG bytes of 5 */
static int to_child = -1;
static uint64_t off, between, opens; /* when a test began */

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

/* ---- parts of tests */

static int start_loans(void **state)
{
    start_gpu(state);
    links_net.size = 4;
    beside = true;
    r2_loans_init(&engine.loans, &mem, 0);
    engine.loans.enabled = true;
    off = fakecuda_counter("bytes_d2h");
    between = fakecuda_counter("bytes_d2d");
    opens = fakecuda_counter("ipc_opens");
    return 0;
}

static void begin(r2_exec_t *exec, r2_schedule_t *schedule)
{
    r2_exec_args_t args = arguments((void *) (uintptr_t) in, (void *) (uintptr_t) out);

    args.at[0] = args.at[1] = place;
    assert_int_equal(r2_staging_follow(&engine.staging, &place), R2_OK);
    start(exec, schedule, &args);
}

static void run_until_calls(uint32_t count)
{
    while (call_count < count) {
        assert_null(engine.finished); /* with an error */
        r2_engine_run(&engine, true);
        sched_yield();
    }
}

static void run_a_while(void)
{
    for (int i = 0; i < 200; ++i) {
        r2_engine_run(&engine, true);
        sched_yield();
    }
}

static void assert_call(uint32_t call, bool send, uint32_t tag)
{
    assert_true(call < call_count);
    assert_int_equal(calls[call].send, send);
    assert_int_equal(calls[call].tag, tag);
}

static void one_send(r2_exec_t *exec, uint64_t bytes)
{
    r2_schedule_t schedule;

    r2_schedule_init(&schedule);
    add(&schedule, R2_OP_SEND, in_at(0), none, bytes, R2_OP_NONE);
    begin(exec, &schedule);
}

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

/* ---- the owner */

static void what_is_read_is_not_loaded(void **state)
{
    r2_exec_t exec;

    (void) state;
    one_send(&exec, LONG);
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
    one_send(&exec, LONG);
    run_a_while();
    assert_int_equal(call_count, 0);
    sem_post(&gate);
    assert_offered();
    assert_int_equal(*seen(in), 77);
    answer(0, R2_LOAN_READ);
    run_until_calls(3);
    complete(2, R2_OK);
    assert_int_equal(run_until_over(&exec), R2_OK);
    r2_exec_fini(&exec);
}

static void falls_back(r2_loan_answer_t what)
{
    r2_exec_t exec;

    call_count = 0;
    one_send(&exec, LONG);
    assert_offered();
    answer(0, what);
    run_until_calls(3);
    assert_call(2, true, 0);
    assert_memory_equal(calls[2].data, seen(in), LONG);
    complete(2, R2_OK);
    assert_int_equal(run_until_over(&exec), R2_OK);
    r2_exec_fini(&exec);
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
    one_send(&exec, LONG); /* nothing is offered any more */
    run_until_calls(1);
    assert_call(0, true, 0);
    complete(0, R2_OK);
    assert_int_equal(run_until_over(&exec), R2_OK);
    r2_exec_fini(&exec);
}

static void is_sent_at_once(uint64_t bytes)
{
    r2_exec_t exec;

    call_count = 0;
    one_send(&exec, bytes);
    run_until_calls(1);
    assert_call(0, true, 0);
    assert_memory_equal(calls[0].data, seen(in), bytes);
    complete(0, R2_OK);
    assert_int_equal(run_until_over(&exec), R2_OK);
    r2_exec_fini(&exec);
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

/* In place: what a peer has sent is in the copy, not in the user's memory. */
static void what_an_op_has_written_is_sent(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint32_t op;

    (void) state;
    beside = false;
    r2_schedule_init(&schedule);
    op = add(&schedule, R2_OP_SEND, out_at(0), none, LONG, R2_OP_NONE);
    op = add(&schedule, R2_OP_RECV, none, out_at(0), LONG, op);
    schedule.ops[1].peer = 2;
    op = add(&schedule, R2_OP_SEND, out_at(0), none, BYTES, op);
    begin(&exec, &schedule);
    run_until_calls(1);
    beside = true; /* of what comes now */
    complete(0, R2_OK);
    run_until_calls(3); /* offer and message are awaited */
    memset((char *) (uintptr_t) calls[2].data, 3, LONG);
    complete(2, R2_OK);
    run_until_calls(4);
    assert_call(3, true, 2);
    assert_int_equal(calls[3].data[0], 3);
    assert_int_equal(calls[3].data[LONG], 9);
    complete(3, R2_OK);
    assert_int_equal(run_until_over(&exec), R2_OK);
    assert_int_equal(*seen(out), 3);
    r2_exec_fini(&exec);
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

/* Before the word has come the owner may have failed, and its peers with it. */
static void what_is_not_confirmed_fails_with_the_message(void **state)
{
    r2_exec_t exec;

    (void) state;
    one_recv(&exec);
    offer(&childs);
    run_until_calls(4);
    complete(3, R2_OK);
    complete(1, R2_ERR_PEER_GONE);
    assert_int_equal(run_until_over(&exec), R2_ERR_PEER_GONE);
    r2_exec_fini(&exec);
    assert_true(calls[2].over);
}

static void ends_by_message(r2_exec_t *exec, uint32_t next)
{
    memset((char *) (uintptr_t) calls[1].data, 6, LONG);
    complete(1, R2_OK);
    run_until_calls(next + 1);
    assert_call(next, true, 1);
    complete(next, R2_OK);
    assert_int_equal(run_until_over(exec), R2_OK);
    assert_int_equal(*seen(out), 6);
    r2_exec_fini(exec);
    assert_true(calls[0].over);
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
    complete(3, R2_OK);
    assert_int_equal(run_until_over(&exec), R2_OK);
    r2_exec_fini(&exec);
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
    complete(1, R2_OK);
    assert_int_equal(run_until_over(&exec), R2_OK);
    r2_exec_fini(&exec);
}

static void the_peers_questions_name_the_op(void **state)
{
    r2_exec_t exec;
    uint32_t digest;

    (void) state;
    one_send(&exec, LONG);
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

static void reads(r2_exec_t *exec)
{
    one_recv(exec);
    offer(&childs);
    run_until_calls(4);
    complete(3, R2_OK);
    complete(2, R2_OK);
    run_until_calls(5);
    complete(4, R2_OK);
    assert_int_equal(run_until_over(exec), R2_OK);
    r2_exec_fini(exec);
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

#define T(test) cmocka_unit_test_setup_teardown(test, start_loans, end_gpu)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(what_is_read_is_not_loaded),
        T(nothing_is_offered_before_the_application_has_written_it),
        T(who_cannot_read_is_sent_to),
        T(what_cannot_be_lent_is_sent),
        T(what_an_op_has_written_is_sent),
        T(what_is_lent_is_read_from_device_to_device),
        T(what_is_not_confirmed_fails_with_the_message),
        T(what_cannot_be_opened_is_asked_for),
        T(a_message_may_come_before_the_answer_is_away),
        T(a_message_without_an_offer_ends_its_wait),
        T(an_offer_that_is_denied_is_no_failure),
        T(memory_of_the_host_is_not_copied_to),
        T(the_peers_questions_name_the_op),
        cmocka_unit_test_setup_teardown(what_its_owner_has_freed_is_not_read, start_loans,
                                        end_freed),
    };

    start_child();
    return cmocka_run_group_tests_name("loans", tests, NULL, NULL);
}
