/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Two-byte floats eight and sixteen at a time. The same bits as in plain C, to which remainders are
 * left.
 */
#include "r2_config.h"

#include "half.h"

#if defined(__x86_64__) && defined(__GNUC__)

#    include <cpuid.h>
#    include <immintrin.h>

#    define VECTORS __attribute__((target("avx2,f16c")))

enum { MODE = 0x1f80 }; /* of the processor at its start: to the nearest, nothing flushed */

int r2_half_has_avx2(void)
{
    unsigned a, b, c, d;

    return __builtin_cpu_supports("avx2") && 0 != __get_cpuid(1, &a, &b, &c, &d) &&
           0 != (c & bit_F16C);
}

VECTORS static inline __m128i load8(const uint16_t *from)
{
    return _mm_loadu_si128((const __m128i *) (const void *) from);
}

VECTORS static inline void store8(uint16_t *to, __m128i value)
{
    _mm_storeu_si128((__m128i *) (void *) to, value);
}

/* Lanes of a float that are NaN become those of `nan`. */
VECTORS static inline __m128i half_of(__m256 value)
{
    const __m256i unordered = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    const __m128i is_nan =
        _mm_packs_epi32(_mm256_castsi256_si128(unordered), _mm256_extracti128_si256(unordered, 1));

    return _mm_blendv_epi8(_mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT),
                           _mm_set1_epi16(0x7e00), is_nan);
}

VECTORS static inline __m256 bf_float(__m128i halves)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}

VECTORS static inline __m128i bf_of(__m256 value)
{
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    const __m256i high =
        _mm256_blendv_epi8(_mm256_srli_epi32(rounded, 16), _mm256_set1_epi32(0x7fc0), is_nan);

    return _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
}

#    define PAIRS_OF_FLOATS(kind, op, widen, narrow, combine, plain)                               \
        VECTORS static void kind##_##op(const uint16_t *in, uint16_t *inout, size_t count)         \
        {                                                                                          \
            const unsigned mode = _mm_getcsr();                                                    \
            size_t i = 0;                                                                          \
                                                                                                   \
            _mm_setcsr(MODE);                                                                      \
            for (; i + 8 <= count; i += 8) {                                                       \
                store8(inout + i, narrow(combine(widen(load8(in + i)), widen(load8(inout + i))))); \
            }                                                                                      \
            _mm_setcsr(mode);                                                                      \
            plain(in + i, inout + i, count - i);                                                   \
        }
PAIRS_OF_FLOATS(half, sum, _mm256_cvtph_ps, half_of, _mm256_add_ps, r2_half_plain[0][0])
PAIRS_OF_FLOATS(half, prod, _mm256_cvtph_ps, half_of, _mm256_mul_ps, r2_half_plain[0][1])
PAIRS_OF_FLOATS(bf, sum, bf_float, bf_of, _mm256_add_ps, r2_half_plain[1][0])
PAIRS_OF_FLOATS(bf, prod, bf_float, bf_of, _mm256_mul_ps, r2_half_plain[1][1])

/* The order of numbers as that of integers, and back: it is its own inverse. */
VECTORS static inline __m256i keys(__m256i halves)
{
    return _mm256_xor_si256(
        halves, _mm256_and_si256(_mm256_srai_epi16(halves, 15), _mm256_set1_epi16(0x7fff)));
}

VECTORS static inline __m256i are_nan(__m256i halves, short inf)
{
    return _mm256_cmpgt_epi16(_mm256_and_si256(halves, _mm256_set1_epi16(0x7fff)),
                              _mm256_set1_epi16(inf));
}

#    define PAIRS_OF_KEYS(kind, op, choose, inf, nan, plain)                                     \
        VECTORS static void kind##_##op(const uint16_t *in, uint16_t *inout, size_t count)       \
        {                                                                                        \
            size_t i = 0;                                                                        \
                                                                                                 \
            for (; i + 16 <= count; i += 16) {                                                   \
                const __m256i a = _mm256_loadu_si256((const __m256i *) (const void *) (in + i)); \
                __m256i *to = (__m256i *) (void *) (inout + i);                                  \
                const __m256i b = _mm256_loadu_si256(to);                                        \
                const __m256i is_nan = _mm256_or_si256(are_nan(a, inf), are_nan(b, inf));        \
                                                                                                 \
                _mm256_storeu_si256(to, _mm256_blendv_epi8(keys(choose(keys(a), keys(b))),       \
                                                           _mm256_set1_epi16(nan), is_nan));     \
            }                                                                                    \
            plain(in + i, inout + i, count - i);                                                 \
        }
PAIRS_OF_KEYS(half, min, _mm256_min_epi16, 0x7c00, 0x7e00, r2_half_plain[0][2])
PAIRS_OF_KEYS(half, max, _mm256_max_epi16, 0x7c00, 0x7e00, r2_half_plain[0][3])
PAIRS_OF_KEYS(bf, min, _mm256_min_epi16, 0x7f80, 0x7fc0, r2_half_plain[1][2])
PAIRS_OF_KEYS(bf, max, _mm256_max_epi16, 0x7f80, 0x7fc0, r2_half_plain[1][3])

const r2_half_fns_t *r2_half_avx2(void)
{
    static const r2_half_fns_t fns = {
        {half_sum, half_prod, half_min, half_max},
        {bf_sum, bf_prod, bf_min, bf_max},
    };

    return &fns;
}

#else

int r2_half_has_avx2(void)
{
    return 0;
}

const r2_half_fns_t *r2_half_avx2(void)
{
    return NULL;
}

#endif
