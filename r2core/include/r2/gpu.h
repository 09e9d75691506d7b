/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * GPUs of this host: only whether there are any. r2 cannot read their memory.
 */
#ifndef R2_GPU_H
#define R2_GPU_H

#include "r2/status.h"

/** The device file by which programs reach this host's GPUs, "/dev/nvidiactl". @return NULL: there
 * is none. Static. */
R2_EXPORT const char *r2_gpu_device(void);

#endif
