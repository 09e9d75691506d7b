/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * For tests: calls that have to succeed, a kernel, processes of their own.
 */
#ifndef FAKECUDA_PARTS_H
#define FAKECUDA_PARTS_H

#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fakecuda/api.h"
#include "fakecuda/fakecuda.h"

/* The end of the process unless `what` is so. cmocka's checks do not work in a child. */
#define MUST(what) must(what, #what, __FILE__, __LINE__)
#define OK(call)   MUST(CUDA_SUCCESS == (call))

static inline void must(bool is_so, const char *what, const char *file, int line)
{
    if (!is_so) {
        fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
        _exit(99);
    }
}

/* Kernel "add": to[i] += from[i]. */
static const char *const add_ptx = ".version 6.0\n.target sm_70\n.address_size 64\n"
                                   ".visible .entry add(\n\t.param .u64 add_param_0,\n"
                                   "\t.param .u64 add_param_1,\n\t.param .u32 add_param_2\n)\n"
                                   "{\n\tret;\n}\n";

static inline void add_run(const fakecuda_grid_t *grid, void *const *params)
{
    const unsigned *from = *(unsigned *const *) params[0];
    unsigned *to = *(unsigned *const *) params[1];

    (void) grid;
    for (unsigned i = 0; i < *(const unsigned *) params[2]; ++i) {
        to[i] += from[i];
    }
}

static inline int add_spans(void *const *params, fakecuda_span_t *spans_p)
{
    const size_t bytes = *(const unsigned *) params[2] * sizeof(unsigned);

    spans_p[0] = (fakecuda_span_t){0, bytes, 0, 0};
    spans_p[1] = (fakecuda_span_t){1, bytes, 1, 0};
    return 2;
}

static const fakecuda_kernel_t add_kernels[] = {{"add", "ppi", add_run, add_spans},
                                                {NULL, NULL, NULL, NULL}};

static inline CUfunction load_add(void)
{
    CUmodule module;
    CUfunction add;

    fakecuda_add_kernels(add_kernels);
    OK(cuModuleLoadData(&module, add_ptx));
    OK(cuModuleGetFunction(&add, module, "add"));
    return add;
}

static inline CUresult launch_add(CUfunction add, CUdeviceptr from, CUdeviceptr to, unsigned count,
                                  CUstream stream)
{
    void *params[] = {&from, &to, &count};

    return cuLaunchKernel(add, 4, 1, 1, 64, 1, 1, 0, stream, params, NULL);
}

/* Holds a stream until the gate opens: nothing depends on how quick it is. */
static inline void wait_at_gate(void *gate)
{
    while (0 != sem_wait(gate)) {
    }
}

static inline void close_gate(CUstream stream, sem_t *gate)
{
    must(0 == sem_init(gate, 0, 0), "sem_init", __FILE__, __LINE__);
    OK(cuLaunchHostFunc(stream, wait_at_gate, gate));
}

/* The primary context of device 0, current. */
static inline CUcontext start_device(void)
{
    CUcontext ctx;

    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&ctx, 0));
    OK(cuCtxSetCurrent(ctx));
    return ctx;
}

/* Runs a function in a process that has not called cuInit(). @param said_p what it wrote to stderr
 * @return its wait status */
static inline int run_child(void (*fn)(const void *arg), const void *arg, char *said_p, size_t room)
{
    int ends[2], status = -1;
    size_t used = 0;
    ssize_t more;
    pid_t child;

    fflush(NULL);
    must(0 == pipe(ends), "pipe", __FILE__, __LINE__);
    child = fork();
    if (0 == child) {
        signal(SIGSEGV, SIG_DFL); /* cmocka's would go on with the next test */
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        fn(arg);
        exit(0); /* by atexit() */
    }
    close(ends[1]);
    while ((more = read(ends[0], said_p + used, room - 1 - used)) > 0) {
        used += (size_t) more;
    }
    said_p[used] = '\0';
    close(ends[0]);
    waitpid(child, &status, 0);
    return status;
}

#endif
