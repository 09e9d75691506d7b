/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Kinds of memory, and contexts of the CUDA driver, on the driver of tests/fakecuda, which this
 * program uses as an application does.
 */
#include "r2_config.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "mem/mem.h"

#include "fakecuda/parts.h"

enum { ROOM = 8192 };

static r2_mem_t mem;
static CUcontext primary, second; /* the application's, on devices 0 and 1 */

static int set_up(void **state)
{
    (void) state;
    must(0 == fakecuda_set("devices", "2"), "devices", __FILE__, __LINE__);
    r2_mem_init(&mem, "libcuda.so.1");
    return 0;
}

static int tear_down(void **state)
{
    (void) state;
    r2_mem_fini(&mem);
    return 0;
}

static r2_mem_at_t look(CUdeviceptr at)
{
    r2_mem_at_t found = {R2_MEM_KIND_COUNT, 99, NULL};

    assert_int_equal(r2_mem_look(&mem, (const void *) (uintptr_t) at, &found), R2_OK);
    return found;
}

static r2_mem_at_t look_at(const void *at)
{
    return look((uintptr_t) at);
}

/* ---- without a driver */

static void without_a_driver_all_is_host_memory(void **state)
{
    r2_mem_t none;
    r2_mem_at_t at;

    (void) state;
    r2_mem_init(&none, "libno-such-driver.so.1");
    assert_non_null(strstr(none.trouble, "libno-such-driver.so.1"));
    assert_int_equal(r2_mem_look(&none, &at, &at), R2_OK);
    assert_int_equal(at.kind, R2_MEM_HOST);
    assert_int_equal(at.device, R2_MEM_NO_DEVICE);
    r2_mem_fini(&none);
}

static void a_driver_that_lacks_functions_is_none(void **state)
{
    r2_mem_t old;

    (void) state;
    r2_mem_init(&old, "libc.so.6");
    assert_null(old.driver.library);
    assert_non_null(strstr(old.trouble, "has no cuDriverGetVersion: the driver is too old"));
    r2_mem_fini(&old);
}

/* r2 starts no driver for a program that does not use it. */
static void before_cuinit_all_is_host_memory(void **state)
{
    (void) state;
    assert_string_equal(mem.trouble, "");
    assert_int_equal(look_at(&mem).kind, R2_MEM_HOST);
    assert_int_equal(fakecuda_counter("cuInit"), 0);
    assert_int_equal(fakecuda_counter("cuPointerGetAttributes"), 1);
}

/* From here on the application uses the driver. */
static void the_application_starts(void **state)
{
    (void) state;
    primary = start_device();
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    assert_int_equal(look_at(&mem).kind, R2_MEM_HOST);
}

/* ---- kinds */

static CUdeviceptr chunks(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    const size_t each = 2 << 20;
    CUdeviceptr base;

    OK(cuMemAddressReserve(&base, 2 * each, 0, 0, 0));
    for (unsigned i = 0; i < 2; ++i) {
        OK(cuMemCreate(&handle, each, &prop, 0));
        OK(cuMemMap(base + i * each, each, 0, handle, 0));
        OK(cuMemRelease(handle));
    }
    OK(cuMemSetAccess(base, 2 * each, &access, 1));
    return base + each - ROOM / 2; /* across both */
}

static CUdeviceptr take(int which)
{
    static char own[ROOM];
    CUdeviceptr at = 0;
    void *pinned = own;

    switch (which) {
    case 0:
        OK(cuMemAlloc(&at, ROOM));
        break;
    case 1:
        OK(cuMemAllocAsync(&at, ROOM, NULL));
        break;
    case 2:
        at = chunks();
        break;
    case 3:
        OK(cuMemAllocManaged(&at, ROOM, CU_MEM_ATTACH_GLOBAL));
        break;
    case 4:
        OK(cuMemAllocHost(&pinned, ROOM));
        break;
    default:
        OK(cuMemHostRegister(own, ROOM, 0));
        break;
    }
    return 0 == at ? (uintptr_t) pinned : at;
}

static void each_kind_is_known_by_one_query(void **state)
{
    static const struct {
        r2_mem_kind_t kind;
        bool has_context, is_cpus;
    } wanted[] = {{R2_MEM_DEVICE, true, false},  {R2_MEM_DEVICE, false, false},
                  {R2_MEM_DEVICE, false, false}, {R2_MEM_MANAGED, true, false},
                  {R2_MEM_PINNED, true, true},   {R2_MEM_PINNED, true, true}};

    (void) state;
    for (int i = 0; i < (int) (sizeof(wanted) / sizeof(wanted[0])); ++i) {
        CUdeviceptr at = take(i), places[] = {at, at + 1, at + ROOM - 1};
        for (int k = 0; k < 3; ++k) {
            uint64_t before = fakecuda_counter("pointer_queries");
            r2_mem_at_t found = look(places[k]);
            assert_int_equal(found.kind, wanted[i].kind);
            assert_int_equal(found.device, 0);
            assert_ptr_equal(found.context, wanted[i].has_context ? primary : NULL);
            assert_int_equal(r2_mem_traits(found.kind)->is_cpus, wanted[i].is_cpus);
            assert_true(r2_mem_traits(found.kind)->is_drivers);
            assert_int_equal(fakecuda_counter("pointer_queries"), before + 1);
        }
    }
    assert_true(r2_mem_traits(R2_MEM_HOST)->is_cpus && !r2_mem_traits(R2_MEM_HOST)->is_drivers);
    assert_string_equal(r2_mem_traits(R2_MEM_MANAGED)->name, "managed");
}

/* The same address is one thing, and then another. */
static void nothing_goes_stale(void **state)
{
    static char own[100];
    void *pinned, *again;

    (void) state;
    assert_int_equal(look_at(own + 5).kind, R2_MEM_HOST);
    OK(cuMemHostRegister(own, sizeof(own), 0));
    assert_int_equal(look_at(own + 5).kind, R2_MEM_PINNED);
    OK(cuMemHostUnregister(own));
    assert_int_equal(look_at(own + 5).kind, R2_MEM_HOST);
    OK(cuMemAllocHost(&pinned, ROOM));
    assert_int_equal(look_at(pinned).kind, R2_MEM_PINNED);
    OK(cuMemFreeHost(pinned));
    again = mmap(pinned, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_equal(again, pinned);
    assert_int_equal(look_at(again).kind, R2_MEM_HOST);
    munmap(again, ROOM);
}

/* ---- contexts */

static CUcontext current(void)
{
    CUcontext now;

    OK(cuCtxGetCurrent(&now));
    return now;
}

static int current_device(void)
{
    CUdevice device;

    OK(cuCtxGetDevice(&device));
    return device;
}

/* Also of a pool's memory, which has no context of its own. */
static void calls_are_made_on_the_memorys_device(void **state)
{
    CUdeviceptr pool, own;
    r2_mem_at_t at;

    (void) state;
    OK(cuCtxPushCurrent(second));
    OK(cuMemAllocAsync(&pool, ROOM, NULL));
    OK(cuMemAlloc(&own, ROOM));
    OK(cuCtxPopCurrent(NULL));
    assert_ptr_equal(current(), primary);
    at = look(pool);
    assert_int_equal(at.device, 1);
    assert_int_equal(r2_mem_enter(&mem, &at), R2_OK);
    assert_int_equal(current_device(), 1);
    r2_mem_leave(&mem);
    assert_ptr_equal(current(), primary);
    at = look(own);
    assert_ptr_equal(at.context, second);
    assert_int_equal(r2_mem_enter(&mem, &at), R2_OK);
    assert_ptr_equal(current(), second);
    r2_mem_leave(&mem);
    assert_ptr_equal(current(), primary);
}

static void *in_a_thread(void *arg)
{
    const r2_mem_at_t *at = arg;

    MUST(NULL == current());
    MUST(R2_OK == r2_mem_enter(&mem, at));
    MUST(0 == current_device());
    r2_mem_leave(&mem);
    MUST(NULL == current());
    return NULL;
}

static void a_thread_without_a_context_has_none_afterwards(void **state)
{
    pthread_t thread;
    r2_mem_at_t at;

    (void) state;
    at = look(take(0));
    assert_int_equal(pthread_create(&thread, NULL, in_a_thread, &at), 0);
    pthread_join(thread, NULL);
}

static void pinned_memory_is_the_drivers(void **state)
{
    r2_mem_at_t at = look(take(1)), found;
    void *slot;

    (void) state;
    assert_int_equal(r2_mem_pin(&mem, &at, ROOM, &slot), R2_OK);
    found = look_at((char *) slot + ROOM - 1);
    assert_int_equal(found.kind, R2_MEM_PINNED);
    memset(slot, 1, ROOM);
    r2_mem_unpin(&mem, &at, slot);
    assert_int_equal(look_at(slot).kind, R2_MEM_HOST);
    assert_ptr_equal(current(), primary);
}

/* ---- errors */

static void fail_next(const char *rule)
{
    must(0 == fakecuda_set("faults", rule), rule, __FILE__, __LINE__);
}

static void errors_of_the_driver_are_told(void **state)
{
    r2_mem_at_t at = look(take(1)), found = at;
    void *slot = NULL;

    (void) state;
    fail_next("cuMemHostAlloc@1=2");
    assert_int_equal(r2_mem_pin(&mem, &at, ROOM, &slot), R2_ERR_NO_MEMORY);
    assert_ptr_equal(current(), primary);
    assert_string_equal(mem.trouble, "cuMemHostAlloc returned CUDA_ERROR_OUT_OF_MEMORY (2)");
    fail_next("cuCtxPushCurrent_v2@1=201");
    assert_int_equal(r2_mem_enter(&mem, &at), R2_ERR_GPU);
    assert_ptr_equal(current(), primary);
    fail_next("cuPointerGetAttributes@1=214"); /* it may be a device's: not taken for the host's */
    assert_int_equal(r2_mem_look(&mem, &at, &found), R2_ERR_GPU);
    assert_int_equal(found.kind, R2_MEM_DEVICE);
    fail_next("cuPointerGetAttributes@1=1");
    assert_int_equal(look_at(&at).kind, R2_MEM_HOST);
    fail_next("");
}

/* ---- the end */

static void what_was_held_is_given_back(void **state)
{
    unsigned flags;
    int is_active;

    (void) state;
    OK(cuDevicePrimaryCtxRelease(1));
    OK(cuDevicePrimaryCtxGetState(1, &flags, &is_active));
    assert_true(is_active); /* r2 holds it for the pool's memory */
    r2_mem_fini(&mem);
    OK(cuDevicePrimaryCtxGetState(1, &flags, &is_active));
    assert_false(is_active);
    OK(cuDevicePrimaryCtxGetState(0, &flags, &is_active));
    assert_true(is_active);
    assert_int_equal(fakecuda_counter("mistakes"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_driver_all_is_host_memory),
        cmocka_unit_test(a_driver_that_lacks_functions_is_none),
        cmocka_unit_test(before_cuinit_all_is_host_memory),
        cmocka_unit_test(the_application_starts),
        cmocka_unit_test(each_kind_is_known_by_one_query),
        cmocka_unit_test(nothing_goes_stale),
        cmocka_unit_test(calls_are_made_on_the_memorys_device),
        cmocka_unit_test(a_thread_without_a_context_has_none_afterwards),
        cmocka_unit_test(pinned_memory_is_the_drivers),
        cmocka_unit_test(errors_of_the_driver_are_told),
        cmocka_unit_test(what_was_held_is_given_back),
    };

    return cmocka_run_group_tests_name("mem", tests, set_up, tear_down);
}
