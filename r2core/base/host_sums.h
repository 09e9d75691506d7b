/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * How fast a thread of this host reduces.
 */
#ifndef R2_BASE_HOST_SUMS_H
#define R2_BASE_HOST_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

/** Measures sums of floats, as long vectors mostly are, in about 2 ms.
 * @return bytes of one operand per second, in whole MB; 0: no memory. */
uint64_t r2_host_sums(const r2_clock_t *clock);

/** The same in memory of the caller's: inout += in. @param bytes of each */
uint64_t r2_host_sums_of(const r2_clock_t *clock, const float *in, float *inout, size_t bytes);

#endif
