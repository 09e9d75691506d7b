/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Runs on buffers of a GPU, on the driver of tests/fakecuda and links that the test plays: what is
 * sent, what comes back, and when.
 */
#include "r2_config.h"

#include "exec_gpu.h"

/* As r2_coll_post(): after what the application has started. */
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
        r2_engine_run(&engine, true);
        sched_yield();
    }
}

static const r2_region_t none = {R2_BUF_SCRATCH, 0};

/* A link delivers: the run's copy of the buffer is where it writes. */
static void arrive(uint32_t call, uint8_t value)
{
    memset((char *) (uintptr_t) calls[call].data, value, calls[call].bytes);
    complete(call, R2_OK);
}

static void assert_out(int first, int end, uint8_t value)
{
    for (int i = first; i < end; ++i) {
        assert_int_equal(seen(out)[i], value);
    }
}

static void sends_what_the_device_has(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;

    (void) state;
    r2_schedule_init(&schedule);
    add_sends(&schedule, 3, PIECE);
    begin(&exec, &schedule);
    run_until_calls(3);
    for (uint32_t i = 0; i < 3; ++i) {
        assert_memory_equal(calls[i].data, seen(in) + i * PIECE, PIECE);
        assert_ptr_not_equal(calls[i].data, (void *) (uintptr_t) (in + i * PIECE));
        complete(i, R2_OK);
    }
    assert_int_equal(run_until_over(&exec), R2_OK);
    r2_exec_fini(&exec);
}

/* One load for what two ops read, whoever of them comes first. */
static void loads_a_byte_once(void **state)
{
    const uint64_t before = fakecuda_counter("bytes_d2h");
    r2_schedule_t schedule;
    r2_exec_t exec;

    (void) state;
    r2_schedule_init(&schedule);
    add(&schedule, R2_OP_SEND, in_at(32), none, 32, R2_OP_NONE);
    add(&schedule, R2_OP_SEND, in_at(0), none, 96, R2_OP_NONE);
    add(&schedule, R2_OP_SEND, in_at(0), none, 96, R2_OP_NONE);
    begin(&exec, &schedule);
    run_until_calls(3);
    assert_memory_equal(calls[1].data, seen(in), 96);
    assert_int_equal(fakecuda_counter("bytes_d2h") - before, 96);
    for (uint32_t i = 0; i < 3; ++i) {
        complete(i, R2_OK);
    }
    assert_int_equal(run_until_over(&exec), R2_OK);
    r2_exec_fini(&exec);
}

/* What nobody writes stays as it is: no byte beside the ops' comes back. */
static void stores_what_ops_write_and_no_more(void **state)
{
    const uint64_t before = fakecuda_counter("bytes_d2h");
    r2_schedule_t schedule;
    r2_exec_t exec;

    (void) state;
    r2_schedule_init(&schedule);
    add(&schedule, R2_OP_RECV, none, out_at(100), 50, R2_OP_NONE);
    add(&schedule, R2_OP_RECV, none, out_at(200), 50, R2_OP_NONE);
    begin(&exec, &schedule);
    assert_int_equal(call_count, 2);
    memset(seen(out) + 150, 7, 50); /* the application's own business */
    arrive(1, 2);
    arrive(0, 1);
    assert_int_equal(run_until_over(&exec), R2_OK);
    assert_out(0, 100, 9);
    assert_out(100, 150, 1);
    assert_out(150, 200, 7);
    assert_out(200, 250, 2);
    assert_out(250, BYTES, 9);
    assert_int_equal(fakecuda_counter("bytes_d2h"), before); /* nothing was loaded */
    r2_exec_fini(&exec);
}

/* In place: what is there is loaded, reduced with what comes, sent on, and stored once. */
static void reduces_in_place(void **state)
{
    const uint64_t before = fakecuda_counter("bytes_h2d");
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint32_t op;

    (void) state;
    r2_schedule_init(&schedule);
    schedule.scratch_bytes = PIECE;
    op = add(&schedule, R2_OP_RECV, none, none, PIECE, R2_OP_NONE);
    op = add(&schedule, R2_OP_REDUCE, none, out_at(0), PIECE, op);
    op = add(&schedule, R2_OP_SEND, out_at(0), none, PIECE, op);
    add(&schedule, R2_OP_RECV, none, out_at(0), PIECE / 2, op);
    begin(&exec, &schedule);
    arrive(0, 3);
    run_until_calls(2);
    for (int i = 0; i < PIECE; ++i) {
        assert_int_equal(calls[1].data[i], 12);
    }
    complete(1, R2_OK);
    r2_engine_run(&engine, true);
    /* what is written once more is not stored yet */
    assert_int_equal(fakecuda_counter("bytes_h2d") - before, PIECE / 2);
    arrive(2, 5);
    assert_int_equal(run_until_over(&exec), R2_OK);
    assert_out(0, PIECE / 2, 5);
    assert_out(PIECE / 2, PIECE, 12);
    assert_int_equal(fakecuda_counter("bytes_h2d") - before, PIECE);
    r2_exec_fini(&exec);
}

static void copies_within_the_device(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;

    (void) state;
    r2_schedule_init(&schedule);
    add(&schedule, R2_OP_COPY, in_at(10), out_at(20), 30, R2_OP_NONE);
    begin(&exec, &schedule);
    assert_int_equal(run_until_over(&exec), R2_OK);
    assert_memory_equal(seen(out) + 20, seen(in) + 10, 30);
    assert_out(50, 60, 9);
    r2_exec_fini(&exec);
}

/* Pinned memory is as long as what ops touch, not as the buffer. */
static void needs_no_memory_for_gaps(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;

    (void) state;
    r2_schedule_init(&schedule);
    add(&schedule, R2_OP_COPY, in_at(7), out_at(20), 30, R2_OP_NONE);
    add(&schedule, R2_OP_COPY, in_at(60001), out_at(60000), 90, R2_OP_NONE);
    begin(&exec, &schedule);
    assert_int_equal(run_until_over(&exec), R2_OK);
    assert_memory_equal(seen(out) + 20, seen(in) + 7, 30);
    assert_memory_equal(seen(out) + 60000, seen(in) + 60001, 90);
    assert_out(50, 60000, 9);
    r2_exec_fini(&exec);
    assert_int_equal(engine.staging.pins.kept_bytes, 2 * 4096);
}

/* Elements are where they are in the buffer, as far as alignment goes. */
static void keeps_elements_aligned(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;

    (void) state;
    r2_schedule_init(&schedule);
    add(&schedule, R2_OP_SEND, in_at(3), none, 10, R2_OP_NONE);
    add(&schedule, R2_OP_SEND, in_at(1000), none, 24, R2_OP_NONE);
    begin(&exec, &schedule);
    run_until_calls(2);
    assert_int_equal((uintptr_t) calls[0].data % 64, 3);
    assert_int_equal((uintptr_t) calls[1].data % 64, 1000 % 64);
    complete(0, R2_OK);
    complete(1, R2_OK);
    assert_int_equal(run_until_over(&exec), R2_OK);
    r2_exec_fini(&exec);
}

/* Its kernel is not done: nothing may be read yet. */
static void follows_the_application(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;

    (void) state;
    close_gate(NULL, &gate);
    OK(cuMemsetD8Async(in, 77, PIECE, NULL));
    r2_schedule_init(&schedule);
    add_sends(&schedule, 1, PIECE);
    begin(&exec, &schedule);
    for (int i = 0; i < 50; ++i) {
        r2_engine_run(&engine, true);
        sched_yield();
    }
    assert_int_equal(call_count, 0);
    sem_post(&gate);
    run_until_calls(1);
    assert_int_equal(calls[0].data[0], 77);
    complete(0, R2_OK);
    assert_int_equal(run_until_over(&exec), R2_OK);
    r2_exec_fini(&exec);
}

/* More ops than a queue has tickets. */
static void many_ops_take_turns(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;

    (void) state;
    set("delay_us", "20");
    r2_schedule_init(&schedule);
    for (uint32_t i = 0; i < 200; ++i) {
        add(&schedule, R2_OP_COPY, in_at(i * 16), out_at(i * 16), 16, R2_OP_NONE);
    }
    begin(&exec, &schedule);
    assert_int_equal(run_until_over(&exec), R2_OK);
    assert_memory_equal(seen(out), seen(in), 200 * 16);
    r2_exec_fini(&exec);
}

/* The application gets its memory back when it hears of the error: nothing may touch it any
 * more. */
static void an_error_comes_after_all_copies(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;

    (void) state;
    r2_schedule_init(&schedule);
    add(&schedule, R2_OP_RECV, none, out_at(0), BYTES / 2, R2_OP_NONE);
    add(&schedule, R2_OP_RECV, none, out_at(BYTES / 2), BYTES / 2, R2_OP_NONE);
    begin(&exec, &schedule);
    set("copy_mbytes_per_s", "1"); /* the store takes 32 ms */
    arrive(0, 4);
    r2_engine_run(&engine, true); /* it is under way */
    r2_exec_abort(&exec, R2_ERR_NO_PATH);
    assert_out(0, BYTES / 2, 4); /* cuMemFree would not show it: drivers wait there */
    assert_int_equal(run_until_over(&exec), R2_ERR_NO_PATH);
    r2_exec_fini(&exec);
}

static void a_broken_device_ends_the_run(void **state)
{
    r2_exec_args_t args = arguments((void *) (uintptr_t) in, (void *) (uintptr_t) out);
    r2_schedule_t schedule;
    r2_exec_t exec;

    (void) state;
    r2_schedule_init(&schedule);
    add_sends(&schedule, 1, PIECE);
    assert_int_equal(r2_staging_follow(&engine.staging, &place), R2_OK);
    OK(cuCtxSynchronize()); /* the next operation is the copy */
    set("faults", "exec@1=214");
    args.at[0] = args.at[1] = place;
    start(&exec, &schedule, &args);
    assert_int_equal(run_until_over(&exec), R2_ERR_GPU);
    assert_int_equal(call_count, 0);
    r2_exec_fini(&exec);
}

/* Pinned memory comes from what earlier runs left. */
static void a_second_run_allocates_nothing(void **state)
{
    uint64_t before = 0;

    for (int i = 0; i < 3; ++i) {
        copies_within_the_device(state);
        if (0 == i) {
            before = fakecuda_counter("allocs");
        }
    }
    assert_int_equal(fakecuda_counter("allocs"), before);
}

/* A buffer of two halves that change places. */
static void halves(void *arg, uint64_t offset, uint64_t bytes, r2_run_fn_t found, void *found_arg)
{
    CUdeviceptr at = *(const CUdeviceptr *) arg;
    const uint64_t half = BYTES / 2;

    for (uint64_t i = offset; i < offset + bytes; ++i) {
        found(found_arg, (void *) (uintptr_t) (at + (i + half) % BYTES), i, 1);
    }
}

static void reaches_pieces_of_memory(void **state)
{
    r2_exec_args_t args = arguments(NULL, NULL);
    r2_schedule_t schedule;
    r2_exec_t exec;

    (void) state;
    set("delay_us", "0");
    args.at[0] = args.at[1] = place;
    args.convertors[0] = (r2_convertor_t){never, &in, halves};
    args.convertors[1] = (r2_convertor_t){never, &out, halves};
    r2_schedule_init(&schedule);
    add(&schedule, R2_OP_COPY, in_at(BYTES / 2 - 20), out_at(0), 40, R2_OP_NONE);
    assert_int_equal(r2_staging_follow(&engine.staging, &place), R2_OK);
    start(&exec, &schedule, &args);
    assert_int_equal(run_until_over(&exec), R2_OK);
    assert_memory_equal(seen(out) + BYTES / 2, seen(in) + BYTES - 20, 20);
    assert_memory_equal(seen(out) + BYTES / 2 + 20, seen(in), 20);
    r2_exec_fini(&exec);
}

/* The service thread comes by between the last acknowledgement and the application. */
static void the_application_finishes_its_runs(void **state)
{
    r2_exec_args_t args = arguments((void *) (uintptr_t) in, (void *) (uintptr_t) out);
    r2_schedule_t schedule;
    r2_exec_t exec;

    (void) state;
    args.at[0] = args.at[1] = place;
    args.convertors[0] = (r2_convertor_t){never, &in, halves};
    r2_schedule_init(&schedule);
    add_sends(&schedule, 1, PIECE);
    assert_int_equal(r2_staging_follow(&engine.staging, &place), R2_OK);
    start(&exec, &schedule, &args);
    run_until_calls(1);
    assert_true(exec.app_only);
    complete(0, R2_OK);
    r2_engine_run(&engine, false);
    assert_false(exec.over);
    r2_engine_run(&engine, true);
    assert_true(exec.over);
    assert_ptr_equal(r2_engine_collect(&engine), &exec);
    assert_int_equal(exec.status, R2_OK);
    r2_exec_fini(&exec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T_GPU(sends_what_the_device_has),
        T_GPU(loads_a_byte_once),
        T_GPU(stores_what_ops_write_and_no_more),
        T_GPU(reduces_in_place),
        T_GPU(copies_within_the_device),
        T_GPU(needs_no_memory_for_gaps),
        T_GPU(keeps_elements_aligned),
        T_GPU(follows_the_application),
        T_GPU(many_ops_take_turns),
        T_GPU(an_error_comes_after_all_copies),
        T_GPU(a_broken_device_ends_the_run),
        T_GPU(a_second_run_allocates_nothing),
        T_GPU(reaches_pieces_of_memory),
        T_GPU(the_application_finishes_its_runs),
    };

    return cmocka_run_group_tests_name("staged runs", tests, NULL, NULL);
}
