/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The stand-in for the CUDA driver: kinds of memory and what is said of pointers.
 */
#include "fakecuda/parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/uio.h>

#include <cmocka.h>

static CUcontext ctx;

static int set_up(void **state)
{
    (void) state;
    ctx = start_device();
    return 0;
}

static uint64_t id_of(CUdeviceptr at)
{
    unsigned long long id = 0;

    OK(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, at));
    return id;
}

static CUdeviceptr of_host(const void *at)
{
    return (uintptr_t) at;
}

/* ---- bytes */

static void bytes_go_in_and_out(void **state)
{
    CUdeviceptr a, b;
    char in[100], out[100];

    (void) state;
    for (int i = 0; i < 100; ++i) {
        in[i] = (char) (3 * i);
    }
    OK(cuMemAlloc(&a, 1000));
    OK(cuMemAlloc(&b, 1 << 20));
    OK(cuMemcpyHtoD(a + 3, in, 100));
    OK(cuMemcpyDtoD(b + 5, a + 3, 100));
    OK(cuMemcpyDtoH(out, b + 5, 100));
    assert_memory_equal(in, out, 100);
    OK(cuMemsetD8(b + 5, 9, 50));
    OK(cuMemcpyDtoH(out, b + 5, 100));
    assert_true(9 == out[0] && 9 == out[49] && in[50] == out[50]);
    assert_int_equal(cuMemcpyHtoD(a + 950, in, 100), CUDA_ERROR_INVALID_VALUE); /* past the end */
    assert_int_equal(cuMemcpyHtoD(of_host(out), in, 100), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemcpy(of_host(out), of_host(in), 100)); /* whatever they are */
    assert_memory_equal(in, out, 100);
    OK(cuMemFree(a));
    OK(cuMemFree(b));
}

static void fresh_memory_is_not_zero(void **state)
{
    CUdeviceptr at;
    char out[16] = {0};

    (void) state;
    OK(cuMemAlloc(&at, sizeof(out)));
    OK(cuMemcpyDtoH(out, at, sizeof(out)));
    assert_int_not_equal(out[0], 0);
    OK(cuMemFree(at));
}

static void system_calls_do_not_reach_it(void **state)
{
    CUdeviceptr at;
    char to[16];
    struct iovec here = {to, 10}, there;
    int ends[2];

    (void) state;
    OK(cuMemAlloc(&at, 4096));
    there = (struct iovec){(void *) (uintptr_t) at, 10};
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], (void *) (uintptr_t) at, 10), -1);
    assert_int_equal(process_vm_readv(getpid(), &here, 1, &there, 1, 0), -1);
    close(ends[0]);
    close(ends[1]);
    OK(cuMemFree(at));
}

/* ---- kinds */

typedef struct kind {
    const char *name;
    unsigned type;
    int is_managed;
    bool has_context;
} kind_t;

enum { DEVICE, POOL, MANAGED, PINNED, REGISTERED, KINDS, ROOM = 8192 };

static const kind_t kinds[KINDS] = {
    [DEVICE] = {"device", CU_MEMORYTYPE_DEVICE, 0, true},
    [POOL] = {"pool", CU_MEMORYTYPE_DEVICE, 0, false},
    [MANAGED] = {"managed", CU_MEMORYTYPE_DEVICE, 1, true},
    [PINNED] = {"pinned", CU_MEMORYTYPE_HOST, 0, true},
    [REGISTERED] = {"registered", CU_MEMORYTYPE_HOST, 0, true},
};

static CUdeviceptr take(int kind)
{
    static char own[ROOM];
    CUdeviceptr at = 0;
    void *host = own;

    switch (kind) {
    case DEVICE:
        OK(cuMemAlloc(&at, ROOM));
        break;
    case POOL:
        OK(cuMemAllocAsync(&at, ROOM, NULL));
        OK(cuStreamSynchronize(NULL));
        break;
    case MANAGED:
        OK(cuMemAllocManaged(&at, ROOM, CU_MEM_ATTACH_GLOBAL));
        break;
    case PINNED:
        OK(cuMemAllocHost(&host, ROOM));
        break;
    default:
        OK(cuMemHostRegister(own, ROOM, 0));
        break;
    }
    return 0 == at ? of_host(host) : at;
}

static void give(int kind, CUdeviceptr at)
{
    switch (kind) {
    case DEVICE:
    case MANAGED:
        OK(cuMemFree(at));
        break;
    case POOL:
        OK(cuMemFreeAsync(at, NULL));
        OK(cuStreamSynchronize(NULL));
        break;
    case PINNED:
        OK(cuMemFreeHost((void *) (uintptr_t) at));
        break;
    default:
        OK(cuMemHostUnregister((void *) (uintptr_t) at));
        break;
    }
}

/* @return what one query of three attributes says; without an error, whatever the memory is. */
static kind_t kind_of(CUdeviceptr at)
{
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_CONTEXT};
    kind_t kind = {"", 7, 7, false};
    CUcontext of = NULL;
    void *data[] = {&kind.type, &kind.is_managed, &of};

    OK(cuPointerGetAttributes(3, which, data, at));
    kind.has_context = ctx == of;
    return kind;
}

static void pointers_into_each_kind_are_known(void **state)
{
    (void) state;
    for (int i = 0; i < KINDS; ++i) {
        CUdeviceptr at = take(i), places[] = {at, at + 1, at + ROOM / 2, at + ROOM - 1}, base;
        uint64_t id = id_of(at);
        size_t bytes;
        for (int k = 0; k < 4; ++k) {
            kind_t kind = kind_of(places[k]);
            assert_int_equal(kind.type, kinds[i].type);
            assert_int_equal(kind.is_managed, kinds[i].is_managed);
            assert_int_equal(kind.has_context, kinds[i].has_context);
            assert_int_equal(id_of(places[k]), id);
            OK(cuMemGetAddressRange(&base, &bytes, places[k]));
            assert_true(at == base && ROOM == bytes);
        }
        give(i, at);
        assert_int_equal(kind_of(at).type, 0);
        assert_int_equal(cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_BUFFER_ID, at),
                         CUDA_ERROR_INVALID_VALUE);
    }
}

static void host_memory_is_not_the_drivers(void **state)
{
    unsigned type;
    int device;
    CUpointer_attribute which = CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
    void *data = &device;

    (void) state;
    assert_int_equal(kind_of(of_host(&type)).type, 0);
    OK(cuPointerGetAttributes(1, &which, &data, of_host(&type)));
    assert_int_equal(device, CU_DEVICE_INVALID);
    assert_int_equal(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, of_host(&type)),
                     CUDA_ERROR_INVALID_VALUE);
}

/* Also where the next allocation gets the address of the one before. */
static void buffer_ids_are_never_used_again(void **state)
{
    uint64_t before = 0;

    (void) state;
    for (int i = 0; i < 40; ++i) {
        CUdeviceptr at = take(i % KINDS);
        assert_true(id_of(at) > before);
        before = id_of(at);
        give(i % KINDS, at);
    }
}

static void registered_memory_is_registered_once(void **state)
{
    static char own[100];
    CUdeviceptr device;

    (void) state;
    OK(cuMemHostRegister(own, sizeof(own), 0));
    assert_int_equal(cuMemHostRegister(own + 50, 10, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    OK(cuMemHostGetDevicePointer(&device, own, 0));
    assert_int_equal(device, of_host(own));
    OK(cuMemHostUnregister(own));
    assert_int_equal(cuMemHostUnregister(own), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

/* ---- chunks */

enum { CHUNKS = 3 };

static const size_t each = 2 << 20;

static CUdeviceptr map_chunks(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr base;
    char byte = 0;

    OK(cuMemAddressReserve(&base, (CHUNKS + 1) * each, 0, 0, 0));
    for (unsigned i = 0; i < CHUNKS; ++i) {
        OK(cuMemCreate(&handle, each, &prop, 0));
        OK(cuMemMap(base + i * each, each, 0, handle, 0));
        OK(cuMemRelease(handle));
    }
    assert_int_equal(cuMemcpyHtoD(base, &byte, 1), CUDA_ERROR_INVALID_VALUE); /* no access yet */
    OK(cuMemSetAccess(base, CHUNKS * each, &access, 1));
    return base;
}

static void chunks_side_by_side_are_one_memory(void **state)
{
    CUdeviceptr base = map_chunks(), got;
    char in[1000], out[1000];
    size_t bytes;
    int is_mapped = -1;

    (void) state;
    memset(in, 7, sizeof(in));
    OK(cuMemcpyHtoD(base + each - 500, in, 1000));
    OK(cuMemcpyDtoH(out, base + each - 500, 1000));
    assert_memory_equal(in, out, 1000);
    OK(cuMemGetAddressRange(&got, &bytes, base + each + 5)); /* one chunk */
    assert_true(got == base + each && bytes == each);
    OK(cuPointerGetAttribute(&got, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, base + each + 5));
    OK(cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, base + each + 5));
    assert_true(got == base && bytes == (CHUNKS + 1) * each);
    assert_int_not_equal(id_of(base), id_of(base + each));
    OK(cuPointerGetAttribute(&is_mapped, CU_POINTER_ATTRIBUTE_MAPPED, base + CHUNKS * each));
    assert_int_equal(is_mapped, 0);
    assert_int_equal(cuMemcpyHtoD(base + CHUNKS * each - 500, in, 1000), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemUnmap(base, CHUNKS * each));
    assert_int_equal(kind_of(base).type, 0);
    OK(cuMemAddressFree(base, (CHUNKS + 1) * each));
}

/* ---- the end of memory */

static void late_uses_are_told(void **state)
{
    uint64_t before = fakecuda_counter("use_after_free");
    CUdeviceptr at, next;
    char byte;

    (void) state;
    OK(cuMemAlloc(&at, 4096));
    OK(cuMemFree(at));
    OK(cuMemAlloc(&next, 4096));
    assert_int_not_equal(at, next);
    assert_int_equal(cuMemcpyDtoH(&byte, at + 5, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fakecuda_counter("use_after_free"), before + 1);
    assert_non_null(strstr(fakecuda_mistake(), "byte 5 of device allocation"));
    assert_int_equal(cuMemFree(at), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fakecuda_counter("use_after_free"), before + 2);
    assert_int_equal(cuMemFree(next + 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(next));
}

static void memory_ends(void **state)
{
    CUdeviceptr at, more;
    size_t left, total;

    (void) state;
    OK(cuMemGetInfo(&left, &total));
    OK(cuMemAlloc(&at, left));
    assert_int_equal(cuMemAlloc(&more, 1), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemFree(at));
    assert_int_equal(cuMemAlloc(&at, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(cuMemAlloc(&at, 0), CUDA_ERROR_INVALID_VALUE);
}

static void everything_is_counted(void **state)
{
    uint64_t copies = fakecuda_counter("copies_h2d"), bytes = fakecuda_counter("bytes_h2d");
    uint64_t calls = fakecuda_counter("cuMemcpyHtoD_v2"), allocs = fakecuda_counter("allocs");
    uint64_t live = fakecuda_counter("live_bytes");
    CUdeviceptr at;
    char in[70] = {0};

    (void) state;
    OK(cuMemAlloc(&at, 1000));
    OK(cuMemcpyHtoD(at, in, 70));
    assert_int_equal(fakecuda_counter("copies_h2d"), copies + 1);
    assert_int_equal(fakecuda_counter("bytes_h2d"), bytes + 70);
    assert_int_equal(fakecuda_counter("cuMemcpyHtoD_v2"), calls + 1);
    assert_int_equal(fakecuda_counter("allocs"), allocs + 1);
    assert_int_equal(fakecuda_counter("live_bytes"), live + 1000);
    OK(cuMemFree(at));
    assert_int_equal(fakecuda_counter("live_bytes"), live);
    assert_true(UINT64_MAX == fakecuda_counter("no such thing"));
}

static void entry_points_are_found_by_name(void **state)
{
    CUdriverProcAddressQueryResult result;
    void *fn;
    CUresult (*alloc)(CUdeviceptr *, size_t) = cuMemAlloc;

    (void) state;
    OK(cuGetProcAddress_v2("cuMemAlloc", &fn, 12000, 0, &result));
    assert_memory_equal(&fn, &alloc, sizeof(fn));
    assert_int_equal(cuGetProcAddress_v2("cuNothing", &fn, 12000, 0, &result),
                     CUDA_ERROR_NOT_FOUND);
    assert_int_equal(result, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_go_in_and_out),
        cmocka_unit_test(fresh_memory_is_not_zero),
        cmocka_unit_test(system_calls_do_not_reach_it),
        cmocka_unit_test(pointers_into_each_kind_are_known),
        cmocka_unit_test(host_memory_is_not_the_drivers),
        cmocka_unit_test(buffer_ids_are_never_used_again),
        cmocka_unit_test(registered_memory_is_registered_once),
        cmocka_unit_test(chunks_side_by_side_are_one_memory),
        cmocka_unit_test(late_uses_are_told),
        cmocka_unit_test(memory_ends),
        cmocka_unit_test(everything_is_counted),
        cmocka_unit_test(entry_points_are_found_by_name),
    };

    return cmocka_run_group_tests_name("fakecuda memory", tests, set_up, NULL);
}
