/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The steps of finding NICs: list, place in the machine, selection, distance.
 */
#ifndef R2_RAIL_NIC_PARTS_H
#define R2_RAIL_NIC_PARTS_H

#include <hwloc.h>

#include "r2/nic.h"

/** A network device of this host, chosen or not. */
typedef struct r2_nic_seen {
    r2_nic_t nic;
    char kind[16]; /* kernel's kind of a virtual device ("veth", "bridge"), or "" */
    bool loopback;
    bool has_device; /* sysfs knows a device behind it */
} r2_nic_seen_t;

/** Lists all network devices of this network namespace. @param seen_p owned by the caller:
 * free(). */
r2_status_t r2_nics_list(r2_nic_seen_t **seen_p, size_t *count_p);

/**
 * Fills in speed, PCI address, NUMA node and RDMA device of a network device.
 * @param root "/sys" or a copy for tests. Where it is another network namespace's, nothing is
 * filled.
 */
void r2_nic_place(const char *root, r2_nic_seen_t *seen);

/**
 * Fills in the RDMA device of a NIC that is not one itself but lies on one: a bond, a VLAN.
 * @param root as for r2_nic_place().
 */
void r2_nic_place_rdma(const char *root, r2_nic_t *nic);

/** Selection as in r2_nics_find(). Pure. */
r2_status_t r2_nics_select(const r2_nic_seen_t *seen, size_t count, const char *selection,
                           bool without_address, r2_nic_t *nics_p, size_t *count_p, char *text_p,
                           size_t text_bytes);

/**
 * Fills in distances (and NUMA nodes that the topology knows better). Pure.
 * @param cores of this process.
 */
void r2_nics_measure(hwloc_topology_t topology, hwloc_const_cpuset_t cores, r2_nic_t *nics,
                     size_t count);

#endif
