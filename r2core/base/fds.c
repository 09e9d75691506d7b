/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * File descriptors of this process. The limit is one above the largest number that the kernel gives
 * out.
 */
#include "r2_config.h"

#include "r2/fds.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>

static size_t r2_fds_always(uint32_t rails)
{
    return R2_FDS_BASE + R2_FDS_RAIL * (size_t) rails + R2_FDS_THREAD + R2_FDS_SLACK;
}

size_t r2_fds_of_job(uint32_t ranks, uint32_t rails)
{
    size_t lanes = (size_t) (ranks > 0 ? ranks - 1 : 0) * rails;

    /* a sixteenth of the lanes are just being opened */
    return r2_fds_always(rails) + R2_FDS_WORKER * (size_t) rails + R2_FDS_WORKER_LOCAL + lanes +
           lanes / 16 + rails;
}

size_t r2_fds_of_ports(uint32_t ports)
{
    return 0 == ports ? 0 : 1 + (size_t) ports * R2_FDS_PORT;
}

size_t r2_fds_least(uint32_t lanes, uint32_t rails)
{
    return r2_fds_always(rails) + (size_t) lanes * (R2_FDS_WORKER_LOCAL + R2_FDS_OPENING);
}

size_t r2_fds_limit(void)
{
    struct rlimit limit;

    if (0 != getrlimit(RLIMIT_NOFILE, &limit) || RLIM_INFINITY == limit.rlim_cur) {
        return SIZE_MAX;
    }
    return (size_t) limit.rlim_cur;
}

/* From the top: the kernel gives out the lowest ones, so the first looks find most that is free. */
size_t r2_fds_free(size_t want)
{
    size_t limit = r2_fds_limit(), count = 0;

    if (limit > INT_MAX) {
        return want;
    }
    for (int fd = (int) limit - 1; fd >= 0 && count < want; --fd) {
        if (fcntl(fd, F_GETFD) < 0 && EBADF == errno) {
            ++count;
        }
    }
    return count;
}

size_t r2_fds_raise(size_t want)
{
    size_t missing = want - r2_fds_free(want);
    struct rlimit limit;
    rlim_t before;

    if (0 == missing || 0 != getrlimit(RLIMIT_NOFILE, &limit)) {
        return 0;
    }
    before = limit.rlim_cur;
    if (RLIM_INFINITY == limit.rlim_max || limit.rlim_max - before >= missing) {
        limit.rlim_cur += missing;
    } else {
        limit.rlim_cur = limit.rlim_max;
    }
    return 0 == setrlimit(RLIMIT_NOFILE, &limit) ? (size_t) (limit.rlim_cur - before) : 0;
}
