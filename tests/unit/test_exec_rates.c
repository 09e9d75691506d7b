/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What is measured of a GPU, and who reduces by that, on the driver of tests/fakecuda: its launches
 * take as long as a test says, and the processor is as fast as it says.
 */
#include "r2_config.h"

#include "exec_sums.h"

#include <time.h>

enum {
    MEASURED = 7,        /* launches: one to warm up, three turns of a short and a long one */
    SHORT = 8192,        /* a piece that is long enough to be measured for */
    PATIENT = 1000000000 /* ns: a machine that others use, too */
};

static r2_counters_t counted;

static r2_staging_place_t *the_place(void)
{
    r2_staging_place_t *found;

    assert_int_equal(r2_staging_follow(&engine.staging, &place), R2_OK);
    found = r2_staging_place(&engine.staging, &place);
    assert_non_null(found);
    return found;
}

static int start_auto(void **state)
{
    start_unloaded(state);
    set("launch_us", "0");
    set("kernel_mbytes_per_s", "0");
    set("delay_us", "0");
    memset(&counted, 0, sizeof(counted));
    engine.staging.counters = &counted;
    engine.staging.reduce_bytes = R2_STAGING_AUTO;
    engine.staging.host_reduce_bytes_per_s = 1000000;
    return 0;
}

static int end_auto(void **state)
{
    const int rc = end_gpu(state);

    set("launch_us", "0");
    set("kernel_mbytes_per_s", "0");
    return rc;
}

/* @return from which length on the GPU reduces, by what was measured now. */
static uint64_t measured_from(uint64_t limit_ns)
{
    r2_staging_place_t *at = the_place();

    at->rates.limit_ns = limit_ns;
    assert_int_equal(r2_staging_reduce_from(&engine.staging, at), R2_STAGING_AUTO);
    assert_true(load(R2_KERNEL_sum_u8));
    assert_true(atomic_load(&at->rates.is_done));
    launches = fakecuda_counter("launches");
    return r2_staging_reduce_from(&engine.staging, at);
}

/* What came is added to what the buffer has, and sent: 9 and 3. */
static void reduce(uint64_t bytes)
{
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint32_t op;

    memset(seen(out), 9, BYTES);
    call_count = 0;
    reduced = 0;
    r2_schedule_init(&schedule);
    schedule.scratch_bytes = bytes;
    op = add(&schedule, R2_OP_RECV, none, scratch_at(0), bytes, R2_OP_NONE);
    op = add(&schedule, R2_OP_REDUCE, scratch_at(0), out_at(0), bytes, op);
    add(&schedule, R2_OP_SEND, out_at(0), none, bytes, op);
    begin(&exec, &schedule);
    arrive(0, 3);
    run_until_calls(2);
    for (uint64_t i = 0; i < bytes; ++i) {
        assert_int_equal((uint8_t) calls[1].data[i], 12);
    }
    complete(1, R2_OK);
    assert_int_equal(run_until_over(&exec), R2_OK);
    for (uint64_t i = 0; i < bytes; ++i) {
        assert_int_equal(seen(out)[i], 12);
    }
    r2_exec_fini(&exec);
}

static void by_the_gpu(uint64_t bytes)
{
    const uint64_t before = launched();

    reduce(bytes);
    assert_int_equal(launched() - before, 1);
    assert_int_equal(reduced, 0);
}

static void by_the_processor(uint64_t bytes)
{
    const uint64_t before = launched();

    reduce(bytes);
    assert_int_equal(launched() - before, 0);
    assert_int_equal(reduced, bytes);
}

/* A kernel of a few bytes takes less than the millisecond in which the processor adds 1,000. */
static void a_quick_launch_is_for_short_pieces(void **state)
{
    uint64_t from;

    (void) state;
    from = measured_from(PATIENT);
    assert_in_range(from, R2_DEVICE_REDUCE_LEAST_BYTES, SHORT);
    by_the_gpu(SHORT);
    by_the_processor(R2_DEVICE_REDUCE_LEAST_BYTES - 64);
    assert_in_range(the_place()->rates.rates.launch_ns, 1, 8000000);
}

/* 20 ms, in which the processor adds 20,000 bytes. */
static void a_slow_launch_is_for_long_ones(void **state)
{
    uint64_t from;

    (void) state;
    set("launch_us", "20000");
    from = measured_from(PATIENT);
    assert_in_range(from, 2 * SHORT, BYTES);
    by_the_processor(SHORT);
    by_the_gpu(BYTES);
    assert_in_range(the_place()->rates.rates.launch_ns, 19000000, 60000000);
}

static void a_quick_processor_reduces_all(void **state)
{
    (void) state;
    set("kernel_mbytes_per_s", "50");
    engine.staging.host_reduce_bytes_per_s = 1000000000;
    assert_int_equal(measured_from(PATIENT), R2_DEVICE_NEVER_BYTES);
    by_the_processor(BYTES);
    assert_in_range(the_place()->rates.rates.reduce_bytes_per_s, 10000000, 100000000);
}

/* What the processor reduces has to come off the GPU first. */
static void slow_copies_are_for_the_gpu(void **state)
{
    (void) state;
    set("kernel_mbytes_per_s", "50");
    set("copy_mbytes_per_s", "10");
    engine.staging.host_reduce_bytes_per_s = 1000000000;
    assert_true(measured_from(UINT64_C(10) * PATIENT) < R2_DEVICE_NEVER_BYTES);
    assert_in_range(the_place()->rates.rates.copy_off_bytes_per_s, 3000000, 20000000);
    assert_in_range(the_place()->rates.rates.copy_on_bytes_per_s, 3000000, 20000000);
    assert_in_range(the_place()->rates.rates.inside_bytes_per_s, 3000000, 20000000);
}

/* Once, and by the first kernel that reduces; before that the processor does. */
static void it_is_measured_once(void **state)
{
    const uint64_t before = fakecuda_counter("launches");

    (void) state;
    the_place()->rates.limit_ns = PATIENT;
    by_the_processor(R2_STAGING_ASK_BYTES - 64);
    r2_kernels_settle(kernels_of_place());
    assert_int_equal(fakecuda_counter("launches"), before);
    by_the_processor(R2_STAGING_ASK_BYTES);
    r2_kernels_settle(kernels_of_place());
    assert_int_equal(fakecuda_counter("launches") - before, MEASURED);
    assert_int_equal(counted.gpu_measure_us, 0);
    reduce(R2_STAGING_ASK_BYTES);
    assert_int_equal(counted.gpu_measure_us, the_place()->rates.spent_ns / 1000);
    launches = fakecuda_counter("launches");
    assert_true(load(R2_KERNEL_sum_u32));
    reduce(64);
    assert_int_equal(launched(), 0);
    assert_int_equal(counted.gpu_measure_us, the_place()->rates.spent_ns / 1000);
}

static void a_number_is_no_measurement(void **state)
{
    (void) state;
    engine.staging.reduce_bytes = SHORT;
    assert_true(load(R2_KERNEL_sum_u8));
    assert_int_equal(launched(), 0);
    assert_false(atomic_load(&the_place()->rates.is_done));
    by_the_gpu(SHORT);
    by_the_processor(SHORT - 64);
    assert_int_equal(counted.gpu_measure_us, 0);
}

static void nap(void *arg)
{
    const struct timespec time = {.tv_sec = 1, .tv_nsec = 200000000};

    (void) arg;
    (void) nanosleep(&time, NULL);
}

/* The limit is that of what is measured: pinning memory waits longer here, for the application. */
static void setting_up_is_beside_the_limit(void **state)
{
    CUstream stream;

    (void) state;
    (void) the_place();
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuLaunchHostFunc(stream, nap, NULL));
    set("pin_waits", "1");
    (void) measured_from(PATIENT);
    set("pin_waits", "0");
    assert_true(the_place()->rates.is_known);
    assert_in_range(the_place()->rates.measured_ns, 1, PATIENT);
    assert_true(the_place()->rates.spent_ns > PATIENT);
    OK(cuStreamDestroy(stream));
}

/* What came is added to what `in` has there. `out` is memory of another context that no op touches,
 * as where another rank has the result. */
static void reduce_in(const r2_mem_at_t *at_out)
{
    r2_exec_args_t args = sums();
    r2_schedule_t schedule;
    r2_exec_t exec;
    uint32_t op;

    args.at[1] = *at_out;
    call_count = 0;
    reduced = 0;
    r2_schedule_init(&schedule);
    schedule.scratch_bytes = BYTES;
    op = add(&schedule, R2_OP_RECV, none, scratch_at(0), BYTES, R2_OP_NONE);
    op = add(&schedule, R2_OP_REDUCE, in_at(0), scratch_at(0), BYTES, op);
    add(&schedule, R2_OP_SEND, scratch_at(0), none, BYTES, op);
    start(&exec, &schedule, &args);
    arrive(0, 3);
    run_until_calls(2);
    for (uint64_t i = 0; i < BYTES; ++i) {
        assert_int_equal((uint8_t) calls[1].data[i], seen(in)[i] + 3);
    }
    complete(1, R2_OK);
    assert_int_equal(run_until_over(&exec), R2_OK);
    r2_exec_fini(&exec);
}

/* Each context is measured by itself: what ops do not touch decides nothing. */
static void the_place_that_reduces_decides(void **state)
{
    r2_staging_place_t *ours = the_place(), *others;
    r2_mem_at_t at_other;
    CUdeviceptr memory;
    CUcontext other;

    (void) state;
    ours->rates.limit_ns = PATIENT;
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuMemAlloc(&memory, BYTES));
    assert_int_equal(r2_mem_look(&mem, (void *) (uintptr_t) memory, &at_other), R2_OK);
    assert_int_equal(r2_staging_follow(&engine.staging, &at_other), R2_OK);
    others = r2_staging_place(&engine.staging, &at_other);
    assert_ptr_not_equal(ours, others);
    others->reduce_bytes = BYTES;
    reduce_in(&at_other);
    r2_kernels_settle(&ours->kernels);
    assert_true(atomic_load(&ours->rates.is_done));
    assert_int_equal(reduced, BYTES);
    ours->reduce_bytes = BYTES;
    others->reduce_bytes = R2_DEVICE_NEVER_BYTES;
    launches = fakecuda_counter("launches");
    assert_int_equal(r2_staging_follow(&engine.staging, &place), R2_OK);
    reduce_in(&at_other);
    assert_int_equal(launched(), 1);
    ours->reduce_bytes = R2_DEVICE_NEVER_BYTES;
    others->reduce_bytes = BYTES;
    reduce_in(&at_other);
    assert_int_equal(launched(), 1);
    assert_int_equal(reduced, BYTES);
    OK(cuCtxSetCurrent(context));
}

/* Who wants no pinned memory to be kept has none kept for measuring. */
static void where_nothing_is_kept_nothing_is_measured(void **state)
{
    (void) state;
    engine.staging.pins.keep_bytes = 0;
    assert_int_equal(r2_staging_reduce_from(&engine.staging, the_place()),
                     R2_DEVICE_REDUCE_USUAL_BYTES);
    assert_true(load(R2_KERNEL_sum_u8));
    assert_int_equal(launched(), 0);
    assert_false(atomic_load(&the_place()->rates.is_done));
    by_the_gpu(R2_DEVICE_REDUCE_USUAL_BYTES);
    by_the_processor(R2_DEVICE_REDUCE_USUAL_BYTES - 64);
}

/* What fills the GPU may wait for MPI: who measures gives up, and the usual length is in force. */
static void it_takes_a_limited_time(void **state)
{
    (void) state;
    set("launch_us", "500000");
    /* long enough for copies on a busy machine, and less than a launch */
    assert_int_equal(measured_from(20 * R2_MEM_RATES_NS), R2_DEVICE_REDUCE_USUAL_BYTES);
    assert_false(the_place()->rates.is_known);
    assert_in_range(the_place()->rates.spent_ns, 1000, 450000000);
    by_the_processor(SHORT);
    set("launch_us", "0");
    by_the_gpu(R2_DEVICE_REDUCE_USUAL_BYTES);
}

/* A launch that was given up is under way until the end, and its kernel is there until then. */
static void what_was_given_up_ends_before_its_kernel_goes(void **state)
{
    const uint64_t before = fakecuda_counter("launches");

    (void) state;
    set("launch_us", "800000");
    assert_int_equal(measured_from(PATIENT / 4), R2_DEVICE_REDUCE_USUAL_BYTES);
    assert_int_equal(fakecuda_counter("launches") - before, 1);
}

/* What the driver refuses there is no harm: all is done as with the usual length. */
static void what_fails_there_leaves_the_usual_length(void **state)
{
    static const char *const faults[] = {"cuMemAlloc_v2@1=2",   "cuMemAlloc_v2@2=2",
                                         "cuMemHostAlloc@1=2",  "cuStreamCreate@1=2",
                                         "cuMemcpyAsync@1=1",   "cuMemcpyAsync@9=1",
                                         "cuLaunchKernel@1=701", "cuLaunchKernel@4=701",
                                         "cuEventRecord@12=400"};

    for (size_t i = 0; i < r2_array_count(faults); ++i) {
        if (i > 0) {
            end_gpu(state);
            start_auto(state);
        }
        (void) the_place();
        set("faults", faults[i]);
        assert_int_equal(measured_from(PATIENT), R2_DEVICE_REDUCE_USUAL_BYTES);
        assert_false(the_place()->rates.is_known);
        by_the_processor(SHORT);
        by_the_gpu(R2_DEVICE_REDUCE_USUAL_BYTES);
    }
}

/* A device that breaks meanwhile is found by the next call, as ever. */
static void a_device_that_breaks_ends_runs(void **state)
{
    r2_staging_place_t *at = the_place();

    (void) state;
    at->rates.limit_ns = PATIENT;
    OK(cuCtxSynchronize()); /* the next operation is a copy that is measured */
    set("faults", "exec@3=700");
    (void) r2_kernels_ask(&at->kernels, &mem, &place, R2_KERNEL_sum_u8);
    r2_kernels_settle(&at->kernels);
    assert_true(atomic_load(&at->rates.is_done));
    assert_false(at->rates.is_known);
    assert_int_equal(r2_staging_follow(&engine.staging, &place), R2_ERR_GPU);
}

#define T(test) cmocka_unit_test_setup_teardown(test, start_auto, end_auto)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_quick_launch_is_for_short_pieces),
        T(a_slow_launch_is_for_long_ones),
        T(a_quick_processor_reduces_all),
        T(slow_copies_are_for_the_gpu),
        T(it_is_measured_once),
        T(a_number_is_no_measurement),
        T(setting_up_is_beside_the_limit),
        T(the_place_that_reduces_decides),
        T(where_nothing_is_kept_nothing_is_measured),
        T(it_takes_a_limited_time),
        T(what_was_given_up_ends_before_its_kernel_goes),
        T(what_fails_there_leaves_the_usual_length),
        T(a_device_that_breaks_ends_runs),
    };

    if (NULL != r2_kernels_missing()) {
        printf("%s\n", r2_kernels_missing());
        return 77;
    }
    return cmocka_run_group_tests_name("rates of GPUs", tests, NULL, NULL);
}
