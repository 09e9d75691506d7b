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

/**
 * Opens a descriptor and notes it, and nobody forks in between.
 * @param open what opens it, with FD_CLOEXEC, and does not block; or it is open already. -1:
 * nothing is noted. @return the descriptor.
 */
#define r2_fd_keep(open) (r2_fd_opening(), r2_fd_opened(open))
/** The two halves of it: whoever forks waits from the first until the second. */
void r2_fd_opening(void);
int r2_fd_opened(int fd);
/** Forgets it and closes it. errno stays. */
void r2_fd_close(int fd);
/** The same for one that somebody else's function closes: that is called between the two. */
void r2_fd_closing(int fd);
void r2_fd_closed(void);

#endif
