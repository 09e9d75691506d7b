/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What memory a pointer leads to, and the calls about it: kinds of memory, contexts of the CUDA
 * driver, pinned memory.
 *
 * Everything is host memory in a process that has no driver, or has not called cuInit(): then no
 * pointer is a device's. r2 never calls it. Nothing is remembered of pointers, so nothing can go
 * stale when memory is freed and its address used again: a query takes less than a microsecond.
 *
 * All but r2_mem_init() and r2_mem_fini() may be called by any thread.
 */
#ifndef R2_MEM_MEM_H
#define R2_MEM_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mem/cuda_driver.h"
#include "r2/mem_kind.h"
#include "r2/status.h"

enum { R2_MEM_DEVICES = 64 };

/** What kinds of memory allow. */
typedef struct r2_mem_traits {
    const char *name;
    bool is_cpus;    /* r2's own code and NICs read and write it in place */
    bool is_drivers; /* the driver knows it: its copies are asynchronous */
} r2_mem_traits_t;

typedef struct r2_mem {
    r2_cuda_driver_t driver;
    r2_cu_context_t primary[R2_MEM_DEVICES]; /* atomic: those that r2 holds */
    bool has_trouble;                        /* atomic: whoever sets it writes the text */
    char trouble[128];                       /* why there is no driver, or its first error; "" */
} r2_mem_t;

/** Opens the driver's library, where there is one. @param library "libcuda.so.1" */
void r2_mem_init(r2_mem_t *mem, const char *library);
void r2_mem_fini(r2_mem_t *mem);

/** @return what a kind allows; static. */
const r2_mem_traits_t *r2_mem_traits(r2_mem_kind_t kind);

/** What memory a pointer leads to, by one query of the driver, whatever was there before.
 * @param at    of the first byte that is there: a buffer's start may lie before it
 * @return R2_OK; R2_ERR_GPU: the driver has failed, so the memory may be a device's. */
r2_status_t r2_mem_look(r2_mem_t *mem, const void *at, r2_mem_at_t *at_p);

/** An allocation of cuMemAlloc(). */
typedef struct r2_mem_piece {
    uint64_t id; /* that no other of this process has or will have */
    r2_cu_at_t start;
    size_t bytes;
} r2_mem_piece_t;

/** What allocation a pointer leads to, by one query of the driver. @return false: to none that
 * other processes and NICs may have, as those of pools and those mapped by pieces. */
bool r2_mem_piece_of(const r2_mem_t *mem, const void *at, r2_mem_piece_t *piece_p);

/** @return what the driver calls the memory at an address, which no other of this process has or
 * will have; 0: it is not the driver's, or the driver does not say. */
uint64_t r2_mem_id(const r2_mem_t *mem, const void *at);

#define R2_MEM_PCI_BYTES 32
/** The PCI address of a device, "0000:07:00.0"; "": the driver does not say. @param at memory of a
 * device @param pci_p R2_MEM_PCI_BYTES */
void r2_mem_pci(const r2_mem_t *mem, const r2_mem_at_t *at, char *pci_p);

/** How a device sees what NICs have written to its memory. */
typedef enum r2_mem_nics {
    R2_MEM_NICS_NEVER, /* it may not, or the driver is too old to say: NICs are not to write */
    R2_MEM_NICS_FLUSH, /* behind r2_mem_flush_nics() */
    R2_MEM_NICS_PLAIN  /* once the CPU knows that it was written */
} r2_mem_nics_t;

/** @param at memory of a device */
r2_mem_nics_t r2_mem_nics(const r2_mem_t *mem, const r2_mem_at_t *at);
/** All devices see what NICs have written so far to memory of a context. Takes microseconds.
 * @return R2_OK; R2_ERR_GPU. */
r2_status_t r2_mem_flush_nics(r2_mem_t *mem, const r2_mem_at_t *at);

/** Makes the context of memory that is_drivers the current one of this thread; r2_mem_leave()
 * restores what the application had. @return R2_OK; R2_ERR_GPU, and nothing to leave. */
r2_status_t r2_mem_enter(r2_mem_t *mem, const r2_mem_at_t *at);
void r2_mem_leave(r2_mem_t *mem);

/** Pinned memory for copies to and from memory at a place, and for NICs.
 * @param bytes_p  owned by the caller until r2_mem_unpin()
 * @return R2_OK; R2_ERR_NO_MEMORY, R2_ERR_GPU. */
r2_status_t r2_mem_pin(r2_mem_t *mem, const r2_mem_at_t *at, size_t bytes, void **bytes_p);
void r2_mem_unpin(r2_mem_t *mem, const r2_mem_at_t *at, void *bytes);

/** The status for what the driver returned by `call`; notes the first error. */
r2_status_t r2_mem_check(r2_mem_t *mem, r2_cu_result_t rc, const char *call);

#endif
