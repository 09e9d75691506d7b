/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What a reduction does to one element: integers, floats, complex numbers, pairs. For kernels and
 * their C form (reduce.h).
 *
 * Floats are kept as their bits. A GPU knows one NaN only, processors of the host pass on the one
 * that they get: results that are NaN are made of bits here, as x86-64 makes them. Of two NaN the
 * first one counts, `in`, as with the vectors of Open MPI's op/avx.
 */
#ifndef R2_MEM_PTX_ELEMENTS_H
#define R2_MEM_PTX_ELEMENTS_H

typedef __UINT8_TYPE__ r2_u8;
typedef __INT8_TYPE__ r2_i8;
typedef __UINT16_TYPE__ r2_u16;
typedef __INT16_TYPE__ r2_i16;
typedef __UINT32_TYPE__ r2_u32;
typedef __INT32_TYPE__ r2_i32;
typedef __UINT64_TYPE__ r2_u64;
typedef __INT64_TYPE__ r2_i64;
typedef r2_u32 r2_f32; /* bits */
typedef r2_u64 r2_f64;
typedef r2_u16 r2_f16;
typedef r2_u16 r2_bf16;
typedef r2_u32 r2_short; /* with the padding behind it */

/* ---- integers: sums and products wrap */

#define R2_INT_sum(t, a, b)  ((t) ((r2_u64) (a) + (r2_u64) (b)))
#define R2_INT_prod(t, a, b) ((t) ((r2_u64) (a) * (r2_u64) (b)))
#define R2_INT_min(t, a, b)  ((b) < (a) ? (b) : (a))
#define R2_INT_max(t, a, b)  ((b) > (a) ? (b) : (a))
#define R2_INT_band(t, a, b) ((t) ((a) & (b)))
#define R2_INT_bor(t, a, b)  ((t) ((a) | (b)))
#define R2_INT_bxor(t, a, b) ((t) ((a) ^ (b)))
#define R2_INT_land(t, a, b) ((t) (0 != (a) && 0 != (b)))
#define R2_INT_lor(t, a, b)  ((t) (0 != (a) || 0 != (b)))
#define R2_INT_lxor(t, a, b) ((t) ((0 != (a)) != (0 != (b))))

/* ---- floats. MIN and MAX take `in` unless `inout` is less or more: so of two zeros, and of a NaN
 * and a number */

#define R2_FLOATS(f, u, number, sign, infinite, quiet)                     \
    R2_DEVICE number r2_##f##_value(r2_##f bits)                           \
    {                                                                      \
        number value;                                                      \
                                                                           \
        __builtin_memcpy(&value, &bits, sizeof(value));                    \
        return value;                                                      \
    }                                                                      \
    R2_DEVICE int r2_##f##_is_nan(r2_##f bits)                             \
    {                                                                      \
        return (bits & ~(sign)) > (infinite);                              \
    }                                                                      \
    R2_DEVICE int r2_##f##_is_infinite(r2_##f bits)                        \
    {                                                                      \
        return (bits & ~(sign)) == (infinite);                             \
    }                                                                      \
    /* a result of a and b */                                              \
    R2_DEVICE r2_##f r2_##f##_of(number value, r2_##f a, r2_##f b)         \
    {                                                                      \
        r2_##f bits;                                                       \
                                                                           \
        __builtin_memcpy(&bits, &value, sizeof(bits));                     \
        if (!r2_##f##_is_nan(bits)) {                                      \
            return bits;                                                   \
        }                                                                  \
        return r2_##f##_is_nan(a)   ? a | (quiet)                          \
               : r2_##f##_is_nan(b) ? b | (quiet)                          \
                                    : (sign) | (infinite) | (quiet);       \
    }                                                                      \
    R2_DEVICE r2_##f r2_##f##_sum(r2_##f a, r2_##f b)                      \
    {                                                                      \
        return r2_##f##_of(r2_##f##_value(a) + r2_##f##_value(b), a, b);   \
    }                                                                      \
    R2_DEVICE r2_##f r2_##f##_prod(r2_##f a, r2_##f b)                     \
    {                                                                      \
        return r2_##f##_of(r2_##f##_value(a) * r2_##f##_value(b), a, b);   \
    }                                                                      \
    R2_DEVICE r2_##f r2_##f##_min(r2_##f a, r2_##f b)                      \
    {                                                                      \
        return r2_##f##_value(b) < r2_##f##_value(a) ? b : a;              \
    }                                                                      \
    R2_DEVICE r2_##f r2_##f##_max(r2_##f a, r2_##f b)                      \
    {                                                                      \
        return r2_##f##_value(b) > r2_##f##_value(a) ? b : a;              \
    }                                                                      \
    /* for the products of infinite complex numbers (C11, annex G) */      \
    R2_DEVICE r2_##f r2_##f##_boxed(r2_##f bits)                           \
    {                                                                      \
        return (bits & (sign)) | r2_##f##_one(r2_##f##_is_infinite(bits)); \
    }                                                                      \
    R2_DEVICE r2_##f r2_##f##_zeroed(r2_##f bits)                          \
    {                                                                      \
        return r2_##f##_is_nan(bits) ? bits & (sign) : bits;               \
    }                                                                      \
    R2_DEVICE r2_##f r2_##f##_difference(r2_##f a, r2_##f b)               \
    {                                                                      \
        return r2_##f##_of(r2_##f##_value(a) - r2_##f##_value(b), a, b);   \
    }                                                                      \
    R2_DEVICE r2_##f r2_##f##_infinity(void)                               \
    {                                                                      \
        return (infinite);                                                 \
    }

R2_DEVICE r2_f32 r2_f32_one(int is_one)
{
    return is_one ? 0x3f800000u : 0u;
}

R2_DEVICE r2_f64 r2_f64_one(int is_one)
{
    return is_one ? 0x3ff0000000000000ull : 0ull;
}

R2_FLOATS(f32, u32, float, 0x80000000u, 0x7f800000u, 0x00400000u)
R2_FLOATS(f64, u64, double, 0x8000000000000000ull, 0x7ff0000000000000ull, 0x0008000000000000ull)

/* ---- floats of two bytes, with the bits of ompi/half: NaN wins, as the quiet one without sign, -0
 * is less than +0 */

/* Drops `cut` low bits, to the nearest, ties to even. */
R2_DEVICE r2_u32 r2_round_off(r2_u32 bits, unsigned cut)
{
    return (bits + (1u << (cut - 1)) - 1u + (bits >> cut & 1u)) >> cut;
}

R2_DEVICE float r2_f16_value(r2_f16 half)
{
    const r2_u32 sign = (r2_u32) (half & 0x8000u) << 16, rest = half & 0x7fffu;

    if (rest >= 0x7c00u) {
        return r2_f32_value(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    }
    if (rest < 0x400u) { /* halves of 2^-24 */
        const float value = (float) rest * 0x1p-24f;
        r2_u32 bits;

        __builtin_memcpy(&bits, &value, sizeof(bits));
        return r2_f32_value(sign | bits);
    }
    return r2_f32_value(sign | ((rest << 13) + (112u << 23)));
}

R2_DEVICE r2_f16 r2_f16_of(float value)
{
    r2_u32 bits, rest, sign, shift;

    __builtin_memcpy(&bits, &value, sizeof(bits));
    rest = bits & 0x7fffffffu;
    sign = bits >> 16 & 0x8000u;
    if (rest > 0x7f800000u) {
        return 0x7e00u;
    }
    if (rest >= 143u << 23) { /* 2^16 and more */
        return (r2_f16) (sign | 0x7c00u);
    }
    if (rest >= 113u << 23) { /* 2^-14: normal */
        return (r2_f16) (sign | r2_round_off(rest - (112u << 23), 13));
    }
    shift = 126u - (rest >> 23);
    return shift > 24u ? (r2_f16) sign
                       : (r2_f16) (sign | r2_round_off((rest & 0x7fffffu) | 0x800000u, shift));
}

R2_DEVICE float r2_bf16_value(r2_bf16 half)
{
    return r2_f32_value((r2_u32) half << 16);
}

R2_DEVICE r2_bf16 r2_bf16_of(float value)
{
    r2_u32 bits;

    __builtin_memcpy(&bits, &value, sizeof(bits));
    return (bits & 0x7fffffffu) > 0x7f800000u ? (r2_bf16) 0x7fc0u
                                              : (r2_bf16) r2_round_off(bits, 16);
}

/* The order of numbers as that of integers. */
R2_DEVICE int r2_half_key(r2_u16 half)
{
    return 0 != (half & 0x8000u) ? -1 - (int) (half & 0x7fffu) : (int) half;
}

#define R2_HALVES(h, infinite, nan)                                                             \
    R2_DEVICE int r2_##h##_is_nan(r2_##h a, r2_##h b)                                           \
    {                                                                                           \
        return (a & 0x7fffu) > (infinite) || (b & 0x7fffu) > (infinite);                        \
    }                                                                                           \
    R2_DEVICE r2_##h r2_##h##_sum(r2_##h a, r2_##h b)                                           \
    {                                                                                           \
        return r2_##h##_of(r2_##h##_value(a) + r2_##h##_value(b));                              \
    }                                                                                           \
    R2_DEVICE r2_##h r2_##h##_prod(r2_##h a, r2_##h b)                                          \
    {                                                                                           \
        return r2_##h##_of(r2_##h##_value(a) * r2_##h##_value(b));                              \
    }                                                                                           \
    R2_DEVICE r2_##h r2_##h##_min(r2_##h a, r2_##h b)                                           \
    {                                                                                           \
        return r2_##h##_is_nan(a, b) ? (r2_##h)(nan) : r2_half_key(a) < r2_half_key(b) ? a : b; \
    }                                                                                           \
    R2_DEVICE r2_##h r2_##h##_max(r2_##h a, r2_##h b)                                           \
    {                                                                                           \
        return r2_##h##_is_nan(a, b) ? (r2_##h)(nan) : r2_half_key(a) < r2_half_key(b) ? b : a; \
    }
R2_HALVES(f16, 0x7c00u, 0x7e00u)
R2_HALVES(bf16, 0x7f80u, 0x7fc0u)

/* ---- complex numbers: a product that is NaN in both parts may be one of infinite numbers, as C11,
 * annex G, has it */

#define R2_COMPLEX(c, f)                                                                  \
    typedef struct r2_##c {                                                               \
        r2_##f re, im;                                                                    \
    } r2_##c;                                                                             \
                                                                                          \
    R2_DEVICE r2_##c r2_##c##_sum(r2_##c a, r2_##c b)                                     \
    {                                                                                     \
        r2_##c x;                                                                         \
                                                                                          \
        x.re = r2_##f##_sum(a.re, b.re);                                                  \
        x.im = r2_##f##_sum(a.im, b.im);                                                  \
        return x;                                                                         \
    }                                                                                     \
    R2_DEVICE r2_##c r2_##c##_times(r2_##c a, r2_##c b)                                   \
    {                                                                                     \
        r2_##c x;                                                                         \
                                                                                          \
        x.re = r2_##f##_difference(r2_##f##_prod(a.re, b.re), r2_##f##_prod(a.im, b.im)); \
        x.im = r2_##f##_sum(r2_##f##_prod(a.re, b.im), r2_##f##_prod(a.im, b.re));        \
        return x;                                                                         \
    }                                                                                     \
    R2_DEVICE int r2_##c##_is_infinite(r2_##c a)                                          \
    {                                                                                     \
        return r2_##f##_is_infinite(a.re) || r2_##f##_is_infinite(a.im);                  \
    }                                                                                     \
    R2_DEVICE int r2_##c##_overflows(r2_##c a, r2_##c b)                                  \
    {                                                                                     \
        return r2_##f##_is_infinite(r2_##f##_prod(a.re, b.re)) ||                         \
               r2_##f##_is_infinite(r2_##f##_prod(a.im, b.im)) ||                         \
               r2_##f##_is_infinite(r2_##f##_prod(a.re, b.im)) ||                         \
               r2_##f##_is_infinite(r2_##f##_prod(a.im, b.re));                           \
    }                                                                                     \
    R2_DEVICE r2_##c r2_##c##_boxed(r2_##c a)                                             \
    {                                                                                     \
        a.re = r2_##f##_boxed(a.re);                                                      \
        a.im = r2_##f##_boxed(a.im);                                                      \
        return a;                                                                         \
    }                                                                                     \
    R2_DEVICE r2_##c r2_##c##_zeroed(r2_##c a)                                            \
    {                                                                                     \
        a.re = r2_##f##_zeroed(a.re);                                                     \
        a.im = r2_##f##_zeroed(a.im);                                                     \
        return a;                                                                         \
    }                                                                                     \
    R2_DEVICE r2_##c r2_##c##_prod(r2_##c a, r2_##c b)                                    \
    {                                                                                     \
        r2_##c x = r2_##c##_times(a, b);                                                  \
        int again = 0;                                                                    \
                                                                                          \
        if (!r2_##f##_is_nan(x.re) || !r2_##f##_is_nan(x.im)) {                           \
            return x;                                                                     \
        }                                                                                 \
        if (r2_##c##_is_infinite(a)) {                                                    \
            a = r2_##c##_boxed(a);                                                        \
            b = r2_##c##_zeroed(b);                                                       \
            again = 1;                                                                    \
        }                                                                                 \
        if (r2_##c##_is_infinite(b)) {                                                    \
            b = r2_##c##_boxed(b);                                                        \
            a = r2_##c##_zeroed(a);                                                       \
            again = 1;                                                                    \
        }                                                                                 \
        if (!again && r2_##c##_overflows(a, b)) {                                         \
            a = r2_##c##_zeroed(a);                                                       \
            b = r2_##c##_zeroed(b);                                                       \
            again = 1;                                                                    \
        }                                                                                 \
        if (again) {                                                                      \
            x = r2_##c##_times(a, b);                                                     \
            x.re = r2_##f##_prod(r2_##f##_infinity(), x.re);                              \
            x.im = r2_##f##_prod(r2_##f##_infinity(), x.im);                              \
        }                                                                                 \
        return x;                                                                         \
    }
R2_COMPLEX(cf32, f32)
R2_COMPLEX(cf64, f64)

/* ---- pairs: of equal values the lesser index. Padding stays that of `inout`, as it does where
 * Open MPI reduces in place. */

#define R2_SAME_VALUE(x)  (x)
#define R2_SHORT_VALUE(x) ((r2_i16) (x))
#define R2_PAIR(p, v, i, value_of, index_of)                                         \
    typedef struct r2_##p {                                                          \
        r2_##v value;                                                                \
        r2_##i index;                                                                \
    } r2_##p;                                                                        \
                                                                                     \
    R2_DEVICE r2_##p r2_##p##_choose(r2_##p a, r2_##p b, int is_first, int is_equal) \
    {                                                                                \
        if (is_first) {                                                              \
            b.value = a.value;                                                       \
            b.index = a.index;                                                       \
        } else if (is_equal) {                                                       \
            b.index = index_of(b.index) < index_of(a.index) ? b.index : a.index;     \
        }                                                                            \
        return b;                                                                    \
    }                                                                                \
    R2_DEVICE r2_##p r2_##p##_minloc(r2_##p a, r2_##p b)                             \
    {                                                                                \
        return r2_##p##_choose(a, b, value_of(a.value) < value_of(b.value),          \
                               value_of(a.value) == value_of(b.value));              \
    }                                                                                \
    R2_DEVICE r2_##p r2_##p##_maxloc(r2_##p a, r2_##p b)                             \
    {                                                                                \
        return r2_##p##_choose(a, b, value_of(a.value) > value_of(b.value),          \
                               value_of(a.value) == value_of(b.value));              \
    }
R2_PAIR(f32i32, f32, i32, r2_f32_value, R2_SAME_VALUE)
R2_PAIR(f64i32, f64, i32, r2_f64_value, R2_SAME_VALUE)
R2_PAIR(i16i32, short, i32, R2_SHORT_VALUE, R2_SAME_VALUE)
R2_PAIR(i32i32, i32, i32, R2_SAME_VALUE, R2_SAME_VALUE)
R2_PAIR(i64i32, i64, i32, R2_SAME_VALUE, R2_SAME_VALUE)
R2_PAIR(f32f32, f32, f32, r2_f32_value, r2_f32_value)
R2_PAIR(f64f64, f64, f64, r2_f64_value, r2_f64_value)

#endif
