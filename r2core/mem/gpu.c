/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Whether this host has GPUs, and a driver that r2 can use.
 */
#include "r2_config.h"

#include "r2/gpu.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "mem/cuda_driver.h"
#include "mem/kernels.h"

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

/* Which programs do, and r2 never does in a job. */
static r2_cu_result_t r2_gpu_start(const r2_cuda_driver_t *driver)
{
    void *symbol = dlsym(driver->library, "cuInit");
    r2_cu_result_t (*init)(unsigned flags);

    memcpy(&init, &symbol, sizeof(init));
    return NULL == symbol ? R2_CU_NOT_INITIALIZED : init(0);
}

r2_status_t r2_gpu_describe(char *text_p, size_t text_bytes)
{
    r2_cuda_driver_t driver = {.library = NULL};
    const char *name = NULL;
    r2_cu_result_t rc;
    int version = 0;

    if (R2_OK != r2_cuda_driver_open(R2_GPU_DRIVER, &driver, text_p, text_bytes)) {
        return R2_ERR_UNSUPPORTED;
    }
    (void) driver.version(&version); /* 12040: 12.4 */
    rc = r2_gpu_start(&driver);
    if (R2_CU_OK == rc) {
        snprintf(text_p, text_bytes, "CUDA %d.%d", version / 1000, version % 1000 / 10);
    } else {
        (void) driver.error_name(rc, &name);
        snprintf(text_p, text_bytes, "CUDA %d.%d, which does not start: %s (%d)", version / 1000,
                 version % 1000 / 10, NULL == name ? "an error" : name, rc);
    }
    r2_cuda_driver_close(&driver);
    return R2_CU_OK == rc ? R2_OK : R2_ERR_UNSUPPORTED;
}

/** GPUs, and those of them that are older than the kernels. */
typedef struct gpu_ages {
    int devices, older;
    int first, first_sm; /* of those: the first one */
} gpu_ages_t;

static void r2_gpu_ages(const r2_cuda_driver_t *driver, int least, gpu_ages_t *ages)
{
    int major, minor;

    if (R2_CU_OK != r2_gpu_start(driver)) {
        return;
    }
    while (R2_CU_OK == driver->device_attribute(&major, R2_CU_DEVICE_SM_MAJOR, ages->devices) &&
           R2_CU_OK == driver->device_attribute(&minor, R2_CU_DEVICE_SM_MINOR, ages->devices)) {
        const int sm = 10 * major + minor;

        if (sm < least && 0 == ages->older++) {
            ages->first = ages->devices;
            ages->first_sm = sm;
        }
        ++ages->devices;
    }
}

r2_status_t r2_gpu_reduces(char *text_p, size_t text_bytes)
{
    const int least = r2_kernels_driver();
    r2_cuda_driver_t driver = {.library = NULL};
    gpu_ages_t ages = {0};
    int version = least, used;
    char why[160];

    if (NULL != r2_kernels_missing()) {
        snprintf(text_p, text_bytes, "%s", r2_kernels_missing());
        return R2_ERR_UNSUPPORTED;
    }
    if (R2_OK == r2_cuda_driver_open(R2_GPU_DRIVER, &driver, why, sizeof(why))) {
        (void) driver.version(&version);
        r2_gpu_ages(&driver, r2_kernels_sm(), &ages);
        r2_cuda_driver_close(&driver);
    }
    if (version < least) {
        snprintf(text_p, text_bytes,
                 "by the processor: kernels need CUDA %d.%d, and the driver has %d.%d",
                 least / 1000, least % 1000 / 10, version / 1000, version % 1000 / 10);
        return R2_ERR_UNSUPPORTED;
    }
    if (ages.older > 0 && ages.older == ages.devices) {
        snprintf(text_p, text_bytes,
                 "by the processor: kernels need sm_%d, and device %d has sm_%d", r2_kernels_sm(),
                 ages.first, ages.first_sm);
        return R2_ERR_UNSUPPORTED;
    }
    used = snprintf(text_p, text_bytes, "by the GPU, from coll_r2_gpu_reduce_bytes on");
    if (ages.older > 0 && used < (int) text_bytes) {
        snprintf(
            text_p + used, text_bytes - (size_t) used,
            "; on %d of %d devices by the processor: kernels need sm_%d, and device %d has sm_%d",
            ages.older, ages.devices, r2_kernels_sm(), ages.first, ages.first_sm);
    }
    return R2_OK;
}
