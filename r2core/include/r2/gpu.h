/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * GPUs of this host: whether there are any, and whether r2 can read their memory.
 */
#ifndef R2_GPU_H
#define R2_GPU_H

#include <stddef.h>

#include "r2/status.h"

#define R2_GPU_DRIVER "libcuda.so.1"

/** The device file by which programs reach this host's GPUs, "/dev/nvidiactl". @return NULL: there
 * is none. Static. */
R2_EXPORT const char *r2_gpu_device(void);

/**
 * What keeps jobs with this host from r2.
 * @param word   parameter gpu: auto, decline or ignore
 * @param text_p for the user, if it declines
 * @return R2_OK; R2_ERR_DECLINED: calls may be given memory that r2 cannot read, or the user does
 * not want r2 with GPUs.
 */
R2_EXPORT r2_status_t r2_gpu_objection(const char *word, char *text_p, size_t text_bytes);

/** "CUDA 12.0", or why memory of GPUs is not supported: no driver, or one without a device. Starts
 * the driver in this process. @return R2_OK, R2_ERR_UNSUPPORTED. */
R2_EXPORT r2_status_t r2_gpu_describe(char *text_p, size_t text_bytes);

/** Who reduces in memory of GPUs, and if it is the processor, why: r2 has no kernels, or they are
 * newer than the driver, or than a GPU. Starts the driver in this process.
 * @return R2_OK: GPUs do, or some of them; R2_ERR_UNSUPPORTED. */
R2_EXPORT r2_status_t r2_gpu_reduces(char *text_p, size_t text_bytes);

#endif
