/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The machine's clock and random source.
 */
#include "r2_config.h"

#include "base/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

/* The scheduler's own books: ns on a processor, ns in its queue. */
static bool r2_system_cpu_time(void *arg, r2_cpu_time_t *time_p)
{
    const int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    char text[128];
    ssize_t bytes;

    (void) arg;
    if (fd < 0) {
        return false;
    }
    bytes = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[bytes > 0 ? bytes : 0] = '\0';
    time_p->thread = (uint64_t) syscall(SYS_gettid);
    return 2 == sscanf(text, "%" SCNu64 " %" SCNu64, &time_p->ran_ns, &time_p->waited_ns);
}

const r2_clock_t *r2_clock_system(void)
{
    static const r2_clock_t clock = {.now_ns = r2_system_now_ns,
                                     .random_u64 = r2_system_random_u64,
                                     .cpu_time = r2_system_cpu_time};

    return &clock;
}
