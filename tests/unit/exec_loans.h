/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * For tests of loans: a run whose peers are on this host.
 */
#ifndef EXEC_LOANS_H
#define EXEC_LOANS_H

#include "exec_gpu.h"

enum { LONG = 32768 };

static const r2_region_t none = {R2_BUF_SCRATCH, 0};
static uint64_t off, between, opens; /* when a test began */

static inline int start_loans(void **state)
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

static inline void begin(r2_exec_t *exec, r2_schedule_t *schedule)
{
    r2_exec_args_t args = arguments((void *) (uintptr_t) in, (void *) (uintptr_t) out);

    args.at[0] = args.at[1] = place;
    assert_int_equal(r2_staging_follow(&engine.staging, &place), R2_OK);
    start(exec, schedule, &args);
}

static inline void run_until_calls(uint32_t count)
{
    while (call_count < count) {
        assert_null(engine.finished); /* with an error */
        r2_engine_run(&engine, true);
        sched_yield();
    }
}

static inline void run_a_while(void)
{
    for (int i = 0; i < 200; ++i) {
        r2_engine_run(&engine, true);
        sched_yield();
    }
}

/* @param status of the run, which is given back */
static inline void ends(r2_exec_t *exec, r2_status_t status)
{
    assert_int_equal(run_until_over(exec), status);
    r2_exec_fini(exec);
}

/* Its last message is complete. */
static inline void ends_with(r2_exec_t *exec, uint32_t call)
{
    complete(call, R2_OK);
    ends(exec, R2_OK);
}

static inline void one_send(r2_exec_t *exec, uint64_t from, uint64_t bytes)
{
    r2_schedule_t schedule;

    r2_schedule_init(&schedule);
    add(&schedule, R2_OP_SEND, in_at(from), none, bytes, R2_OP_NONE);
    begin(exec, &schedule);
}

static inline void assert_call(uint32_t call, bool send, uint32_t tag)
{
    assert_true(call < call_count);
    assert_int_equal(calls[call].send, send);
    assert_int_equal(calls[call].tag, tag);
}

#define T_LOAN(test) cmocka_unit_test_setup_teardown(test, start_loans, end_gpu)

#endif
