/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Reductions that a GPU can make in place of the processor.
 */
#ifndef R2_KERNEL_H
#define R2_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "r2/status.h"

/** What base/kernels.def has, by number; R2_KERNEL_NONE, 0, is none of them. */
typedef enum r2_kernel {
    R2_KERNEL_NONE,
#define R2_KERNEL(op, type, class) R2_KERNEL_##op##_##type,
#include "base/kernels.def"
    R2_KERNEL_COUNT
} r2_kernel_t;

typedef enum r2_kernel_op {
#define R2_KERNEL_OP(op) R2_KERNEL_OP_##op,
#include "base/kernels.def"
    R2_KERNEL_OP_COUNT
} r2_kernel_op_t;

typedef enum r2_kernel_type {
#define R2_KERNEL_TYPE(type, bytes, align) R2_KERNEL_TYPE_##type,
#include "base/kernels.def"
    R2_KERNEL_TYPE_COUNT
} r2_kernel_type_t;

/** Logical operations, bits, sums and products of signed integers are found as those of unsigned
 * ones. @param op, type below their counts. @return R2_KERNEL_NONE: there is no such reduction. */
R2_EXPORT r2_kernel_t r2_kernel_find(r2_kernel_op_t op, r2_kernel_type_t type);

/** A function of a program, whatever its type. */
typedef void (*r2_kernel_function_t)(void);

/** Notes that a function, of programs or of a library for them, does to elements that lie one
 * behind the other what a kernel does, with the same bits. Any thread.
 * @param name     of the kernel: "r2_reduce_sum_f16"
 * @param function stays loaded
 * @return true; false: there is no such kernel, or no room, and nothing is noted. */
R2_EXPORT bool r2_kernel_stands_for(const char *name, r2_kernel_function_t function);

/** Any thread. @return what was noted of a function; R2_KERNEL_NONE: nothing. */
R2_EXPORT r2_kernel_t r2_kernel_of(r2_kernel_function_t function);

/** @param kernel not R2_KERNEL_NONE. @return bytes of an element. */
R2_EXPORT uint64_t r2_kernel_bytes(r2_kernel_t kernel);

/** @return why this build of r2 reduces nothing on GPUs; NULL: it can. Static. */
R2_EXPORT const char *r2_kernels_missing(void);

#endif
