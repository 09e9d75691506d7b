/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Kinds of memory, and contexts of the CUDA driver.
 */
#include "r2_config.h"

#include "mem/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

/* Managed memory could be touched, but its pages would come over, and kernels may be at it. */
static const r2_mem_traits_t r2_mem_kinds[R2_MEM_KIND_COUNT] = {
    [R2_MEM_HOST] = {"host", .is_cpus = true},
    [R2_MEM_DEVICE] = {"device", .is_drivers = true},
    [R2_MEM_MANAGED] = {"managed", .is_drivers = true},
    [R2_MEM_PINNED] = {"pinned", .is_cpus = true, .is_drivers = true},
};

const r2_mem_traits_t *r2_mem_traits(r2_mem_kind_t kind)
{
    return &r2_mem_kinds[kind];
}

void r2_mem_init(r2_mem_t *mem, const char *library)
{
    memset(mem, 0, sizeof(*mem));
    mem->has_trouble =
        R2_OK != r2_cuda_driver_open(library, &mem->driver, mem->trouble, sizeof(mem->trouble));
}

void r2_mem_fini(r2_mem_t *mem)
{
    for (int device = 0; device < R2_MEM_DEVICES; ++device) {
        if (NULL != mem->primary[device]) {
            (void) mem->driver.release(device);
        }
    }
    r2_cuda_driver_close(&mem->driver);
    memset(mem->primary, 0, sizeof(mem->primary));
}

r2_status_t r2_mem_check(r2_mem_t *mem, r2_cu_result_t rc, const char *call)
{
    const char *name = NULL;

    if (R2_CU_OK == rc) {
        return R2_OK;
    }
    if (R2_CU_NOT_READY == rc) {
        return R2_IN_PROGRESS;
    }
    if (!__atomic_exchange_n(&mem->has_trouble, true, __ATOMIC_RELAXED)) {
        (void) mem->driver.error_name(rc, &name);
        snprintf(mem->trouble, sizeof(mem->trouble), "%s returned %s (%d)", call,
                 NULL == name ? "an error" : name, rc);
    }
    return R2_CU_NO_MEMORY == rc ? R2_ERR_NO_MEMORY : R2_ERR_GPU;
}

/* The answers to one query of a pointer. */
typedef struct r2_mem_answers {
    unsigned type; /* 0: not the driver's */
    unsigned is_managed;
    int device;
    r2_cu_context_t context;
} r2_mem_answers_t;

static r2_mem_at_t r2_mem_place(const r2_mem_answers_t *answers)
{
    r2_mem_at_t at = {R2_MEM_HOST, R2_MEM_NO_DEVICE, NULL};

    if (R2_CU_TYPE_HOST == answers->type) {
        at.kind = R2_MEM_PINNED;
    } else if (0 != answers->is_managed) {
        at.kind = R2_MEM_MANAGED;
    } else if (R2_CU_TYPE_DEVICE == answers->type) {
        at.kind = R2_MEM_DEVICE;
    }
    if (R2_MEM_HOST != at.kind) {
        at.device = answers->device;
        at.context = answers->context;
    }
    return at;
}

r2_status_t r2_mem_look(r2_mem_t *mem, const void *at, r2_mem_at_t *at_p)
{
    r2_cu_attribute_t which[] = {R2_CU_ATTRIBUTE_MEMORY_TYPE, R2_CU_ATTRIBUTE_IS_MANAGED,
                                 R2_CU_ATTRIBUTE_DEVICE_ORDINAL, R2_CU_ATTRIBUTE_CONTEXT};
    r2_mem_answers_t answers = {0};
    void *data[] = {&answers.type, &answers.is_managed, &answers.device, &answers.context};
    r2_cu_result_t rc = R2_CU_NOT_INITIALIZED;

    if (NULL != mem->driver.library) {
        rc = mem->driver.pointer_attributes(r2_array_count(which), which, data, (uintptr_t) at);
    }
    switch (rc) {
    case R2_CU_OK:
        *at_p = r2_mem_place(&answers);
        return R2_OK;
    case R2_CU_INVALID_VALUE: /* of drivers before 7.0 */
    case R2_CU_NOT_INITIALIZED:
    case R2_CU_DEINITIALIZED:
        *at_p = r2_mem_place(&(r2_mem_answers_t){0});
        return R2_OK;
    default:
        return r2_mem_check(mem, rc, "cuPointerGetAttributes");
    }
}

bool r2_mem_piece_of(const r2_mem_t *mem, const void *at, r2_mem_piece_t *piece_p)
{
    r2_cu_attribute_t which[] = {R2_CU_ATTRIBUTE_BUFFER_ID, R2_CU_ATTRIBUTE_RANGE_START,
                                 R2_CU_ATTRIBUTE_RANGE_BYTES, R2_CU_ATTRIBUTE_IS_IPC_CAPABLE};
    int is_capable = 0;
    void *data[] = {&piece_p->id, &piece_p->start, &piece_p->bytes, &is_capable};

    memset(piece_p, 0, sizeof(*piece_p));
    return R2_CU_OK ==
               mem->driver.pointer_attributes(r2_array_count(which), which, data, (uintptr_t) at) &&
           0 != piece_p->id && 0 != is_capable;
}

uint64_t r2_mem_id(const r2_mem_t *mem, const void *at)
{
    r2_cu_attribute_t which[] = {R2_CU_ATTRIBUTE_BUFFER_ID};
    uint64_t id = 0;
    void *data[] = {&id};

    return R2_CU_OK == mem->driver.pointer_attributes(r2_array_count(which), which, data,
                                                      (uintptr_t) at)
               ? id
               : 0;
}

/* The context for calls about memory; a primary one is held until the end. */
static r2_status_t r2_mem_context(r2_mem_t *mem, const r2_mem_at_t *at, r2_cu_context_t *context_p)
{
    r2_cu_context_t held, none = NULL;
    r2_status_t status;

    if (NULL != at->context) {
        *context_p = at->context;
        return R2_OK;
    }
    if (at->device < 0 || at->device >= R2_MEM_DEVICES) {
        return R2_ERR_GPU;
    }
    held = __atomic_load_n(&mem->primary[at->device], __ATOMIC_ACQUIRE);
    if (NULL == held) {
        status =
            r2_mem_check(mem, mem->driver.retain(&held, at->device), "cuDevicePrimaryCtxRetain");
        if (R2_OK != status) {
            return status;
        }
        if (!__atomic_compare_exchange_n(&mem->primary[at->device], &none, held, false,
                                         __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            (void) mem->driver.release(at->device); /* another thread holds it */
            held = none;
        }
    }
    *context_p = held;
    return R2_OK;
}

r2_status_t r2_mem_enter(r2_mem_t *mem, const r2_mem_at_t *at)
{
    r2_cu_context_t context;
    r2_status_t status = r2_mem_context(mem, at, &context);

    if (R2_OK != status) {
        return status;
    }
    return r2_mem_check(mem, mem->driver.push(context), "cuCtxPushCurrent");
}

void r2_mem_leave(r2_mem_t *mem)
{
    r2_cu_context_t ours;

    (void) mem->driver.pop(&ours);
}

void r2_mem_pci(const r2_mem_t *mem, const r2_mem_at_t *at, char *pci_p)
{
    static const r2_cu_device_attribute_t which[] = {R2_CU_DEVICE_PCI_DOMAIN, R2_CU_DEVICE_PCI_BUS,
                                                     R2_CU_DEVICE_PCI_DEVICE};
    int parts[r2_array_count(which)] = {0};

    pci_p[0] = '\0';
    for (size_t i = 0; i < r2_array_count(which); ++i) {
        if (R2_CU_OK != mem->driver.device_attribute(&parts[i], which[i], at->device)) {
            return;
        }
    }
    snprintf(pci_p, R2_MEM_PCI_BYTES, "%04x:%02x:%02x.0", (unsigned) parts[0], (unsigned) parts[1],
             (unsigned) parts[2]);
}

/* Of drivers before 11.3 nothing is known. */
r2_mem_nics_t r2_mem_nics(const r2_mem_t *mem, const r2_mem_at_t *at)
{
    int order = 0, ways = 0;

    if (R2_CU_OK != mem->driver.device_attribute(&order, R2_CU_DEVICE_NIC_ORDER, at->device) ||
        R2_CU_OK != mem->driver.device_attribute(&ways, R2_CU_DEVICE_NIC_FLUSHES, at->device)) {
        return R2_MEM_NICS_NEVER;
    }
    if (order >= R2_CU_NIC_ORDER_ALL) {
        return R2_MEM_NICS_PLAIN;
    }
    return 0 != (ways & R2_CU_NIC_FLUSH_BY_HOST) && NULL != mem->driver.flush_nics
               ? R2_MEM_NICS_FLUSH
               : R2_MEM_NICS_NEVER;
}

r2_status_t r2_mem_flush_nics(r2_mem_t *mem, const r2_mem_at_t *at)
{
    r2_status_t status = r2_mem_enter(mem, at);

    if (R2_OK == status) {
        status = r2_mem_check(
            mem, mem->driver.flush_nics(R2_CU_NIC_FLUSH_CONTEXT, R2_CU_NIC_FLUSH_TO_ALL),
            "cuFlushGPUDirectRDMAWrites");
        r2_mem_leave(mem);
    }
    return status;
}

r2_status_t r2_mem_pin(r2_mem_t *mem, const r2_mem_at_t *at, size_t bytes, void **bytes_p)
{
    r2_status_t status = r2_mem_enter(mem, at);

    if (R2_OK == status) {
        status = r2_mem_check(mem, mem->driver.pin(bytes_p, bytes, R2_CU_HOST_PORTABLE),
                              "cuMemHostAlloc");
        r2_mem_leave(mem);
    }
    return status;
}

void r2_mem_unpin(r2_mem_t *mem, const r2_mem_at_t *at, void *bytes)
{
    if (R2_OK == r2_mem_enter(mem, at)) {
        (void) mem->driver.unpin(bytes);
        r2_mem_leave(mem);
    }
}
