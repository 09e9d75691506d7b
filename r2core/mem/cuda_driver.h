/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The CUDA driver: opened at run time, so that r2 is built and runs without it. The driver API
 * only, never the runtime library.
 */
#ifndef R2_MEM_CUDA_DRIVER_H
#define R2_MEM_CUDA_DRIVER_H

#include <stddef.h>

#include "mem/cuda_copy2d.h"
#include "mem/cuda_ipc.h"
#include "r2/status.h"

#define R2_CUDA_TYPE(ours, as, theirs) typedef as ours;
#define R2_CUDA_VALUE(ours, value, theirs)
#define R2_CUDA_FN(field, symbol, params)
#include "mem/cuda_api.def"
#undef R2_CUDA_TYPE
#undef R2_CUDA_VALUE

#define R2_CUDA_TYPE(ours, as, theirs)
#define R2_CUDA_VALUE(ours, value, theirs) ours = (value),
enum {
#include "mem/cuda_api.def"
};
#undef R2_CUDA_VALUE
#undef R2_CUDA_FN

typedef struct r2_cuda_driver {
    void *library; /* owned; NULL: there is none */
#define R2_CUDA_VALUE(ours, value, theirs)
#define R2_CUDA_FN(field, symbol, params) r2_cu_result_t(*field) params;
#include "mem/cuda_api.def"
#undef R2_CUDA_TYPE
#undef R2_CUDA_VALUE
#undef R2_CUDA_FN
} r2_cuda_driver_t;

/** Opens the driver's library. Nothing is started: cuInit() is the application's.
 * @param name    "libcuda.so.1"
 * @param text_p  why not
 * @return R2_OK; R2_ERR_NOT_FOUND: there is no driver; R2_ERR_UNSUPPORTED: it lacks a function. */
r2_status_t r2_cuda_driver_open(const char *name, r2_cuda_driver_t *driver_p, char *text_p,
                                size_t text_bytes);

/** Also for one that could not be opened. */
void r2_cuda_driver_close(r2_cuda_driver_t *driver);

#endif
