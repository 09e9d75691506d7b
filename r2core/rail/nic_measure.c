/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Distance of NICs from this process's cores, and the failover chain.
 */
#include "r2_config.h"

#include "rail/nic_parts.h"

#include <hwloc/distances.h>

#include "base/util.h"

/** What distances are made of, looked up once. */
typedef struct r2_nic_map {
    hwloc_topology_t topology;           /* borrowed */
    hwloc_const_cpuset_t cores;          /* borrowed: of this process */
    hwloc_nodeset_t home;                /* owned: NUMA nodes of these cores */
    struct hwloc_distances_s *latencies; /* owned: firmware's table; NULL: none */
} r2_nic_map_t;

/** The NUMA nodes next to a NIC. @return borrowed from the topology; NULL: not known. */
static hwloc_obj_t r2_nic_neighbour(hwloc_topology_t topology, const r2_nic_t *nic)
{
    hwloc_obj_t pci = NULL;

    if ('\0' != nic->pci[0]) {
        pci = hwloc_get_pcidev_by_busidstring(topology, nic->pci);
    }
    if (NULL != pci) {
        return hwloc_get_non_io_ancestor_obj(topology, pci);
    }
    if (nic->numa_node < 0) {
        return NULL;
    }
    return hwloc_get_numanode_obj_by_os_index(topology, (unsigned) nic->numa_node);
}

static uint32_t r2_nic_by_table(const r2_nic_map_t *map, hwloc_const_nodeset_t nodes)
{
    struct hwloc_distances_s *table = map->latencies;
    uint64_t best = R2_NIC_DISTANCE_UNKNOWN - 1;

    for (unsigned i = 0; i < table->nbobjs; ++i) {
        if (!hwloc_bitmap_isset(map->home, table->objs[i]->os_index)) {
            continue;
        }
        for (unsigned j = 0; j < table->nbobjs; ++j) {
            const uint64_t own = table->values[i * table->nbobjs + i];
            const uint64_t far = table->values[i * table->nbobjs + j];

            if (hwloc_bitmap_isset(nodes, table->objs[j]->os_index)) {
                best = r2_min(best, far > own ? far - own : 1);
            }
        }
    }
    return (uint32_t) best;
}

/** 1: in a package that has cores of ours; 2: elsewhere. */
static uint32_t r2_nic_by_package(const r2_nic_map_t *map, hwloc_const_cpuset_t near)
{
    hwloc_obj_t package = NULL;

    while (NULL !=
           (package = hwloc_get_next_obj_by_type(map->topology, HWLOC_OBJ_PACKAGE, package))) {
        if (hwloc_bitmap_intersects(package->cpuset, map->cores) &&
            hwloc_bitmap_intersects(package->cpuset, near)) {
            return 1;
        }
    }
    return 2;
}

static void r2_nic_measure(const r2_nic_map_t *map, r2_nic_t *nic)
{
    const int nodes = hwloc_get_nbobjs_by_type(map->topology, HWLOC_OBJ_NUMANODE);
    const hwloc_obj_t near = r2_nic_neighbour(map->topology, nic);

    if (nodes <= 1) {
        nic->distance = 0;
        return;
    }
    if (NULL == near || NULL == near->nodeset || hwloc_bitmap_iszero(near->nodeset)) {
        nic->distance = R2_NIC_DISTANCE_UNKNOWN;
        return;
    }
    if (nic->numa_node < 0 && 1 == hwloc_bitmap_weight(near->nodeset)) {
        nic->numa_node = hwloc_bitmap_first(near->nodeset);
    }
    if (hwloc_bitmap_intersects(near->nodeset, map->home)) {
        nic->distance = 0;
    } else if (NULL != map->latencies) {
        nic->distance = r2_nic_by_table(map, near->nodeset);
    } else {
        nic->distance = r2_nic_by_package(map, near->cpuset);
    }
}

void r2_nics_measure(hwloc_topology_t topology, hwloc_const_cpuset_t cores, r2_nic_t *nics,
                     size_t count)
{
    r2_nic_map_t map = {.topology = topology, .cores = cores, .home = hwloc_bitmap_alloc()};
    unsigned tables = 1;

    if (NULL == map.home) {
        return;
    }
    hwloc_cpuset_to_nodeset(topology, cores, map.home);
    if (0 != hwloc_distances_get_by_name(topology, "NUMALatency", &tables, &map.latencies, 0) ||
        0 == tables) {
        map.latencies = NULL;
    }
    for (size_t i = 0; i < count; ++i) {
        r2_nic_measure(&map, &nics[i]);
    }
    if (NULL != map.latencies) {
        hwloc_distances_release(topology, map.latencies);
    }
    hwloc_bitmap_free(map.home);
}

void r2_nics_chain(const r2_nic_t *nics, size_t count, uint32_t *order_p)
{
    for (uint32_t i = 0; i < count; ++i) { /* insertion: stable, count is small */
        uint32_t at = i;

        while (at > 0 && nics[order_p[at - 1]].distance > nics[i].distance) {
            order_p[at] = order_p[at - 1];
            --at;
        }
        order_p[at] = i;
    }
}
