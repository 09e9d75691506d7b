/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Functions of programs that do what kernels do.
 */
#include "r2_config.h"

#include "mem/kernels.h"

#include <pthread.h>
#include <string.h>

enum { R2_FUNCTIONS_MAX = 32 }; /* r2_mpi.h has 8; there may be several copies of its library */

typedef struct r2_function {
    r2_kernel_function_t function;
    r2_kernel_t kernel;
} r2_function_t;

static r2_function_t r2_functions[R2_FUNCTIONS_MAX];
static _Atomic uint32_t r2_function_count; /* those before it do not change any more */
static pthread_mutex_t r2_functions_lock = PTHREAD_MUTEX_INITIALIZER; /* of who adds */

static r2_kernel_t r2_kernel_named(const char *name)
{
    for (int kernel = R2_KERNEL_NONE + 1; kernel < R2_KERNEL_COUNT; ++kernel) {
        if (0 == strcmp(name, r2_kernel_name((r2_kernel_t) kernel))) {
            return (r2_kernel_t) kernel;
        }
    }
    return R2_KERNEL_NONE;
}

r2_kernel_t r2_kernel_of(r2_kernel_function_t function)
{
    const uint32_t count = atomic_load_explicit(&r2_function_count, memory_order_acquire);

    for (uint32_t i = 0; i < count; ++i) {
        if (function == r2_functions[i].function) {
            return r2_functions[i].kernel;
        }
    }
    return R2_KERNEL_NONE;
}

bool r2_kernel_stands_for(const char *name, r2_kernel_function_t function)
{
    const r2_kernel_t kernel = r2_kernel_named(name);
    uint32_t count;
    bool noted;

    if (R2_KERNEL_NONE == kernel || NULL == function) {
        return false;
    }
    pthread_mutex_lock(&r2_functions_lock);
    count = atomic_load(&r2_function_count);
    noted = kernel == r2_kernel_of(function);
    if (!noted && R2_KERNEL_NONE == r2_kernel_of(function) && count < R2_FUNCTIONS_MAX) {
        r2_functions[count] = (r2_function_t){function, kernel};
        atomic_store_explicit(&r2_function_count, count + 1, memory_order_release);
        noted = true;
    }
    pthread_mutex_unlock(&r2_functions_lock);
    return noted;
}
