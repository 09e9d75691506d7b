/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Two-byte floats in plain C, and the choice between that and vectors.
 */
#include "r2_config.h"

#include "half.h"

#include <stdatomic.h>

#include <fenv.h>
#include <string.h>

#define HALF_NAN UINT16_C(0x7e00)
#define HALF_INF UINT16_C(0x7c00)
#define BF_NAN   UINT16_C(0x7fc0)
#define BF_INF   UINT16_C(0x7f80)
#define SIGN     UINT16_C(0x8000)

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Denormal float16 are normal float32: as many halves of 2^-24 as their bits say. */
float r2_half_to_float(uint16_t half)
{
    const uint32_t sign = (uint32_t) (half & SIGN) << 16;
    const uint32_t rest = half & 0x7fffu;

    if (rest >= HALF_INF) {
        return float_of(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    }
    if (rest < 0x400u) {
        return float_of(sign | bits_of((float) rest * 0x1p-24f));
    }
    return float_of(sign | ((rest << 13) + (112u << 23)));
}

/* Drops `cut` low bits, to the nearest, ties to even; a carry goes into the exponent. */
static uint32_t round_off(uint32_t bits, unsigned cut)
{
    return (bits + (1u << (cut - 1)) - 1 + (bits >> cut & 1)) >> cut;
}

uint16_t r2_half_from_float(float value)
{
    const uint32_t bits = bits_of(value);
    const uint32_t rest = bits & 0x7fffffffu;
    const uint16_t sign = (uint16_t) (bits >> 16 & SIGN);
    uint32_t shift;

    if (rest > 0x7f800000u) {
        return HALF_NAN;
    }
    if (rest >= 143u << 23) { /* 2^16 and more */
        return (uint16_t) (sign | HALF_INF);
    }
    if (rest >= 113u << 23) { /* 2^-14: normal; what is rounded up to 2^16 becomes infinite */
        return (uint16_t) (sign | round_off(rest - (112u << 23), 13));
    }
    shift = 126u - (rest >> 23); /* of the significand, to units of 2^-24 */
    return shift > 24u ? sign
                       : (uint16_t) (sign | round_off((rest & 0x7fffffu) | 0x800000u, shift));
}

float r2_half_bf_to_float(uint16_t half)
{
    return float_of((uint32_t) half << 16);
}

uint16_t r2_half_bf_from_float(float value)
{
    const uint32_t bits = bits_of(value);

    return (bits & 0x7fffffffu) > 0x7f800000u ? BF_NAN : (uint16_t) round_off(bits, 16);
}

/* The order of numbers as that of integers: -0 before +0. */
static int key_of(uint16_t half)
{
    return 0 != (half & SIGN) ? -1 - (half & 0x7fff) : half;
}

static uint16_t lesser(uint16_t a, uint16_t b)
{
    return key_of(a) < key_of(b) ? a : b;
}

static uint16_t greater(uint16_t a, uint16_t b)
{
    return key_of(a) < key_of(b) ? b : a;
}

static int is_nan(uint16_t a, uint16_t b, uint16_t inf)
{
    return (a & 0x7fff) > inf || (b & 0x7fff) > inf;
}

/* Floats count to the nearest, and nothing is flushed to zero. */
static void enter_mode(fenv_t *before_p)
{
    (void) fegetenv(before_p);
    (void) fesetenv(FE_DFL_ENV);
}

static void half_sum(const uint16_t *in, uint16_t *inout, size_t count)
{
    fenv_t before;

    enter_mode(&before);
    for (size_t i = 0; i < count; ++i) {
        inout[i] = r2_half_from_float(r2_half_to_float(in[i]) + r2_half_to_float(inout[i]));
    }
    (void) fesetenv(&before);
}

static void half_prod(const uint16_t *in, uint16_t *inout, size_t count)
{
    fenv_t before;

    enter_mode(&before);
    for (size_t i = 0; i < count; ++i) {
        inout[i] = r2_half_from_float(r2_half_to_float(in[i]) * r2_half_to_float(inout[i]));
    }
    (void) fesetenv(&before);
}

static void bf_sum(const uint16_t *in, uint16_t *inout, size_t count)
{
    fenv_t before;

    enter_mode(&before);
    for (size_t i = 0; i < count; ++i) {
        inout[i] =
            r2_half_bf_from_float(r2_half_bf_to_float(in[i]) + r2_half_bf_to_float(inout[i]));
    }
    (void) fesetenv(&before);
}

static void bf_prod(const uint16_t *in, uint16_t *inout, size_t count)
{
    fenv_t before;

    enter_mode(&before);
    for (size_t i = 0; i < count; ++i) {
        inout[i] =
            r2_half_bf_from_float(r2_half_bf_to_float(in[i]) * r2_half_bf_to_float(inout[i]));
    }
    (void) fesetenv(&before);
}

static void half_min(const uint16_t *in, uint16_t *inout, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        inout[i] = is_nan(in[i], inout[i], HALF_INF) ? HALF_NAN : lesser(in[i], inout[i]);
    }
}

static void half_max(const uint16_t *in, uint16_t *inout, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        inout[i] = is_nan(in[i], inout[i], HALF_INF) ? HALF_NAN : greater(in[i], inout[i]);
    }
}

static void bf_min(const uint16_t *in, uint16_t *inout, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        inout[i] = is_nan(in[i], inout[i], BF_INF) ? BF_NAN : lesser(in[i], inout[i]);
    }
}

static void bf_max(const uint16_t *in, uint16_t *inout, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        inout[i] = is_nan(in[i], inout[i], BF_INF) ? BF_NAN : greater(in[i], inout[i]);
    }
}

const r2_half_fns_t r2_half_plain = {
    {half_sum, half_prod, half_min, half_max},
    {bf_sum, bf_prod, bf_min, bf_max},
};

const r2_half_fns_t *r2_half_best(void)
{
    static const r2_half_fns_t *_Atomic best; /* to ask the processor may take microseconds */
    const r2_half_fns_t *fns = atomic_load_explicit(&best, memory_order_relaxed);

    if (NULL == fns) {
        fns = r2_half_has_avx2() ? r2_half_avx2() : &r2_half_plain;
        atomic_store_explicit(&best, fns, memory_order_relaxed);
    }
    return fns;
}
