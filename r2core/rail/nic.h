/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Watching the NICs of this host. What is known of a NIC and how NICs are found: r2/nic.h.
 */
#ifndef R2_RAIL_NIC_H
#define R2_RAIL_NIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "r2/nic.h"
#include "r2/status.h"

/** Watches carrier, operational state and addresses of NICs through netlink. */
typedef struct r2_nic_watch r2_nic_watch_t;

/**
 * A NIC changed: `carrier` (up, with carrier and an IPv4 address) or `ipv4` is not what it was.
 * `idx` counts in the watched array.
 */
typedef void (*r2_nic_event_fn_t)(void *arg, size_t idx, bool carrier, uint32_t ipv4);

/**
 * Starts watching. What changed since `nics` was filled is reported by the first polls: the
 * descriptor is readable from the start. Devices are followed by name: one that is made anew is the
 * same rail.
 * @param nics copied. @param arg borrowed: outlives the watch.
 * @return R2_OK, R2_ERR_SYSTEM, R2_ERR_NO_MEMORY.
 */
r2_status_t r2_nic_watch_create(const r2_nic_t *nics, size_t count, r2_nic_event_fn_t fn, void *arg,
                                r2_nic_watch_t **watch_p);
/** A file descriptor that is readable when there is news. */
int r2_nic_watch_fd(const r2_nic_watch_t *watch);
/** Reads all news without blocking and calls the event function for each change. */
void r2_nic_watch_poll(r2_nic_watch_t *watch);
/** The NIC as known now: index, address, carrier (as in the event) follow the news. */
const r2_nic_t *r2_nic_watch_nic(const r2_nic_watch_t *watch, size_t idx);
void r2_nic_watch_destroy(r2_nic_watch_t *watch);

#endif
