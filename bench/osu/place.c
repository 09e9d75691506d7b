/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Memory of GPUs, by the CUDA driver.
 */
#include "r2_config.h"

#include "place.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "run.h"

#define LIBRARY "libcuda.so.1"

enum {
    CUDA_OK = 0,
    ATTACH_GLOBAL = 1, /* managed memory that any stream may use */
};

typedef int r2_bench_cu_result_t;
typedef unsigned long long r2_bench_cu_at_t;
typedef void *r2_bench_cu_context_t;

/* The driver of this process. */
typedef struct driver {
    void *library; /* owned; NULL: not open */
    int device;    /* whose primary context is held, or -1 */
#define R2_BENCH_CUDA(field, symbol, params) r2_bench_cu_result_t(*field) params;
#include "cuda.def"
#undef R2_BENCH_CUDA
} driver_t;

static driver_t driver = {.device = -1};

static const struct {
    const char *name;
    size_t offset_bytes; /* of its pointer in driver_t */
} symbols[] = {
#define R2_BENCH_CUDA(field, symbol, params) {#symbol, offsetof(driver_t, field)},
#include "cuda.def"
#undef R2_BENCH_CUDA
};

static const char *const names[] = {
    [R2_BENCH_IN_HOST] = "host",
    [R2_BENCH_IN_DEVICE] = "cuda",
    [R2_BENCH_IN_MANAGED] = "managed",
};

bool r2_bench_place_find(const char *name, r2_bench_place_t *place_p)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        if (0 == strcmp(name, names[i])) {
            *place_p = (r2_bench_place_t) i;
            return true;
        }
    }
    return false;
}

const char *r2_bench_place_name(r2_bench_place_t place)
{
    return names[place];
}

static const char *error_name(r2_bench_cu_result_t rc)
{
    const char *name = NULL;

    (void) driver.error_name(rc, &name);
    return NULL == name ? "an error" : name;
}

/* @return true if the call went well, else *text_p says which one did not. */
static bool went_well(r2_bench_cu_result_t rc, const char *call, char *text_p, size_t text_bytes)
{
    if (CUDA_OK != rc) {
        snprintf(text_p, text_bytes, "%s returned %s (%d)", call, error_name(rc), rc);
    }
    return CUDA_OK == rc;
}

static bool load(char *text_p, size_t text_bytes)
{
    const char *error;

    driver.library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (NULL == driver.library) {
        error = dlerror();
        snprintf(text_p, text_bytes, "there is no CUDA driver: %s", NULL == error ? "" : error);
        return false;
    }
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); ++i) {
        void *symbol = dlsym(driver.library, symbols[i].name);

        if (NULL == symbol) {
            snprintf(text_p, text_bytes, LIBRARY " has no %s: the driver is too old",
                     symbols[i].name);
            return false;
        }
        memcpy((char *) &driver + symbols[i].offset_bytes, &symbol, sizeof(symbol));
    }
    return true;
}

bool r2_bench_place_open(r2_bench_place_t place, int local_rank, char *text_p, size_t text_bytes)
{
    r2_bench_cu_context_t context = NULL;
    int count = 0;
    int device;

    if (R2_BENCH_IN_HOST == place) {
        return true;
    }
    if (!load(text_p, text_bytes) || !went_well(driver.init(0), "cuInit", text_p, text_bytes) ||
        !went_well(driver.devices(&count), "cuDeviceGetCount", text_p, text_bytes)) {
        return false;
    }
    if (0 == count) {
        snprintf(text_p, text_bytes, "the CUDA driver has no device");
        return false;
    }
    device = local_rank % count;
    if (!went_well(driver.retain(&context, device), "cuDevicePrimaryCtxRetain", text_p,
                   text_bytes)) {
        return false;
    }
    driver.device = device;
    return went_well(driver.set_current(context), "cuCtxSetCurrent", text_p, text_bytes);
}

void r2_bench_place_close(void)
{
    if (driver.device >= 0) {
        (void) driver.set_current(NULL);
        (void) driver.release(driver.device);
    }
    if (NULL != driver.library) {
        dlclose(driver.library);
    }
    memset(&driver, 0, sizeof(driver));
    driver.device = -1;
}

void *r2_bench_place_alloc(r2_bench_place_t place, size_t bytes)
{
    r2_bench_cu_at_t at = 0;
    r2_bench_cu_result_t rc = R2_BENCH_IN_MANAGED == place
                                  ? driver.alloc_managed(&at, bytes, ATTACH_GLOBAL)
                                  : driver.alloc(&at, bytes);

    return CUDA_OK == rc ? (void *) (uintptr_t) at : NULL;
}

void r2_bench_place_free(void *memory)
{
    if (NULL != memory) {
        (void) driver.free((uintptr_t) memory);
    }
}

static void must(r2_bench_cu_result_t rc, const char *call)
{
    char text[128];

    if (!went_well(rc, call, text, sizeof(text))) {
        r2_bench_give_up(text);
    }
}

/* From pageable memory the driver's call may return before the copy is there: MPI libraries use
 * streams of their own, and do not all wait for it. */
void r2_bench_place_write(void *to, const void *from, size_t bytes)
{
    if (bytes > 0) {
        must(driver.to_device((uintptr_t) to, from, bytes), "cuMemcpyHtoD");
        must(driver.synchronize(), "cuCtxSynchronize");
    }
}

void r2_bench_place_read(void *to, const void *from, size_t bytes)
{
    if (bytes > 0) {
        must(driver.to_host(to, (uintptr_t) from, bytes), "cuMemcpyDtoH");
    }
}
