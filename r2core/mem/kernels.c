/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Kernels: their text, modules and launches, and who loads them.
 */
#include "r2_config.h"

#include "mem/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "base/util.h"
#if R2_KERNELS
#    include "r2core/mem/kernels_ptx.h"
#else
static const char r2_kernels_ptx[] = "";
#endif

typedef struct r2_kernel_row {
    const char *name;
    r2_kernel_type_t type;
} r2_kernel_row_t;

static const r2_kernel_row_t r2_kernel_rows[R2_KERNEL_COUNT] = {
#define R2_KERNEL(op, type, class) \
    [R2_KERNEL_##op##_##type] = {"r2_reduce_" #op "_" #type, R2_KERNEL_TYPE_##type},
#include "base/kernels.def"
};

/* Each call looks there. */
static const uint8_t r2_kernel_places[R2_KERNEL_OP_COUNT][R2_KERNEL_TYPE_COUNT] = {
#define R2_KERNEL(op, type, class) \
    [R2_KERNEL_OP_##op][R2_KERNEL_TYPE_##type] = R2_KERNEL_##op##_##type,
#include "base/kernels.def"
};
_Static_assert(R2_KERNEL_COUNT <= UINT8_MAX, "kernels have numbers of a byte");

typedef struct r2_kernel_element {
    uint32_t bytes, align;
} r2_kernel_element_t;

static const r2_kernel_element_t r2_kernel_elements[R2_KERNEL_TYPE_COUNT] = {
#define R2_KERNEL_TYPE(type, bytes, align) [R2_KERNEL_TYPE_##type] = {(bytes), (align)},
#include "base/kernels.def"
};

const char *r2_kernel_name(r2_kernel_t kernel)
{
    return R2_KERNEL_COPY == (int) kernel ? "r2_copy" : r2_kernel_rows[kernel].name;
}

uint64_t r2_kernel_bytes(r2_kernel_t kernel)
{
    return r2_kernel_elements[r2_kernel_rows[kernel].type].bytes;
}

uint64_t r2_kernel_align(r2_kernel_t kernel)
{
    return r2_kernel_elements[r2_kernel_rows[kernel].type].align;
}

const char *r2_kernels_missing(void)
{
    return R2_KERNELS ? NULL : R2_KERNELS_MISSING;
}

int r2_kernels_driver(void)
{
    const char *version = strstr(r2_kernels_ptx, ".version ");
    int major = 0, minor = 0;

    if (NULL == version || 2 != sscanf(version, ".version %d.%d", &major, &minor)) {
        return 0;
    }
    if (6 == major) { /* 6.0 to 6.2 came with 9.0 to 9.2, 6.3 with 10.0 */
        return minor < 3 ? 9000 + 10 * minor : 10000 + 10 * (minor - 3);
    }
    return 1000 * (major + 4) + 10 * minor; /* 7.0 with 11.0, 8.0 with 12.0, 9.0 with 13.0 */
}

int r2_kernels_sm(void)
{
    const char *target = strstr(r2_kernels_ptx, ".target ");
    int sm = 0;

    return NULL == target || 1 != sscanf(target, ".target sm_%d", &sm) ? 0 : sm;
}

r2_kernel_t r2_kernel_find(r2_kernel_op_t op, r2_kernel_type_t type)
{
    r2_kernel_t kernel;

    r2_assert(op < R2_KERNEL_OP_COUNT && type < R2_KERNEL_TYPE_COUNT);
    kernel = (r2_kernel_t) r2_kernel_places[op][type];
    if (R2_KERNEL_NONE == kernel && type >= R2_KERNEL_TYPE_i8 && type <= R2_KERNEL_TYPE_i64) {
        return (r2_kernel_t) r2_kernel_places[op][type - R2_KERNEL_TYPE_i8 + R2_KERNEL_TYPE_u8];
    }
    return kernel;
}

/* The text with this kernel alone: its head, which is that of all, and the entry.
 * @return NULL: no such kernel, or no memory; else to be given to free(). */
static char *r2_kernel_text(const char *name)
{
    static const char mark[] = ".visible .entry ";
    const char *first = strstr(r2_kernels_ptx, mark), *entry = first, *end;
    const size_t length = strlen(name);
    char *text;

    while (NULL != entry && (0 != strncmp(entry + strlen(mark), name, length) ||
                             '(' != entry[strlen(mark) + length])) {
        entry = strstr(entry + 1, mark);
    }
    end = NULL == entry ? NULL : strstr(entry, "\n}\n");
    text = NULL == end ? NULL : calloc(1, (size_t) (first - r2_kernels_ptx + end - entry) + 4);
    if (NULL != text) {
        const size_t head = (size_t) (first - r2_kernels_ptx);

        memcpy(text, r2_kernels_ptx, head);
        memcpy(text + head, entry, (size_t) (end - entry) + 3);
    }
    return text;
}

/* In the context. */
static r2_status_t r2_kernels_open(r2_kernels_t *kernels, r2_mem_t *mem, r2_kernel_t kernel)
{
    char *text = r2_kernel_text(r2_kernel_name(kernel));
    r2_status_t status = NULL == text ? R2_ERR_NO_MEMORY : R2_OK;

    if (R2_OK == status) {
        status = r2_mem_check(mem, mem->driver.module_load(&kernels->modules[kernel], text),
                              "cuModuleLoadData");
    }
    if (R2_OK == status) {
        status = r2_mem_check(mem,
                              mem->driver.module_function(&kernels->functions[kernel],
                                                          kernels->modules[kernel],
                                                          r2_kernel_name(kernel)),
                              "cuModuleGetFunction");
    }
    free(text);
    return status;
}

static void r2_kernels_load(r2_kernels_t *kernels, r2_kernel_t kernel)
{
    r2_mem_t *mem = kernels->mem;
    r2_status_t status = r2_mem_enter(mem, &kernels->at);

    if (R2_OK == status) {
        status = r2_kernels_open(kernels, mem, kernel);
        r2_mem_leave(mem);
    }
    if (R2_OK == status && NULL != kernels->loaded && (int) kernel < R2_KERNEL_COUNT) {
        kernels->loaded(kernels->loaded_arg, kernels, kernel);
    }
    /* asked for again where the host had no memory */
    atomic_store(&kernels->states[kernel], R2_OK == status        ? R2_KERNEL_READY
                                           : R2_ERR_GPU == status ? R2_KERNEL_REFUSED
                                                                  : R2_KERNEL_IDLE);
}

static void r2_kernels_load_all(r2_kernels_t *kernels)
{
    for (int kernel = 0; kernel < R2_KERNELS_ALL; ++kernel) {
        if (R2_KERNEL_ASKED == atomic_load(&kernels->states[kernel])) {
            r2_kernels_load(kernels, (r2_kernel_t) kernel);
        }
    }
}

static void *r2_kernels_main(void *arg)
{
    r2_kernels_t *kernels = arg;

    r2_kernels_load_all(kernels);
    atomic_store(&kernels->loading, false);
    return NULL;
}

void r2_kernels_settle(r2_kernels_t *kernels)
{
    if (kernels->started) {
        (void) pthread_join(kernels->loader, NULL);
        kernels->started = false;
    }
}

/* What was asked for just before the last thread ended is loaded by the next one. */
static void r2_kernels_begin(r2_kernels_t *kernels)
{
    if (atomic_load(&kernels->loading)) {
        return;
    }
    r2_kernels_settle(kernels);
    atomic_store(&kernels->loading, true);
    kernels->started = R2_OK == r2_thread_start(&kernels->loader, r2_kernels_main, kernels);
    if (!kernels->started) {
        atomic_store(&kernels->loading, false);
    }
}

bool r2_kernels_ask(r2_kernels_t *kernels, r2_mem_t *mem, const r2_mem_at_t *at, r2_kernel_t kernel)
{
    r2_kernel_state_t state;

    if (R2_KERNEL_NONE == kernel || !R2_KERNELS) {
        return false;
    }
    state = atomic_load_explicit(&kernels->states[kernel], memory_order_acquire);
    if (R2_KERNEL_READY == state || R2_KERNEL_REFUSED == state) {
        return R2_KERNEL_READY == state;
    }
    if (NULL == kernels->mem) { /* no thread of it yet */
        kernels->mem = mem;
        kernels->at = *at;
    }
    if (R2_KERNEL_IDLE == state) { /* else the loading thread may be about to change it */
        atomic_store(&kernels->states[kernel], R2_KERNEL_ASKED);
    }
    r2_kernels_begin(kernels);
    return false;
}

void r2_kernels_fini(r2_kernels_t *kernels)
{
    r2_kernels_settle(kernels);
    for (int kernel = 0; kernel < R2_KERNELS_ALL; ++kernel) {
        if (NULL != kernels->modules[kernel] && R2_OK == r2_mem_enter(kernels->mem, &kernels->at)) {
            (void) kernels->mem->driver.module_unload(kernels->modules[kernel]);
            r2_mem_leave(kernels->mem);
        }
    }
    memset(kernels, 0, sizeof(*kernels));
}

enum {
    R2_KERNEL_BLOCK_THREADS = 256,
    R2_KERNEL_THREAD_BYTES = 64, /* of a piece; then the bytes under way are a bus's delay */
    R2_KERNEL_BLOCKS = 32,       /* of a piece, at most: the rest of the GPU is the application's */
    R2_KERNEL_COPY_THREADS = 64  /* of a block that copies: pieces are short */
};

/** Blocks of the longest piece, and threads of a block. */
typedef struct r2_kernel_grid {
    unsigned blocks, threads;
} r2_kernel_grid_t;

static r2_kernel_grid_t r2_kernels_grid(uint64_t longest_bytes, unsigned threads)
{
    const uint64_t each = (uint64_t) threads * R2_KERNEL_THREAD_BYTES;
    const uint64_t blocks = (r2_max(longest_bytes, UINT64_C(1)) + each - 1) / each;

    return (r2_kernel_grid_t){(unsigned) r2_min(blocks, (uint64_t) R2_KERNEL_BLOCKS), threads};
}

static r2_status_t r2_kernels_start(r2_cu_function_t function, r2_mem_queue_t *queue,
                                    r2_kernel_grid_t grid, uint32_t count, const void *pieces)
{
    r2_mem_t *mem = queue->mem;
    void *params[] = {(void *) (uintptr_t) pieces};
    r2_status_t status = r2_mem_enter(mem, &queue->at);

    if (R2_OK != status) {
        return status;
    }
    status = r2_mem_check(mem,
                          mem->driver.launch(function, grid.blocks, count, 1, grid.threads, 1, 1, 0,
                                             queue->stream, params, NULL),
                          "cuLaunchKernel");
    r2_mem_leave(mem);
    return status;
}

r2_status_t r2_kernels_launch(const r2_kernels_t *kernels, r2_mem_queue_t *queue,
                              r2_kernel_t kernel, const r2_kernel_pieces_t *pieces, uint32_t count)
{
    uint64_t longest = 0;

    for (uint32_t i = 0; i < count; ++i) {
        longest = r2_max(longest, pieces->piece[i].count * r2_kernel_bytes(kernel));
    }
    return r2_kernels_start(kernels->functions[kernel], queue,
                            r2_kernels_grid(longest, R2_KERNEL_BLOCK_THREADS), count, pieces);
}

r2_status_t r2_kernels_copy(const r2_kernels_t *kernels, r2_mem_queue_t *queue,
                            const r2_kernel_copies_t *copies, uint32_t count)
{
    uint64_t longest = 0;

    for (uint32_t i = 0; i < count; ++i) {
        longest = r2_max(longest, copies->piece[i].bytes);
    }
    return r2_kernels_start(kernels->functions[R2_KERNEL_COPY], queue,
                            r2_kernels_grid(longest, R2_KERNEL_COPY_THREADS), count, copies);
}
