/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Which rail takes what lies on a GPU: the nearest of those that are done as soon.
 */
#ifndef R2_NEAR_H
#define R2_NEAR_H

#include "r2/nic.h"

/** How near rails are, by index: 0 the nearest, equal numbers equally near. */
typedef struct r2_near {
    uint8_t steps[R2_RAILS_MAX];
    bool tells; /* not all rails are equally near */
} r2_near_t;

/** The rails of a GPU, for what NICs read in its memory and for pinned copies of that. */
typedef struct r2_near_gpu {
    char pci[32]; /* "0000:07:00.0" */
    r2_near_t itself, copies;
} r2_near_gpu_t;

/** Those of a host. */
typedef struct r2_near_gpus {
    r2_near_gpu_t of[R2_GPUS_MAX];
    size_t count;
} r2_near_gpus_t;

/**
 * How near the rails are to GPUs. Pinned copies lie where the driver puts what this process asks
 * for, near the cores it runs on: rails are near them by their distance from those; of rails
 * equally far, as those of a process that is not bound to cores, by the GPU's.
 * @param places as r2_gpus_find() has them. @param gpus_p gets as many.
 */
void r2_near_find(const r2_nic_t *nics, size_t nic_count, const r2_gpu_place_t *places,
                  size_t place_count, r2_near_gpus_t *gpus_p);

/** @return a GPU's rails; NULL: it is not known, or they are all as near to both. */
const r2_near_gpu_t *r2_near_of(const r2_near_gpus_t *gpus, const char *pci);

/** What is under way on a lane, and on its rail to all peers, and how near the rail is. */
typedef struct r2_near_lane {
    uint64_t under_way_bytes, rail_bytes;
    uint8_t step;
} r2_near_lane_t;

#define R2_NEAR_PARTS 16u /* so many of a chunk's time is the same time */

/**
 * True if a chunk goes by lane a, and not by b, of two that are as fast: a has less under way, or
 * as much and its rail has less, or as much and it is nearer. As much is the same number of whole
 * R2_NEAR_PARTS of the chunk: no lane that is done sooner by one of them idles for a nearer one.
 */
bool r2_near_is_first(const r2_near_lane_t *a, const r2_near_lane_t *b, uint64_t chunk_bytes);

#endif
