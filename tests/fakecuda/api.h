/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The CUDA driver API as far as the stand-in has it. Own declarations, by the names that cuda.h
 * gives them: where that is installed, test_api compares values, layouts and prototypes.
 */
#ifndef FAKECUDA_API_H
#define FAKECUDA_API_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

enum {
#define CU_VALUE(name, value) name = (value),
#include "fakecuda/values.def"
#undef CU_VALUE
};

/* Enums of cuda.h are ints here: the same to whoever calls. */
typedef uint64_t cuuint64_t;
typedef int CUresult;
typedef int CUdevice;
typedef int CUdevice_attribute;
typedef int CUpointer_attribute;
typedef int CUmemorytype;
typedef int CUmemAllocationGranularity_flags;
typedef int CUstreamCaptureStatus;
typedef int CUdriverProcAddressQueryResult;
typedef int CUjit_option;
typedef int CUflushGPUDirectRDMAWritesTarget;
typedef int CUflushGPUDirectRDMAWritesScope;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUarray_st *CUarray;
typedef void (*CUhostFn)(void *arg);

#define CU_STREAM_LEGACY     ((CUstream) 0x1)
#define CU_STREAM_PER_THREAD ((CUstream) 0x2)

typedef struct CUuuid_st {
    char bytes[16];
} CUuuid;

typedef struct CUipcMemHandle_st {
    char reserved[64];
} CUipcMemHandle;

typedef struct CUmemLocation_st {
    int type;
    int id;
} CUmemLocation;

typedef struct CUmemAllocationProp_st {
    int type;
    int requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    unsigned char allocFlags[8];
} CUmemAllocationProp;

typedef struct CUmemAccessDesc_st {
    CUmemLocation location;
    int flags;
} CUmemAccessDesc;

typedef struct CUDA_MEMCPY2D_st {
    size_t srcXInBytes, srcY;
    CUmemorytype srcMemoryType;
    const void *srcHost;
    CUdeviceptr srcDevice;
    CUarray srcArray;
    size_t srcPitch;
    size_t dstXInBytes, dstY;
    CUmemorytype dstMemoryType;
    void *dstHost;
    CUdeviceptr dstDevice;
    CUarray dstArray;
    size_t dstPitch;
    size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;

#define CU_SIZE(type, bytes)          static_assert(sizeof(type) == (bytes), #type);
#define CU_FIELD(type, field, offset) static_assert(offsetof(type, field) == (offset), #field);
#include "fakecuda/layouts.def"
#undef CU_SIZE
#undef CU_FIELD

#define CU_FUNCTION(name, needs, params) \
    __attribute__((visibility("default"))) CUresult name params;
#include "fakecuda/functions.def"
#undef CU_FUNCTION

/* As cuda.h maps them. */
#define cuCtxDestroy              cuCtxDestroy_v2
#define cuCtxPopCurrent           cuCtxPopCurrent_v2
#define cuCtxPushCurrent          cuCtxPushCurrent_v2
#define cuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease_v2
#define cuEventDestroy            cuEventDestroy_v2
#define cuIpcOpenMemHandle        cuIpcOpenMemHandle_v2
#define cuMemAlloc                cuMemAlloc_v2
#define cuMemAllocHost            cuMemAllocHost_v2
#define cuMemFree                 cuMemFree_v2
#define cuMemGetAddressRange      cuMemGetAddressRange_v2
#define cuMemGetInfo              cuMemGetInfo_v2
#define cuMemHostGetDevicePointer cuMemHostGetDevicePointer_v2
#define cuMemHostRegister         cuMemHostRegister_v2
#define cuMemcpy2DAsync           cuMemcpy2DAsync_v2
#define cuMemcpyDtoD              cuMemcpyDtoD_v2
#define cuMemcpyDtoDAsync         cuMemcpyDtoDAsync_v2
#define cuMemcpyDtoH              cuMemcpyDtoH_v2
#define cuMemcpyDtoHAsync         cuMemcpyDtoHAsync_v2
#define cuMemcpyHtoD              cuMemcpyHtoD_v2
#define cuMemcpyHtoDAsync         cuMemcpyHtoDAsync_v2
#define cuMemsetD32               cuMemsetD32_v2
#define cuMemsetD8                cuMemsetD8_v2
#define cuStreamDestroy           cuStreamDestroy_v2

#endif
