/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Messages that NICs put to memory of a GPU, on the driver of tests/fakecuda and links that the
 * test plays: when they may, what is stored beside them, what is flushed, and when the op ends.
 */
#include "r2_config.h"

#include "exec_loans.h"

static uint64_t on, flushes; /* bytes copied onto the GPU, when a test began */

static uint64_t flushes_now(void)
{
    return fakecuda_counter("cuFlushGPUDirectRDMAWrites");
}

static int start_landing(void **state)
{
    start_loans(state);
    engine.loans.enabled = beside = false;
    engine.staging.nic_bytes = PIECE;
    reads_gpus = puts_to_gpus = true;
    on = fakecuda_counter("bytes_h2d");
    flushes = flushes_now();
    return 0;
}

static int end_landing(void **state)
{
    reads_gpus = puts_to_gpus = false;
    set("nic_order", "0");
    return end_gpu(state);
}

#define T_LANDS(test) cmocka_unit_test_setup_teardown(test, start_landing, end_landing)

/* A NIC of the peer writes. */
static void put(uint32_t call, uint64_t offset, uint64_t bytes, uint8_t value)
{
    const uint64_t at = (uintptr_t) calls[call].gpu_data + offset;

    fakecuda_nic_touch(at, bytes, 1);
    memset(fakecuda_look(at, bytes), value, bytes);
}

/* It comes by itself, as the link gives it. */
static void come(uint32_t call, uint64_t offset, uint64_t bytes, uint8_t value)
{
    char data[LONG];

    memset(data, value, bytes);
    calls[call].sink(calls[call].arg, offset, data, bytes);
}

static bool is_all(uint64_t offset, uint64_t bytes, uint8_t value)
{
    for (uint64_t i = 0; i < bytes; ++i) {
        if (value != *seen(out + offset + i)) {
            return false;
        }
    }
    return true;
}

static void one_recv(r2_exec_t *exec, uint64_t to, uint64_t bytes)
{
    r2_schedule_t schedule;

    r2_schedule_init(&schedule);
    add(&schedule, R2_OP_RECV, none, out_at(to), bytes, R2_OP_NONE);
    begin(exec, &schedule);
}

static void assert_lands(uint32_t call)
{
    assert_call(call, false, 0);
    assert_ptr_equal(calls[call].gpu.data, (const void *) (uintptr_t) out);
    assert_int_equal(calls[call].gpu.bytes, BYTES);
    assert_ptr_equal(calls[call].gpu_data, (char *) (uintptr_t) out + PIECE);
    assert_non_null(calls[call].sink);
}

static void what_nics_put_is_not_stored(void **state)
{
    r2_exec_t exec;

    (void) state;
    one_recv(&exec, PIECE, LONG);
    run_until_calls(1);
    assert_lands(0);
    put(0, 0, LONG, 5);
    complete(0, R2_OK);
    assert_false(exec.over); /* the GPU does not see it yet */
    assert_int_equal(run_until_over(&exec), R2_OK);
    r2_exec_fini(&exec);
    assert_true(is_all(PIECE, LONG, 5) && is_all(0, PIECE, 9) &&
                is_all(PIECE + LONG, BYTES - PIECE - LONG, 9));
    assert_int_equal(fakecuda_counter("bytes_h2d"), on);
    assert_int_equal(flushes_now(), flushes + 1);
    OK(cuMemcpyDtoD(in, out, BYTES)); /* a mistake, had it not been flushed */
    OK(cuCtxSynchronize());
}

/* Chunks before the grant, and one that was sent again. */
static void what_comes_otherwise_is_stored_beside_it(void **state)
{
    r2_exec_t exec;

    (void) state;
    one_recv(&exec, PIECE, LONG);
    run_until_calls(1);
    come(0, 0, 4096, 1);
    come(0, 4096, 4096, 2);
    put(0, 8192, 8192, 3);
    come(0, 24576, LONG - 24576, 5);
    put(0, 16384, 8192, 4);
    complete(0, R2_OK);
    assert_int_equal(run_until_over(&exec), R2_OK);
    r2_exec_fini(&exec);
    assert_true(is_all(PIECE, 4096, 1) && is_all(PIECE + 4096, 4096, 2) &&
                is_all(PIECE + 8192, 8192, 3) && is_all(PIECE + 16384, 8192, 4) &&
                is_all(PIECE + 24576, LONG - 24576, 5));
    assert_int_equal(fakecuda_counter("bytes_h2d"), on + 8192 + LONG - 24576);
    assert_int_equal(flushes_now(), flushes + 1);
}

static void a_message_that_is_not_put_is_stored_as_any_other(void **state)
{
    r2_exec_t exec;

    (void) state;
    one_recv(&exec, PIECE, LONG);
    run_until_calls(1);
    come(0, 16384, LONG - 16384, 7);
    come(0, 0, 16384, 6);
    complete(0, R2_OK);
    assert_int_equal(run_until_over(&exec), R2_OK);
    assert_false(exec.ops[0].direct);
    r2_exec_fini(&exec);
    assert_true(is_all(PIECE, 16384, 6) && is_all(PIECE + 16384, LONG - 16384, 7));
    assert_int_equal(fakecuda_counter("bytes_h2d"), on + LONG);
    assert_int_equal(flushes_now(), flushes);
}

/* The application's own work on the buffer. */
static void nothing_is_put_before_the_application_has_read_it(void **state)
{
    r2_exec_t exec;

    (void) state;
    close_gate(NULL, &gate);
    OK(cuMemcpyDtoDAsync(in, out, BYTES, NULL));
    one_recv(&exec, PIECE, LONG);
    run_a_while();
    assert_int_equal(call_count, 0);
    sem_post(&gate);
    run_until_calls(1);
    put(0, 0, LONG, 5);
    complete(0, R2_OK);
    ends(&exec, R2_OK);
    assert_int_equal(*seen(in + PIECE), 9);
}

/* What was put is in the user's memory only: NICs read it there. */
static void what_was_put_is_passed_on_from_there(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint32_t op;

    (void) state;
    r2_schedule_init(&schedule);
    op = add(&schedule, R2_OP_RECV, none, out_at(PIECE), LONG, R2_OP_NONE);
    add(&schedule, R2_OP_SEND, out_at(PIECE), none, LONG, op);
    begin(&exec, &schedule);
    run_until_calls(1);
    assert_lands(0);
    put(0, 0, LONG, 5);
    complete(0, R2_OK);
    run_until_calls(2);
    assert_true(0 != calls[1].gpu.gpu_id);
    assert_ptr_equal(calls[1].data, (const char *) (uintptr_t) out + PIECE);
    ends_with(&exec, 1);
    assert_int_equal(fakecuda_counter("bytes_d2h"), off);
}

/* And where they cannot, it is loaded. */
static void what_was_put_is_loaded_where_it_is_needed(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint32_t op;

    (void) state;
    r2_schedule_init(&schedule);
    op = add(&schedule, R2_OP_RECV, none, out_at(PIECE), LONG, R2_OP_NONE);
    add(&schedule, R2_OP_SEND, out_at(PIECE), none, LONG, op);
    begin(&exec, &schedule);
    run_until_calls(1);
    come(0, 0, 4096, 4);
    put(0, 4096, LONG - 4096, 5);
    complete(0, R2_OK);
    reads_gpus = false;
    run_until_calls(2);
    assert_int_equal(calls[1].gpu.gpu_id, 0);
    assert_int_equal(calls[1].data[0], 4);
    assert_int_equal(calls[1].data[4096], 5);
    assert_int_equal(calls[1].data[LONG - 1], 5);
    ends_with(&exec, 1);
}

static void is_copied(uint64_t to, uint64_t bytes)
{
    r2_exec_t exec;

    call_count = 0;
    one_recv(&exec, to, bytes);
    run_until_calls(1);
    assert_call(0, false, 0);
    assert_null(calls[0].sink);
    assert_int_equal(calls[0].gpu.gpu_id, 0);
    memset((char *) (uintptr_t) calls[0].data, 8, bytes);
    ends_with(&exec, 0);
    assert_true(is_all(to, bytes, 8));
}

static void what_nics_cannot_write_is_stored(void **state)
{
    const CUdeviceptr plain = out;

    (void) state;
    is_copied(0, PIECE - 1);
    puts_to_gpus = false;
    is_copied(PIECE, LONG);
    puts_to_gpus = true;
    OK(cuMemAllocAsync(&out, BYTES, NULL)); /* of a pool */
    OK(cuCtxSynchronize());
    is_copied(PIECE, LONG);
    OK(cuMemFree(out));
    out = plain;
}

/* Writers of other ops, and readers that are no NICs. */
static void what_is_not_final_is_in_the_copy(void **state)
{
    static const r2_op_kind_t kinds[] = {R2_OP_REDUCE, R2_OP_COPY, R2_OP_RECV};
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint32_t op;

    (void) state;
    for (size_t i = 0; i < r2_array_count(kinds); ++i) {
        const bool is_reader = R2_OP_COPY == kinds[i];

        call_count = 0;
        r2_schedule_init(&schedule);
        op = add(&schedule, R2_OP_RECV, none, out_at(PIECE), LONG, R2_OP_NONE);
        add(&schedule, kinds[i], is_reader ? out_at(PIECE) : in_at(0),
            is_reader ? none : out_at(PIECE), is_reader ? 0 : LONG, op);
        schedule.ops[1].bytes = LONG;
        schedule.scratch_bytes = LONG;
        begin(&exec, &schedule);
        run_until_calls(1);
        assert_int_equal(calls[0].gpu.gpu_id, 0);
        memset((char *) (uintptr_t) calls[0].data, 2, LONG);
        complete(0, R2_OK);
        if (R2_OP_RECV == kinds[i]) { /* the last one */
            run_until_calls(2);
            assert_true(0 != calls[1].gpu.gpu_id);
            put(1, 0, LONG, 3);
            complete(1, R2_OK);
        }
        ends(&exec, R2_OK);
        assert_int_equal(*seen(out + PIECE), R2_OP_REDUCE == kinds[i] ? 2 + 1 : is_reader ? 2 : 3);
    }
}

/* H100s need no flush where the CPU knows; what older drivers do nobody knows. */
static void devices_say_how_they_see_it(void **state)
{
    r2_exec_t exec;

    (void) state;
    set("nic_order", "200");
    one_recv(&exec, PIECE, LONG);
    run_until_calls(1);
    assert_lands(0);
    put(0, 0, LONG, 5);
    ends_with(&exec, 0);
    assert_int_equal(flushes_now(), flushes);
}

static void drivers_that_do_not_say_are_left_alone(void **state)
{
    (void) state;
    set("nic_order", "999");
    is_copied(PIECE, LONG);
}

static void a_message_that_fails_fails_the_run(void **state)
{
    r2_exec_t exec;

    (void) state;
    one_recv(&exec, PIECE, LONG);
    run_until_calls(1);
    come(0, 0, 4096, 1);
    put(0, 4096, 4096, 2);
    complete(0, R2_ERR_PEER_GONE);
    ends(&exec, R2_ERR_PEER_GONE);
    assert_int_equal(fakecuda_counter("bytes_h2d"), on);
}

/* Nothing is copied any more when the run is over. */
static void a_device_that_fails_meanwhile_fails_the_run(void **state)
{
    r2_exec_t exec;

    (void) state;
    one_recv(&exec, PIECE, LONG);
    run_until_calls(1);
    come(0, 0, 4096, 1);
    put(0, 4096, LONG - 4096, 2);
    set("faults", "cuFlushGPUDirectRDMAWrites@1=999");
    complete(0, R2_OK);
    ends(&exec, R2_ERR_GPU);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T_LANDS(what_nics_put_is_not_stored),
        T_LANDS(what_comes_otherwise_is_stored_beside_it),
        T_LANDS(a_message_that_is_not_put_is_stored_as_any_other),
        T_LANDS(nothing_is_put_before_the_application_has_read_it),
        T_LANDS(what_was_put_is_passed_on_from_there),
        T_LANDS(what_was_put_is_loaded_where_it_is_needed),
        T_LANDS(what_nics_cannot_write_is_stored),
        T_LANDS(what_is_not_final_is_in_the_copy),
        T_LANDS(devices_say_how_they_see_it),
        T_LANDS(drivers_that_do_not_say_are_left_alone),
        T_LANDS(a_message_that_fails_fails_the_run),
        T_LANDS(a_device_that_fails_meanwhile_fails_the_run),
    };

    return cmocka_run_group_tests_name("memory of a GPU that NICs write", tests, NULL, NULL);
}
