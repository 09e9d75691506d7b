/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Devices.
 */
#include "fakecuda/lib/fc.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

bool fc_is_device_index(CUdevice device)
{
    return device >= 0 && (uint64_t) device < fc.devices;
}

/* Begins a call about a device. */
static CUresult enter(fc_call_t call, CUdevice device)
{
    CUresult rc = fc_enter(call);

    return CUDA_SUCCESS == rc && !fc_is_device_index(device) ? CUDA_ERROR_INVALID_DEVICE : rc;
}

CUresult cuDeviceGetCount(int *count_p)
{
    CUresult rc = fc_enter(FC_CALL_cuDeviceGetCount);

    if (CUDA_SUCCESS == rc) {
        *count_p = (int) fc.devices;
    }
    return fc_leave(rc);
}

CUresult cuDeviceGet(CUdevice *device_p, int ordinal)
{
    CUresult rc = enter(FC_CALL_cuDeviceGet, ordinal);

    if (CUDA_SUCCESS == rc) {
        *device_p = ordinal;
    }
    return fc_leave(rc);
}

CUresult cuDeviceGetName(char *name, int room, CUdevice device)
{
    CUresult rc = enter(FC_CALL_cuDeviceGetName, device);

    if (CUDA_SUCCESS == rc) {
        snprintf(name, (size_t) room, "fakecuda device %d", device);
    }
    return fc_leave(rc);
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid_p, CUdevice device)
{
    CUresult rc = enter(FC_CALL_cuDeviceGetUuid_v2, device);

    if (CUDA_SUCCESS == rc) {
        memset(uuid_p->bytes, 0xfc, sizeof(uuid_p->bytes));
        memcpy(uuid_p->bytes, fc.pci[device], strlen(fc.pci[device]));
    }
    return fc_leave(rc);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes_p, CUdevice device)
{
    CUresult rc = enter(FC_CALL_cuDeviceTotalMem_v2, device);

    if (CUDA_SUCCESS == rc) {
        *bytes_p = fc.memory;
    }
    return fc_leave(rc);
}

CUresult cuDeviceGetPCIBusId(char *id, int room, CUdevice device)
{
    CUresult rc = enter(FC_CALL_cuDeviceGetPCIBusId, device);

    if (CUDA_SUCCESS == rc) {
        snprintf(id, (size_t) room, "%s", fc.pci[device]);
    }
    return fc_leave(rc);
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device_p, const char *id)
{
    CUresult rc = fc_enter(FC_CALL_cuDeviceGetByPCIBusId);

    if (CUDA_SUCCESS == rc) {
        rc = CUDA_ERROR_INVALID_VALUE;
        for (int i = 0; fc_is_device_index(i); ++i) {
            if (0 == strcasecmp(id, fc.pci[i])) {
                *device_p = i;
                rc = CUDA_SUCCESS;
            }
        }
    }
    return fc_leave(rc);
}

CUresult cuDeviceCanAccessPeer(int *can_p, CUdevice device, CUdevice peer)
{
    CUresult rc = enter(FC_CALL_cuDeviceCanAccessPeer, device);

    if (CUDA_SUCCESS == rc) {
        *can_p = device != peer && fc_is_device_index(peer);
    }
    return fc_leave(rc);
}

/* @param place_p domain, bus, device */
static void pci_place(CUdevice device, unsigned place_p[3])
{
    memset(place_p, 0, 3 * sizeof(*place_p));
    sscanf(fc.pci[device], "%x:%x:%x", &place_p[0], &place_p[1], &place_p[2]);
}

static CUresult nic_order(int *value_p)
{
    *value_p = (int) fc.nic_order;
    return fc.nic_order > CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES ? CUDA_ERROR_INVALID_VALUE
                                                                         : CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value_p, CUdevice_attribute which, CUdevice device)
{
    static const struct {
        CUdevice_attribute which;
        int value;
    } values[] = {
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 4},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
        {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
        {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
        {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
        {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS,
         CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST},
    };
    CUresult rc = enter(FC_CALL_cuDeviceGetAttribute, device);
    unsigned place[3];

    if (CUDA_SUCCESS != rc) {
        return fc_leave(rc);
    }
    pci_place(device, place);
    *value_p = 0;
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); ++i) {
        *value_p = which == values[i].which ? values[i].value : *value_p;
    }
    switch (which) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value_p = (int) fc.sm / 10;
        break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value_p = (int) fc.sm % 10;
        break;
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING:
        rc = nic_order(value_p);
        break;
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
        *value_p = (int) place[0];
        break;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        *value_p = (int) place[1];
        break;
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
        *value_p = (int) place[2];
        break;
    default:
        break;
    }
    return fc_leave(rc);
}
