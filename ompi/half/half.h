/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Sums, products, minima and maxima of two-byte floats: inout[i] = in[i] OP inout[i].
 *
 * A sum or product is that of the two values in float32, rounded to the nearest, ties to even; for
 * float16 that is the exact result rounded once. Denormal numbers count, overflow is infinite. The
 * result is the quiet NaN without sign where one value is a NaN, or where there is none. Of -0 and
 * +0 the first is the minimum. So the order of the two never matters, and the bits are those of
 * any processor, whatever the thread's floating-point mode is.
 */
#ifndef R2_HALF_H
#define R2_HALF_H

#include <stddef.h>
#include <stdint.h>

typedef void (*r2_half_fn_t)(const uint16_t *in, uint16_t *inout, size_t count);

enum { R2_HALF_KINDS = 2, R2_HALF_OPS = 4 };

/** Functions by kind and operation, as r2_mpi.h numbers them. */
typedef r2_half_fn_t r2_half_fns_t[R2_HALF_KINDS][R2_HALF_OPS];

/** In plain C. */
extern const r2_half_fns_t r2_half_plain;

/** With AVX2 and F16C; NULL where the compiler has none for this processor's kind. */
const r2_half_fns_t *r2_half_avx2(void);

/** Has this processor AVX2 and F16C, and does the system save their registers? */
int r2_half_has_avx2(void);

/** The quickest that this processor has. */
const r2_half_fns_t *r2_half_best(void);

/** One value; for tests and remainders. */
float r2_half_to_float(uint16_t half);
uint16_t r2_half_from_float(float value);
float r2_half_bf_to_float(uint16_t half);
uint16_t r2_half_bf_from_float(float value);

#endif
