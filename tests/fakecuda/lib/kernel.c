/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Modules and kernels: PTX text is read for the names and parameters of its entries; what runs is
 * the C form of that name, on the CPU.
 */
#include "fakecuda/lib/fc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TABLES = 16 };

struct CUmod_st {
    char *text;
    fc_ctx_t *ctx;
    struct CUfunc_st *functions;
};

struct CUfunc_st {
    struct CUfunc_st *next; /* of the same module */
    const fakecuda_kernel_t *kernel;
    fc_ctx_t *ctx;
    fc_clock_t launched; /* of the newest launch on each stream */
};

static const fakecuda_kernel_t *tables[TABLES];
static int table_count;

/* ---- C forms */

static int add_table(const fakecuda_kernel_t *kernels)
{
    if (NULL == kernels || TABLES == table_count) {
        return -1;
    }
    tables[table_count++] = kernels;
    return 0;
}

void fakecuda_add_kernels(const fakecuda_kernel_t *kernels)
{
    fc_lock();
    (void) add_table(kernels);
    fc_unlock();
}

int fc_open_kernels(const char *path)
{
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (NULL == object) {
        fc_say("%s", dlerror());
        return -1;
    }
    return add_table(dlsym(object, "fakecuda_kernels"));
}

static const fakecuda_kernel_t *kernel_of(const char *name)
{
    for (int i = table_count - 1; i >= 0; --i) {
        const fakecuda_kernel_t *kernel = tables[i];
        while (NULL != kernel->name && 0 != strcmp(kernel->name, name)) {
            ++kernel;
        }
        if (NULL != kernel->name) {
            return kernel;
        }
    }
    return NULL;
}

/* ---- PTX */

/* Driver 12.0 reads PTX 8.0, 11.4 reads 7.4; 13.0 reads 9.0. */
static CUresult check_text(const char *text)
{
    const char *version = strstr(text, ".version"), *target = strstr(text, ".target");
    unsigned major = 0, minor = 0, sm = 0;
    uint64_t newest = (fc.driver / 1000 - 4) * 10 + fc.driver % 1000 / 10;

    if (NULL == version || 2 != sscanf(version, ".version %u.%u", &major, &minor) ||
        NULL == target || 1 != sscanf(target, ".target sm_%u", &sm)) {
        return CUDA_ERROR_INVALID_PTX;
    }
    if (major * 10 + minor > newest) {
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    }
    return sm > fc.sm ? CUDA_ERROR_NO_BINARY_FOR_GPU : CUDA_SUCCESS;
}

/* The parameter list of an entry. @return NULL: there is no such entry. */
static const char *find_entry(const char *text, const char *name)
{
    static const char entry[] = ".entry";
    size_t length = strlen(name);

    while (NULL != (text = strstr(text, entry))) {
        text += strlen(entry);
        text += strspn(text, " \t\r\n");
        if (0 == strncmp(text, name, length) && NULL != strchr("( \t\r\n", text[length])) {
            return strchr(text, '(');
        }
    }
    return NULL;
}

/* Its parameters as in fakecuda_kernel_t, with l for pointers; ? is what the stand-in lacks. */
static void read_params(const char *list, char *signature_p, size_t room)
{
    const char *end = strchr(list, ')'), *at = list;
    unsigned bytes;
    char name[128];
    size_t used = 0;

    while (used + 12 < room && NULL != (at = strstr(at, ".param")) && at < end) {
        at += strlen(".param");
        at += strspn(at, " \t.");
        if (2 == sscanf(at, "align %*u .b8 %127[^[][%u]", name, &bytes)) {
            used += (size_t) snprintf(signature_p + used, room - used, "s%u", bytes);
        } else {
            signature_p[used++] = 0 == strncmp(at + 1, "64", 2)   ? 'l'
                                  : 0 == strncmp(at + 1, "32", 2) ? 'i'
                                                                  : '?';
        }
    }
    signature_p[used] = '\0';
}

static bool fits(const fakecuda_kernel_t *kernel, const char *list)
{
    char there[FC_SIGNATURE];
    size_t i = 0;

    read_params(list, there, sizeof(there));
    while ('\0' != there[i] &&
           there[i] == ('p' == kernel->signature[i] ? 'l' : kernel->signature[i])) {
        ++i;
    }
    if ('\0' == there[i] && '\0' == kernel->signature[i]) {
        return true;
    }
    fc_say("kernel %s: parameters %s in PTX, %s in C", kernel->name, there, kernel->signature);
    return false;
}

/* ---- entry points */

static CUresult load(fc_call_t call, CUmodule *module_p, const char *text)
{
    CUresult rc = fc_enter(call);

    if (CUDA_SUCCESS == rc && NULL == text) {
        rc = CUDA_ERROR_INVALID_VALUE;
    }
    rc = CUDA_SUCCESS == rc ? check_text(text) : rc;
    if (CUDA_SUCCESS == rc && 0 != fc.load_waits) {
        fc_clock_t all;

        fc_clock_all(&all, fc_ctx());
        fc_stall(&all);
    }
    if (CUDA_SUCCESS == rc) {
        *module_p = calloc(1, sizeof(**module_p));
        (*module_p)->text = strdup(text);
        (*module_p)->ctx = fc_ctx();
    }
    return fc_leave(rc);
}

CUresult cuModuleLoadData(CUmodule *module_p, const void *image)
{
    return load(FC_CALL_cuModuleLoadData, module_p, image);
}

CUresult cuModuleLoadDataEx(CUmodule *module_p, const void *image, unsigned count,
                            CUjit_option *options, void **values)
{
    (void) count, (void) options, (void) values;
    return load(FC_CALL_cuModuleLoadDataEx, module_p, image);
}

/* Drivers promise nothing for kernels that still run then. */
static void check_launches(const struct CUmod_st *module)
{
    for (const struct CUfunc_st *function = module->functions; NULL != function;
         function = function->next) {
        for (int i = 0; i < FC_STREAMS; ++i) {
            if (function->launched.seq[i] > fc.host.seq[i]) {
                fc_mistake(FC_missing_waits,
                           "a module is unloaded, and nobody waited for its kernel %s on stream %d",
                           function->kernel->name, i);
                return;
            }
        }
    }
}

CUresult cuModuleUnload(CUmodule module)
{
    CUresult rc = fc_enter(FC_CALL_cuModuleUnload);

    if (CUDA_SUCCESS == rc && module->ctx != fc_ctx()) {
        fc_mistake(FC_wrong_context, "a module of another context is unloaded");
        rc = CUDA_ERROR_INVALID_HANDLE;
    } else if (CUDA_SUCCESS == rc) {
        check_launches(module);
        free(module->text);
        free(module);
    }
    return fc_leave(rc);
}

CUresult cuModuleGetFunction(CUfunction *function_p, CUmodule module, const char *name)
{
    CUresult rc = fc_enter(FC_CALL_cuModuleGetFunction);
    const char *list = CUDA_SUCCESS == rc ? find_entry(module->text, name) : NULL;
    const fakecuda_kernel_t *kernel = kernel_of(name);

    if (CUDA_SUCCESS != rc) {
        return fc_leave(rc);
    }
    if (NULL == list || NULL == kernel) {
        fc_say("kernel %s is not in %s", name, NULL == list ? "the PTX" : "the C forms");
        return fc_leave(NULL == list ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_NOT_SUPPORTED);
    }
    if (!fits(kernel, list)) {
        return fc_leave(CUDA_ERROR_INVALID_VALUE);
    }
    *function_p = calloc(1, sizeof(**function_p));
    (*function_p)->kernel = kernel;
    (*function_p)->ctx = module->ctx;
    (*function_p)->next = module->functions;
    module->functions = *function_p;
    return fc_leave(CUDA_SUCCESS);
}

/* A kernel reaches memory of its own device, of devices with peer access, and of the host. */
static bool is_reached(const fc_ctx_t *ctx, uintptr_t at, size_t bytes)
{
    const fc_alloc_t *alloc = fc_find(at);

    return NULL != fc_reach(at, bytes) && (!fc_is_device(alloc) || alloc->device == ctx->device ||
                                           0 != (ctx->peers & 1u << alloc->device));
}

/* Where a span's pointer is. */
static uint64_t *pointer_of(const fc_op_t *op, const fakecuda_span_t *span)
{
    return (uint64_t *) (void *) ((char *) op->params[span->param] + span->offset_bytes);
}

/* Checks all spans, then leads their pointers to where the CPU reaches them. @return the number of
 * spans that are not empty, or -1: a span is not memory that the kernel reaches. */
static int translate(fc_op_t *op, const fc_ctx_t *ctx, fc_span_t *spans_p)
{
    fakecuda_span_t wanted[FAKECUDA_SPANS];
    int count = op->kernel->spans(op->params, wanted), used = 0;

    for (int i = 0; i < count; ++i) {
        uintptr_t at = *pointer_of(op, &wanted[i]);
        if (0 != wanted[i].bytes && !is_reached(ctx, at, wanted[i].bytes)) {
            fc_say("kernel %s, parameter %d: device %d does not reach all of %p..+%zu", op->name,
                   wanted[i].param, ctx->device, (void *) at, wanted[i].bytes);
            return -1;
        }
        if (0 != wanted[i].bytes) {
            spans_p[used++] = (fc_span_t){at, wanted[i].bytes, 0 != wanted[i].writes, 0, 0};
        }
    }
    for (int i = 0; i < count; ++i) {
        uintptr_t at = *pointer_of(op, &wanted[i]);
        if (0 != wanted[i].bytes && NULL != fc_find(at)) {
            *pointer_of(op, &wanted[i]) = (uintptr_t) fc_reach(at, 1);
        }
    }
    return used;
}

/* @return bytes of the next parameter of a signature. */
static size_t next_param(const char **signature)
{
    const char kind = *(*signature)++;

    return 's' == kind   ? strtoul(*signature, (char **) (uintptr_t) signature, 10)
           : 'i' == kind ? 4
                         : 8;
}

/* Copies parameters into the operation. @return false: there is no room for them. */
static bool take_params(fc_op_t *op, void **params)
{
    const char *rest = op->kernel->signature;
    size_t words = 0;

    for (size_t i = 0; '\0' != *rest; ++i) {
        const size_t bytes = next_param(&rest);

        if (FC_PARAMS == i || words + (bytes + 7) / 8 > FC_PARAM_WORDS) {
            return false;
        }
        op->params[i] = &op->values[words];
        memcpy(op->params[i], params[i], bytes);
        words += (bytes + 7) / 8;
    }
    return true;
}

static CUresult launch(CUfunction function, const fakecuda_grid_t *grid, fc_stream_t *stream,
                       void **params)
{
    const fakecuda_kernel_t *kernel = function->kernel;
    fc_op_t *op = fc_op_new(FC_OP_KERNEL, kernel->name);
    fc_span_t spans[FAKECUDA_SPANS];
    int count;

    op->kernel = kernel;
    op->grid = *grid;
    if (!take_params(op, params)) {
        free(op);
        return CUDA_ERROR_INVALID_VALUE;
    }
    count = translate(op, stream->ctx, spans);
    if (count < 0) { /* as with the real one: a later call finds it */
        stream->ctx->sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
        free(op);
        return CUDA_SUCCESS;
    }
    for (int i = 0; i < count; ++i) {
        op->bytes += spans[i].writes ? spans[i].bytes : 0;
    }
    ++fc.counters[FC_launches];
    fc_enqueue(stream, op, spans, count);
    function->launched.seq[stream->place] = stream->newest;
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream handle, void **params, void **extra)
{
    const fakecuda_grid_t grid = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}};
    const uint64_t threads = (uint64_t) block_x * block_y * block_z;
    CUresult rc = fc_enter(FC_CALL_cuLaunchKernel);
    fc_stream_t *stream = CUDA_SUCCESS == rc ? fc_stream(handle, &rc) : NULL;

    (void) shared;
    if (NULL == stream) {
        return fc_leave(rc);
    }
    if (NULL == params || NULL != extra || 0 == threads || threads > 1024 ||
        0 == (uint64_t) grid_x * grid_y * grid_z) {
        return fc_leave(CUDA_ERROR_INVALID_VALUE);
    }
    if (function->ctx != fc_ctx()) {
        fc_mistake(FC_wrong_context, "kernel %s of another context is launched",
                   function->kernel->name);
        return fc_leave(CUDA_ERROR_INVALID_HANDLE);
    }
    return fc_leave(launch(function, &grid, stream, params));
}
