/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Rails of a host: what is known of a NIC, and how NICs are found and watched.
 */
#ifndef R2_RAIL_NIC_H
#define R2_RAIL_NIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "r2/status.h"

#define R2_RAILS_MAX     16 /* NICs per host */
#define R2_NIC_NAME_MAX  32

/** One NIC as found on this host. Plain value. */
typedef struct r2_nic {
    char name[R2_NIC_NAME_MAX];   /* network device, "rail0" */
    char rdma[R2_NIC_NAME_MAX];   /* RDMA device and port, "mlx5_0:1", or "" */
    char pci[32];                 /* PCI address, "0000:3b:00.0", or "" */
    uint32_t ifindex;             /* kernel's index */
    uint32_t ipv4;                /* network byte order, 0 = none */
    uint8_t prefix_bits;          /* of ipv4's subnet */
    bool carrier;                 /* administratively up with carrier */
    uint64_t speed_bytes_per_s;   /* 0 = unknown */
    int numa_node;                /* -1 = unknown */
    uint32_t distance;            /* from this process's cores: 0 = same NUMA node; chain order */
} r2_nic_t;

/**
 * Finds the NICs of this host (netlink for the list, sysfs and hwloc for speed and distance).
 * @param selection comma separated names or fnmatch patterns, in rail order; "" = by itself: NICs
 *                  with a device behind them and an IPv4 address, those of the fastest speed class
 *                  (at least half of the fastest); without such any non-loopback, non-bridge,
 *                  non-container device with an address.
 * @param nics_p    array of R2_RAILS_MAX.
 * @param text_p    on error: what is wrong, listing the NICs there are.
 * @return R2_OK, R2_ERR_PARAM (unknown name), R2_ERR_NOT_FOUND (no NIC at all), R2_ERR_SYSTEM.
 */
r2_status_t r2_nics_find(const char *selection, bool without_address, r2_nic_t *nics_p,
                         size_t *count_p, char *text_p, size_t text_bytes);

/** Failover chain: indices of `nics` ordered by (distance, index). @param order_p `count` entries. */
void r2_nics_chain(const r2_nic_t *nics, size_t count, uint32_t *order_p);

/** Watches carrier, operational state and addresses of NICs through netlink. */
typedef struct r2_nic_watch r2_nic_watch_t;

/** A NIC changed. `carrier` and `ipv4` are the new state. `idx` counts in the watched array. */
typedef void (*r2_nic_event_fn_t)(void *arg, size_t idx, bool carrier, uint32_t ipv4);

r2_status_t r2_nic_watch_create(const r2_nic_t *nics, size_t count, r2_nic_event_fn_t fn, void *arg,
                                r2_nic_watch_t **watch_p);
/** A file descriptor that is readable when there is news. */
int r2_nic_watch_fd(const r2_nic_watch_t *watch);
/** Reads all news without blocking and calls the event function for each change. */
void r2_nic_watch_poll(r2_nic_watch_t *watch);
void r2_nic_watch_destroy(r2_nic_watch_t *watch);

#endif
