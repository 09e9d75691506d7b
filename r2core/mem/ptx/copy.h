/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A kernel that copies: pieces of memory that are no rows, in one launch. Included by reduce.h.
 */
#ifndef R2_MEM_PTX_COPY_H
#define R2_MEM_PTX_COPY_H

enum { R2_COPIES = 32 };

/* As r2_kernel_copies_t of mem/kernels.h; addresses as numbers. */
typedef struct r2_copies {
    struct {
        r2_u64 to, from, bytes;
    } piece[R2_COPIES];
} r2_copies_t;

/* Chosen by comparing: an index would have all of them copied to a thread's memory. */
R2_DEVICE void r2_take_copy(const r2_copies_t *copies, unsigned which, r2_u64 *to, r2_u64 *from,
                            r2_u64 *bytes)
{
    *to = copies->piece[0].to;
    *from = copies->piece[0].from;
    *bytes = copies->piece[0].bytes;
    R2_UNROLL
    for (unsigned i = 1; i < R2_COPIES; ++i) {
        *to = i == which ? copies->piece[i].to : *to;
        *from = i == which ? copies->piece[i].from : *from;
        *bytes = i == which ? copies->piece[i].bytes : *bytes;
    }
}

#define R2_COPY_AS(unit)                                          \
    for (r2_u64 i = first; i < bytes / sizeof(unit); i += step) { \
        ((unit *) to)[i] = ((const unit *) from)[i];              \
    }

R2_ENTRY(r2_copy, r2_copies_t)
{
    const r2_u64 first = R2_THREAD, step = R2_THREADS;
    r2_u64 to, from, bytes, all;

    r2_take_copy(&pieces, R2_PIECE, &to, &from, &bytes);
    all = to | from | bytes;
    if (0 == all % R2_VECTOR_BYTES) {
        R2_COPY_AS(r2_vector_t)
    } else if (0 == all % sizeof(r2_u32)) {
        R2_COPY_AS(r2_u32)
    } else {
        R2_COPY_AS(r2_u8)
    }
}

#endif
