/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Buffers of test programs: memory of the host, or, where gpu_buffers.so is preloaded, of a GPU of
 * the stand-in (docs/fakecuda.md). Then a program works with an address at which the CPU may look,
 * and what it gives to MPI is the address that the application of a GPU has.
 */
#ifndef R2_TESTS_FUNCTIONAL_GPU_ALLOC_H
#define R2_TESTS_FUNCTIONAL_GPU_ALLOC_H

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Of gpu_buffers.so. */
typedef void *(*gpu_alloc_t)(size_t bytes);
typedef void (*gpu_free_t)(void *memory);
typedef void (*gpu_origin_t)(void *memory, void *origin);

static inline void *buffer_alloc(size_t bytes)
{
    void *symbol = dlsym(RTLD_DEFAULT, "gpu_alloc");
    gpu_alloc_t alloc;

    memcpy(&alloc, &symbol, sizeof(alloc));
    return NULL == symbol ? malloc(bytes) : alloc(bytes);
}

static inline void buffer_free(void *memory)
{
    void *symbol = dlsym(RTLD_DEFAULT, "gpu_free");
    gpu_free_t release;

    memcpy(&release, &symbol, sizeof(release));
    if (NULL == symbol) {
        free(memory);
    } else {
        release(memory);
    }
}

static inline int buffer_is_gpus(void)
{
    return NULL != dlsym(RTLD_DEFAULT, "gpu_alloc");
}

/** MPI is given `origin`, which may lie outside of the buffer. */
static inline void buffer_origin(void *memory, void *origin)
{
    void *symbol = dlsym(RTLD_DEFAULT, "gpu_origin");
    gpu_origin_t note;

    memcpy(&note, &symbol, sizeof(note));
    if (NULL != symbol) {
        note(memory, origin);
    }
}

#endif
