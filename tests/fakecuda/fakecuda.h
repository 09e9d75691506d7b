/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What tests say to the stand-in and ask it (docs/fakecuda.md). A program that opens it with
 * dlopen() finds these by dlsym().
 */
#ifndef FAKECUDA_H
#define FAKECUDA_H

#include <stddef.h>
#include <stdint.h>

#define FAKECUDA_EXPORT __attribute__((visibility("default")))

typedef struct fakecuda_grid {
    unsigned grid[3], block[3];
} fakecuda_grid_t;

/** Memory that a launch touches: through which parameter, how much from there on, and how. */
typedef struct fakecuda_span {
    int param;
    size_t bytes;
    int writes;
    size_t offset_bytes; /* of the pointer within the parameter: of structs */
} fakecuda_span_t;

#define FAKECUDA_SPANS 64

/** A kernel in C, by the name that it has in the PTX text. */
typedef struct fakecuda_kernel {
    const char *name;
    /* for each parameter: p pointer, l 8 bytes, i 4 bytes, or sN, a struct of N bytes */
    const char *signature;
    /** Runs the whole grid. Parameters are where cuLaunchKernel()'s are; pointers that are among
     * the spans lead to where the CPU may touch the memory. */
    void (*run)(const fakecuda_grid_t *grid, void *const *params);
    /** All memory that the kernel touches. @return number of spans, at most FAKECUDA_SPANS. */
    int (*spans)(void *const *params, fakecuda_span_t *spans_p);
} fakecuda_kernel_t;

/** Adds kernels; the last one has no name. A shared object that FAKECUDA_KERNELS names exports such
 * a table as fakecuda_kernels. @param kernels outlives the process's use of them */
FAKECUDA_EXPORT void fakecuda_add_kernels(const fakecuda_kernel_t *kernels);

/** Changes a setting: its name is that of the variable without FAKECUDA_, in lower case.
 * @return 0, or -1: there is no such setting, or no such value. */
FAKECUDA_EXPORT int fakecuda_set(const char *name, const char *value);

/** A counter, or how often an entry point was called. @return UINT64_MAX: there is none. */
FAKECUDA_EXPORT uint64_t fakecuda_counter(const char *name);

/** What the stand-in last called a mistake; "" if nothing yet. */
FAKECUDA_EXPORT const char *fakecuda_mistake(void);

/** Where the CPU may look at device memory, for checks. @return NULL: `bytes` there are not live
 * memory of the driver. */
FAKECUDA_EXPORT void *fakecuda_look(uint64_t at, size_t bytes);

/** For a stand-in for NICs that registers memory: where it finds what lies behind a device address.
 * @return 1; 0: it is no address of the driver's; -1: not all of it is of one allocation by
 * cuMemAlloc() that is live. */
FAKECUDA_EXPORT int fakecuda_nic_place(uint64_t at, size_t bytes, void **place_p);
/** A NIC is told to touch it: a mistake if an operation that nobody waited for writes there, or, if
 * the NIC `writes`, reads. What it writes GPUs see when it is flushed: operations on it before are
 * a mistake. Nothing happens for other addresses. */
FAKECUDA_EXPORT void fakecuda_nic_touch(uint64_t at, size_t bytes, int writes);

#endif
