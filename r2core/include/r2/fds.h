/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * File descriptors of this process: how many may still be opened.
 */
#ifndef R2_FDS_H
#define R2_FDS_H

#include <stddef.h>
#include <stdint.h>

/* What UCX takes (1.13 to 1.22); tests/unit/test_fds.c measures it. */
#define R2_FDS_THREAD       3u /* once for each process, with the first worker of UCX */
#define R2_FDS_DEVICE       2u /* over RDMA, and its workers as within the host; TCP: none */
#define R2_FDS_WORKER       2u /* of a rail */
#define R2_FDS_WORKER_LOCAL 4u /* of the rail within the host, with what watches processes */
#define R2_FDS_EP           1u /* over RDMA: none */
#define R2_FDS_OPENING      2u /* of an endpoint and the connect request that opens its lane */
#define R2_FDS_SLACK        4u /* sockets of a moment: UCX's for the NIC, calls of ours */

/* Of r2 itself: listeners and probes of each rail; epoll, timers, netlink, files, the inbox, PMIx
 * events (two), the reserve of the transport. */
#define R2_FDS_RAIL 3u
#define R2_FDS_BASE 23u

/** What following RDMA ports takes beside: one for all, and for each its device. */
#define R2_FDS_PORT 3u
size_t r2_fds_of_ports(uint32_t ports);

/** Descriptors that r2 takes in a process with lanes to all others over all rails. */
size_t r2_fds_of_job(uint32_t ranks, uint32_t rails);
/** The same with so many lanes, each with a worker of its own, of whichever rail. */
size_t r2_fds_least(uint32_t lanes, uint32_t rails);

/** The soft limit on open files (`ulimit -n`); SIZE_MAX: there is none. */
size_t r2_fds_limit(void);

/**
 * Descriptors that may be opened now. Nothing is opened to find out: other threads notice nothing.
 * @param want counting ends there; costs a system call for each while most are free.
 * @return up to `want`.
 */
size_t r2_fds_free(size_t want);

/**
 * Raises the soft limit until `want` descriptors are free, as far as the hard limit allows, and
 * never lowers it.
 * @return by how much it was raised.
 */
size_t r2_fds_raise(size_t want);

#endif
