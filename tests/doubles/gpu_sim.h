/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A GPU of the simulator: the driver's copies in virtual time. For the time that copies take; what
 * is wrong in the use of a driver tests/fakecuda finds.
 */
#ifndef R2_DOUBLES_GPU_SIM_H
#define R2_DOUBLES_GPU_SIM_H

#include <stdint.h>

#include "base/clock.h"
#include "mem/cuda_driver.h"
#include "r2/mem_kind.h"

/*
 * Each stream copies at the rate, one copy after the other. Bytes are where they belong when the
 * driver has said that they are, not before.
 */

typedef struct r2_gpu_sim r2_gpu_sim_t;

/** What GPUs have copied since the process began. */
typedef struct r2_gpu_sim_stats {
    uint64_t copies, bytes;
    uint64_t flushes; /* of what NICs have written */
} r2_gpu_sim_stats_t;

/** @param clock borrowed @return NULL: out of memory. */
r2_gpu_sim_t *r2_gpu_sim_create(const r2_clock_t *clock, uint64_t bytes_per_s);
/** Nobody has a stream of it. NULL: nothing. */
void r2_gpu_sim_destroy(r2_gpu_sim_t *gpu);

/** The driver of all GPUs; its library is the program. */
void r2_gpu_sim_driver(r2_cuda_driver_t *driver_p);
/** Any memory is this GPU's. */
r2_mem_at_t r2_gpu_sim_memory(r2_gpu_sim_t *gpu);
/** When the next copy ends; R2_NEVER_NS: all have. */
uint64_t r2_gpu_sim_deadline_ns(const r2_gpu_sim_t *gpu);
r2_gpu_sim_stats_t r2_gpu_sim_stats(void);

#endif
