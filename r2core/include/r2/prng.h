/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Small seeded generator for simulation and fault injection; not for keys.
 */
#ifndef R2_PRNG_H
#define R2_PRNG_H

#include <stdbool.h>
#include <stdint.h>

/** State of one stream. Any seed will do. */
typedef struct r2_prng {
    uint64_t state;
} r2_prng_t;

static inline void r2_prng_seed(r2_prng_t *prng, uint64_t seed)
{
    prng->state = seed;
}

/** Next 64 bits. Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
 * 2014. */
static inline uint64_t r2_prng_u64(r2_prng_t *prng)
{
    uint64_t z = (prng->state += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

/** A number in [0, limit); 0 if limit is 0. */
static inline uint64_t r2_prng_below(r2_prng_t *prng, uint64_t limit)
{
    return 0 == limit ? 0 : (uint64_t) (((unsigned __int128) r2_prng_u64(prng) * limit) >> 64);
}

/** A number in [low, high]. */
static inline uint64_t r2_prng_between(r2_prng_t *prng, uint64_t low, uint64_t high)
{
    return low + r2_prng_below(prng, high - low + 1);
}

/** True `ppm` times in a million. */
static inline bool r2_prng_chance(r2_prng_t *prng, uint32_t ppm)
{
    return 0 != ppm && r2_prng_below(prng, 1000000) < ppm;
}

#endif
