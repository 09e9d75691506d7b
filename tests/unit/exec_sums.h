/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * For tests of runs whose sums of bytes a GPU makes: its kernels, runs, and launches counted.
 */
#ifndef EXEC_SUMS_H
#define EXEC_SUMS_H

#include "exec_gpu.h"

extern const fakecuda_kernel_t fakecuda_kernels[];

static const r2_region_t none = {R2_BUF_SCRATCH, 0};
static uint64_t launches, loaded; /* when a test began */

static inline r2_region_t scratch_at(uint64_t offset)
{
    return (r2_region_t){R2_BUF_SCRATCH, offset};
}

static r2_kernels_t *kernels_of_place(void)
{
    assert_int_equal(r2_staging_follow(&engine.staging, &place), R2_OK);
    return &r2_staging_place(&engine.staging, &place)->kernels;
}

/* Has a kernel loaded. @return false: the driver does not take it. */
static bool load(r2_kernel_t kernel)
{
    r2_kernels_t *kernels = kernels_of_place();

    (void) r2_kernels_ask(kernels, &mem, &place, kernel);
    r2_kernels_settle(kernels);
    return r2_kernels_ask(kernels, &mem, &place, kernel);
}

static int start_unloaded(void **state)
{
    static bool added;

    if (!added) {
        fakecuda_add_kernels(fakecuda_kernels);
        added = true;
    }
    start_gpu(state);
    engine.staging.reduce_bytes = PIECE;
    launches = fakecuda_counter("launches");
    loaded = fakecuda_counter("bytes_d2h");
    return 0;
}

static inline int start_kernels(void **state)
{
    start_unloaded(state);
    assert_true(load(R2_KERNEL_sum_u8));
    return 0;
}

static r2_exec_args_t sums(void)
{
    r2_exec_args_t args = arguments((void *) (uintptr_t) in, (void *) (uintptr_t) out);

    args.kernel = R2_KERNEL_sum_u8;
    args.any_thread = true;
    args.at[0] = args.at[1] = place;
    return args;
}

static void begin(r2_exec_t *exec, r2_schedule_t *schedule)
{
    const r2_exec_args_t args = sums();

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

static void arrive(uint32_t call, uint8_t value)
{
    memset((char *) (uintptr_t) calls[call].data, value, calls[call].bytes);
    complete(call, R2_OK);
}

static uint64_t launched(void)
{
    return fakecuda_counter("launches") - launches;
}

#endif
