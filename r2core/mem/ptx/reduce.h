/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Kernels that reduce: to[k] = in[k] OP inout[k], for several pieces of memory at a time. One
 * source: for GPUs by reduce.cu, as C for the stand-in for the driver by tests/doubles/kernels_c.c.
 *
 * Who includes it defines R2_DEVICE, R2_UNROLL and R2_ENTRY(name, type), the head of a kernel
 * with its parameter `pieces`; R2_THREAD (a thread's number within a piece), R2_THREADS (how many
 * there are), R2_PIECE (which piece).
 */
#ifndef R2_MEM_PTX_REDUCE_H
#define R2_MEM_PTX_REDUCE_H

#include "elements.h"

enum { R2_PIECES = 8, R2_VECTOR_BYTES = 16 };

/* As r2_kernel_pieces_t of mem/kernels.h; addresses as numbers. */
typedef struct r2_pieces {
    struct {
        r2_u64 to, in, inout, count;
    } piece[R2_PIECES];
} r2_pieces_t;

typedef r2_u32 r2_vector_t __attribute__((vector_size(R2_VECTOR_BYTES)));

#define R2_OF_INT(op, t, a, b)   R2_INT_##op(r2_##t, a, b)
#define R2_OF_FLOAT(op, t, a, b) r2_##t##_##op(a, b)

/* Elements of which several are in a word: by shifts, as bytes of an array would go through a
 * thread's memory. */
#define R2_SHORT(op, t)                                                                 \
    R2_DEVICE r2_u32 r2_word_##op##_##t(r2_u32 a, r2_u32 b)                             \
    {                                                                                   \
        enum { bits = 8 * (sizeof(r2_##t) < 4 ? sizeof(r2_##t) : 4) };                  \
        r2_u32 word = 0;                                                                \
                                                                                        \
        R2_UNROLL                                                                       \
        for (unsigned k = 0; k < 32; k += bits) {                                       \
            const r2_##t c = r2_reduced_##op##_##t((r2_##t)(a >> k), (r2_##t)(b >> k)); \
                                                                                        \
            word |= ((r2_u32) c & 0xffffffffu >> (32 - bits)) << k;                     \
        }                                                                               \
        return word;                                                                    \
    }                                                                                   \
    R2_DEVICE r2_vector_t r2_vector_##op##_##t(r2_vector_t a, r2_vector_t b)            \
    {                                                                                   \
        R2_UNROLL                                                                       \
        for (int w = 0; w < 4; ++w) {                                                   \
            b[w] = r2_word_##op##_##t(a[w], b[w]);                                      \
        }                                                                               \
        return b;                                                                       \
    }

#define R2_LONG(op, t)                                                       \
    R2_DEVICE r2_vector_t r2_vector_##op##_##t(r2_vector_t a, r2_vector_t b) \
    {                                                                        \
        enum { each = R2_VECTOR_BYTES / sizeof(r2_##t) };                    \
        r2_##t x[each], y[each];                                             \
                                                                             \
        __builtin_memcpy(x, &a, sizeof(a));                                  \
        __builtin_memcpy(y, &b, sizeof(b));                                  \
        R2_UNROLL                                                            \
        for (int k = 0; k < each; ++k) {                                     \
            y[k] = r2_reduced_##op##_##t(x[k], y[k]);                        \
        }                                                                    \
        __builtin_memcpy(&b, y, sizeof(b));                                  \
        return b;                                                            \
    }

#define R2_VECTOR_u8     R2_SHORT
#define R2_VECTOR_u16    R2_SHORT
#define R2_VECTOR_i8     R2_SHORT
#define R2_VECTOR_i16    R2_SHORT
#define R2_VECTOR_f16    R2_SHORT
#define R2_VECTOR_bf16   R2_SHORT
#define R2_VECTOR_u32    R2_LONG
#define R2_VECTOR_u64    R2_LONG
#define R2_VECTOR_i32    R2_LONG
#define R2_VECTOR_i64    R2_LONG
#define R2_VECTOR_f32    R2_LONG
#define R2_VECTOR_f64    R2_LONG
#define R2_VECTOR_cf32   R2_LONG
#define R2_VECTOR_cf64   R2_LONG
#define R2_VECTOR_f32i32 R2_LONG
#define R2_VECTOR_f64i32 R2_LONG
#define R2_VECTOR_i16i32 R2_LONG
#define R2_VECTOR_i32i32 R2_LONG
#define R2_VECTOR_i64i32 R2_LONG
#define R2_VECTOR_f32f32 R2_LONG
#define R2_VECTOR_f64f64 R2_LONG

/* Pieces by constant indices: a parameter that is indexed by a variable would be copied into each
 * thread's memory. */
R2_DEVICE void r2_take_piece(const r2_pieces_t *pieces, unsigned which, r2_u64 *to, r2_u64 *in,
                             r2_u64 *inout, r2_u64 *count)
{
    *to = pieces->piece[0].to;
    *in = pieces->piece[0].in;
    *inout = pieces->piece[0].inout;
    *count = pieces->piece[0].count;
    R2_UNROLL
    for (unsigned i = 1; i < R2_PIECES; ++i) {
        *to = i == which ? pieces->piece[i].to : *to;
        *in = i == which ? pieces->piece[i].in : *in;
        *inout = i == which ? pieces->piece[i].inout : *inout;
        *count = i == which ? pieces->piece[i].count : *count;
    }
}

/* Elements before the first vector; all, where the three are not alike. */
R2_DEVICE r2_u64 r2_head(r2_u64 to, r2_u64 in, r2_u64 inout, r2_u64 count, unsigned bytes)
{
    const r2_u64 off = to % R2_VECTOR_BYTES;
    const r2_u64 head = (R2_VECTOR_BYTES - off) % R2_VECTOR_BYTES / bytes;

    return off == in % R2_VECTOR_BYTES && off == inout % R2_VECTOR_BYTES && 0 == off % bytes &&
                   head < count
               ? head
               : count;
}

#define R2_KERNEL(op, t, class)                                                \
    R2_DEVICE r2_##t r2_reduced_##op##_##t(r2_##t a, r2_##t b)                 \
    {                                                                          \
        return R2_OF_##class(op, t, a, b);                                     \
    }                                                                          \
    R2_VECTOR_##t(op, t) R2_ENTRY(r2_reduce_##op##_##t, r2_pieces_t)           \
    {                                                                          \
        enum { each = R2_VECTOR_BYTES / sizeof(r2_##t) };                      \
        const r2_u64 first = R2_THREAD, step = R2_THREADS;                     \
        r2_u64 to_at, in_at, inout_at, count, head, vectors;                   \
        const r2_##t *in, *inout;                                              \
        r2_##t *to;                                                            \
                                                                               \
        r2_take_piece(&pieces, R2_PIECE, &to_at, &in_at, &inout_at, &count);   \
        to = (r2_##t *) to_at;                                                 \
        in = (const r2_##t *) in_at;                                           \
        inout = (const r2_##t *) inout_at;                                     \
        head = r2_head(to_at, in_at, inout_at, count, sizeof(r2_##t));         \
        vectors = (count - head) / each;                                       \
        for (r2_u64 i = first; i < vectors; i += step) {                       \
            const r2_vector_t a = ((const r2_vector_t *) (in + head))[i];      \
            const r2_vector_t b = ((const r2_vector_t *) (inout + head))[i];   \
                                                                               \
            ((r2_vector_t *) (to + head))[i] = r2_vector_##op##_##t(a, b);     \
        }                                                                      \
        for (r2_u64 i = first; i < head; i += step) {                          \
            to[i] = r2_reduced_##op##_##t(in[i], inout[i]);                    \
        }                                                                      \
        for (r2_u64 i = head + vectors * each + first; i < count; i += step) { \
            to[i] = r2_reduced_##op##_##t(in[i], inout[i]);                    \
        }                                                                      \
    }
#include "base/kernels.def"

#include "copy.h"

#endif
