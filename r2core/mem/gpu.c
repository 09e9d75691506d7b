/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Whether this host has GPUs, and a driver that r2 can use.
 */
#include "r2_config.h"

#include "r2/gpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "mem/cuda_driver.h"

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

/* A driver that is not there is no objection: nobody in this container reaches the GPU. */
r2_status_t r2_gpu_objection(const char *word, char *text_p, size_t text_bytes)
{
    const char *device = 0 == strcmp(word, "ignore") ? NULL : r2_gpu_device();
    r2_cuda_driver_t driver = {.library = NULL};
    char why[160] = "its driver is not CUDA's";
    bool readable = false;

    if (NULL == device) {
        return R2_OK;
    }
    if (NULL != strstr(device, "nvidia")) {
        readable =
            R2_ERR_UNSUPPORTED != r2_cuda_driver_open(R2_GPU_DRIVER, &driver, why, sizeof(why));
        r2_cuda_driver_close(&driver);
    }
    if (readable && 0 != strcmp(word, "decline")) {
        return R2_OK;
    }
    snprintf(text_p, text_bytes,
             "there is a GPU (%s), %s%s; coll_r2_gpu=ignore is for jobs that never give its memory "
             "to MPI",
             device, readable ? "and coll_r2_gpu=decline" : "whose memory r2 cannot read: ",
             readable ? "" : why);
    return R2_ERR_DECLINED;
}

r2_status_t r2_gpu_describe(char *text_p, size_t text_bytes)
{
    r2_cuda_driver_t driver = {.library = NULL};
    int version = 0;

    if (R2_OK != r2_cuda_driver_open(R2_GPU_DRIVER, &driver, text_p, text_bytes)) {
        return R2_ERR_UNSUPPORTED;
    }
    (void) driver.version(&version); /* 12040: 12.4 */
    snprintf(text_p, text_bytes, "CUDA %d.%d", version / 1000, version % 1000 / 10);
    r2_cuda_driver_close(&driver);
    return R2_OK;
}
