/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Messages that NICs read in memory of a GPU, on the driver of tests/fakecuda and links that the
 * test plays: what is, from when on, and what is loaded after all.
 */
#include "r2_config.h"

#include "exec_loans.h"

static int start_nics(void **state)
{
    start_loans(state);
    engine.loans.enabled = beside = false;
    engine.staging.nic_bytes = PIECE;
    reads_gpus = true;
    return 0;
}

static int end_nics(void **state)
{
    reads_gpus = false;
    return end_gpu(state);
}

#define T_NIC(test) cmocka_unit_test_setup_teardown(test, start_nics, end_nics)

/* A message of the application's own memory. */
static void assert_by_nic(uint32_t call)
{
    assert_call(call, true, 0);
    assert_ptr_equal(calls[call].data, (const char *) (uintptr_t) in + PIECE);
    assert_ptr_equal(calls[call].gpu.data, (const void *) (uintptr_t) in);
    assert_int_equal(calls[call].gpu.bytes, BYTES);
    assert_true(0 != calls[call].gpu.gpu_id);
}

static void what_nics_read_is_not_loaded(void **state)
{
    r2_exec_t exec;

    (void) state;
    one_send(&exec, PIECE, LONG);
    run_until_calls(1);
    assert_by_nic(0);
    complete(0, R2_OK);
    assert_int_equal(run_until_over(&exec), R2_OK);
    assert_int_equal(fakecuda_counter("bytes_d2h"), off);
    r2_exec_fini(&exec);
}

static void nothing_is_read_before_the_application_has_written_it(void **state)
{
    r2_exec_t exec;

    (void) state;
    close_gate(NULL, &gate);
    OK(cuMemsetD8Async(in, 77, LONG, NULL));
    one_send(&exec, PIECE, LONG);
    run_a_while();
    assert_int_equal(call_count, 0);
    sem_post(&gate);
    run_until_calls(1);
    assert_by_nic(0);
    assert_int_equal(*seen(in), 77);
    ends_with(&exec, 0);
}

static void what_no_lane_can_send_is_loaded(void **state)
{
    r2_exec_t exec;

    (void) state;
    one_send(&exec, PIECE, LONG);
    run_until_calls(1);
    calls[0].fetch(calls[0].arg);
    assert_true(r2_nic_prepare(&exec, 0)); /* once more, as loads ahead do: it stays asked for */
    while (NULL == calls[0].fetched) {
        r2_engine_run(&engine, true);
    }
    assert_memory_equal(calls[0].fetched, seen(in + PIECE), LONG);
    assert_int_equal(fakecuda_counter("bytes_d2h"), off + LONG);
    run_a_while();
    assert_false(exec.over);
    complete(0, R2_OK);
    assert_int_equal(run_until_over(&exec), R2_OK);
    assert_int_equal(call_count, 1);
    r2_exec_fini(&exec);
}

/* The acknowledgement of what was thought to be lost: nobody writes to the copy when the op
 * ends. */
static void a_message_that_ends_while_it_is_loaded_waits_for_that(void **state)
{
    const r2_staged_side_t *side;
    r2_exec_t exec;

    (void) state;
    set("delay_us", "20000");
    one_send(&exec, PIECE, LONG);
    run_until_calls(1);
    calls[0].fetch(calls[0].arg);
    complete(0, R2_OK);
    assert_false(exec.over);
    assert_null(exec.ops[0].message); /* the link may use it for others */
    assert_int_equal(run_until_over(&exec), R2_OK);
    side = &exec.stage->sides[0];
    assert_int_equal(r2_mem_queue_test(&side->place->loads, side->loaded[0]), R2_OK);
    r2_exec_fini(&exec);
    assert_null(calls[0].fetched);
    assert_int_equal(fakecuda_counter("bytes_d2h"), off + LONG);
}

static void a_message_that_fails_while_it_is_loaded_fails(void **state)
{
    r2_exec_t exec;

    (void) state;
    one_send(&exec, PIECE, LONG);
    run_until_calls(1);
    calls[0].fetch(calls[0].arg);
    complete(0, R2_ERR_PEER_GONE);
    ends(&exec, R2_ERR_PEER_GONE);
}

static void is_loaded(uint64_t bytes)
{
    r2_exec_t exec;

    call_count = 0;
    one_send(&exec, PIECE, bytes);
    run_until_calls(1);
    assert_call(0, true, 0);
    assert_int_equal(calls[0].gpu.gpu_id, 0);
    assert_memory_equal(calls[0].data, seen(in + PIECE), bytes);
    ends_with(&exec, 0);
}

static void what_nics_cannot_read_is_loaded(void **state)
{
    const CUdeviceptr plain = in;

    (void) state;
    is_loaded(PIECE - 1);
    reads_gpus = false;
    is_loaded(LONG);
    reads_gpus = true;
    OK(cuMemAllocAsync(&in, BYTES, NULL)); /* of a pool */
    OK(cuMemsetD8(in, 4, BYTES));
    OK(cuCtxSynchronize());
    is_loaded(LONG);
    OK(cuMemFree(in));
    in = plain;
    assert_int_equal(fakecuda_counter("bytes_d2h"), off + PIECE - 1 + 2 * LONG);
}

/* In place: what the peer has sent is in the copy. */
static void what_an_op_has_written_is_sent_from_the_copy(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint32_t op;

    (void) state;
    r2_schedule_init(&schedule);
    op = add(&schedule, R2_OP_RECV, none, out_at(0), LONG, R2_OP_NONE);
    add(&schedule, R2_OP_SEND, out_at(0), none, LONG, op);
    begin(&exec, &schedule);
    run_until_calls(1);
    memset((char *) (uintptr_t) calls[0].data, 3, LONG);
    complete(0, R2_OK);
    run_until_calls(2);
    assert_int_equal(calls[1].gpu.gpu_id, 0);
    assert_int_equal(calls[1].data[LONG - 1], 3);
    ends_with(&exec, 1);
}

/* The stand-in's first device is at bus 16. */
static void near_bus(r2_near_gpus_t *gpus_p, int bus)
{
    *gpus_p = (r2_near_gpus_t){.count = 1};
    gpus_p->of[0].itself.tells = gpus_p->of[0].copies.tells = true;
    snprintf(gpus_p->of[0].pci, sizeof(gpus_p->of[0].pci), "0000:%02x:00.0", (unsigned) bus);
    engine.staging.near = gpus_p;
}

/* What NICs read on the GPU, what is loaded, and what was reduced. */
static void sends_near(bool itself_tells)
{
    r2_schedule_t schedule;
    r2_near_gpus_t gpus;
    r2_exec_t exec;
    uint32_t recv;

    near_bus(&gpus, 16);
    gpus.of[0].itself.tells = itself_tells;
    r2_schedule_init(&schedule);
    schedule.scratch_bytes = PIECE;
    add(&schedule, R2_OP_SEND, in_at(0), none, LONG, R2_OP_NONE);
    add(&schedule, R2_OP_SEND, in_at(LONG), none, PIECE - 1, R2_OP_NONE);
    recv = add(&schedule, R2_OP_RECV, none, none, PIECE, R2_OP_NONE);
    add(&schedule, R2_OP_SEND, none, none, PIECE, recv);
    begin(&exec, &schedule);
    run_until_calls(3);
    for (uint32_t i = 0; i < 3; ++i) {
        if (!calls[i].send) {
            complete(i, R2_OK);
        }
    }
    run_until_calls(4);
    for (uint32_t i = 0; i < 4; ++i) {
        if (calls[i].send) {
            const r2_near_t *itself = itself_tells ? &gpus.of[0].itself : NULL;

            assert_ptr_equal(calls[i].near, 0 == calls[i].tag ? itself : &gpus.of[0].copies);
            complete(i, R2_OK);
        }
    }
    ends(&exec, R2_OK);
}

static void rails_are_near_to_where_it_lies(void **state)
{
    (void) state;
    sends_near(true);
}

/* All are as near to the GPU, and not to the copies. */
static void rails_are_near_to_copies(void **state)
{
    (void) state;
    sends_near(false);
}

/* Of another GPU nothing is known, nor of the host's own memory beside one. */
static void rails_are_as_near_to_all_else(void **state)
{
    static char host[LONG];
    r2_schedule_t schedule;
    r2_near_gpus_t gpus;
    r2_exec_args_t args;
    r2_exec_t exec;

    (void) state;
    for (int bus = 15; bus <= 16; ++bus) {
        near_bus(&gpus, bus);
        r2_schedule_init(&schedule);
        add(&schedule, R2_OP_SEND, in_at(0), none, LONG, R2_OP_NONE);
        if (15 == bus) {
            begin(&exec, &schedule);
        } else {
            r2_staging_fini(&engine.staging); /* the place is known by the time it is opened */
            r2_staging_init(&engine.staging, &mem, 1 << 20);
            engine.staging.near = &gpus;
            args = arguments(host, (void *) (uintptr_t) out);
            args.at[1] = place;
            assert_int_equal(r2_staging_follow(&engine.staging, &place), R2_OK);
            start(&exec, &schedule, &args);
        }
        run_until_calls(1);
        assert_null(calls[0].near);
        ends_with(&exec, 0);
        call_count = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T_NIC(what_nics_read_is_not_loaded),
        T_NIC(nothing_is_read_before_the_application_has_written_it),
        T_NIC(what_no_lane_can_send_is_loaded),
        T_NIC(a_message_that_ends_while_it_is_loaded_waits_for_that),
        T_NIC(a_message_that_fails_while_it_is_loaded_fails),
        T_NIC(what_nics_cannot_read_is_loaded),
        T_NIC(what_an_op_has_written_is_sent_from_the_copy),
        T_NIC(rails_are_near_to_where_it_lies),
        T_NIC(rails_are_near_to_copies),
        T_NIC(rails_are_as_near_to_all_else),
    };

    return cmocka_run_group_tests_name("memory of a GPU that NICs read", tests, NULL, NULL);
}
