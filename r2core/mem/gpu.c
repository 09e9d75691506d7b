/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Whether this host has GPUs.
 */
#include "r2_config.h"

#include "r2/gpu.h"

#include <stddef.h>
#include <unistd.h>

#include "base/util.h"

/* NVIDIA's and AMD's drivers. What is for displays only (/dev/dri) is on many hosts that compute on
 * their cores. */
const char *r2_gpu_device(void)
{
    static const char *const devices[] = {"/dev/nvidiactl", "/dev/kfd"};

    for (size_t i = 0; i < r2_array_count(devices); ++i) {
        if (0 == access(devices[i], F_OK)) {
            return devices[i];
        }
    }
    return NULL;
}
