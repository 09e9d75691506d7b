/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The kernels for GPUs, compiled by clang without any part of CUDA: for a compute capability of 7.0
 * and later, by every driver.
 */
#define R2_DEVICE         static inline __attribute__((device, always_inline))
#define R2_UNROLL         _Pragma("clang loop unroll(full)")
#define R2_ENTRY(name, type) extern "C" __attribute__((global)) void name(type pieces)
#define R2_BLOCK_THREADS  __nvvm_read_ptx_sreg_ntid_x()
#define R2_THREAD                                                        \
    ((r2_u64) __nvvm_read_ptx_sreg_ctaid_x() * (r2_u64) R2_BLOCK_THREADS \
     + (r2_u64) __nvvm_read_ptx_sreg_tid_x())
#define R2_THREADS ((r2_u64) __nvvm_read_ptx_sreg_nctaid_x() * (r2_u64) R2_BLOCK_THREADS)
#define R2_PIECE   ((unsigned) __nvvm_read_ptx_sreg_ctaid_y())

#include "reduce.h"
