/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Finds the NICs of this host that become rails.
 */
#include "r2_config.h"

#include "rail/nic_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "r2/params.h"

/**
 * Distances on this machine. Devices are not asked of hwloc (slow with many ranks): sysfs has told
 * the NUMA node. Nodes outside of this process's cgroup are needed too. Errors leave distances at
 * 0.
 */
static void r2_nics_measure_here(r2_nic_t *nics, size_t count)
{
    hwloc_topology_t topology;
    hwloc_bitmap_t cores;

    if (0 != hwloc_topology_init(&topology)) {
        return;
    }
    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    cores = hwloc_bitmap_alloc();
    if (NULL != cores && 0 == hwloc_topology_load(topology)) {
        if (0 != hwloc_get_cpubind(topology, cores, HWLOC_CPUBIND_PROCESS)) {
            hwloc_bitmap_copy(cores, hwloc_topology_get_topology_cpuset(topology));
        }
        r2_nics_measure(topology, cores, nics, count);
    }
    hwloc_bitmap_free(cores);
    hwloc_topology_destroy(topology);
}

/* True for what lies on another device, which may be an RDMA device. */
static bool r2_nic_lies_on_other(const r2_nic_seen_t *seen)
{
    static const char *const kinds[] = {"bond", "team", "vlan", "macvlan", "ipvlan", "ipoib"};

    for (size_t i = 0; i < r2_array_count(kinds); ++i) {
        if (0 == strcmp(kinds[i], seen->kind)) {
            return true;
        }
    }
    return false;
}

void r2_nics_place(const char *root, const char *selection, r2_nic_seen_t *seen, size_t count)
{
    const bool by_port = NULL != strchr(selection, ':');

    for (size_t i = 0; i < count; ++i) {
        const bool other = r2_nic_lies_on_other(&seen[i]);

        r2_nic_place(root, &seen[i]);
        /* Whether it lies on one is looked up where it counts: that takes a thousand files. */
        if (('\0' != seen[i].nic.rdma[0] || ((other || by_port) && !seen[i].loopback)) &&
            r2_nic_place_rdma(root, &seen[i].nic)) {
            seen[i].has_device = seen[i].has_device || other;
        }
    }
}

/* @param managers NULL: no ports without IP. */
static r2_status_t r2_nics_find_all(const char *selection, bool without_address,
                                    const char *managers, r2_nic_t *nics_p, size_t *count_p,
                                    char *text_p, size_t text_bytes)
{
    r2_nic_seen_t *seen = NULL;
    size_t seen_count = 0, count = 0;
    bool placed = false;
    r2_status_t status = r2_nics_list(&seen, &seen_count);

    if (R2_OK != status) {
        snprintf(text_p, text_bytes, "cannot list the NICs of this host through netlink");
        return status;
    }
    r2_nics_place("", selection, seen, seen_count);
    if (NULL != managers && NULL != strchr(selection, ':')) { /* they are rails by name alone */
        status = r2_nics_add_bare("", managers, &seen, &seen_count);
    }
    if (R2_OK == status) {
        status = r2_nics_select(seen, seen_count, selection, without_address, nics_p, &count,
                                text_p, text_bytes);
    }
    free(seen);
    if (R2_OK != status) {
        return status;
    }
    for (size_t i = 0; i < count; ++i) {
        if ('\0' == nics_p[i].rdma[0]) {
            (void) r2_nic_place_rdma("", &nics_p[i]);
        }
        placed = placed || nics_p[i].numa_node >= 0;
    }
    if (placed) {
        r2_nics_measure_here(nics_p, count);
    }
    *count_p = count;
    return R2_OK;
}

r2_status_t r2_nics_find(const char *selection, bool without_address, r2_nic_t *nics_p,
                         size_t *count_p, char *text_p, size_t text_bytes)
{
    return r2_nics_find_all(selection, without_address, NULL, nics_p, count_p, text_p, text_bytes);
}

r2_status_t r2_nics_find_rails(const r2_params_t *params, r2_nic_t *nics_p, size_t *count_p,
                               char *text_p, size_t text_bytes)
{
    const bool is_tcp = '\0' == r2_rdma_tls(params->tls, 0)[0];

    return r2_nics_find_all(params->rails, params->address_family_any,
                            is_tcp ? NULL : params->oob_nics, nics_p, count_p, text_p, text_bytes);
}
