/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Children of the process: the descriptors to close in them.
 */
#include "r2_config.h"

#include "base/fork.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

/* Descriptors above are not noted: the usual limit of Linux. Pages never used cost nothing. */
#define R2_FDS_MAX (1 << 20)

atomic_bool r2_fork_child;

/* One bit each. Without lock: a child must not wait for a thread that it does not have. */
static _Atomic uint64_t r2_fds[R2_FDS_MAX / 64];
static _Atomic int r2_fd_highest = -1;

int r2_fd_keep(int fd)
{
    int highest = atomic_load(&r2_fd_highest);

    if (fd < 0 || fd >= R2_FDS_MAX) {
        return fd;
    }
    atomic_fetch_or(&r2_fds[fd / 64], UINT64_C(1) << fd % 64);
    while (highest < fd && !atomic_compare_exchange_weak(&r2_fd_highest, &highest, fd)) {
    }
    return fd;
}

void r2_fd_forget(int fd)
{
    if (fd >= 0 && fd < R2_FDS_MAX) {
        atomic_fetch_and(&r2_fds[fd / 64], ~(UINT64_C(1) << fd % 64));
    }
}

void r2_fd_close(int fd)
{
    const int error = errno;

    r2_fd_forget(fd); /* first: the number may be somebody else's as soon as it is closed */
    close(fd);
    errno = error;
}

static void r2_fork_in_child(void)
{
    const int highest = atomic_load(&r2_fd_highest);

    atomic_store(&r2_fork_child, true);
    for (int fd = 0; fd <= highest; ++fd) {
        if (0 != (atomic_load(&r2_fds[fd / 64]) & UINT64_C(1) << fd % 64)) {
            r2_fd_close(fd);
        }
    }
}

static void r2_fork_register(void)
{
    (void) pthread_atfork(NULL, NULL, r2_fork_in_child);
}

void r2_fork_watch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void) pthread_once(&once, r2_fork_register);
}
