/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What tests with real sockets share: a clock that the test moves, the key of a job, a log.
 */
#ifndef R2_TESTS_MOVED_CLOCK_H
#define R2_TESTS_MOVED_CLOCK_H

#include "r2_config.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/logger.h"
#include "base/util.h"

#define T_WAIT_MS 5000 /* longest wait for something that must happen */

static uint64_t t_time_ns = R2_NS_PER_S;
static bool t_real_time; /* the clock is not moved by the test, but real */
static const uint8_t t_key[32] = "key of the job, thirty-two byte";

static inline uint64_t t_now(void *arg)
{
    (void) arg;
    return t_real_time ? r2_now_ns(r2_clock_system()) : t_time_ns;
}

static inline uint64_t t_random(void *arg)
{
    (void) arg;
    return 4;
}

static const r2_clock_t t_clock = {.now_ns = t_now, .random_u64 = t_random};
static r2_log_t t_log = {.level = R2_LOG_ERROR};

#endif
