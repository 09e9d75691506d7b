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

/* Held while a descriptor is opened and noted, while one is forgotten and closed, and by who
 * forks. */
static pthread_mutex_t r2_fd_mutex = PTHREAD_MUTEX_INITIALIZER;

static uint64_t r2_fds[R2_FDS_MAX / 64]; /* one bit each */
static int r2_fd_highest = -1;

static void r2_fd_set(int fd, bool noted)
{
    const uint64_t bit = UINT64_C(1) << fd % 64;

    if (noted) {
        r2_fds[fd / 64] |= bit;
    } else {
        r2_fds[fd / 64] &= ~bit;
    }
}

static bool r2_fd_is_set(int fd)
{
    return 0 != (r2_fds[fd / 64] & UINT64_C(1) << fd % 64);
}

void r2_fd_opening(void)
{
    pthread_mutex_lock(&r2_fd_mutex);
}

int r2_fd_opened(int fd)
{
    if (fd >= 0 && fd < R2_FDS_MAX) {
        r2_fd_set(fd, true);
        r2_fd_highest = fd > r2_fd_highest ? fd : r2_fd_highest;
    }
    pthread_mutex_unlock(&r2_fd_mutex);
    return fd;
}

void r2_fd_closing(int fd)
{
    pthread_mutex_lock(&r2_fd_mutex);
    if (fd >= 0 && fd < R2_FDS_MAX) {
        r2_fd_set(fd, false);
    }
}

void r2_fd_closed(void)
{
    pthread_mutex_unlock(&r2_fd_mutex);
}

void r2_fd_close(int fd)
{
    const int error = errno;

    r2_fd_closing(fd);
    close(fd);
    r2_fd_closed();
    errno = error;
}

static void r2_fork_prepare(void)
{
    pthread_mutex_lock(&r2_fd_mutex);
}

static void r2_fork_in_parent(void)
{
    pthread_mutex_unlock(&r2_fd_mutex);
}

static void r2_fork_in_child(void)
{
    atomic_store(&r2_fork_child, true);
    for (int fd = 0; fd <= r2_fd_highest; ++fd) {
        if (r2_fd_is_set(fd)) {
            r2_fd_set(fd, false); /* in a child of this one the number may be another's */
            close(fd);
        }
    }
    pthread_mutex_unlock(&r2_fd_mutex);
}

static void r2_fork_register(void)
{
    (void) pthread_atfork(r2_fork_prepare, r2_fork_in_parent, r2_fork_in_child);
}

void r2_fork_watch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void) pthread_once(&once, r2_fork_register);
}
