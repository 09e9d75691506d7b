/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The injected clock and random source: real ones in a job, virtual ones in the simulator.
 */
#ifndef R2_BASE_CLOCK_H
#define R2_BASE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define R2_NS_PER_US 1000ull
#define R2_NS_PER_MS 1000000ull
#define R2_NS_PER_S  1000000000ull
#define R2_NEVER_NS  UINT64_MAX

/** What a thread has had of the processors since it began. */
typedef struct r2_cpu_time {
    uint64_t thread;            /* which one */
    uint64_t ran_ns, waited_ns; /* it was running; it could have run, and others did */
} r2_cpu_time_t;

/** A source of time and randomness. */
typedef struct r2_clock {
    uint64_t (*now_ns)(void *arg);     /* monotonic, ns */
    uint64_t (*random_u64)(void *arg); /* unpredictable in a job, seeded in tests */
    void *arg;                         /* borrowed: outlives the clock */
    /* of the calling thread. @return false: not known. NULL: never is */
    bool (*cpu_time)(void *arg, r2_cpu_time_t *time_p);
} r2_clock_t;

static inline uint64_t r2_now_ns(const r2_clock_t *clock)
{
    return clock->now_ns(clock->arg);
}

static inline uint64_t r2_random_u64(const r2_clock_t *clock)
{
    return clock->random_u64(clock->arg);
}

/** Asks the system: not for every call. @return false: not known. */
static inline bool r2_cpu_time(const r2_clock_t *clock, r2_cpu_time_t *time_p)
{
    return NULL != clock->cpu_time && clock->cpu_time(clock->arg, time_p);
}

/** The clock of the machine: CLOCK_MONOTONIC and libsodium's generator. */
const r2_clock_t *r2_clock_system(void);

#endif
