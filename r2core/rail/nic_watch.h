/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Watching the NICs of this host. What is known of a NIC and how NICs are found: r2/nic.h.
 */
#ifndef R2_RAIL_NIC_WATCH_H
#define R2_RAIL_NIC_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/logger.h"
#include "r2/nic.h"
#include "r2/status.h"

/**
 * Upcall, made inside poll(): a NIC may have changed. Whoever keeps the NIC's state compares: the
 * watch itself remembers nothing of what it told.
 * @param idx in the array of NICs that are watched.
 * @param nic as it is now: carrier (up, with carrier and an IPv4 address; where its RDMA port is
 * followed, that one active), what it lacks of that, address, index, where its port has the
 * address.
 */
typedef struct r2_nic_upcalls {
    void (*changed)(void *arg, size_t idx, const r2_nic_t *nic);
    void *arg; /* borrowed: outlives the driver */
} r2_nic_upcalls_t;

/*
 * Drivers: netlink, and the simulator's. What changed since the NICs were listed is told by the
 * first polls. Devices are followed by name: one that is made anew is the same rail.
 */
typedef struct r2_nic_watch_ops {
    const char *name;
    /** Before poll(). Copied. */
    void (*bind)(void *watch, const r2_nic_upcalls_t *upcalls);
    /** One descriptor that is readable when there is news, from the start; -1: none. */
    int (*fd)(void *watch);
    /** Reads all news without blocking. */
    void (*poll)(void *watch);
    /** When to poll although the descriptor is not readable; R2_NEVER_NS: never. NULL: never. */
    uint64_t (*deadline_ns)(void *watch);
} r2_nic_watch_ops_t;

/** A driver with its instance; ops NULL: carrier losses are noticed by timeout only. */
typedef struct r2_nic_watch {
    const r2_nic_watch_ops_t *ops; /* borrowed: static */
    void *instance;                /* borrowed: outlives all users */
} r2_nic_watch_t;

/**
 * Watches links and addresses through netlink, no RDMA ports yet.
 * @param nics copied.
 * @return R2_OK, R2_ERR_SYSTEM, R2_ERR_NO_MEMORY, R2_ERR_PARAM (too many).
 */
r2_status_t r2_nic_watch_create(const r2_nic_t *nics, size_t count, r2_nic_watch_t *watch_p);
/**
 * Follows the RDMA ports of those NICs that offer RDMA to their peers (`tls`), too, as far as their
 * devices can be opened; the log says of which that is not so. Before fd().
 * @param clock when devices are tried again. borrowed: outlives the watch.
 */
void r2_nic_watch_ports(r2_nic_watch_t *watch, const r2_clock_t *clock, const r2_log_t *log);
void r2_nic_watch_destroy(r2_nic_watch_t *watch);

#endif
