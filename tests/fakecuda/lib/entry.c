/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * How every entry point begins and ends; start of the library.
 */
#include "fakecuda/lib/fc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

fc_state_t fc = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
__thread bool fc_locked;
__thread bool fc_in_host_function;

enum { NEEDS_ANY, NEEDS_INIT, NEEDS_ASK, NEEDS_CTX };

static const unsigned char needs_of[] = {
#define CU_FUNCTION(name, needs, params) NEEDS_##needs,
#include "fakecuda/functions.def"
#undef CU_FUNCTION
};

void fc_lock(void)
{
    pthread_mutex_lock(&fc.lock);
    fc_locked = true;
}

void fc_unlock(void)
{
    fc_locked = false;
    pthread_mutex_unlock(&fc.lock);
}

static CUresult context_is_fit(fc_call_t call)
{
    const fc_ctx_t *ctx = fc_ctx();

    if (NULL == ctx) {
        if (NEEDS_CTX == needs_of[call]) {
            fc_mistake(FC_wrong_context, "%s without a current context", fc_call_name(call));
        }
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (ctx->is_destroyed) {
        fc_mistake(FC_wrong_context, "%s in a context that is destroyed", fc_call_name(call));
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    return ctx->sticky;
}

CUresult fc_enter(fc_call_t call)
{
    CUresult rc = CUDA_SUCCESS;

    if (fc_in_host_function) {
        fc_lock();
        fc_mistake(FC_wrong_context, "%s inside a host function", fc_call_name(call));
        return CUDA_ERROR_NOT_PERMITTED;
    }
    fc_lock();
    fc_read_settings();
    ++fc.calls[call];
    if (NEEDS_ANY != needs_of[call] && fc.pid != getpid()) {
        return CUDA_ERROR_NOT_INITIALIZED; /* also in a child of fork() */
    }
    if (needs_of[call] >= NEEDS_ASK) {
        rc = context_is_fit(call);
    }
    return CUDA_SUCCESS == rc ? fc_fault(fc_call_name(call)) : rc;
}

CUresult fc_leave(CUresult rc)
{
    fc_unlock();
    return rc;
}

static CUresult start(void)
{
    if (0 == fc.devices) {
        return CUDA_ERROR_NO_DEVICE;
    }
    if (0 != fc_arena_init()) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    fc.pid = getpid();
    fc_guard();
    atexit(fc_write_stats);
    return CUDA_SUCCESS;
}

CUresult cuInit(unsigned flags)
{
    CUresult rc = fc_enter(FC_CALL_cuInit);

    if (CUDA_SUCCESS == rc && 0 != flags) {
        rc = CUDA_ERROR_INVALID_VALUE;
    } else if (CUDA_SUCCESS == rc && 0 == fc.pid) {
        rc = start();
    } else if (CUDA_SUCCESS == rc && fc.pid != getpid()) {
        rc = CUDA_ERROR_NOT_INITIALIZED; /* as with the real one: not after fork() */
    }
    return fc_leave(rc);
}

CUresult cuDriverGetVersion(int *version_p)
{
    CUresult rc = fc_enter(FC_CALL_cuDriverGetVersion);

    if (CUDA_SUCCESS == rc) {
        *version_p = (int) fc.driver;
    }
    return fc_leave(rc);
}

static const char *error_name(CUresult error)
{
    static const struct {
        const char *name;
        int value;
    } values[] = {
#define CU_VALUE(name, value) {#name, value},
#include "fakecuda/values.def"
#undef CU_VALUE
    };

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); ++i) {
        if (0 == strncmp(values[i].name, "CUDA_", strlen("CUDA_")) && values[i].value == error) {
            return values[i].name;
        }
    }
    return NULL;
}

CUresult cuGetErrorName(CUresult error, const char **text_p)
{
    *text_p = error_name(error);
    return NULL == *text_p ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text_p)
{
    return cuGetErrorName(error, text_p);
}

/* By name without version: the newest that there is. */
CUresult cuGetProcAddress_v2(const char *name, void **fn_p, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *result_p)
{
    typedef void (*any_fn_t)(void);
    static const any_fn_t fns[] = {
#define CU_FUNCTION(name, needs, params) (any_fn_t) name,
#include "fakecuda/functions.def"
#undef CU_FUNCTION
    };
    size_t length = strlen(name);

    (void) version, (void) flags;
    *fn_p = NULL;
    for (size_t i = 0; i < FC_CALLS; ++i) {
        const char *full = fc_call_name((fc_call_t) i);
        if (0 == strncmp(full, name, length) &&
            ('\0' == full[length] || 0 == strcmp(full + length, "_v2"))) {
            memcpy(fn_p, &fns[i], sizeof(*fn_p));
        }
    }
    if (NULL != result_p) {
        *result_p =
            NULL == *fn_p ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : CU_GET_PROC_ADDRESS_SUCCESS;
    }
    return NULL == *fn_p ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}
