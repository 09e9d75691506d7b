/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The CUDA driver's library: the only file that opens it.
 */
#include "r2_config.h"

#include "mem/cuda_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

typedef struct r2_cuda_symbol {
    const char *name;
    size_t offset_bytes; /* of its pointer in r2_cuda_driver_t */
} r2_cuda_symbol_t;

static const r2_cuda_symbol_t r2_cuda_symbols[] = {
#define R2_CUDA_TYPE(ours, as, theirs)
#define R2_CUDA_VALUE(ours, value, theirs)
#define R2_CUDA_FN(field, symbol, params) {#symbol, offsetof(r2_cuda_driver_t, field)},
#include "mem/cuda_api.def"
#undef R2_CUDA_TYPE
#undef R2_CUDA_VALUE
#undef R2_CUDA_FN
};

/* Drivers before CUDA 11 have some of the first under older names: all or none. Those before 11.3
 * lack the second. */
static bool r2_cuda_is_optional(const char *name)
{
    return 0 == strncmp(name, "cuIpc", sizeof("cuIpc") - 1) ||
           0 == strcmp(name, "cuFlushGPUDirectRDMAWrites");
}

static void r2_cuda_driver_settle(r2_cuda_driver_t *driver)
{
    if (NULL == driver->ipc_get || NULL == driver->ipc_open || NULL == driver->ipc_close) {
        driver->ipc_get = NULL;
        driver->ipc_open = NULL;
        driver->ipc_close = NULL;
    }
}

r2_status_t r2_cuda_driver_open(const char *name, r2_cuda_driver_t *driver_p, char *text_p,
                                size_t text_bytes)
{
    r2_cuda_driver_t driver;
    const char *error;

    memset(&driver, 0, sizeof(driver));
    driver.library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (NULL == driver.library) {
        error = dlerror();
        snprintf(text_p, text_bytes, "%s", NULL == error ? name : error);
        return R2_ERR_NOT_FOUND;
    }
    for (size_t i = 0; i < r2_array_count(r2_cuda_symbols); ++i) {
        void *symbol = dlsym(driver.library, r2_cuda_symbols[i].name);

        if (NULL == symbol && !r2_cuda_is_optional(r2_cuda_symbols[i].name)) {
            snprintf(text_p, text_bytes, "%s has no %s: the driver is too old", name,
                     r2_cuda_symbols[i].name);
            r2_cuda_driver_close(&driver);
            return R2_ERR_UNSUPPORTED;
        }
        memcpy((char *) &driver + r2_cuda_symbols[i].offset_bytes, &symbol, sizeof(symbol));
    }
    r2_cuda_driver_settle(&driver);
    *driver_p = driver;
    return R2_OK;
}

void r2_cuda_driver_close(r2_cuda_driver_t *driver)
{
    if (NULL != driver->library) {
        dlclose(driver->library);
    }
    memset(driver, 0, sizeof(*driver));
}
