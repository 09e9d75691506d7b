/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * How fast the GPU of a host copies and reduces: for r2_info.
 */
#ifndef R2_GPU_RATES_H
#define R2_GPU_RATES_H

#include <stddef.h>
#include <stdint.h>

#include "r2/device_cost.h"
#include "r2/status.h"

/** Bytes per second of memory that is read and written; 0: not measured. */
typedef struct r2_gpu_rates {
    uint64_t
        copy_inside;  /* from memory of the device to memory of the device: each byte is twice */
    uint64_t copy_on; /* from pinned memory onto the device: once */
    uint64_t copy_off;
    uint64_t sum_float; /* by r2's kernel, in place: each byte three times */
    uint64_t sum_bfloat16;
    /* as a process of a job measures it, and this host's reductions; zeros: not measured */
    r2_device_rates_t job;
    uint64_t job_ns;       /* that took so long, beside what setting up takes */
    uint64_t job_limit_ns; /* after which a job gives up, and knows none of it */
    /* what a job has for coll_r2_gpu_reduce_bytes=auto, R2_DEVICE_NEVER_BYTES: the processor
     * reduces all; 0: there are no kernels */
    uint64_t job_from_bytes;
} r2_gpu_rates_t;

/**
 * Measures the device of a number, in buffers of so many bytes. Starts the CUDA driver in this
 * process. Takes seconds.
 * @param bytes  a multiple of 64
 * @param text_p why not; or why kernels were not measured, else ""
 * @return R2_OK; R2_ERR_NOT_FOUND (there is no driver or no such device), R2_ERR_UNSUPPORTED (it
 * is too old), R2_ERR_NO_MEMORY, R2_ERR_GPU.
 */
R2_EXPORT r2_status_t r2_gpu_measure(int device, size_t bytes, r2_gpu_rates_t *rates_p,
                                     char *text_p, size_t text_bytes);

#endif
