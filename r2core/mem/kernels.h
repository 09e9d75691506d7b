/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Kernels that reduce, as the driver has them: loaded when they are first needed, each by itself,
 * as the driver compiles what it loads. What they do: mem/ptx/reduce.h.
 *
 * One thread at a time (the engine lock).
 */
#ifndef R2_MEM_KERNELS_H
#define R2_MEM_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "mem/queue.h"
#include "r2/kernel.h"

enum { R2_KERNEL_PIECES = 8 }; /* of memory, that a launch reduces */

/** to[k] = in[k] OP inout[k], all aligned to the element. `to` may be `inout`. */
typedef struct r2_kernel_piece {
    uint64_t to, in, inout; /* addresses; memory of the device, or pinned */
    uint64_t count;         /* elements */
} r2_kernel_piece_t;

/** The parameter of a kernel. */
typedef struct r2_kernel_pieces {
    r2_kernel_piece_t piece[R2_KERNEL_PIECES];
} r2_kernel_pieces_t;

/** Kernels of one context. Zeros: none is loaded. */
typedef struct r2_kernels {
    r2_cu_module_t modules[R2_KERNEL_COUNT]; /* owned; NULL: not loaded */
    r2_cu_function_t functions[R2_KERNEL_COUNT];
    bool refused[R2_KERNEL_COUNT]; /* by the driver */
} r2_kernels_t;

/** Static. */
const char *r2_kernel_name(r2_kernel_t kernel);
uint64_t r2_kernel_bytes(r2_kernel_t kernel); /* of an element */
uint64_t r2_kernel_align(r2_kernel_t kernel);

/** @return true: it can be launched; false: there is none, or the driver does not take it, which
 * the trouble of `mem` says. */
bool r2_kernels_load(r2_kernels_t *kernels, r2_mem_t *mem, const r2_mem_at_t *at,
                     r2_kernel_t kernel);

/** Its queues have ended. Also for zeros. */
void r2_kernels_fini(r2_kernels_t *kernels, r2_mem_t *mem, const r2_mem_at_t *at);

/** Starts a kernel that is loaded, as r2_mem_queue_copy() does a copy.
 * @param pieces those from `count` on are not looked at
 * @return R2_OK; R2_ERR_GPU. */
r2_status_t r2_kernels_launch(const r2_kernels_t *kernels, r2_mem_queue_t *queue,
                              r2_kernel_t kernel, const r2_kernel_pieces_t *pieces, uint32_t count);

#endif
