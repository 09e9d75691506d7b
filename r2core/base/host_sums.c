/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Sums of floats against the clock.
 */
#include "r2_config.h"

#include "base/host_sums.h"

#include <stdlib.h>

#include "base/util.h"

/* As long as the segment of a long vector; the best of a few turns is that of a quiet machine. */
#define R2_SUMS_BYTES ((size_t) 1 << 20)
#define R2_SUMS_TURNS 4u

uint64_t r2_host_sums_of(const r2_clock_t *clock, const float *in, float *inout, size_t bytes)
{
    uint64_t least_ns = UINT64_MAX;

    for (uint32_t turn = 0; turn < R2_SUMS_TURNS; ++turn) {
        uint64_t start_ns = r2_now_ns(clock);

        for (size_t i = 0; i < bytes / sizeof(float); ++i) {
            inout[i] += in[i];
        }
        __asm__ volatile("" : : "r"(inout) : "memory"); /* the sums are wanted */
        least_ns = r2_min(least_ns, r2_now_ns(clock) - start_ns);
    }
    return r2_max(bytes * 1000 / r2_max(least_ns, (uint64_t) 1), (uint64_t) 1) * UINT64_C(1000000);
}

uint64_t r2_host_sums(const r2_clock_t *clock)
{
    float *in = calloc(2, R2_SUMS_BYTES);
    uint64_t rate;

    if (NULL == in) {
        return 0;
    }
    rate = r2_host_sums_of(clock, in, in + R2_SUMS_BYTES / sizeof(float), R2_SUMS_BYTES);
    free(in);
    return rate;
}
