/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A structure of the CUDA driver API: cuda_api.def has the rest.
 */
#ifndef R2_MEM_CUDA_IPC_H
#define R2_MEM_CUDA_IPC_H

/** By which another process opens an allocation of this one. */
struct r2_cu_ipc {
    char bytes[64];
};

#endif
