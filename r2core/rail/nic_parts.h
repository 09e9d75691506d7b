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
#include "r2/transport.h"

/** A network device of this host, chosen or not. */
typedef struct r2_nic_seen {
    r2_nic_t nic;
    char kind[16]; /* kernel's kind of a virtual device ("veth", "bridge"), or "" */
    bool loopback;
    bool has_device; /* sysfs knows a device behind it, or it lies on an RDMA device */
} r2_nic_seen_t;

/** Lists all network devices of this network namespace. @param seen_p owned by the caller:
 * free(). */
r2_status_t r2_nics_list(r2_nic_seen_t **seen_p, size_t *count_p);

/** First line of a file, without newline. @return false: no such file, or empty. */
bool r2_file_line(const char *path, char *text_p, size_t text_bytes);

/**
 * Fills in speed, PCI address, NUMA node and the RDMA device of the same PCI function.
 * @param root "" or a folder with a copy of /sys, for tests. Where that is another network
 * namespace's, nothing is filled.
 */
void r2_nic_place(const char *root, r2_nic_seen_t *seen);

/**
 * Fills in what is known of the NIC's RDMA port; if none is known, that of a NIC which is none
 * itself but lies on one (a bond, a VLAN) is found first. Speed and place too, where the NIC has
 * none of its own.
 * @param root as for r2_nic_place(). @return false: there is none.
 */
bool r2_nic_place_rdma(const char *root, r2_nic_t *nic);

/** Fills in the PCI address and NUMA node of the NIC's RDMA device, where it has none. */
void r2_nic_place_as(const char *root, r2_nic_t *nic);

/**
 * Fills in the places and RDMA ports of all NICs, as far as the selection wants to know them.
 * @param root as for r2_nic_place().
 */
void r2_nics_place(const char *root, const char *selection, r2_nic_seen_t *seen, size_t count);

/**
 * Appends the InfiniBand ports on which no network device has an IPv4 address.
 * @param root as for r2_nic_place(), which has been called for all. @param managers network devices
 * that connect requests may take, as of r2_nics_find(); "": any.
 * @return R2_OK, R2_ERR_NO_MEMORY.
 */
r2_status_t r2_nics_add_bare(const char *root, const char *managers, r2_nic_seen_t **seen_p,
                             size_t *count_p);

#define R2_RDMA_DEVICE_MAX 24  /* name, with the zero */
#define R2_RDMA_NUMBER_MAX 255 /* of a port */

/** Sets nic->rdma to the port one of whose GIDs is the NIC's. @return false: there is none. */
bool r2_rdma_below(const char *root, r2_nic_t *nic);

/**
 * Reads state, speed and addresses of a port.
 * @param nic whose GID is taken; NULL: the best of all.
 */
void r2_rdma_port_read(const char *root, const char *rdma, const r2_nic_t *nic,
                       r2_rdma_port_t *port_p);

/** What is against RDMA on a port, as far as it can be told without opening the device. */
r2_rdma_lack_t r2_rdma_lack_seen(const r2_nic_t *nic, uint64_t memlock_bytes);

/** Memory that this process may lock, in bytes; UINT64_MAX: no limit. */
uint64_t r2_memlock_bytes(void);
/** What to tell of memory that a rail's RDMA device did not take. Pure. */
void r2_rdma_refusal_advise(uint64_t memlock_bytes, uint32_t idx, const r2_nic_t *nic,
                            const r2_tp_refusal_t *refusal, r2_rdma_advice_t *advice_p);

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

/** As r2_gpus_find(), of a topology that has PCI devices and bridges. Pure. */
size_t r2_gpus_measure(hwloc_topology_t topology, const r2_nic_t *nics, size_t count,
                       r2_gpu_place_t *gpus_p);

#endif
