/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The system calls that every packet takes. The C library's own are cancellation points (POSIX
 * 2.9.5.2), which a process with threads pays with two locked instructions a call; a thread
 * that holds the engine lock is not to be cancelled anyway.
 */
#ifndef R2_TRANSPORT_TCP_CALLS_H
#define R2_TRANSPORT_TCP_CALLS_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/** @return as recv(). */
static inline ssize_t r2_tcp_recv(int fd, void *to, size_t bytes)
{
    return syscall(SYS_recvfrom, fd, to, bytes, MSG_DONTWAIT, NULL, NULL);
}

/** @return as recvmsg(). */
static inline ssize_t r2_tcp_recvmsg(int fd, struct msghdr *message)
{
    return syscall(SYS_recvmsg, fd, message, MSG_DONTWAIT);
}

/** @return as send(). */
static inline ssize_t r2_tcp_sendto(int fd, const void *from, size_t bytes)
{
    return syscall(SYS_sendto, fd, from, bytes, MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
}

/** @return as sendmsg(). */
static inline ssize_t r2_tcp_sendmsg(int fd, const struct msghdr *message)
{
    return syscall(SYS_sendmsg, fd, message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

#endif
