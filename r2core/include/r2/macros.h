/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What C lacks. For programs of this tree: not installed.
 */
#ifndef R2_MACROS_H
#define R2_MACROS_H

#include <stddef.h>

#define r2_array_count(a) (sizeof(a) / sizeof((a)[0]))
#define r2_min(a, b)      ((a) < (b) ? (a) : (b))
#define r2_max(a, b)      ((a) > (b) ? (a) : (b))

/** The struct that holds `member` at `ptr`. */
#define r2_container_of(ptr, type, member) \
    ((type *) (void *) ((char *) (ptr) -offsetof(type, member)))

/** Smallest multiple of `unit` that is >= value. @param unit > 0. */
static inline size_t r2_round_up(size_t value, size_t unit)
{
    return (value + unit - 1) / unit * unit;
}

#endif
