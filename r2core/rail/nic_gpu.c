/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Which NICs are near which GPU, by PCIe.
 */
#include "r2_config.h"

#include "rail/nic_parts.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"

#define R2_PCI_NVIDIA    0x10deu
#define R2_PCI_CLASS_VGA 0x0300u
#define R2_PCI_CLASS_3D  0x0302u
#define R2_GPU_HOPS_MAX  64u

static_assert((R2_GPU_WAY_UNKNOWN + 1) * R2_GPU_HOPS_MAX <= R2_GPU_DISTANCES, "all are below");

const char *r2_gpu_way_name(r2_gpu_way_t way)
{
    static const char *const names[] = {"switch",    "host bridge", "NUMA node",
                                        "processor", "far",         "unknown"};

    return names[way];
}

/* @return the nearest that both are below; @param hops_p bridges on the way, without that one. */
static hwloc_obj_t r2_gpu_common(hwloc_obj_t one, hwloc_obj_t other, uint32_t *hops_p)
{
    uint32_t up = 0;

    for (hwloc_obj_t above = one->parent; NULL != above; above = above->parent, ++up) {
        uint32_t down = 0;

        for (hwloc_obj_t at = other->parent; NULL != at; at = at->parent, ++down) {
            if (at == above) {
                *hops_p = r2_min(up + down, R2_GPU_HOPS_MAX - 1);
                return above;
            }
        }
    }
    return NULL;
}

static r2_gpu_way_t r2_gpu_way_through(hwloc_obj_t common)
{
    if (NULL == common) {
        return R2_GPU_WAY_UNKNOWN;
    }
    if (HWLOC_OBJ_BRIDGE == common->type) {
        return HWLOC_OBJ_BRIDGE_PCI == common->attr->bridge.upstream_type ? R2_GPU_WAY_SWITCH
                                                                          : R2_GPU_WAY_BRIDGE;
    }
    if (NULL != common->nodeset && 1 == hwloc_bitmap_weight(common->nodeset)) {
        return R2_GPU_WAY_NODE;
    }
    return NULL == common->parent ? R2_GPU_WAY_FAR : R2_GPU_WAY_PACKAGE;
}

/* How far a NIC is: by what lies between, then by bridges. @param way_p what lies between. */
static uint32_t r2_gpu_distance(hwloc_topology_t topology, hwloc_obj_t gpu, const r2_nic_t *nic,
                                r2_gpu_way_t *way_p)
{
    const hwloc_obj_t pci =
        '\0' == nic->pci[0] ? NULL : hwloc_get_pcidev_by_busidstring(topology, nic->pci);
    uint32_t hops = 0;

    *way_p = NULL == pci ? R2_GPU_WAY_UNKNOWN : r2_gpu_way_through(r2_gpu_common(gpu, pci, &hops));
    return (uint32_t) *way_p * R2_GPU_HOPS_MAX + (R2_GPU_WAY_SWITCH == *way_p ? hops : 0);
}

/** @param place_p zero before. */
static void r2_gpu_measure(hwloc_topology_t topology, hwloc_obj_t gpu, const r2_nic_t *nics,
                           size_t count, r2_gpu_place_t *place_p)
{
    const struct hwloc_pcidev_attr_s *pci = &gpu->attr->pcidev;
    uint32_t *distances = place_p->distances;

    snprintf(place_p->pci, sizeof(place_p->pci), "%04x:%02x:%02x.%01x", (unsigned) pci->domain,
             pci->bus, pci->dev, pci->func);
    for (uint32_t i = 0; i < count; ++i) { /* insertion: stable, count is small */
        uint32_t at = i;

        distances[i] = r2_gpu_distance(topology, gpu, &nics[i], &place_p->ways[i]);
        for (; at > 0 && distances[place_p->order[at - 1]] > distances[i]; --at) {
            place_p->order[at] = place_p->order[at - 1];
        }
        place_p->order[at] = i;
    }
}

static bool r2_is_gpu(hwloc_obj_t device)
{
    const struct hwloc_pcidev_attr_s *pci = &device->attr->pcidev;

    return R2_PCI_NVIDIA == pci->vendor_id &&
           (R2_PCI_CLASS_3D == pci->class_id || R2_PCI_CLASS_VGA == pci->class_id);
}

size_t r2_gpus_measure(hwloc_topology_t topology, const r2_nic_t *nics, size_t count,
                       r2_gpu_place_t *gpus_p)
{
    hwloc_obj_t device = NULL;
    size_t found = 0;

    while (found < R2_GPUS_MAX && NULL != (device = hwloc_get_next_pcidev(topology, device))) {
        r2_gpu_place_t place = {.order = {0}};
        size_t at = found;

        if (!r2_is_gpu(device)) {
            continue;
        }
        r2_gpu_measure(topology, device, nics, count, &place);
        for (; at > 0 && strcmp(gpus_p[at - 1].pci, place.pci) > 0; --at) {
            gpus_p[at] = gpus_p[at - 1];
        }
        gpus_p[at] = place;
        ++found;
    }
    return found;
}

size_t r2_gpus_find(const r2_nic_t *nics, size_t count, r2_gpu_place_t *gpus_p)
{
    hwloc_topology_t topology;
    size_t found = 0;

    if (0 != hwloc_topology_init(&topology)) {
        return 0;
    }
    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    hwloc_topology_set_type_filter(topology, HWLOC_OBJ_BRIDGE, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PCI_DEVICE,
                                   HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    if (0 == hwloc_topology_load(topology)) {
        found = r2_gpus_measure(topology, nics, count, gpus_p);
    }
    hwloc_topology_destroy(topology);
    return found;
}
