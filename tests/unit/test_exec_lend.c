/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Loans of the host's memory: what is offered, what is sent instead, and what is read.
 */
#include "exec_lend.h"

static r2_loan_place_t offered(void)
{
    r2_loan_place_t place;

    assert_call(0, false, R2_LOAN_ANSWER);
    assert_call(1, true, R2_LOAN_OFFER);
    assert_int_equal(calls[1].bytes, sizeof(place));
    memcpy(&place, calls[1].data, sizeof(place));
    assert_int_equal(place.pid, getpid());
    assert_int_equal(place.address, (uintptr_t) in);
    complete(1, R2_OK);
    return place;
}

static bool stands(const r2_loan_place_t *place)
{
    return place->word == *(const uint64_t *) (uintptr_t) place->word_address;
}

static void what_is_read_is_not_sent(void **state)
{
    r2_loan_place_t place;
    r2_exec_t exec;

    (void) state;
    begin_send(&exec, LONG);
    place = offered();
    run();
    assert_int_equal(call_count, 2);
    assert_true(stands(&place));
    answers(0, R2_LOAN_READ);
    assert_int_equal(call_count, 2);
    assert_false(stands(&place));
    assert_ended(&exec);
}

/* The memory is the application's again, though nobody has read it. */
static void who_gives_up_takes_its_word_back(void **state)
{
    r2_loan_place_t place;
    r2_exec_t exec;

    (void) state;
    begin_send(&exec, LONG);
    place = offered();
    r2_exec_abort(&exec, R2_ERR_TIMEOUT);
    r2_exec_leave(&exec);
    assert_false(stands(&place));
    r2_exec_fini(&exec);
}

static void no_word_stands_twice(void **state)
{
    uint64_t before = 0;

    (void) state;
    for (int i = 0; i < 3; ++i) {
        r2_loan_place_t place;
        r2_exec_t exec;

        begin_send(&exec, LONG);
        place = offered();
        assert_int_not_equal(place.word, 0);
        assert_int_not_equal(place.word, before);
        before = place.word;
        answers(0, R2_LOAN_READ);
        assert_ended(&exec);
    }
}

/* After some times it is told that the message comes, with the message. */
static void who_cannot_read_is_sent_to(void **state)
{
    r2_loan_place_t place;
    r2_exec_t exec;

    (void) state;
    for (int i = 0; i < R2_LOAN_REFUSALS; ++i) {
        begin_send(&exec, LONG);
        place = offered();
        answers(0, R2_LOAN_NEVER);
        assert_false(stands(&place));
        assert_int_equal(call_count, 3);
        assert_call(2, true, 0);
        assert_ptr_equal(calls[2].data, in);
        complete(2, R2_OK);
        run();
        assert_ended(&exec);
    }
    begin_send(&exec, LONG);
    assert_int_equal(call_count, 2);
    assert_call(0, true, R2_LOAN_OFFER);
    memcpy(&place, calls[0].data, sizeof(place));
    assert_int_equal(place.pid, 0);
    assert_call(1, true, 0);
    complete(1, R2_OK);
    run();
    assert_null(r2_engine_collect(&engine)); /* the offer is borrowed memory */
    complete(0, R2_OK);
    run();
    assert_ended(&exec);
}

static void short_messages_and_other_hosts_get_no_offers(void **state)
{
    r2_exec_t exec;

    (void) state;
    for (int i = 0; i < 3; ++i) {
        lends = 1 != i;
        engine.loans.of_host = 2 != i; /* somebody does without, or has a GPU */
        begin_send(&exec, 0 == i ? SHORT : LONG);
        assert_int_equal(call_count, 1);
        assert_call(0, true, 0);
        complete(0, R2_OK);
        run();
        assert_ended(&exec);
    }
    engine.loans.of_host = true;
    begin_recv(&exec, SHORT, PUT);
    assert_call(0, false, 0);
    complete(0, R2_OK);
    run();
    assert_ended(&exec);
}

/* Also in several steps, and what is added up as it comes. */
static void what_is_offered_is_read(void **state)
{
    const uint64_t lengths[] = {LONG, MOST};

    (void) state;
    for (size_t i = 0; i < FORMS * r2_array_count(lengths); ++i) {
        const uint64_t bytes = lengths[i / FORMS];
        const form_t form = (form_t) (i % FORMS);
        r2_exec_t exec;

        memset(out, 3, sizeof(out));
        begin_recv(&exec, bytes, form);
        assert_int_equal(call_count, 1); /* the message is not awaited */
        assert_call(0, false, R2_LOAN_OFFER);
        offers(0, (uint64_t) getpid());
        assert_int_equal(call_count, 2);
        assert_call(1, true, R2_LOAN_ANSWER);
        assert_int_equal(*(const uint32_t *) (const void *) calls[1].data, R2_LOAN_READ);
        assert_null(r2_engine_collect(&engine)); /* the answer is borrowed memory */
        complete(1, R2_OK);
        run();
        assert_ended(&exec);
        assert_came(bytes, form);
        assert_true(MOST == bytes || 3 == out[bytes]);
    }
}

/* Of two messages, too: timers wait for one pass. */
static void so_much_is_read_in_a_pass(void **state)
{
    r2_exec_args_t args = arguments(in, out);
    r2_schedule_t schedule;
    uint64_t read = 0;
    r2_exec_t exec;

    (void) state;
    r2_schedule_init(&schedule);
    add_recv(&schedule, 1, MOST, PUT);
    add_recv(&schedule, 2, MOST, PUT);
    start(&exec, &schedule, &args);
    for (uint32_t i = 0; i < 2; ++i) {
        has_offered(i);
    }
    for (uint64_t pass = 1; pass <= 6; ++pass) {
        r2_engine_run(&engine, true);
        read = exec.ops[0].loan->at + exec.ops[1].loan->at;
        assert_int_equal(read, pass * R2_LOAN_PASS_BYTES);
        assert_in_range(exec.ops[0].loan->at, pass / 2 * R2_LOAN_PASS_BYTES,
                        (pass + 1) / 2 * R2_LOAN_PASS_BYTES); /* in turn */
    }
    assert_int_equal(read, 2 * MOST);
    complete(2, R2_OK);
    complete(3, R2_OK);
    run();
    assert_ended(&exec);
    assert_came(MOST, PUT);
}

static void add_words(void *arg, const void *from, void *into, size_t count)
{
    (void) arg;
    for (size_t i = 0; i < count; ++i) {
        uint64_t a, b;

        memcpy(&a, (const char *) from + 8 * i, 8);
        memcpy(&b, (char *) into + 8 * i, 8);
        b += a;
        memcpy((char *) into + 8 * i, &b, 8);
    }
}

/* Whatever else is read in the same pass. */
static void elements_are_not_cut(void **state)
{
    static uint8_t other[LONG + 1], sums[MOST];
    r2_exec_args_t args = arguments(in, other);
    r2_schedule_t schedule;
    r2_exec_t first, second;

    (void) state;
    memset(sums, 3, sizeof(sums));
    memcpy(out, sums, sizeof(sums));
    add_words(NULL, theirs, sums, MOST / 8);
    r2_schedule_init(&schedule);
    add_recv(&schedule, 1, LONG + 1, PUT);
    start(&first, &schedule, &args);
    args = arguments(in, out);
    args.any_thread = true;
    args.reduce = add_words;
    args.element_bytes = 8;
    r2_schedule_init(&schedule);
    add_recv(&schedule, 2, MOST, ADDED);
    start(&second, &schedule, &args);
    for (uint32_t i = 0; i < 2; ++i) {
        has_offered(i);
    }
    run();
    assert_memory_equal(out, sums, sizeof(sums));
    assert_memory_equal(other, theirs, sizeof(other));
    complete(2, R2_OK);
    complete(3, R2_OK);
    run();
    assert_ended(&first);
    assert_ended(&second);
}

/* @param far what is passed on comes from another host */
static void begin_pass(r2_exec_t *exec, bool far)
{
    r2_exec_args_t args = arguments(in, out);
    r2_schedule_t schedule;
    uint32_t recv;

    call_count = 0;
    far_rank = far ? 1 : 2;
    r2_schedule_init(&schedule);
    schedule.chunk_bytes = 4096;
    recv = r2_schedule_add(
        &schedule, &(r2_op_t){.kind = R2_OP_RECV, .peer = 1, .bytes = LONG, .dst = {R2_BUF_OUT, 0}},
        NULL, 0);
    r2_schedule_add(&schedule,
                    &(r2_op_t){.kind = R2_OP_SEND,
                               .peer = far ? 2 : 1,
                               .tag = 1,
                               .bytes = LONG,
                               .src = {R2_BUF_OUT, 0}},
                    &recv, 1);
    r2_schedule_add(&schedule,
                    &(r2_op_t){.kind = R2_OP_SEND,
                               .peer = 2,
                               .tag = 2,
                               .bytes = LONG,
                               .src = {R2_BUF_OUT, 0}},
                    &recv, 1);
    start(exec, &schedule, &args);
    run();
}

/* Its peers learn at once that it is not offered, and it goes on as it comes. */
static void what_comes_from_another_host_goes_on_as_it_comes(void **state)
{
    r2_loan_place_t place;
    r2_exec_t exec;

    (void) state;
    begin_pass(&exec, true);
    assert_int_equal(call_count, 5);
    for (uint32_t i = 0; i < 4; i += 2) {
        assert_int_equal(calls[i].tag & R2_LOAN_MASK, R2_LOAN_OFFER);
        memcpy(&place, calls[i].data, sizeof(place));
        assert_int_equal(place.pid, 0);
        assert_true(calls[i + 1].send && calls[i + 1].filling);
        complete(i, R2_OK);
    }
    assert_call(4, false, 0);
    calls[4].arrived(calls[4].arg, 5000);
    assert_int_equal(calls[1].ready, 5000);
    complete(4, R2_OK);
    complete(1, R2_OK);
    complete(3, R2_OK);
    run();
    assert_ended(&exec);
}

/* To another host once, also if it is sent after all; within the host when it is here. */
static void what_comes_from_this_host_is_passed_on_whole(void **state)
{
    (void) state;
    for (int i = 0; i < 2; ++i) {
        r2_loan_place_t place;
        r2_exec_t exec;

        begin_pass(&exec, false);
        assert_int_equal(call_count, 2);
        assert_true(calls[0].send && calls[0].filling && 2 == calls[0].tag);
        assert_call(1, false, R2_LOAN_OFFER);
        offers(1, 0 == i ? (uint64_t) getpid() : 0);
        if (0 == i) {
            assert_int_equal(calls[0].ready, LONG);
            complete(0, R2_OK); /* before the receive has said that it has it */
            calls[0].ready = 0;
            assert_call(2, true, R2_LOAN_ANSWER);
            complete(2, R2_OK);
            run();
            assert_int_equal(calls[0].ready, 0); /* the message is the link's again */
            assert_int_equal(call_count, 5);
            assert_call(3, false, 1 | R2_LOAN_ANSWER);
            assert_call(4, true, 1 | R2_LOAN_OFFER);
            memcpy(&place, calls[4].data, sizeof(place));
            assert_int_equal(place.address, (uintptr_t) out);
            complete(4, R2_OK);
            answers(3, R2_LOAN_READ);
        } else {
            assert_int_equal(call_count, 5);
            assert_call(2, true, 1 | R2_LOAN_OFFER);
            assert_true(calls[3].send && calls[3].filling);
            assert_call(4, false, 0);
            complete(2, R2_OK);
            complete(4, R2_OK);
            complete(3, R2_OK);
            complete(0, R2_OK);
        }
        run();
        assert_ended(&exec);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T_LEND(what_is_read_is_not_sent),
        T_LEND(who_gives_up_takes_its_word_back),
        T_LEND(no_word_stands_twice),
        T_LEND(who_cannot_read_is_sent_to),
        T_LEND(short_messages_and_other_hosts_get_no_offers),
        T_LEND(what_is_offered_is_read),
        T_LEND(so_much_is_read_in_a_pass),
        T_LEND(elements_are_not_cut),
        T_LEND(what_comes_from_another_host_goes_on_as_it_comes),
        T_LEND(what_comes_from_this_host_is_passed_on_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
