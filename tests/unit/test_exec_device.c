/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Reductions of runs that a GPU makes, on the driver of tests/fakecuda and links that the test
 * plays: who reduces, what is loaded, how many launches there are, and what waits for them. Sums of
 * bytes: what the processor adds is counted.
 */
#include "r2_config.h"

#include "exec_sums.h"

/* In place: RECV, REDUCE, SEND of what came of it. */
static void in_place(r2_schedule_t *schedule, uint64_t bytes)
{
    uint32_t op;

    r2_schedule_init(schedule);
    schedule->scratch_bytes = bytes;
    op = add(schedule, R2_OP_RECV, none, none, bytes, R2_OP_NONE);
    op = add(schedule, R2_OP_REDUCE, none, out_at(0), bytes, op);
    add(schedule, R2_OP_SEND, out_at(0), none, bytes, op);
}

static void assert_summed(uint32_t call, uint8_t value)
{
    for (uint64_t i = 0; i < calls[call].bytes; ++i) {
        assert_int_equal((uint8_t) calls[call].data[i], value);
    }
}

/* What was summed is sent, and stored. */
static void ends_in_place(r2_exec_t *exec, uint64_t bytes, uint8_t value)
{
    run_until_calls(2);
    assert_summed(1, value);
    complete(1, R2_OK);
    assert_int_equal(run_until_over(exec), R2_OK);
    for (uint64_t i = 0; i < bytes; ++i) {
        assert_int_equal(seen(out)[i], value);
    }
    assert_int_equal(seen(out)[bytes], 9);
    r2_exec_fini(exec);
}

/* Its own memory is where the GPU reads: nothing is loaded. */
static void the_gpu_reduces_what_it_has(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;

    (void) state;
    in_place(&schedule, PIECE);
    begin(&exec, &schedule);
    arrive(0, 3);
    ends_in_place(&exec, PIECE, 12);
    assert_int_equal(launched(), 1);
    assert_int_equal(reduced, 0);
    assert_int_equal(fakecuda_counter("bytes_d2h"), loaded);
}

static void the_processor_reduces_short_ones(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;

    (void) state;
    in_place(&schedule, PIECE - 1);
    begin(&exec, &schedule);
    arrive(0, 3);
    ends_in_place(&exec, PIECE - 1, 12);
    assert_int_equal(launched(), 0);
    assert_int_equal(reduced, PIECE - 1);
}

/* What an op has written is read from the copy; what is sent later is loaded all the same. */
static void what_was_written_is_read_from_the_copy(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint32_t op, other;

    (void) state;
    r2_schedule_init(&schedule);
    schedule.scratch_bytes = PIECE;
    op = add(&schedule, R2_OP_RECV, none, out_at(0), PIECE, R2_OP_NONE);
    other = add(&schedule, R2_OP_RECV, none, none, PIECE, R2_OP_NONE);
    op = add(&schedule, R2_OP_REDUCE, in_at(0), out_at(0), PIECE, op);
    add(&schedule, R2_OP_REDUCE, out_at(0), none, PIECE, op);
    schedule.ops[schedule.op_count - 1].dst = scratch_at(0);
    (void) other;
    begin(&exec, &schedule);
    arrive(1, 5);
    arrive(0, 1);
    assert_int_equal(run_until_over(&exec), R2_OK);
    for (int i = 0; i < PIECE; ++i) {
        const uint8_t sum = (uint8_t) (seen(in)[i] + 1);

        assert_int_equal(seen(out)[i], sum);
        assert_int_equal((uint8_t) exec.scratch[i], (uint8_t) (sum + 5));
    }
    assert_int_equal(launched(), 2);
    assert_int_equal(fakecuda_counter("bytes_d2h"), loaded);
    r2_exec_fini(&exec);
}

static void sums_of_pieces(uint32_t count, uint64_t expected)
{
    r2_schedule_t schedule;
    r2_exec_t exec;

    r2_schedule_init(&schedule);
    for (uint32_t i = 0; i < count; ++i) {
        add(&schedule, R2_OP_REDUCE, in_at(i * PIECE), out_at(i * PIECE), PIECE, R2_OP_NONE);
    }
    begin(&exec, &schedule);
    assert_int_equal(run_until_over(&exec), R2_OK);
    for (uint32_t i = 0; i < count * PIECE; ++i) {
        assert_int_equal(seen(out)[i], (uint8_t) (seen(in)[i] + 9));
    }
    assert_int_equal(launched(), expected);
    r2_exec_fini(&exec);
}

static void what_is_ready_together_is_one_launch(void **state)
{
    (void) state;
    sums_of_pieces(R2_KERNEL_PIECES, 1);
}

static void more_take_another_launch(void **state)
{
    (void) state;
    sums_of_pieces(R2_KERNEL_PIECES + 1, 2);
}

/* One after the other, while the GPU is at work: they are one launch when it is done. */
static void pieces_come_together_meanwhile(void **state)
{
    enum { COUNT = 6 };
    r2_schedule_t schedule;
    r2_exec_t exec;

    (void) state;
    r2_schedule_init(&schedule);
    schedule.scratch_bytes = COUNT * PIECE;
    for (uint32_t i = 0; i < COUNT; ++i) {
        const uint32_t op =
            add(&schedule, R2_OP_RECV, none, scratch_at(i * PIECE), PIECE, R2_OP_NONE);

        add(&schedule, R2_OP_REDUCE, scratch_at(i * PIECE), out_at(i * PIECE), PIECE, op);
    }
    close_gate(NULL, &gate);
    begin(&exec, &schedule);
    r2_engine_run(&engine, true);
    for (uint32_t i = 0; i < COUNT; ++i) {
        arrive(i, (uint8_t) i);
        r2_engine_run(&engine, true);
    }
    assert_int_equal(launched(), 1);
    sem_post(&gate);
    assert_int_equal(run_until_over(&exec), R2_OK);
    assert_int_equal(launched(), 2);
    for (uint32_t i = 0; i < COUNT * PIECE; ++i) {
        assert_int_equal(seen(out)[i], (uint8_t) (9 + i / PIECE));
    }
    r2_exec_fini(&exec);
}

/* Pieces of an MiB of what a rank reduces, as plans cut it, come one by one and faster than the GPU
 * reduces them: eight are one launch, after the first. */
static void launches_are_counted_per_mib(void **state)
{
    enum { MIB_PIECES = (1 << 20) / 32768, BEHIND = MIB_PIECES - 1 };
    r2_schedule_t schedule;
    r2_exec_t exec;

    (void) state;
    r2_schedule_init(&schedule);
    schedule.scratch_bytes = MIB_PIECES * PIECE;
    for (uint32_t i = 0; i < MIB_PIECES; ++i) {
        const uint32_t op =
            add(&schedule, R2_OP_RECV, none, scratch_at(i * PIECE), PIECE, R2_OP_NONE);

        add(&schedule, R2_OP_REDUCE, scratch_at(i * PIECE), out_at(i * PIECE), PIECE, op);
    }
    close_gate(NULL, &gate);
    begin(&exec, &schedule);
    for (uint32_t i = 0; i < MIB_PIECES; ++i) {
        arrive(i, 1);
        r2_engine_run(&engine, true);
        assert_int_equal(launched(), 1 + i / R2_KERNEL_PIECES);
    }
    sem_post(&gate);
    assert_int_equal(run_until_over(&exec), R2_OK);
    assert_int_equal(launched(), 1 + (BEHIND + R2_KERNEL_PIECES - 1) / R2_KERNEL_PIECES);
    r2_exec_fini(&exec);
}

/* More launches than a queue has tickets. */
static void many_take_turns(void **state)
{
    (void) state;
    set("delay_us", "20");
    sums_of_pieces(R2_KERNEL_PIECES * R2_MEM_TICKETS + 200, R2_MEM_TICKETS + 25);
}

/* Its kernel is not done: neither it nor what r2 launches may be read yet. */
static void follows_the_application(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;

    (void) state;
    close_gate(NULL, &gate);
    OK(cuMemsetD8Async(out, 77, PIECE, NULL));
    in_place(&schedule, PIECE);
    begin(&exec, &schedule);
    arrive(0, 3);
    for (int i = 0; i < 50; ++i) {
        r2_engine_run(&engine, true);
        sched_yield();
    }
    assert_int_equal(launched(), 1);
    assert_int_equal(call_count, 1);
    sem_post(&gate);
    ends_in_place(&exec, PIECE, 80);
}

/* The application gets its memory back when it hears of the error. */
static void an_error_comes_after_all_kernels(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;

    (void) state;
    in_place(&schedule, BYTES / 2);
    begin(&exec, &schedule);
    arrive(0, 4);
    r2_engine_run(&engine, true);
    assert_int_equal(launched(), 1);
    r2_exec_abort(&exec, R2_ERR_NO_PATH);
    OK(cuMemsetD8Async(out, 1, PIECE, NULL)); /* a mistake if somebody still reads there */
    assert_int_equal(run_until_over(&exec), R2_ERR_NO_PATH);
    r2_exec_fini(&exec);
}

static void a_kernel_that_fails_ends_the_run(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;

    (void) state;
    in_place(&schedule, PIECE);
    begin(&exec, &schedule);
    OK(cuCtxSynchronize()); /* the next operation is the kernel */
    set("faults", "exec@1=700");
    arrive(0, 4);
    assert_int_equal(run_until_over(&exec), R2_ERR_GPU);
    assert_int_equal(call_count, 1);
    r2_exec_fini(&exec);
}

static void a_launch_that_fails_ends_the_run(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;

    (void) state;
    in_place(&schedule, PIECE);
    begin(&exec, &schedule);
    set("faults", "cuLaunchKernel@1=701");
    arrive(0, 4);
    assert_int_equal(run_until_over(&exec), R2_ERR_GPU);
    r2_exec_fini(&exec);
}

/* What the driver does not take once, it is not asked for again. */
static void the_processor_reduces_where_there_is_no_kernel(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;

    (void) state;
    set("faults", "cuModuleLoadData@1=218");
    for (int i = 0; i < 2; ++i) {
        const uint64_t before = fakecuda_counter("cuModuleLoadData");

        memset(seen(out), 9, PIECE);
        call_count = 0;
        in_place(&schedule, PIECE);
        begin(&exec, &schedule);
        arrive(0, 3);
        ends_in_place(&exec, PIECE, 12);
        r2_kernels_settle(kernels_of_place());
        assert_int_equal(fakecuda_counter("cuModuleLoadData") - before, 0 == i ? 1 : 0);
    }
    assert_int_equal(launched(), 0);
    assert_int_equal(reduced, 2 * PIECE);
}

/* A driver may load a kernel only when all is done that the application has started, even in a
 * stream that nothing of r2 waits for. The run goes on, and the next one has the kernel. */
static void nothing_waits_for_a_kernel_that_is_loaded(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    CUstream busy;

    (void) state;
    set("load_waits", "1");
    OK(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
    close_gate(busy, &gate);
    for (int i = 0; i < 2; ++i) {
        memset(seen(out), 9, PIECE);
        call_count = 0;
        in_place(&schedule, PIECE);
        begin(&exec, &schedule);
        arrive(0, 3);
        ends_in_place(&exec, PIECE, 12);
        assert_int_equal(launched(), i);
        sem_post(&gate);
        r2_kernels_settle(kernels_of_place());
    }
    assert_int_equal(reduced, PIECE);
    set("load_waits", "0");
    OK(cuStreamDestroy_v2(busy));
}

/* A kernel reaches pinned memory only. */
static void the_processor_reduces_where_pinned_memory_is_short(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;

    (void) state;
    set("faults", "cuMemHostAlloc@2=2"); /* the copy of the buffer is pinned, what arrives is not */
    in_place(&schedule, PIECE);
    begin(&exec, &schedule);
    arrive(0, 3);
    ends_in_place(&exec, PIECE, 12);
    assert_int_equal(launched(), 0);
    assert_int_equal(reduced, PIECE);
}

/* Where a buffer is not aligned to its elements, or in memory of the host. */
static void kernels_are_for_what_they_reach(void **state)
{
    r2_exec_args_t args = sums();
    r2_schedule_t schedule;
    r2_exec_t exec;
    char *host = calloc(1, PIECE);

    (void) state;
    for (int i = 0; i < 2; ++i) {
        args = sums();
        args.kernel = 0 == i ? R2_KERNEL_sum_u32 : R2_KERNEL_sum_u8;
        args.element_bytes = 0 == i ? 4 : 1;
        args.in = 0 == i ? (const char *) args.in + 1 : host;
        args.at[0] = 0 == i ? place : (r2_mem_at_t){R2_MEM_HOST, R2_MEM_NO_DEVICE, NULL};
        r2_schedule_init(&schedule);
        add(&schedule, R2_OP_REDUCE, in_at(0), out_at(0), PIECE, R2_OP_NONE);
        assert_int_equal(r2_staging_follow(&engine.staging, &place), R2_OK);
        assert_true(load(args.kernel)); /* else the processor reduces whatever it is */
        start(&exec, &schedule, &args);
        assert_int_equal(run_until_over(&exec), R2_OK);
        r2_exec_fini(&exec);
    }
    assert_int_equal(launched(), 0);
    assert_int_equal(reduced, PIECE / 4 + PIECE);
    free(host);
}

/* Staging memory is a run's own as long as it is under way. */
static void two_runs_have_memory_of_their_own(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec, other;

    (void) state;
    in_place(&schedule, PIECE);
    begin(&exec, &schedule);
    in_place(&schedule, PIECE);
    schedule.ops[1].dst = schedule.ops[2].src = out_at(PIECE);
    begin(&other, &schedule);
    memset((char *) (uintptr_t) calls[0].data, 1, PIECE);
    memset((char *) (uintptr_t) calls[1].data, 2, PIECE);
    complete(0, R2_OK);
    complete(1, R2_OK);
    run_until_calls(4);
    assert_summed(2, 10);
    assert_summed(3, 11);
    complete(2, R2_OK);
    complete(3, R2_OK);
    while (!exec.over || !other.over) {
        r2_engine_run(&engine, true);
    }
    (void) r2_engine_collect(&engine);
    (void) r2_engine_collect(&engine);
    r2_exec_fini(&exec);
    r2_exec_fini(&other);
}

static void the_application_s_context_stays(void **state)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    CUcontext other, now;

    (void) state;
    OK(cuCtxCreate_v2(&other, 0, 0));
    in_place(&schedule, PIECE);
    begin(&exec, &schedule);
    OK(cuCtxGetCurrent(&now));
    assert_ptr_equal(now, other);
    arrive(0, 3);
    r2_engine_run(&engine, true);
    OK(cuCtxGetCurrent(&now));
    assert_ptr_equal(now, other);
    ends_in_place(&exec, PIECE, 12);
    OK(cuCtxGetCurrent(&now));
    assert_ptr_equal(now, other);
    OK(cuCtxDestroy(other));
    OK(cuCtxSetCurrent(context));
}

static void a_second_run_allocates_nothing(void **state)
{
    uint64_t before = 0;

    for (int i = 0; i < 3; ++i) {
        memset(seen(out), 9, PIECE);
        call_count = 0;
        launches = fakecuda_counter("launches");
        the_gpu_reduces_what_it_has(state);
        before = 0 == i ? fakecuda_counter("allocs") : before;
    }
    assert_int_equal(fakecuda_counter("allocs"), before);
}

#define T(test)          cmocka_unit_test_setup_teardown(test, start_kernels, end_gpu)
#define T_UNLOADED(test) cmocka_unit_test_setup_teardown(test, start_unloaded, end_gpu)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_gpu_reduces_what_it_has),
        T(the_processor_reduces_short_ones),
        T(what_was_written_is_read_from_the_copy),
        T(what_is_ready_together_is_one_launch),
        T(more_take_another_launch),
        T(pieces_come_together_meanwhile),
        T(launches_are_counted_per_mib),
        T(many_take_turns),
        T(follows_the_application),
        T(an_error_comes_after_all_kernels),
        T(a_kernel_that_fails_ends_the_run),
        T(a_launch_that_fails_ends_the_run),
        T_UNLOADED(the_processor_reduces_where_there_is_no_kernel),
        T_UNLOADED(nothing_waits_for_a_kernel_that_is_loaded),
        T(the_processor_reduces_where_pinned_memory_is_short),
        T(kernels_are_for_what_they_reach),
        T(two_runs_have_memory_of_their_own),
        T(the_application_s_context_stays),
        T(a_second_run_allocates_nothing),
    };

    if (NULL != r2_kernels_missing()) {
        printf("%s\n", r2_kernels_missing());
        return 77;
    }
    return cmocka_run_group_tests_name("reductions of the GPU", tests, NULL, NULL);
}
