/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The machine's clock and random source.
 */
#include "r2_config.h"

#include "base/clock.h"

#include <sodium.h>
#include <time.h>

static uint64_t r2_system_now_ns(void *arg)
{
    struct timespec ts;

    (void) arg;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t) ts.tv_sec * R2_NS_PER_S + (uint64_t) ts.tv_nsec;
}

static uint64_t r2_system_random_u64(void *arg)
{
    uint64_t value;

    (void) arg;
    randombytes_buf(&value, sizeof(value));
    return value;
}

const r2_clock_t *r2_clock_system(void)
{
    static const r2_clock_t clock = {r2_system_now_ns, r2_system_random_u64, NULL};

    return &clock;
}
