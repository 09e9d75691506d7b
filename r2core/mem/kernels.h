/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Kernels that reduce, and one that copies, as the driver has them: each loaded by itself when it
 * is first asked for, as the driver compiles what it loads. What they do: mem/ptx/reduce.h, copy.h.
 *
 * A thread of their own loads them: a driver may first wait for all that the application has
 * started in the context, and what the application has started may wait for MPI. Until then there
 * is none.
 *
 * One thread at a time (the engine lock); the loading one takes no lock.
 */
#ifndef R2_MEM_KERNELS_H
#define R2_MEM_KERNELS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mem/queue.h"
#include "r2/kernel.h"

enum {
    R2_KERNEL_PIECES = 8,  /* of memory, that a launch reduces */
    R2_KERNEL_COPIES = 32, /* that a launch copies */
    /* beside those that reduce: the kernel that copies, by number */
    R2_KERNEL_COPY = R2_KERNEL_COUNT,
    R2_KERNELS_ALL
};

/** to[k] = in[k] OP inout[k], all aligned to the element. `to` may be `inout`. */
typedef struct r2_kernel_piece {
    uint64_t to, in, inout; /* addresses; memory of the device, or pinned */
    uint64_t count;         /* elements */
} r2_kernel_piece_t;

/** The parameter of a kernel. */
typedef struct r2_kernel_pieces {
    r2_kernel_piece_t piece[R2_KERNEL_PIECES];
} r2_kernel_pieces_t;

/** A copy: memory of the device, or pinned. */
typedef struct r2_kernel_copy {
    uint64_t to, from; /* addresses */
    uint64_t bytes;
} r2_kernel_copy_t;

/** The parameter of the kernel that copies. */
typedef struct r2_kernel_copies {
    r2_kernel_copy_t piece[R2_KERNEL_COPIES];
} r2_kernel_copies_t;

/** How far a kernel is. The loading thread ends what is asked for; who asks changes the rest. */
typedef enum r2_kernel_state {
    R2_KERNEL_IDLE,
    R2_KERNEL_ASKED,
    R2_KERNEL_READY,
    R2_KERNEL_REFUSED /* by the driver */
} r2_kernel_state_t;

/** Kernels of one context. Zeros: none is loaded. */
typedef struct r2_kernels {
    r2_mem_t *mem;  /* borrowed: outlives this */
    r2_mem_at_t at; /* its context */
    _Atomic(r2_kernel_state_t) states[R2_KERNELS_ALL];
    r2_cu_module_t modules[R2_KERNELS_ALL]; /* owned; NULL: not loaded */
    r2_cu_function_t functions[R2_KERNELS_ALL];
    /* The loading thread calls it when a kernel that reduces is there, before others may launch
     * it; NULL: nothing is to be called */
    void (*loaded)(void *arg, const struct r2_kernels *kernels, r2_kernel_t kernel);
    void *loaded_arg; /* borrowed: outlives this */
    pthread_t loader; /* owned, if it was started */
    bool started;
    atomic_bool loading; /* it runs */
} r2_kernels_t;

/** Static. */
const char *r2_kernel_name(r2_kernel_t kernel);
uint64_t r2_kernel_align(r2_kernel_t kernel); /* of an element */

/** Has a kernel loaded, and does not wait.
 * @param at memory of the context; the same in all calls
 * @return true: it can be launched; false: not yet, or there is none, or the driver does not take
 * it, which the trouble of `mem` says. */
bool r2_kernels_ask(r2_kernels_t *kernels, r2_mem_t *mem, const r2_mem_at_t *at,
                    r2_kernel_t kernel);

/** The least CUDA version of drivers that take the kernels' text, 9000 for 9.0; 0: there is none.
 * Source: the PTX ISA's table of releases. */
int r2_kernels_driver(void);

/** The least compute capability of GPUs that take it, 70 for sm_70; 0: there is none. */
int r2_kernels_sm(void);

/** Waits for what is being loaded. Also for zeros. */
void r2_kernels_settle(r2_kernels_t *kernels);

/** Its queues have ended. Waits for what is being loaded. Also for zeros. */
void r2_kernels_fini(r2_kernels_t *kernels);

/** Starts a kernel that is loaded, as r2_mem_queue_copy() does a copy.
 * @param pieces those from `count` on are not looked at
 * @return R2_OK; R2_ERR_GPU. */
r2_status_t r2_kernels_launch(const r2_kernels_t *kernels, r2_mem_queue_t *queue,
                              r2_kernel_t kernel, const r2_kernel_pieces_t *pieces, uint32_t count);

/** The same for copies, which must not overlap. @param copies those from `count` on are empty */
r2_status_t r2_kernels_copy(const r2_kernels_t *kernels, r2_mem_queue_t *queue,
                            const r2_kernel_copies_t *copies, uint32_t count);

#endif
