/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Copies to and from memory of a GPU, on the driver of tests/fakecuda: in order, without a wait too
 * few, and without allocating.
 */
#include "r2_config.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "mem/queue.h"

#include "fakecuda/parts.h"

enum { BYTES = 8192, CHUNK = 4096 };

static r2_mem_t mem;
static r2_mem_queue_t queue;
static CUcontext context;
static CUdeviceptr device; /* memory */
static unsigned char *slot;

static void set(const char *name, const char *value)
{
    must(0 == fakecuda_set(name, value), name, __FILE__, __LINE__);
}

static void *at(CUdeviceptr address)
{
    return (void *) (uintptr_t) address;
}

static CUcontext current(void)
{
    CUcontext now;

    OK(cuCtxGetCurrent(&now));
    return now;
}

/* Device memory of a context of its own, which an error may break. */
static int start(void **state)
{
    r2_mem_at_t place;

    alarm(50); /* what never ends is no pass */
    (void) state;
    set("delay_us", "0");
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuMemAlloc(&device, BYTES));
    OK(cuMemsetD8(device, 5, BYTES));
    OK(cuCtxSynchronize());
    r2_mem_init(&mem, "libcuda.so.1");
    assert_int_equal(r2_mem_look(&mem, at(device), &place), R2_OK);
    assert_int_equal(r2_mem_pin(&mem, &place, BYTES, (void **) &slot), R2_OK);
    assert_int_equal(r2_mem_queue_init(&queue, &mem, &place), R2_OK);
    return 0;
}

/* Whatever happened, the application has its context as before, and nothing was touched early. */
static int end(void **state)
{
    (void) state;
    set("faults", "");
    assert_ptr_equal(current(), context);
    r2_mem_queue_fini(&queue);
    r2_mem_unpin(&mem, &queue.at, slot);
    r2_mem_fini(&mem);
    OK(cuCtxDestroy(context));
    assert_int_equal(fakecuda_counter("mistakes"), 0);
    return 0;
}

static int set_up(void **state)
{
    (void) state;
    set("devices", "2");
    OK(cuInit(0));
    return 0;
}

static void await(uint64_t ticket)
{
    r2_status_t status;

    while (R2_IN_PROGRESS == (status = r2_mem_queue_test(&queue, ticket))) {
        sched_yield();
    }
    assert_int_equal(status, R2_OK);
}

static uint64_t mark(void)
{
    uint64_t ticket = 0;

    assert_int_equal(r2_mem_queue_mark(&queue, &ticket), R2_OK);
    return ticket;
}

/* ---- copies */

static void copies_go_on_after_the_call(void **state)
{
    uint64_t out, back;
    sem_t gate;

    (void) state;
    close_gate(NULL, &gate);
    assert_int_equal(r2_mem_queue_follow(&queue), R2_OK);
    assert_int_equal(r2_mem_queue_copy(&queue, slot, at(device), BYTES), R2_OK);
    out = mark();
    assert_int_equal(r2_mem_queue_test(&queue, out), R2_IN_PROGRESS);
    sem_post(&gate);
    await(out);
    assert_true(5 == slot[0] && 5 == slot[BYTES - 1]);
    memset(slot, 6, BYTES);
    assert_int_equal(r2_mem_queue_copy(&queue, at(device), slot, BYTES), R2_OK);
    back = mark();
    await(back);
    assert_int_equal(r2_mem_queue_test(&queue, out), R2_OK); /* older ones stay done */
    memset(slot, 7, BYTES);
    assert_int_equal(*(unsigned char *) fakecuda_look(device + BYTES - 1, 1), 6);
}

/* Rows to and from memory are one copy, and nothing between them is touched. */
static void rows_are_one_copy(void **state)
{
    const r2_mem_rows_t rows = {at(device + 3), (char *) slot, 5, 1000, 8};
    const uint64_t copies = fakecuda_counter("copies_2d");
    const unsigned char *seen = fakecuda_look(device, BYTES);

    (void) state;
    for (int i = 0; i < 5000; ++i) {
        slot[i] = (unsigned char) (i % 241 + 6);
    }
    assert_int_equal(r2_mem_queue_copy_rows(&queue, &rows, true), R2_OK);
    await(mark());
    for (int i = 0; i < BYTES; ++i) {
        const int row = (i - 3) / 8, column = (i - 3) % 8;
        const int is_row = i >= 3 && row < 1000 && column < 5;

        assert_int_equal(seen[i], is_row ? (row * 5 + column) % 241 + 6 : 5);
    }
    memset(slot, 0, BYTES);
    assert_int_equal(r2_mem_queue_copy_rows(&queue, &rows, false), R2_OK);
    await(mark());
    for (int i = 0; i < BYTES; ++i) {
        assert_int_equal(slot[i], i < 5000 ? i % 241 + 6 : 0);
    }
    assert_int_equal(fakecuda_counter("copies_2d") - copies, 2);
}

/* As far apart as rows are, but of two allocations: the driver would refuse them. */
static void rows_of_two_allocations_are_two_copies(void **state)
{
    const uint64_t copies = fakecuda_counter("copies_2d");
    CUdeviceptr other;
    r2_mem_rows_t rows = {at(device), (char *) slot, 16, 2, 0};

    (void) state;
    OK(cuMemAlloc(&other, BYTES));
    OK(cuMemsetD8(other, 77, BYTES));
    OK(cuCtxSynchronize());
    assert_true(other > device);
    rows.pitch_bytes = (size_t) (other - device);
    assert_int_equal(r2_mem_queue_copy_rows(&queue, &rows, false), R2_OK);
    await(mark());
    assert_true(5 == slot[0] && 5 == slot[15] && 77 == slot[16] && 77 == slot[31]);
    assert_int_equal(fakecuda_counter("copies_2d"), copies);
}

/* One ticket stands for all copies before it. */
static void tickets_are_in_order(void **state)
{
    uint64_t tickets[4];

    (void) state;
    set("delay_us", "1000");
    for (int i = 0; i < 4; ++i) {
        assert_int_equal(r2_mem_queue_copy(&queue, slot + i * 1024, at(device), 1024), R2_OK);
        tickets[i] = mark();
        assert_true(0 == i || tickets[i] > tickets[i - 1]);
    }
    await(tickets[3]);
    for (int i = 0; i < 4; ++i) {
        assert_int_equal(r2_mem_queue_test(&queue, tickets[i]), R2_OK);
    }
}

static void tickets_are_limited(void **state)
{
    uint64_t ticket;
    sem_t gate;

    (void) state;
    close_gate(NULL, &gate);
    assert_int_equal(r2_mem_queue_follow(&queue), R2_OK);
    for (int i = 0; i < R2_MEM_TICKETS; ++i) {
        assert_int_equal(r2_mem_queue_copy(&queue, slot, at(device), CHUNK), R2_OK);
        ticket = mark();
    }
    ticket = 0;
    assert_int_equal(r2_mem_queue_mark(&queue, &ticket), R2_ERR_AGAIN);
    assert_int_equal(ticket, 0);
    sem_post(&gate);
    await(1);
    assert_int_equal(mark(), R2_MEM_TICKETS + 1);
    assert_int_equal(r2_mem_queue_drain(&queue), R2_OK);
    assert_int_equal(r2_mem_queue_test(&queue, R2_MEM_TICKETS + 1), R2_OK);
}

static void nothing_is_allocated_on_the_way(void **state)
{
    static const char *const what[] = {"allocs", "cuEventCreate", "cuStreamCreate",
                                       "cuDevicePrimaryCtxRetain"};
    uint64_t before[4];

    (void) state;
    for (int i = 0; i < 4; ++i) {
        before[i] = fakecuda_counter(what[i]);
    }
    for (int i = 0; i < 3 * R2_MEM_TICKETS; ++i) {
        assert_int_equal(r2_mem_queue_copy(&queue, slot, at(device), BYTES), R2_OK);
        await(mark());
    }
    for (int i = 0; i < 4; ++i) {
        assert_int_equal(fakecuda_counter(what[i]), before[i]);
    }
}

/* ---- order after the application */

static void copies_follow_the_default_stream(void **state)
{
    (void) state;
    set("delay_us", "1000");
    OK(cuMemsetD8Async(device, 8, BYTES, NULL));
    assert_int_equal(r2_mem_queue_follow(&queue), R2_OK);
    assert_int_equal(r2_mem_queue_copy(&queue, slot, at(device), BYTES), R2_OK);
    await(mark());
    assert_true(8 == slot[0] && 8 == slot[BYTES - 1]);
}

static void copies_follow_streams_that_wait_for_it(void **state)
{
    CUstream stream;

    (void) state;
    set("delay_us", "1000");
    OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    OK(cuMemsetD8Async(device, 9, BYTES, stream));
    assert_int_equal(r2_mem_queue_follow(&queue), R2_OK);
    assert_int_equal(r2_mem_queue_copy(&queue, slot, at(device), BYTES), R2_OK);
    await(mark());
    assert_int_equal(slot[BYTES - 1], 9);
    OK(cuStreamDestroy(stream));
}

/* ---- contexts and devices */

static void a_queue_is_on_its_memorys_device(void **state)
{
    r2_mem_queue_t there;
    r2_mem_at_t place;
    CUcontext other;
    CUdeviceptr pool;
    uint64_t ticket;

    (void) state;
    OK(cuDevicePrimaryCtxRetain(&other, 1));
    OK(cuCtxPushCurrent(other));
    OK(cuMemAllocAsync(&pool, BYTES, NULL));
    OK(cuMemsetD8(pool, 4, BYTES));
    OK(cuCtxSynchronize());
    OK(cuCtxPopCurrent(NULL));
    assert_int_equal(r2_mem_look(&mem, at(pool), &place), R2_OK);
    assert_int_equal(r2_mem_queue_init(&there, &mem, &place), R2_OK);
    assert_int_equal(r2_mem_queue_follow(&there), R2_OK);
    assert_int_equal(r2_mem_queue_copy(&there, slot, at(pool), BYTES), R2_OK);
    assert_int_equal(r2_mem_queue_mark(&there, &ticket), R2_OK);
    assert_int_equal(r2_mem_queue_drain(&there), R2_OK);
    assert_int_equal(slot[0], 4);
    r2_mem_queue_fini(&there);
    assert_ptr_equal(current(), context);
    OK(cuMemFree(pool));
    OK(cuDevicePrimaryCtxRelease(1));
}

/* ---- errors */

static void a_broken_device_is_told(void **state)
{
    uint64_t ticket = 0;
    r2_status_t status;

    (void) state;
    set("delay_us", "500");
    set("faults", "exec@1=214");
    assert_int_equal(r2_mem_queue_copy(&queue, slot, at(device), BYTES), R2_OK);
    status = r2_mem_queue_mark(&queue, &ticket);
    while (R2_OK == status || R2_IN_PROGRESS == status) {
        status = r2_mem_queue_test(&queue, ticket);
    }
    assert_int_equal(status, R2_ERR_GPU);
    assert_non_null(strstr(mem.trouble, "CUDA_ERROR_ECC_UNCORRECTABLE (214)"));
    assert_int_equal(r2_mem_queue_drain(&queue), R2_ERR_GPU);
    assert_int_equal(r2_mem_queue_copy(&queue, slot, at(device), BYTES), R2_ERR_GPU);
    assert_int_equal(r2_mem_queue_follow(&queue), R2_ERR_GPU);
}

/* Each call of an init fails once: nothing is left over. */
static void a_queue_that_cannot_be_made_is_none(void **state)
{
    static const char *const rules[] = {"cuStreamCreate@1=2", "cuEventCreate@1=2",
                                        "cuEventCreate@2=999", "cuEventCreate@65=999",
                                        "cuCtxPushCurrent_v2@1=999"};
    r2_mem_queue_t none;

    (void) state;
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); ++i) {
        uint64_t created = fakecuda_counter("cuEventCreate");
        uint64_t destroyed = fakecuda_counter("cuEventDestroy_v2");
        set("faults", rules[i]);
        assert_int_equal(r2_mem_queue_init(&none, &mem, &queue.at),
                         i < 2 ? R2_ERR_NO_MEMORY : R2_ERR_GPU);
        created = fakecuda_counter("cuEventCreate") - created;
        assert_int_equal(fakecuda_counter("cuEventDestroy_v2") - destroyed,
                         created > 0 ? created - 1 : 0); /* the last one failed */
        assert_ptr_equal(current(), context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(copies_go_on_after_the_call, start, end),
        cmocka_unit_test_setup_teardown(rows_are_one_copy, start, end),
        cmocka_unit_test_setup_teardown(rows_of_two_allocations_are_two_copies, start, end),
        cmocka_unit_test_setup_teardown(tickets_are_in_order, start, end),
        cmocka_unit_test_setup_teardown(tickets_are_limited, start, end),
        cmocka_unit_test_setup_teardown(nothing_is_allocated_on_the_way, start, end),
        cmocka_unit_test_setup_teardown(copies_follow_the_default_stream, start, end),
        cmocka_unit_test_setup_teardown(copies_follow_streams_that_wait_for_it, start, end),
        cmocka_unit_test_setup_teardown(a_queue_is_on_its_memorys_device, start, end),
        cmocka_unit_test_setup_teardown(a_broken_device_is_told, start, end),
        cmocka_unit_test_setup_teardown(a_queue_that_cannot_be_made_is_none, start, end),
    };

    return cmocka_run_group_tests_name("mem queue", tests, set_up, NULL);
}
