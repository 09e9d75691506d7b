/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The stand-in for the CUDA driver: streams, events, contexts, kernels, and who did not wait.
 */
#include "fakecuda/parts.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

enum { BYTES = 8192, WORDS = BYTES / 4 };

static CUcontext ctx;
static CUstream a, b; /* that wait for nobody */
static CUevent event;
static CUdeviceptr memory, other;
static unsigned char *pinned;
static uint64_t mistakes; /* so far */

static int set_up(void **state)
{
    (void) state;
    ctx = start_device();
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    OK(cuMemAlloc(&memory, BYTES));
    OK(cuMemAlloc(&other, BYTES));
    OK(cuMemAllocHost((void **) &pinned, BYTES));
    return 0;
}

static void quick(void)
{
    must(0 == fakecuda_set("delay_us", "0"), "delay_us", __FILE__, __LINE__);
}

static void slow(void)
{
    must(0 == fakecuda_set("delay_us", "20000"), "delay_us", __FILE__, __LINE__);
}

static int start(void **state)
{
    (void) state;
    quick();
    OK(cuCtxSynchronize());
    mistakes = fakecuda_counter("mistakes");
    return 0;
}

/* One mistake more, counted as `name`, of which this is said. */
static void expect_mistake(const char *name, uint64_t before, const char *said)
{
    assert_int_equal(fakecuda_counter("mistakes"), mistakes + 1);
    assert_int_equal(fakecuda_counter(name), before + 1);
    if (NULL == strstr(fakecuda_mistake(), said)) {
        fail_msg("\"%s\" is not in: %s", said, fakecuda_mistake());
    }
    mistakes += 1;
}

static void expect_none(void)
{
    if (fakecuda_counter("mistakes") != mistakes) {
        fail_msg("a mistake: %s", fakecuda_mistake());
    }
}

/* ---- streams and events */

static void work_goes_on_after_the_call(void **state)
{
    static sem_t gate; /* a stream may still wait when the test ends */

    (void) state;
    close_gate(a, &gate);
    OK(cuMemsetD8Async(memory, 1, BYTES, a));
    OK(cuEventRecord(event, a));
    assert_int_equal(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    assert_int_equal(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    sem_post(&gate);
    OK(cuEventSynchronize(event));
    OK(cuEventQuery(event));
    OK(cuMemcpyDtoH(pinned, memory, BYTES));
    assert_true(1 == pinned[0] && 1 == pinned[BYTES - 1]);
    expect_none();
}

static void events_order_streams(void **state)
{
    CUevent never;

    (void) state;
    slow();
    OK(cuEventCreate(&never, CU_EVENT_DISABLE_TIMING));
    OK(cuEventQuery(never));
    OK(cuStreamWaitEvent(b, never, 0));
    OK(cuMemsetD8Async(memory, 2, BYTES, a));
    OK(cuEventRecord(event, a));
    OK(cuStreamWaitEvent(b, event, 0));
    OK(cuMemcpyDtoHAsync(pinned, memory, BYTES, b));
    OK(cuStreamSynchronize(b));
    assert_true(2 == pinned[0] && 2 == pinned[BYTES - 1]);
    OK(cuEventDestroy(never));
    assert_int_equal(cuEventQuery(never), CUDA_ERROR_INVALID_HANDLE);
    expect_none();
}

/* With the delay nobody would see these by their bytes only. */
static void a_missing_wait_is_told(void **state)
{
    uint64_t missing = fakecuda_counter("missing_waits");

    (void) state;
    OK(cuMemsetD8Async(memory + 100, 3, 100, a));
    OK(cuMemcpyDtoDAsync(other, memory, 100, b)); /* beside it */
    expect_none();
    OK(cuMemcpyDtoDAsync(other, memory + 199, 10, b)); /* the last byte */
    expect_mistake("missing_waits", missing, "cuMemcpyDtoDAsync_v2 on stream");
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoHAsync(pinned, memory, BYTES, a));
    OK(cuMemcpyDtoDAsync(other, memory, BYTES, b)); /* both read */
    expect_none();
    OK(cuMemsetD8Async(memory, 3, BYTES, b)); /* is being read */
    expect_mistake("missing_waits", missing + 1, "byte 0 of device allocation");
    OK(cuCtxSynchronize());
}

/* An event that was recorded too early orders nothing that comes after. */
static void a_record_too_early_is_told(void **state)
{
    uint64_t missing = fakecuda_counter("missing_waits");

    (void) state;
    OK(cuEventRecord(event, a));
    OK(cuMemsetD8Async(memory, 3, BYTES, a));
    OK(cuStreamWaitEvent(b, event, 0));
    OK(cuMemcpyDtoHAsync(pinned, memory, BYTES, b));
    expect_mistake("missing_waits", missing, "reads");
    OK(cuCtxSynchronize());
}

static void the_default_stream_waits_for_blocking_ones(void **state)
{
    uint64_t missing = fakecuda_counter("missing_waits");
    CUstream blocking;

    (void) state;
    slow();
    OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    OK(cuMemsetD8Async(memory, 4, BYTES, blocking));
    OK(cuMemcpyDtoH(pinned, memory, BYTES));
    assert_int_equal(pinned[BYTES - 1], 4);
    expect_none();
    OK(cuMemsetD8Async(memory, 5, BYTES, a));
    OK(cuMemcpyDtoH(pinned, memory, BYTES));
    expect_mistake("missing_waits", missing, "cuMemcpyDtoH_v2 on stream");
    OK(cuStreamDestroy(blocking));
    assert_int_equal(cuStreamSynchronize(blocking), CUDA_ERROR_INVALID_HANDLE);
    OK(cuCtxSynchronize());
}

static void some_copies_return_early(void **state)
{
    uint64_t missing = fakecuda_counter("missing_waits");
    unsigned char own[64];

    (void) state;
    slow();
    memset(own, 6, sizeof(own));
    OK(cuMemcpyHtoD(memory, own, sizeof(own))); /* taken, not there yet */
    memset(own, 7, sizeof(own));
    OK(cuMemcpyDtoDAsync(other, memory, sizeof(own), a));
    expect_mistake("missing_waits", missing, "cuMemcpyHtoD_v2");
    OK(cuMemcpyDtoH(own, memory, sizeof(own)));
    assert_int_equal(own[63], 6);
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoD(other, memory, sizeof(own)));
    OK(cuMemcpyDtoHAsync(pinned, other, sizeof(own), a));
    expect_mistake("missing_waits", missing + 1, "cuMemcpyDtoD_v2");
    OK(cuCtxSynchronize());
}

/* ---- the CPU */

static void who_touches_pinned_memory_early_is_told(void **state)
{
    uint64_t early = fakecuda_counter("early_touches");

    (void) state;
    signal(SIGSEGV, SIG_DFL); /* somebody has taken it meanwhile */
    OK(cuMemcpyDtoHAsync(pinned, memory, BYTES, a));
    ++pinned[17];
    expect_mistake("early_touches", early, "byte 17 of allocation");
    OK(cuStreamSynchronize(a));
    OK(cuMemcpyHtoDAsync(memory, pinned, BYTES, a));
    assert_int_not_equal(pinned[99], 255); /* reading what is read */
    expect_none();
    pinned[99] = 4;
    expect_mistake("early_touches", early + 1, "reads, and nobody waited");
    OK(cuStreamSynchronize(a));
    pinned[99] = 5;
    expect_none();
}

static void who_touches_managed_memory_early_is_told(void **state)
{
    uint64_t early = fakecuda_counter("early_touches");
    CUdeviceptr managed;
    unsigned char *bytes;

    (void) state;
    OK(cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
    bytes = (unsigned char *) (uintptr_t) managed;
    memset(bytes, 1, BYTES);
    OK(cuMemsetD8Async(managed, 2, BYTES, a));
    bytes[4096] = 3;
    expect_mistake("early_touches", early, "managed memory");
    OK(cuStreamSynchronize(a));
    assert_int_equal(bytes[0], 2);
    OK(cuMemFree(managed));
    expect_none();
}

static void in_host_function(void *arg)
{
    *(CUresult *) arg = cuStreamQuery(NULL);
    ++pinned[0]; /* what was before it in its stream is there */
}

static void host_functions_come_in_their_turn(void **state)
{
    uint64_t wrong = fakecuda_counter("wrong_context");
    CUresult inside = CUDA_SUCCESS;

    (void) state;
    slow();
    OK(cuMemsetD8Async(memory, 8, BYTES, a));
    OK(cuMemcpyDtoHAsync(pinned, memory, BYTES, a));
    OK(cuLaunchHostFunc(a, in_host_function, &inside));
    OK(cuStreamSynchronize(a));
    assert_int_equal(pinned[0], 9);
    assert_int_equal(inside, CUDA_ERROR_NOT_PERMITTED);
    expect_mistake("wrong_context", wrong, "inside a host function");
}

/* ---- contexts */

static void *without_context(void *arg)
{
    CUdeviceptr at;
    CUcontext now = ctx;

    (void) arg;
    OK(cuCtxGetCurrent(&now));
    MUST(NULL == now);
    MUST(CUDA_ERROR_INVALID_CONTEXT == cuMemAlloc(&at, 16));
    OK(cuCtxSetCurrent(ctx));
    OK(cuMemAlloc(&at, 16));
    OK(cuMemFree(at));
    return NULL;
}

static void every_thread_has_its_contexts(void **state)
{
    uint64_t wrong = fakecuda_counter("wrong_context");
    pthread_t thread;

    (void) state;
    assert_int_equal(pthread_create(&thread, NULL, without_context, NULL), 0);
    pthread_join(thread, NULL);
    expect_mistake("wrong_context", wrong, "cuMemAlloc_v2 without a current context");
}

static void what_belongs_to_another_context_is_refused(void **state)
{
    uint64_t wrong = fakecuda_counter("wrong_context");
    CUfunction add = load_add();
    CUcontext second, old;
    unsigned long long id, second_id;

    (void) state;
    OK(cuCtxCreate_v2(&second, 0, 0));
    assert_int_equal(cuMemsetD8Async(memory, 3, BYTES, a), CUDA_ERROR_INVALID_HANDLE);
    expect_mistake("wrong_context", wrong, "stream");
    assert_int_equal(cuEventRecord(event, NULL), CUDA_ERROR_INVALID_HANDLE);
    expect_mistake("wrong_context", wrong + 1, "an event of another context");
    assert_int_equal(launch_add(add, memory, other, 1, NULL), CUDA_ERROR_INVALID_HANDLE);
    expect_mistake("wrong_context", wrong + 2, "kernel add of another context");
    OK(cuCtxGetId(NULL, &second_id));
    OK(cuCtxGetId(ctx, &id));
    assert_int_not_equal(id, second_id);
    OK(cuCtxPopCurrent(&old));
    assert_ptr_equal(old, second);
    OK(cuCtxDestroy(second));
    assert_int_equal(cuCtxPushCurrent(second), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cuCtxDestroy(second), CUDA_ERROR_INVALID_CONTEXT);
    expect_none();
}

/* ---- kernels */

static void kernels_run_as_their_c_form(void **state)
{
    unsigned words[WORDS];
    CUfunction add = load_add(), none;
    CUmodule module;

    (void) state;
    OK(cuMemsetD32Async(memory, 3, WORDS, a));
    OK(cuMemsetD32Async(other, 4, WORDS, a));
    OK(launch_add(add, memory, other, WORDS, a));
    OK(cuStreamSynchronize(a));
    OK(cuMemcpyDtoH(words, other, BYTES));
    assert_true(7 == words[0] && 7 == words[WORDS - 1]);
    OK(cuModuleLoadData(&module, add_ptx));
    assert_int_equal(cuModuleGetFunction(&none, module, "ad"), CUDA_ERROR_NOT_FOUND);
    OK(cuModuleUnload(module));
    assert_int_equal(cuModuleLoadData(&module, "no text"), CUDA_ERROR_INVALID_PTX);
    expect_none();
}

static void a_kernel_without_a_wait_is_told(void **state)
{
    uint64_t missing = fakecuda_counter("missing_waits");
    CUfunction add = load_add();

    (void) state;
    OK(launch_add(add, memory, other, WORDS, a));
    OK(cuMemcpyDtoDAsync(memory, other, 4, b));
    mistakes +=
        1; /* it writes what the kernel reads, and reads what the kernel writes: both told */
    expect_mistake("missing_waits", missing + 1, "add on stream");
    OK(cuCtxSynchronize());
}

static void a_module_that_is_unloaded_early_is_told(void **state)
{
    uint64_t missing = fakecuda_counter("missing_waits");
    CUmodule module;
    CUfunction add;

    (void) state;
    OK(cuModuleLoadData(&module, add_ptx));
    OK(cuModuleGetFunction(&add, module, "add"));
    OK(launch_add(add, memory, other, WORDS, a));
    OK(cuStreamSynchronize(b)); /* of another stream */
    OK(cuModuleUnload(module));
    expect_mistake("missing_waits", missing, "nobody waited for its kernel add");
    OK(cuStreamSynchronize(a));
    OK(cuModuleLoadData(&module, add_ptx));
    OK(cuModuleGetFunction(&add, module, "add"));
    OK(launch_add(add, memory, other, WORDS, a));
    OK(cuStreamSynchronize(a));
    OK(cuModuleUnload(module));
    expect_none();
}

/* As with the real driver: only a context that is given up gets rid of it. */
static void a_kernel_past_the_end_breaks_its_context(void **state)
{
    CUdeviceptr from, to;
    CUcontext broken;
    CUfunction add;
    CUstream stream;

    (void) state;
    OK(cuCtxCreate_v2(&broken, 0, 0));
    OK(cuMemAlloc(&from, 64));
    OK(cuMemAlloc(&to, 64));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    add = load_add();
    OK(launch_add(add, from, to, 17, stream));
    assert_int_equal(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cuMemAlloc(&from, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(cuMemFree(to), CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(cuCtxDestroy(broken));
    OK(cuCtxSynchronize()); /* the other one is as it was */
    expect_none();
}

/* ---- time */

static uint64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000u + (uint64_t) now.tv_nsec / 1000u;
}

/* 16 copies of 8 KiB at 10 MB/s, in two streams, in one direction: 13.1 ms at least. */
static void copies_have_the_rate_that_is_set(void **state)
{
    uint64_t before;

    (void) state;
    OK(cuMemcpyDtoH(pinned, memory, BYTES));
    assert_int_equal(fakecuda_set("copy_mbytes_per_s", "10"), 0);
    before = now_us();
    for (int i = 0; i < 16; ++i) {
        OK(cuMemcpyHtoDAsync(0 == i % 2 ? memory : other, pinned, BYTES, 0 == i % 2 ? a : b));
    }
    OK(cuCtxSynchronize());
    assert_true(now_us() - before >= 16u * BYTES / 10);
    assert_int_equal(fakecuda_set("copy_mbytes_per_s", "0"), 0);
    assert_int_equal(fakecuda_set("copy_mbytes_per_s", "quick"), -1);
    assert_int_equal(fakecuda_set("no such thing", "0"), -1);
    expect_none();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(work_goes_on_after_the_call, start),
        cmocka_unit_test_setup(events_order_streams, start),
        cmocka_unit_test_setup(a_missing_wait_is_told, start),
        cmocka_unit_test_setup(a_record_too_early_is_told, start),
        cmocka_unit_test_setup(the_default_stream_waits_for_blocking_ones, start),
        cmocka_unit_test_setup(some_copies_return_early, start),
        cmocka_unit_test_setup(who_touches_pinned_memory_early_is_told, start),
        cmocka_unit_test_setup(who_touches_managed_memory_early_is_told, start),
        cmocka_unit_test_setup(host_functions_come_in_their_turn, start),
        cmocka_unit_test_setup(every_thread_has_its_contexts, start),
        cmocka_unit_test_setup(what_belongs_to_another_context_is_refused, start),
        cmocka_unit_test_setup(kernels_run_as_their_c_form, start),
        cmocka_unit_test_setup(a_kernel_without_a_wait_is_told, start),
        cmocka_unit_test_setup(a_module_that_is_unloaded_early_is_told, start),
        cmocka_unit_test_setup(a_kernel_past_the_end_breaks_its_context, start),
        cmocka_unit_test_setup(copies_have_the_rate_that_is_set, start),
    };

    return cmocka_run_group_tests_name("fakecuda order", tests, set_up, NULL);
}
