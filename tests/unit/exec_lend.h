/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Loans of the host's memory, over links that the test plays.
 */
#ifndef R2_TESTS_EXEC_LEND_H
#define R2_TESTS_EXEC_LEND_H

#include "exec_links.h"

#define SHORT R2_LOAN_HOST_BYTES
#define LONG  (R2_LOAN_HOST_BYTES + 64)
#define MOST  (3u << 20)

static uint8_t in[MOST], out[MOST], theirs[MOST];
static uint64_t word;

static inline int start_lending(void **state)
{
    set_up(state);
    beside = lends = true;
    links_net.size = 4;
    links_net.counters = calloc(1, sizeof(*links_net.counters));
    links_net.app_drives = links_net.may_deliver = true;
    links_net.clock = r2_clock_system();
    engine.loans.of_host = true;
    for (size_t i = 0; i < MOST; ++i) {
        in[i] = (uint8_t) (i * 7 + i / 251);
        theirs[i] = (uint8_t) (i * 5 + i / 509);
        out[i] = 3;
    }
    word = 99;
    return 0;
}

static inline int end_lending(void **state)
{
    free(links_net.counters);
    links_net.counters = NULL;
    return tear_down(state);
}

static inline void run(void)
{
    for (int i = 0; i < 20; ++i) {
        r2_engine_run(&engine, links_net.app_drives);
    }
}

static inline void assert_call(uint32_t call, bool send, uint32_t tag)
{
    assert_true(call < call_count);
    assert_int_equal(calls[call].send, send);
    assert_int_equal(calls[call].tag, tag);
}

/* What comes for a receive of ours. */
static inline void arrives(uint32_t call, const void *data, size_t bytes)
{
    assert_int_equal(calls[call].bytes, bytes);
    memcpy((char *) (uintptr_t) calls[call].data, data, bytes);
    complete(call, R2_OK);
    run();
}

static inline void answers(uint32_t call, uint32_t answer)
{
    arrives(call, &answer, sizeof(answer));
}

static inline r2_loan_place_t place_of(uint64_t pid)
{
    return (r2_loan_place_t){.pid = pid,
                             .address = (uintptr_t) theirs,
                             .word_address = (uintptr_t) &word,
                             .word = 99};
}

static inline void offers(uint32_t call, uint64_t pid)
{
    const r2_loan_place_t place = place_of(pid);

    arrives(call, &place, sizeof(place));
}

/* The same, and nobody has looked at it yet. */
static inline void has_offered(uint32_t call)
{
    const r2_loan_place_t place = place_of((uint64_t) getpid());

    memcpy((char *) (uintptr_t) calls[call].data, &place, sizeof(place));
    complete(call, R2_OK);
}

static inline void begin_send(r2_exec_t *exec, uint64_t bytes)
{
    r2_exec_args_t args = arguments(in, out);
    r2_schedule_t schedule;

    call_count = 0;
    r2_schedule_init(&schedule);
    add_sends(&schedule, 1, bytes);
    start(exec, &schedule, &args);
    run();
}

/** What becomes of what comes: it is put where it belongs, also by code of the user, added to what
 * is there, or to what another op copies there first. */
typedef enum form { PUT, MOVED, ADDED, COPIED, FORMS } form_t;

static inline void move_there(void *arg, uint64_t offset, void *data, uint64_t bytes, bool write)
{
    assert_true(write && links_net.app_drives);
    memcpy((char *) arg + offset, data, bytes);
}

static inline void add_recv(r2_schedule_t *schedule, uint32_t peer, uint64_t bytes, form_t form)
{
    uint32_t deps[2] = {0};

    schedule->scratch_bytes = form < ADDED ? 0 : bytes;
    deps[0] = r2_schedule_add(schedule,
                              &(r2_op_t){.kind = R2_OP_RECV,
                                         .peer = peer,
                                         .bytes = bytes,
                                         .dst = {form < ADDED ? R2_BUF_OUT : R2_BUF_SCRATCH, 0}},
                              NULL, 0);
    if (COPIED == form) {
        deps[1] = r2_schedule_add(schedule,
                                  &(r2_op_t){.kind = R2_OP_COPY,
                                             .bytes = bytes,
                                             .src = {R2_BUF_IN, 0},
                                             .dst = {R2_BUF_OUT, 0}},
                                  NULL, 0);
    }
    if (form >= ADDED) {
        r2_schedule_add(schedule,
                        &(r2_op_t){.kind = R2_OP_REDUCE,
                                   .bytes = bytes,
                                   .src = {R2_BUF_SCRATCH, 0},
                                   .dst = {R2_BUF_OUT, 0},
                                   .frees_src = true},
                        deps, COPIED == form ? 2 : 1);
    }
}

static inline void begin_recv(r2_exec_t *exec, uint64_t bytes, form_t form)
{
    r2_exec_args_t args = arguments(in, out);
    r2_schedule_t schedule;

    call_count = 0;
    args.any_thread = true;
    if (MOVED == form) {
        args.convertors[1] = (r2_convertor_t){.move = move_there, .arg = out};
    }
    r2_schedule_init(&schedule);
    add_recv(&schedule, 1, bytes, form);
    start(exec, &schedule, &args);
    run();
}

/* What has come lies at i: what is in `theirs`. */
static inline void assert_came(uint64_t bytes, form_t form)
{
    for (uint64_t i = 0; i < bytes; ++i) {
        const uint8_t before = form < ADDED ? 0 : ADDED == form ? 3 : in[i];

        assert_int_equal(out[i], (uint8_t) (theirs[i] + before));
    }
}

static inline void assert_ended(r2_exec_t *exec)
{
    assert_ptr_equal(r2_engine_collect(&engine), exec);
    assert_int_equal(exec->status, R2_OK);
    r2_exec_fini(exec);
}

#define T_LEND(test) cmocka_unit_test_setup_teardown(test, start_lending, end_lending)

#endif
