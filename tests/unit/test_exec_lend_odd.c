/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Loans of the host's memory that cannot be read, in part, not now, or not any more.
 */
#include "exec_lend.h"

/* Its message is awaited then. @param answers_never the peer is asked for it. */
static void asks_for_the_message(bool answers_never)
{
    const uint32_t message = answers_never ? 2 : 1;

    assert_int_equal(call_count, message + 1);
    if (answers_never) {
        assert_call(1, true, R2_LOAN_ANSWER);
        assert_int_equal(*(const uint32_t *) (const void *) calls[1].data, R2_LOAN_NEVER);
        complete(1, R2_OK);
    }
    assert_call(message, false, 0);
    assert_null(r2_engine_collect(&engine));
}

static void comes_by_the_lane(r2_exec_t *exec, bool answers_never)
{
    asks_for_the_message(answers_never);
    complete(call_count - 1, R2_OK);
    run();
    assert_ended(exec);
}

/* Of another process, where processes are counted anew, or given up. */
static void what_does_not_stand_is_not_read(void **state)
{
    r2_exec_t exec;

    (void) state;
    for (int i = 0; i < 2; ++i) {
        memset(out, 3, sizeof(out));
        begin_recv(&exec, LONG, 0 == i ? PUT : ADDED);
        word = 98;
        offers(0, (uint64_t) getpid());
        assert_int_equal(out[0], 3);
        comes_by_the_lane(&exec, true);
    }
}

/* Its owner gives up between two passes: what it is asked for does not come. */
static void what_does_not_stand_afterwards_was_not_read(void **state)
{
    (void) state;
    for (int i = 0; i < 2; ++i) {
        r2_exec_t exec;

        word = 99;
        begin_recv(&exec, MOST, 0 == i ? PUT : ADDED);
        has_offered(0);
        r2_engine_run(&engine, true);
        assert_int_equal(exec.ops[0].loan->at, R2_LOAN_PASS_BYTES);
        word = 98;
        run();
        asks_for_the_message(true);
        complete(call_count - 1, R2_ERR_PEER_GONE);
        run();
        assert_ptr_equal(r2_engine_collect(&engine), &exec);
        assert_int_equal(exec.status, R2_ERR_PEER_GONE);
        r2_exec_fini(&exec);
    }
}

static void what_cannot_be_read_is_awaited(void **state)
{
    r2_exec_t exec;

    (void) state;
    begin_recv(&exec, LONG, PUT);
    unreadable_from = 0;
    unreadable_to = UINT64_MAX;
    offers(0, (uint64_t) getpid());
    comes_by_the_lane(&exec, true);
    begin_recv(&exec, LONG, PUT);
    offers(0, 0); /* its owner knows */
    comes_by_the_lane(&exec, false);
}

/* Memory of which some cannot be read, nor its word any more: what was added is not added once
 * more, however the message is cut. */
static void what_was_read_in_part_is_asked_for(void **state)
{
    const uint64_t cut = 2 * (uint64_t) R2_LEND_PIECE_BYTES, piece = 48 * 1024;

    (void) state;
    for (int i = 0; i < 2 * FORMS; ++i) {
        const form_t form = (form_t) (i / 2);
        r2_exec_t exec;

        memset(out, 3, sizeof(out));
        begin_recv(&exec, MOST, form);
        unreadable_from = (uintptr_t) theirs + (0 == i % 2 ? cut : MOST);
        unreadable_to = (uintptr_t) theirs + MOST;
        words_left = 0 == i % 2 ? UINT32_MAX : 1;
        offers(0, (uint64_t) getpid());
        asks_for_the_message(true);
        assert_int_equal(NULL != calls[2].sink, MOVED == form || COPIED == form);
        if (NULL == calls[2].sink) {
            memcpy((char *) (uintptr_t) calls[2].data, theirs, MOST);
        }
        for (uint64_t at = 0; NULL != calls[2].sink && at < MOST; at += piece) {
            calls[2].sink(calls[2].arg, at, theirs + at, piece);
        }
        complete(2, R2_OK);
        run();
        assert_ended(&exec);
        assert_came(MOST, form);
    }
}

/* Memory of the application while it computes; code of the user in a thread that is not his. Also
 * if it comes by the lane: some of it may be here. */
static void nothing_is_written_by_who_may_not(void **state)
{
    (void) state;
    for (int i = 0; i < 4; ++i) {
        const bool read = i < 2;
        r2_exec_t exec;

        begin_recv(&exec, LONG, 0 == i % 2 ? PUT : MOVED);
        links_net.app_drives = false;
        links_net.may_deliver = 0 != i % 2;
        out[0] = 3;
        offers(0, read ? (uint64_t) getpid() : 0);
        assert_int_equal(call_count, 1);
        assert_int_equal(out[0], 3);
        assert_int_equal(r2_staging_is_busy(&engine.staging), 0 == i % 2); /* it wakes threads */
        links_net.app_drives = links_net.may_deliver = true;
        run();
        assert_call(1, read, read ? R2_LOAN_ANSWER : 0);
        complete(1, R2_OK);
        run();
        assert_ended(&exec);
        assert_true(!read || 0 == memcmp(out, theirs, LONG));
    }
}

/* Where the user's code has no part in it, also of a call with his operation. */
static void other_threads_read(void **state)
{
    r2_exec_t exec;

    (void) state;
    begin_recv(&exec, LONG, PUT);
    exec.app_only = true;
    links_net.app_drives = false;
    offers(0, (uint64_t) getpid());
    assert_call(1, true, R2_LOAN_ANSWER);
    links_net.app_drives = true;
    complete(1, R2_OK);
    run();
    assert_ended(&exec);
    assert_came(LONG, PUT);
}

/* The owner has died before it has offered. */
static void who_awaits_an_offer_fails_with_its_peer(void **state)
{
    r2_exec_t exec;

    (void) state;
    begin_recv(&exec, LONG, PUT);
    complete(0, R2_ERR_PEER_GONE);
    run();
    assert_ptr_equal(r2_engine_collect(&engine), &exec);
    assert_int_equal(exec.status, R2_ERR_PEER_GONE);
    r2_exec_fini(&exec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T_LEND(what_does_not_stand_is_not_read),
        T_LEND(what_does_not_stand_afterwards_was_not_read),
        T_LEND(what_cannot_be_read_is_awaited),
        T_LEND(what_was_read_in_part_is_asked_for),
        T_LEND(nothing_is_written_by_who_may_not),
        T_LEND(other_threads_read),
        T_LEND(who_awaits_an_offer_fails_with_its_peer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
