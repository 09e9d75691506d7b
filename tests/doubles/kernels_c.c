/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The C form of r2's kernels, for the stand-in for the CUDA driver (docs/fakecuda.md): the same
 * source as that of the text for GPUs. Short pieces run thread by thread, as the grid has them,
 * long ones as by one thread, which is quicker.
 */
#include "fakecuda/fakecuda.h"

static __thread unsigned long long c_thread, c_threads;
static __thread unsigned c_piece;

#define R2_DEVICE static inline __attribute__((always_inline))
#define R2_UNROLL
#define R2_ENTRY(name, type) static void name(const type pieces)
#define R2_THREAD            c_thread
#define R2_THREADS           c_threads
#define R2_PIECE             c_piece
#include "mem/ptx/reduce.h"

enum { C_SHORT = 1024 }; /* elements */

static void run(void (*kernel)(r2_pieces_t), const fakecuda_grid_t *grid, void *const *params)
{
    const r2_pieces_t *pieces = params[0];

    for (c_piece = 0; c_piece < grid->grid[1]; ++c_piece) {
        c_threads = pieces->piece[c_piece].count > C_SHORT
                        ? 1
                        : (unsigned long long) grid->grid[0] * grid->block[0];
        for (c_thread = 0; c_thread < c_threads; ++c_thread) {
            kernel(*pieces);
        }
    }
}

/* The stand-in does not say how many pieces there are: those behind the last have no elements. */
static int spans(void *const *params, fakecuda_span_t *spans_p, size_t bytes)
{
    const r2_pieces_t *pieces = params[0];
    const int each = sizeof(pieces->piece[0]);
    int count = 0;

    for (int i = 0; i < R2_PIECES; ++i) {
        const size_t all = pieces->piece[i].count * bytes;

        spans_p[count++] = (fakecuda_span_t){0, all, 1, (size_t) (i * each)};
        spans_p[count++] = (fakecuda_span_t){0, all, 0, (size_t) (i * each) + sizeof(r2_u64)};
        spans_p[count++] = (fakecuda_span_t){0, all, 0, (size_t) (i * each) + 2 * sizeof(r2_u64)};
    }
    return count;
}

#define R2_KERNEL(op, t, class)                                                  \
    static void run_##op##_##t(const fakecuda_grid_t *grid, void *const *params) \
    {                                                                            \
        run(r2_reduce_##op##_##t, grid, params);                                 \
    }                                                                            \
    static int spans_##op##_##t(void *const *params, fakecuda_span_t *spans_p)   \
    {                                                                            \
        return spans(params, spans_p, sizeof(r2_##t));                           \
    }
#include "base/kernels.def"

static void run_copy(const fakecuda_grid_t *grid, void *const *params)
{
    const r2_copies_t *copies = params[0];

    c_threads = (unsigned long long) grid->grid[0] * grid->block[0];
    for (c_piece = 0; c_piece < grid->grid[1]; ++c_piece) {
        for (c_thread = 0; c_thread < c_threads; ++c_thread) {
            r2_copy(*copies);
        }
    }
}

static int spans_copy(void *const *params, fakecuda_span_t *spans_p)
{
    const r2_copies_t *copies = params[0];
    const size_t each = sizeof(copies->piece[0]);
    int count = 0;

    for (size_t i = 0; i < R2_COPIES; ++i) {
        const size_t bytes = copies->piece[i].bytes;

        spans_p[count++] = (fakecuda_span_t){0, bytes, 1, i * each};
        spans_p[count++] = (fakecuda_span_t){0, bytes, 0, i * each + sizeof(r2_u64)};
    }
    return count;
}

FAKECUDA_EXPORT extern const fakecuda_kernel_t fakecuda_kernels[];
const fakecuda_kernel_t fakecuda_kernels[] = {
#define R2_KERNEL(op, t, class) \
    {"r2_reduce_" #op "_" #t, "s256", run_##op##_##t, spans_##op##_##t},
#include "base/kernels.def"
    {"r2_copy", "s768", run_copy, spans_copy},
    {NULL, NULL, NULL, NULL}};
