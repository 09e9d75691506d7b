/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * r2's own declarations of the CUDA driver API against cuda.h, where that is installed, else
 * against those of tests/fakecuda: values, sizes, prototypes, by the compiler. So are those of the
 * benchmarks.
 */
#include "r2_config.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>

#include "mem/cuda_copy2d.h"
#include "mem/cuda_ipc.h"

#if R2_HAVE_CUDA
#    include <cuda.h>
#    define COMPARED_WITH "cuda.h"
#else
#    include "fakecuda/api.h"
#    define COMPARED_WITH "tests/fakecuda"
#endif

/* Their types by our names: then our prototypes have to be theirs. */
#define R2_CUDA_TYPE(ours, as, theirs)                    \
    static_assert(sizeof(as) == sizeof(theirs), #theirs); \
    typedef theirs ours;
#define R2_CUDA_VALUE(ours, value, theirs) static_assert((value) == (int) (theirs), #theirs);
#define R2_CUDA_FN(field, symbol, params)  r2_cu_result_t symbol params;
#pragma GCC diagnostic ignored "-Wredundant-decls"
#include "mem/cuda_api.def"
#include "mem/cuda_start.def"

/* Those of the benchmarks. */
typedef CUresult r2_bench_cu_result_t;
typedef CUdeviceptr r2_bench_cu_at_t;
typedef CUcontext r2_bench_cu_context_t;
static_assert(sizeof(CUdevice) == sizeof(int), "a device is an int");
static_assert(1 == CU_MEM_ATTACH_GLOBAL, "CU_MEM_ATTACH_GLOBAL");
#define R2_BENCH_CUDA(field, symbol, params) r2_bench_cu_result_t symbol params;
#include "bench/osu/cuda.def"

#define SAME(ours, theirs) \
    static_assert(offsetof(struct r2_cu_copy2d, ours) == offsetof(CUDA_MEMCPY2D, theirs), #theirs)
SAME(from_x_bytes, srcXInBytes);
SAME(from_y, srcY);
SAME(from_type, srcMemoryType);
SAME(from_host, srcHost);
SAME(from, srcDevice);
SAME(from_array, srcArray);
SAME(from_pitch_bytes, srcPitch);
SAME(to_x_bytes, dstXInBytes);
SAME(to_y, dstY);
SAME(to_type, dstMemoryType);
SAME(to_host, dstHost);
SAME(to, dstDevice);
SAME(to_array, dstArray);
SAME(to_pitch_bytes, dstPitch);
SAME(row_bytes, WidthInBytes);
SAME(rows, Height);

int main(void)
{
    printf("1..1\nok 1 - what is declared is as in %s\n", COMPARED_WITH);
    return 0;
}
