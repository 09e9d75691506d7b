/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Small helpers used everywhere: sequence comparison, assertions, bounds.
 */
#ifndef R2_BASE_UTIL_H
#define R2_BASE_UTIL_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "r2/macros.h"

/* Invariants of our own, checked in debug builds (configure --enable-debug). */
#ifdef R2_ENABLE_DEBUG
#    define r2_assert(cond) assert(cond)
#else
#    define r2_assert(cond) ((void) sizeof(cond))
#endif

/** a before b, for 32-bit counters that wrap (RFC 1982). */
static inline bool r2_seq_lt(uint32_t a, uint32_t b)
{
    return (int32_t) (a - b) < 0;
}

/** a before b, for 64-bit counters that wrap. */
static inline bool r2_seq64_lt(uint64_t a, uint64_t b)
{
    return (int64_t) (a - b) < 0;
}

static inline uint64_t r2_clamp_u64(uint64_t value, uint64_t low, uint64_t high)
{
    return value < low ? low : (value > high ? high : value);
}

/** Writes the low `bytes` of a number, at most 8, the lowest first. */
static inline void r2_put_le(uint8_t *to, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; ++i) {
        to[i] = (uint8_t) (value >> (8 * i));
    }
}

/** Reads a number of so many bytes, at most 8, the lowest first. */
static inline uint64_t r2_get_le(const uint8_t *from, size_t bytes)
{
    uint64_t value = 0;

    for (size_t i = 0; i < bytes; ++i) {
        value |= (uint64_t) from[i] << (8 * i);
    }
    return value;
}

#endif
