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

r2_status_t r2_nics_find(const char *selection, bool without_address, r2_nic_t *nics_p,
                         size_t *count_p, char *text_p, size_t text_bytes)
{
    r2_nic_seen_t *seen = NULL;
    size_t seen_count = 0, count = 0;
    bool placed = false;
    r2_status_t status = r2_nics_list(&seen, &seen_count);

    if (R2_OK != status) {
        snprintf(text_p, text_bytes, "cannot list the NICs of this host through netlink");
        return status;
    }
    for (size_t i = 0; i < seen_count; ++i) {
        r2_nic_place("/sys", &seen[i]);
    }
    status = r2_nics_select(seen, seen_count, selection, without_address, nics_p, &count, text_p,
                            text_bytes);
    free(seen);
    if (R2_OK != status) {
        return status;
    }
    for (size_t i = 0; i < count; ++i) {
        r2_nic_place_rdma("/sys", &nics_p[i]);
        placed = placed || nics_p[i].numa_node >= 0;
    }
    if (placed) {
        r2_nics_measure_here(nics_p, count);
    }
    *count_p = count;
    return R2_OK;
}
