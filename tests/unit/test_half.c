/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * float16 and bfloat16: plain C against a reference that rounds exact results, vectors against
 * plain C. Each of the 65,536 values with each of a corpus: limits, ties, denormal numbers, zeros,
 * infinities, NaN, and random ones.
 */
#include "r2_config.h"

#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ompi/half/half.h"

enum { ALL = 65536, EDGES = 24, CORPUS = 192, REFERRED = 40, FLOAT16 = 0, BFLOAT16 = 1 };
enum { SUM, PROD, MIN, MAX };

/* Of both kinds: their bits mean other numbers. */
static uint16_t corpus[CORPUS];

static void draw_corpus(void)
{
    static const uint16_t edges[EDGES] = {
        0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x7bff, 0xfbff, /* float16: denormal, max */
        0x7c00, 0xfc00, 0x7c01, 0x7e00, 0xfe01, 0x3c00, 0xbc00, 0x3c01, /* inf, NaN, 1 */
        0x007f, 0x0080, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7f81, 0x3f80, /* bfloat16 */
    };
    uint32_t x = 1;

    memcpy(corpus, edges, sizeof(edges));
    for (int i = EDGES; i < CORPUS; ++i) {
        x = x * 1664525u + 1013904223u;
        corpus[i] = (uint16_t) (x >> 16);
    }
}

/* ---- the reference: real numbers by their definition ---- */

typedef struct format {
    int fraction_bits, least_exponent; /* of normal numbers */
    uint16_t inf, nan;
    double most;
} format_t;

static const format_t formats[] = {
    [FLOAT16] = {10, -14, 0x7c00, 0x7e00, 65504},
    [BFLOAT16] = {7, -126, 0x7f80, 0x7fc0, 0x1.fep127},
};

static double value_of(const format_t *format, uint16_t half)
{
    const int exponent = (half & 0x7fff) >> format->fraction_bits;
    const int fraction = half & ((1 << format->fraction_bits) - 1);
    const int least = format->least_exponent - format->fraction_bits;
    double value;

    if ((half & 0x7fff) >= format->inf) {
        value = 0 != fraction ? NAN : INFINITY;
    } else if (0 == exponent) {
        value = ldexp(fraction, least);
    } else {
        value = ldexp(fraction + (1 << format->fraction_bits), exponent - 1 + least);
    }
    return 0 != (half & 0x8000) ? -value : value;
}

/* To the nearest multiple of the last place, ties to even, by rint(). */
static uint16_t half_of(const format_t *format, double value)
{
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    const double size = fabs(value);
    int exponent;
    double last, units;

    if (isnan(value)) {
        return format->nan;
    }
    if (isinf(value) || 0 == size) {
        return sign | (0 == size ? 0 : format->inf);
    }
    (void) frexp(size, &exponent);
    exponent = exponent - 1 < format->least_exponent ? format->least_exponent : exponent - 1;
    last = ldexp(1, exponent - format->fraction_bits);
    units = rint(size / last);
    if (units * last > format->most) {
        return sign | format->inf;
    }
    if (units >= ldexp(1, format->fraction_bits + 1)) { /* rounded up to the next power of two */
        units /= 2;
        ++exponent;
    }
    if (units < ldexp(1, format->fraction_bits)) {
        return sign | (uint16_t) units;
    }
    return sign | (uint16_t) (((exponent - format->least_exponent) << format->fraction_bits) +
                              (int) units);
}

/* In float32, as it is said; exact ones are doubles. */
static double combine(int op, double a, double b)
{
    switch (op) {
    case SUM:
        return (float) a + (float) b;
    case PROD:
        return (float) a * (float) b;
    case MIN:
        return a < b || (a == b && signbit(a)) ? a : b;
    default:
        return a > b || (a == b && !signbit(a)) ? a : b;
    }
}

static uint16_t reference(int kind, int op, uint16_t a, uint16_t b)
{
    const format_t *format = &formats[kind];
    const double x = value_of(format, a), y = value_of(format, b);

    return isnan(x) || isnan(y) ? format->nan : half_of(format, combine(op, x, y));
}

/* ---- */

static void test_plain(void **state)
{
    static uint16_t in[ALL], inout[ALL];

    (void) state;
    for (int kind = 0; kind < R2_HALF_KINDS; ++kind) {
        for (int op = 0; op < R2_HALF_OPS; ++op) {
            for (int k = 0; k < REFERRED; ++k) {
                for (int i = 0; i < ALL; ++i) {
                    in[i] = (uint16_t) i;
                    inout[i] = corpus[k];
                }
                r2_half_plain[kind][op](in, inout, ALL);
                for (int i = 0; i < ALL; ++i) {
                    if (inout[i] != reference(kind, op, in[i], corpus[k])) {
                        fail_msg("kind %d op %d: %04x and %04x: %04x, not %04x", kind, op, in[i],
                                 corpus[k], inout[i], reference(kind, op, in[i], corpus[k]));
                    }
                }
            }
        }
    }
}

/* The reference adds in float32; that a float16 is rounded once all the same is shown by exact sums
 * and products, which doubles hold. */
static void test_float16_is_rounded_once(void **state)
{
    const format_t *format = &formats[FLOAT16];

    (void) state;
    for (int k = 0; k < REFERRED; ++k) {
        const double y = value_of(format, corpus[k]);

        for (int i = 0; i < ALL; ++i) {
            const double x = value_of(format, (uint16_t) i);
            uint16_t sum = corpus[k], product = corpus[k], one = (uint16_t) i;

            r2_half_plain[FLOAT16][SUM](&one, &sum, 1);
            r2_half_plain[FLOAT16][PROD](&one, &product, 1);
            assert_int_equal(sum, half_of(format, x + y));
            assert_int_equal(product, half_of(format, x * y));
        }
    }
}

static void compare_vectors(int kind, int op, const uint16_t *in, size_t count)
{
    static uint16_t plain[ALL], vectors[ALL + 1];

    for (int k = 0; k < CORPUS; ++k) {
        for (size_t i = 0; i < count; ++i) {
            plain[i] = vectors[i] = corpus[k];
        }
        vectors[count] = 0x5a5a;
        r2_half_plain[kind][op](in, plain, count);
        (*r2_half_avx2())[kind][op](in, vectors, count);
        assert_memory_equal(plain, vectors, count * sizeof(*plain));
        assert_int_equal(vectors[count], 0x5a5a);
    }
}

static void test_vectors(void **state)
{
    static uint16_t in[ALL];

    (void) state;
    if (!r2_half_has_avx2()) {
        skip();
    }
    for (int i = 0; i < ALL; ++i) {
        in[i] = (uint16_t) i;
    }
    for (int kind = 0; kind < R2_HALF_KINDS; ++kind) {
        for (int op = 0; op < R2_HALF_OPS; ++op) {
            compare_vectors(kind, op, in, ALL);
            for (size_t count = 0; count < 40; ++count) { /* with remainders, at any address */
                compare_vectors(kind, op, in + 31744 - 20 + count % 7, count);
            }
        }
    }
}

/* A program that lets denormal numbers be flushed to zero, or rounds upward, gets the same bits,
 * and has its mode afterwards. */
static void test_mode_of_the_program(void **state)
{
    const r2_half_fns_t *both[] = {&r2_half_plain, r2_half_best()};
    const uint16_t one = 0x3f80, least = 0x0001, tiny = 0x2000; /* bfloat16: 1, 2^-133, 2^-63 */
    uint16_t in[9], inout[9];

    (void) state;
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(fesetround(FE_UPWARD), 0);
#if defined(__SSE__)
        __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040u); /* FTZ and DAZ */
#endif
        for (int k = 0; k < 9; ++k) {
            in[k] = k < 3 ? least : k < 6 ? tiny : one;
            inout[k] = k < 3 ? one : k < 6 ? tiny : least;
        }
        (*both[i])[BFLOAT16][PROD](in, inout, 9);
        for (int k = 0; k < 9; ++k) {
            assert_int_equal(inout[k], k < 3 || k > 5 ? least : 0x0080);
        }
        for (int k = 0; k < 9; ++k) {
            in[k] = one;
            inout[k] = 0x3380; /* 2^-24: half of a half of the last place of 1 */
        }
        (*both[i])[BFLOAT16][SUM](in, inout, 9);
        for (int k = 0; k < 9; ++k) {
            assert_int_equal(inout[k], one);
        }
        assert_int_equal(fegetround(), FE_UPWARD);
#if defined(__SSE__)
        assert_int_equal(__builtin_ia32_stmxcsr() & 0x8040u, 0x8040u);
        __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() & ~0x8040u);
#endif
        assert_int_equal(fesetround(FE_TONEAREST), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_float16_is_rounded_once),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_mode_of_the_program),
    };

    draw_corpus();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
