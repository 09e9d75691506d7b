/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The injected clock and random source: real ones in a job, virtual ones in the simulator.
 */
#ifndef R2_BASE_CLOCK_H
#define R2_BASE_CLOCK_H

#include <stdint.h>

#define R2_NS_PER_US 1000ull
#define R2_NS_PER_MS 1000000ull
#define R2_NS_PER_S  1000000000ull
#define R2_NEVER_NS  UINT64_MAX

/** A source of time and randomness. */
typedef struct r2_clock {
    uint64_t (*now_ns)(void *arg);     /* monotonic, ns */
    uint64_t (*random_u64)(void *arg); /* unpredictable in a job, seeded in tests */
    void *arg;                         /* borrowed: outlives the clock */
} r2_clock_t;

static inline uint64_t r2_now_ns(const r2_clock_t *clock)
{
    return clock->now_ns(clock->arg);
}

static inline uint64_t r2_random_u64(const r2_clock_t *clock)
{
    return clock->random_u64(clock->arg);
}

/** The clock of the machine: CLOCK_MONOTONIC and libsodium's generator. */
const r2_clock_t *r2_clock_system(void);

#endif
