/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The CUDA driver's description of a copy in two dimensions: its layout, by names of our own.
 * test_cuda_api compares it as it does cuda_api.def.
 */
#ifndef R2_MEM_CUDA_COPY2D_H
#define R2_MEM_CUDA_COPY2D_H

#include <stddef.h>

/** Rows of memory from one place to another. */
struct r2_cu_copy2d {
    size_t from_x_bytes, from_y;
    int from_type;
    const void *from_host;
    unsigned long long from;
    void *from_array;
    size_t from_pitch_bytes;
    size_t to_x_bytes, to_y;
    int to_type;
    void *to_host;
    unsigned long long to;
    void *to_array;
    size_t to_pitch_bytes;
    size_t row_bytes, rows;
};

#endif
