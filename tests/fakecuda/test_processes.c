/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The stand-in for the CUDA driver, a process for each test: settings, planted faults, touches by
 * the CPU, memory of other processes.
 */
#include "fakecuda/parts.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/socket.h>

#include <cmocka.h>

static char said[16384];

/* Whoever shall say something in the end does it by a signal or a status. */
static void runs(void (*fn)(const void *arg), const void *arg)
{
    int status = run_child(fn, arg, said, sizeof(said));

    if (0 != status) {
        fail_msg("status %x: %s", (unsigned) status, said);
    }
}

static void says(const char *text)
{
    if (NULL == strstr(said, text)) {
        fail_msg("\"%s\" is not in: %s", text, said);
    }
}

static void set(const char *name, const char *value)
{
    must(0 == fakecuda_set(name, value), name, __FILE__, __LINE__);
}

/* ---- touches by the CPU */

typedef enum touch { READS, WRITES, FREED, BETWEEN } touch_t;

static void touch(const void *arg)
{
    touch_t how = *(const touch_t *) arg;
    CUdeviceptr at;
    volatile char *bytes;

    start_device();
    OK(cuMemAlloc(&at, 4096));
    bytes = (volatile char *) (uintptr_t) at;
    if (FREED == how) {
        OK(cuMemFree(at));
    }
    if (WRITES == how) {
        bytes[100] = 1;
    } else {
        (void) bytes[BETWEEN == how ? 4096 : 100];
    }
}

static void the_cpu_cannot_touch_device_memory(void **state)
{
    static const struct {
        touch_t how;
        const char *said;
    } cases[] = {{READS, "byte 100 of device allocation"},
                 {WRITES, "byte 100 of device allocation"},
                 {FREED, "byte 100 of freed allocation"},
                 {BETWEEN, "no allocation"}};

    (void) state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        int status = run_child(touch, &cases[i].how, said, sizeof(said));
        assert_true(WIFSIGNALED(status) && SIGSEGV == WTERMSIG(status));
        says("MISTAKE: the CPU touches device memory");
        says(cases[i].said);
    }
}

/* A handler that the program has stays in charge of what is not the stand-in's. */
static void on_segv(int number)
{
    (void) number;
    _exit(7);
}

static void touch_nothing(const void *arg)
{
    signal(SIGSEGV, on_segv);
    start_device();
    *(volatile char *) strtoul(arg, NULL, 0) = 1;
}

static void other_faults_are_the_programs(void **state)
{
    int status;

    (void) state;
    status = run_child(touch_nothing, "8", said, sizeof(said));
    assert_true(WIFEXITED(status) && 7 == WEXITSTATUS(status));
    assert_string_equal(said, "");
}

#ifdef __x86_64__
static void touch_and_go_on(const void *arg)
{
    CUdeviceptr at;
    char *bytes, copy[3000];

    set("audit", arg);
    start_device();
    OK(cuMemAlloc(&at, 3000));
    OK(cuMemsetD8(at, 5, 3000));
    OK(cuCtxSynchronize());
    bytes = (char *) (uintptr_t) at;
    memcpy(copy, bytes, sizeof(copy));
    MUST(5 == copy[0] && 5 == copy[2999]);
    memset(bytes, 6, 2000);
    OK(cuMemcpyDtoH(copy, at, sizeof(copy)));
    MUST(6 == copy[0] && 6 == copy[1999] && 5 == copy[2000]);
    OK(cuMemFree(at));
}

static void an_audit_lists_all_places(void **state)
{
    char folder[] = "/tmp/fakecuda-XXXXXX", name[64], line[4096];
    int sites = 0, writing = 0;
    FILE *file;

    (void) state;
    assert_non_null(mkdtemp(folder));
    snprintf(name, sizeof(name), "%s/audit", folder);
    runs(touch_and_go_on, name);
    snprintf(line, sizeof(line), "cat %s.*; rm -r %s", name, folder);
    file = popen(line, "r");
    while (NULL != fgets(line, sizeof(line), file)) {
        ++sites;
        writing += NULL != strstr(line, " w ");
        assert_non_null(strstr(line, "test_processes+0x"));
    }
    pclose(file);
    assert_true(sites >= 2 && writing >= 1 && writing < sites);
}
#endif

/* ---- settings */

static void two_devices(const void *arg)
{
    char id[20];
    CUdevice device;
    int value;
    CUcontext first, second;
    CUdeviceptr near, far;
    CUfunction add;

    (void) arg;
    MUST(CUDA_ERROR_NOT_INITIALIZED == cuDeviceGetCount(&value));
    set("devices", "2");
    set("pci", "0000:3b:00.0,0001:5e:00.0");
    first = start_device();
    OK(cuDeviceGetCount(&value));
    MUST(2 == value && CUDA_ERROR_INVALID_DEVICE == cuDeviceGet(&device, 2));
    OK(cuDeviceGetPCIBusId(id, sizeof(id), 1));
    MUST(0 == strcmp(id, "0001:5e:00.0"));
    OK(cuDeviceGetByPCIBusId(&device, "0000:3B:00.0"));
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 1));
    MUST(0 == device && 0x5e == value);
    OK(cuMemAlloc(&near, 64));
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    OK(cuCtxPushCurrent(second));
    OK(cuMemAlloc(&far, 64));
    OK(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, far + 63));
    MUST(1 == value);
    OK(cuMemcpyDtoD(near, far, 64)); /* copies pass between devices, kernels with leave only */
    OK(cuCtxSynchronize());
    OK(cuCtxEnablePeerAccess(first, 0));
    MUST(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED == cuCtxEnablePeerAccess(first, 0));
    add = load_add();
    OK(launch_add(add, near, far, 16, NULL));
    OK(cuCtxSynchronize());
    OK(cuCtxDisablePeerAccess(first));
    OK(launch_add(add, near, far, 16, NULL));
    MUST(CUDA_ERROR_ILLEGAL_ADDRESS == cuCtxSynchronize());
}

static void no_device(const void *arg)
{
    (void) arg;
    set("devices", "0");
    MUST(CUDA_ERROR_NO_DEVICE == cuInit(0));
}

/* @param arg "driver" or "sm" */
static void too_old(const void *arg)
{
    CUmodule module;
    CUresult rc;

    set(arg, 0 == strcmp(arg, "sm") ? "60" : "9020");
    start_device();
    rc = cuModuleLoadData(&module, add_ptx);
    MUST(rc == (0 == strcmp(arg, "sm") ? CUDA_ERROR_NO_BINARY_FOR_GPU
                                       : CUDA_ERROR_UNSUPPORTED_PTX_VERSION));
}

static void from_the_environment(const void *arg)
{
    int count;

    (void) arg;
    setenv("FAKECUDA_DEVICES", "3", 1);
    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    MUST(3 == count);
}

static void settings_are_kept(void **state)
{
    (void) state;
    runs(two_devices, NULL);
    says("device 1 does not reach");
    runs(no_device, NULL);
    runs(too_old, "driver");
    runs(too_old, "sm");
    runs(from_the_environment, NULL);
}

static void in_a_forked_child(const void *arg)
{
    int status;
    pid_t child;
    CUdevice device;

    (void) arg;
    start_device();
    child = fork();
    if (0 == child) {
        _exit(CUDA_ERROR_NOT_INITIALIZED == cuInit(0) &&
                      CUDA_ERROR_NOT_INITIALIZED == cuDeviceGet(&device, 0)
                  ? 0
                  : 1);
    }
    MUST(child == waitpid(child, &status, 0) && 0 == status);
}

static void the_driver_is_not_inherited(void **state)
{
    (void) state;
    runs(in_a_forked_child, NULL);
}

static void free_twice(const void *arg)
{
    CUdeviceptr at;

    (void) arg;
    set("abort", "1");
    start_device();
    OK(cuMemAlloc(&at, 1));
    OK(cuMemFree(at));
    cuMemFree(at);
}

static void mistakes_can_end_the_process(void **state)
{
    int status;

    (void) state;
    status = run_child(free_twice, NULL, said, sizeof(said));
    assert_true(WIFSIGNALED(status) && SIGABRT == WTERMSIG(status));
    says("is freed twice");
}

static void counted(const void *arg)
{
    set("stats", arg);
    start_device();
    OK(cuMemsetD8(0, 0, 0));
}

static void counters_are_written(void **state)
{
    char folder[] = "/tmp/fakecuda-XXXXXX", line[128];
    bool is_there = false;
    FILE *file;

    (void) state;
    assert_non_null(mkdtemp(folder));
    snprintf(line, sizeof(line), "%s/stats", folder);
    runs(counted, line);
    snprintf(line, sizeof(line), "cat %s/stats.*; rm -r %s", folder, folder);
    file = popen(line, "r");
    while (NULL != fgets(line, sizeof(line), file)) {
        is_there |= 0 == strcmp(line, "cuMemsetD8_v2 1\n");
    }
    pclose(file);
    assert_true(is_there);
}

/* ---- faults */

static void third_call_fails(const void *arg)
{
    CUdeviceptr at;

    (void) arg;
    set("faults", "cuMemAlloc_v2@3=2,cuLaunchKernel@1=719");
    start_device();
    OK(cuMemAlloc(&at, 64));
    OK(cuMemAlloc(&at, 64));
    MUST(CUDA_ERROR_OUT_OF_MEMORY == cuMemAlloc(&at, 64));
    OK(cuMemAlloc(&at, 64));
    MUST(CUDA_ERROR_LAUNCH_FAILED == launch_add(load_add(), at, at, 1, NULL));
    OK(launch_add(load_add(), at, at, 1, NULL));
    OK(cuCtxSynchronize());
    MUST(2 == fakecuda_counter("faults"));
}

/* @return which of 64 calls failed, a bit for each */
static uint64_t failed_calls(const char *seed)
{
    uint64_t failed = 0;
    unsigned flags;

    set("seed", seed);
    set("faults", "cuCtxGetFlags%300=1");
    for (int i = 0; i < 64; ++i) {
        failed |= (uint64_t) (CUDA_SUCCESS != cuCtxGetFlags(&flags)) << i;
    }
    return failed;
}

static void some_calls_fail(const void *arg)
{
    uint64_t first;

    (void) arg;
    start_device();
    first = failed_calls("5");
    MUST(first == failed_calls("5") && first != failed_calls("6"));
    MUST(__builtin_popcountll(first) > 5 && __builtin_popcountll(first) < 40);
    MUST(0 != fakecuda_set("faults", "cuInit"));
}

static void never(void *arg)
{
    (void) arg;
    MUST(!"called although the device is broken");
}

/* An error of the device comes later, and stays. */
static void the_device_breaks(const void *arg)
{
    CUdeviceptr at;
    CUstream stream;
    CUevent event;
    char host[16];

    (void) arg;
    start_device();
    OK(cuMemAlloc(&at, 64));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    set("delay_us", "1000");
    set("faults", "exec@2=214");
    OK(cuMemsetD8Async(at, 1, 16, stream));
    OK(cuMemsetD8Async(at, 2, 16, stream));
    OK(cuEventRecord(event, stream));
    OK(cuLaunchHostFunc(stream, never, NULL));
    MUST(CUDA_ERROR_ECC_UNCORRECTABLE == cuEventSynchronize(event));
    MUST(CUDA_ERROR_ECC_UNCORRECTABLE == cuStreamSynchronize(stream));
    MUST(CUDA_ERROR_ECC_UNCORRECTABLE == cuMemcpyDtoH(host, at, 16));
    MUST(CUDA_ERROR_ECC_UNCORRECTABLE == cuMemFree(at));
    MUST(1 == *(char *) fakecuda_look(at, 16)); /* the first was executed, the second not */
}

static void planted_faults_come(void **state)
{
    (void) state;
    runs(third_call_fails, NULL);
    runs(some_calls_fail, NULL);
    runs(the_device_breaks, NULL);
}

/* ---- memory of other processes */

static void importer(int end)
{
    CUipcMemHandle handle;
    CUdeviceptr at;
    char back[64];

    MUST(sizeof(handle) == read(end, &handle, sizeof(handle)));
    start_device();
    OK(cuIpcOpenMemHandle(&at, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    OK(cuMemcpyDtoH(back, at + 10, 16));
    MUST(0 == strcmp(back, "from the parent"));
    OK(cuMemcpyHtoD(at + 10, "from the child!", 16));
    OK(cuCtxSynchronize());
    MUST(1 == write(end, "x", 1) && 1 == read(end, back, 1)); /* its owner has freed it */
    MUST(CUDA_ERROR_INVALID_VALUE == cuMemcpyDtoH(back, at, 1));
    MUST(1 == fakecuda_counter("use_after_free"));
    OK(cuIpcCloseMemHandle(at));
    exit(0);
}

static void exporter(const void *arg)
{
    CUipcMemHandle handle;
    CUdeviceptr at, other;
    char back[64];
    int ends[2], status;
    pid_t child;

    (void) arg;
    MUST(0 == socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    child = fork();
    if (0 == child) {
        importer(ends[1]);
    }
    start_device();
    OK(cuMemAlloc(&at, 100));
    OK(cuMemcpyHtoD(at + 10, "from the parent", 16));
    OK(cuCtxSynchronize());
    OK(cuIpcGetMemHandle(&handle, at + 10));
    MUST(CUDA_ERROR_INVALID_CONTEXT == cuIpcOpenMemHandle(&other, handle, 1));
    MUST(sizeof(handle) == write(ends[0], &handle, sizeof(handle)) && 1 == read(ends[0], back, 1));
    OK(cuMemcpyDtoH(back, at + 10, 16));
    MUST(0 == strcmp(back, "from the child!"));
    OK(cuMemFree(at));
    MUST(1 == write(ends[0], "x", 1));
    OK(cuMemAllocAsync(&at, 100, NULL));
    MUST(CUDA_ERROR_INVALID_VALUE == cuIpcGetMemHandle(&handle, at)); /* not memory of a pool */
    memset(&handle, 0, sizeof(handle));
    MUST(CUDA_ERROR_INVALID_VALUE == cuIpcOpenMemHandle(&other, handle, 1));
    MUST(child == waitpid(child, &status, 0) && 0 == status);
}

static void another_process_reads_and_writes(void **state)
{
    (void) state;
    runs(exporter, NULL);
    says("use of freed memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cpu_cannot_touch_device_memory),
        cmocka_unit_test(other_faults_are_the_programs),
#ifdef __x86_64__
        cmocka_unit_test(an_audit_lists_all_places),
#endif
        cmocka_unit_test(settings_are_kept),
        cmocka_unit_test(the_driver_is_not_inherited),
        cmocka_unit_test(mistakes_can_end_the_process),
        cmocka_unit_test(counters_are_written),
        cmocka_unit_test(planted_faults_come),
        cmocka_unit_test(another_process_reads_and_writes),
    };

    return cmocka_run_group_tests_name("fakecuda processes", tests, NULL, NULL);
}
