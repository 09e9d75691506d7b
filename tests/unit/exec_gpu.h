/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * For tests of runs on buffers of a GPU: the driver of tests/fakecuda, two buffers, a run's end.
 */
#ifndef EXEC_GPU_H
#define EXEC_GPU_H

#include "exec_links.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "fakecuda/parts.h"

enum { BYTES = 65536, PIECE = 64 };

static r2_mem_t mem;
static CUcontext context;
static CUdeviceptr in, out;
static r2_mem_at_t place;
static sem_t gate; /* of the application's stream; opened at the latest at the end of a test */

static inline void set(const char *name, const char *value)
{
    must(0 == fakecuda_set(name, value), name, __FILE__, __LINE__);
}

static inline uint8_t *seen(CUdeviceptr at)
{
    return fakecuda_look(at, 1);
}

static inline int start_gpu(void **state)
{
    alarm(50); /* what never ends is no pass */
    set_up(state);
    set("delay_us", "200");
    set("copy_mbytes_per_s", "0");
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuMemAlloc(&in, BYTES));
    OK(cuMemAlloc(&out, BYTES));
    for (int i = 0; i < BYTES; ++i) {
        seen(in)[i] = (uint8_t) (i % 251 + 1);
        seen(out)[i] = 9;
    }
    r2_mem_init(&mem, "libcuda.so.1");
    r2_staging_init(&engine.staging, &mem, 1 << 20);
    assert_int_equal(r2_mem_look(&mem, (void *) (uintptr_t) in, &place), R2_OK);
    assert_int_equal(place.kind, R2_MEM_DEVICE);
    return 0;
}

static inline int end_gpu(void **state)
{
    CUcontext now;

    set("faults", "");
    sem_post(&gate);
    OK(cuCtxGetCurrent(&now));
    assert_ptr_equal(now, context);
    assert_null(engine.staging.copying);
    tear_down(state);
    r2_mem_fini(&mem);
    OK(cuCtxDestroy(context));
    assert_string_equal(fakecuda_mistake(), "");
    return 0;
}

static inline r2_status_t run_until_over(r2_exec_t *exec)
{
    while (!exec->over) {
        r2_engine_run(&engine, true);
        sched_yield();
    }
    assert_ptr_equal(r2_engine_collect(&engine), exec);
    return exec->status;
}

static inline uint32_t add(r2_schedule_t *schedule, r2_op_kind_t kind, r2_region_t src,
                           r2_region_t dst, uint64_t bytes, uint32_t after)
{
    const r2_op_t op = {.kind = kind,
                        .peer = 1,
                        .tag = schedule->op_count,
                        .bytes = bytes,
                        .src = src,
                        .dst = dst};

    return r2_schedule_add(schedule, &op, &after, 1);
}

static inline r2_region_t in_at(uint64_t offset)
{
    return (r2_region_t){R2_BUF_IN, offset};
}

static inline r2_region_t out_at(uint64_t offset)
{
    return (r2_region_t){R2_BUF_OUT, offset};
}

static inline void never(void *arg, uint64_t offset, void *packed, uint64_t bytes, bool unpack)
{
    (void) arg;
    (void) offset;
    (void) packed;
    (void) bytes;
    (void) unpack;
    fail_msg("the CPU converts memory of a GPU");
}

#define T_GPU(test) cmocka_unit_test_setup_teardown(test, start_gpu, end_gpu)

#endif
