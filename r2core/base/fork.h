/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Children of the process: what they inherit is closed, and they can do nothing with r2.
 *
 * A child that keeps a listener of its parent open lets it look alive after its death: connections
 * to it succeed. So every descriptor of r2 has FD_CLOEXEC, for children that call another program
 * (system() and posix_spawn() run no handlers), and is noted here, for children that do not: they
 * close it. They only close: sockets and epoll sets are shared with the parent.
 */
#ifndef R2_BASE_FORK_H
#define R2_BASE_FORK_H

#include <stdatomic.h>
#include <stdbool.h>

/** Set in a child. To be read through r2_is_forked(). */
extern atomic_bool r2_fork_child;

/** From now on children are told apart. Any number of times. */
void r2_fork_watch(void);

/** True in a child: nothing of r2 may be used, its threads and descriptors are the parent's. */
static inline bool r2_is_forked(void)
{
    return atomic_load_explicit(&r2_fork_child, memory_order_relaxed);
}

/** Notes a descriptor, which has FD_CLOEXEC. @param fd or -1: nothing. @return fd. */
int r2_fd_keep(int fd);
/** It is about to be closed, by who owns it. */
void r2_fd_forget(int fd);
/** Forgets it and closes it. errno stays. */
void r2_fd_close(int fd);

#endif
