/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Kinds of memory that buffers are in.
 */
#ifndef R2_MEM_KIND_H
#define R2_MEM_KIND_H

/** What may read and write memory depends on its kind. */
typedef enum r2_mem_kind {
    R2_MEM_HOST,
    R2_MEM_RATED_COUNT, /* of kinds that cost parameters have a rate of reductions for */
    R2_MEM_DEVICE = R2_MEM_RATED_COUNT, /* of a GPU: not even readable by the CPU */
    R2_MEM_MANAGED, /* moves between GPU and host as they touch it */
    R2_MEM_PINNED,  /* of the host, known to the GPU's driver */
    R2_MEM_KIND_COUNT
} r2_mem_kind_t;

enum { R2_MEM_NO_DEVICE = -1 };

/** Where a buffer is. Plain value; zeros are memory of the host. */
typedef struct r2_mem_at {
    r2_mem_kind_t kind;
    int device;                    /* R2_MEM_NO_DEVICE: pageable */
    struct r2_cu_context *context; /* for calls about it; NULL: the primary one of the device */
} r2_mem_at_t;

#endif
